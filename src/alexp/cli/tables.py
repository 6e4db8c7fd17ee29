"""Options of commands that read a table of candidates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from alexp.common.redaction import printable
from alexp.table.columns import OTHERS
from alexp.table.remedies import on_the_command_line

if TYPE_CHECKING:
    from alexp.table import Table
    from alexp.table.understood import Understood

CandidatesFile = Annotated[Path, typer.Option(help="CSV, .xlsx or Parquet file with one candidate per line.")]
FeatureFiles = Annotated[
    list[str] | None, typer.Option(help="NAME=FILE, a further description of the candidates, matched by id; repeat.")
]
IdColumn = Annotated[str | None, typer.Option("--id", help="Column that names the candidates.")]
Sheet = Annotated[str | None, typer.Option(help="Sheet of a workbook with several.")]
KindOf = Annotated[
    list[str] | None, typer.Option("--kind", help="COLUMN=KIND: number, log, words, yes/no, SMILES or label; repeat.")
]
Ignore = Annotated[list[str] | None, typer.Option(help="Column that models do not use; repeat.")]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        help="Blank cells: refuse, drop (candidates), median (fill in) or 'leave out' (columns); COLUMN=... for one."
    ),
]
DecimalSign = Annotated[
    list[str] | None, typer.Option("--decimal", help="Decimal sign, or COLUMN=SIGN, where cells do not tell; repeat.")
]
Replace = Annotated[list[str] | None, typer.Option(help="CELL=VALUE, what to read in place of a cell; repeat.")]
HeaderLine = Annotated[int | None, typer.Option("--header", min=1, help="Line that has the names of the columns.")]
Skip = Annotated[list[int] | None, typer.Option(help="Line that is no candidate; repeat.")]


def pair(text: str, option: str) -> tuple[str, str]:
    """NAME=VALUE as two texts; the name may have equals signs if the value has none."""
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise ValueError(f"{option} must look like NAME=VALUE, got {text!r}")
    return key, value


def pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """NAME=VALUE, each name once."""
    found = dict(pair(text, option) for text in texts)
    if len(found) != len(texts):
        raise ValueError(f"{option} must have distinct names")
    return found


def decimal_from(texts: Sequence[str] | None) -> Any:
    """The value of --decimal: one sign, or signs by column."""
    if texts and len(texts) == 1 and "=" not in texts[0]:
        return texts[0]
    return pairs(texts, "--decimal") if texts else None


def swaps(texts: Sequence[str] | None) -> dict[str, str]:
    """The values of --replace: what to read in place of cells."""
    for text in texts or []:
        if not text.rpartition("=")[0]:
            raise ValueError(f"--replace must look like CELL=VALUE, got {text!r}; CELL= reads the cell as blank")
    return {cell: value for cell, _, value in (text.rpartition("=") for text in texts or [])}


def missing_from(texts: Sequence[str] | None) -> Any:
    """The value of --missing: one word, words by column, or both."""
    plain = [text for text in texts or [] if "=" not in text]
    if len(plain) > 1:
        raise ValueError(f"--missing must be one word, or COLUMN=WORD; got {' and '.join(map(repr, plain))}")
    by_column = pairs([text for text in texts or [] if "=" in text], "--missing")
    rest = plain[0] if plain else "refuse"
    return {**by_column, OTHERS: rest} if by_column else rest


def read_table(
    candidates: Path,
    features: Sequence[str] | None,
    id: str | None,
    sheet: str | None,
    kind: Sequence[str] | Mapping[str, str] | None,
    ignore: Sequence[str] | None,
    missing: Sequence[str] | None,
    decimal: Sequence[str] | None,
    replace: Sequence[str] | None,
    header: int | None,
    skip: Sequence[int] | None,
    reward: str | None = None,
    reward_elsewhere: bool = False,
) -> Table:
    """The table that the options describe."""
    from alexp.common.files import read_bytes
    from alexp.table import Table

    kinds: Any = kind if isinstance(kind, Mapping) else pairs(kind or [], "--kind")
    table = Table.from_bytes(
        read_bytes(candidates),
        candidates,
        id=id,
        sheet=sheet,
        kinds=kinds,
        ignore=ignore or (),
        missing=missing_from(missing),  # other words are refused there
        decimal=decimal_from(decimal),
        replace=swaps(replace),
        header=header,
        skip=skip or (),
        reward=reward,
        reward_elsewhere=reward_elsewhere,
    )
    for name, file in pairs(features or [], "--features").items():
        table.describe(name, Path(file))
    return table


def preview(understood: Table | Understood) -> Iterator[str]:
    """What was understood, line by line."""
    shown = understood.understood_in(on_the_command_line) if hasattr(understood, "understood_in") else understood
    return (printable(line) for line in str(shown).splitlines())
