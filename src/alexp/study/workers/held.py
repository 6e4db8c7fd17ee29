"""Trials that somebody measures, as a study shows them; no database is needed to hold one."""

from __future__ import annotations

from dataclasses import dataclass, fields

from alexp.algorithms.log import Trial


@dataclass(frozen=True, eq=False)
class HeldTrial(Trial):
    """A trial that awaits its reward, and who measures it.

    Attributes
    ----------
    worker : who asked for it or took it over last.
    age : seconds since it was asked for.
    lease : seconds that its lease has left, negative if it has expired; None if it has no end.
    """

    worker: str
    age: float
    lease: float | None

    @property
    def expired(self) -> bool:
        """Whether another worker may take it over."""
        return self.lease is not None and self.lease <= 0.0

    def __eq__(self, other: object) -> bool:
        """As trials: when one looks at them does not matter."""
        return isinstance(other, Trial) and _facts(self) == _facts(other)

    __hash__ = Trial.__hash__


def _facts(trial: Trial) -> tuple[object, ...]:
    return tuple(getattr(trial, field.name) for field in fields(Trial))
