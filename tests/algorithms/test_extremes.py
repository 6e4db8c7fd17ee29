"""Rewards, features and settings at the edge of what numbers can say: refused by name, or taken and lived with."""

import json

import numpy as np
import pytest

import alexp
from alexp.algorithms.base import Decision
from alexp.algorithms.capabilities import Certifies, offers
from alexp.decision.plays import Weighted
from alexp.decision.weights import exponential_weights
from alexp.estimation.lasso.post_lasso import PostLasso
from alexp.problem.bounds import norm_bounds
from alexp.testing import on_tables

KINDS = {name: alexp.Algorithm.registry[name] for name in on_tables()}
CERTIFYING = [name for name, kind in KINDS.items() if hasattr(kind, "stop_report")]
RNG = np.random.default_rng(7)
TABLE = {f"m{j}": RNG.normal(size=(10, 2)) for j in range(3)}
DOMAIN = alexp.FiniteSet(list(range(10)))
RIGHT = RNG.normal(size=10)


def new(name, tables=TABLE, intercept=False, **arguments):
    models = alexp.ModelClass.from_matrices(tables, intercept=intercept)
    stated = {"noise_std": 0.1, "reward_bound": 3.0, "random_state": 2}
    return KINDS[name](models, DOMAIN, **(KINDS[name].example | stated | arguments))


def go_on(opt, rounds, **rewards):
    for _ in range(rounds):
        trial = opt.ask()
        opt.tell(trial, rewards.get(f"t{trial.id}", RIGHT[trial.index]))
    return opt


# -- limits ----------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "wrong",
    [10**400, -(10**101), 1e101, -1e300, float("inf"), np.float64("-inf"), float("nan")],
    ids=lambda value: f"{float(value):g}" if abs(value) < 1e308 else "huge",
)
def test_extreme_rewards_are_refused_with_the_limit(wrong):
    opt = go_on(new("alexp"), 3)
    trial = opt.ask()
    before = json.dumps(opt.to_dict())
    for attempt in (lambda: opt.tell(trial, wrong), lambda: opt.observe(1, wrong), lambda: opt.amend(0, wrong)):
        with pytest.raises(ValueError, match=r"reward must be finite and not exceed 1e\+100 in size, got") as caught:
            attempt()
        assert len(str(caught.value)) < 150
    assert json.dumps(opt.to_dict()) == before
    opt.tell(trial, -1e100)
    opt.ask()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_extreme_features_are_refused_with_their_place():
    table = np.ones((10, 2))
    table[3, 1] = -1e101
    with pytest.raises(ValueError, match=r"features 'a' has -1e\+101 at row 3, column 1; .*1e\+100"):
        alexp.ModelClass.from_matrices({"a": table})
    models = alexp.ModelClass.from_maps({"a": lambda x: np.column_stack([x, 1e99 * x**3])})
    alexp.ALExp(models, alexp.Interval(resolution=5), noise_std=0.1)
    with pytest.raises(ValueError, match=r"must not exceed 1e\+100"):
        alexp.ALExp(models, alexp.Interval(0.0, 10.0, resolution=5), noise_std=0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"noise_std": 1e-101}, "noise_std must lie between 1e-100 and 1e"),
        ({"reward_bound": 1e101}, "reward_bound must lie between"),
        ({"norm_bound": 10**400}, "norm_bound must be finite"),
        ({"noise_std": 1e-60, "reward_bound": 1e60}, "reward_bound must be at most 1e.*times noise_std"),
        ({"noise_std": 1e60, "reward_bound": 1.0, "norm_bound": 1e-60}, "norm_bound must be at most"),
        ({"noise_std": 1.0, "reward_bound": 1.0, "scale_grid": (1e104,)}, "scale_grid times the bound must lie"),
        ({"noise_std": 1.0, "reward_bound": 1.0, "noise_grid": (1e-104,)}, "noise_grid times noise_std must lie"),
        ({"noise_std": 1.0, "reward_bound": 1.0, "scale_grid": 2.0}, "scale_grid must hold at least one"),
        ({"rule": [0.1]}, "rule must be one of 'ei', 'ei.ucb', 'ids', 'matching', 'thompson', 'ucb', got"),
    ],
    ids=lambda part: "-".join(part) if isinstance(part, dict) else "",
)
def test_extreme_settings_are_refused_by_name(arguments, message):
    models = alexp.ModelClass.from_matrices(TABLE)
    with pytest.raises(ValueError, match=message):
        alexp.EvidenceMixture(models, DOMAIN, **arguments)


@pytest.mark.parametrize("wrong", [3.0, None.__class__, alexp.GroupLasso])
def test_components_of_the_wrong_kind_are_refused(wrong):
    models = alexp.ModelClass.from_matrices(TABLE)
    for name, what in (("oracle", "an object with"), ("exploration", "an object with"), ("schedules", "Schedules or")):
        with pytest.raises(TypeError, match=f"{name} must be {what}"):
            alexp.ALExp(models, DOMAIN, **{name: wrong})
    with pytest.raises(ValueError, match="loss_range must be"):
        alexp.Corral(models, DOMAIN, horizon=10, loss_range=2.0)
    with pytest.raises(ValueError, match="horizon must be below"):
        alexp.Corral(models, DOMAIN, horizon=10**400)


# -- living with what is taken ---------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", KINDS)
def test_outliers_and_wide_features_stop_nobody(name):
    wide = {"a": TABLE["m0"] * [1.0, 1e7], "b": TABLE["m1"] * [1e10, 1e-10], "c": TABLE["m2"]}
    for outlier in (1e12, -1e12, 1e60, 1e100):
        opt = go_on(new(name, wide), 12, t5=outlier)
        assert np.isfinite(opt.best().value)
        opt.retract(5)
        assert np.isfinite(go_on(opt, 1).best().value)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_retracting_an_outlier_leaves_nothing_of_it():
    """Had the trial been given up at once, with the same actions played, the run would be the same to the last bit."""
    actions = [trial.index for trial in new("uniform").ask(8)]
    healed, clean = new("alexp"), new("alexp")
    for k, index in enumerate(actions):
        healed.observe(index, 1e80 if k == 3 else RIGHT[index])
        if k != 3:
            clean.observe(index, RIGHT[index])
    assert healed.fit.lam > 1e30
    healed.retract(3)
    assert healed.fit.lam == healed.lambda_t(7)
    np.testing.assert_array_equal(healed.fit.beta, clean.fit.beta)
    np.testing.assert_array_equal(healed.probabilities, clean.probabilities)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", CERTIFYING)
def test_rewards_a_billion_times_the_noise_end_in_a_sentence(name, intercept):
    opt = new(name, intercept=intercept)
    assert offers(opt, Certifies)
    for _ in range(8):
        trial = opt.ask()
        opt.tell(trial, 1e8 * RIGHT[trial.index] + 1e8 * np.cos(trial.id))
    with pytest.raises(alexp.NotCertified, match="the rewards contradict what is assumed"):
        opt.plausible_models()
    with pytest.raises(alexp.NotCertified, match="the rewards contradict what is assumed"):
        opt.confidence(3)
    report = opt.stop_report()
    assert not report.certified
    assert 0.0 <= report.epsilon < 1e12
    assert report.plausible.size > 0
    assert "by an estimate without a guarantee: the rewards contradict" in str(report)


def test_wrong_levels_are_noticed_before_what_is_missing():
    opt = alexp.ALExp(alexp.ModelClass.from_matrices(TABLE), DOMAIN)
    with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1"):
        opt.plausible_models(2.0)


# -- parts -----------------------------------------------------------------------------------------------------


def test_weights_of_scores_beyond_numbers():
    np.testing.assert_array_equal(exponential_weights(np.array([-np.inf, -np.inf]), 1.0), [0.5, 0.5])
    np.testing.assert_array_equal(exponential_weights(np.array([1.0, np.inf]), 1.0), [0.0, 1.0])
    np.testing.assert_array_equal(exponential_weights(np.array([-1e200, -2e200]), 1e200), [1.0, 0.0])


def test_propensities_are_rounded_to_one(monkeypatch):
    opt = new("uniform")
    beyond = Decision(Weighted(np.array([4]), np.array([1.0 + 2.0**-52])))
    monkeypatch.setattr(opt, "_decide", lambda round_: beyond)
    assert opt.ask().propensity == 1.0


def test_norms_of_more_columns_than_candidates():
    """One candidate: every model's norm is the bound over the size of its features there."""
    models = alexp.ModelClass(alexp.Legendre(2), [[0, 1], [1, 2], [2]])
    table = models.matrix(alexp.Interval(0.5, 1.0, resolution=1)).T
    sizes = [np.linalg.norm(table[group]) for group in models.groups]
    np.testing.assert_allclose(norm_bounds(models, table, 2.0).values, 2.0 / np.array(sizes), rtol=1e-9)


def test_refit_on_collinear_columns_of_any_size():
    """The ridge is lost beside columns of 1e10: the refit is that of the least norm, to which both columns add."""
    column = np.array([1e10, 2e10, -1e10])
    models = alexp.ModelClass.from_matrices({"a": np.column_stack([column, column])}, intercept=False)
    data = PostLasso().bind(models)
    for value, y in zip(column, column / 1e10, strict=True):
        data.append(np.array([value, value]), y)
    np.testing.assert_allclose(data.solve(1e-3).beta, [0.5e-10, 0.5e-10], rtol=1e-6)


def test_lmucb_plays_on_when_rounding_rules_out_everybody(monkeypatch):
    import alexp.algorithms.lmucb as module

    opt = go_on(new("lm-ucb"), 5)
    monkeypatch.setattr(module, "model_radii", lambda losses, *_: np.full(losses.size, -1.0))
    leader = int(np.argmax(opt.probabilities))
    opt.observe(0, RIGHT[0])
    assert opt.ask().model == leader
