"""Conditions on candidates: what they mean, and what is said about wrong ones."""

import operator

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp.problem.where import holds

FRAME = pd.DataFrame(
    {
        "solvent": ["DMF", "water", "THF", "DMF", "d'or", 'a "b"'],
        "celsius": [60, 90, 105, 120, 105, 60],
        "hot plate": [0.5, np.nan, -2.0, 1e3, 0.0, 0.5],
        "dry": [True, False, True, False, True, False],
        "in": [1, 2, 3, 4, 5, 6],
    }
)
TABLE = alexp.FiniteSet(FRAME)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("celsius <= 105", [0, 1, 2, 4, 5]),
        ("celsius<105 and solvent!='DMF'", [1, 5]),
        ("solvent = 'DMF' or celsius == 105", [0, 2, 3, 4]),
        ("solvent = 'DMF' or celsius == 105 and dry = true", [0, 2, 3, 4]),  # and binds closer
        ("(solvent = 'DMF' or celsius == 105) and dry = TRUE", [0, 2, 4]),
        ("not solvent in ('DMF', 'THF')", [1, 4, 5]),
        ("solvent NOT IN ('DMF', 'THF')", [1, 4, 5]),
        ("not not celsius > 90 AND not (dry = false)", [2, 4]),
        ("'hot plate' >= -2e0 and \"hot plate\" < .6", [0, 2, 4, 5]),
        ("'hot plate' = 0.5", [0, 5]),
        ("'hot plate' != 0.5", [1, 2, 3, 4]),  # a missing cell differs from every value
        ('solvent = \'d\'\'or\' or solvent = "a ""b"""', [4, 5]),
        ("'in' in (1, +6)", [0, 5]),
        ("  celsius\n>\t105  ", [3]),
    ],
)
def test_meaning(where, expected):
    assert holds(where, TABLE).tolist() == expected


def test_random_conditions_agree_with_masks():
    """Trees of comparisons, written with few parentheses, against the masks that NumPy computes."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(0, 5, 60), "b c": rng.normal(size=60), "w": rng.choice(list("xyz"), 60)})
    table = alexp.FiniteSet(frame.assign(row=np.arange(60)))
    signs = {
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
        "=": operator.eq,
        "!=": operator.ne,
    }

    def tree(depth):
        kind = int(rng.integers(6 if depth else 3))
        if kind < 2:
            name, sign = ("a", "b c")[kind], rng.choice(list(signs))
            value = int(rng.integers(5)) if kind == 0 else round(float(rng.normal()), 3)
            return (f"'{name}' {sign} {value}", signs[sign](frame[name].to_numpy(), value), 2)
        if kind == 2:
            words = rng.choice(list("xyz"), 2, replace=False)
            return (f"w in ('{words[0]}', '{words[1]}')", frame["w"].isin(words).to_numpy(), 2)
        if kind == 3:
            text, mask, rank = tree(depth - 1)
            return (f"not {text}" if rank == 2 else f"not ({text})", ~mask, 2)
        own = 0 if kind == 4 else 1
        parts = [tree(depth - 1), tree(depth - 1)]
        texts = [text if rank >= own else f"({text})" for text, _, rank in parts]
        masks = [mask for _, mask, _ in parts]
        return (
            f" {'or' if own == 0 else 'and'} ".join(texts),
            (masks[0] | masks[1]) if own == 0 else masks[0] & masks[1],
            own,
        )

    checked = 0
    for _ in range(300):
        text, mask, _ = tree(3)
        if mask.any():
            np.testing.assert_array_equal(holds(text, table), np.flatnonzero(mask), err_msg=text)
            checked += 1
    assert checked > 200


@pytest.mark.parametrize(
    ("where", "place", "why"),
    [
        (
            "celsius <= 105 and solvant != 'DMF'",
            19,
            "'solvant' is no column; did you mean 'solvent'?; columns are 'solvent'",
        ),
        ("celsius <= 105 and", 18, "a column was expected here; columns are"),
        ("", 0, "a column was expected"),
        ("105 >= celsius", 0, "a column was expected"),
        ("solvent != DMF", 11, "words have quotes: 'DMF'"),
        ("celsius = '105'", 10, "column 'celsius' holds numbers such as 60, 90"),
        ("solvent = 3", 10, "holds words such as 'DMF'"),
        ("dry = 'yes'", 6, "true or false"),
        ("solvent < 'DMF'", 8, "words have no order"),
        ("celsius 105", 8, "a comparison was expected after 'celsius'"),
        ("(celsius > 60", 13, "for the '(' at character 1"),
        ("celsius > 60)", 12, "'and', 'or' or the end"),
        ("celsius in 60", 11, "'(' and a list of values"),
        ("celsius in (60, )", 16, "a number or a word in quotes"),
        ("solvent = 'DMF", 10, "never closed"),
        ("celsius > 1,5", 11, "the condition was expected here; numbers have a decimal point and no unit"),
        ("celsius > 60 %", 13, "this is no number, name, quoted word or comparison; numbers have a decimal point"),
        ("celsius > 60 K", 13, "the condition was expected here; numbers have a decimal point and no unit"),
        ("celsius > 60 & dry = true", 13, "this is no number"),
        ("celsius.__class__ = 1", 0, "is no column"),
        ("__import__('os').system('true')", 16, "this is no number"),
        ("(" * 60 + "celsius > 1" + ")" * 60, 50, "more than 50"),
        ("not " * 500 + "celsius > 1", 200, "more than 50"),
        ("celsius > 60abc", 10, "this is no number"),
    ],
)
def test_errors_point_at_the_place(where, place, why):
    with pytest.raises(ValueError, match="^where, ") as error:
        holds(where, TABLE)
    text = str(error.value)
    assert why in text
    assert f"at character {place + 1}:" in text
    *_, shown, caret = text.split("\n")
    assert where[place : place + 5] == shown[caret.index("^") :][:5]


def test_columns_that_are_not_one_word_are_named_where_their_quotes_are_missing():
    table = alexp.FiniteSet(pd.DataFrame({"Temp.": [60, 80], "base": ["KOAc", "CsOAc"], "hot plate": [1, 2]}))
    for where in ("Temp. <= 60", "hot plate = 1"):
        with pytest.raises(ValueError, match="columns that are not one word have quotes: 'Temp.', 'hot plate'"):
            holds(where, table)
    assert holds("'Temp.' <= 60 and 'hot plate' = 1", table).tolist() == [0]


def test_what_has_no_columns_or_no_candidates():
    with pytest.raises(ValueError, match=r"where='celsius > 500' holds for none of the 6 candidates"):
        holds("celsius > 500", TABLE)
    for domain in (alexp.FiniteSet(["a", "b"]), alexp.Interval(resolution=5), alexp.FiniteSet(np.eye(3))):
        with pytest.raises(ValueError, match="where needs candidates with named columns.*available="):
            holds("celsius > 5", domain)
    with pytest.raises(TypeError, match="where must be a text"):
        holds(3, TABLE)
    with pytest.raises(ValueError, match="at most 10000 characters"):
        holds("celsius > 5" + " " * 10_000, TABLE)
