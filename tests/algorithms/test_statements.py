"""A certificate is a statement or it is not given: what must be stated, what contradicts it, what is said instead."""

import warnings

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp.algorithms.statements import described
from alexp_experiments import alarms

MODELS, DOMAIN = alexp.ModelClass.legendre(degree=4, size=2), alexp.Interval(resolution=41)
KINDS = [alexp.ALExp, alexp.EvidenceMixture, alexp.LMUCB, alexp.LinUCB, alexp.SquareCB, alexp.O2CSEW]
STATED = {"noise_std": 0.1, "reward_bound": 1.0, "random_state": 0}


def play(opt, reward, rounds=20, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", alexp.AssumptionWarning)
        for _ in range(rounds):
            trial = opt.ask()
            opt.tell(trial, reward(trial.x) + noise * rng.standard_normal())
    return opt


def hill(x):
    return 0.8 - 0.9 * x**2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("stated", "missing"),
    [
        ({"noise_std": None, "reward_bound": 1.0}, "noise_std"),
        ({"noise_std": 0.1}, "give reward_bound="),
        ({"noise_std": None}, "noise_std"),
    ],
)
def test_what_was_not_stated_is_not_certified(kind, stated, missing):
    opt = play(kind(MODELS, DOMAIN, random_state=0, **stated), hill)
    for question in (opt.plausible_models, lambda: opt.confidence(0.3), opt.check_models):
        with pytest.raises(alexp.NotCertified, match=missing):
            question()
    report = opt.stop_report(epsilon=10.0)
    assert not report.certified
    assert not report.can_stop
    assert missing in report.reason
    assert 0.0 <= report.epsilon < 10.0
    assert missing in str(report)
    assert "without a guarantee" in str(report)
    assert report.plausible.size >= 1
    assert not opt.certifies


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bound", ["reward_bound", "norm_bound"])
def test_what_was_stated_is_certified(kind, bound):
    opt = play(kind(MODELS, DOMAIN, noise_std=0.1, random_state=0, **{bound: 1.2}), hill)
    report = opt.stop_report(epsilon=10.0)
    assert report.certified
    assert report.can_stop
    assert report.reason is None
    assert report.checked
    band = opt.confidence(DOMAIN.points)
    assert np.all(band.lower <= hill(DOMAIN.points))
    assert np.all(hill(DOMAIN.points) <= band.upper)
    assert 1 in opt.plausible_models()  # P0 + P2
    assert not opt.check_models().contradicted


def test_everybody_certifies_the_same_from_the_same_log():
    bands = set()
    for kind in KINDS:
        opt = kind(MODELS, DOMAIN, **STATED)
        for index in (3, 30, 12, 3, 20):
            opt.observe(index, hill(DOMAIN[index]))
        bands.add(opt.confidence(0.2))
    assert len(bands) == 1


def test_norm_bound_wins():
    """The tighter of the two is not chosen for the user: who states a norm means it."""
    loose = alexp.LMUCB(MODELS, DOMAIN, noise_std=0.1, reward_bound=1.0, norm_bound=8.0, random_state=0)
    alone = alexp.LMUCB(MODELS, DOMAIN, noise_std=0.1, norm_bound=8.0, random_state=0)
    for opt in (loose, alone):
        opt.observe(3, 0.2)
    assert loose.confidence(0.3) == alone.confidence(0.3)


def test_units_of_features_and_rewards_do_not_matter():
    """|r| <= B with features a thousandth in size, and everything in other units: the same bands."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal((30, 4))
    domain, bands = alexp.FiniteSet([f"c{i}" for i in range(30)]), []
    for feature, reward in ((1.0, 1.0), (1.0 / 1024.0, 1.0), (1.0, 1024.0)):
        models = alexp.ModelClass.from_matrices({"a": feature * table[:, :2], "b": feature * table[:, 2:]})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", alexp.AssumptionWarning)
            opt = alexp.ALExp(models, domain, noise_std=0.1 * reward, reward_bound=3.0 * reward, random_state=0)
            for index in (1, 5, 5, 20, 11):
                opt.observe(index, reward * table[index, 0])
        bands.append(np.array(opt.confidence("c7")) / reward)
    np.testing.assert_allclose(bands[1:], [bands[0], bands[0]], rtol=1e-6)


@pytest.mark.parametrize(
    ("reward", "noise", "stated", "cause"),
    [
        (hill, 0.6, {}, "noise"),
        (lambda x: 60.0 * hill(x), 0.1, {}, "bound"),
        (lambda x: hill(x) + 0.5 * np.sign(np.sin(9.0 * x)), 0.02, {"noise_std": 0.01}, "models"),
    ],
)
@pytest.mark.parametrize("intercept", [False, True])
def test_contradictions_withhold_certificates(reward, noise, stated, cause, intercept):
    models = alexp.ModelClass.legendre(degree=4, size=2, intercept=intercept)
    opt = alexp.LMUCB(models, DOMAIN, **(STATED | stated))
    rng = np.random.default_rng(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", alexp.AssumptionWarning)
        for index in rng.integers(0, 41, 60):
            opt.observe(int(index), reward(DOMAIN[int(index)]) + noise * rng.standard_normal())
    check = opt.check_models()
    assert check.contradicted
    assert 0 < check.at <= 60
    assert check.e_value > np.log(20.0)
    assert cause in check.speaks_against
    assert check.rejected.size > 0
    assert "contradict" in check.text
    with pytest.raises(alexp.NotCertified, match="contradict"):
        opt.confidence(0.0)
    report = opt.stop_report()
    assert not report.certified
    assert "contradict" in report.reason
    assert np.isfinite(report.epsilon)


def test_absurd_rewards():
    """Rewards of 1e9 times the noise used to leave no model, an inverted band and an error."""
    opt = alexp.EvidenceMixture(MODELS, DOMAIN, noise_std=1e-9, reward_bound=1.0, random_state=0)
    play(opt, lambda x: np.cos(50.0 * x), 6, noise=1.0)
    with pytest.raises(alexp.NotCertified):
        opt.plausible_models()
    assert np.isfinite(opt.stop_report().epsilon)


def test_estimates_do_not_rest_on_what_is_contradicted():
    """In wrong units a mixture that was told the noise and the bound is far too sure of itself."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal((100, 6))
    models = alexp.ModelClass.from_matrices({"a": table[:, :3], "b": table[:, 3:]})
    truth = 100.0 * table[:, 0] - 50.0 * table[:, 1]
    opt = alexp.EvidenceMixture(models, alexp.FiniteSet(list(range(100))), **STATED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", alexp.AssumptionWarning)
        for index in range(12):
            opt.observe(index, truth[index] + 10.0 * rng.standard_normal())
    report = opt.stop_report()
    assert not report.certified
    assert 1.0 < truth.max() - truth[report.index] + 10.0 < report.epsilon < 500.0
    assert report.plausible.tolist() == [0]


def test_nothing_is_certified_about_a_free_constant_before_the_first_reward():
    models = alexp.ModelClass.legendre(degree=3, size=2, intercept=True)
    opt = alexp.LMUCB(models, DOMAIN, **STATED)
    with pytest.raises(alexp.NotCertified, match="no reward"):
        opt.confidence(0.0)
    opt.tell(opt.ask(), 0.4)
    assert np.isfinite(opt.confidence(0.0).upper)
    free = alexp.LMUCB(MODELS, DOMAIN, noise_std=0.1, norm_bound=2.0, random_state=0)
    assert free.confidence(1.0) == pytest.approx((-free.confidence(1.0).upper, free.confidence(1.0).upper))


def test_points_that_the_candidates_do_not_determine():
    """Three candidates cannot bound polynomials of degree four elsewhere; a norm can."""
    coarse, models = alexp.Interval(resolution=3), alexp.ModelClass.legendre(degree=4, size=4)
    opt = alexp.LMUCB(models, coarse, noise_std=0.1, reward_bound=1.0, random_state=0)
    opt.tell(opt.ask(), 0.1)
    assert np.isfinite(opt.confidence(coarse.points).upper).all()
    with pytest.raises(alexp.NotCertified, match="norm_bound"):
        opt.confidence(0.3)
    assert opt.stop_report().between_candidates is None
    sure = alexp.LMUCB(models, coarse, noise_std=0.1, norm_bound=1.0, random_state=0)
    sure.tell(sure.ask(), 0.1)
    assert np.isfinite(sure.confidence(0.3).upper)


@pytest.mark.parametrize("resolution", [12, 200])
def test_between_the_candidates(resolution):
    """epsilon + between_candidates covers the whole interval, and shrinks with the grid."""
    domain, held = alexp.Interval(resolution=resolution), []
    for seed in range(10):
        environment = alexp.SyntheticEnvironment(MODELS, domain, noise_std=0.05, random_state=seed)
        opt = alexp.EvidenceMixture(MODELS, domain, noise_std=0.05, norm_bound=1.0, random_state=seed)
        for _ in range(40):
            trial = opt.ask()
            opt.tell(trial, environment.observe_index(trial.index))
        report = opt.stop_report()
        fine = environment.reward(np.linspace(-1.0, 1.0, 5001)).max() - environment.rewards[report.index]
        held.append(fine <= report.epsilon + report.between_candidates + 1e-9)
        assert report.between_candidates < (2.0 if resolution == 12 else 0.1)
        assert "between the candidates" in str(report)
    assert sum(held) >= 9
    table = alexp.LMUCB(alexp.ModelClass.from_matrices({"a": np.eye(3)}), alexp.FiniteSet([1, 2, 3]), **STATED)
    table.tell(table.ask(), 0.1)
    assert table.stop_report().between_candidates is None


def test_bends_between_the_candidates(monkeypatch):
    """Without a finer grid there is only the step: S max_j ||phi_j''|| h^2 / 8, |P_n''| <= (n-1) n (n+1) (n+2) / 8."""
    monkeypatch.setattr("alexp.algorithms.certifier._FINEST", 1)
    opt = alexp.LMUCB(MODELS, DOMAIN, noise_std=0.1, norm_bound=2.0, random_state=0)
    opt.observe(3, 0.1)
    report = opt.stop_report()
    assert report.plausible.size == MODELS.n_models
    assert report.between_candidates == pytest.approx(2.0 * np.hypot(45.0, 15.0) * (2.0 / 40.0) ** 2 / 8.0)


def test_the_sentence_fits_on_one_line():
    frame = pd.DataFrame({"base": ["K2CO3", "KOAc"], "ligand": ["XPhos", "BrettPhos"], "T": [90.0, 105.5]})
    models = alexp.ModelClass.from_matrices({"a": np.array([[1.0], [0.5]])})
    opt = alexp.LMUCB(models, alexp.FiniteSet(frame), **STATED)
    opt.tell(opt.ask(), 0.3)
    text = str(opt.stop_report())
    assert "\n" not in text
    assert text.startswith("No candidate is better than base = ")
    assert described(pd.Series({"a": 1.0, "b": "x"})) == "a = 1, b = x"
    assert described(np.arange(2.0)) == "(0, 1)"
    assert len(described("x" * 500)) == 60


@pytest.mark.parametrize(
    ("kind", "stated", "clause"),
    [
        (alexp.EvidenceMixture, {"reward_bound": 1.2}, "rewards are within reward_bound = 1.2"),
        (alexp.LMUCB, {"reward_bound": 1.2, "norm_bound": 1.5}, "its norm is within norm_bound = 1.5"),
    ],
)
def test_a_certificate_says_what_it_rests_on(kind, stated, clause):
    opt = play(kind(MODELS, DOMAIN, noise_std=0.1, random_state=0, **stated), hill)
    report = opt.stop_report()
    assert report.certified
    assert report.rests_on == opt.rests_on
    wanted = f"if one of the {MODELS.n_models} models is true, the noise is at most noise_std = 0.1 and {clause}"
    assert report.rests_on == wanted
    assert f", {wanted}" in str(report)


def test_an_estimate_rests_on_nothing_that_was_stated():
    opt = play(alexp.EvidenceMixture(MODELS, DOMAIN, noise_std=0.1, random_state=0), hill)
    assert opt.stop_report().rests_on is None
    with pytest.raises(alexp.NotCertified, match="give reward_bound="):
        _ = opt.rests_on


def test_one_default_level_everywhere():
    opt = play(alexp.LMUCB(MODELS, DOMAIN, **STATED), hill, 5)
    assert opt.confidence(0.3) == opt.confidence(0.3, 0.05)
    assert opt.stop_report().delta == opt.check_models().delta == 0.05
    np.testing.assert_array_equal(opt.plausible_models(), opt.plausible_models(0.05))


def test_the_oracle_speaks_of_its_own_model():
    opt = play(alexp.LinUCB(MODELS, DOMAIN, model=1, **STATED), hill)
    assert opt.plausible_models().tolist() == [1]
    assert opt.rests_on.startswith("if the model is true, ")
    wrong = alexp.LinUCB(MODELS, DOMAIN, model=0, **STATED)
    for index in range(0, 41, 2):
        wrong.observe(index, hill(DOMAIN[index]))
    assert wrong.check_models().contradicted
    assert wrong.check_models().rejected.tolist() == [0]


def test_looking_does_not_change_a_run_and_a_restored_run_certifies_the_same():
    looked, plain = (alexp.ALExp(MODELS, DOMAIN, **STATED) for _ in range(2))
    for step in range(8):
        a, b = looked.ask(), plain.ask()
        assert a == b
        looked.tell(a, hill(a.x))
        plain.tell(b, hill(b.x))
        if step % 2:
            looked.stop_report()
    assert looked.to_dict() == plain.to_dict()
    restored = alexp.ALExp.from_dict(looked.to_dict())
    assert restored.confidence(0.3) == looked.confidence(0.3)
    assert restored.check_models().e_value == looked.check_models().e_value


def test_too_much_work_is_said(monkeypatch):
    monkeypatch.setattr("alexp.algorithms.certifier._CHECKED_WORK", 10.0)
    opt = play(alexp.LMUCB(MODELS, DOMAIN, **STATED), hill, 3)
    assert not opt.check_models().checked
    report = opt.stop_report()
    assert report.certified
    assert not report.checked
    assert "not checked" in str(report)


@pytest.mark.parametrize(
    ("setting", "runs", "least", "most", "misled"),
    [
        (alarms.SETTINGS[0], 40, 0.0, 0.05, (0, 2)),
        (alarms.SETTINGS[1], 16, 0.9, 1.0, (0, 16)),
        (alarms.SETTINGS[2], 20, 0.5, 0.8, (3, 10)),  # neither the alarm nor the certificates can be relied on
        (alarms.SETTINGS[3], 16, 0.9, 1.0, (1, 8)),
    ],
    ids=["true", "noise", "repeats", "distinct"],
)
def test_alarms(setting, runs, least, most, misled):
    """A small version of docs/certificates.md."""
    found = alarms.measure(setting, runs)
    print(found)
    assert least <= sum(run.alarm is not None for run in found.runs) / runs <= most
    assert misled[0] <= sum(run.misled for run in found.runs) <= misled[1]


def test_the_table_of_alarms_has_intervals():
    runs = [alarms.AlarmRun(7, True)] * 5 + [alarms.AlarmRun(None, False)] * 5
    shares = "5 of 10 | 0.500 (0.187 to 0.813)"
    assert str(alarms.Alarms(alarms.SETTINGS[2], runs)) == f"| half outside, repeats | {shares} | 7 | {shares} |"
    assert alarms.interval(0, 1000) == (0.0, pytest.approx(1.0 - 0.025 ** (1 / 1000)))
    head, rule, row = alarms.to_markdown([alarms.Alarms(alarms.SETTINGS[0], runs)]).splitlines()
    assert head.count("|") == rule.count("|") == row.count("|")
