"""The reference instances, smaller or shorter; the whole of them is `python -m alexp_experiments.sparse.reference`."""

import numpy as np
import pytest

import alexp
from alexp_experiments.sparse import reference


@pytest.mark.parametrize("method", ["sa-lasso", "th-lasso", "dr-lasso", "uniform"])
def test_regret_on_the_first_instance_is_that_of_the_released_code(method):
    row = reference.measure(reference.INSTANCES[0], method, range(2))
    assert row.within, row.text()
    assert row.method in row.text()
    assert f"| {row.means[-1] / row.known.regret[-1]:.2f} | yes |" in row.text()


@pytest.mark.filterwarnings("ignore::alexp.AssumptionWarning")
@pytest.mark.parametrize(("lam2", "sees"), [(0.5, False), ("scaled", True)])
def test_independent_arms_leave_dr_lasso_no_coefficient_unless_lam2_is_scaled(lam2, sees):
    env = reference.INSTANCES[1].environment("dr-lasso", 0)
    opt = alexp.DRLasso(env.models, env.domain, lam2=lam2, clip=3.0, noise_std=0.5, reward_bound=1.0, random_state=0)
    alexp.simulate(opt, env, steps=150)
    assert bool(opt.fit.groups.size) == sees
    rms = np.sqrt(np.mean([np.mean(env.rows(t).mean(axis=0) ** 2) for t in range(150)]))
    expected = (0.5 * rms if sees else 0.5) * np.sqrt((np.log(150) + np.log(100)) / 150)
    assert opt.lambda_t(150) == pytest.approx(expected)


def test_lasso_bandit_is_no_better_than_chance_at_first_and_good_later():
    known = reference.Measured((0, 0, 0), 0, {"lam1": 0.05, "lam2": 0.05})
    small = reference.Instance("small", 4, 10, 2, 0.7, 0.05, {"lasso-bandit": known})
    curves = np.mean([reference.play(small, "lasso-bandit", known.settings, seed, 600) for seed in range(3)], axis=0)
    even = np.mean([reference.play(small, "uniform", {}, seed, 600) for seed in range(3)], axis=0)
    assert curves[19] > 0.5 * even[19]
    assert curves[599] - curves[399] < 0.15 * (even[599] - even[399])


def test_the_band_can_be_missed():
    known = reference.Measured((10, 20, 100), 5)
    row = reference.Row("here", "sa-lasso", 4, np.array([10.0, 20.0, 140.0]), 5.0, known)
    assert row._replace(means=np.array([10.0, 20.0, 138.0])).within
    assert not row.within
    assert row.text().endswith("| 1.40 | no |")


@pytest.mark.parametrize("method", ["popart", "estc"])
def test_case_2_in_small(method):
    """Half of the rounds or more explore at the cost of an average action, then nothing: the right action is found."""
    regret = reference.case_2(method, 1, n=3000, p=6, actions=20)
    assert 300.0 < regret < 2500.0


def test_the_command_prints_a_row_and_fails_where_one_is_missed(capsys, monkeypatch):
    monkeypatch.setattr(reference, "play", lambda *args, **kwargs: np.full(1000, 34.0))
    assert reference.main(["--seeds", "2", "--rows", "1", "--methods", "sa-lasso"]) == 0
    assert "| sa-lasso | 2 | 34 / 34 / 34 +-0 |" in capsys.readouterr().out
    monkeypatch.setattr(reference, "play", lambda *args, **kwargs: np.full(1000, 90.0))
    assert reference.main(["--seeds", "2", "--rows", "1", "--methods", "sa-lasso"]) == 1
    monkeypatch.setattr(reference, "case_2", lambda method, seed: 3370.0 + seed)
    assert reference.main(["--rows", "--case-2", "2"]) == 1
    assert "popart: 3370 (sd 1, 2 runs), released code 3370 (sd 631), +0.0 standard errors" in capsys.readouterr().out
