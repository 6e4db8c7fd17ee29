"""`alexp board`: its list of tables, its protocols, and the page of a quick run, on tables small enough for a test."""

import hashlib
import re
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from alexp.cli import app
from alexp_experiments.board import board, memory, tables
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
    return ListedTable(name, "report", "a test", load_table(str(folder / f"{name}.npz")).digest, **more)


def test_tables_are_for_tuning_or_for_reporting():
    tuned, reported = ({one.name for one in listed_tables(role)} for role in ("tune", "report"))
    assert tuned
    assert reported
    assert not tuned & reported
    assert all(len(one.digest) == 16 for one in listed_tables("report") if one.name != ARYLATION)


def test_a_file_with_another_content_is_refused(folder):
    right = listed(folder, "hill")
    assert right.found_in([folder]) == str(folder / "hill.npz")
    assert right.found_in([]) is None
    wrong = ListedTable("hill", "report", "somewhere", "0" * 16)
    with pytest.raises(ValueError, match=r"is not the table of the board: its digest is .*, expected 0000.* somewhere"):
        wrong.found_in([folder])


@pytest.fixture
def server(tmp_path):
    """A server of files in a folder: its address, and the folder."""
    (tmp_path / "public").mkdir()
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "public"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}", tmp_path / "public"
        running.shutdown()


CSV = b"a,b,loss\n1,2,5\n3,4,1\n1,2,7\n5,5,2\n" + b"".join(b"%d,%d,%d\n" % (k, k * k % 7, k % 5) for k in range(6, 40))


def public(url, **changes):
    download = {"url": f"{url}/a%20table.csv", "sha256": hashlib.sha256(CSV).hexdigest(), "header": True}
    return {"download": download | {"minimize": True, "average": True} | changes}


def test_tables_are_downloaded_checked_and_made(server, tmp_path):
    url, folder = server
    (folder / "a table.csv").write_bytes(CSV)
    one = ListedTable("losses", "report", "a server", **public(url))
    table = load_table(str(one.fetch(tmp_path / "tables")))
    assert table.rewards[:3].tolist() == [-6.0, -1.0, -2.0]  # a mean of two, and in the order of inputs
    inputs = table.matrices["linear"]
    np.testing.assert_allclose(inputs.mean(axis=0), 0.0, atol=1e-6)
    np.testing.assert_allclose(inputs.std(axis=0), 1.0, rtol=1e-6)
    listed_ = ListedTable("losses", "report", "a server", table.digest, **public(url))
    assert listed_.found_in([tmp_path / "tables"]) == str(tmp_path / "tables" / "losses.npz")
    as_it_is = ListedTable("plain", "report", "", **public(url, minimize=False, average=False))
    assert load_table(str(as_it_is.fetch(tmp_path / "tables"))).rewards[:4].tolist() == [5.0, 1.0, 7.0, 2.0]


def test_what_cannot_be_downloaded_is_said(server, tmp_path):
    url, folder = server
    with pytest.raises(ValueError, match="losses cannot be had from http.*404"):
        ListedTable("losses", "report", "", **public(url)).fetch(tmp_path)
    (folder / "a table.csv").write_bytes(CSV + b"1,1,1\n")
    with pytest.raises(ValueError, match=r"a%20table.csv has changed: its SHA-256 is \w+, expected \w+"):
        ListedTable("losses", "report", "", **public(url)).fetch(tmp_path)
    assert not list(tmp_path.glob("*.npz"))


def test_the_command_downloads_what_is_missing(server, tmp_path, monkeypatch):
    url, folder = server
    (folder / "a table.csv").write_bytes(CSV)
    made = ListedTable("losses", "report", "", **public(url)).fetch(tmp_path / "first")
    own = [ListedTable("losses", "report", "", load_table(str(made)).digest, **public(url))]
    monkeypatch.setattr(tables, "listed_tables", lambda role: own)
    monkeypatch.delenv("ALEXP_TABLES", raising=False)
    monkeypatch.delenv("ALEXP_BOARD", raising=False)
    arguments = [
        "board",
        "--quick",
        "--tune",
        "--workers",
        "1",
        "--players",
        "random",
        "--cache",
        str(tmp_path / "cache"),
    ]
    done = CliRunner().invoke(app, [*arguments, "--download", str(tmp_path / "tables")])
    assert done.exit_code == 0, done.output
    assert "losses" in done.output
    assert (tmp_path / "tables" / "losses.npz").exists()


def test_listed_files_are_public_and_fixed():
    files = [one.download for role in ("tune", "report") for one in listed_tables(role) if one.download is not None]
    assert len(files) == 4
    for one in files:
        assert re.match(r"https://raw.githubusercontent.com/[^/]+/[^/]+/[0-9a-f]{40}/", one["url"])
        assert re.fullmatch(r"[0-9a-f]{64}", one["sha256"])


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
    runs = pd.DataFrame(rows | {"seed": 1})
    assert list(board.played(runs, board.COVERED, ["x"])["model"]) == ["n"]
    more = pd.concat([runs, runs[:1].assign(seed=2)])  # the other model has not played all seeds
    assert set(board.played(more.reset_index(drop=True), board.COVERED, ["x"])["model"]) == {"m"}


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


@pytest.mark.parametrize(("protocol", "heading"), [("coverage", "## Coverage"), ("memory", "## Memory")])
def test_a_page_has_what_was_played(folder, tmp_path, monkeypatch, protocol, heading):
    own = [listed(folder, "buchwald_z", coverage=True)]
    monkeypatch.setattr(tables, "listed_tables", lambda role: own)
    monkeypatch.setattr(memory, "SCENARIOS", [one for one in memory.SCENARIOS if one.table == ARYLATION])
    monkeypatch.delenv("ALEXP_TABLES", raising=False)
    monkeypatch.delenv("ALEXP_BOARD", raising=False)
    arguments = ["board", "--quick", "--tables", str(folder), "--out", str(tmp_path), "--workers", "1"]
    arguments += ["--protocols", protocol, "--players", "random", "--cache", str(tmp_path / "cache")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    page = (tmp_path / "board.md").read_text()
    known = [
        line for line in page.splitlines() if line in ("## Summed reward", "## Coverage", "## Plates", "## Memory")
    ]
    assert known == [heading]


def test_tuning_plays_the_protocols_that_are_named(folder, tmp_path, monkeypatch):
    own = [listed(folder, "hill"), listed(folder, "buchwald_z", coverage=True)]
    monkeypatch.setattr(tables, "listed_tables", lambda role: own)
    arguments = ["board", "--quick", "--tune", "--tables", str(folder), "--workers", "1", "--players", "random"]
    arguments += ["--cache", str(tmp_path / "cache")]
    done = CliRunner().invoke(app, [*arguments, "--protocols", "coverage"])
    assert done.exit_code == 0, done.output
    assert "buchwald_z" in done.output
    assert "hill" not in done.output
    wrong = CliRunner().invoke(app, [*arguments, "--protocols", "sums"])
    assert wrong.exit_code == 2
    assert "got 'sums'" in wrong.output
