"""`alexp tables`: instances, slopes and verdicts, the plan, the page, the command."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import alexp
from alexp.cli import app
from alexp_experiments.sparse.tables import contest, known, measures, report
from alexp_experiments.sparse.tables.contest import ENTRANTS, GRID
from alexp_experiments.sparse.tables.instances import SparseScenario
from alexp_experiments.sparse.tables.measures import TABLE_2, Size
from alexp_experiments.sparse.tables.tasks import SparseTask


@pytest.mark.parametrize("layout", ["columns", "singles", "groups", "nested", "stacked"])
def test_one_group_of_columns_matters_in_contexts(layout):
    scenario = SparseScenario(n_columns=40, layout=layout, steps=5)
    env = scenario.rounds(3)
    support = np.flatnonzero(env.theta)
    assert support.tolist() == list(range(5 * env.true_model, 5 * env.true_model + 5))
    np.testing.assert_array_equal(env.theta, SparseScenario(n_columns=40, steps=5).rounds(3).theta)
    sizes = {"columns": [40], "singles": [1] * 40, "groups": [5] * 8, "nested": [5, 10, 20, 40], "stacked": [20 * 800]}
    assert [group.size for group in env.models.groups] == sizes[layout]
    if layout == "groups":
        assert env.models.groups[env.true_model].tolist() == support.tolist()
    if layout == "nested":
        assert [set(support) <= set(group.tolist()) for group in env.models.groups] == [False, True, True, True]


def test_ninety_unit_vectors_and_more_that_are_as_visible():
    small = SparseScenario(family="vectors", n_columns=30, size=2, layout="groups").environment(1)
    large = SparseScenario(family="vectors", n_columns=120, size=2, layout="groups").environment(1)
    for env, p in ((small, 30), (large, 120)):
        rows = env.models.matrix(env.domain)
        assert rows.shape == (3 * p, p)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), np.sqrt(p / 30))
        assert rows.var() == pytest.approx(1 / 30, rel=0.05)
        assert 0.5 < np.abs(env.rewards).max() < 1.1  # of which everybody is told that it is one
        np.testing.assert_allclose(env.rewards, rows[:, 2 * env.true_model : 2 * env.true_model + 2].sum(axis=1))
    with pytest.raises(ValueError, match="multiple of size"):
        SparseScenario(n_columns=31)


def test_slopes_and_their_intervals():
    x = np.array(GRID, dtype=float)
    exact = measures.measured(x, np.outer(np.ones(6), 3.0 * x**0.75))
    assert exact.slope.mean == pytest.approx(0.75)
    assert (exact.slope.low, exact.slope.high) == pytest.approx((0.75, 0.75))
    rng = np.random.default_rng(0)
    noisy = measures.measured(x, x**0.5 * rng.uniform(0.5, 1.5, (20, 5)))
    assert noisy.slope.low < 0.5 < noisy.slope.high
    assert measures.verdict(noisy, 0.5) == "yes"  # an interval that holds the printed exponent does not exceed it
    assert measures.verdict(noisy, noisy.slope.low - 1e-9) == "no"
    assert noisy.seeds == 20
    assert not exact.is_flat
    assert measures.measured(x, np.ones((4, 5))).is_flat


@pytest.mark.parametrize(
    ("power", "allowed", "words"), [(0.5, 0.6, "yes"), (0.5, 0.5, "yes"), (0.5, 0.4, "no"), (0.01, 0, "flat")]
)
def test_verdicts(power, allowed, words):
    x = np.array(GRID, dtype=float)
    assert measures.verdict(measures.measured(x, np.outer(np.ones(4), x**power)), allowed + 1e-9) == words
    assert measures.verdict(None, allowed) == "-"


def test_printed_bounds_have_the_exponents_that_are_printed():
    bounds = {row.key: row.bound for row in TABLE_2}
    n = np.array([1e30, 1e31])

    def exponent(key, **sizes):
        ((name, points),) = sizes.items()
        values = [bounds[key](Size(**({"M": 20.0, "d": 5.0, "n": 1000.0} | {name: x}))) for x in points]
        return float(measures.log_slope(points, np.array(values)))

    found = {key: exponent(key, n=n) for key in bounds}
    wanted = {
        "T2.1": 0.5,
        "T2.2": 0.75,
        "T2.3": 0.5,
        "T2.4": 0.0,
        "T2.5": 0.5,
        "T2.6": 0.5,
        "T2.7": 2 / 3,
        "T2.8": 2 / 3,
        "T2.9": 2 / 3,
        "T2.10": 0.75,
    }
    assert found == pytest.approx(wanted, abs=0.04)
    assert exponent("T2.1", M=n) == pytest.approx(0.5)
    assert exponent("T2.8", M=n) < 0.02
    assert exponent("T2.8", d=n) == pytest.approx(2 / 3)


def test_every_row_is_played_or_says_why_and_corrections_are_there():
    rows = {one.row for one in ENTRANTS.values()}
    assert {row.key for row in TABLE_2} <= rows
    there = alexp.Algorithm.registry
    assert all(ENTRANTS[name].plays for name in ENTRANTS if ENTRANTS[name].row != "T2.3" or "sl-ucb" in there)
    corrections = report.PROSE.line("corrections").split("\n\n")
    assert all(text.startswith(f"{k}. ") for k, text in enumerate(corrections, 1))
    assert {number for row in TABLE_2 for number in row.corrections} <= set(range(1, len(corrections) + 1))
    for words in ("residual", "in expectation", "without a horizon", "sparsity"):
        assert any(words in text for text in corrections)
    cells = contest.SparseContest.of().cells
    assert all(len(cell.seeds) >= 10 for cell in cells if cell.part in ("n", "p"))
    told = [cell for cell in cells if (cell.name, cell.part) == ("Li 2022", "n")]
    assert [cell.moments for cell in told] == [(n,) for n in GRID]
    (anytime,) = [cell for cell in cells if (cell.name, cell.part) == ("SA Lasso", "n")]
    assert anytime.moments == GRID
    slow = [
        len(cell.seeds)
        for plan in (contest.SparseContest.of(["released"]), contest.SparseContest.of(["released"], seeds=6))
        for cell in plan.cells
        if (cell.name, cell.scenario.n_columns) == ("th-lasso", 1000)
    ]
    assert slow == [3, 6]


def test_a_task_tells_what_must_be_told():
    scenario = ENTRANTS["Li 2022"].scenario(50, 64)
    opt, _ = SparseTask(scenario, "etc", ENTRANTS["Li 2022"].settings, 0).play()
    assert (opt.horizon, opt.sparsity) == (64, 5)
    oracle, env = SparseTask(ENTRANTS["oracle"].scenario(30, 8), "linucb", {"model": "$true_model"}, 0).play()
    assert oracle.model == env.true_model
    one = SparseTask(scenario, "doubling", {"algorithm": "etc", "n_explore": 9}, 0)
    other = SparseTask(scenario, "doubling", {"algorithm": "corral"}, 0)
    assert one.configuration != other.configuration
    longer = SparseTask(scenario, "doubling", {"algorithm": "etc", "n_explore": 10}, 0)
    assert longer.configuration != one.configuration  # of the same code
    assert one.run().regret.shape == (64,)


def test_masters_are_ordered_on_a_small_instance():
    """Oracle before LinUCB++ before dynamic balancing, on a fifth of the columns and rounds."""
    final = {}
    for name in ("oracle, d = 12", "LinUCB++", "balancing, dynamic"):
        layout, algorithm, settings = known.MASTERS[name]
        scenario = known.MasterScenario(n_columns=120, arms=240, steps=600, layout=layout)
        final[name] = np.mean([SparseTask(scenario, algorithm, settings, seed).run().regret[-1] for seed in range(3)])
    assert final["oracle, d = 12"] < 0.7 * final["LinUCB++"]
    assert final["LinUCB++"] < 0.9 * final["balancing, dynamic"]


@pytest.fixture
def runs():
    rng, lines = np.random.default_rng(0), []
    for name, power in (("SA Lasso", 0.02), ("Li 2022", 0.66), ("PopArt", 1.0), ("Corral", 0.98), ("mixture", 0.01)):
        for part, axis in (("n", GRID), ("p", ENTRANTS[name].widths)):
            for seed in range(6):
                luck = rng.uniform(0.9, 1.1)
                lines += [
                    {"entrant": name, "part": part, "p": 100 if part == "n" else x, "n": x if part == "n" else 1000,
                     "seed": 98_000 + seed, "regret": luck * x**power, "ms": 1.0}
                    for x in axis
                ]  # fmt: skip
    for n, value in zip((100, 500, 1000), (30.0, 33.0, 60.0), strict=True):
        lines += [
            {
                "entrant": "sa-lasso",
                "part": "released 1",
                "p": 100,
                "n": n,
                "seed": 98_000 + s,
                "regret": value,
                "ms": 1.0,
            }
            for s in (0, 1)
        ]
    return pd.DataFrame(lines)


def test_the_page_says_what_was_found(runs):
    text = report.page(runs, "figures/tables.png")
    lines = {
        line.split(" | ")[1]: line for line in text.splitlines() if line.startswith("| T2.") and line.count("|") == 12
    }
    assert "| flat |" in lines["SA Lasso"]
    assert lines["Li 2022"].split(" | ")[5] == "yes"
    assert lines["PopArt"].split(" | ")[5] == "no"
    assert "not measured" in text
    assert "98000 to 98005" in text
    assert "1 comparisons" in text
    assert "Final regret was 1.76 to 1.76 times theirs; 0 of 1 lie within" in text
    assert "figures/tables.png" in text


def test_one_colour_per_method_in_both_rows_of_the_figure():
    for pair in (("ALExp", "ALExp, contexts"), ("mixture", "mixture, contexts"), ("oracle", "oracle, contexts"),
                 ("even play", "even play, contexts"), ("Corral, vectors", "Corral"),
                 ("LinUCB, all columns", "LinUCB, all columns, contexts")):  # fmt: skip
        assert report.colour_of(pair[0]) == report.colour_of(pair[1])
    for names in (report.CONTEXTS, report.VECTOR_SETS):
        assert len({report.colour_of(name) for name in names}) == len(names)


def test_time_and_points_that_few_runs_make(runs):
    one = runs[(runs["entrant"] == "SA Lasso") & (runs["part"] == "n") & (runs["seed"] == 98_000)]
    assert report.core_minutes(one) == pytest.approx(GRID[-1] / 60e3)  # one run of 4,000 rounds, looked at five times
    told = runs[(runs["entrant"] == "Li 2022") & (runs["part"] == "n") & (runs["seed"] == 98_000)]
    assert report.core_minutes(told) == pytest.approx(sum(GRID) / 60e3)
    assert report.loud_points(runs) is None
    loud = runs.copy()
    worst = (loud["entrant"] == "mixture") & (loud["part"] == "p") & (loud["p"] == 60) & (loud["seed"] == 98_003)
    loud.loc[worst, "regret"] *= 100.0
    said = report.loud_points(loud)
    assert "EvidenceMixture at p = 60 (at p = 60 mean" in said
    assert "1 of 6 runs above twice it" in said


def test_shares_of_even_play_and_numbers_of_seeds(runs):
    even = runs[(runs["entrant"] == "Corral") & (runs["part"] == "n")].assign(entrant="even play, contexts")
    even = even[even["seed"] < 98_003].assign(regret=2.0 * even["n"] ** 0.98)
    head, lines = report.measured_1(pd.concat([runs, even]))
    shares = {line[0]: line[head.index("of random play's")] for line in lines}
    assert 0.4 < float(shares["Corral"]) < 0.6
    assert shares["PopArt"] == "-", "there is no random play on vectors"
    text = report.seeds_text(pd.concat([runs, even]))
    assert text == "6 or 3 for growth in n; 6 for growth in p; 2 for the comparison with authors' code"


def test_the_command_runs_keeps_and_reads(tmp_path, runs):
    run = CliRunner().invoke
    rows, out, cache = "even play;SA Lasso", str(tmp_path / "out"), str(tmp_path / "cache")
    options = ["--seeds", "2", "--workers", "1", "--out", out, "--cache", cache]
    first = run(app, ["tables", "--quick", "--rows", rows, *options])
    assert first.exit_code == 0, first.output
    assert "| T2.6 | SA Lasso |" in first.output
    kept = (tmp_path / "out" / report.RUNS).read_text()
    again = run(app, ["tables", "--quick", "--rows", rows, *options])
    assert again.exit_code == 0
    assert (tmp_path / "out" / report.RUNS).read_text() == kept
    assert (tmp_path / "out" / report.FIGURE).exists()
    wrong = run(app, ["tables", "--rows", "nobody", "--out", out])
    assert wrong.exit_code == 2
    assert "there is no row 'nobody'" in " ".join(wrong.output.split())
    empty = run(app, ["tables", "--stored", "--out", str(tmp_path / "none")])
    assert empty.exit_code == 2
    assert "alexp tables" in empty.output
