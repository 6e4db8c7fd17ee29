"""Blank cells: which columns are looked at, what is refused, and candidates that are proposed only where named."""

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp.table import FileError, Table


def reactions(n=40, blank=(3, 7, 20)):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": range(n), "loading": rng.uniform(1, 10, n), "ligand": rng.choice(["a", "b", "c"], n)})
    frame.loc[list(blank), "loading"] = np.nan
    return frame


# -- which columns are looked at -------------------------------------------------------------------------------


def test_a_column_with_blanks_is_no_label_because_its_few_cells_differ():
    frame = pd.DataFrame({"id": range(9), "note": ["one", None, None, "two", None, None, "three", "four", "five"]})
    with pytest.raises(FileError, match="row 1, column 'note': the cell is blank"):
        Table.from_frame(frame.assign(x=range(9)), id="id")
    with pytest.raises(FileError, match="column 'note': 6 of 9 cells are blank"):
        Table.from_frame(frame.assign(x=range(9), note=["one", "two", "three", *[None] * 6]), id="id")
    table = Table.from_frame(frame.assign(x=range(9)), id="id", ignore=["note"])
    assert table.understood["note"].kind == "label"
    dropped = Table.from_frame(frame.assign(x=range(9)), id="id", missing="drop")
    assert (dropped.n_candidates, dropped.understood["note"].kind) == (5, "label")  # all that are left differ


def test_labels_with_blank_cells_are_refused_unless_ignored_by_name():
    names = [f"name {k}" if k else None for k in range(700)]
    frame = pd.DataFrame({"x": range(700), "supplier": names})
    with pytest.raises(
        FileError, match=r"column 'supplier': the cell is blank, as 1 of the column.*ignore=\['supplier'\]"
    ):
        Table.from_frame(frame)
    for options in ({"ignore": ["supplier"]}, {"kinds": {"supplier": "label"}}, {"missing": "drop"}):
        assert Table.from_frame(frame, **options).understood["supplier"].kind == "label"


def test_columns_without_a_cell_and_ids_are_as_before():
    frame = reactions(blank=()).assign(result=None)
    understood = Table.from_frame(frame, id="id").understood
    assert understood["result"].becomes == (
        "shown, not a feature; all cells are blank; if it is for results, say reward='result'"
    )
    with pytest.raises(FileError, match="the id is blank"):
        Table.from_frame(pd.DataFrame({"id": ["a", None, "c"], "x": [1, 2, 3]}))


# -- a column that is mostly blank -----------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["refuse", "median", "drop", {"loading": "median"}])
def test_a_column_that_is_mostly_blank_has_to_be_named(missing):
    frame = reactions(blank=()).assign(**{"Ausbeute (%)": [57.1, 61.0, *[None] * 38]})
    with pytest.raises(FileError) as error:
        Table.from_frame(frame, id="id", missing=missing)
    assert str(error.value) == (
        "frame, column 'Ausbeute (%)': 38 of 40 cells are blank; if it has the results, say reward='Ausbeute (%)'; if "
        "models do not need it, leave it out: ignore=['Ausbeute (%)']; otherwise say what to do with the blank cells "
        "of this column: missing={'Ausbeute (%)': 'median'}"
    )


def test_a_column_with_many_blanks_may_be_that_of_the_results():
    frame = reactions(blank=()).assign(result=[*np.arange(28.0), *[None] * 12], few=[None, *np.arange(39.0)])
    with pytest.raises(FileError) as error:
        Table.from_frame(frame, id="id")
    said = str(error.value)
    assert "say what to do: reward='result' (if this column has the results), missing='drop'" in said
    assert "reward='few'" not in said


def test_the_three_remedies_of_a_mostly_blank_column():
    frame = reactions(blank=()).assign(**{"Ausbeute (%)": [57.1, 61.0, *[None] * 38]})
    table = Table.from_frame(frame, id="id", reward="Ausbeute (%)")
    assert table.results == [(0, 57.1), (1, 61.0)]
    assert "Ausbeute (%)" not in table.domain.candidates
    assert Table.from_frame(frame, id="id", ignore=["Ausbeute (%)"]).understood["Ausbeute (%)"].kind == "label"
    named = Table.from_frame(frame, id="id", missing={"Ausbeute (%)": "median"})
    assert named.understood["Ausbeute (%)"].kind == "number"
    assert len(named.withheld) == 38


def test_blank_cells_by_column():
    frame = reactions().assign(t=[None, *range(39)], word=["x", None, *["y"] * 38])
    table = Table.from_frame(frame, id="id", missing={"loading": "drop", "word": "leave out", "*": "median"})
    assert table.n_candidates == 37
    assert table.understood["word"].kind == "label"
    assert table.withheld == [0]
    with pytest.raises(FileError, match="column 't': the cell is blank"):
        Table.from_frame(frame, id="id", missing={"loading": "drop", "word": "leave out"})
    with pytest.raises(FileError, match="has no column 'lading'"):
        Table.from_frame(frame, id="id", missing={"lading": "drop"})


# -- candidates with a number that was filled in ---------------------------------------------------------------


def test_a_filled_in_candidate_is_proposed_only_where_it_is_named():
    table = Table.from_frame(reactions(), id="id", missing="median")
    assert table.withheld == [3, 7, 20]
    remark = "3 candidates with numbers filled in: proposed only where `available` names them"
    assert remark in table.understood.remarks
    opt = alexp.EvidenceMixture(table, random_state=0)
    assert {trial.index for trial in opt.ask(37)} == set(range(40)) - {3, 7, 20}
    with pytest.raises(ValueError, match="every candidate has been measured, has a number that was filled in or is"):
        opt.ask()
    assert opt.ask(available=[7]).index == 7
    again = alexp.EvidenceMixture(table, random_state=0)
    assert {trial.index for trial in again.ask(3, where="ligand in ('a', 'b', 'c')")}.isdisjoint({3, 7, 20})
    with pytest.raises(ValueError, match="holds for none"):
        again.ask(where="id = '7'")
    assert again.policy()[[3, 7, 20]].tolist() == [0.0] * 3


def test_it_counts_for_the_models_and_can_be_recommended_once_it_was_measured():
    table = Table.from_frame(reactions(), id="id", missing="median")
    opt, plain = (alexp.EvidenceMixture(table, random_state=0) for _ in range(2))
    for k in range(8):
        for run in (opt, plain):
            run.observe(k + 8, float(k))
    assert opt.best().index not in table.withheld
    opt.observe(7, 1000.0)
    assert opt.best().index == 7
    assert not np.array_equal(opt.probabilities, plain.probabilities)


def test_a_saved_run_withholds_them_as_well():
    table = Table.from_frame(reactions(), id="id", missing="median")
    opt = alexp.EvidenceMixture(table, random_state=0)
    opt.tell(opt.ask(), 1.0)
    same = alexp.EvidenceMixture.from_dict(opt.to_dict())
    assert same.domain.withheld.tolist() == [3, 7, 20]
    assert [one.index for one in same.ask(36)] == [one.index for one in opt.ask(36)]


def test_later_candidates_are_withheld_as_well():
    opt = alexp.EvidenceMixture(Table.from_frame(reactions(), id="id", missing="median"), random_state=0)
    more = pd.DataFrame({"id": [100, 101], "loading": [None, 5.0], "ligand": ["a", "b"]})
    opt.add_candidates(Table.from_frame(more, id="id", missing="median"))
    assert opt.domain.withheld.tolist() == [3, 7, 20, 40]
    assert 40 not in {trial.index for trial in opt.ask(38)}


def test_a_description_that_is_filled_in_withholds_nobody():
    """What is unknown there is a property, not how to make the experiment."""
    table = Table.from_frame(reactions(blank=()), id="id")
    described = pd.DataFrame({"id": range(40), "dipole": [None, *range(39)]})
    table.describe("physical", described, missing="median")
    assert table.withheld == []


def test_words_with_blanks_are_a_word_and_proposed():
    frame = reactions(blank=()).assign(additive=[None, *["LiCl", "KBr", "CuI"] * 13])
    table = Table.from_frame(frame, id="id", missing="median")
    assert table.withheld == []
    assert "1 blank: a word of its own" in table.understood["additive"].becomes


def test_a_domain_says_which_numbers_of_withheld_are_wrong():
    for wrong in ([3], [0, 1, 2], [-1]):
        with pytest.raises(ValueError, match="withheld"):
            alexp.FiniteSet(["a", "b", "c"], withheld=wrong)
