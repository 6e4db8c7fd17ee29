import numpy as np
import pytest

import alexp
from alexp import ope

EVEN = np.full((4, 2), 0.5)


def small(**changed):
    columns = {"rewards": [1.0, 0.0, 1.0, 0.0], "propensities": [0.5] * 4, "index": [0, 1, 0, 1], "n": 2}
    return ope.Log(**(columns | changed))


ESTIMATORS = {
    "ips": ope.ips,
    "snips": ope.snips,
    "dm": lambda *a, **k: ope.dm(*a, model=EVEN, **k),
    "dr": lambda *a, **k: ope.dr(*a, model=EVEN, **k),
    "replay": ope.replay,
    "compare": lambda log, policy, **k: ope.compare(log, EVEN, policy, **k),
}


@pytest.fixture(params=list(ESTIMATORS))
def estimate(request):
    return ESTIMATORS[request.param]


def test_logs_without_overlap(estimate):
    with pytest.raises(ope.NoOverlapError, match="every propensity is 1"):
        estimate(small(propensities=[1.0] * 4), EVEN)


def test_policies_that_play_what_the_log_could_not(estimate):
    with pytest.raises(ope.NoOverlapError, match="in 1 rounds .the first is 2."):
        estimate(small(propensities=[0.5, 0.5, 1.0, 0.5]), EVEN)
    certain = small(propensities=[0.5, 0.5, 1.0, 0.5], probabilities=[[0.5, 0.5], [0.5, 0.5], [1, 0], [0.5, 0.5]])
    with pytest.raises(ope.NoOverlapError):
        estimate(certain, EVEN)
    with pytest.raises(ope.NoOverlapError, match="round 3 an action that was not available"):
        estimate(small(available=[None, None, None, [1]]), EVEN)


def test_actions_of_probability_zero():
    log = ope.Log([1.0, 0.0], [0.5, 0.5], [0, 1], 3, probabilities=[[0.5, 0.5, 0.0]] * 2)
    with pytest.raises(ope.NoOverlapError, match="probability 0"):
        ope.ips(log, [[0.2, 0.2, 0.6]] * 2)
    assert ope.ips(log, [[0.4, 0.6, 0.0]] * 2).value == pytest.approx(0.4)


def test_rewards_outside_the_stated_range(estimate):
    with pytest.raises(ValueError, match="2 rewards lie outside the stated range \\[0, 0.5\\], 1 the first of them"):
        estimate(small(), EVEN, reward_range=(0.0, 0.5))


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (np.full((3, 2), 0.5), "policy has shape"),
        ([[0.5, 0.5]] * 3, "one entry for each of the 4 rounds, got 3"),
        ([[1.0]] * 4, "policy of round 0 must have shape .2,., got .1,."),
        ([[0.5, 0.5]] * 3 + [[0.5, 0.6]], "policy of round 3 sum to 1.1"),
        ([[0.5, 0.5]] * 3 + [[1.5, -0.5]], "policy of round 3 has -0.5"),
        ([[0.5, 0.5]] * 3 + [[np.nan, 0.5]], "policy of round 3 has nan"),
        (lambda round_: [1.0], "policy of round 0 must have shape"),
        ("greedy", "policy plays .greedy. in round 0, and the log has no names"),
        (0.5, "policy must be a list with one array per round, got float"),
        ([["a", "b"]] * 4, "policy of round 0 must be numbers"),
    ],
)
def test_policies_that_are_none(policy, words):
    with pytest.raises((ValueError, TypeError), match=words):
        ope.ips(small(), policy)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delta": 0.0}, "delta must lie strictly"),
        ({"method": "clt"}, "method must be one of 'betting'"),
        ({"reward_range": 1.0}, "two numbers .lo, hi."),
        ({"reward_range": (1.0, 0.0)}, "lo < hi"),
        ({"reward_range": (0.0, np.inf)}, "reward_range.1. must be finite"),
        ({"floor": 0.7}, "floor = 0.7 is no lower bound of the propensities: the log has 0.5"),
        ({"floor": 2.0}, "floor must lie strictly"),
        ({"clip": -1.0}, "clip must be positive"),
    ],
)
def test_wrong_options(options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        ope.ips(small(), EVEN, **options)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"rewards": [1.0, np.inf, 0.0, 0.0]}, "rewards of round 1 are infinite"),
        ({"rewards": [[1.0]] * 4}, "rewards must have shape .n,."),
        ({"rewards": ["a"] * 4}, "rewards must be one number per round"),
        ({"propensities": [0.5, 0.0, 0.5, 0.5]}, "round 1 has 0, for an action that was played"),
        ({"propensities": [0.5, 1.5, 0.5, 0.5]}, "round 1 has 1.5"),
        ({"propensities": [0.5]}, "propensities must have shape .4,., got .1,."),
        ({"index": [0, 1, 2, 0]}, "index of round 2 is 2, but its candidates are 0..1"),
        ({"index": [0, 1, -1, 0]}, "index of round 2 is -1"),
        ({"index": [0, 0.5, 1, 0]}, "index must be whole numbers"),
        ({"n": [2, 0, 2, 2]}, "n of round 1 is below 1"),
        ({"contexts": [1]}, "contexts must have one entry for each of the 4 rounds"),
        ({"ids": [["a", "b"]] * 3 + [["a"]]}, "ids of round 3 must name its 2 candidates"),
        ({"features": [np.ones((2, 3))] * 3 + [np.ones((3, 3))]}, "features of round 3 must have shape .2, P."),
        ({"features": [np.ones((2, 3))] * 3 + [np.ones((2, 4))]}, "features of round 3 have 4 columns"),
        ({"features": [np.full((2, 1), np.nan)] * 4}, "features of round 0 has"),
        ({"chosen": np.ones((3, 2))}, "chosen must have 4 rows"),
        ({"probabilities": [[0.2, 0.8]] * 4}, "probabilities of round 0 give 0.2 to the action that was played"),
        ({"probabilities": [[0.5, 0.6]] * 4}, "probabilities of round 0 sum to 1.1"),
        ({"available": [None, [0], None, None]}, "available of round 1 does not have the action 1"),
    ],
)
def test_logs_that_are_none(changed, words):
    with pytest.raises((ValueError, TypeError), match=words):
        small(**changed)


def test_something_else_than_a_log():
    with pytest.raises(TypeError, match=r"use Log.from_frame\(run.log_frame\(\)\)"):
        ope.ips([1.0], EVEN)


def test_nothing_to_evaluate_with():
    with pytest.raises(ValueError, match="no round with both"):
        ope.ips(small(rewards=[np.nan] * 4), EVEN)


def test_wrong_propensities_are_noticed():
    rng = np.random.default_rng(0)
    index = rng.integers(2, size=500)
    log = ope.Log(rng.random(500), np.full(500, 0.25), index, 2)  # one half is the truth
    with pytest.warns(ope.LogWarning, match="average 2 and not 1.*too small"):
        ope.ips(log, np.full((500, 2), 0.5))


def test_policies_beyond_the_log_are_noticed():
    """The logger never plays the third action, but nothing in the log says that it could not."""
    rng = np.random.default_rng(0)
    index = rng.integers(2, size=500)
    log = ope.Log(rng.random(500), np.full(500, 0.5), index, 3)
    with pytest.warns(ope.LogWarning, match="average 0.66.* are rare in the log"):
        ope.ips(log, np.full((500, 3), 1 / 3))


def test_contradictions_are_noticed():
    index = np.zeros(2000, dtype=int)
    index[1::2] = 1
    rewards = np.repeat([1.0, 0.0], 1000)  # first all succeed, then none
    log = ope.Log(rewards, np.full(2000, 0.5), index, 2)
    with pytest.warns(ope.LogWarning, match="no value agrees with this log"):
        found = ope.ips(log, np.full((2000, 2), 0.5), reward_range=(0, 1))
    assert found.contradicted
    assert "EMPTY" in str(found)
    assert not ope.ips(log, np.full((2000, 2), 0.5), reward_range=(0, 1), method="drifting").contradicted


@pytest.mark.parametrize("propensity", [1e-160, 5e-324])
@pytest.mark.parametrize("estimator", [ope.ips, ope.snips, ope.dm, ope.dr])
def test_propensities_whose_weights_overflow_are_refused(estimator, propensity):
    propensities = np.full(60, 0.5)
    propensities[[2, 3]] = np.nan, propensity
    more = {"model": np.full((60, 2), 0.4)} if estimator in (ope.dm, ope.dr) else {}
    with pytest.warns(ope.LogWarning, match="no propensity"):
        log = ope.Log(np.linspace(0.0, 1.0, 60), propensities, np.arange(60) % 2, 2)
    with pytest.raises(ValueError, match=f"round 3 is {propensity:g}.*set it to NaN"):
        estimator(log, np.full((60, 2), 0.5), reward_range=(0, 1), **more)
    elsewhere = np.full((60, 2), 0.5)
    elsewhere[3] = [1.0, 0.0]  # the weight is zero, whatever the propensity
    assert 0.0 < estimator(log, elsewhere, reward_range=(0, 1), **more).value < 1.0


@pytest.mark.parametrize("method", ["betting", "hedged", "bernstein", "drifting"])
def test_weights_up_to_the_limit_are_numbers(method):
    propensities = np.full(60, 0.5)
    propensities[3] = 1e-99
    log = ope.Log(np.linspace(0.0, 1.0, 60), propensities, np.arange(60) % 2, 2)
    with pytest.warns(ope.LogWarning, match="too small"), np.errstate(all="raise", under="ignore"):
        found = ope.ips(log, np.full((60, 2), 0.5), reward_range=(0, 1), method=method)
    assert found.value == pytest.approx(0.5e99 * (3 / 59) / 60)
    assert found.effective_size == pytest.approx(1.0)


def test_rounds_that_a_budget_restricted_are_named_and_can_be_left_out():
    arms, rng = alexp.Arms(["small", "large"]), np.random.default_rng(0)
    models = alexp.ModelClass.per_arm({"a": [0], "b": [1]}, arms)
    opt = alexp.EvidenceMixture(models, arms, cost=[0.0, 1.0], budget=0.4, floor=0.3, random_state=0)
    for k in range(120):
        trial = opt.ask(context=rng.standard_normal(2))
        if k % 3:  # a third of the feedback never comes
            opt.tell(trial, float(rng.random() < 0.5))
    log = ope.Log.from_frame(opt.log_frame())
    with pytest.raises(ope.NoOverlapError, match=r"a budget, may be left out: log.part\("):
        ope.verdict(log, "large")
    rest = log.part([one is None for one in log.available])
    assert 60 < len(rest) < len(log) == 120
    found = ope.verdict(rest, "large")
    assert found.verdict == "not yet"
    assert found.interval[0] < 0.0 < found.interval[1]
