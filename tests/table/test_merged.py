"""Merged cells of workbooks: every cell has what its range has, and the preview says so."""

import io
import re
import zipfile

import openpyxl
import pytest

from alexp.table import FileError, Table
from alexp.table.files import lines_of, packed_cells


def book(rows, *ranges):
    made = openpyxl.Workbook()
    for row in rows:
        made.active.append(row)
    for one in ranges:
        made.active.merge_cells(one)
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def blocks(n=600, ligands=("XPhos", "PPh3", "SPhos")):
    size = n // len(ligands)
    rows = [["Ligand", "T (°C)"]]
    rows += [[ligands[k // size] if k % size == 0 else None, 60 + 10 * (k % 7)] for k in range(n)]
    return book(rows, *(f"A{2 + size * j}:A{1 + size * (j + 1)}" for j in range(len(ligands))))


def test_a_ligand_that_is_merged_over_blocks_is_a_feature():
    table = Table.from_bytes(blocks(), "reactions.xlsx")
    assert table.understood["Ligand"].kind == "words"
    assert table.understood["Ligand"].becomes == "a component with 3 words"
    assert table.domain.candidates["Ligand"].tolist() == ["XPhos"] * 200 + ["PPh3"] * 200 + ["SPhos"] * 200
    assert table.understood.remarks == ("3 merged ranges of cells: every cell has the text or number of its range",)


def test_the_same_column_without_its_merged_ranges_is_refused_and_not_taken_for_a_label():
    rows = [["Ligand", "T (°C)"], *([("XPhos", "PPh3", "SPhos")[k // 200] if k % 200 == 0 else None, 60 + 10 * (k % 7)]
                                    for k in range(600))]  # fmt: skip
    with pytest.raises(FileError, match=r"column 'Ligand': 597 of 600 cells are blank; if models do not need it"):
        Table.from_bytes(book(rows), "reactions.xlsx")


@pytest.mark.parametrize(
    ("rows", "ranges", "options", "cells"),
    [
        ([["a", "b"], [1, 2], [None, 3], [5, 7]], ["A2:A3"], {}, {"a": [1, 1, 5], "b": [2, 3, 7]}),
        ([["a", "b", "c"], [1, None, 2], [3, 4, 5]], ["A2:B2"], {}, {"a": [1, 3], "b": [1, 4]}),
        # a title over all columns, and a name that is merged downwards
        ([["Run 7", None, None], ["a", "b", "c"], [1, 2, 3], [2, 3, 5]], ["A1:C1"], {"header": 2}, {"b": [2, 3]}),
        ([["a", "Conditions", None], [None, "b", "c"], [1, 2, 3], [2, 3, 5]], ["A1:A2", "B1:C1"], {"header": 2},
         {"a": [1, 2], "c": [3, 5]}),
    ],
)  # fmt: skip
def test_ranges_are_filled_below_the_names(rows, ranges, options, cells):
    table = Table.from_bytes(book(rows, *ranges), "t.xlsx", **options)
    assert {name: table.domain.candidates[name].tolist() for name in cells} == cells


def test_names_and_headings_are_not_filled_into_candidates():
    data = book([["a", "b"], [None, 2], [3, 4]], "A1:A2")  # the name reaches into the first line
    with pytest.raises(FileError, match="line 2, column 'a': the cell is blank"):
        Table.from_bytes(data, "t.xlsx")
    data = book([["a", "b"], ["x", "y"], ["Block 2", None], ["z", "w"]], "A3:B3")
    with pytest.raises(FileError, match="line 3, column 'b': the cell is blank"):
        Table.from_bytes(data, "t.xlsx")


def rewritten(data, change):
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, change(content) if name.startswith("xl/worksheets/") else content)
    return out.getvalue()


def test_ranges_that_overlap_cost_no_more_than_the_cells_there_are():
    many = b'<mergeCell ref="A2:B60"/>' * 5000
    data = rewritten(
        book([["a", "b", "c"], *([1, None, k] for k in range(59))], "A2:A3"),
        lambda xml: re.sub(rb"<mergeCell ref=[^>]*>", many, xml),
    )
    with pytest.raises(FileError, match="merged ranges that overlap"):
        Table.from_bytes(data, "t.xlsx")


def test_ranges_behind_many_bytes_are_found():
    """The list of ranges lies behind all cells; the sheet is read piece by piece."""
    long = "x" * 30_000
    rows = [["a", "b"], *([k % 50 if k % 2 == 0 else None, f"{long}{k}"] for k in range(100))]
    found = lines_of(book(rows, *(f"A{2 + k}:A{3 + k}" for k in range(0, 100, 2))), "t.xlsx")
    assert [row[0] for _, row in found.rows] == [k // 2 * 2 % 50 for k in range(100)]
    assert found.remarks[0].startswith("50 merged ranges")


def test_sizes_of_damaged_files_are_zero_and_other_errors_are_not_hidden(monkeypatch):
    assert packed_cells(b"PK\x03\x04 and nothing else") == 0
    assert packed_cells(b"PAR1 and nothing else") == 0
    assert packed_cells(blocks(30)) > 60

    def broken(*_):
        raise KeyError("a defect")

    monkeypatch.setattr(zipfile.ZipFile, "infolist", broken)
    with pytest.raises(KeyError, match="a defect"):
        packed_cells(blocks(30))
