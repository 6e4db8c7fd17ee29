"""Memory: an old campaign is read as the table was, and its posterior mean over our candidates becomes a column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from alexp.common.arrays import AnyArray, FloatArray
from alexp.common.backends import backend
from alexp.common.files import read_bytes
from alexp.common.validation import did_you_mean
from alexp.common.warning import caution
from alexp.problem.domains import Domain, FiniteSet
from alexp.problem.matrices import Matrices
from alexp.problem.memory_models import memories_of
from alexp.problem.models import ModelClass
from alexp.table.arrivals import encoding_of
from alexp.table.columns import BLANK, NUMERIC, REWARD, Column, Options, Stated, understand, yes_or_no
from alexp.table.encoding import (
    Arrivals,
    Encoding,
    Feature,
    OldResults,
    kernels_stored,
    make_models,
    side_by_side,
    trusts,
)
from alexp.table.files import FileError, Lines, frame_lines, text_of
from alexp.table.remedies import OPEN, Remedy
from alexp.table.results import measurements, without_column

MOST_RESULTS = 500  # of a campaign: 300 take 8 s of one core, and the time grows with the square
_NO_RESULT = BLANK | {"", "failed", "pending"}
LEAST_KNOWN = 0.3  # share of their variance that old results explain; shuffled ones explain .03 to .4 of it
_FLAT = 1e-9  # of a mean's size: what varies less is rounding


# -- reading ---------------------------------------------------------------------------------------------------


def check_names(campaigns: Mapping[str, Any], taken: Iterable[str]) -> None:
    """Raise unless there are campaigns, under names that are texts and not taken."""
    if not isinstance(campaigns, Mapping) or not campaigns:
        raise TypeError(f"campaigns must be a non-empty dict of name -> results, got {campaigns!r:.60}")
    for name in campaigns:
        if not isinstance(name, str) or not name.strip():
            raise TypeError(f"the name of a campaign must be a text, got {name!r}")
        if name in taken:
            raise ValueError(f"there is a memory or description {name!r} already; choose another name")


def read_campaign(
    name: str, source: object, encoding: Encoding, domain: FiniteSet, reward: str = REWARD
) -> tuple[OldResults, str]:
    """The results of an old campaign as the table's columns have them, and a remark on what became of them.

    `source` is a path, a data frame, an `alexp.Table` or its lines, or a run or study of a table. Its columns are
    matched by name, molecules in any spelling. A result whose id, and all cells that models use, are those of a
    candidate is one of that candidate.
    """
    lines, options = _lines(name, source, reward)
    lines, rewards, n_without = _results(lines, reward, options)
    columns, unused = _columns(lines, options, encoding)
    columns = [_spelled_as_known(column, domain) for column in columns]
    places = _places(lines, columns, encoding, domain)
    whole = [row for row in range(len(rewards)) if places[row] >= 0 or not any(row in c.blanks for c in columns)]
    if not whole:
        raise FileError(f"{lines.path}: every result has a blank cell in a column that models use; fill them in")
    other = [row for row in whole if places[row] < 0]
    parts = [f"{len(whole)} results", f"{len(whole) - len(other)} of them of candidates"]
    counts = (n_without, "without a reward"), (len(rewards) - len(whole), "with blank cells")
    parts += [f"{n} {what} left out" for n, what in counts if n]
    parts += [f"columns that are not used: {', '.join(unused)}"] if unused else []
    campaign: OldResults = {
        "cells": {column.name: column.taken(other).cells for column in columns},
        "places": np.array([places[row] for row in whole], dtype=np.int64),
        "rewards": np.array([rewards[row] for row in whole]),
    }
    return campaign, f"memory {name!r}: {'; '.join(parts)}"


def _lines(name: str, source: Any, reward: str) -> tuple[Lines, Options]:
    """The cells of a source, and how to read them."""
    if isinstance(source, Lines):
        return source, Options()
    if isinstance(source, str | Path):
        return Options().lines(read_bytes(Path(source)), Path(source)), Options()
    if hasattr(source, "iloc"):
        return frame_lines(source, name), Options()
    if hasattr(source, "_lines"):
        return source._whole, source._options
    if hasattr(source, "trials_dataframe"):
        trials = source.trials_dataframe()
        if not all(isinstance(x, Mapping) for x in trials["x"]) or reward not in trials:
            raise TypeError(
                f"memory {name!r}: the study must be one of a table, with results in {reward!r}; pass a data frame "
                "with its columns and rewards"
            )
        rows = [{**x, reward: y} for x, y in zip(trials["x"], trials[reward], strict=True)]
        return frame_lines(type(trials)(rows), name), Options()
    raise TypeError(
        f"memory {name!r} must be a data frame, the path of a file, an alexp.Table or a study, got "
        f"{type(source).__name__}"
    )


def _results(lines: Lines, reward: str, options: Options) -> tuple[Lines, list[float], int]:
    """The lines that have a reward, without its column; the rewards; how many lines have none."""
    if lines.maybe(reward) is None:
        there = ", ".join(map(repr, lines.header))
        raise FileError(
            f"{lines.path} has no column {reward!r}{did_you_mean(reward, lines.header)}; say which one holds the "
            "results: ",
            Remedy("reward", OPEN),
            f". It has {there}",
        )
    k = lines.column(reward)
    found, n_without = measurements(lines, k, options, _NO_RESULT)
    if not found:
        raise FileError(f"{lines.path}: no line has a number in {reward!r}; there is nothing to learn from")
    if len(found) > MOST_RESULTS:
        raise FileError(
            f"{lines.path} has {len(found)} results, more than {MOST_RESULTS}; pass so many of them, such as the newest"
        )
    out = without_column(replace(lines, rows=[lines.rows[row] for row, _ in found]), k)
    return out, [value for _, value in found], n_without


def _columns(lines: Lines, options: Options, encoding: Encoding) -> tuple[list[Column], list[str]]:
    """The columns that models use, as far as the lines have them, read as the table's; names of columns not used."""
    used = {one["name"]: one for one in encoding["columns"] if one["kind"] not in ("id", "label")}
    kinds = {name: cast(Stated, one["kind"]) for name, one in used.items() if name in lines.header}
    reading = replace(options, kinds=kinds, ignore=())
    out = []
    for name in kinds:
        if used[name]["constant"]:
            continue
        column = understand(lines, lines.header.index(name), reading)
        unit = used[name]["unit"]
        if column.unit and unit != column.unit and column.kind in NUMERIC:
            raise FileError(
                f"{lines.path}, column {name!r}: the unit is {column.unit!r}, and that of the table is "
                f"{unit or 'not stated'!r}; write the numbers in the unit of the table"
            )
        out.append(column)
    names = {one["name"] for one in encoding["columns"]}
    return out, [
        repr(title) for title in lines.header if title not in names or (title in used and used[title]["constant"])
    ]


def _spelled_as_known(column: Column, domain: FiniteSet) -> Column:
    """Molecules as the table spells them; other columns as they are."""
    if column.kind != "SMILES":
        return column
    from alexp.table.chemistry import respelled

    return replace(column, cells=respelled(column.cells, domain.candidates[column.name]))


def _places(lines: Lines, columns: list[Column], encoding: Encoding, domain: FiniteSet) -> list[int]:
    """The candidate that each result is of, -1 for others; raises where those lack a column that models use."""
    there = {column.name: column for column in columns}
    needed = [one["name"] for one in encoding["columns"] if one["kind"] not in ("id", "label") and not one["constant"]]
    missing = [name for name in needed if name not in there]
    kinds = {one["name"]: one["kind"] for one in encoding["columns"]}
    table = {name: [_plain(cell, kinds[name]) for cell in domain.candidates[name]] for name in needed}
    rows = {name: [_plain(cell, kinds[name]) for cell in column.cells] for name, column in there.items()}
    id = next((name for name, kind in kinds.items() if kind == "id"), None)
    by_id = {} if id is None else {str(cell): k for k, cell in enumerate(domain.candidates[id])}
    column = lines.maybe(id) if id is not None else None
    names = ["" if column is None else text_of(row[column]) for _, row in lines.rows]
    described = any(one["source"] != "table" for one in encoding["matrices"].values())  # by more than their cells
    same: dict[tuple[object, ...], int] = {}
    if needed and not missing and not described:
        for k, cells in enumerate(zip(*table.values(), strict=True)):
            same.setdefault(cells, k)
    out = []
    for row, name in enumerate(names):
        place = by_id.get(name, -1)
        if place < 0 or any(rows[one][row] != table[one][place] for one in rows):
            place = same.get(tuple(rows[one][row] for one in needed), -1) if same else -1
        if place < 0 and (missing or not needed):
            what, lacks = repr(name) if name else "the result", "has no column that models use"
            if missing:
                lacks = f"lacks the column {missing[0]!r}{did_you_mean(missing[0], lines.header)}"
            ids = f", or name candidates of the table in {id!r}" if id is not None else ""
            raise FileError(f"{lines.at(row)}: {what} is none of the candidates, and the file {lacks}; add it{ids}")
        out.append(place)
    return out


def _plain(cell: Any, kind: str) -> object:
    """A cell so that equal ones are equal."""
    if kind == "yes/no":
        return yes_or_no(str(cell))
    return float(cell) if kind in NUMERIC and cell != "" else str(cell)


# -- learning --------------------------------------------------------------------------------------------------


def with_memories(models: ModelClass, domain: FiniteSet, campaigns: Mapping[str, OldResults]) -> ModelClass:
    """The models of a table, with those of old campaigns behind them."""
    if not (learned := _learned(models, domain, campaigns)):
        return models
    out = models.remembering(learned, trusts(learned, domain.n_candidates))
    if models.encoding is not None:
        out.encoding = {**models.encoding, "memories": {name: campaigns[name] for name in learned}}
    return out


def learning(models: ModelClass, domain: Domain, sources: Mapping[str, Any], reward: str) -> Arrivals:
    """What a run learns from old campaigns, in the form of candidates that are added, of which there are none."""
    encoding = encoding_of(models, domain)
    assert isinstance(domain, FiniteSet)
    known = encoding.get("memories", {})
    check_names(sources, [*known, *encoding["matrices"]])
    campaigns = {name: read_campaign(name, one, encoding, domain, reward)[0] for name, one in sources.items()}
    if models._scales is not None:
        raise ValueError("models that were normalized cannot learn from campaigns later: create them with the memory")
    if not (learned := _learned(models, domain, campaigns)):
        raise ValueError(
            f"there is nothing to learn from {', '.join(map(repr, campaigns))}: results are too few, or the table's "
            "columns do not explain them"
        )
    none = {name: np.zeros((0, stored["width"])) for name, stored in encoding["matrices"].items()}
    return {
        "cells": {str(name): [] for name in domain.candidates.columns},
        "features": none | {name: np.zeros((0, 1)) for name in known},
        "encoding": {**encoding, "memories": {**known, **{name: campaigns[name] for name in learned}}},
        "learned": learned,
    }


def _learned(models: ModelClass, domain: FiniteSet, campaigns: Mapping[str, OldResults]) -> dict[str, AnyArray]:
    """What each campaign makes expect of the candidates; those that know too little are left out, and said."""
    out: dict[str, AnyArray] = {}
    for name, campaign in campaigns.items():
        out[name] = expected(models, domain, campaign)
        if (known := trusts(out, models.batches[0] if models.batches else domain.n_candidates)[name]) < LEAST_KNOWN:
            del out[name]
            caution(
                f"memory {name!r} is left out: the table's columns explain {known:.0%} of the variance of its "
                f"{len(campaign['rewards'])} results, less than {LEAST_KNOWN:.0%}, and chance explains as much",
                UserWarning,
            )
    return out


def expected(models: ModelClass, domain: FiniteSet, campaign: OldResults) -> FloatArray:
    """What the results of a campaign make the table's models expect of every candidate, (N,).

    It is the posterior mean, less its mean over the first candidates, in units of the deviation of the old rewards:
    its own variance is the share of theirs that it explains, next to zero after two results and where no model
    predicts them. All zero where it is the same for all. Results that are of no candidate are compared with these by
    the columns of the table.
    """
    encoding, places = cast(Encoding, models.encoding), np.asarray(campaign["places"]).copy()
    others, n = places < 0, domain.n_candidates
    n_first = models.batches[0] if models.batches else n
    if others.any():
        places[others] = n + np.arange(others.sum())
        cells = {name: [*domain.candidates[name], *own] for name, own in campaign["cells"].items()}
        joint = _of_cells(encoding, cells, (n_first, n + int(others.sum()) - n_first))
    else:
        joint = without_memories(models)
    rewards = np.asarray(campaign["rewards"])
    mean = backend("learned_mean")(joint, places, rewards)
    centred = mean[:n] - mean[:n_first].mean()
    varies, unit = float(centred[:n_first].std()), float(rewards.std())
    return np.asarray(centred / unit if varies > _FLAT * max(np.abs(mean).max(), unit) else np.zeros(n))


def _of_cells(encoding: Encoding, cells: Mapping[str, list[Any]], batches: tuple[int, ...]) -> ModelClass:
    """Models as the table makes them of its own columns, of candidates by their cells; descriptions are left out."""
    matrices, components = dict[str, FloatArray](), dict[str, Any]()
    for name, stored in encoding["matrices"].items():
        if stored["source"] == "table":
            features = [Feature.from_dict(one) for one in stored["features"]]
            matrices[name] = side_by_side([one.widened(cells[one.column]) for one in features], cells)
    for name, component in encoding["components"].items():
        components[name] = (
            np.array(cells[name]) if component is None else Feature.from_dict(component).encoded(cells[name])
        )
    kernels = kernels_stored(encoding["kernels"])
    if isinstance(kernels, Mapping):
        kernels = {name: kernels[name] for name in matrices}
    return make_models(matrices, components, kernels, encoding["intercept"], batches)


def without_memories(models: ModelClass) -> ModelClass:
    """The models of a table alone, with the columns they have."""
    encoding, dictionary = models.encoding, models.dictionary
    if encoding is None or not (known := encoding.get("memories")):
        return models
    assert isinstance(dictionary, Matrices)
    own = np.setdiff1d(np.arange(models.n_models), np.concatenate(memories_of(models, len(known))))
    n = len(known)
    fewer = Matrices.from_table(
        dictionary.table[:, :-n], dictionary.names[:-n], dictionary.sizes[:-n], batches=dictionary.batches
    )
    out = ModelClass(
        fewer,
        [models.groups[j] for j in own],
        [models.names[j] for j in own],
        intercept=models.intercept,
        kernels=[models.kernel(j) for j in own],
        log_prior=models.log_prior[own],
        families=models.families[own],
    )
    out.encoding = {name: value for name, value in encoding.items() if name != "memories"}
    return out


def worth(models: ModelClass, q: FloatArray) -> dict[str, tuple[float, float]]:
    """Prior and posterior weight of the models of every memory; `q` (M,) is the posterior."""
    known = (models.encoding or {}).get("memories", {})
    prior = np.exp(models.log_prior)
    return {
        name: (float(prior[own].sum()), float(q[own].sum()))
        for name, own in zip(known, memories_of(models, len(known)) if known else [], strict=True)
    }
