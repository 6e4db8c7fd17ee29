"""Plates as .xlsx: written to be filled in, changed as a spreadsheet would, and read back."""

import openpyxl
import pandas as pd
import pytest
from typer.testing import CliRunner

import alexp
from alexp.cli.study import app
from alexp.study import load_study
from alexp.study.sheets import WELLS, well

N = 30


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def lab(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ALEXP_STORAGE", raising=False)
    table = pd.DataFrame({"name": [f"=mol+{i}" for i in range(N)], "code": [f"{i:03d}" for i in range(N)],
                          "mass": [100.0 + i / 3 for i in range(N)], "n": range(N)})  # fmt: skip
    table.to_csv("mols.csv", index=False)
    pd.DataFrame({"a": [i % 7 for i in range(N)], "b": [i / N for i in range(N)]}).to_csv("all.csv", index=False)
    run("create", "s", "--candidates", "mols.csv", "--features", "all=all.csv", "--seed", 0)
    return tmp_path


def fill(path, rewards, column="reward"):
    book = openpyxl.load_workbook(path)
    sheet = book.active
    at = [cell.value for cell in sheet[1]].index(column) + 1
    for row, reward in enumerate(rewards, 2):
        sheet.cell(row, at).value = reward
    book.save(path)


def test_a_plate_goes_out_and_comes_back(lab):
    assert "8 trials written to plate.xlsx" in run("ask", "s", "-n", 8, "--plate-map", 96, "--out", "plate.xlsx")
    sheet = openpyxl.load_workbook("plate.xlsx").active
    assert [cell.value for cell in sheet[1]] == ["trial", "well", "name", "code", "mass", "n", "reward"]
    assert [row[1].value for row in sheet.iter_rows(2)] == [f"A{k}" for k in range(1, 9)]
    assert (sheet.freeze_panes, sheet.protection.sheet, sheet.max_row) == ("A2", True, 9)
    for row in sheet.iter_rows(2):
        assert [cell.protection.locked for cell in row] == [True] * 6 + [False]
        assert [cell.data_type for cell in row[:6]] == ["n", "s", "s", "s", "n", "n"], "a name became a formula"
    fill("plate.xlsx", [10.5, 20, 0, -3.25, None, 7, 8, 9])
    assert "reward is empty" in run("tell", "s", "plate.xlsx", code=1)
    assert load_study("s").counts["told"] == 0
    assert "told 7 rewards" in run("tell", "s", "plate.xlsx", "--partial")
    assert load_study("s").algorithm.log.reward[:4].tolist() == [10.5, 20.0, 0.0, -3.25]
    fill("plate.xlsx", [10.5, 20, 0, -3.25, 4, 7, 8, 9])
    assert "told 1 rewards, 7 already known" in run("tell", "s", "plate.xlsx")
    run("ask", "s", "-n", 2)
    assert "2 pending trials written" in run("pending", "s", "--out", "again.xlsx")


def test_what_is_wrong_names_file_line_and_cell(lab):
    run("ask", "s", "-n", 3, "--out", "plate.xlsx")
    fill("plate.xlsx", [1.0, "n/a", 2.0])
    said = run("tell", "s", "plate.xlsx", code=1)
    assert "plate.xlsx, line 3: reward must be a number, or the word \"failed\", got 'n/a'" in said
    fill("plate.xlsx", [1.0, 2.0, 3.0])
    fill("plate.xlsx", ["=mol+0"], "name")
    assert "the formula '=mol+0' has no stored value" in run("tell", "s", "plate.xlsx", code=1)
    fill("plate.xlsx", ["wrong"], "name")
    assert "but the line says 'wrong'" in run("tell", "s", "plate.xlsx", code=1)
    (lab / "broken.xlsx").write_bytes((lab / "plate.xlsx").read_bytes()[:200])
    assert "broken.xlsx" in run("tell", "s", "broken.xlsx", code=1)
    assert "exists and may hold rewards" in run("ask", "s", "--out", "plate.xlsx", code=1)
    assert "plates have 24, 48, 96, 384 wells, got 97" in run("ask", "s", "--plate-map", 97, code=1)
    assert "25 trials do not fit on a plate of 24" in run("ask", "s", "-n", 25, "--plate-map", 24, code=1)
    assert load_study("s").counts == {"trials": 3, "told": 0, "pending": 3, "abandoned": 0}


def test_numbers_of_a_sheet_have_no_decimal_sign(lab):
    run("ask", "s", "-n", 3, "--out", "plate.xlsx")
    fill("plate.xlsx", [71.25, "55,5; 56,1", "failed"])
    run("tell", "s", "plate.xlsx")
    log = load_study("s").algorithm.log
    assert [log.measurements(trial) for trial in range(3)] == [(71.25,), (55.5, 56.1), ()]


def test_results_typed_as_percentages_are_what_the_sheet_shows(lab):
    """Excel keeps a typed "71.2%" as 0.712, and shows it as it was typed."""
    run("ask", "s", "-n", 3, "--out", "plate.xlsx")
    fill("plate.xlsx", [0.712, 55.5, 0.07])
    book = openpyxl.load_workbook("plate.xlsx")
    header = [cell.value for cell in book.active[1]]
    for line in (2, 4):
        book.active.cell(line, header.index("reward") + 1).number_format = "0.00%"
    book.save("plate.xlsx")
    run("tell", "s", "plate.xlsx")
    assert load_study("s").algorithm.log.reward[:3].tolist() == [71.2, 55.5, 7.0]


def test_a_plate_map_in_csv(lab):
    run("ask", "s", "-n", 7, "--plate-map", 24, "--out", "plate.csv")
    plate = pd.read_csv("plate.csv", dtype=str)
    assert plate["well"].tolist() == ["A1", "A2", "A3", "A4", "A5", "A6", "B1"]
    plate.assign(reward=1.0).to_csv("plate.csv", index=False)
    assert "told 7 rewards" in run("tell", "s", "plate.csv")


def test_a_plate_is_what_one_ask_returned(tmp_path):
    """Also where expired trials were given up, or handed out again, by the same call."""
    table = alexp.Table.from_columns({"name": [f"c{k}" for k in range(20)], "x": list(range(20))})
    for expired, plates in (("abandon", [3, 3, 3]), ("offer", [0, 0, 3])):
        study = alexp.create_study(table, name=expired, storage=tmp_path / "s.db", expired=expired, random_state=0)
        study.ask(3, lease=1e-6)
        study.tell(0, 5.0)
        study.ask(3)
        study.close()
        assert [trial.plate for trial in load_study(expired, tmp_path / "s.db").view().pending] == plates


def test_wells_are_distinct_and_rows_are_letters():
    for size, (rows, columns) in WELLS.items():
        names = [well(k, size) for k in range(size)]
        assert len(set(names)) == size == rows * columns
        assert names[-1] == f"{chr(64 + rows)}{columns}"
