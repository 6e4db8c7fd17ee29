"""The stored problem of a study, and the check that a given problem is the same. Code is never stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from hashlib import sha256
from typing import NotRequired, TypedDict, TypeVar

import numpy as np
from sqlalchemy.engine import Connection

from alexp.algorithms.base import Algorithm
from alexp.common.arrays import AnyArray, FloatArray, IntArray
from alexp.common.codec import Packable, State, fingerprint
from alexp.problem.domains import Arms, Domain, domain_from_dict
from alexp.problem.kernels import directions
from alexp.problem.models import ModelClass
from alexp.study.errors import ProblemMismatchError
from alexp.study.records import get_array, put_array
from alexp.table.table import Table

_Part = TypeVar("_Part")

_REFERENCE = "__array__"
_TOLERANCE = 1e-8


class Origin(TypedDict):
    """The table that a study began with: its column of results, if one was stated, and how the file is written."""

    result: str | None
    dialect: dict[str, str]


class Problem(TypedDict):
    """Models and domain as plain data; None for those that hold code or objects of the user.

    `table` is there where the candidates are those of a `Table`, in studies since 1.1.
    """

    models: State | None
    domain: State | None
    names: list[str] | None
    table: NotRequired[Origin]


class Probe(TypedDict):
    """Fingerprint and sketch of a problem; see `probe`."""

    hash: str
    rows: FloatArray
    columns: FloatArray
    shape: list[int | bool]
    groups: list[str]
    scales: FloatArray
    domain: str | None
    kernels: NotRequired[str]
    kernel_numbers: NotRequired[FloatArray]
    labels: NotRequired[str]


def encode(connection: Connection, study: int, value: object) -> str:
    """JSON in which every array is a reference to a row of the array table."""
    return _to_json(value, lambda array: put_array(connection, study, array))


def _to_json(value: object, refer: Callable[[AnyArray], str]) -> str:
    def replace(item: object) -> object:
        if isinstance(item, np.ndarray):
            return {_REFERENCE: refer(item)}
        if isinstance(item, dict):
            return {key: replace(entry) for key, entry in item.items()}
        if isinstance(item, list | tuple):
            return [replace(entry) for entry in item]
        return item.item() if isinstance(item, np.generic) else item

    return json.dumps(replace(value))


def decode(connection: Connection, study: int, text: str) -> Packable:
    """Invert `encode`."""

    def replace(item: Packable) -> Packable:
        if isinstance(item, dict):
            if _REFERENCE in item:
                return get_array(connection, study, item[_REFERENCE])
            return {key: replace(entry) for key, entry in item.items()}
        return [replace(entry) for entry in item] if isinstance(item, list) else item

    return replace(json.loads(text))


def describe(models: ModelClass, domain: Domain, table: Table | None = None) -> Problem:
    """Models and domain as plain data; None for those that hold code or objects of the user."""
    out: Problem = {
        "models": models.to_dict(),
        "domain": domain.to_dict(),
        "names": list(models.names) if models.n_models <= 10_000 else None,
    }
    return out if table is None else {**out, "table": {"result": table.result, "dialect": asdict(table.dialect)}}


def private_copy(domain: Domain) -> Domain:
    """The domain; a copy if it is `Arms`, the only mutable one."""
    return Arms(domain.names) if isinstance(domain, Arms) else domain


def rebuild(stored: Problem, name: str, models: ModelClass | None, domain: Domain | None) -> tuple[ModelClass, Domain]:
    """Models and domain: those passed, otherwise the stored ones."""

    def part(
        key: str,
        given: _Part | None,
        described: State | None,
        build: Callable[[State], _Part],
        why: str,
    ) -> _Part:
        if given is not None:
            return given
        if described is None:
            raise ProblemMismatchError(
                f"study {name!r} was created with {key} that {why}; pass {key}= as they were when it was created"
            )
        return build(described)

    code, objects = "hold code of your own, which is never stored", "holds objects of your own, which are never stored"
    return (
        part("models", models, stored["models"], ModelClass.from_dict, code),
        part("domain", domain, stored["domain"], domain_from_dict, objects),
    )


def probe(algorithm: Algorithm) -> Probe:
    """A content hash of the problem, and a sketch for comparison up to rounding.

    The sketch holds two fixed linear combinations of the columns for every candidate, shape (N, 2), and of the
    candidates for every column, shape (2, P). On another machine or library version a sine may differ in its last bit;
    the hash then differs and the sketch does not. Contextual models are identified by their example, where they have
    one, and by the names of their columns.
    """
    table, models = _features(algorithm), algorithm.models
    *groups, scales = models.listing
    found: Probe = {
        "hash": algorithm.fingerprint(),
        "rows": table @ directions(table.shape[1]),
        "columns": directions(table.shape[0]).T @ table,
        "shape": [models.n_models, models.n_columns, bool(models.intercept)],
        "groups": [fingerprint(part) for part in groups],
        "scales": scales,
        "domain": domain_hash(algorithm.domain),
    }
    if algorithm.is_contextual:
        found["labels"] = fingerprint(np.array(list(models.dictionary.names)))
    if (kernels := models.kernel_signature(table)) is not None:
        found["kernels"], found["kernel_numbers"] = kernels
    return found


def _features(algorithm: Algorithm) -> FloatArray:
    """The dictionary on all candidates, or on the example of contextual models, (n, P)."""
    return algorithm.models.identifying_rows if algorithm.is_contextual else algorithm.features()


def domain_hash(domain: Domain) -> str | None:
    """Content hash of the candidates; None if they are objects of the user."""
    described = domain.to_dict()
    return None if described is None else sha256(_to_json(described, fingerprint).encode()).hexdigest()


def check_probe(stored: Probe, algorithm: Algorithm, name: str) -> None:
    """Raise unless the algorithm's problem is the one the study was created with."""
    difference = _difference(stored, algorithm)
    if difference is not None:
        raise ProblemMismatchError(
            f"these are not the models and domain of study {name!r}: {difference}; "
            "pass the same ones as when it was created"
        )


def _difference(stored: Probe, algorithm: Algorithm) -> str | None:
    if None not in (stored["domain"], new := domain_hash(algorithm.domain)) and new != stored["domain"]:
        added = "; pass only the arms of its creation, added ones are in its log" * isinstance(algorithm.domain, Arms)
        return f"the {'arms' if added else 'candidates'} differ{added}"
    if algorithm.fingerprint() == stored["hash"]:
        return None
    now = probe(algorithm)
    if now["shape"] == stored["shape"] and now.get("labels") != stored.get("labels"):
        return "columns of its features have other names"
    if now["rows"].shape != stored["rows"].shape:
        if algorithm.is_contextual:
            return f"their example has {now['rows'].shape[0]} rows, not {stored['rows'].shape[0]}"
        return f"it has {stored['rows'].shape[0]} candidates, not {now['rows'].shape[0]}"
    if now["shape"] != stored["shape"]:
        return f"it has (models, columns, intercept) = {tuple(stored['shape'])}, not {tuple(now['shape'])}"
    if now["groups"] != stored["groups"]:
        return "its models use other columns of the dictionary"
    if not np.allclose(now["scales"], stored["scales"], rtol=_TOLERANCE, atol=0.0):
        return "its features are divided by other scales"
    if now.get("kernels") != stored.get("kernels"):
        return "its models have other kernels, or other columns for them"
    if "kernels" in now and not np.allclose(now["kernel_numbers"], stored["kernel_numbers"], rtol=1e-6, atol=1e-9):
        return "its kernels have other lengthscales, scales or entries, or other prior weights"
    columns = _differing(stored["columns"].T, now["columns"].T)
    candidates = _differing(stored["rows"], now["rows"])
    if columns.size == 0 and candidates.size == 0:
        return None
    models = algorithm.models
    owners = [j for j in range(min(models.n_models, 1000)) if np.isin(models.groups[j], columns).any()]
    blamed = ", ".join(repr(models.names[j]) for j in owners[:3]) or "some models"
    what = "row of the example" if algorithm.is_contextual else "candidate"
    where = f", first at {what} {candidates[0]}" if candidates.size else ""
    return f"the features of {blamed} have other values{where}"


def _differing(old: FloatArray, new: FloatArray) -> IntArray:
    scale = np.abs(old).max(initial=0.0)
    return np.flatnonzero(np.any(np.abs(old - new) > _TOLERANCE * (np.abs(old) + scale), axis=1))
