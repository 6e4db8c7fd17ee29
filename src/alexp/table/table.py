"""Table: candidates and their features, read once from a file or data frame, the same for every door."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.codec import State
from alexp.common.extras import require
from alexp.common.files import read_array, read_bytes
from alexp.common.validation import did_you_mean, matrix
from alexp.common.warning import caution
from alexp.problem.domains import FiniteSet
from alexp.problem.kernel_models import AUTO, KernelChoice
from alexp.problem.models import ModelClass
from alexp.table.columns import (
    BLANK,
    MOST_LISTED,
    MOST_WORDS,
    OTHERS,
    REWARD,
    Column,
    Kind,
    Missing,
    Options,
    Reading,
    Remark,
    Stated,
    as_id,
    check_points,
    understand,
)
from alexp.table.encoding import (
    MOLECULAR,
    Encoding,
    Feature,
    FeatureMatrix,
    OldResults,
    Source,
    StoredWords,
    described_columns,
    make_models,
    side_by_side,
    stored_feature,
    stored_kernels,
    stored_matrix,
)
from alexp.table.files import Dialect, FileError, Lines, column_lines, frame_lines, text_of
from alexp.table.numbers import Decimal, written
from alexp.table.remedies import OPEN, EmptyFileError, Part, Remedy, Words, all_or_error, in_python, worded
from alexp.table.understood import Understood, UnderstoodColumn

if TYPE_CHECKING:
    import pandas as pd

OWN = "table"  # the name of the models of the table's own columns
_OWN_COLUMNS, _IN_ORDER = "columns of the table", "matched by the order of lines"  # how a description is matched
_IDS = {"id", "name", "names", "compound", "candidate", "entry", "sample", "experiment", "reaction", "code", "key",
        "no", "no.", "nr", "nr.", "#", "number", "label", "well", "vial", "molecule"}  # fmt: skip
_SUMMARIES = {"total", "sum", "mean", "average", "median", "std", "sd", "rsd", "stdev", "std dev", "summe", "gesamt",
              "mittelwert", "stabw", "standardabweichung", "somme", "moyenne", "totale", "media"}  # fmt: skip
_MOST_READINGS = 6  # of one file, to find all of its problems
_MOST_SUMMARIES = 6  # lines at the end that may be such
_RESERVED = ("trial", REWARD)  # columns of files of results
_MOST_LOOKED_AT = 50  # lines that tell whether the first is one of names or units
_MOST_LISTED_COLUMNS = 1_000  # columns of a description that `understood` lists one by one


@dataclass(frozen=True)
class DescribedBy:
    """Further features of the candidates: an array (N, d), or columns with a cell for every candidate.

    `lines` and `options` are what was read; `component` is the column whose words they describe, if one.
    """

    matched: str
    array: FloatArray | None = None
    columns: tuple[Column, ...] = ()
    component: str | None = None
    lines: Lines | None = None
    options: Options | None = None

    @property
    def is_own(self) -> bool:
        """Whether its columns are some of the table's."""
        return self.matched == _OWN_COLUMNS

    @property
    def telling(self) -> list[Column]:
        """The columns that are features: of a file those that not all candidates share."""
        return [one for one in self.columns if self.is_own or (one.is_feature and not one.is_constant)]

    @cached_property
    def matrix(self) -> FeatureMatrix:
        """Its features; columns of a file that all candidates share are none."""
        if self.array is not None:
            return FeatureMatrix(self.array, "array")
        if not (telling := self.telling):
            assert self.lines is not None
            shown = "; ".join(f"{column.name!r} is {worded(column.becomes)}" for column in self.columns)
            shown = shown or "it has only ids"
            raise FileError(f"{self.lines.path} has no column that tells candidates apart: {shown}")
        return _matrix(telling, "table" if self.is_own else "description", {one.name: one.kind for one in self.columns})


class Table:
    """Candidates and what describes them.

    Made by `Table.read` from a file, or by `Table.from_frame`. `EvidenceMixture(table)` and
    `create_study(table, name=...)` need nothing else: they take kernels that fit the columns, measure no candidate
    twice, and look for the best one (`goal="best"`).

    Attributes
    ----------
    result : the name of the column of results, if it was stated; `results` has what is filled in there.
    withheld : numbers of the candidates that are proposed only where `available` names them.

    >>> import pandas as pd
    >>> table = Table.from_frame(pd.DataFrame({"solvent": ["DMF", "DMF", "water"], "T (°C)": [60, 80, 60]}))
    >>> print(table.understood)
    frame, data frame: 3 candidates
    column   kind    example  becomes
    solvent  words   DMF      a component with 2 words
    T (°C)   number  60       a number from 60 to 80 °C
    >>> table.models().n_models, table.domain
    (24, FiniteSet(3 candidates: {'solvent': 'DMF', 'T (°C)': 60}, ...))
    """

    def __init__(self, lines: Lines, options: Options) -> None:
        self._options = options.checked(lines)
        self._whole, self._lines, self._measured = lines, lines, list[tuple[int, float]]()
        self.result = self._options.reward
        if self.result is not None:
            from alexp.table.results import measurements, without_column

            k = lines.header.index(self.result)
            self._lines, (self._measured, _) = without_column(lines, k), measurements(lines, k, self._options)
        self._columns, self._kept, self._remarks = _columns(self._lines, self._options)
        filled = (one for one in self._columns if one.is_feature and one.values is not None)
        self.withheld = sorted({row for one in filled for row in one.blanks})  # not fully described
        self._descriptions: dict[str, DescribedBy] = {}
        self._memories: dict[str, tuple[Any, str]] = {}  # old campaigns, and their columns of results

    @classmethod
    def read(
        cls,
        path: str | Path,
        id: str | None = None,
        sheet: str | None = None,
        *,
        kinds: Mapping[str, Stated] | None = None,
        ignore: Sequence[str] = (),
        missing: Missing | Mapping[str, Missing] = "refuse",
        decimal: Decimal | Mapping[str, Decimal] | None = None,
        replace: Mapping[str, str | float] | None = None,
        header: int | None = None,
        skip: Sequence[int] = (),
        encoding: str | None = None,
        reward: str | None = None,
    ) -> Table:
        """Read CSV (commas, semicolons or tabs; UTF-8, UTF-16, Windows-1252), .xlsx or Parquet.

        What is in doubt raises FileError, with file, line, column, cell and the keyword that settles it.

        Parameters
        ----------
        path : of the file.
        id : the column that names the candidates; by default the first, if it is called id, name, compound or so, or
            holds texts that all differ.
        sheet : of a workbook with several.
        kinds : what columns are: "number", "log" (models see its logarithm), "words", "yes/no", "SMILES", or "label"
            for one that models do not use.
        ignore : columns that models do not use; the same as the kind "label".
        missing : blank cells are refused by default; "drop" leaves out these candidates; "median" fills numbers by
            their median, with a further column that says where, and makes blank words a word of their own; "leave out"
            leaves out these columns. By column: {"loading": "median", "*": "drop"}, with "*" for all others. A
            candidate with a number that was filled in is proposed only where `available` names it. A column with more
            than half of its cells blank has to be named.
        decimal : the decimal sign, "." or ",", of all columns or by column, where the cells do not tell.
        replace : what to read in place of some cells, such as {"<0.1": 0.05, "n.d.": ""}.
        header : the line that has the names of the columns; skip : lines that are no candidates; encoding : of a text.
        reward : the column of results. It is no feature; what is filled in there counts as measured.
        """
        options = Options(
            id, sheet, kinds or {}, ignore, missing, decimal, replace or {}, header, skip, encoding, reward
        )
        return cls._of_file(read_bytes(Path(path)), Path(path), options)

    @classmethod
    def from_bytes(cls, data: bytes | str, name: Path | str, **reading: Unpack[Reading]) -> Table:
        """The same from the content of a file, which messages call `name`; keywords as of `read`."""
        return cls._of_file(data, name, Options(**reading))

    @classmethod
    def from_columns(cls, columns: Mapping[str, Sequence[Any]], **reading: Unpack[Reading]) -> Table:
        """The same column by column; keywords as of `read`."""
        return cls(column_lines(columns), Options(**reading))

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, **reading: Unpack[Reading]) -> Table:
        """The same from a data frame; an index with a name, or of texts, is a column; keywords as of `read`."""
        return cls(frame_lines(frame), Options(**reading))

    @classmethod
    def _of_file(cls, data: bytes | str, path: Path | str, options: Options) -> Table:
        """The table of a file, or an error with all problems: after one of its lines, it is read as its remedy says."""
        found, supposed = list[FileError](), options
        for _ in range(_MOST_READINGS):
            try:
                table = cls(supposed.lines(data, path), supposed)
            except FileError as error:
                found += [] if found and isinstance(error, EmptyFileError) else error.each
                if not error.assuming:
                    break
                supposed = supposed.supposing(error.assuming)
            else:
                if not found:
                    return table
                break
        raise FileError.joined(found, path)

    # -- descriptions --------------------------------------------------------------------------------------------

    def describe(
        self,
        name: str,
        source: Any,
        *,
        file: str | None = None,
        **reading: Unpack[Reading],
    ) -> Table:
        """Add a description of the candidates, which gets models of its own; returns the table.

        Parameters
        ----------
        name : of the description, and of its models.
        source : a file or data frame with one line per candidate; the content of a file, which `file` then names; an
            array (N, d), or an .npy file of one; or a list of columns of the table, which then belong to this
            description.

        Lines are matched by the column that has the name of the table's ids, or that `id` names. If the first column
        has the name of a column of words, the file describes those: one line per word. A file without such a column,
        and an array, have line i for candidate i.

        The other keywords are those of `Table.read`.
        """
        if name in self._descriptions or name == OWN:
            raise ValueError(f"there is a description {name!r} already")
        try:
            self._descriptions[name] = self._description(name, source, file, reading)
        except FileError as error:
            raise error.of_description() from None
        self.__dict__.pop("understood", None)
        return self

    def _description(self, name: str, source: Any, file: str | None, reading: Reading) -> DescribedBy:
        reading.setdefault("missing", self._options.missing_of(OTHERS))
        options = Options(**reading)
        if isinstance(source, Path) or (isinstance(source, str) and file is None):
            path = Path(source)
            if path.suffix.lower() in (".npy", ".npz"):
                try:
                    return self._array(str(path), read_array(path))
                except (ValueError, TypeError) as error:
                    raise FileError(f"{path}: {error}") from None
            return self._described(name, options.lines(read_bytes(path), path), options)
        if isinstance(source, bytes | str):
            return self._described(name, options.lines(source, file or name), options)
        if hasattr(source, "iloc"):
            return self._described(name, frame_lines(source, name), options)
        if isinstance(source, Sequence) and source and all(isinstance(one, str) for one in source):
            return self._own(name, source)
        return self._array(name, source)

    def _array(self, name: str, values: object) -> DescribedBy:
        return DescribedBy(_IN_ORDER, matrix(name, values, len(self._lines.rows))[self._kept])

    def _own(self, name: str, columns: Sequence[str]) -> DescribedBy:
        there = {column.name: column for column in self._columns}
        for one in columns:
            if one not in there:
                meant = did_you_mean(one, there)
                raise ValueError(
                    f"{name} names the unknown column {one!r}; known are {', '.join(map(repr, there))}{meant}"
                )
            if not there[one].is_feature and len(there[one].distinct) > MOST_WORDS:
                raise ValueError(f"{name} names {one!r}, which has more than {MOST_WORDS} different texts")
        return DescribedBy(_OWN_COLUMNS, columns=tuple(there[one] for one in dict.fromkeys(columns)))

    def _described(self, name: str, lines: Lines, options: Options) -> DescribedBy:
        options = options.checked(lines)
        own = {one.name.lower(): one for one in self._columns if one.kind == "id" or one.values is None}
        names = [one for one in own.values() if one.kind == "id"]
        key = options.id or next((title for title in lines.header if own.get(title.lower()) in names), None)
        key = key or next((title for title in lines.header if title.lower() in own), None)
        if key is None and names and set(names[0].cells) & {text_of(row[0]) for _, row in lines.rows}:
            key = lines.header[0]  # ids under another name
        component = None
        if key is None:
            order, matched = self._in_order(lines, options), _IN_ORDER
        else:
            k, target = lines.header.index(key), own.get(key.lower()) or next(iter(names), None)
            if target is None:
                raise FileError(
                    f"{lines.path}: the table has no column of ids to match {key!r} with; say ",
                    Remedy("id", OPEN),
                    " of it",
                )
            order, matched = _match(lines, k, target.cells), f"matched by {key!r}"
            component = target.name if target.kind in ("words", "SMILES") else None
        places = [k for k, title in enumerate(lines.header) if title != key]
        columns, found = _understand_all(lines, places, options, of_table=False)
        columns = [column.taken(order) for column in columns]
        all_or_error([*found, *_blank_cells(lines, columns, options, order, of_table=False)], lines.path)
        used = _without_blanks(columns, options)
        return DescribedBy(matched, None, tuple(used), component, lines, options)

    def _in_order(self, lines: Lines, options: Options) -> list[int]:
        """Line i for candidate i; raises unless there are as many lines, and no column that looks like ids."""
        own = self.id
        called = f"named {own.name!r} as in the table" if own else "of ids, here and in the table"
        if len(lines.rows) != len(self._lines.rows):
            raise FileError(
                f"{lines.path} has {len(lines.rows)} lines, and the table {len(self._lines.rows)}; add a column "
                f"{called}, or say which one it is: ",
                Remedy("id", OPEN),
            )
        for k, title in enumerate(lines.header):
            texts = [row[k] for _, row in lines.rows]
            if title in options.kinds or not all(isinstance(cell, str) for cell in texts):
                continue
            if 2 < len(texts) == len(set(texts)) and understand(lines, k, options).kind == "label":
                raise FileError(
                    f"{lines.path}: the column {title!r} may name candidates, and the table has no column of that "
                    "name; name it as there, or match by the order of lines: ",
                    Remedy("ignore", [title]),
                )
        return self._kept

    def with_memory(self, campaigns: Mapping[str, Any], reward: str = "reward") -> Table:
        """The table with old campaigns, each of which gets further models: what it expects of our candidates is one
        more column, alone and beside every other model, whose scale and offset are learned.

        Half of the prior weight is theirs for one campaign, so that one that is worth nothing costs little.

        Parameters
        ----------
        campaigns : {name: results}. Results are a data frame, the path of a file, another Table, or a study or run of a
            table. Columns that models use are matched by name, and read as those of this table; others do not matter.
            A result of a candidate that this table has needs no more than its id.
        reward : the column of the results. They may be in any unit and in either direction. Lines without a number
            there are left out.
        """
        from alexp.table.memory import check_names

        check_names(campaigns, [*self._memories, *self._matrices(), OWN])
        out = copy(self)
        out.__dict__.pop("understood", None)
        out._memories = {**self._memories, **{name: (source, reward) for name, source in campaigns.items()}}
        out._campaigns()  # raises
        return out

    def _campaigns(self) -> dict[str, tuple[OldResults, str]]:
        """Old campaigns, and a remark on each."""
        if not self._memories:
            return {}
        from alexp.table.memory import read_campaign

        encoding = cast(Encoding, self._encoding(self._matrices(), self._components(), AUTO, True))
        return {
            name: read_campaign(name, one, encoding, self.domain, reward)
            for name, (one, reward) in self._memories.items()
        }

    # -- what it is ----------------------------------------------------------------------------------------------

    @property
    def n_candidates(self) -> int:
        """N."""
        return len(self._columns[0].cells)

    @property
    def results(self) -> list[tuple[int, float]]:
        """(candidate, reward) of what is filled in in the column of results, several of one candidate if measured."""
        place = {row: k for k, row in enumerate(self._kept)}
        return [(place[row], value) for row, value in self._measured if row in place]

    @cached_property
    def dialect(self) -> Dialect:
        """How the file is written. Where no number shows its decimal sign, a text with semicolons has commas."""
        known = self._lines.dialect
        shown = {column.decimal for column in self._columns} - {None}
        return replace(known, decimal="," if "," in shown or (not shown and known.separator == ";") else ".")

    @property
    def names(self) -> list[str]:
        """What candidates are called: the cells of their first column, which has the ids if there are any."""
        return [str(cell) for cell in self._columns[0].cells]

    @property
    def id(self) -> Column | None:
        """The column that names the candidates; None if there is none."""
        return next((column for column in self._columns if column.kind == "id"), None)

    @cached_property
    def understood(self) -> Understood:
        """What was taken for what, one line per column; prints as a small table."""
        return self.understood_in(in_python)

    def understood_in(self, words: Words) -> Understood:
        """The same in the words of a door, for what it advises."""

        def shown(one: Column, description: str = "") -> UnderstoodColumn:
            return UnderstoodColumn(one.name, one.kind, one.example, worded(one.becomes, words), description)

        columns = [shown(one) for one in self._columns]
        if self.result is not None:
            columns.append(self._understood_result())
        remarks = [worded([one] if isinstance(one, str) else one, words) for one in self._remarks]
        for name, described in self._descriptions.items():
            if described.is_own:
                remarks.append(f"description {name!r}: {', '.join(one.name for one in described.columns)}")
                continue
            listed = described.columns[:_MOST_LISTED_COLUMNS]
            columns += [shown(one, name) for one in listed]
            known = described.array is not None or described.telling
            n_features = described.matrix.values.shape[1] if known else 0
            remarks.append(f"description {name!r}: {n_features} features, {described.matched}")
        remarks += [remark for _, remark in self._campaigns().values()]
        return Understood(
            f"{self._lines.path}, {self._lines.format}", self.n_candidates, tuple(columns), tuple(remarks)
        )

    def _understood_result(self) -> UnderstoodColumn:
        assert self.result is not None
        k, n = self._whole.header.index(self.result), len(self.results)
        example = next((text for _, row in self._whole.rows if (text := text_of(row[k]))), "")
        lost = len(self._measured) - n
        what = f"{n or 'no'} result{'s' * (n != 1)}, taken in as measured" if n else "the result, none yet"
        return UnderstoodColumn(
            self.result, "result", example, f"{what}; {lost} of lines that were left out" if lost else what
        )

    @cached_property
    def domain(self) -> FiniteSet:
        """The candidates with all their columns; the ids are the first."""
        require("pandas")
        import pandas as pd

        return FiniteSet(pd.DataFrame({column.name: column.cells for column in self._columns}), withheld=self.withheld)

    def models(self, kernels: KernelChoice = AUTO, *, intercept: bool = True) -> ModelClass:
        """The models that the columns and descriptions suggest.

        With "auto", columns of words (and numbers beside them) are components: products, sums and joined descriptors,
        as `ModelClass.from_components` makes them. Columns of numbers alone, every description, and fingerprints and
        descriptors of SMILES get a model each and kernels that fit, and one model has all together. Several columns of
        SMILES, the components of a reaction, are one map per representation, side by side. Other choices are
        those of `ModelClass.from_matrices`, with words as columns of 0 and 1. Models of old campaigns come last.
        """
        found, components = self._matrices(), self._components()
        if kernels != AUTO:
            found |= {name: one.matrix for name, one in self._descriptions.items() if one.component is not None}
        matrices = {name: one.values for name, one in found.items()}
        if not matrices and not components:
            raise ValueError(
                f"{self._lines.path} has nothing that tells candidates apart; add columns of numbers or words, or a "
                f"description. Its columns are:\n{self.understood}"
            )
        self._warn_of_twins(matrices)
        if isinstance(kernels, Mapping) and OWN in matrices:
            kernels = {OWN: AUTO, **kernels}
        components = components if kernels == AUTO else {}
        if components and list(matrices) == [OWN]:
            matrices = {}
        out = make_models(matrices, components, kernels, intercept)
        out.encoding = self._encoding({name: found[name] for name in matrices}, components, kernels, intercept)
        if not self._memories:
            return out
        from alexp.table.memory import with_memories

        return with_memories(out, self.domain, {name: own for name, (own, _) in self._campaigns().items()})

    def _encoding(
        self,
        matrices: Mapping[str, FeatureMatrix],
        components: Mapping[str, Any],
        kernels: KernelChoice,
        intercept: bool,
    ) -> State | None:
        """What later candidates need, see `Encoding`; None where kernels are code."""
        if (chosen := stored_kernels(kernels)) is None:
            return None
        numbers = {name: column for name, column in self._by_name.items() if column.values is not None}
        described = {name: self._words_described(name) for name in components}
        encoding: Encoding = {
            "columns": [
                {"name": one.name, "kind": one.kind, "unit": one.unit, "constant": one.is_feature and one.is_constant}
                for one in self._columns
            ],
            "matrices": {name: stored_matrix(one) for name, one in matrices.items()},
            "components": {
                name: stored_feature(Feature.of(numbers[name])) if name in numbers else None for name in components
            },
            "described": {name: own for name, own in described.items() if own},
            "kernels": chosen,
            "intercept": intercept,
        }
        return dict(encoding)

    @property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self._columns}

    def _words_described(self, component: str) -> dict[str, StoredWords]:
        """The descriptions of the words of a component, by name."""
        words = list(dict.fromkeys(self._by_name[component].cells))
        first = [self._by_name[component].cells.index(word) for word in words]
        return {
            name: {"words": words, "values": one.matrix.values[first], **described_columns(one.matrix)}
            for name, one in self._descriptions.items()
            if one.component == component
        }

    def features(self) -> dict[str, FloatArray]:
        """Features by name of the description, (N, d) each, without those that all candidates share."""
        return {name: one.values for name, one in self._matrices().items()}

    def _matrices(self) -> dict[str, FeatureMatrix]:
        own = any(described.is_own for described in self._descriptions.values())
        used = [] if own else [one for one in self._columns if one.is_feature and not one.is_constant]
        out = {}
        if plain := [one for one in used if one.kind != "SMILES"]:
            out[OWN] = _matrix(plain, "table")
        molecules = [one for one in used if one.kind == "SMILES"]
        whose = molecules[0].name if len(molecules) == 1 else "SMILES"
        for form in MOLECULAR:
            features = tuple(one for column in molecules if (one := Feature.of(column, form)).known)
            if features:
                values = side_by_side(features, {one.name: one.cells for one in molecules})
                out[f"{whose} {form}"] = FeatureMatrix(values, "table", features)
        return out | {name: one.matrix for name, one in self._descriptions.items() if one.component is None}

    def _components(self) -> dict[str, Any]:
        """Components by name, where a column holds words; empty without them."""
        if any(described.is_own for described in self._descriptions.values()):
            return {}
        columns = [one for one in self._columns if one.is_feature and not one.is_constant]
        repeats = [one for one in columns if one.kind == "SMILES" and len(one.distinct) < len(one.cells)]
        if not any(one.kind == "words" for one in columns) and not repeats:
            return {}
        out: dict[str, Any] = {}
        for column in columns:
            described = {
                name: one.matrix.values for name, one in self._descriptions.items() if one.component == column.name
            }
            if column.values is not None:
                out[column.name] = Feature.of(column).encoded(column.cells)
            elif column.kind == "words" or column in repeats:
                out[column.name] = described or np.array(column.cells)
        return out

    def _warn_of_twins(self, matrices: Mapping[str, FloatArray]) -> None:
        if (twins := self.twins(matrices)) is not None:
            first, second = (self.called(k) for k in twins)
            caution(
                f"{self._lines.path}: {first} and {second} have the same features, so that no model tells them apart; "
                "remove one, or add a column in which they differ",
                UserWarning,
            )

    def called(self, k: int) -> str:
        """The name of a candidate: its id, or its place in the file."""
        return (
            f"{self._lines.place} {self._lines.rows[self._kept[k]][0]}" if self.id is None else repr(self.id.cells[k])
        )

    def twins(self, matrices: Mapping[str, FloatArray] | None = None) -> tuple[int, int] | None:
        """The first two candidates with the same features, by number; None if there are none."""
        values = list((self.features() if matrices is None else matrices).values())
        seen: dict[bytes, int] = {}
        for k in range(self.n_candidates):
            key = b"".join(np.ascontiguousarray(block[k]).tobytes() for block in values)
            if (first := seen.setdefault(key, k)) != k:
                return first, k
        return None

    def __repr__(self) -> str:
        described = f", described by {', '.join(self._descriptions)}" if self._descriptions else ""
        return f"Table({self._lines.path}: {self.n_candidates} candidates, {len(self._columns)} columns{described})"

    def _repr_html_(self) -> str:
        return self.understood._repr_html_()


def _matrix(columns: Sequence[Column], source: Source, kinds: Mapping[str, Kind] | None = None) -> FeatureMatrix:
    """Columns side by side."""
    features = tuple(Feature.of(column) for column in columns)
    return FeatureMatrix(side_by_side(features, {one.name: one.cells for one in columns}), source, features, kinds)


# -- reading ---------------------------------------------------------------------------------------------------


def _columns(lines: Lines, options: Options) -> tuple[list[Column], list[int], list[Remark]]:
    """The columns of a table, ids first; the rows that are kept, by number; and remarks."""
    _check_one_header(lines, options)
    ids = _id_column(lines, options)
    _check_last_lines(lines, ids)
    places = [k for k in range(len(lines.header)) if k != ids]
    columns, found = _understand_all(lines, places, options)
    named = list[Column]()
    try:
        named += [] if ids is None else [as_id(lines, ids)]
    except FileError as error:
        found.append(error)
    everything = list(range(len(lines.rows)))
    all_or_error([*_reserved(lines), *found, *_blank_cells(lines, columns, options, everything)], lines.path)
    drops = [one for one in columns if one.is_feature and one.blanks and options.missing_of(one.name) == "drop"]
    blank = {row for column in drops for row in column.blanks}
    kept, remarks = everything, list[Remark](lines.remarks)
    if blank:
        kept = [row for row in everything if row not in blank]
        if not kept:
            raise FileError(f"{lines.path}: every line has a blank cell, and missing='drop' leaves none")
        numbers = ", ".join(str(lines.rows[row][0]) for row in sorted(blank)[:MOST_LISTED])
        more = ", ..." if len(blank) > MOST_LISTED else ""
        what = "1 candidate" if len(blank) == 1 else f"{len(blank)} candidates"
        remarks.append(f"{what} with blank cells left out ({lines.place} {numbers}{more})")
        left = replace(lines, rows=[lines.rows[row] for row in kept])
        columns, named = [understand(left, k, options) for k in places], [one.taken(kept) for one in named]
    columns = _without_blanks(columns, options)
    n = len({row for one in columns if one.is_feature and one.values is not None for row in one.blanks})
    if n == len(kept):
        raise FileError(f"{lines.path}: every line has a blank cell, and a number that is filled in is not proposed")
    if n:
        what = "1 candidate with a number" if n == 1 else f"{n} candidates with numbers"
        remarks.append(f"{what} filled in: proposed only where `available` names {'it' if n == 1 else 'them'}")
    return [*named, *columns], kept, remarks


def _understand_all(
    lines: Lines, places: Sequence[int], options: Options, of_table: bool = True
) -> tuple[list[Column], list[FileError]]:
    """The columns, and the errors of those that are in doubt; of a table, they may be the results."""
    columns, own, found = list[Column](), list[int](), list[FileError]()
    for k in places:
        try:
            columns.append(understand(lines, k, options))
            own.append(k)
        except FileError as error:
            name, n = lines.header[k], sum(row[k] is None for _, row in lines.rows)
            is_known = not of_table or name in options.kinds or options.names_blanks(name)
            found.append(error if is_known or 2 * n <= len(lines.rows) else _mostly_blank(lines, name, n, options))
    try:
        check_points(lines, columns, own, options)
    except FileError as error:
        found.append(error)
    return columns, found


def _reserved(lines: Lines) -> Iterator[FileError]:
    """Errors for columns with names that files of results use."""
    for name in lines.header:
        if name.lower() in _RESERVED:
            what = f"{lines.path}: candidates must not have a column {name!r}, which files of results use; rename it"
            remedy: list[Part] = [", or say that it has the results: ", Remedy("reward", name)]
            yield FileError(what, *(remedy if name.lower() == REWARD else []))


def _blank_cells(
    lines: Lines, columns: Sequence[Column], options: Options, order: Sequence[int], of_table: bool = True
) -> Iterator[FileError]:
    """Errors for blank cells of columns that are not ignored by name; `order` has the lines of their cells.

    A column of a table that is blank in more than half of the lines may be that of the results, and has to be named.
    """
    cells = list[tuple[Column, int]]()
    for one in columns:
        how, n = options.missing_of(one.name), len(one.blanks)
        if not n or n == len(one.cells) or options.kinds.get(one.name) == "label":
            continue
        if of_table and 2 * n > len(one.cells) and how != "leave out" and not options.names_blanks(one.name):
            yield _mostly_blank(lines, one.name, n, options)
        elif how == "drop" and not of_table:
            yield FileError(
                f"{lines.path}: missing='drop' is for the table itself; blank cells of a description can be filled (",
                Remedy("missing", "median"),
                ") or their columns left out (",
                Remedy("missing", "leave out"),
                ")",
            )
            return
        elif how == "median" and one.kind == "SMILES":
            yield FileError(
                f"{lines.at(order[one.blanks[0]])}, column {one.name!r}: there is no median of molecules; say ",
                Remedy("missing", {one.name: "drop"}),
                " or ",
                Remedy("missing", {one.name: "leave out"}),
            )
        elif how == "refuse" and not one.is_feature:
            place = f"{lines.at(order[one.blanks[0]])}, column {one.name!r}"
            yield FileError(
                f"{place}: the cell is blank, as {n} of the column ({worded(one.becomes)}); fill them in, or say that "
                "models do not need it: ",
                Remedy("ignore", [one.name]),
            )
        elif how == "refuse":
            cells += [(one, row) for row in one.blanks]
    if not cells:
        return
    names = {one.name for one, _ in cells}
    listed = [f"{lines.at(order[row])}, column {one.name!r}: the cell is blank\n" for one, row in cells[:MOST_LISTED]]
    more = f"and {len(cells) - MOST_LISTED} more\n" if len(cells) > MOST_LISTED else ""
    drop: list[Part] = [Remedy("missing", "drop"), " (leaves out these candidates), "] if of_table else []
    never = ", and proposes such a candidate only where `available` names it" if of_table else ""
    many = [
        one for one in columns if one.values is not None and one.name in names and 5 * len(one.blanks) > len(one.cells)
    ]
    results: list[Part] = []
    for one in many if of_table and options.reward is None else []:
        results += [Remedy("reward", one.name), " (if this column has the results), "]
    yield FileError(
        "".join([*listed, more]) + "fill them in, or say what to do: ",
        *results,
        *drop,
        Remedy("missing", "median"),
        f" (fills in numbers{never}) or ",
        Remedy("missing", "leave out"),
        " (these columns)",
    )


def _mostly_blank(lines: Lines, name: str, n: int, options: Options) -> FileError:
    """The error for a column of which n cells are blank; it may be that of the results if it has a number."""
    is_result, k = list[Part](), lines.header.index(name)
    if options.reward is None and any(_looks_numeric(row[k]) for _, row in lines.rows):
        is_result += ["if it has the results, say ", Remedy("reward", name), "; "]
    return FileError(
        f"{lines.path}, column {name!r}: {n} of {len(lines.rows)} cells are blank; ",
        *is_result,
        "if models do not need it, leave it out: ",
        Remedy("ignore", [name]),
        "; otherwise say what to do with the blank cells of this column: ",
        Remedy("missing", {name: "drop" if "smiles" in name.lower() else "median"}),
    )


def _without_blanks(columns: Sequence[Column], options: Options) -> list[Column]:
    """The columns with their blank cells treated as `missing` says; none of them is refused."""
    out = []
    for one in columns:
        if one.is_feature and one.blanks:
            n = len(one.blanks)
            if options.missing_of(one.name) == "leave out":
                one = one.as_label(f"left out: {n} blank cells")
            elif one.values is None:
                one = replace(one, remarks=(*one.remarks, f"{n} blank: a word of its own"))
            else:
                one = replace(one, remarks=(*one.remarks, f"{n} blank: the median, and a column that says so"))
        out.append(one)
    return out


def _id_column(lines: Lines, options: Options) -> int | None:
    if options.id is not None:
        return lines.header.index(options.id)
    titles = [title.lower() for title in lines.header]
    if lines.header[0] not in options.kinds:
        if titles[0] in _IDS or titles[0].rstrip(".").endswith((" id", "_id", "-id", " nr", "-nr")):
            return 0
        first = [row[0] for _, row in lines.rows]
        distinct = all(isinstance(cell, str) for cell in first) and len(set(first)) == len(first)
        plain = replace(options, kinds={})
        with suppress(FileError):  # which is said of the column
            if distinct and "smiles" not in titles[0] and understand(lines, 0, plain).kind in ("words", "label"):
                return 0
    if "id" in titles and lines.header[titles.index("id")] not in options.kinds:
        return titles.index("id")
    return None


def _check_one_header(lines: Lines, options: Options) -> None:
    """Raise if the first line below the names looks like more names, or units."""
    if lines.place != "line" or len(lines.rows) < 3:
        return
    number, first = lines.rows[0]
    below = [[row[k] for _, row in lines.rows[1:_MOST_LOOKED_AT]] for k in range(len(lines.header))]
    numeric = [k for k, cells in enumerate(below) if all(_looks_numeric(cell) for cell in cells)]
    if numeric and all(
        isinstance(first[k], str)
        and not _looks_numeric(first[k])
        and text_of(first[k]).lower() not in BLANK
        and text_of(first[k]) not in options.replace
        for k in numeric
    ):
        shown = ", ".join(repr(first[k]) for k in numeric[:3])
        raise FileError(
            f"{lines.path}, line {number}: this line has texts ({shown}) where all lines below have numbers; if it "
            "holds units or more names, say ",
            Remedy("skip", [number]),
            ", or ",
            Remedy("header", number),
            " if the names are there",
            assuming=[Remedy("skip", [number])],
        )


def _check_last_lines(lines: Lines, ids: int | None) -> None:
    """Raise if the last lines look like sums or means of the others, as spreadsheets have them."""
    k = ids or 0
    names = [text_of(row[k]) for _, row in lines.rows]
    found = [
        row
        for row in range(max(2, len(names) - _MOST_SUMMARIES), len(names))
        if names[row].strip().rstrip(":.").lower() in _SUMMARIES
    ]
    if found:
        remedy = Remedy("skip", [lines.rows[row][0] for row in found])
        raise FileError(
            f"{lines.at(found[0], k)}: {names[found[0]]!r} looks like a summary of the lines above, not a candidate; "
            "remove it, or say ",
            remedy,
            assuming=[remedy],
        )


def _looks_numeric(cell: object) -> bool:
    return (isinstance(cell, int | float) and not isinstance(cell, bool)) or (
        isinstance(cell, str) and written(cell) is not None
    )


def _match(lines: Lines, k: int, wanted: Sequence[str]) -> list[int]:
    """The row of every candidate, by the texts of a column."""
    column = as_id(lines, k)
    place = {text: row for row, text in enumerate(column.cells)}
    if missing := list(dict.fromkeys(text for text in wanted if text not in place)):
        raise FileError(
            f"{lines.path}, column {lines.header[k]!r}: there is no line for {missing[0]!r}"
            f"{did_you_mean(missing[0], place)} ({len(missing)} of {len(set(wanted))} are missing)"
        )
    return [place[text] for text in wanted]
