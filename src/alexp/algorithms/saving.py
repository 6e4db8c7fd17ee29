"""Stored runs: their format, their digest, and the problem that they carry."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from typing import TypeVar

from alexp.common.codec import Packable, State, unpack
from alexp.common.memory import exceeds_memory, is_lack_of_memory
from alexp.common.schema import MOST, Check, a_dict, text, whole

_T = TypeVar("_T")
FORMAT = 1  # version of what to_dict writes
FIELDS: dict[str, Check] = {
    "format": whole(FORMAT, FORMAT),
    "settings": a_dict,
    "problem": a_dict,
    "fingerprint": text(),
    "entropy": text(most=1000),
    "digest": text(),  # optional, so that a state can be edited by hand
    "log": a_dict,
    "state": a_dict,
}
_SIZES = {
    "resolution": 10**8, "subset_size": 64, "degree": 10**5, "frequencies": 10**5, "n_features": 10**6, "dim": 10**4,
}  # fmt: skip


def read_stored(problem: State, key: str, build: Callable[[State], _T]) -> _T:
    """`build` what a stored problem has under `key`; an error tells to pass it where that is not possible."""
    if problem.get(key) is None:
        raise ValueError(f"the saved run does not contain its {key}; pass {key}= as it was constructed")
    try:
        _check_sizes(problem[key])
        return build(unpack(problem[key]))
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, MemoryError) as error:
        if is_lack_of_memory(error) and not exceeds_memory(error):
            raise
        message = f"state['problem'][{key!r}] cannot be read; pass {key}= as it was constructed"
        raise ValueError(f"{message}: {type(error).__name__}: {error}") from error


def content_digest(data: State) -> str:
    """Hash of a stored run, apart from its problem, which has a fingerprint; 1 and 1.0 are the same."""
    told = {key: value for key, value in data.items() if key not in ("problem", "digest")}
    return sha256(json.dumps(_with_floats(told), sort_keys=True).encode()).hexdigest()


def _with_floats(value: Packable) -> Packable:
    if isinstance(value, dict):
        return {key: _with_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_floats(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < MOST:
        return float(value)
    return value


def _check_sizes(description: Packable) -> None:
    """Raise if what is to be made of a description is out of all proportion to it."""
    for name, value in description.items() if isinstance(description, dict) else ():
        _check_sizes(value)
        if name in _SIZES and isinstance(value, int) and value > _SIZES[name]:
            raise ValueError(f"{name} must be at most {_SIZES[name]} in a stored problem")
