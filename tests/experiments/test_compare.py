"""The comparison grid: its scenarios, its table and its page, on runs small enough for a test."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from alexp_experiments.comparison import contest, entries, report, tuning
from alexp_experiments.comparison.entries import TWELVE, WELL_SPECIFIED
from alexp_experiments.comparison.problems import TableScenario, with_true_model
from alexp_experiments.core.runner import sweep
from alexp_experiments.core.tasks import Record, build

DOCS = Path(__file__).parents[2] / "docs"
ENTRANTS = ["informed ids", "oracle", "evidence-mixture", "squarecb", "squarecb, tuned", "alexp", "uniform"]
NOTHING = np.empty(0, np.float32)


@pytest.fixture
def short(monkeypatch):
    """The same names, but ten rounds each."""
    tiny = {name: s.with_(steps=10, resolution=30) for name, s in entries.SCENARIOS.items()}
    for module in (contest, entries, tuning):
        monkeypatch.setattr(module, "SCENARIOS", tiny)
    monkeypatch.setattr(tuning, "TUNING_SEEDS", (1, 2))


def table(scenarios=("s=2 σ=.1", "noise stated ÷3"), seeds=2):
    grid = contest.Contest.of(list(scenarios), ENTRANTS, seeds)
    return contest.run(grid, lambda tasks: sweep(tasks, workers=1, cache=None, progress=False))


@pytest.mark.parametrize("entrant", tuning.everybody())
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
    assert len(TWELVE) == 12
    assert TWELVE.items() <= WELL_SPECIFIED.items()


def test_who_plays_what_and_how_often():
    cells = {(cell.scenario, cell.entrant): len(cell.seeds) for cell in contest.Contest.of().cells}
    assert all(cells[name, "alexp"] == cells[name, "squarecb, tuned"] == 40 for name in WELL_SPECIFIED)
    assert (cells["offset 1", "alexp"], cells["diabetes", "alexp"]) == (20, 20)
    assert (cells["s=3 σ=.1 n=1000", "alexp"], cells["s=3 σ=.3 n=10000", "alexp"]) == (10, 4)
    assert (cells["s=3 σ=.1", "balancing"], cells["offset 1", "smoothed-corral"]) == (10, 5)
    assert ("offset 1", "squarecb, tuned") not in cells
    assert ("s=3 σ=.1 n=1000", "squarecb") not in cells
    firsts = {cell.seeds[0] for cell in contest.Contest.of().cells}
    assert firsts == {contest.FIRST_SEED}


def test_told_agents_meet_the_same_rewards_and_one_model():
    for name in ("s=3 σ=.1", "50 maps σ=.1", "diabetes"):
        plain, alone = (s.environment(4) for s in (entries.SCENARIOS[name], with_true_model(entries.SCENARIOS[name])))
        assert np.array_equal(plain.rewards, alone.rewards)
        assert [plain.noise() for _ in range(5)] == [alone.noise() for _ in range(5)]
        assert (alone.models.n_models, alone.true_model) == (1, 0)
        assert np.array_equal(alone.models.groups[0], plain.models.groups[plain.true_model])
    scenario = entries.SCENARIOS["s=3 σ=.1"]
    names = ("evidence-mixture, nothing stated", "informed ids")
    mixture, ids = (entries.ENTRANTS[name].task(scenario, 1) for name in names)
    assert mixture.key != ids.key
    assert build(ids)[0].models.n_models == 1
    assert build(ids)[0].stated.noise_std is None


def test_summary_by_hand():
    curves = np.cumsum([[0.0] * 8, [1.0] * 8], axis=1)
    records = [Record(curve, np.zeros(8, np.int32), NOTHING, NOTHING, 0, 0, 0.0, 0.008) for curve in curves]
    row = contest.summary(records)
    assert (row["mean"], row["median"], row["worst"], row["stuck"], row["starting"]) == (4.0, 4.0, 8.0, 1, 0)
    assert row["s.e."] == pytest.approx(4.0)
    assert row["ms per step"] == pytest.approx(1.0)


@pytest.mark.parametrize(("visited", "starting"), [([1, 2, 3, 4, 5, 6, 7, 8], 1), ([1, 2, 3, 4, 5, 6, 7, 7], 0)])
def test_who_is_still_trying_agents_out_is_not_stuck(visited, starting):
    """One of eight rounds per agent; the last quarter is two rounds, and half of them is not most."""
    run = Record(np.arange(1.0, 9.0), np.array(visited, np.int32), NOTHING, NOTHING, 0, 0, 0.0, 0.008)
    row = contest.summary([run, run])
    assert (row["stuck"], row["starting"]) == (2 - 2 * starting, 2 * starting)


def test_geometric_means_by_hand():
    rows = [("a", "oracle", 1.0), ("b", "oracle", 4.0), ("a", "alexp", 8.0), ("b", "alexp", 8.0), ("a", "half", 2.0)]
    rows += [
        ("a", "informed ids", 0.5),
        ("b", "informed ids", 3.0),
        ("a", "informed ucb", 0.8),
        ("b", "informed ucb", 2.0),
    ]
    common = {"stuck": 1, "starting": 0, "seeds": 5, "ms per step": 1.0}
    frame = pd.DataFrame(
        [{"scenario": s, "algorithm": n, "mean": m, "median": m / 2, "worst": m} | common for s, n, m in rows]
    )
    means = contest.geometric_means(frame, ["a", "b", "absent"])
    assert list(means.index) == ["informed ids", "informed ucb", "oracle", "alexp"], (
        "sorted; not what misses a scenario"
    )
    assert means.loc["alexp", "x oracle"] == pytest.approx(4.0)
    assert means.loc["alexp", "x informed"] == pytest.approx(8.0), "the best of each scenario: 0.5 and 2"
    assert means.loc["alexp", "median"] == pytest.approx(4.0)
    assert means.loc["oracle", "stuck"] == 2
    rivals = frame[~frame["algorithm"].str.startswith("informed")]
    assert "x informed" not in contest.geometric_means(rivals, ["a", "b"])


def test_advice_by_hand():
    means = {"evidence-mixture": (2.0, 8.0), "evidence-mixture, ucb": (1.0, 4.0), "exp4-ix, tuned": (6.0, 24.0)}
    common = {"s.e.": 0.2, "stuck": 1, "seeds": 5, "ms per step": 1.0}
    frame = pd.DataFrame(
        [
            {"scenario": s, "algorithm": name, "mean": mean} | common
            for name, both in means.items()
            for s, mean in zip((report.USUAL, "noise stated ×3"), both, strict=True)
        ]
    )
    scenarios = [report.USUAL, "noise stated ×3"]
    assert report.times(frame, "evidence-mixture, ucb", "evidence-mixture", scenarios) == pytest.approx(0.5)
    assert report.times(frame, "alexp", "evidence-mixture", scenarios) is None
    assert report.beside(frame, "evidence-mixture", "noise stated ×3") == "4.00 ± 0.41"  # 4 x |(.025, .1)|
    text = report.advice(frame, scenarios)
    assert "the best of them, EXP4-IX, has 3.00 times the regret with tuned constants" in text
    assert "given neither noise" not in text, "it has not played"
    assert "None" not in text
    assert "nan" not in text


def test_table_page_and_figure(short, tmp_path):
    result = table()
    assert len(result) == 2 * len(ENTRANTS) - 1, "tuned constants play where a model is true and all is stated"
    uniform = result[result["algorithm"] == "uniform"]
    assert np.all(uniform["mean"] > 0)
    result = contest.store(result, tmp_path / "compare.csv")
    again = contest.stored(tmp_path / "compare.csv")
    pd.testing.assert_frame_equal(again, result, check_exact=False, rtol=1e-5)
    page = report.report(again, tuning.stored_sweep(), "figures/compare.png")
    assert "**Use `EvidenceMixture`.** On 1 problems" in page
    assert "The best algorithm from elsewhere, SquareCB, has" in page
    assert [name for name in ENTRANTS if name in report.ROWS and f"| {report.ROWS[name]} |" not in page] == []
    assert set(report.ROWS) <= set(entries.ENTRANTS)
    report.draw(again, tmp_path / "figures" / "compare.png")
    assert (tmp_path / "figures" / "compare.png").stat().st_size > 10_000


def test_named_rows_are_added_to_the_table(short, tmp_path):
    path = tmp_path / "compare.csv"
    whole = contest.store(table(), path)
    more = whole[whole["algorithm"] == "alexp"].assign(mean=-1.0)
    gone = more.assign(algorithm="no more")
    both = contest.store(pd.concat([more, gone]), path, add=True)
    assert list(zip(both["scenario"], both["algorithm"], strict=True)) == list(
        zip(whole["scenario"], whole["algorithm"], strict=True)
    )
    assert (both["mean"] == -1.0).sum() == 2
    assert len(contest.store(more, path)) == 2, "without names the table is made anew"


def test_the_committed_page_is_made_from_the_committed_table():
    page = report.report(contest.stored(DOCS / "compare.csv"), tuning.stored_sweep(), "figures/compare.png")
    committed = (DOCS / "which-algorithm.md").read_text().partition("\n<!-- made by ")[0]
    assert page == committed


def test_results_repeat(short):
    one, two = table(), table()
    pd.testing.assert_frame_equal(one.drop(columns="ms per step"), two.drop(columns="ms per step"))


def test_command(short, tmp_path):
    import typer

    from alexp_experiments.commands.compare import compare as command

    app = typer.Typer()
    app.command()(command)
    arguments = ["s=2 σ=.1", "--algorithms", "oracle; alexp; evidence-mixture", "--seeds", "2", "--workers", "1"]
    folders = ["--out", str(tmp_path), "--cache", str(tmp_path / "cache")]
    result = CliRunner().invoke(app, [*arguments, *folders])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "which-algorithm.md").exists()
    assert CliRunner().invoke(app, ["--stored", *folders]).exit_code == 0
    swept = ["--tune", str(tmp_path / "sweep.csv"), "--algorithms", "etc", "--workers", "1"]
    result = CliRunner().invoke(app, [*swept, *folders])
    assert result.exit_code == 0, result.output
    assert len(pd.read_csv(tmp_path / "sweep.csv")) == 8 * len(tuning.TUNING)
    unswept = CliRunner().invoke(app, ["--tune", str(tmp_path / "sweep.csv"), "--algorithms", "uniform", *folders])
    assert unswept.exit_code != 0
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
