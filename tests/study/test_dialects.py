"""Plates are written as the file that the study came from, and come back filled in, also from a German spreadsheet."""

import csv
import io

import openpyxl
import pytest
from typer.testing import CliRunner

import alexp
from alexp.cli.study import app
from alexp.study import load_study

YIELD = "Ausbeute (%)"
HEADER = ["Nr", "Lösungsmittel", "T (°C)", "Konz.", YIELD]  # the second is shown, and no feature
ROWS = [[f"R{k}", f"Öl {k}, wasserfrei", 90 + 15 * (k % 3), 1 / (k + 3), 57.1 if k == 3 else None] for k in range(16)]


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


def written(cell, decimal):
    return "" if cell is None else repr(cell).replace(".", decimal) if isinstance(cell, float) else str(cell)


def as_text(rows, separator, decimal, encoding):
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator="\r\n").writerows(
        [[written(cell, decimal) for cell in row] for row in rows]
    )
    return out.getvalue().encode(encoding)


def as_sheet(rows):
    book, out = openpyxl.Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(row)
    book.save(out)
    return out.getvalue()


TEXTS = [
    (";", ",", "cp1252"),
    (";", ",", "utf-8-sig"),
    ("\t", ",", "utf-16"),
    (",", ".", "utf-8"),
    (";", ".", "cp1250"),
]


@pytest.fixture
def lab(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ALEXP_STORAGE", raising=False)
    return tmp_path


def german(lab, encoding="cp1252"):
    (lab / "plan.csv").write_bytes(as_text([HEADER, *ROWS], ";", ",", encoding))
    run("create", "plan", "--candidates", "plan.csv", "--reward", YIELD, "--seed", 0)
    run("ask", "plan", "-n", 8, "--out", "plate.csv")
    return list(csv.reader(io.StringIO((lab / "plate.csv").read_text(encoding)), delimiter=";"))


def fill(lab, rows, results, encoding="cp1252", title=YIELD):
    """Write results into a plate, and save it as a German Excel does: Windows-1252, rounded to nine digits."""
    place = rows[0].index(title)
    for row, result in zip(rows[1:], results, strict=True):
        row[place] = result
    rounded = [[cell[:11] if cell.startswith("0,") else cell for cell in row] for row in rows]
    (lab / "filled.csv").write_bytes(as_text(rounded, ";", ",", encoding))


@pytest.mark.parametrize(("separator", "decimal", "encoding"), TEXTS)
def test_a_plate_is_written_as_the_file_was_and_comes_back(lab, separator, decimal, encoding):
    (lab / "plan.csv").write_bytes(as_text([HEADER, *ROWS], separator, decimal, encoding))
    table = alexp.Table.read("plan.csv", reward=YIELD, encoding="cp1250" if encoding == "cp1250" else None)
    alexp.create_study(table, name="plan", random_state=0).close()
    assert "8 trials written" in run("ask", "plan", "-n", 8, "--out", "plate.csv")
    data = (lab / "plate.csv").read_bytes()
    marks = {"utf-8-sig": b"\xef\xbb\xbf", "utf-16": b"\xff\xfe"}
    assert data.startswith(marks.get(encoding, b"trial"))
    rows = list(csv.reader(io.StringIO(data.decode(encoding), newline=""), delimiter=separator))
    assert rows[0] == ["trial", *HEADER[:-1], YIELD], "one column of results, named as in the file"
    for row in rows[1:]:
        nr, solvent, celsius, concentration, _ = ROWS[int(row[1][1:])]
        assert row[1:4] == [nr, solvent, str(celsius)]
        assert row[4:] == [repr(concentration).replace(".", decimal), ""]
    values = [50.5 + k for k in range(8)]
    for row, value in zip(rows[1:], values, strict=True):
        row[-1] = repr(value).replace(".", decimal)
    (lab / "filled.csv").write_bytes(as_text([rows[0], *rows[:0:-1]], separator, decimal, encoding))
    assert "told 8 rewards; 9 in all, 0 pending" in run("tell", "plan", "filled.csv")
    assert load_study("plan").algorithm.log.reward.tolist() == [57.1, *values]


def test_a_plate_of_a_workbook(lab):
    (lab / "plan.xlsx").write_bytes(as_sheet([HEADER, *ROWS]))
    run("create", "plan", "--candidates", "plan.xlsx", "--reward", YIELD, "--seed", 0)
    run("ask", "plan", "-n", 3, "--out", "plate.xlsx")
    book = openpyxl.load_workbook("plate.xlsx")
    assert [cell.value for cell in book.active[1]] == ["trial", *HEADER]
    for row, value in enumerate([41.5, "failed", "33,5; 34,1"], 2):
        assert book.active.cell(row, 6).protection.locked is False
        assert isinstance(book.active.cell(row, 5).value, float)
        book.active.cell(row, 6).value = value
    book.save("filled.xlsx")
    assert "told 2 rewards, 1 failed; 4 in all, 0 pending" in run("tell", "plan", "filled.xlsx")


def test_a_plate_of_a_german_file_from_a_german_spreadsheet(lab):
    """Asked for, filled in, told; told again by accident; told with a typing error."""
    rows = german(lab, "utf-8-sig")
    results = ["57,1", "12", "0", "failed", "33,5; 34,1", "8,25", "61", "40,0"]
    fill(lab, rows, results)
    assert "told 7 rewards, 1 failed" in run("tell", "plan", "filled.csv")
    assert load_study("plan").counts["told"] == 9  # one was there, one has two measurements
    assert load_study("plan").counts["failed"] == 1
    before = load_study("plan").events()
    assert "told 0 rewards, 8 already known; 9 in all, 0 pending" in run("tell", "plan", "filled.csv")
    assert load_study("plan").events() == before
    fill(lab, rows, ["51,7", *results[1:]])
    said = run("tell", "plan", "filled.csv", code=1)
    assert (
        "filled.csv, line 2: trial 1 has the reward 57.1, the file says 51.7; to take the one of the file: --amend"
        in said
    )
    assert "1 amended" in run("tell", "plan", "filled.csv", "--amend")


def test_everything_wrong_in_a_file_is_said_at_once_with_the_remedy(lab):
    rows = german(lab)
    results = ["57,1", "n.d.", "< 5", "99 ± 2", "n/a", "", "tar", "40,0"]
    rows[1][2] = "Wasser"
    fill(lab, rows, results)
    said = run("tell", "plan", "filled.csv", code=1)
    assert [line.partition(",")[2][:9].strip(": ") for line in said.splitlines()[1:-1]] == [
        f"line {k}" for k in range(3, 9)
    ]
    for text in (
        "line 2: this trial has Lösungsmittel = Öl ",
        f"line 3: {YIELD} must be a number, or the word \"failed\", got 'n.d.'",
        "such as 'failed': --replace n.d.=failed",
        f"line 4: {YIELD} is '< 5', a bound and not a measurement: models would take any number in its place for one",
        "got '99 ± 2'; correct it, or say what to read in its place, such as '99': --replace '99 ± 2=99'",
        "line 6: ",
        "--replace n/a=failed",
        f"line 7: {YIELD} is empty; to take only the lines that have one: --partial",
        "--replace tar=failed",
        "nothing was written",
    ):
        assert text in said, said
    assert load_study("plan").counts["told"] == 1
    rows[1][2] = ROWS[int(rows[1][1][1:])][1]
    fill(lab, rows, results)
    swaps = ("--replace", "n.d.=failed", "--replace", "n/a=", "--replace", "99 ± 2=99", "--replace", "tar=failed")
    assert "line 4: " in run("tell", "plan", "filled.csv", "--partial", *swaps, code=1), "a bound stays refused"
    assert "told 4 rewards" in run("tell", "plan", "filled.csv", "--partial", *swaps, "--replace", "< 5=2,5")
    log = load_study("plan").algorithm.log
    assert sorted(one for one in log.reward if one == one) == [2.5, 40.0, 57.1, 57.1, 99.0]
    assert "must look like CELL=VALUE" in run("tell", "plan", "filled.csv", "--replace", "n.d.", code=1)


def test_results_in_a_column_of_any_name(lab):
    rows = german(lab)
    fill(lab, rows, [str(k) for k in range(8)])
    rows[0][-1] = "Yield"
    (lab / "filled.csv").write_bytes(as_text(rows, ";", ",", "cp1252"))
    said = run("tell", "plan", "filled.csv", code=1)
    assert f"needs a column '{YIELD}'. It has" in said
    assert "say which one holds the results: --reward ..." in said
    assert "needs a column 'yeild'; did you mean 'Yield'?" in run(
        "tell", "plan", "filled.csv", "--reward", "yeild", code=1
    )
    assert "told 8 rewards" in run("tell", "plan", "filled.csv", "--reward", "Yield")
    run("ask", "plan", "-n", 1)
    for title in (YIELD, "reward"):  # that of the study, or the usual one
        (lab / "one.csv").write_text(f"trial;{title}\n9;5,5\n", encoding="cp1252")
        assert "told" in run("tell", "plan", "one.csv")
    (lab / "one.csv").write_text(f"trial;{YIELD};reward\n9;5,5;6\n", encoding="cp1252")
    assert f"has columns '{YIELD}' and 'reward', both with results" in run("tell", "plan", "one.csv", code=1)


def test_a_study_that_does_not_know_its_column_of_results(lab):
    """As in studies of 1.0.0: the column was left out, and is filled in in place of the one named reward."""
    (lab / "plan.csv").write_bytes(as_text([HEADER, *ROWS], ";", ",", "cp1252"))
    run("create", "plan", "--candidates", "plan.csv", "--ignore", YIELD, "--seed", 0)
    run("ask", "plan", "-n", 4, "--where", "Nr != 'R3'", "--out", "plate.csv")
    rows = list(csv.reader((lab / "plate.csv").open(encoding="cp1252"), delimiter=";"))
    assert rows[0] == ["trial", *HEADER[:-1], "reward"], "a column that is blank for all of them"
    old = [["trial", *HEADER, "reward"], *([*row[:5], "", ""] for row in rows[1:])]
    fill(lab, old, ["1,5", "2,5", "3,5", "4,5"])
    said = run("tell", "plan", "filled.csv", code=1)
    assert said.count("line") == 1
    assert (
        f"the results seem to be in '{YIELD}', and 'reward' is empty; say which column holds them: --reward '{YIELD}'"
        in said
    )
    assert "told 4 rewards" in run("tell", "plan", "filled.csv", "--reward", YIELD)


def test_names_that_the_encoding_lacks(lab):
    """Candidates that were added later may need more than Windows-1252: the plate is then UTF-8, with a mark."""
    german(lab)
    more = [["S1", "DMF", 95, 0.5], ["S2 γ", "Öl", 100, 0.5]]
    (lab / "more.csv").write_bytes(as_text([HEADER[:-1], *more], ";", ",", "utf-8"))
    run("add", "plan", "more.csv")
    run("ask", "plan", "-n", 9, "--out", "all.csv")
    data = (lab / "all.csv").read_bytes()
    assert data.startswith(b"\xef\xbb\xbf")
    filled = data.decode("utf-8-sig").replace(";\n", ";7,5\n")
    (lab / "filled.csv").write_text(filled, encoding="utf-8")
    assert "told 9 rewards" in run("tell", "plan", "filled.csv")
