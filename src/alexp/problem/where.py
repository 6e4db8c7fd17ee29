"""Conditions on candidates with named columns, such as "temperature <= 105 and solvent != 'DMF'".

    condition   = both ("or" both)*
    both        = one ("and" one)*
    one         = "not" one | "(" condition ")" | comparison
    comparison  = column ("<" | "<=" | ">" | ">=" | "=" | "==" | "!=") value
                | column ["not"] "in" "(" value ("," value)* ")"

A column stands on the left, with quotes if its name has spaces; a value on the right: a number, a word in quotes, or
true or false. Nothing of the text is run as code.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np

from alexp.common.arrays import BoolArray, IntArray
from alexp.common.validation import did_you_mean
from alexp.problem.domains import Domain, FiniteSet

Value = float | str | bool
_TOKEN = re.compile(
    r"""\s*(?:(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])
    |(?P<name>[^\W\d]\w*(?:\.\w+)*)
    |(?P<quoted>'(?:[^']|'')*'|"(?:[^"]|"")*")
    |(?P<sign><=|>=|==|!=|<|>|=|\(|\)|,))""",
    re.VERBOSE,
)
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "=": operator.eq, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_KEYWORDS = ("and", "or", "not", "in", "true", "false")
_DEEPEST = 50  # parentheses and negations within each other
_LONGEST = 10_000  # characters
_SHOWN = 5  # values of a column, and columns, that a message lists
_NUMBERS = "; numbers have a decimal point and no unit"


def named_columns(domain: Domain, why: str) -> Mapping[str, list[Any]]:
    """Columns of the candidates by name; raises, naming `why` they are needed, where candidates have none."""
    table = domain.candidates if isinstance(domain, FiniteSet) else None
    if table is None or not hasattr(table, "columns") or not hasattr(table, "iloc"):
        raise ValueError(
            f"{why} needs candidates with named columns, a FiniteSet of a data frame, and here they are "
            f"{domain!r}; use available= with indices, names or a mask"
        )
    return {str(name): table[name].to_list() for name in table.columns}


def unknown_column(name: object, columns: Mapping[str, object]) -> str:
    """What to say of a name that is no column."""
    return f"{name!r} is no column{did_you_mean(name, columns)}; columns are {', '.join(map(repr, columns))}"


def holds(where: str, domain: Domain) -> IntArray:
    """Numbers of the candidates for which a condition holds; raises if it is wrong, or holds for none.

    >>> import pandas as pd
    >>> table = FiniteSet(pd.DataFrame({"solvent": ["DMF", "water", "THF"], "hot plate": [90, 105, 120]}))
    >>> holds("'hot plate' <= 105 and not solvent in ('DMF', 'THF')", table).tolist()
    [1]
    """
    if not isinstance(where, str):
        raise TypeError(f'where must be a text such as "temperature <= 105", got {type(where).__name__}: {where!r}')
    found = np.flatnonzero(_Parser(where, named_columns(domain, "where")).mask())
    if not found.size:
        raise ValueError(f"where={where!r} holds for none of the {domain.n_candidates} candidates")
    return found


class Token(NamedTuple):
    """A part of the text: what it is, its text, and the position of its first character."""

    kind: str
    text: str
    at: int


@dataclass
class _Parser:
    """Reads a condition from left to right; every rule of the grammar is a method that returns a mask, (N,)."""

    text: str
    columns: Mapping[str, list[Any]]

    def __post_init__(self) -> None:
        if len(self.text) > _LONGEST:
            raise ValueError(f"where must have at most {_LONGEST} characters, got {len(self.text)}")
        self._tokens, self._next, self._depth = self._split(), 0, 0

    def mask(self) -> BoolArray:
        """For which candidates the whole condition holds."""
        out = self._condition()
        if self._peek.kind != "end":
            hint = _NUMBERS if self._tokens[self._next - 1].kind == "number" else ""
            self._refuse(self._peek, f"'and', 'or' or the end of the condition was expected here{hint}")
        return out

    def _split(self) -> list[Token]:
        tokens, at, end = list[Token](), 0, len(self.text.rstrip())
        while at < end:
            found = _TOKEN.match(self.text, at)
            if found is None:
                start = at + len(self.text[at:]) - len(self.text[at:].lstrip())
                wrong = Token("wrong", self.text[start], start)
                if wrong.text in "'\"":
                    self._refuse(wrong, "this quote is never closed")
                hint = _NUMBERS if tokens and tokens[-1].kind == "number" else self._quotes()
                self._refuse(wrong, f"this is no number, name, quoted word or comparison{hint}")
            kind = str(found.lastgroup)
            text = found[kind]
            if kind == "name" and text.lower() in _KEYWORDS:
                kind, text = "keyword", text.lower()
            tokens.append(Token(kind, text, found.start(found.lastgroup or 0)))
            at = found.end()
        return [*tokens, Token("end", "", end)]

    def _quotes(self) -> str:
        """A remark on quotes, where a column needs them."""
        odd = [repr(name) for name in self.columns if not name.isidentifier()]
        return f"; columns that are not one word have quotes: {', '.join(odd[:_SHOWN])}" if odd else ""

    @property
    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._peek
        self._next += token.kind != "end"
        return token

    def _takes(self, *texts: str) -> bool:
        """Whether the next token is one of these, which is then taken."""
        if self._peek.kind in ("keyword", "sign") and self._peek.text in texts:
            self._next += 1
            return True
        return False

    def _condition(self) -> BoolArray:
        out = self._both()
        while self._takes("or"):
            out = out | self._both()
        return out

    def _both(self) -> BoolArray:
        out = self._one()
        while self._takes("and"):
            out = out & self._one()
        return out

    def _one(self) -> BoolArray:
        start = self._peek
        self._depth += 1
        if self._depth > _DEEPEST:
            self._refuse(start, f"more than {_DEEPEST} parentheses or negations within each other")
        if self._takes("not"):
            out = ~self._one()
        elif self._takes("("):
            out = self._condition()
            self._close(start)
        else:
            out = self._comparison()
        self._depth -= 1
        return out

    def _close(self, opened: Token) -> None:
        if not self._takes(")"):
            self._refuse(self._peek, f"')' was expected here, for the '(' at character {opened.at + 1}")

    def _comparison(self) -> BoolArray:
        name, column = self._column()
        sign = self._take()
        if sign.text == "not" and self._peek.text == "in":
            self._take()
            return ~self._among(name, column)
        if sign.kind == "keyword" and sign.text == "in":
            return self._among(name, column)
        if sign.text not in _COMPARISONS:
            self._refuse(sign, f"a comparison was expected after {name!r}: {', '.join(_COMPARISONS)} or in (...)")
        return self._compare(name, column, sign, *self._value(name, column))

    def _column(self) -> tuple[str, list[Any]]:
        token = self._take()
        if token.kind not in ("name", "quoted"):
            self._refuse(token, f"a column was expected here; columns are {', '.join(map(repr, self.columns))}")
        name = _unquoted(token.text) if token.kind == "quoted" else token.text
        if name not in self.columns:
            self._refuse(token, unknown_column(name, self.columns) + self._quotes())
        return name, self.columns[name]

    def _value(self, name: str, column: list[Any]) -> tuple[Token, Value]:
        token = self._take()
        if token.kind == "number":
            value: Value = float(token.text)
        elif token.kind == "quoted":
            value = _unquoted(token.text)
        elif token.text in ("true", "false") and token.kind == "keyword":
            value = token.text == "true"
        elif token.kind == "name":
            self._refuse(token, f"a value was expected here; words have quotes: {token.text!r}")
        else:
            self._refuse(token, "a number or a word in quotes was expected here")
        kinds = {_kind(cell) for cell in column if not _is_missing(cell)}
        if kinds and _kind(value) not in kinds:
            some = ", ".join(repr(cell) for cell in list(dict.fromkeys(column))[:_SHOWN])
            self._refuse(token, f"column {name!r} holds {' and '.join(sorted(kinds))} such as {some}")
        return token, value

    def _compare(self, name: str, column: list[Any], sign: Token, token: Token, value: Value) -> BoolArray:
        if sign.text in ("<", "<=", ">", ">=") and _kind(value) != "numbers":
            self._refuse(sign, f"{_kind(value)} have no order; compare column {name!r} with =, != or in (...)")
        compare, kind = _COMPARISONS[sign.text], _kind(value)
        differs = sign.text == "!="
        return np.array([bool(compare(one, value)) if _kind(one) == kind else differs for one in column], dtype=bool)

    def _among(self, name: str, column: list[Any]) -> BoolArray:
        opened = self._peek
        if not self._takes("("):
            self._refuse(opened, "'(' and a list of values were expected after 'in'")
        equal = Token("sign", "=", opened.at)
        out = self._compare(name, column, equal, *self._value(name, column))
        while self._takes(","):
            out = out | self._compare(name, column, equal, *self._value(name, column))
        self._close(opened)
        return out

    def _refuse(self, token: Token, why: str) -> NoReturn:
        start = max(0, token.at - 60)
        shown = self.text[start : token.at + 60].replace("\n", " ").replace("\t", " ")
        what = repr(token.text) if token.text else "the end"
        raise ValueError(f"where, {what} at character {token.at + 1}: {why}\n  {shown}\n  {' ' * (token.at - start)}^")


def _unquoted(text: str) -> str:
    return text[1:-1].replace(text[0] * 2, text[0])


def _is_missing(cell: object) -> bool:
    return cell is None or cell != cell


def _kind(value: object) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes and no (true or false)"
    return "numbers" if isinstance(value, int | float | np.number) else "words"
