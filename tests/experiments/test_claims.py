import numpy as np
import pytest

from alexp.experiments.core.statistics import estimate
from alexp.experiments.core.tasks import Record
from alexp.experiments.paper import claims, claims_tuning
from alexp.experiments.paper.results import Results, Scope
from alexp.experiments.paper.tuning import MAIN_SCENARIOS, Attempt, Tuned


def record(final, m=165, q_true=0.1, visited=5, snapshot=None):
    q = np.full(m, 1.0 / m, np.float32) if snapshot is None else snapshot
    regret, plays = np.linspace(0.0, final, 100), np.full(100, visited, np.int32)
    return Record(regret, plays, np.full(100, q_true, np.float32), q, 7, 7, 0.0, 1.0)


def results(final, attempts=(), **fields):
    """Results with regrets final[scenario, method] + small differences between ten seeds."""
    scope = Scope(seeds=tuple(range(10)), beyond=())
    runs = {key: [record(value + 0.01 * seed, **fields) for seed in range(10)] for key, value in final.items()}
    return Results(scope, Tuned(0.1, {}, (1,)), runs, list(attempts))


def test_beating_a_rival_is_judged_problem_by_problem():
    everywhere = {(name, "alexp"): 1.0 for name in MAIN_SCENARIOS} | {(name, "etc"): 5.0 for name in MAIN_SCENARIOS}
    assert claims.beats(results(everywhere), "etc").verdict == claims.HOLDS
    somewhere = everywhere | {("large", "alexp"): 9.0}
    claim = claims.beats(results(somewhere), "etc")
    assert claim.verdict == claims.PARTLY
    assert "large: ALExp 9.04, ETC 5.04; paired difference 4.00 [4.00, 4.00]: more" in claim.evidence[-1]
    nowhere = {key: 6.0 - value for key, value in everywhere.items()}
    assert claims.beats(results(nowhere), "etc").verdict == claims.FAILS


@pytest.mark.parametrize(("ours", "verdict"), [(1.5, claims.HOLDS), (2.5, claims.FAILS)])
def test_competitive_means_within_a_factor_two(ours, verdict):
    final = {(name, "alexp"): ours for name in MAIN_SCENARIOS} | {(name, "oracle"): 1.0 for name in MAIN_SCENARIOS}
    assert claims.competitive(results(final)).verdict == verdict


def test_correlation_is_judged_relative_to_the_oracle():
    final = {(name, "oracle"): 1.0 for name in MAIN_SCENARIOS} | {("easy", "alexp"): 2.0}
    final |= {("hard-printed", "alexp"): 2.1, ("hard-meant", "alexp"): 6.0}
    assert claims.correlation(results(final)).verdict == claims.PARTLY


def test_scaling_in_both_directions():
    final = {("scaling-9", "alexp"): 2.0, ("scaling-13", "alexp"): 2.2}
    final |= {("scaling-9", "etc"): 10.0, ("scaling-13", "etc"): 30.0}
    found = results(final)
    assert claims.scaling(found, ("alexp",), "flat", grows=False).verdict == claims.HOLDS
    assert claims.scaling(found, ("etc",), "flat", grows=False).verdict == claims.FAILS
    assert claims.scaling(found, ("etc",), "grows", grows=True).verdict == claims.HOLDS
    assert claims.scaling(found, ("alexp",), "grows", grows=True).verdict == claims.HOLDS  # 10% with tiny spread


def test_dynamics():
    sharp = np.zeros(165, np.float32)
    sharp[[7, 8]] = 0.6, 0.4
    decided = results({("large", "alexp"): 1.0}, snapshot=sharp)
    assert claims.ruled_out(decided).verdict == claims.HOLDS
    assert claims.leads(decided).verdict == claims.HOLDS
    assert claims.below_quarter(decided).verdict == claims.HOLDS
    undecided = results({("large", "alexp"): 1.0}, visited=40, q_true=0.5)
    assert claims.ruled_out(undecided).verdict == claims.FAILS
    assert claims.below_quarter(undecided).verdict == claims.FAILS


def tried(method, scenario, regret, **values):
    return Attempt(scenario, method, values, {}, estimate([regret, regret]))


def test_hyper_parameter_claims():
    attempts = []
    for name in ("easy", "large"):
        attempts += [tried("alexp", name, 1.0 + 0.1 * i, gamma=0.01, eta=float(i)) for i in range(5)]
        attempts += [tried(method, name, 20.0 + abs(n - 19), n0=n) for method in ("etc", "ets") for n in (2, 19, 80)]
        attempts.append(tried("corral", name, 30.0, gamma=0.1, eta=1.0))
    found = results({}, attempts)
    assert claims_tuning.best_exploration(found).verdict == claims.HOLDS
    assert claims_tuning.robust(found).verdict == claims.HOLDS
    assert claims_tuning.transfer(found).verdict == claims.HOLDS
    fragile = [
        tried("alexp", name, 1.0 if i == best else 50.0, gamma=0.01, eta=float(i))
        for best, name in enumerate(("easy", "large"))
        for i in range(5)
    ]
    found = results({}, fragile + [t for t in attempts if t.method != "alexp"])
    assert claims_tuning.robust(found).verdict == claims.FAILS
    assert claims_tuning.transfer(found).verdict == claims.FAILS
