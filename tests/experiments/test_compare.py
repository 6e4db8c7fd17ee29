"""The comparison grid: its scenarios, its table and its page, on runs small enough for a test."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from alexp.experiments.comparison import contest, entries
from alexp.experiments.comparison.figure import draw
from alexp.experiments.comparison.report import report
from alexp.experiments.core.runner import sweep
from alexp.experiments.core.tables import TableScenario
from alexp.experiments.core.tasks import Record, build

DOCS = Path(__file__).parents[2] / "docs"
ENTRANTS = ["oracle", "evidence-mixture", "alexp", "uniform"]


@pytest.fixture
def short(monkeypatch):
    """The same names, but ten rounds each."""
    tiny = {name: s.with_(steps=10, resolution=30) for name, s in entries.SCENARIOS.items()}
    for module in (contest, entries):
        monkeypatch.setattr(module, "SCENARIOS", tiny)


def table(scenarios=("s=2 σ=.1", "noise stated ÷3"), seeds=2):
    grid = contest.Contest.of(list(scenarios), ENTRANTS, seeds)
    return contest.run(grid, lambda tasks: sweep(tasks, workers=1, cache=None, progress=False))


@pytest.mark.parametrize("entrant", entries.ENTRANTS)
def test_every_entrant_plays_every_kind_of_problem(short, entrant):
    for name in ("s=3 σ=.1", "50 maps σ=.1", "offset 1, intercept", "diabetes"):
        algorithm, environment = build(contest.Cell(name, entrant, (3,)).tasks[0])
        trial = algorithm.ask()
        algorithm.tell(trial, environment.observe_index(trial.index))


def test_grid_covers_what_was_promised():
    scenarios = entries.SCENARIOS
    assert {s.steps for s in scenarios.values()} == {100, 1000, 10_000}
    assert {0.01, 0.1, 0.3, 0.5} <= {s.noise_std for s in scenarios.values()}
    assert {2, 3, 9} <= {s.size for s in scenarios.values() if s.family == "legendre"}
    assert max(s.n_models for s in scenarios.values() if s.family == "legendre") == 4495
    assert {s.stated_noise for s in scenarios.values()} == {1.0, 3.0, 1.0 / 3.0}
    assert {"legendre", "gaussian", "diabetes", "digits"} == {s.family for s in scenarios.values()}
    assert len(contest.Contest.of(["s=3 σ=.3 n=10000"], seeds=20).tasks) == 4 * len(
        [e for e in entries.ENTRANTS.values() if e.long]
    )


def test_summary_by_hand():
    curves = np.cumsum([[0.0] * 8, [1.0] * 8], axis=1)
    nothing = np.empty(0, np.float32)
    records = [Record(curve, np.zeros(8, np.int32), nothing, nothing, 0, 0, 0.0, 0.008) for curve in curves]
    row = contest.summary(records)
    assert (row["mean"], row["median"], row["worst"], row["locked"]) == (4.0, 4.0, 8.0, 1)
    assert row["s.e."] == pytest.approx(4.0)
    assert row["ms per step"] == pytest.approx(1.0)


def test_geometric_means_by_hand():
    rows = [("a", "oracle", 1.0), ("b", "oracle", 4.0), ("a", "alexp", 8.0), ("b", "alexp", 8.0), ("a", "half", 2.0)]
    common = {"locked": 1, "seeds": 5, "ms per step": 1.0}
    frame = pd.DataFrame([{"scenario": s, "algorithm": n, "mean": m, "worst": m} | common for s, n, m in rows])
    means = contest.geometric_means(frame, ["a", "b", "absent"])
    assert list(means.index) == ["oracle", "alexp"], "sorted, and without what misses a scenario"
    assert means.loc["alexp", "x oracle"] == pytest.approx(4.0)
    assert means.loc["oracle", "locked"] == 2


def test_table_page_and_figure(short, tmp_path):
    result = table()
    assert len(result) == 2 * len(ENTRANTS)
    uniform = result[result["algorithm"] == "uniform"]
    assert np.all(uniform["mean"] > 0)
    contest.store(result, tmp_path / "compare.csv")
    again = contest.stored(tmp_path / "compare.csv")
    pd.testing.assert_frame_equal(again, result, check_exact=False, rtol=1e-5)
    page = report(again, "figures/compare.png")
    assert "EvidenceMixture pays" in page
    assert all(name in page for name in ENTRANTS)
    draw(again, tmp_path / "figures" / "compare.png")
    assert (tmp_path / "figures" / "compare.png").stat().st_size > 10_000


def test_the_committed_page_is_made_from_the_committed_table():
    page = report(contest.stored(DOCS / "compare.csv"), "figures/compare.png")
    assert page == (DOCS / "which-algorithm.md").read_text()


def test_results_repeat(short):
    one, two = table(), table()
    pd.testing.assert_frame_equal(one.drop(columns="ms per step"), two.drop(columns="ms per step"))


def test_command(short, tmp_path):
    import typer

    from alexp.commands.compare import compare as command

    app = typer.Typer()
    app.command()(command)
    arguments = ["s=2 σ=.1", "--algorithms", "oracle; alexp; evidence-mixture", "--seeds", "2", "--workers", "1"]
    folders = ["--out", str(tmp_path), "--cache", str(tmp_path / "cache")]
    result = CliRunner().invoke(app, [*arguments, *folders])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "which-algorithm.md").exists()
    assert CliRunner().invoke(app, ["--stored", *folders]).exit_code == 0
    wrong = CliRunner().invoke(app, ["nowhere", *folders])
    assert wrong.exit_code != 0
    missing = CliRunner().invoke(app, ["--stored", "--out", str(tmp_path / "empty")])
    assert missing.exit_code != 0


def test_unknown_names_are_listed():
    with pytest.raises(ValueError, match="known are"):
        contest.Contest.of(["nowhere"])
    with pytest.raises(ValueError, match="known are"):
        contest.Contest.of(None, ["nobody"])


@pytest.mark.parametrize("family", ["diabetes", "digits"])
def test_tables(family):
    scenario = TableScenario(family=family, resolution=120)
    environment = scenario.environment(5)
    assert environment.domain.n_candidates == 120
    assert environment.models.n_models == scenario.n_models
    assert environment.models.intercept
    whole = TableScenario(family=family, resolution=10_000).environment(0)
    assert whole.rewards.mean() == pytest.approx(0.0, abs=1e-12)
    assert whole.rewards.std() == pytest.approx(0.5)
    features = whole.models.matrix(whole.domain)
    for group in whole.models.groups:
        assert np.mean(np.sum(features[:, group] ** 2, axis=1)) == pytest.approx(1.0)
    other = scenario.environment(6)
    assert not np.array_equal(environment.domain.points, other.domain.points)
    with pytest.raises(ValueError, match="family"):
        TableScenario(family="iris")
