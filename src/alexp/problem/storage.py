"""Dictionaries from what they were stored as."""

from __future__ import annotations

from collections.abc import Callable

from alexp.problem.contextual.blocks import Blocks
from alexp.problem.contextual.crossed import Crossings
from alexp.problem.contextual.per_arm import PerArm
from alexp.problem.descriptions import Description
from alexp.problem.dictionaries import Dictionary, Fourier, Legendre, Polynomial, RandomFourier
from alexp.problem.tables.matrices import Matrices


def dictionary_from_dict(data: Description) -> Dictionary:
    """Rebuild a built-in dictionary from what its `to_dict` stored."""
    families: dict[str, Callable[..., Dictionary]] = {
        "legendre": Legendre,
        "fourier": Fourier,
        "polynomial": Polynomial,
        "random-fourier": RandomFourier,
        "matrices": Matrices.from_table,
        "per-arm": PerArm.from_lists,
        "crossed": Crossings.from_lists,
        "blocks": Blocks.from_lists,
    }
    arguments = dict(data)
    family = arguments.pop("family")
    if family not in families:
        raise ValueError(f"unknown family of features {family!r}; known are {sorted(families)}")
    return families[family](**arguments)
