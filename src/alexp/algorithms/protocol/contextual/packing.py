"""Rows of features as bytes, and contexts as plain data: what the log of a contextual run is stored as."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.codec import Packable, State
from alexp.common.schema import Check, anything, integers, maybe, record, sequence, whole
from alexp.problem.contextual.offers import Offer, check_ids

_TUPLE = "__tuple__"
_HEADER = 8  # bytes of P


def pack_rows(rows: FloatArray) -> bytes:
    """Rows (n, P) as bytes: all numbers, or those that are not zero with their places, whatever is shorter.

    Rows of models per arm are zero but for one arm's columns.
    """
    flat = np.ascontiguousarray(rows, dtype=np.float64).ravel()
    head = np.int64(rows.shape[-1]).tobytes()
    places = np.flatnonzero(flat.view(np.int64)) if flat.size else np.empty(0, dtype=np.int64)  # -0.0 is no zero
    if 12 * places.size >= 8 * flat.size:
        return head + b"#" + flat.tobytes()
    return head + b"+" + places.astype(np.uint32).tobytes() + flat[places].tobytes()


def unpack_rows(packed: bytes, n: int, n_columns: int) -> FloatArray:
    """Invert `pack_rows`: (n, P); rows of an earlier time with fewer columns have zeros in the new ones.

    >>> unpack_rows(pack_rows(np.array([[0.0, 2.0, 0.0]])), 1, 4).tolist()
    [[0.0, 2.0, 0.0, 0.0]]
    """
    width, form, data = int(np.frombuffer(packed[:_HEADER], np.int64)[0]), packed[_HEADER:9], packed[9:]
    flat = np.zeros(n * width)
    if form == b"#":
        flat[:] = np.frombuffer(data)
    else:
        count = len(data) // 12
        flat[np.frombuffer(data[: 4 * count], np.uint32)] = np.frombuffer(data[4 * count :])
    rows = flat.reshape(n, width)
    if width == n_columns:
        return rows
    out = np.zeros((n, n_columns))
    out[:, :width] = rows
    return out


def check_packed(name: str, packed: bytes, n: int, n_columns: int) -> None:
    """Raise unless these bytes hold n finite rows of at most P columns."""
    width = int(np.frombuffer(packed[:_HEADER], np.int64)[0]) if len(packed) > _HEADER else 0
    form, size = packed[_HEADER:9], len(packed) - 9
    fits = size == 8 * n * width if form == b"#" else form == b"+" and size % 12 == 0 and size < 8 * n * width
    if not 1 <= width <= n_columns or not fits:
        raise ValueError(f"{name} must hold {n} rows of at most {n_columns} columns")
    first = 9 + size // 3 if form == b"+" else 9
    places = np.frombuffer(packed[9:first], np.uint32).astype(np.int64)
    if places.size and not (np.all(np.diff(places) > 0) and places[-1] < n * width):
        raise ValueError(f"{name} must name places among {n} rows of {width} columns, in order")
    if not np.all(np.isfinite(np.frombuffer(packed[first:]))):  # without taking memory for what is not there
        raise ValueError(f"{name} must hold finite features")


def plain(value: Packable) -> Packable:
    """A context, an id or an action as data that can be stored: arrays stay, objects of one's own become text.

    >>> plain({"age": np.int64(4), "tags": ("a", "b")})
    {'age': 4, 'tags': {'__tuple__': ['a', 'b']}}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        return value if value.dtype.kind in "biufU" else [plain(one) for one in value.tolist()]
    if isinstance(value, tuple):
        return {_TUPLE: [plain(one) for one in value]}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, Mapping) or hasattr(value, "to_dict"):
        items = value if isinstance(value, Mapping) else value.to_dict()
        return {str(key): plain(one) for key, one in items.items()}
    return str(value)


def unplain(value: Packable) -> Packable:
    """Invert `plain`, as far as that goes."""
    if isinstance(value, list):
        return [unplain(one) for one in value]
    if isinstance(value, dict):
        if set(value) == {_TUPLE}:
            return tuple(unplain(one) for one in value[_TUPLE])
        return {key: unplain(one) for key, one in value.items()}
    return value


def pack_offer(made: Offer) -> State:
    """An offer as arrays and plain data, from which its ask can be decided on again: 8 n P bytes, or less."""
    numbered = made.actions is made.ids or isinstance(made.actions, range)
    return {
        "n": len(made),
        "rows": np.frombuffer(pack_rows(made.rows), dtype=np.uint8),
        "ids": None if made.ids is None else [plain(key) for key in made.ids],
        "actions": None if numbered else [plain(made.actions[k]) for k in range(len(made))],
        "context": plain(made.context),
        "allowed": made.allowed,
    }


def unpack_offer(state: State, n_columns: int) -> Offer:
    """Invert `pack_offer`, for models of P columns; actions and context are plain data."""
    n = record("offer", state, {"n": whole(low=1, high=10**7)})["n"]
    lists = maybe(lambda name, value: [unplain(one) for one in sequence(name, value, n)])
    checks: dict[str, Check] = {
        "rows": integers(None, low=0, high=255),
        "ids": lists,
        "actions": lists,
        "context": anything,
        "allowed": maybe(integers(None, low=0, high=n - 1)),
    }
    known = record("offer", state, checks)
    packed = known["rows"].astype(np.uint8).tobytes()
    check_packed("offer['rows']", packed, n, n_columns)
    ids = None if known["ids"] is None else check_ids(known["ids"], n)
    actions = known["actions"] if known["actions"] is not None else range(n) if ids is None else ids
    return Offer(unpack_rows(packed, n, n_columns), actions, ids, unplain(known["context"]), known["allowed"])
