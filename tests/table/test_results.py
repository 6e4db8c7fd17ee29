"""The column of results of a table: no feature, and what is filled in there counts as measured."""

import numpy as np
import pytest

import alexp
from alexp.table import FileError, Table
from tests.table.cases import text, workbook

COLUMN = "Ausbeute (%)"


def semicolons(*yields, encoding="cp1252"):
    lines = [f"{k};{'DMF' if k % 2 else 'BuOAc'};{90 + k},5;{cell}" for k, cell in enumerate(yields)]
    return text(f"Nr;Lösungsmittel;T (°C);{COLUMN}", *lines, encoding=encoding)


def test_results_are_read_and_the_column_is_no_feature():
    table = Table.from_bytes(semicolons("", "57,1", "", '"61; 63,5"', "", "", ""), "t.csv", reward=COLUMN)
    assert table.results == [(1, 57.1), (3, 61.0), (3, 63.5)]
    assert list(table.domain.candidates) == ["Nr", "Lösungsmittel", "T (°C)"]
    assert table.understood[COLUMN].kind == "result"
    assert table.understood[COLUMN].becomes == "3 results, taken in as measured"
    opt = alexp.EvidenceMixture(table, random_state=0)
    assert opt.trials_dataframe()[["index", "reward"]].to_numpy().tolist() == [[1, 57.1], [3, 61.0], [3, 63.5]]
    same = alexp.EvidenceMixture.from_dict(opt.to_dict())
    assert same.n_told == 3
    assert same.ask().index == opt.ask().index not in (1, 3)


def test_a_column_that_is_not_filled_in_yet_is_none_of_the_candidates():
    table = Table.from_bytes(semicolons(*[""] * 5), "t.csv", reward=COLUMN)
    assert (table.results, table.understood[COLUMN].becomes) == ([], "the result, none yet")
    assert alexp.EvidenceMixture(table, random_state=0).n_told == 0


def test_what_is_no_number_is_refused_with_the_remedy():
    with pytest.raises(
        FileError, match=r"line 3, column 'Ausbeute \(%\)': 'n\.d\.' is no result.*replace=\{'n\.d\.': ''\}"
    ):
        Table.from_bytes(semicolons("57,1", "n.d.", ""), "t.csv", reward=COLUMN)
    with pytest.raises(FileError, match=r"'failed' is not a number; correct it, or say replace=\{'failed': ''\}"):
        Table.from_bytes(semicolons("57,1", "failed", ""), "t.csv", reward=COLUMN)
    table = Table.from_bytes(semicolons("57,1", "n.d.", ""), "t.csv", reward=COLUMN, replace={"n.d.": ""})
    assert table.results == [(0, 57.1)]
    with pytest.raises(FileError, match="has no column 'Ausbeute'; did you mean 'Ausbeute"):
        Table.from_bytes(semicolons("57,1", ""), "t.csv", reward="Ausbeute")


def test_results_of_lines_that_are_left_out_are_counted():
    data = text("id;x;y", "a;1;5", "b;;6", "c;3;", "d;4;7")
    table = Table.from_bytes(data, "t.csv", reward="y", missing="drop")
    assert table.results == [(0, 5.0), (2, 7.0)]
    assert table.understood["y"].becomes == "2 results, taken in as measured; 1 of lines that were left out"


def test_a_column_called_reward_is_taken_where_that_is_said():
    data = text("id;x;reward", "a;1;5", "b;2;", "c;3;")
    with pytest.raises(
        FileError, match="must not have a column 'reward'.*rename it, or say that it has the results: reward="
    ):
        Table.from_bytes(data, "t.csv")
    assert Table.from_bytes(data, "t.csv", reward="reward").results == [(0, 5.0)]


def test_results_outside_the_range_are_refused_before_anything_happens():
    table = Table.from_bytes(semicolons("157", "", ""), "t.csv", reward=COLUMN)
    with pytest.raises(ValueError, match=r"line 2|'0', column 'Ausbeute \(%\)': reward"):
        alexp.EvidenceMixture(table, reward_range=(0, 100))
    with pytest.raises(ValueError, match="objectives 'a', 'b' are measured; leave that column out"):
        alexp.EvidenceMixture(table, objectives={"a": "maximize", "b": "minimize"})


def test_a_table_that_is_an_old_campaign_keeps_its_results():
    old = Table.from_bytes(semicolons("57", "61", "48", "52", "66", "71"), "old.csv", reward=COLUMN)
    new = Table.from_bytes(semicolons(*[""] * 6), "new.csv", reward=COLUMN)
    assert "6 results; 6 of them of candidates" in new.with_memory({"old": old}, COLUMN).understood.remarks[-1]


def test_later_candidates_bring_their_results():
    opt = alexp.EvidenceMixture(Table.from_bytes(semicolons("57,1", "", ""), "t.csv", reward=COLUMN), random_state=0)
    more = text(f"Nr;Lösungsmittel;T (°C);{COLUMN}", "8;DMF;70,5;", "9;DMF;80,5;44", encoding="cp1252")
    assert opt.add_candidates(Table.from_bytes(more, "more.csv", reward=COLUMN)) == [3, 4]
    assert opt.trials_dataframe()[["index", "reward"]].to_numpy().tolist() == [[0, 57.1], [4, 44.0]]


@pytest.mark.parametrize(
    ("data", "known"),
    [
        (semicolons("1", "2"), ("text", ";", ",", "cp1252")),
        (semicolons("1", "2", encoding="utf-8-sig"), ("text", ";", ",", "utf-8-sig")),
        (text("a,b", "1,0.5", "2,0.7", encoding="utf-16"), ("text", ",", ".", "utf-16")),
        (text("a;b", "1;2", "2;3"), ("text", ";", ",", "utf-8")),
        (text("a;b", "1;0.5", "2;0.7"), ("text", ";", ".", "utf-8")),
        (text("a\tb", "1\t0,5", "2\t0,7"), ("text", "\t", ",", "utf-8")),
        (workbook([["a", "b"], [1, 0.5], [2, 0.7]]), ("xlsx", ",", ".", "utf-8")),
    ],
)
def test_a_table_knows_how_its_file_is_written(data, known):
    dialect = Table.from_bytes(data, "t").dialect
    assert (dialect.kind, dialect.separator, dialect.decimal, dialect.encoding) == known


def test_a_run_with_results_is_the_run_in_which_they_were_observed():
    table = Table.from_bytes(semicolons("57,1", "", "61", "", "", "40"), "t.csv", reward=COLUMN)
    plain = Table.from_bytes(semicolons(*[""] * 6), "t.csv", reward=COLUMN)
    one, other = (alexp.EvidenceMixture(each, random_state=3) for each in (table, plain))
    for index, reward in table.results:
        other.observe(index, reward)
    np.testing.assert_array_equal(one.probabilities, other.probabilities)
    assert [trial.index for trial in one.ask(3)] == [trial.index for trial in other.ask(3)]
