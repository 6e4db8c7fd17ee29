"""Saving and loading: JSON-safe states from which a run continues bit for bit."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from copy import deepcopy
from hashlib import sha256
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from alexp.algorithms.protocol.assumptions import Stated
from alexp.algorithms.protocol.components import component_from_dict, component_to_dict
from alexp.algorithms.protocol.contextual.record import OfferLog
from alexp.algorithms.protocol.guarding import Guarded
from alexp.algorithms.protocol.reading import read_log, read_notes
from alexp.algorithms.protocol.streams import Streams
from alexp.algorithms.protocol.trials import TrialLog
from alexp.algorithms.protocol.vigilance import quietly
from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import Packable, State, fingerprint, pack, unpack
from alexp.common.memory import exceeds_memory, is_lack_of_memory
from alexp.common.schema import MOST, Check, a_dict, record, text, whole
from alexp.problem.candidates import CandidateTable, Round
from alexp.problem.contextual.tables import Reference
from alexp.problem.domains import Domain, domain_from_dict
from alexp.problem.models import ModelClass

FORMAT = 3  # version of what to_dict writes
_T = TypeVar("_T")
_FIELDS: dict[str, Check] = {
    "format": whole(1, FORMAT),
    "settings": a_dict,
    "problem": a_dict,
    "fingerprint": text(),
    "entropy": text(most=1000),
    "digest": text(),  # which states had not, at first
    "log": a_dict,
    "state": a_dict,
}
_SIZES = {
    "resolution": 10**8, "subset_size": 64, "degree": 10**5, "frequencies": 10**5, "n_features": 10**6, "dim": 10**4,
}  # fmt: skip
READABLE = (1, 2, 3)  # formats that from_dict reads: 1 is that of version 0.1.0


class Saved(Guarded, ABC):
    """The part of an algorithm that stores it and takes it up again."""

    name: ClassVar[str]
    settings: ClassVar[tuple[str, ...]] = ()
    formerly: ClassVar[State] = {}  # what runs that were stored without a setting have played with
    registry: ClassVar[dict[str, type[Any]]] = {}  # every algorithm by its name
    models: ModelClass
    domain: Domain
    stated: Stated
    repeats: bool
    direction: str
    _streams: Streams
    log_features: str | None  # what is kept of contextual rounds; None on a fixed domain
    _candidates: CandidateTable | None = None  # those of a fixed domain
    _log: TrialLog
    _notes: dict[int, Packable]
    _known: dict[Hashable, object]
    _n_arms = 0  # how many candidates the domain has had; arms may be added
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
        if self.log_features is not None:
            shared["log_features"] = self.log_features
        return shared | {key: getattr(self, key) for key in self.settings}

    def to_dict(self, problem: bool = True) -> State:
        """JSON-safe state. With `problem`, built-in models and plain tables are stored along with it."""
        self._keep_up()
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
        return packed | {"digest": content_digest(packed)}

    @classmethod
    def from_dict(
        cls, data: State, models: ModelClass | None = None, domain: Domain | None = None, **settings: Any
    ) -> Self:
        """Continue a saved run.

        Pass `models` and `domain` again when they hold your own code or objects; they are checked against the
        saved run's features. Keywords replace settings that could not be stored, such as agents of your own.
        """
        kind, known = cls._saved_kind(data), record("state", data, _FIELDS, optional=["digest"])
        if "digest" in known and known["digest"] != content_digest(data):
            raise ValueError("this state is not as it was saved: state['digest'] is that of another content")
        stored = known["problem"]
        models = models if models is not None else _stored(stored, "models", ModelClass.from_dict)
        domain = domain if domain is not None else _stored(stored, "domain", domain_from_dict)
        saved = unpack(known["settings"]).items()
        former = {key: value for key, value in kind.formerly.items() if key not in settings}
        arguments = former | {key: component_from_dict(value, key) for key, value in saved if key not in settings}
        if not (known["entropy"].isascii() and known["entropy"].isdigit()):
            raise ValueError(f"state['entropy'] must be a whole number as text, got {known['entropy']!r:.80}")
        make: Callable[..., Self] = kind
        with quietly():
            try:
                out = make(models, domain, random_state=int(known["entropy"]), **arguments, **settings)
            except (TypeError, AttributeError, LookupError, ArithmeticError) as error:
                raise ValueError(f"state['settings'] do not go with {kind.__name__}: {error}") from error
        missing = set(out.arguments()) - set(arguments) - set(settings)
        if missing and known["format"] == FORMAT:  # earlier versions had fewer
            raise ValueError(f"state['settings'] lacks {', '.join(map(repr, sorted(missing)))}")
        if out.fingerprint() != known["fingerprint"]:
            raise ValueError("models and domain give other features than those of the saved run; pass the same ones")
        out.resume(unpack(known["log"]), unpack(known["state"]))
        return out

    @classmethod
    def _saved_kind(cls, data: State) -> type[Self]:
        """The class of a saved run, which has to be this one or one of its own."""
        if not isinstance(data, dict) or data.get("format") not in READABLE:
            form = data.get("format") if isinstance(data, dict) else type(data).__name__
            raise ValueError(f"this state has format {form!r:.80}; this version reads formats 1 to {FORMAT}")
        name = record("state", data, {"algorithm": text()})["algorithm"]
        kind = cls.registry.get(name)
        if kind is None or not issubclass(kind, cls):
            raise ValueError(f"this state was saved by {name!r}, not by {cls.__name__}")
        return kind

    def state(self) -> State:
        """JSON-safe: what was learned, without settings and trials. `resume` takes it, unpacked."""
        packed: State = pack(self._whole_state())
        return packed

    def _whole_state(self) -> State:
        notes = {str(trial): note for trial, note in self._notes.items()}
        return self._state() | ({"notes": notes} if notes else {})

    def resume(self, log: State, state: State) -> None:
        """Take over trials and state from a run with the same problem, settings and seed."""
        n = self.domain.n_candidates
        before, after = self._log, read_log(log, n, self.models.n_models, self._new_offers())
        if log.get("course") is None:  # it cannot be repeated from its beginning, but from here
            after.origin = log, deepcopy(state)
        self._begin()
        try:
            self._log = after
            self._notes = read_notes("state['notes']", state.get("notes", {}))
            self._known.clear()
            self._restore(state)
            self._notes = {trial: note for trial, note in self._notes.items() if trial in after.waiting}
        except Exception:
            self._log = before
            raise
        self._end()

    def _check_notes(self, check: Check) -> None:
        """For those who note something of every trial they propose: raise unless it is there for all that wait."""
        checked = {trial: check(f"note of trial {trial}", note) for trial, note in self._notes.items()}
        missing = sorted(set(self._log.waiting) - set(checked))
        if missing:
            raise ValueError(f"state['notes'] lacks trial {missing[0]}, which awaits its reward")
        self._notes = checked

    @property
    def _listed(self) -> CandidateTable:
        """The candidates of a fixed domain."""
        if self._candidates is None:
            raise TypeError("contextual rounds have no table of candidates: pass context=, candidates= or features=")
        return self._candidates

    @property
    def _everything(self) -> Round:
        """The round on all candidates of a fixed domain."""
        return self._listed.everything

    def _known_features(self) -> CandidateTable | Reference | None:
        """The table, or the example of contextual models; None without one."""
        if self._candidates is not None:
            return self._candidates
        return None if self.models.example_rows is None else Reference(self.models.example_rows)

    def _distinct_columns(self, columns: IntArray | None = None) -> IntArray:
        """Columns, or some of them, without those that equal others on every candidate; all, if these are unknown."""
        if self._candidates is not None:
            return self._candidates.distinct_columns(columns)
        return np.arange(self.models.n_columns) if columns is None else columns

    @abstractmethod
    def _keep_up(self) -> None:
        """Take notice of arms that were added to the domain."""

    def _given_up(self, trial: int) -> None:
        """Take note that a pending trial will have no reward: it is abandoned, or its reward was withdrawn."""

    def _new_offers(self) -> OfferLog | None:
        """An empty log of contextual rounds; None on a fixed domain."""
        if self.log_features is None:
            return None
        return OfferLog(self.log_features, self.asks_matter(), self.models.n_columns)

    @classmethod
    @abstractmethod
    def asks_matter(cls) -> bool:
        """Whether asking leaves anything behind but the trial, so that a run is repeated with its asks."""

    def features(self) -> FloatArray:
        """The dictionary on all candidates in the domain's order, shape (N, P)."""
        return np.asarray(self._listed.table[:, self._listed.position].T)

    def fingerprint(self) -> str:
        """Content hash of the features on the candidates and of the groups of columns."""
        if self._fingerprint is None:
            parts = self.models.listing
            seen, rows = self._recognised_by()
            kernels = self.models.kernel_marks(rows)
            own = [] if kernels is None else [kernels.kinds, fingerprint(kernels.numbers)]
            hashes = [*seen, *(fingerprint(part) for part in parts)]
            self._fingerprint = fingerprint(np.array([*hashes, str(self.models.intercept), *own]))
        return self._fingerprint

    def _recognised_by(self) -> tuple[list[str], FloatArray]:
        """Hashes of the features, and some rows of them: on the candidates, or on the example of contextual models."""
        if self._candidates is None:
            rows = self.models.marks
            return ["contextual", *self.models.dictionary.names, fingerprint(rows)], rows
        small = self._candidates.is_small
        rows = self.features() if small else self._candidates.rows(np.arange(_MARKED))
        return self._candidates.hashes(), rows


_MARKED = 256  # candidates of a large table that kernels are recognised by


def _stored(problem: State, key: str, build: Callable[[State], _T]) -> _T:
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
