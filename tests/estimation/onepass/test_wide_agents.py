"""Agents on wide linear models: from the points told, with the decisions of packed factors."""

import json

import numpy as np
import pytest

import alexp
from alexp.common.codec import pack, unpack
from alexp.estimation.factory import agents_from_points, agents_packed, linear_posteriors, posteriors, prefers_points
from alexp.estimation.onepass.processes import Processes
from alexp.estimation.ridge.bank import RidgeBank
from alexp.problem.candidates import Choices

N, WIDE = 60, 420

pytestmark = pytest.mark.filterwarnings("ignore::alexp.AssumptionWarning")


def models(width=WIDE, intercept=True):
    rng = np.random.default_rng(2)
    maps = {"wide": rng.integers(0, 2, (N, width)).astype(float), "other": rng.normal(size=(N, width // 2))}
    return alexp.ModelClass.from_matrices(maps, intercept=intercept)


def test_wide_models_take_this_route_and_others_stay():
    assert isinstance(posteriors(models(), 0.1), Processes)
    assert isinstance(posteriors(models(100), 0.1), RidgeBank)
    assert isinstance(posteriors(models(), 0.1, np.array([1])), RidgeBank)  # 210 features
    contextual = alexp.ModelClass.from_blocks({"wide": 600})
    assert isinstance(posteriors(contextual, 0.1), RidgeBank)
    assert isinstance(posteriors(models(150), 0.1, forget=0.9), RidgeBank)
    sizes = np.array([300.0, 400.0])
    assert not prefers_points(sizes / 2)
    assert prefers_points(2 * sizes)
    assert agents_packed(sizes, 20) == pytest.approx(2 * agents_packed(sizes, 10))
    more = [agents_from_points(sizes, 1000, points) for points in (10, 100, 300)]
    assert more == sorted(more)
    assert more[1] < 2.0 * agents_packed(sizes, 1000) < 10.0 * more[1]


@pytest.mark.parametrize("intercept", [False, True])
def test_fits_are_those_of_packed_factors(intercept):
    made = models(intercept=intercept)
    one, two = posteriors(made, 0.3), linear_posteriors(made, 0.3)
    table = made.matrix(alexp.FiniteSet(np.arange(N)))
    choices, rng = Choices(np.arange(N), np.ascontiguousarray(table.T)), np.random.default_rng(0)
    for _ in range(40):
        row = table[rng.integers(N)]
        y = float(row @ np.linspace(-0.1, 0.1, made.n_columns) + rng.normal())
        one.update(row, y), two.update(row, y)
    members, radii = np.arange(2), np.array([1.0, 2.0])
    for a, b in [(one, two), (one.with_fantasies(table[[3, 4, 3]]), two.with_fantasies(table[[3, 4, 3]]))]:
        for j in range(2):
            np.testing.assert_allclose(a.mean(j, choices), b.mean(j, choices), rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(a.width(j, choices), b.width(j, choices), rtol=1e-8, atol=1e-9)
        np.testing.assert_array_equal(a.argmax_ucb(choices, 1.0), b.argmax_ucb(choices, 1.0))
        np.testing.assert_allclose(a.envelope(members, radii, choices), b.envelope(members, radii, choices), rtol=1e-8)
        gaps = (c.largest_gaps(members, radii, choices, 5) for c in (a, b))
        np.testing.assert_allclose(*gaps, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(one.evidence(0.5), two.evidence(0.5), rtol=1e-9)


def play(opt, n, first=0):
    weights = np.linspace(-1.0, 1.0, WIDE) / 10
    wide = models().matrix(alexp.FiniteSet(np.arange(N)))[:, :WIDE]
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, float(wide[trial.index] @ weights))
    return opt.trials_dataframe()["index"].tolist()[first:]


MAKERS = {
    "linucb": lambda m: alexp.LinUCB(m, alexp.FiniteSet(np.arange(N)), model=0, norm_bound=2.0, random_state=0),
    "naive": lambda m: alexp.LinUCB(m, alexp.FiniteSet(np.arange(N)), norm_bound=2.0, random_state=0),
    "lm-ucb": lambda m: alexp.LMUCB(m, alexp.FiniteSet(np.arange(N)), noise_std=0.1, norm_bound=2.0, random_state=0),
    "alexp": lambda m: alexp.ALExp(
        m, alexp.FiniteSet(np.arange(N)), oracle=alexp.Evidence(), noise_std=0.1, norm_bound=2.0, random_state=0
    ),
}


@pytest.mark.parametrize("name", list(MAKERS))
def test_decisions_are_the_same(name, monkeypatch):
    one = MAKERS[name](models())
    assert isinstance(one._pool.fits[0], Processes)
    with monkeypatch.context() as patch:
        patch.setattr("alexp.estimation.factory._are_wide", lambda *_: False)
        two = MAKERS[name](models())
    assert isinstance(two._pool.fits[0], RidgeBank)
    assert play(one, 25) == play(two, 25)
    assert play(one, 5, 25) == play(two, 5, 25)
    again = type(one).from_dict(json.loads(json.dumps(one.to_dict())), models=models())
    assert isinstance(again._pool.fits[0], Processes)
    assert play(again, 3, 30) == play(one, 3, 30)


def test_draws_are_of_the_same_posterior():
    made = models(8)
    choices = Choices(np.arange(N), np.ascontiguousarray(made.matrix(alexp.FiniteSet(np.arange(N))).T))
    packed = linear_posteriors(made, 0.5)
    points = Processes(made.groups, [None, None], np.full(2, 0.5), True)
    for index, y in zip([3, 9, 3, 30, 41, 50, 12], [1.0, 3.0, 1.5, -1.0, 2.0, 6.0, -4.0], strict=True):
        for fits in (packed, points):
            fits.update(choices.table[:, index].copy(), y)
    shares = []
    for fits in (packed, points):
        rng = np.random.default_rng(1)
        best = np.array([fits.argmax_draw(choices, rng, 0.3) for _ in range(1500)])
        shares.append([np.bincount(best[:, j], minlength=N) / 1500 for j in range(2)])
    np.testing.assert_allclose(*shares, atol=0.045)  # four standard errors
    assert all(0.2 < own.max() < 0.95 for own in shares[0])  # neither certain nor anything at all


def test_states_hold_every_row_once_and_are_checked():
    made = models()
    fits, table = posteriors(made, 0.3), made.matrix(alexp.FiniteSet(np.arange(N)))
    for index in (4, 4, 7, 4):
        fits.update(table[index], float(index))
    state = fits.state()
    assert state["rows"].shape == (2, made.n_columns)
    assert state["order"].tolist() == [0, 0, 1, 0]
    for saved in (state, posteriors(made, 0.3).state()):
        other = posteriors(made, 0.3)
        other.restore(unpack(pack(saved)))
        if saved["rewards"].size:
            assert np.array_equal(other.at(table[5]), fits.at(table[5]))
        assert other.n_observations == saved["rewards"].size
    for change in (
        {"order": np.array([0, 0, 2, 0])},
        {"order": np.array([0, 0, 1])},
        {"rewards": np.array([1.0, np.nan, 2.0, 3.0])},
        {"rows": state["rows"][:, :-1]},
        {"rows": np.array([1.0, 2.0])},
    ):
        with pytest.raises(ValueError, match="state"):
            fits.restore(state | change)
    assert fits.n_observations == 4
