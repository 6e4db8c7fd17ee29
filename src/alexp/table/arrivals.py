"""Candidates that come later: a table is read as the first one was, checked against it, and made features of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, cast

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.validation import did_you_mean
from alexp.common.warning import caution
from alexp.problem.domains import Domain, FiniteSet
from alexp.problem.models import ModelClass
from alexp.table.columns import NUMERIC, Column, Options, Reading
from alexp.table.encoding import (
    Arrivals,
    DescribedColumns,
    Encoding,
    Feature,
    StoredWords,
    extended,
    side_by_side,
    stored_feature,
)
from alexp.table.files import FileError
from alexp.table.remedies import Remedy, worded
from alexp.table.table import DescribedBy, Table
from alexp.table.understood import Understood, UnderstoodColumn

_MOST_NAMED = 5  # new words that a warning lists


def encoding_of(models: ModelClass, domain: Domain) -> Encoding:
    """How the models were made of a table, or an error that says why candidates cannot be added to them."""
    if models.encoding is None or not isinstance(domain, FiniteSet) or not hasattr(domain.candidates, "iloc"):
        raise TypeError(
            "candidates and old campaigns can be added to models that an alexp.Table made, with kernels that can be "
            "stored; these are models of your own, and nothing says which features a new candidate has. Pass the Table "
            "in place of models and domain"
        )
    return cast(Encoding, models.encoding)


def stated_kinds(models: ModelClass, domain: Domain) -> Reading:
    """Keywords of `Table.read` with which a file of new candidates is read as the first table was."""
    encoding = encoding_of(models, domain)
    named = {column["name"]: column["kind"] for column in encoding["columns"]}
    id = next((name for name, kind in named.items() if kind == "id"), None)
    kinds: dict[str, Any] = {name: kind for name, kind in named.items() if kind != "id"}
    return {"id": id, "kinds": kinds}


def arriving(models: ModelClass, domain: Domain, table: Table) -> Arrivals:
    """The candidates of a table as they are added to a problem that another table made; raises if they do not fit."""
    encoding = encoding_of(models, domain)
    assert isinstance(domain, FiniteSet)
    if not isinstance(table, Table):
        raise TypeError(
            f"new candidates come as an alexp.Table, got {type(table).__name__}; alexp.Table.read(path) and "
            "alexp.Table.from_frame(frame) make one"
        )
    _check_columns(table, encoding)
    new = _read_alike(table, encoding, stated_kinds(models, domain))
    columns = {column.name: column for column in new._columns}
    _check_units(new, columns, encoding)
    _check_spelling(new, domain)
    _check_new(new, domain)
    cells = {name: column.cells for name, column in columns.items()}
    _check_descriptions(new, encoding)
    features, matrices = dict[str, FloatArray](), encoding["matrices"]
    out: Encoding = {**encoding, "matrices": dict(matrices), "described": {}}
    fresh: dict[str, list[str]] = {}
    for name, stored in matrices.items():
        described = new._descriptions.get(name)
        if stored["source"] == "array":
            features[name] = _array(name, described, stored["width"])
            continue
        own = columns if stored["source"] == "table" else _described_columns(new, name, described, stored)
        widened = [_widened(feature, own, fresh, new) for feature in map(Feature.from_dict, stored["features"])]
        features[name] = side_by_side(widened, {title: column.cells for title, column in own.items()})
        _check_finite(features[name], widened, new, name)
        out["matrices"][name] = {
            **stored, "features": [stored_feature(one) for one in widened], "width": features[name].shape[1],
        }  # fmt: skip
    for name, component in encoding["components"].items():
        if component is None:
            known = set(domain.candidates[name])
            fresh[name] = [word for word in dict.fromkeys(cells[name]) if word not in known]
        else:
            _check_filled(Feature.from_dict(component), columns[name], new)
    for column, by_name in encoding["described"].items():
        out["described"][column] = {
            name: _with_words(name, words, cells[column], new) for name, words in by_name.items()
        }
    _say_what_is_new(new, encoding, fresh, columns, domain)
    arrivals: Arrivals = {"cells": cells, "features": dict(features), "encoding": out}
    if new.withheld:
        arrivals["withheld"] = new.withheld
    if memories := encoding.get("memories"):
        from alexp.table.memory import expected, without_memories

        alone = {**arrivals, "encoding": cast(Encoding, {**out, "memories": {}})}
        larger = extended(without_memories(models), domain, cast(Arrivals, alone))
        for name, campaign in memories.items():
            arrivals["features"][name] = expected(*larger, campaign)[domain.n_candidates :, None]
    return arrivals


def as_first_read(table: Table, encoding: Encoding | None, withheld: Sequence[int]) -> Table:
    """The table of a study that exists, read as it was then: what columns are taken for may differ between versions.

    `withheld` are the candidates that are proposed only where they are named. Without an encoding the models are the
    caller's.
    """
    if encoding is None:
        out = copy(table)
        out.__dict__.pop("domain", None)
        out.withheld = list(withheld)
        return out
    named = {str(column["name"]): column["kind"] for column in encoding["columns"]}
    now = {column.name: column.kind for column in table._columns}
    if now.keys() != named.keys() or (now == named and list(withheld) == table.withheld):
        return table
    id = next((name for name, kind in named.items() if kind == "id"), None)
    kinds = {name: cast(Any, kind) for name, kind in named.items() if kind != "id"}
    out = _read_alike(table, encoding, {"id": id, "kinds": kinds})
    for name, described in table._descriptions.items():
        found = out._own(name, [one.name for one in described.columns]) if described.is_own else out._descriptions[name]
        out._descriptions[name] = found
    out._descriptions = {name: out._descriptions[name] for name in table._descriptions}
    out._memories, out.withheld = table._memories, list(withheld)
    return out


def understood(models: ModelClass, domain: Domain, table: Table) -> Understood:
    """What the columns of new candidates are; what `arriving` would say has to be said before."""
    encoding = encoding_of(models, domain)
    assert isinstance(domain, FiniteSet)
    constant = {column["name"] for column in encoding["columns"] if column["constant"]}
    lines = []
    for column in table._columns:
        if column.kind == "words" and column.name not in constant:
            known = set(domain.candidates[column.name])
            fresh = [word for word in column.distinct if word not in known]
            becomes = f"words, new here: {_some(fresh)}" if fresh else "words, all known"
        elif column.name in constant:
            becomes = "left out, as at first"
        elif column.kind in NUMERIC:
            becomes = worded(replace(column, blanks=[0]).becomes)  # whether or not they are all the same
        else:
            becomes = worded(column.becomes) if column.kind in ("id", "label") else "as at first"
        lines.append(UnderstoodColumn(column.name, column.kind, column.example, becomes))
    return replace(table.understood, columns=tuple(lines))


def _some(words: Sequence[str]) -> str:
    return ", ".join(map(repr, words[:_MOST_NAMED])) + ", ..." * (len(words) > _MOST_NAMED)


def _check_columns(table: Table, encoding: Encoding) -> None:
    there, wanted = table._lines.header, [str(column["name"]) for column in encoding["columns"]]
    missing = [name for name in wanted if name not in there]
    unknown = [name for name in there if name not in wanted]
    if not missing and not unknown:
        return
    lacks = f"lacks {_listed(missing)}" if missing else ""
    more = f"has {_listed(unknown)}, which the first table does not have" if unknown else ""
    meant = next((hint for name in unknown if (hint := did_you_mean(name, missing))), "")
    raise FileError(
        f"{table._lines.path} {' and '.join(filter(None, [lacks, more]))}{meant}; new candidates need the columns of "
        f"the first: {', '.join(map(repr, wanted))}"
    )


def _listed(names: Sequence[str]) -> str:
    return f"the column{'s' * (len(names) > 1)} {', '.join(map(repr, names))}"


def _read_alike(table: Table, encoding: Encoding, stated: Reading) -> Table:
    """The table read again, with every column as what it was at first."""
    for name, kind in table._options.kinds.items():
        if kind != (first := stated["kinds"].get(name, "id")):
            raise FileError(
                f"{table._lines.path}: the column {name!r} is said to be {kind!r}, and it is {first!r} in the first "
                "table; leave its kind out"
            )
    if table._options.id not in (None, stated["id"]):
        raise FileError(
            f"{table._lines.path}: the ids of the first table are in {stated['id'] or 'no column'!r}, not in "
            f"{table._options.id!r}; leave id out"
        )
    out = Table(table._whole, replace(table._options, ignore=(), id=stated["id"], kinds=stated["kinds"]))
    for column in out._columns:
        if column.kind == "label" and stated["kinds"].get(column.name) not in ("label", None):
            raise FileError(
                f"{table._lines.path}: the column {column.name!r} has blank cells, and models use it; fill them in, or "
                "leave these candidates out: ",
                Remedy("missing", "drop"),
            )
    by_name: dict[str, DescribedColumns] = {**encoding["matrices"]}
    for own in encoding["described"].values():
        by_name |= own
    for name, described in table._descriptions.items():
        if described.is_own:
            continue  # columns of a table are made features of by their names
        if described.array is not None or described.lines is None or name not in by_name:
            out._descriptions[name] = described
            continue
        known: dict[str, Any] = {
            title: kind for title, kind in by_name[name]["columns"].items() if title in described.lines.header
        }
        options = replace(described.options or Options(), kinds=known, ignore=())
        out._descriptions[name] = out._described(name, described.lines, options)
    return out


def _check_units(table: Table, columns: Mapping[str, Column], encoding: Encoding) -> None:
    for first in encoding["columns"]:
        unit = columns[first["name"]].unit
        if unit and unit != first["unit"] and first["kind"] in NUMERIC:
            raise FileError(
                f"{table._lines.path}, column {first['name']!r}: the unit is {unit!r}, and that of the first table is "
                f"{first['unit'] or 'not stated'!r}; write all numbers of a column in one unit"
            )


def _check_spelling(table: Table, domain: FiniteSet) -> None:
    """Raise if a molecule that is there already is spelled in another way."""
    from alexp.table.chemistry import respelled

    for column in table._columns:
        if column.kind == "SMILES":
            for row, other in enumerate(respelled(column.cells, domain.candidates[column.name])):
                if other != (text := column.cells[row]):
                    raise FileError(
                        f"{table._lines.at(table._kept[row])}, column {column.name!r}: {text!r} is {other!r} of the "
                        f"first table in another spelling, which would count as another component; write {other!r}"
                    )


def _check_new(table: Table, domain: FiniteSet) -> None:
    """Raise if a candidate is there already, by its id, or by all of its cells if there are no ids."""
    names = [column.name for column in table._columns] if table.id is None else [table.id.name]
    before = list(zip(*(domain.candidates[name] for name in names), strict=True))
    known = {tuple(map(str, cells)): k for k, cells in enumerate(before)}
    own = [column.cells for column in table._columns if column.name in names]
    for row, cells in enumerate(zip(*own, strict=True)):
        if (number := known.get(tuple(map(str, cells)))) is not None:
            place = table._lines.at(table._kept[row])
            what = "a candidate with these values" if table.id is None else f"the id {cells[0]!r}"
            raise FileError(f"{place}: {what} is candidate {number} already; remove the line, or rename one of the two")


def _check_descriptions(table: Table, encoding: Encoding) -> None:
    needed = [name for name, stored in encoding["matrices"].items() if stored["source"] != "table"]
    optional = [name for own in encoding["described"].values() for name in own]
    for name in needed:
        if name not in table._descriptions:
            raise FileError(
                f"{table._lines.path}: the first candidates have the description {name!r}, and the new ones need it "
                f"as well: table.describe({name!r}, ...), --features {name}=FILE on the command line"
            )
    for name in table._descriptions:
        if name not in (*needed, *optional):
            there = ", ".join(map(repr, [*needed, *optional])) or "none"
            raise FileError(
                f"{table._lines.path}: the description {name!r} is not known{did_you_mean(name, needed)}; the first "
                f"candidates have {there}"
            )


def _array(name: str, described: DescribedBy | None, width: int) -> FloatArray:
    assert described is not None
    if described.array is None or described.array.shape[1] != width:
        raise ValueError(
            f"the description {name!r} of the first candidates is an array with {width} columns; pass such an array "
            "for the new ones"
        )
    return described.array


def _described_columns(
    table: Table, name: str, described: DescribedBy | None, stored: DescribedColumns
) -> dict[str, Column]:
    assert described is not None
    own = {column.name: column for column in described.columns}
    missing = [title for title in stored["columns"] if title not in own]
    unknown = [title for title in own if title not in stored["columns"]]
    if missing or unknown:
        what = f"lacks {_listed(missing)}" if missing else f"has {_listed(unknown)}, which it did not have at first"
        path = table._lines.path if described.lines is None else described.lines.path
        raise FileError(f"{path}: the description {name!r} {what}; it must have the columns of the first")
    return own


def _widened(feature: Feature, columns: Mapping[str, Column], fresh: dict[str, list[str]], table: Table) -> Feature:
    """A feature with what is new in a column; words are put on the list."""
    column = columns[feature.column]
    if feature.form == "number":
        _check_filled(feature, column, table)
    out = feature.widened(column.cells)
    if feature.form == "words" and len(out.known) > len(feature.known):
        fresh[feature.column] = list(out.known[len(feature.known) :])
    return out


def _check_filled(feature: Feature, column: Column, table: Table) -> None:
    if column.blanks and feature.median is None:
        raise FileError(
            f"{table._lines.path}: {table.called(column.blanks[0])} has no {column.name!r}, and all candidates had one "
            "at first, so that there is nothing to fill it in by; write a number"
        )


def _check_finite(values: FloatArray, features: Sequence[Feature], table: Table, name: str) -> None:
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values))[0][0])
        raise FileError(
            f"{table._lines.path}: {table.called(row)} lacks a feature of {name!r} ({features[0].column!r}), which all "
            "candidates had at first"
        )


def _with_words(name: str, stored: StoredWords, cells: Sequence[str], table: Table) -> StoredWords:
    """A description of words with those that are new; these must be described."""
    new = [word for word in dict.fromkeys(cells) if word not in stored["words"]]
    if not new:
        return stored
    described = table._descriptions.get(name)
    if described is None:
        raise FileError(
            f"{table._lines.path}: {new[0]!r} is new, and the description {name!r} has no line for it; bring one: "
            f"table.describe({name!r}, ...), --features {name}=FILE on the command line"
        )
    own = _described_columns(table, name, described, stored)
    features = [Feature.from_dict(one) for one in stored["features"]]
    rows = [cells.index(word) for word in new]
    taken = {title: column.taken(rows) for title, column in own.items()}
    widened = [_widened(feature, taken, {}, table) for feature in features]
    values = side_by_side(widened, {title: column.cells for title, column in taken.items()})
    _check_finite(values, widened, table, name)
    before = np.asarray(stored["values"])
    further = np.zeros((len(before), values.shape[1] - before.shape[1]))
    return {
        **stored,
        "words": [*stored["words"], *new],
        "values": np.vstack([np.hstack([before, further]), values]),
        "features": [stored_feature(one) for one in widened],
    }


def _say_what_is_new(
    table: Table, encoding: Encoding, fresh: Mapping[str, list[str]], columns: Mapping[str, Column], domain: FiniteSet
) -> None:
    """Warn of words that no candidate had before, and of columns that models cannot use."""
    for name, words in fresh.items():
        if words:
            if name in encoding["components"]:
                what = "as different from every word as these are from each other"
            else:
                what = "with a column of 0 and 1 of its own, which models of standardised columns do not see"
            caution(
                f"{table._lines.path}, column {name!r}: new here: {_some(words)}; each is a word, {what}", UserWarning
            )
    for column in encoding["columns"]:
        name = str(column["name"])
        if column["constant"] and set(map(str, columns[name].cells)) != {str(domain.candidates[name].iloc[0])}:
            caution(
                f"{table._lines.path}, column {name!r}: all candidates had {domain.candidates[name].iloc[0]!r} at "
                "first, so that no model sees that new ones differ; start another study if it matters",
                UserWarning,
            )
