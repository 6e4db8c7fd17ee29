"""JSON-safe encoding of states: arrays as base64 of their raw bytes, so that every bit survives."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Mapping
from math import isfinite, prod
from typing import Any

import numpy as np

from alexp.common.arrays import AnyArray
from alexp.common.memory import is_lack_of_memory

Packable = Any  # nested numbers, text, lists, dicts and arrays
State = dict[str, Packable]

_TAG = "__array__"

# What decompressing may take. A hundred times the size of what is read, and so an array of zeros, is no attack; a
# thousandfold of a large file is.
FREE = 64 * 2**20  # bytes that any compressed data may take
RATIO = 64  # and how many more for each byte of them
_LARGE = 2**18  # bytes of an array from which its compressed form keeps to that ratio


def inflate(data: bytes, most: int | None = None) -> bytes:
    """What `zlib.compress` made `data` of, at most `most` bytes; by default 64 MiB and 64 for each byte of `data`.

    ValueError if it would take more, before that memory is taken (for a moment, decompressing takes twice its result),
    and if the data are damaged or cut short.

    >>> inflate(zlib.compress(b"some text"))
    b'some text'
    """
    limit = FREE + RATIO * len(data) if most is None else most
    stream = zlib.decompressobj()
    try:
        out = stream.decompress(data, limit + 1)
    except zlib.error as error:
        if is_lack_of_memory(error):
            raise MemoryError("no memory is left to decompress data in") from error
        raise ValueError(f"compressed data are damaged: {error}") from error
    if len(out) > limit:
        raise ValueError(f"{len(data)} bytes of compressed data hold more than the {limit} bytes that are allowed")
    if not stream.eof or stream.unused_data:
        raise ValueError("compressed data are cut short, or something follows them")
    return out


def deflate(data: bytes) -> bytes:
    """Compress quickly, and so that `inflate` takes it back, however repetitive it is."""
    out = zlib.compress(data, 1)
    if len(data) > _LARGE and len(data) > RATIO * len(out):
        coder = zlib.compressobj(1, strategy=zlib.Z_HUFFMAN_ONLY)  # at least one bit for each byte
        out = coder.compress(data) + coder.flush()
    return out


def pack(value: Any) -> Any:
    """Turn nested dicts, lists, NumPy arrays and scalars into something `json.dumps` takes.

    >>> unpack(pack({"a": np.array([1.0, 2.5])}))["a"].tolist()
    [1.0, 2.5]
    """
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value)
        if array.dtype == object:
            raise TypeError("arrays of Python objects cannot be stored; convert them to numbers or strings")
        data = base64.b64encode(deflate(array.tobytes())).decode("ascii")
        return {_TAG: array.dtype.str, "shape": list(array.shape), "data": data}
    if isinstance(value, dict):
        return {str(key): pack(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [pack(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def holds_array(value: Any) -> bool:
    """Whether this is what `pack` makes of an array."""
    return isinstance(value, dict) and _TAG in value


def unpack(value: Any) -> Any:
    """Invert `pack` (tuples come back as lists).

    ValueError for arrays that are damaged, or that say they are larger than 64 MiB and 64 bytes for each byte of all
    stored data, before any memory is taken for them.
    """
    declared, stored = _sizes(value)
    if declared > FREE + RATIO * stored:
        raise ValueError(
            f"{stored} bytes of stored arrays say that they hold {declared}, which is more than is allowed"
        )
    return _unpacked(value)


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        if _TAG in value:
            return _array(value)
        return {key: _unpacked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_unpacked(item) for item in value]
    return value


def _sizes(value: Any) -> tuple[int, int]:
    """How many bytes the arrays in it say that they hold, and how many are stored."""
    if isinstance(value, dict) and _TAG in value:
        dtype, shape = _declared(value)
        return prod(shape) * dtype.itemsize, len(value["data"])
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    sizes = [_sizes(item) for item in items]
    return sum(declared for declared, _ in sizes), sum(stored for _, stored in sizes)


def _declared(value: dict[str, Any]) -> tuple[np.dtype[Any], list[int]]:
    """Type and shape of a stored array, checked as far as that goes without its data."""
    shape, data = value.get("shape"), value.get("data")
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape) or len(shape) > 8:
        raise ValueError(f"a stored array must have a shape, a list of whole numbers, got {shape!r:.80}")
    if not isinstance(data, str):
        raise ValueError(f"a stored array must have its data as text, got {type(data).__name__}")
    try:
        dtype = np.dtype(value[_TAG])
    except (TypeError, ValueError, SyntaxError) as error:
        raise ValueError(f"a stored array has an unknown type, {value[_TAG]!r:.80}") from error
    if dtype.kind not in "biufcmMUS" or dtype.itemsize == 0:
        raise ValueError(f"a stored array must hold numbers or text, got type {value[_TAG]!r:.80}")
    return dtype, shape


def _array(value: dict[str, Any]) -> AnyArray:
    dtype, shape = _declared(value)
    size = prod(shape) * dtype.itemsize
    try:
        raw = inflate(base64.b64decode(value["data"], validate=True), size)
    except ValueError as error:  # also what base64 raises
        raise ValueError(f"a stored array cannot be read: {error}") from error
    if len(raw) != size:
        raise ValueError(f"a stored array of shape {tuple(shape)} has {len(raw)} bytes, not {size}")
    return np.frombuffer(raw, dtype=dtype).reshape(shape).copy()


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
