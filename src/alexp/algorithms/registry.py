"""Algorithms by name: those of this package, and those of installed packages.

A package adds algorithms with an entry point of the group `alexp.algorithms`,

    [project.entry-points."alexp.algorithms"]
    mine = "my_package.my_module:MyAlgorithm"

and they can then be named like any other: `alexp run --algorithms mine`, `create_study(..., algorithm="mine")`.
"""

from __future__ import annotations

from alexp.algorithms.base import Algorithm
from alexp.common.extensions import load_installed


def registered_names() -> list[str]:
    """Names of all algorithms, those of installed packages included."""
    load_installed()
    return sorted(Algorithm.registry)


def spelled_out(name: str) -> tuple[str, dict[str, str]]:
    """A name and the settings in it: "doubling:estc" is doubling of estc, for callers that pass one name only.

    >>> spelled_out("doubling:estc"), spelled_out("etc")
    (('doubling', {'algorithm': 'estc'}), ('etc', {}))
    """
    outer, found, inner = name.partition(":")
    return (outer, {"algorithm": inner}) if found and outer == "doubling" else (name, {})


def algorithm_named(name: str) -> type[Algorithm]:
    """The class with this name, or an error that lists the names.

    >>> algorithm_named("lm-ucb").__name__
    'LMUCB'
    """
    if name not in Algorithm.registry:
        load_installed()
    if name not in Algorithm.registry:
        raise ValueError(f"algorithm must be one of {', '.join(registered_names())}, got {name!r}")
    return Algorithm.registry[name]
