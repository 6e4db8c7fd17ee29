"""States as text: every bit survives, and nothing that is read takes more memory than its size allows."""

import base64
import tracemalloc
import zlib

import numpy as np
import pytest

from alexp.common.codec import FREE, RATIO, deflate, inflate, pack, unpack


@pytest.mark.parametrize(
    "array",
    [np.arange(6.0).reshape(2, 3), np.array([], dtype=np.int64), np.array(["a", "bc"]), np.zeros(300_000), np.array(3)],
)
def test_arrays_survive(array):
    again = unpack(pack({"a": [array]}))["a"][0]
    assert again.dtype == array.dtype
    np.testing.assert_array_equal(again, array)


def test_inflate_gives_back_what_was_compressed_and_no_more_than_allowed():
    assert inflate(zlib.compress(b"x" * 1000), 1000) == b"x" * 1000
    with pytest.raises(ValueError, match="more than the 999 bytes"):
        inflate(zlib.compress(b"x" * 1000), 999)


@pytest.mark.parametrize("change", [lambda d: d[:-3], lambda d: d + b"x", lambda d: b"\xff" + d[1:], lambda d: b""])
def test_damaged_data_are_a_value_error(change):
    with pytest.raises(ValueError, match="compressed data"):
        inflate(change(zlib.compress(b"some text")))


def test_a_bomb_takes_no_memory():
    size = 100 * 2**20
    bomb = zlib.compress(bytes(size), 9)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="allowed"):
            inflate(bomb)
        stored = {"__array__": "<f8", "shape": [size // 8], "data": base64.b64encode(bomb).decode()}
        before = tracemalloc.get_traced_memory()[1]
        with pytest.raises(ValueError, match="more than is allowed"):
            unpack({"a": stored})
        with pytest.raises(ValueError, match="more than the 8 bytes"):
            unpack(stored | {"shape": [1]})
        assert tracemalloc.get_traced_memory()[1] == before
    finally:
        tracemalloc.stop()
    assert before < 2.1 * (FREE + RATIO * len(bomb))


def test_what_we_write_we_read_however_repetitive():
    zeros = bytes(2**23)
    assert len(zeros) <= RATIO * len(deflate(zeros))
    assert inflate(deflate(zeros), len(zeros)) == zeros


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": [4]}, "shape"),
        ({"shape": [-1]}, "shape"),
        ({"shape": None}, "shape"),
        ({"shape": [2.0]}, "shape"),
        ({"shape": [10**30]}, "allowed"),
        ({"data": 3}, "data"),
        ({"data": "%%"}, "cannot be read"),
        ({"data": ""}, "cannot be read"),
        ({"__array__": "|O"}, "numbers or text"),
        ({"__array__": "nonsense"}, "unknown type"),
        ({"__array__": 7}, "type"),
    ],
)
def test_arrays_that_are_none(change, message):
    with pytest.raises(ValueError, match=message):
        unpack(pack(np.arange(3.0)) | change)
