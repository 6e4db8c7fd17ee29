import numpy as np
import pytest

from alexp_experiments.core.statistics import MeanEstimate, estimate
from alexp_experiments.core.tasks import Record
from alexp_experiments.paper import claims
from alexp_experiments.paper.claims import FAILS, HOLDS, OPEN, PARTLY, above, below, verdict
from alexp_experiments.paper.pages import hanging, regret_table
from alexp_experiments.paper.results import Results, Scope
from alexp_experiments.paper.tuning import MAIN_SCENARIOS, Attempt, Try, Tuned, choose


def record(final, m=165, q_true=0.1, visited=5, snapshot=None, late=None):
    q = np.full(m, 1.0 / m, np.float32) if snapshot is None else snapshot
    curve, plays = np.linspace(0.0, final, 100), np.full(100, visited, np.int32)
    if late is not None:
        curve = np.append(np.full(75, final - late), final - late + late * np.arange(1, 26) / 25)
    probability = np.broadcast_to(np.asarray(q_true, np.float32), 100)
    return Record(curve, plays, probability, q, 7, 7, 0.0, 1.0)


def results(final, attempts=(), spread=0.01, **fields):
    """Results with regrets final[scenario, method] + small differences between ten seeds."""
    scope = Scope(seeds=tuple(range(10)), far=())
    runs = {key: [record(value + spread * seed, **fields) for seed in range(10)] for key, value in final.items()}
    return Results(scope, Tuned.of(choose(attempts)), runs, list(attempts))


def test_parts_hold_fail_or_cannot_be_told():
    wide = MeanEstimate(1.0, 0.5, 0.0, 2.0)
    assert (below(wide, 2.0), below(wide, -0.1), below(wide, 1.5)) == (True, False, None)
    assert (above(wide, -0.1), above(wide, 2.0), above(wide, 1.5)) == (True, False, None)
    assert verdict([]) == OPEN


def test_beating_a_rival_is_judged_problem_by_problem():
    everywhere = {(name, "alexp"): 1.0 for name in MAIN_SCENARIOS} | {(name, "etc"): 5.0 for name in MAIN_SCENARIOS}
    assert claims.beats(results(everywhere), "etc").verdict == HOLDS
    somewhere = everywhere | {("large", "alexp"): 9.0}
    claim = claims.beats(results(somewhere), "etc")
    assert claim.verdict == PARTLY
    assert "large: ALExp 9.04, ETC 5.04; paired difference 4.00 [4.00, 4.00]: more" in claim.evidence[-1]
    nowhere = {key: 6.0 - value for key, value in everywhere.items()}
    assert claims.beats(results(nowhere), "etc").verdict == FAILS
    level = dict.fromkeys(everywhere, 3.0)
    found = results(level)
    for name in MAIN_SCENARIOS:
        found.runs[name, "alexp"] = found.runs[name, "alexp"][::-1]  # differences of either sign
    assert claims.beats(found, "etc").verdict == OPEN


@pytest.mark.parametrize(("ours", "verdict"), [(1.5, HOLDS), (2.5, FAILS)])
def test_competitive_means_within_a_factor_two(ours, verdict):
    final = {(name, "alexp"): ours for name in MAIN_SCENARIOS} | {(name, "oracle"): 1.0 for name in MAIN_SCENARIOS}
    assert claims.competitive(results(final)).verdict == verdict


def correlated(easy, printed, meant):
    final = {(name, "oracle"): 1.0 for name in MAIN_SCENARIOS}
    final |= {("easy", "alexp"): easy, ("hard-printed", "alexp"): printed, ("hard-meant", "alexp"): meant}
    return results(final, spread=0.001)


def test_correlation_can_fail():
    assert claims.correlation(correlated(1.8, 1.6, 0.9)).verdict == HOLDS
    assert claims.correlation(correlated(1.8, 1.6, 6.0)).verdict == PARTLY
    assert claims.correlation(correlated(1.5, 4.0, 4.0)).verdict == FAILS
    # Nearly five times the oracle on the easy problem is no licence for as much elsewhere.
    assert claims.correlation(correlated(4.8, 4.8, 5.5)).verdict != HOLDS


def test_a_few_stuck_runs_on_the_easy_problem_do_not_excuse_the_hard_ones():
    found = correlated(1.0, 1.9, 1.9)
    found.runs["easy", "alexp"][:4] = [record(40.0)] * 4  # the mean is 16.6, the median still 1
    claim = claims.correlation(found)
    assert claim.verdict != HOLDS
    assert "4 of 10 runs of ALExp stuck" in claim.evidence[0]


def test_lasso_baselines():
    final = {(name, "oracle"): 1.0 for name in MAIN_SCENARIOS}
    final |= {(name, rival): 9.0 for name in MAIN_SCENARIOS for rival in ("etc", "ets")}
    assert claims.lasso_baselines(results(final)).verdict == OPEN  # as far from the oracle on all problems
    worse = final | {(name, rival): 20.0 for name in ("hard-printed", "hard-meant") for rival in ("etc", "ets")}
    found = results(worse)
    for key, records in found.runs.items():  # spreads that differ from the oracle's, so that intervals have a width
        if key[1] != "oracle":
            found.runs[key] = [record(r.regret[-1] + 0.1 * i) for i, r in enumerate(records)]
    assert claims.lasso_baselines(found).verdict == HOLDS


def test_scaling_in_both_directions():
    final = {(f"scaling-{p}", "alexp"): 2.0 + 0.05 * (p - 9) for p in range(9, 14)}
    final |= {(f"scaling-{p}", "etc"): 10.0 + 5.0 * (p - 9) for p in range(9, 14)}
    found = results(final)
    assert claims.scaling(found, ("alexp",), "flat", grows=False).verdict == HOLDS
    assert claims.scaling(found, ("etc",), "flat", grows=False).verdict == FAILS
    assert claims.scaling(found, ("etc",), "grows", grows=True).verdict == HOLDS
    assert claims.scaling(found, ("alexp",), "grows", grows=True).verdict == HOLDS  # 10% with tiny spread
    noisy = results(final, spread=1.0)  # 2 to 11 against 2.2 to 11.2
    assert claims.scaling(noisy, ("alexp",), "flat", grows=False).verdict in (OPEN, PARTLY)
    assert claims.scaling(noisy, ("alexp",), "grows", grows=True).verdict == OPEN


def test_growth_is_judged_at_every_size_and_the_one_that_stands_out_is_explained():
    flat = {(f"scaling-{p}", "alexp"): 2.0 for p in range(9, 14)}
    found = results(flat, [tried("alexp", f"scaling-{p}", 2.0, gamma=0.01, eta=10.0) for p in (9, 11, 12, 13)])
    assert claims.stands_out(found, "alexp") == []
    found.runs["scaling-12", "alexp"][:4] = [record(40.0, late=10.0)] * 4  # in the middle: both ends are as they were
    found.tuned.grid["scaling-12"]["alexp"] = {"gamma": 0.01, "eta": 90.0}
    found.tuned.grid["easy"] = found.tuned.grid["scaling-9"]
    claim = claims.scaling(found, ("alexp",), "flat", grows=False)
    assert claim.verdict == PARTLY
    (said,) = claims.stands_out(found, "alexp")
    assert said == claim.evidence[1]
    assert (
        "ALExp at M = 78 stands out: mean 17.2, 2.0 to 2.0 at the other sizes; 4 of 10 runs are stuck, 0 to 0" in said
    )
    assert "the runs that are not stuck have 2.1" in said
    assert "eta_0 = 90 was chosen there, 10 to 10 elsewhere" in said


def test_dynamics():
    sharp = np.zeros(165, np.float32)
    sharp[[7, 8]] = 0.6, 0.4
    decided = results({("large", "alexp"): 1.0}, snapshot=sharp)
    assert claims.ruled_out(decided).verdict == HOLDS
    assert claims.leads(decided).verdict == HOLDS
    undecided = results({("large", "alexp"): 1.0}, visited=40, q_true=0.5)
    assert claims.ruled_out(undecided).verdict == FAILS
    behind = sharp.copy()
    behind[[7, 8]] = 0.4, 0.6
    second = claims.leads(results({("large", "alexp"): 1.0}, snapshot=behind))
    assert second.verdict == FAILS
    assert "seed 4, it has rank 2 of 165, with 0.67 of the largest q; 1 models" in second.evidence[1]


@pytest.mark.parametrize(
    ("q_true", "verdict"),
    [
        (0.1, HOLDS),  # above 1/165, below 0.25
        (0.5, PARTLY),  # above the others, and above 0.25
        (0.001, PARTLY),  # below 0.25 because nothing ever came of it
        (np.append(np.full(60, 0.5), np.full(40, 0.001)), FAILS),
    ],
    ids=["rises", "rises-too-far", "never-rises", "rises-and-falls"],
)
def test_staying_below_a_quarter_is_no_merit_of_those_who_never_rise(q_true, verdict):
    assert claims.below_quarter(results({("large", "alexp"): 1.0}, q_true=q_true)).verdict == verdict


def tried(method, scenario, level, stage="grid", **values):
    return Attempt(Try(stage, scenario, method, values), estimate([level, level]), level, 0, level)


def explored(best):
    """Attempts in which ETC and ETS are best at n_0 = best[problem]."""
    return [
        tried(method, name, 20.0 + abs(n - at), n0=float(n))
        for method in ("etc", "ets")
        for name, at in best.items()
        for n in (2, 10, 14, 18, 23, 27, 31, 80)
    ]


@pytest.mark.parametrize(
    ("best", "verdict"),
    [((18, 23), HOLDS), ((14, 27), HOLDS), ((10, 10), FAILS), ((31, 80), FAILS), ((18, 10), HOLDS)],
    ids=["near", "at-the-edge", "ten", "beyond", "half"],
)
def test_best_exploration_is_around_twenty_or_it_is_not(best, verdict):
    found = results({}, explored(dict(zip(("easy", "large"), best, strict=True))))
    assert claims.best_exploration(found).verdict == verdict


def test_optima_at_ten_are_not_around_twenty():
    names = [f"scaling-{p}" for p in (9, 10, 11, 12, 13)]
    two_of_five = results({}, explored(dict(zip(names, (10, 10, 18, 18, 10), strict=True))))
    assert claims.best_exploration(two_of_five).verdict == PARTLY
    one_of_five = results({}, explored(dict(zip(names, (10, 10, 18, 10, 10), strict=True))))
    assert claims.best_exploration(one_of_five).verdict == FAILS


def test_robustness_and_transfer():
    rivals = [tried("corral", name, 30.0, gamma=0.1, eta=1.0) for name in ("easy", "large")]
    rivals += [tried("naive", name, 25.0, ridge=0.1) for name in ("easy", "large")]
    rivals += explored({"easy": 18, "large": 18})
    ours = [tried("alexp", n, 1.0 + 0.1 * i, gamma=0.01, eta=float(i)) for n in ("easy", "large") for i in range(5)]
    found = results({}, ours + rivals)
    assert claims.robust(found).verdict == HOLDS
    assert claims.transfer(found).verdict == HOLDS
    fragile = [
        tried("alexp", name, 1.0 if i == best else 50.0, gamma=0.01, eta=float(i))
        for best, name in enumerate(("easy", "large"))
        for i in range(5)
    ]
    found = results({}, fragile + rivals)
    assert claims.robust(found).verdict == FAILS
    assert claims.transfer(found).verdict == FAILS
    # A rival that the paper has and an earlier rule forgot.
    strong = results({}, [*ours, *rivals, tried("naive", "easy", 0.5, ridge=0.5)])
    assert claims.robust(strong).verdict == PARTLY


def test_means_that_hang_on_stuck_runs_are_named():
    steady, stuck = record(5.0, late=0.0), record(60.0, late=15.0)
    assert hanging([steady] * 10) is None
    assert hanging([steady] * 39 + [record(8.0, late=5.0)]) is None  # stuck, but it hardly matters
    found = hanging([steady] * 9 + [stuck])
    assert (found.stuck, found.mean, found.without) == (1, pytest.approx(10.5), pytest.approx(5.0))
    assert hanging([stuck] * 8 + [steady] * 2) is None  # locking is the rule, not the exception
    found = results({})
    found.tuned = Tuned({"easy": {}}, {})
    found.runs |= {("easy", "alexp"): [steady] * 9 + [stuck], ("easy", "naive"): [steady] * 10}
    table = regret_table(found).set_index("method")
    assert table.loc["ALExp", "mean"] == pytest.approx(10.5)
    assert table.loc["ALExp", "mean without stuck runs"] == pytest.approx(5.0)
    assert table.loc["Naive UCB", "mean without stuck runs"] == pytest.approx(5.0)
    assert list(table["stuck"]) == [1, 0]


def test_equal_runs_are_no_victory():
    level = {(name, method): 3.0 for name in MAIN_SCENARIOS for method in ("alexp", "etc")}
    assert claims.beats(results(level), "etc").verdict == OPEN
