"""Saving and loading: JSON-safe states from which a run continues bit for bit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from alexp.algorithms.protocol.assumptions import Stated
from alexp.algorithms.protocol.components import component_from_dict, component_to_dict
from alexp.algorithms.protocol.streams import Streams
from alexp.algorithms.protocol.trials import TrialLog
from alexp.algorithms.protocol.vigilance import quietly
from alexp.common.arrays import FloatArray
from alexp.common.codec import Packable, State, fingerprint, pack, unpack
from alexp.problem.candidates import CandidateTable
from alexp.problem.domains import Domain, domain_from_dict
from alexp.problem.models import ModelClass

FORMAT = 3  # version of what to_dict writes
_T = TypeVar("_T")
READABLE = (1, 2, 3)  # formats that from_dict reads: 1 is that of version 0.1.0


class Saved(ABC):
    """The part of an algorithm that stores it and takes it up again."""

    name: ClassVar[str]
    settings: ClassVar[tuple[str, ...]] = ()
    registry: ClassVar[dict[str, type[Any]]] = {}  # every algorithm by its name
    models: ModelClass
    domain: Domain
    stated: Stated
    repeats: bool
    direction: str
    _streams: Streams
    _candidates: CandidateTable
    _log: TrialLog
    _notes: dict[int, Packable]
    _known: dict[Hashable, object]
    _fingerprint: str | None = None  # the table never changes, and hashing a large one takes seconds

    @abstractmethod
    def _state(self) -> State:
        """Arrays and numbers from which `_restore` continues bit for bit."""

    @abstractmethod
    def _restore(self, state: State) -> None:
        """Continue from `_state`."""

    def arguments(self) -> State:
        """Keywords that construct this algorithm again, apart from its seed; None for what was not stated."""
        shared = self.stated._asdict() | {"repeats": self.repeats, "direction": self.direction}
        return shared | {key: getattr(self, key) for key in self.settings}

    def to_dict(self, problem: bool = True) -> State:
        """JSON-safe state. With `problem`, built-in models and plain tables are stored along with it."""
        settings = {key: component_to_dict(value) for key, value in self.arguments().items()}
        stored = {"models": self.models.to_dict(), "domain": self.domain.to_dict()} if problem else {}
        data = {
            "format": FORMAT,
            "algorithm": self.name,
            "settings": settings,
            "problem": stored,
            "fingerprint": self.fingerprint(),
            "entropy": str(self._streams.entropy),
            "log": self._log.state(),
            "state": self._whole_state(),
        }
        packed: State = pack(data)
        return packed

    @classmethod
    def from_dict(
        cls, data: State, models: ModelClass | None = None, domain: Domain | None = None, **settings: Any
    ) -> Self:
        """Continue a saved run.

        Pass `models` and `domain` again when they hold your own code or objects; they are checked against the
        saved run's features. Keywords replace settings that could not be stored, such as agents of your own.
        """
        if data.get("format") not in READABLE:
            raise ValueError(f"this state has format {data.get('format')!r}; this version reads formats 1 to {FORMAT}")
        kind = cls.registry.get(data["algorithm"])
        if kind is None or not issubclass(kind, cls):
            raise ValueError(f"this state was saved by {data['algorithm']!r}, not by {cls.__name__}")
        data = unpack(data)
        stored = data["problem"]
        models = models if models is not None else _stored(stored, "models", ModelClass.from_dict)
        domain = domain if domain is not None else _stored(stored, "domain", domain_from_dict)
        saved = data["settings"].items()
        arguments = {key: component_from_dict(value, key) for key, value in saved if key not in settings}
        make: Callable[..., Self] = kind
        with quietly():
            out = make(models, domain, random_state=int(data["entropy"]), **arguments, **settings)
        if out.fingerprint() != data["fingerprint"]:
            raise ValueError("models and domain give other features than those of the saved run; pass the same ones")
        out.resume(data["log"], data["state"])
        return out

    def state(self) -> State:
        """JSON-safe: what was learned, without settings and trials. `resume` takes it, unpacked."""
        packed: State = pack(self._whole_state())
        return packed

    def _whole_state(self) -> State:
        notes = {str(trial): note for trial, note in self._notes.items()}
        return self._state() | ({"notes": notes} if notes else {})

    def resume(self, log: State, state: State) -> None:
        """Take over trials and state from a run with the same problem, settings and seed."""
        self._log.restore(log)
        self._notes = {int(trial): note for trial, note in state.get("notes", {}).items()}
        self._known.clear()
        self._restore(state)

    def features(self) -> FloatArray:
        """The dictionary on all candidates in the domain's order, shape (N, P)."""
        return np.asarray(self._candidates.table[:, self._candidates.position].T)

    def fingerprint(self) -> str:
        """Content hash of the features on the candidates and of the groups of columns."""
        if self._fingerprint is None:
            parts = [self.models.columns_flat, self.models.offsets, self.models.scales]
            hashes = [*self._candidates.hashes(), *(fingerprint(part) for part in parts)]
            small = self._candidates.is_small
            rows = self.features() if small else self._candidates.rows(np.arange(_MARKED))
            kernels = self.models.kernel_marks(rows)
            own = [] if kernels is None else [kernels.kinds, fingerprint(kernels.numbers)]
            self._fingerprint = fingerprint(np.array([*hashes, str(self.models.intercept), *own]))
        return self._fingerprint


_MARKED = 256  # candidates of a large table that kernels are recognised by


def _stored(problem: State, key: str, build: Callable[[State], _T]) -> _T:
    if problem.get(key) is None:
        raise ValueError(f"the saved run does not contain its {key}; pass {key}= as it was constructed")
    return build(problem[key])
