"""All problems of a file are named at once, each with what settles it."""

import pickle
import shlex

import openpyxl
import pytest
from typer.testing import CliRunner

from alexp.cli.study import app
from alexp.table import FileError, Table, remedies

MESSY = "\n".join([
    "Screening im März;;;;;",
    "Nr;Ligand;T (°C);Loading;Datum;Ausbeute (%)",
    *(f"{k};{('PPh3', 'XPhos')[k % 2]};{90 + k};{'' if k == 4 else '2,5'};{k:02d}.03.2026;{'57,1' if k == 3 else ''}"
      for k in range(1, 11)),
]).encode("cp1252")  # fmt: skip


def test_all_problems_are_named_in_one_run(tmp_path):
    (tmp_path / "messy.csv").write_bytes(MESSY)
    with pytest.raises(FileError) as error:
        Table.read(tmp_path / "messy.csv")
    said = str(error.value).replace(str(tmp_path / "messy.csv"), "messy.csv")
    assert said.startswith("messy.csv: 4 problems:\n- messy.csv, line 1: only one of 6 columns has a name")
    for part in ("header=2", "'01.03.2026' is a date", "ignore=['Datum']", "9 of 10 cells are blank",
                 "reward='Ausbeute (%)'", "line 6, column 'Loading': the cell is blank", "missing='drop'"):  # fmt: skip
        assert part in said
    assert said.index("missing='drop'") < said.index("missing='median'")
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


def test_the_first_remedy_of_each_problem_reads_the_file(tmp_path, monkeypatch):
    """In the words of the command line, pasted behind the command."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "messy.csv").write_bytes(MESSY)
    with pytest.raises(FileError) as error:
        Table.read("messy.csv")
    words = []
    for problem in error.value.each:
        first = next(part for part in problem.args if isinstance(part, remedies.Remedy))
        words += shlex.split(remedies.on_the_command_line(first))
    assert words == ["--header", "2", "--ignore", "Datum", "--reward", "Ausbeute (%)", "--missing", "drop"]
    result = CliRunner().invoke(app, ["create", "s", "--candidates", "messy.csv", *words])
    assert result.exit_code == 0, result.output
    assert "added 1 results that the table has" in result.output


def test_problems_of_a_workbook_are_named_at_once(tmp_path):
    book = openpyxl.Workbook()
    for row in [["Run 7"], ["name", "T", "made", "x"], [None, "°C", None, None], ["a", 60, "1 March 2026", "1,5"],
                ["b", 70, "2 March 2026", "tar"], ["c", 80, "3 March 2026", "2,5"],
                ["Mean", 70, None, None]]:  # fmt: skip
        book.active.append(row)
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(FileError) as error:
        Table.read(tmp_path / "t.xlsx")
    assert len(error.value.each) == 5
    for part in ("header=2", "skip=[3]", "skip=[7]", "ignore=['made']", "replace={'tar': ''}"):
        assert part in str(error.value)


def test_a_remedy_that_leaves_no_line_is_no_further_problem():
    with pytest.raises(FileError) as error:
        Table.from_bytes(b"a,b\n1\n", "t.csv")
    assert str(error.value).startswith("t.csv, line 2: 1 cells, but the header has 2")


def test_one_problem_is_said_alone():
    with pytest.raises(FileError) as error:
        Table.from_bytes(b"name,made,x\na,2026-03-01,1\nb,2026-03-02,2\n", "t.csv")
    assert str(error.value).startswith("t.csv, line 2, column 'made': '2026-03-01' is a date")


def test_descriptions_have_their_remedies_in_python():
    table = Table.from_bytes(b"name,x\na,1\nb,2\nc,4\n", "t.csv")
    with pytest.raises(FileError) as error:
        table.describe("d", "name,made\na,2026-03-01\nb,2026-03-02\nc,2026-03-03\n", file="d.csv")
    said = error.value.worded(remedies.on_the_command_line)
    assert "ignore=['made']" in said
    assert said.endswith("options of descriptions are keywords of Table.describe, in Python")


def test_words_of_the_doors():
    remedy = remedies.Remedy("missing", {"a b": "median"})
    assert remedies.in_python(remedy) == "missing={'a b': 'median'}"
    assert remedies.on_the_command_line(remedy) == "--missing 'a b=median'"
    assert remedies.in_json(remedy) == '"missing": {"a b": "median"}'
    open_one = remedies.Remedy("replace", {"<5": remedies.OPEN})
    assert remedies.in_python(open_one) == "replace={'<5': ...}"
    assert remedies.on_the_command_line(open_one) == "--replace '<5=...'"


def test_lines_with_too_few_cells_are_one_problem():
    lines = ["a;b", *(f"{k};{k * k}" if k % 3 else "a note" for k in range(1, 40))]
    with pytest.raises(FileError) as error:
        Table.from_bytes("\n".join(lines), "t.csv")
    assert len(error.value.each) == 1
    assert "skip=[4, 7, 10," in str(error.value)
