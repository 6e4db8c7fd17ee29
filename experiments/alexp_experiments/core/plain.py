"""Plain data: what scenarios, settings and descriptions are written as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Settings: TypeAlias = Mapping[str, Json]
