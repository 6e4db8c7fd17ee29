"""EvidenceMixture with nothing stated: units, levels and feature scales that must not matter; which mixture it is."""

import json

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import alexp
from alexp import testing

N = 40
MODELS, DOMAIN = alexp.ModelClass.legendre(degree=5, size=2), alexp.Interval(resolution=N)
RULES = ("ids", "ucb", "thompson")


def matrices(seed=1, factors=(1.0, 1.0, 1.0)):
    rng = np.random.default_rng(seed)
    sizes = {"a": 4, "b": 2, "c": 3}
    return {name: k * rng.standard_normal((N, d)) for (name, d), k in zip(sizes.items(), factors, strict=True)}


def table(factors=(1.0, 1.0, 1.0), **options):
    return alexp.ModelClass.from_matrices(matrices(factors=factors), **options), alexp.FiniteSet(list(range(N)))


def rewards(seed=0):
    rng = np.random.default_rng(seed)
    return rng.permutation(np.cos(np.arange(N) / 5.0)) + 0.1 * rng.standard_normal(N)


def run(problem, told, rounds=18, **arguments):
    """Asks (index, propensity) of a run, and the probabilities after each reward."""
    opt = alexp.EvidenceMixture(*problem, random_state=4, **arguments)
    asked, beliefs = [], []
    for _ in range(rounds):
        trial = opt.ask()
        asked.append((trial.index, trial.propensity))
        opt.tell(trial, float(told[trial.index]))
        beliefs.append(opt.probabilities)
    return asked, np.array(beliefs), opt


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("problem", [(MODELS, DOMAIN), table(), table(intercept=False)], ids=["line", "table", "flat"])
@settings(max_examples=8, deadline=None, derandomize=True)
@given(exponent=st.integers(-200, 200), seed=st.integers(0, 50))
def test_the_unit_of_the_rewards_drops_out_bit_for_bit(problem, rule, exponent, seed):
    one = run(problem, rewards(seed), rule=rule)
    two = run(problem, rewards(seed) * 2.0**exponent, rule=rule)
    assert one[0] == two[0]
    np.testing.assert_array_equal(one[1], two[1])
    assert two[2].noise_estimate == one[2].noise_estimate * 2.0**exponent
    assert two[2].best().value == one[2].best().value * 2.0**exponent


@settings(max_examples=10, deadline=None, derandomize=True)
@given(factor=st.floats(1e-6, 1e6), seed=st.integers(0, 50))
def test_any_other_unit_changes_roundings_only(factor, seed):
    one, two = (run((MODELS, DOMAIN), rewards(seed) * k) for k in (1.0, factor))
    assert one[0] == two[0]
    np.testing.assert_allclose(one[1], two[1], rtol=1e-7, atol=1e-12)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(level=st.sampled_from([-1e6, -3.0, 0.5, 50.0, 1e4, 1e6]), seed=st.integers(0, 50))
def test_with_an_intercept_the_level_drops_out(level, seed):
    one, two = (run(table(), rewards(seed) + k) for k in (0.0, level))
    assert one[0] == two[0]
    np.testing.assert_allclose(one[1], two[1], rtol=1e-5, atol=1e-8)
    (mean, std), (high, wide) = (np.array([opt.predict(i) for i in range(N)]).T for opt in (one[2], two[2]))
    np.testing.assert_allclose(high - level, mean, atol=1e-7 + 1e-12 * abs(level))
    np.testing.assert_allclose(wide, std, rtol=1e-5)
    assert two[2].noise_estimate == pytest.approx(one[2].noise_estimate, rel=1e-5)


@pytest.mark.parametrize("intercept", [False, True])
@settings(max_examples=8, deadline=None, derandomize=True)
@given(exponents=st.tuples(*[st.integers(-60, 60)] * 3), seed=st.integers(0, 50))
def test_the_scale_of_features_drops_out_bit_for_bit(intercept, exponents, seed):
    one = run(table(intercept=intercept), rewards(seed))
    two = run(table(tuple(2.0**k for k in exponents), intercept=intercept), rewards(seed))
    assert one[0] == two[0]
    np.testing.assert_array_equal(one[1], two[1])


def test_a_constant_column_beside_the_intercept_does_no_harm():
    plain, domain = table()
    more = {name: np.column_stack([block, np.full(N, 3.7)]) for name, block in matrices().items()}
    one, two = run((plain, domain), rewards()), run((alexp.ModelClass.from_matrices(more), domain), rewards())
    assert one[0] == two[0]
    np.testing.assert_allclose(one[1], two[1], rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("value", [0.0, 7.25, -1e6])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("problem", [(MODELS, DOMAIN), table()], ids=["line", "table"])
def test_equal_rewards_are_ordinary_life(problem, rule, value):
    _, beliefs, opt = run(problem, np.full(N, value), rounds=6, rule=rule)
    assert np.all(np.isfinite(beliefs))
    assert np.isfinite(opt.noise_estimate)
    assert all(np.isfinite(part) for part in opt.predict(DOMAIN[3] if problem[1] is DOMAIN else 3))


# -- which mixture -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stated", "grids"),
    [
        ({}, (None, None, 5)),
        ({"norm_bound": 2.0}, (None, None, 5)),
        ({"noise_std": 0.1}, (None, None, 7)),
        ({"reward_bound": 2.0}, (5, 2, None)),
        ({"noise_std": 0.1, "reward_bound": 2.0}, (3, 2, None)),
        ({"noise_std": 0.1, "norm_bound": 2.0}, (3, 2, None)),
    ],
    ids=str,
)
def test_what_is_stated_decides_the_mixture_and_is_saved(stated, grids):
    opt = run((MODELS, DOMAIN), rewards(), rounds=5, **stated)[2]
    sizes = tuple(None if grid is None else len(grid) for grid in (opt.noise_grid, opt.scale_grid, opt.ratio_grid))
    assert sizes == grids
    again = alexp.EvidenceMixture.from_dict(json.loads(json.dumps(opt.to_dict())))
    assert again.stated == opt.stated
    assert again.arguments() == opt.arguments()
    for _ in range(3):
        one, two = opt.ask(), again.ask()
        assert one == two
        opt.tell(one, 0.5)
        again.tell(two, 0.5)
    np.testing.assert_array_equal(opt.probabilities, again.probabilities)


def test_a_stated_norm_is_the_scale_of_the_prior():
    norm = run((MODELS, DOMAIN), rewards(), noise_std=0.1, reward_bound=5.0, norm_bound=2.0)
    bound = run((MODELS, DOMAIN), rewards(), noise_std=0.1, reward_bound=2.0)
    assert norm[0] == bound[0]
    np.testing.assert_array_equal(norm[1], bound[1])


@pytest.mark.parametrize("size", [1e-2, 1.0, 100.0])
def test_a_stated_noise_serves_rewards_of_any_size(size):
    """The noise is known to be 0.1; a signal from a tenth to a thousand times that is predicted within the noise."""
    environment = alexp.SyntheticEnvironment(MODELS, DOMAIN, noise_std=0.1 / size, random_state=5)
    opt = alexp.EvidenceMixture(MODELS, DOMAIN, noise_std=0.1, random_state=5)
    for index in range(N):
        opt.observe(index, size * environment.observe_index(index))
    assert opt.noise_estimate == pytest.approx(0.1, rel=1e-12)
    error = np.sqrt(np.mean((opt.predict(DOMAIN.points)[0] - size * environment.rewards) ** 2))
    print(f"size {size}: root mean squared error {error:.4f}")
    assert error < 0.07


def test_noise_is_found_in_its_own_unit():
    environment = alexp.SyntheticEnvironment(MODELS, DOMAIN, noise_std=0.2, random_state=2)
    opt = alexp.EvidenceMixture(MODELS, DOMAIN, random_state=2)
    alexp.simulate(opt, environment, 120)
    assert opt.noise_estimate == pytest.approx(0.2, rel=0.15)


@pytest.mark.parametrize("stated", [{}, {"noise_std": 0.1}], ids=str)
def test_without_a_bound_there_is_nothing_to_certify(stated):
    opt = run((MODELS, DOMAIN), rewards(), rounds=4, **stated)[2]
    for certificate in (opt.plausible_models, opt.check_models, lambda: opt.confidence(0.3)):
        with pytest.raises(alexp.NotCertified, match="give"):
            certificate()
    report = opt.stop_report()
    assert not report.certified
    assert "give" in report.reason


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"light": True}, "light"),
        ({"light": True, "noise_std": 0.1}, "light"),
        ({"noise_grid": (1.0,)}, "state reward_bound"),
        ({"scale_grid": (1.0,), "noise_std": 0.1}, "state reward_bound"),
        ({"ratio_grid": (0.1,), "noise_std": 0.1, "reward_bound": 1.0}, "ratio_grid is for"),
        ({"ratio_grid": ()}, "ratio_grid"),
        ({"ratio_grid": (0.1, -1.0)}, "ratio_grid"),
        ({"power": 0.0}, "power"),
    ],
    ids=str,
)
def test_settings_that_contradict_what_is_stated(arguments, message):
    with pytest.raises(ValueError, match=message):
        alexp.EvidenceMixture(MODELS, DOMAIN, **arguments)


# -- repeats -------------------------------------------------------------------------------------------------------


def test_repeats_decide_rule_width_and_power():
    free, once = (alexp.EvidenceMixture(MODELS, DOMAIN, repeats=repeats) for repeats in (True, False))
    assert (free.rule, free.power, once.rule, once.power) == (alexp.rules.IDS(), 1.0, alexp.rules.UCB(0.7), 0.5)
    assert free.rule.width(1) == 2.0
    assert once.rule.width(1) == once.rule.width(100) == 0.7
    mine = alexp.EvidenceMixture(MODELS, DOMAIN, repeats=False, rule=alexp.rules.IDS(0.3), power=0.25)
    assert (mine.rule.width(7), mine.power) == (0.3, 0.25)
    assert alexp.MixtureThompson(MODELS, DOMAIN, repeats=False).rule == alexp.rules.Thompson()


@pytest.mark.parametrize(("repeats", "power", "width"), [(True, 1.0, np.sqrt(2.0)), (False, 0.5, 0.7)])
def test_kernels_play_ucb(repeats, power, width):
    places = np.linspace(0.0, 1.0, 9)[:, None]
    kernels = alexp.ModelClass.from_matrices({"a": places}, kernels={"a": [alexp.kernels.Matern()]})
    opt = alexp.EvidenceMixture(kernels, alexp.FiniteSet(range(9)), repeats=repeats)
    assert (type(opt.rule), opt.power, opt.rule.width(1)) == (alexp.rules.UCB, power, width)


def test_power_tempers_the_evidence():
    whole, root = (alexp.EvidenceMixture(MODELS, DOMAIN, power=power, ratio_grid=(0.1,)) for power in (1.0, 0.5))
    for index in range(0, N, 4):
        for opt in (whole, root):
            opt.observe(index, float(rewards()[index]))
    expected = np.sqrt(whole.probabilities)
    np.testing.assert_allclose(root.probabilities, expected / expected.sum(), rtol=1e-9)


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("kind", [alexp.EvidenceMixture, alexp.MixtureThompson])
def test_conformance_with_nothing_stated(kind, check, monkeypatch):
    monkeypatch.setattr(kind, "example", {"noise_std": None})
    check(kind)
