"""Logs of this library's own runs, from `log_frame` to an interval, and back by `observe`."""

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp import ope
from alexp_experiments.evaluation_coverage import holds, own_algorithm, own_policy, own_problem, own_run, own_value

ROWS, CHANCES = own_problem()
POLICY = own_policy(CHANCES)


@pytest.mark.filterwarnings("ignore:weights pi/p average")
@pytest.mark.parametrize("name", ["mixture", "alexp"])
def test_intervals_hold_on_own_logs(name):
    held, widths = 0, []
    for seed in range(6):
        opt, seen = own_run(name, 120, seed)
        log = ope.Log.from_frame(opt.log_frame())
        found = ope.ips(log, [POLICY[k] for k in seen], reward_range=(0, 1))
        held += holds(found.running_lower, found.running_upper, own_value(POLICY, CHANCES))
        widths.append(found.upper - found.lower)
        assert found.n_used == 120
    print(f"{name}: {held} of 6 held, mean width {np.mean(widths):.3f}")
    assert held == 6
    assert np.mean(widths) < 0.6


def test_all_features_make_dr_possible_and_a_frozen_algorithm_is_a_policy():
    opt, seen = own_run("mixture", 150, 3, log_features="all")
    log = ope.Log.from_frame(opt.log_frame())
    assert np.array_equal(log.features[7], ROWS[seen[7]])
    frozen, _ = own_run("mixture", 60, 99)
    found = ope.dr(log, frozen, reward_range=(0, 1))
    by_hand = ope.dr(log, lambda r: frozen.policy(features=r.features), reward_range=(0, 1))
    assert found.value == by_hand.value
    assert found.interval == by_hand.interval
    assert 0.5 < found.value < 0.9
    verdict = ope.compare(log, [np.full(n, 1.0 / n) for n in log.n], frozen, reward_range=(0, 1), model="ridge")
    learnt, even = [frozen.policy(features=rows) for rows in ROWS], [np.full(len(rows), 1 / len(rows)) for rows in ROWS]
    assert verdict.lower <= own_value(learnt, CHANCES) - own_value(even, CHANCES) <= verdict.upper


def test_a_policy_that_has_learnt_from_the_log_is_warned_of():
    opt, _ = own_run("mixture", 40, 5, log_features="all")
    log = ope.Log.from_frame(opt.log_frame())
    with pytest.warns(ope.LogWarning, match="has learnt from the rewards of this log"):
        ope.ips(log, opt)


@pytest.mark.parametrize("log_features", ["chosen", "all"])
def test_a_stored_log_says_the_same_and_a_csv_file_is_refused(tmp_path, log_features):
    arms = alexp.Arms(["small", "large"])
    models = alexp.ModelClass.per_arm({"length": ["length"], "topic": ["topic"]}, arms)
    opt = alexp.EvidenceMixture(models, arms, floor=0.3, log_features=log_features, random_state=0)
    for t, (length, topic) in enumerate(np.random.default_rng(0).standard_normal((30, 2))):
        trial = opt.ask(context={"length": length, "topic": topic}, available=["large"] if t == 4 else None)
        if t % 5:
            opt.tell(trial, float(topic > 0.0))
    frame, path = opt.log_frame(), tmp_path / "log.json"
    frame.to_json(path, orient="records")
    log, stored = (ope.Log.from_frame(one) for one in (frame, pd.read_json(path, orient="records")))
    assert stored.contexts[3] == pytest.approx(log.contexts[3])
    assert stored.available == log.available
    assert (stored.features is None) == (log_features != "all")
    found, again = (ope.verdict(one, ["large"] * 30) for one in (log, stored))
    assert again.value == pytest.approx(found.value)
    assert again.running_lower == pytest.approx(found.running_lower)
    frame.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(TypeError, match=r"column 'ids' of frame holds text.*to_json"):
        ope.Log.from_frame(pd.read_csv(tmp_path / "log.csv"))


def test_chosen_features_are_not_enough_for_dr():
    opt, _ = own_run("mixture", 20, 5)
    log = ope.Log.from_frame(opt.log_frame())
    with pytest.raises(ValueError, match='log_features="all"'):
        ope.dr(log, [np.full(n, 1.0 / n) for n in log.n])


def test_deterministic_logs_are_refused():
    opt, _ = own_run("linucb", 40, 0)
    log = ope.Log.from_frame(opt.log_frame())
    with pytest.raises(ope.NoOverlapError, match="every propensity is 1.*floor"):
        ope.ips(log, [np.full(n, 1.0 / n) for n in log.n])


@pytest.mark.parametrize("through", ["log", "text", "dsjson", "coba"])
def test_logs_feed_other_algorithms(through):
    opt, _ = own_run("mixture", 50, 1, log_features="all")
    waiting = opt.ask(features=ROWS[0])
    log = ope.Log.from_frame(opt.log_frame())
    assert log.left_out == {"without reward": 1, "without propensity": 0}
    if through == "coba":
        log = ope.from_coba(ope.to_coba(log))
    elif through != "log":
        log = ope.from_vw(ope.to_vw(log, through), through)
    other = own_algorithm("mixture", 7, log_features="all")
    assert ope.feed(log, other) == 50
    again = ope.Log.from_frame(other.log_frame())
    usable = slice(0, waiting.id)
    assert np.array_equal(again.rewards, log.rewards[usable])
    assert np.array_equal(again.propensities, log.propensities[usable])
    assert np.array_equal(again.features.values, log.features.values[: len(again.features.values)])
    # who has been told the same decides alike
    assert other.policy(features=ROWS[3]) == pytest.approx(policy_of(opt, waiting), abs=0.05)


def policy_of(opt, waiting):
    opt.abandon(waiting)
    return opt.policy(features=ROWS[3])


def test_arms_and_their_availability():
    arms = alexp.Arms(["a", "b", "c"])
    maps = {"all": lambda context, names: np.array([[context * k, k] for k in range(len(names))], dtype=float)}
    models = alexp.ModelClass.from_maps(maps, contextual=True, example=(0.5, ["a", "b", "c"]))
    rng = np.random.default_rng(0)
    opt = alexp.EvidenceMixture(models, arms, random_state=0, log_features="all")
    for t in range(40):
        trial = opt.ask(context=rng.random(), available=["a", "c"] if t % 4 == 0 else None)
        opt.tell(trial, float(rng.random() < 0.3))
    log = ope.Log.from_frame(opt.log_frame())
    assert log.ids[0] == ["a", "b", "c"]
    with pytest.raises(ope.NoOverlapError, match="round 0 an action that was not available"):
        ope.ips(log, np.full((40, 3), 1 / 3))
    frozen = alexp.EvidenceMixture(models, arms, random_state=1)
    assert ope.snips(log, frozen, reward_range=(0, 1)).bounded
    fed = alexp.EvidenceMixture(models, arms, random_state=2)
    assert ope.feed(log, fed) == 40


def test_fixed_domains_have_logs_too():
    models = alexp.ModelClass.legendre(3, 2)
    domain = alexp.Interval(-1, 1, 11)
    opt = alexp.ALExp(models, domain, noise_std=0.1, reward_bound=1.0, random_state=0)
    rng = np.random.default_rng(0)
    for _ in range(30):
        trial = opt.ask()
        opt.tell(trial, float(np.clip(1 - trial.x**2 + 0.1 * rng.standard_normal(), 0, 1)))
    opt.observe(3, 0.5)
    opt.ask()
    even = np.full((32, 11), 1 / 11)
    with pytest.warns(ope.LogWarning, match="1 of 32 rounds"):
        log = ope.Log.from_frame(opt.trials_dataframe(), domain=domain)
    assert log.left_out == {"without reward": 1, "without propensity": 1}
    found = ope.snips(log, even, reward_range=(0, 1))
    assert (found.n_used, found.n_left_out) == (30, 2)
    assert found.lower <= found.value <= found.upper
    frozen = alexp.ALExp(models, domain, noise_std=0.1, reward_bound=1.0, random_state=1)
    assert ope.ips(log, frozen).n_used == 30
    other = alexp.ALExp(models, domain, noise_std=0.1, reward_bound=1.0, random_state=2)
    assert ope.feed(log, other) == 31
