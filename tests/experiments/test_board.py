"""`alexp board`: its list of tables, its protocols, and the page of a quick run, on tables small enough for a test."""

import hashlib

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from alexp.cli import app
from alexp_experiments.board import board, tables
from alexp_experiments.board.tables import ListedTable, listed_tables
from alexp_experiments.comparison.tables import arylation, contest
from alexp_experiments.comparison.tables.data import ARYLATION, RealScenario, load_table
from alexp_experiments.core.tasks import Record, build

N = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out, rng = tmp_path_factory.mktemp("tables"), np.random.default_rng(0)
    x = rng.standard_normal((N, 2))
    np.savez(out / "hill.npz", y=-(x**2).sum(axis=1), m_linear=x.astype(np.float32))
    bits = rng.integers(0, 2, (N, 20)).astype(np.float32)
    np.savez(out / "buchwald_z.npz", y=bits[:, :3].sum(axis=1) + 0.1 * rng.standard_normal(N), m_bits=bits)
    return out


def listed(folder, name, **more):
    digest = hashlib.sha256((folder / f"{name}.npz").read_bytes()).hexdigest()
    return ListedTable(name, "report", "a test", digest, **more)


def test_tables_are_for_tuning_or_for_reporting():
    tuned, reported = ({one.name for one in listed_tables(role)} for role in ("tune", "report"))
    assert tuned
    assert reported
    assert not tuned & reported
    assert all(len(one.sha256) == 64 for one in listed_tables("report") if one.name != ARYLATION)


def test_a_file_with_another_content_is_refused(folder):
    right = listed(folder, "hill")
    assert right.found_in([folder]) == str(folder / "hill.npz")
    assert right.found_in([]) is None
    wrong = ListedTable("hill", "report", "somewhere", "0" * 64)
    with pytest.raises(
        ValueError, match=r"is not the table of the board: its SHA-256 is .*, expected 0000.* somewhere"
    ):
        wrong.found_in([folder])


def test_a_poor_start_is_below_the_median_and_the_same_for_all(folder):
    scenario = RealScenario.of(str(folder / "hill.npz"), start="poor", first=10, steps=20, models="kernels")
    first = scenario.environment(3).first
    scores = load_table(str(folder / "hill.npz")).scores
    assert len(set(first)) == 10
    assert (scores[first] < np.median(scores)).all()
    task = contest.TABLE_ENTRANTS["random"].task(scenario.with_(models="linear"), "best", 3)
    assert build(task)[1].first == scenario.environment(task.seeds[0]).first


def test_coverage_by_hand(folder):
    table, nothing = load_table(str(folder / "hill.npz")), np.empty(0, np.float32)
    chosen = np.argsort(table.scores)[[-1, -3, -4, 0, -1]]  # three of sixty rows are the best twentieth
    record = Record(np.zeros(5), nothing, nothing, nothing, 0, 0, 0.0, 1.0, chosen)
    assert contest.found_share(table, record, 3) == pytest.approx(2 / 3)


def test_locked_runs_by_hand():
    runs = pd.DataFrame({"entrant": "a", "table": list("xxxyyy"), "regret": [1.0, 1.0, 2.1, 5.0, 6.0, 100.0]})
    assert board.locked(runs, "a") == (2, 6)


def test_the_best_model_in_hindsight_has_the_largest_coverage():
    rows = {"goal": "best", "table": "x", "entrant": "a", "model": ["m", "n"], "coverage": [0.2, 0.4], "regret": 1.0}
    assert list(board.played(pd.DataFrame(rows), board.COVERED, ["x"])["model"]) == ["n"]


def test_runs_of_slow_rivals_are_taken_over_once(tmp_path):
    rows = {"rounds": 100, "plate": 1, "repeats": False, "goal": "sum", "table": "x", "model": "m", "seed": [1, 2]}
    old = pd.DataFrame({**rows, "entrant": [board.BOTORCH, "random"], "regret": [5.0, 6.0]})
    board.keep_runs(old, tmp_path / "real-tables.csv", "", board.KEY)
    board.adopt(tmp_path)
    board.adopt(tmp_path)
    kept = board.stored_runs(tmp_path / board.RUNS, "")
    assert list(kept["entrant"]) == [board.BOTORCH]
    newer = kept.assign(regret=1.0)
    board.keep_runs(newer, tmp_path / board.RUNS, "", board.KEY)
    board.adopt(tmp_path)
    assert list(board.stored_runs(tmp_path / board.RUNS, "")["regret"]) == [1.0]


def test_a_quick_board(folder, tmp_path, monkeypatch):
    own = [
        listed(folder, "hill"),
        listed(folder, "buchwald_z", coverage=True),
        ListedTable("gone", "report", "nowhere"),
    ]
    monkeypatch.setattr(tables, "listed_tables", lambda role: own)
    players = {name: arylation.PLAYERS[name] for name in [board.OURS]}
    monkeypatch.setattr(arylation, "PLAYERS", players)
    monkeypatch.delenv("ALEXP_TABLES", raising=False)
    monkeypatch.delenv("ALEXP_BOARD", raising=False)
    arguments = ["board", "--quick", "--tables", str(folder), "--out", str(tmp_path), "--workers", "1"]
    done = CliRunner().invoke(app, [*arguments, "--cache", str(tmp_path / "cache")])
    assert done.exit_code == 0, done.output
    assert "left out, because no folder has them: gone" in done.output
    page = (tmp_path / "board.md").read_text()
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {
        "board-sum.png", "board-coverage.png", "board-plates.png",
    }  # fmt: skip
    for heading in ("## Summed reward", "## Coverage", "## Plates", "2 seeds, 95000 to 95001"):
        assert heading in page
    runs = pd.read_csv(tmp_path / "board.csv")
    assert set(runs["goal"]) == {"sum", "best"}
    assert set(runs[runs["goal"] == "best"]["table"]) == {"buchwald_z"}
    mean = runs[(runs["goal"] == "best") & (runs["entrant"] == board.OURS)]["coverage"].mean()
    assert f"| coverage of Buchwald-Hartwig at least .52 | {mean:.3f} on 1 tables |" in page
    again = CliRunner().invoke(app, ["board", "--stored", "--out", str(tmp_path)])
    assert again.exit_code == 0, again.output
    assert (tmp_path / "board.md").read_text() == page
