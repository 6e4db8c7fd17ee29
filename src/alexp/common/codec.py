"""JSON-safe encoding of states: arrays as base64 of their raw bytes, so that every bit survives."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np

from alexp.common.arrays import AnyArray

Packable = Any  # nested numbers, text, lists, dicts and arrays
State = dict[str, Packable]

_TAG = "__array__"


def pack(value: Any) -> Any:
    """Turn nested dicts, lists, NumPy arrays and scalars into something `json.dumps` takes.

    >>> unpack(pack({"a": np.array([1.0, 2.5])}))["a"].tolist()
    [1.0, 2.5]
    """
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        if array.dtype == object:
            raise TypeError("arrays of Python objects cannot be stored; convert them to numbers or strings")
        data = base64.b64encode(zlib.compress(array.tobytes(), 1)).decode("ascii")
        return {_TAG: array.dtype.str, "shape": list(array.shape), "data": data}
    if isinstance(value, dict):
        return {str(key): pack(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [pack(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def unpack(value: Any) -> Any:
    """Invert `pack` (tuples come back as lists)."""
    if isinstance(value, dict):
        if _TAG in value:
            raw = zlib.decompress(base64.b64decode(value["data"]))
            return np.frombuffer(raw, dtype=np.dtype(value[_TAG])).reshape(value["shape"]).copy()
        return {key: unpack(item) for key, item in value.items()}
    if isinstance(value, list):
        return [unpack(item) for item in value]
    return value


def jsonable(value: Any) -> Any:
    """A point, a number or a name as plain JSON data: arrays become lists, table rows dicts, the rest text.

    >>> jsonable(np.array([1.0, np.nan])), jsonable("item 3"), jsonable(np.int64(4))
    ([1.0, None], 'item 3', 4)
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, np.ndarray | list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, Mapping) or hasattr(value, "to_dict"):
        items = value if isinstance(value, Mapping) else value.to_dict()
        return {str(key): jsonable(item) for key, item in items.items()}
    return str(value)


def fingerprint(array: AnyArray) -> str:
    """Content hash of an array: dtype, shape and bytes.

    >>> fingerprint(np.zeros(3)) == fingerprint(np.zeros(3)), fingerprint(np.zeros(3)) == fingerprint(np.ones(3))
    (True, False)
    """
    contiguous = np.ascontiguousarray(array)
    digest = hashlib.sha256(f"{contiguous.dtype.str}{contiguous.shape}".encode())
    digest.update(contiguous.data if contiguous.size else b"")
    return digest.hexdigest()
