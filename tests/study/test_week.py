"""A week in a laboratory on the command line: from a workbook to the report, with all that goes wrong on the way."""

import csv
import itertools

import pytest
from typer.testing import CliRunner

from alexp.cli import app
from alexp.study import check, load_study

openpyxl = pytest.importorskip("openpyxl")

LIGANDS, SOLVENTS = ["XPhos", "SPhos", "dppf", "PPh3"], ["DMF", "DMAc", "Toluol"]
TITLES = ["Reaktion", "Ligand", "Lösungsmittel", "T (°C)", "Konz. (M)"]


def workbook(path, rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)


def reactions():
    made = itertools.product(LIGANDS, SOLVENTS, [90, 105, 120], ["0,1", "0,2"])
    return [TITLES, *([f"R{k:03d}", *one] for k, one in enumerate(made, 1))]


def fill_in(path, entries):
    """Write rewards into the plate as a chemist does; returns its lines by title."""
    book = openpyxl.load_workbook(path)
    titles, *lines = [[cell.value for cell in row] for row in book.active.iter_rows()]
    place = titles.index("reward") + 1
    for k, entry in enumerate(entries, 2):
        book.active.cell(k, place).value = entry
    book.save(path)
    return [dict(zip(titles, line, strict=True)) for line in lines]


@pytest.mark.filterwarnings("ignore:.*new here:UserWarning")
def test_a_week(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*words, code=0):
        result = CliRunner().invoke(app, ["study", *words], env={"COLUMNS": "400"})
        assert result.exit_code == code, result.output
        return result.output

    # Monday: the workbook is looked at, the study made, a plate asked for
    workbook("reaktionen.xlsx", reactions())
    said = run("create", "week", "--candidates", "reaktionen.xlsx", "--preview")
    assert "Konz. (M)      number  0,1      a number from 0.1 to 0.2 M; decimal commas" in said
    assert "no studies" in run("list")
    run("create", "week", "--candidates", "reaktionen.xlsx", "--range", "0", "100", "--seed", "1")
    said = run("ask", "week", "--where", "T < 9", code=1)
    assert "columns that are not one word have quotes: 'T (°C)', 'Konz. (M)'" in said
    limits = ["--where", "'T (°C)' <= 105 and Ligand != 'PPh3'", "--at-most", "Ligand=2"]
    run("ask", "week", "-n", "6", *limits, "--out", "plate.xlsx", "--worker", "Ada")
    plate = fill_in("plate.xlsx", ["71,2; 72,9; 70,8", "failed", "54,3", "61.0"])
    assert all(line["T (°C)"] <= 105 and line["Ligand"] != "PPh3" for line in plate)
    assert max([line["Ligand"] for line in plate].count(ligand) for ligand in LIGANDS) == 2

    # Tuesday: results come back from the sheet, with a slip, and by name
    said = run("tell", "week", "plate.xlsx", "--partial", code=1)
    assert "plate.xlsx, line 5, column 'reward': the column has decimal commas ('71,2') and decimal points" in said
    fill_in("plate.xlsx", ["71,2; 72,9; 70,8", "failed", "54,3", "61,0"])
    assert "told 3 rewards, 1 failed; 5 in all, 2 pending" in run("tell", "week", "plate.xlsx", "--partial")
    assert "told 0 rewards, 4 already known" in run("tell", "week", "plate.xlsx", "--partial")
    (tmp_path / "rest.csv").write_text(
        f"Reaktion;reward;note\n{plate[4]['Reaktion']};148;trübe\n{plate[5]['Reaktion']};38,5;\n", encoding="cp1252"
    )
    assert "rest.csv, line 2: reward must lie within the reward_range of 0 to 100, got 148" in run(
        "tell", "week", "rest.csv", code=1
    )
    (tmp_path / "rest.csv").write_bytes((tmp_path / "rest.csv").read_bytes().replace(b"148", b"48,5"))
    assert "told 2 rewards; 7 in all, 0 pending" in run("tell", "week", "rest.csv")

    # Wednesday: new compounds arrive, and are proposed
    workbook("neu.xlsx", [TITLES, ["R073", "BINAP", "DMF", 105, "0,1"], ["R074", "XPhos", "DMF", 110, "0,15"]])
    assert "Ligand         words   BINAP    words, new here: 'BINAP'" in run("add", "week", "neu.xlsx")
    assert "neu.xlsx, line 2: the id 'R073' is candidate 72 already" in run("add", "week", "neu.xlsx", code=1)
    run("ask", "week", "-n", "2", "--where", "Reaktion = 'R073' or Reaktion = 'R074'", "--out", "mittwoch.xlsx")
    fill_in("mittwoch.xlsx", ["80,1", "79"])
    assert "told 2 rewards; 9 in all, 0 pending" in run("tell", "week", "mittwoch.xlsx")

    # Thursday: a number was wrong
    assert "trial 2: 54.3 became 45.3" in run("amend", "week", "2", "45.3")

    # Friday: export, report, a second study that begins with what is known
    run("export", "week", "--out", "week.csv")
    with open("week.csv", encoding="utf-8-sig", newline="") as file:
        exported = list(csv.DictReader(file))
    assert [line["state"] for line in exported].count("failed") == 1
    assert {line["Reaktion"] for line in exported} >= {"R073", "R074"}
    assert [line["note"] for line in exported if line["note"]] == ["trübe"]
    assert [line["reward"] for line in exported if line["trial"] == "2"] == ["45.3"]
    workbook("alle.xlsx", [*reactions(), ["R073", "BINAP", "DMF", 105, "0,1"], ["R074", "XPhos", "DMF", 110, "0,15"]])
    run("create", "next", "--candidates", "alle.xlsx", "--range", "0", "100")
    assert "added 9 observations; 9 rewards in all" in run("observe", "next", "week.csv")
    run("report", "week", "--out", "week.html")
    page = (tmp_path / "week.html").read_text(encoding="utf-8")
    assert "added 2 candidates" in page
    assert "amended to 45.3" in page
    assert "trübe" in page
    assert "best: " in run("status", "week")

    for name in ("week", "next"):
        assert check(name, "sqlite:///alexp.db").problems == []
        study = load_study(name, "sqlite:///alexp.db")
        assert study.replayed().algorithm.to_dict() == study.algorithm.to_dict()
