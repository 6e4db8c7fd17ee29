"""The log of a run: trials, their rewards, and the order of events."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from math import inf, isclose, isnan, nan
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

import numpy as np

from alexp.common.arrays import Action, AnyArray, FloatArray, IntArray
from alexp.common.codec import State, jsonable
from alexp.common.extras import require
from alexp.common.notebook import table
from alexp.common.schema import integers, record, same
from alexp.problem.domains import Domain
from alexp.problem.objectives import Value, numbers_of

if TYPE_CHECKING:
    import pandas as pd

    from alexp.algorithms.offer_log import OfferLog
    from alexp.problem.offers import Offer

MOST_REMARK = 2000  # characters of a note or a reason
LEAST_SEEN = 5  # rewards before any is called unusual
FAR = 10.0  # how many times the range of the rewards lies between a suspicious one and all others


Step = Literal["ask", "tell", "observe", "abandon"]
_STEPS: tuple[Step, ...] = ("ask", "tell", "observe", "abandon")
_ASK, _TELL, _OBSERVE, _ABANDON = range(4)


class LogEvent(NamedTuple):
    """One event: what, to which trial, and for an ask the restriction of its round (None for all candidates)."""

    step: Step
    trial: int
    restriction: bytes | None


class EventLog:
    """Asks, tells, observations and abandonments in their order.

    An event is one number, 4 x value + step. The value of a tell or an abandonment is its trial; asks and
    observations make trials in the order of their numbers, so the value of an ask can say which restriction its round
    had. Equal restrictions are stored once. New events are part of the log once they are committed, in one step.
    """

    def __init__(self) -> None:
        self._codes = array("q")
        self._new: list[int] = []  # not committed yet
        self._numbers: dict[bytes, int] = {}  # 1, 2, ... of every restriction

    def __len__(self) -> int:
        return len(self._codes)

    def asked(self, restriction: bytes | None = None) -> None:
        """The next trial was proposed."""
        number = 0 if restriction is None else self._numbers.setdefault(restriction, len(self._numbers) + 1)
        self._new.append(4 * number + _ASK)

    def told(self, trial: int) -> None:
        """A trial's reward was told."""
        self._new.append(4 * trial + _TELL)

    def observed(self) -> None:
        """The next trial was measured elsewhere, and told at once."""
        self._new.append(_OBSERVE)

    def abandoned(self, trial: int) -> None:
        """A trial was given up."""
        self._new.append(4 * trial + _ABANDON)

    def commit(self) -> None:
        """Make all new events part of the log, in one step."""
        if len(self._new) == 1:
            self._codes.append(self._new[0])
        else:
            self._codes.extend(array("q", self._new))
        self._new = []

    def since(self, start: int = 0, n_trials: int = 0) -> Iterator[LogEvent]:
        """Events number `start` and later; there were `n_trials` trials before them."""
        restrictions = [None, *self._numbers]
        for code in self._codes[start:]:
            value, step = divmod(code, 4)
            if step in (_ASK, _OBSERVE):
                yield LogEvent(_STEPS[step], n_trials, restrictions[value] if step == _ASK else None)
                n_trials += 1
            else:
                yield LogEvent(_STEPS[step], value, None)

    def asks_since(self, start: int, n_trials: int) -> tuple[int, int, list[int]]:
        """Events and trials so far, and which trials were asked for since there were so many of both.

        Events that are not committed yet, those of a plate, count.
        """
        codes = [*self._codes[start:], *self._new[max(start - len(self), 0) :]]
        asked = list[int]()
        for code in codes:
            if code % 4 in (_ASK, _OBSERVE):
                if code % 4 == _ASK:
                    asked.append(n_trials)
                n_trials += 1
        return start + len(codes), n_trials, asked

    @property
    def one_by_one(self) -> bool:
        """Whether the newest reward came right after an ask, not after another reward as in a plate."""
        for k in range(len(self._codes) - 1, 0, -1):
            if (step := self._codes[k] % 4) in (_TELL, _OBSERVE):
                return step == _TELL and self._codes[k - 1] % 4 == _ASK
        return False

    def state(self) -> State:
        """The events as arrays."""
        restrictions = list(self._numbers)
        return {
            "codes": np.array(self._codes, dtype=np.int64),
            "sizes": np.array([len(restriction) for restriction in restrictions], dtype=np.int64),
            "restrictions": np.frombuffer(b"".join(restrictions), dtype=np.uint8),
        }

    def as_arrays(self) -> tuple[AnyArray, IntArray]:
        """Step and trial of every event."""
        values, steps = np.divmod(np.array(self._codes, dtype=np.int64), 4)
        creates = (steps == _ASK) | (steps == _OBSERVE)
        return np.array(_STEPS)[steps], np.where(creates, np.cumsum(creates) - 1, values)

    @classmethod
    def read(cls, state: State, n_candidates: Sequence[int]) -> EventLog:
        """Invert `state`; restrictions must be of so many candidates, or of one of the numbers there were before."""
        checks = {
            "codes": integers(None, low=0),
            "sizes": integers(None, low=1, high=4 * n_candidates[-1] + 1),
            "restrictions": integers(None, low=0, high=255),
        }
        known = record("events", state, checks)
        out, data = cls(), known["restrictions"].astype(np.uint8).tobytes()
        ends = np.cumsum(known["sizes"]).tolist()
        same("length of events['restrictions']", len(data), ends[-1] if ends else 0, "the sum of events['sizes']")
        parts = [data[end - size : end] for end, size in zip(ends, known["sizes"].tolist(), strict=True)]
        out._numbers = {part: number for number, part in enumerate(parts, 1)}
        for part in out._numbers:
            check_restriction(part, n_candidates)
        asks = known["codes"][known["codes"] % 4 == _ASK] // 4
        if len(out._numbers) != len(parts) or np.any(asks > len(parts)):
            raise ValueError(f"events['codes'] must name restrictions 1..{len(parts)}, each of which is stored once")
        out._codes = array("q", known["codes"].tobytes())
        return out


def check_restriction(packed: bytes, n_candidates: Sequence[int]) -> None:
    """Raise unless this is what `pack_restriction` makes of some of the candidates, of whom there were so many."""
    form, size, most = packed[:1], len(packed) - 1, n_candidates[-1]
    listed = form in (b"+", b"-") and size % 4 == 0
    if not (listed or (form == b"#" and size in [(n + 7) // 8 for n in n_candidates])):
        raise ValueError(f"events['restrictions'] must be lists or masks of {most} candidates")
    named = np.frombuffer(packed[1:], dtype=np.uint32) if listed else np.empty(0, dtype=np.uint32)
    if np.any(named >= most) or not unpack_restriction(packed, most if listed else 8 * size).size:
        raise ValueError(f"events['restrictions'] must leave some of the {most} candidates, and name no others")


def pack_restriction(indices: IntArray, n_candidates: int) -> bytes:
    """Some of N candidates as bytes: the shortest of a list of them, a list of the others, and one bit for each."""
    inside = np.zeros(n_candidates, dtype=bool)
    inside[indices] = True
    forms = (
        b"+" + np.flatnonzero(inside).astype(np.uint32).tobytes(),
        b"-" + np.flatnonzero(~inside).astype(np.uint32).tobytes(),
        b"#" + np.packbits(inside).tobytes(),
    )
    return min(forms, key=len)


def unpack_restriction(packed: bytes, n_candidates: int) -> IntArray:
    """Invert `pack_restriction`: the indices, in increasing order.

    >>> unpack_restriction(pack_restriction(np.array([5, 2]), 9), 9).tolist()
    [2, 5]
    """
    form, data = packed[:1], packed[1:]
    if form == b"#":
        return np.flatnonzero(np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=n_candidates))
    listed = np.frombuffer(data, dtype=np.uint32).astype(np.int64)
    return listed if form == b"+" else np.setdiff1d(np.arange(n_candidates), listed)


class _Shown:
    """Representations of what an algorithm returns: plain numbers and dicts, one line, what is None left out."""

    def _fields(self) -> dict[str, object]:
        shown = {name: jsonable(value) for name, value in vars(self).items()}
        return {name: value for name, value in shown.items() if value is not None}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._fields().items())})"

    def _repr_html_(self) -> str:
        fields = self._fields()
        if isinstance(parts := fields.pop("x", None), dict):  # a row of a table: one line per column
            fields = {"id": fields.pop("id")} | parts | fields if "id" in fields else parts | fields
        elif parts is not None:
            fields = {"x": parts} | fields
        return table(fields.items())


@dataclass(frozen=True, repr=False)
class Trial(_Shown):
    """One proposed action.

    Attributes
    ----------
    id : counts from 0.
    x : the action, in the user's own form.
    index : its number among the domain's candidates.
    model : number of the model whose agent proposed it; None if no single model did.
    explored : whether it came from the exploration distribution.
    propensity : probability p_t(x) with which the algorithm plays this action in this round.
    context : that of a contextual round, as it was passed; as plain data in a run that was loaded.
    n_candidates : number of candidates of its round, those that were not available included.
    scores : (n,) probabilities of all of them, if `ask(scores=True)` was asked for.

    In contextual rounds `index` is the position among the candidates as they were passed.
    """

    id: int
    x: Action
    index: int
    model: int | None
    explored: bool
    propensity: float
    context: object = field(default=None, compare=False, kw_only=True)
    n_candidates: int | None = field(default=None, compare=False, kw_only=True)
    scores: FloatArray | None = field(default=None, compare=False, kw_only=True)

    def to_dict(self) -> State:
        """The trial as JSON data; `x` as numbers, text, a list or a dict by column; what is None is left out."""
        optional = {"context": self.context, "n_candidates": self.n_candidates, "scores": self.scores}
        known = {name: jsonable(value) for name, value in optional.items() if value is not None}
        own = {name: value for name, value in vars(self).items() if name not in optional}
        return own | {"x": jsonable(self.x), "propensity": jsonable(self.propensity)} | known


@dataclass(frozen=True, repr=False)
class Recommendation(_Shown):
    """The action an algorithm would stop with: its estimated reward, and the model the estimate comes from."""

    x: Action
    index: int
    value: float
    model: int | None


class UnknownTrialError(ValueError, KeyError):
    """A reward was told for a trial that was never asked for."""

    __str__ = Exception.__str__


class AlreadyToldError(ValueError):
    """A reward was told twice for the same trial."""


class AbandonedTrialError(ValueError):
    """A reward was told for a trial that had been given up."""


class NotToldError(ValueError):
    """A reward was to be corrected or withdrawn that the trial does not have."""


class NoRewardYetError(RuntimeError):
    """What was asked for needs a reward, and none was told."""


class Failure(NamedTuple):
    """The entry of a trial that failed, in place of a reward."""

    reason: str = ""


Entry = Value | Failure | None  # of a trial: its reward, its failure, or nothing


def check_remark(name: str, text: object) -> str:
    """A note or a reason without blanks around it, or raise unless it is a text of at most 2000 characters."""
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a text, got {type(text).__name__}")
    if len(text) > MOST_REMARK or "\0" in text:
        raise ValueError(f"{name} must be a text of at most {MOST_REMARK} characters, got {len(text)}: {text!r:.80}")
    return text.strip()


class SeenRewards(NamedTuple):
    """How many rewards there were, and the smallest and largest of them."""

    n: int = 0
    low: float = inf
    high: float = -inf

    @classmethod
    def of(cls, rewards: Sequence[float] | FloatArray) -> Self:
        """Of some rewards; NaN stands for none."""
        values = np.asarray(rewards, dtype=np.float64)
        known = values[~np.isnan(values)]
        return cls(known.size, float(known.min()), float(known.max())) if known.size else cls()

    def including(self, reward: float) -> SeenRewards:
        """With one more."""
        return SeenRewards(self.n + 1, min(self.low, reward), max(self.high, reward))


class TrialLog:
    """All trials of one run, column by column in 33 bytes each; rewards are NaN where there is none.

    Where several objectives are measured, `reward` is that of the first, and `further` has those of the others.

    Attributes
    ----------
    pending : candidates of the pending trials by their ids, oldest first.
    n_settled : how many trials have left `pending`.
    abandoned : trials that were given up, those with a withdrawn reward and those that failed included.
    retracted : trials whose reward or failure was withdrawn.
    failed : trials that failed; their candidates are not proposed again.
    remarks : notes of rewards and reasons of failures, by trial; only where there are any.
    replicates : further measurements of the experiment of a trial, which are trials of their own, by that trial.
    objectives : names of those that are measured; empty where a reward is a number.
    further : values of all of them but the first, by trial, where there are several.
    arrivals : when candidates were added: the number of trials, and of candidates, before.
    events : asks, tells, observations and abandonments in their order.
    seen : the range of the rewards.
    offers : contexts and rows of contextual rounds; None on a fixed domain.

    The columns of a trial are written first; it counts from when its event is committed on.
    """

    def __init__(self, offers: OfferLog | None = None, objectives: tuple[str, ...] = ()) -> None:
        self.offers, self.objectives = offers, objectives
        self.index = array("q")
        self.model = array("q")  # -1 for none
        self.explored = array("b")
        self.propensity = array("d")
        self.reward = array("d")
        self.pending: dict[int, int] = {}
        self.n_settled = 0
        self.abandoned: set[int] = set()
        self.retracted: set[int] = set()
        self.failed: set[int] = set()
        self.remarks: dict[int, str] = {}
        self.replicates: dict[int, list[int]] = {}
        self.further: dict[int, tuple[float, ...]] = {}
        self.arrivals: list[tuple[int, int]] = []
        self.events = EventLog()
        self.seen = SeenRewards()

    def __len__(self) -> int:
        return len(self.index)

    @property
    def n_told(self) -> int:
        """Number of rewards."""
        return self.seen.n

    def commit(self) -> None:
        """Make what was added part of the log, in one step."""
        self.events.commit()

    def n_candidates_at(self, trial: int, now: int) -> int:
        """How many candidates there were when a trial was asked for, if there are `now` so many."""
        return next((candidates for trials, candidates in self.arrivals if trial < trials), now)

    def append(
        self,
        index: int,
        model: int | None,
        explored: bool,
        propensity: float,
        restriction: bytes | None = None,
        offer: Offer | None = None,
    ) -> int:
        """Record a proposal, with what its round was restricted to if that must be remembered, and return its id."""
        self.events.asked(restriction)
        if offer is not None and self.offers is not None:
            self.offers.append(offer, index)
        trial_id = self._add(index, model, explored, propensity)
        self.pending[trial_id] = index
        return trial_id

    def observe(
        self,
        index: int,
        reward: Value,
        propensity: float = nan,
        offer: Offer | None = None,
        replicate_of: int | None = None,
    ) -> None:
        """Record a measurement from elsewhere, or a further one of a trial, as the next trial; NaN if withdrawn."""
        if replicate_of is not None:
            self.replicates.setdefault(replicate_of, []).append(len(self))
        self.events.observed()
        if offer is not None and self.offers is not None:
            self.offers.append(offer, index)
        self._set(self._add(index, None, False, propensity), reward)

    def _add(self, index: int, model: int | None, explored: bool, propensity: float) -> int:
        self.index.append(index)
        self.model.append(-1 if model is None else model)
        self.explored.append(explored)
        self.propensity.append(propensity)
        self.reward.append(float("nan"))
        return len(self.index) - 1

    def record(self, trial_id: int, reward: Value) -> None:
        """Store the reward of a trial; NaN if it was withdrawn."""
        self.events.told(trial_id)
        self._set(trial_id, reward)

    def _set(self, trial_id: int, reward: Value) -> None:
        first, *further = numbers_of(reward)
        self.reward[trial_id] = first
        if further:
            self.further[trial_id] = tuple(further)
        self._settle(trial_id)
        if isnan(first):
            self.abandoned.add(trial_id)
            self.retracted.add(trial_id)
        else:
            self.seen = self.seen.including(first)
        if self.offers is not None:
            self.offers.settle(trial_id, self.index[trial_id], isnan(first))

    def _settle(self, trial_id: int) -> None:
        if self.pending.pop(trial_id, None) is not None:
            self.n_settled += 1

    def seen_beside(self, trial_id: int) -> SeenRewards:
        """The range of the rewards of all other trials."""
        if isnan(self.reward[trial_id]):
            return self.seen
        return SeenRewards.of(np.delete(np.array(self.reward, dtype=np.float64), trial_id))

    def abandon(self, trial_id: int) -> None:
        """Give up a pending trial."""
        self.events.abandoned(trial_id)
        self.abandoned.add(trial_id)
        self._settle(trial_id)
        if self.offers is not None:
            self.offers.settle(trial_id, self.index[trial_id], lost=True)

    def fail(self, trial_id: int, reason: str) -> None:
        """Give up a pending trial because its experiment failed."""
        self.abandon(trial_id)
        self.failed.add(trial_id)
        self.remark(trial_id, reason)

    def remark(self, trial_id: int, text: str) -> None:
        """Keep a note or a reason; an empty one removes what was there."""
        if text:
            self.remarks[trial_id] = text
        else:
            self.remarks.pop(trial_id, None)

    def entry(self, trial_id: int) -> Entry:
        """The reward of a trial, its failure, or None where it has neither."""
        if trial_id in self.failed:
            return Failure(self.remarks.get(trial_id, ""))
        return None if isnan(self.reward[trial_id]) else self.value(trial_id)

    def value(self, trial_id: int) -> Value:
        """The reward of a trial: NaN where it has none, and numbers by name where several objectives are measured."""
        reward = self.reward[trial_id]
        if trial_id not in self.further or isnan(reward):
            return reward
        return dict(zip(self.objectives, (reward, *self.further[trial_id]), strict=True))

    def values(self, objective: int) -> FloatArray:
        """The rewards of all trials as far as one of the measured objectives is concerned; NaN where there is none."""
        out = np.array(self.reward, dtype=np.float64)
        if objective > 0:
            for trial in np.flatnonzero(~np.isnan(out)).tolist():
                out[trial] = self.further[trial][objective - 1]
        return out

    def about(self, objective: int) -> TrialLog:
        """The log of one of the measured objectives, for reading; it shares all but the rewards with this one."""
        out = copy(self)
        rewards = self.values(objective)
        out.reward, out.seen = array("d", rewards.tobytes()), SeenRewards.of(rewards)
        out.objectives, out.further = (), {}
        return out

    def measurements(self, trial_id: int) -> tuple[Value, ...]:
        """All rewards of the experiment of a trial, its own first."""
        own = (trial_id, *self.replicates.get(trial_id, ()))
        return tuple(self.value(k) for k in own if not isnan(self.reward[k]))

    def head_of(self, trial_id: int) -> int:
        """The trial that a replicate belongs to; other trials belong to themselves."""
        owners = (head for head, own in self.replicates.items() if trial_id in own)
        return next(owners, trial_id)

    def failed_candidates(self) -> IntArray:
        """Candidates with a failed trial, each once, in increasing order."""
        return np.unique(np.array([self.index[trial] for trial in self.failed], dtype=np.int64))

    def proposed(self) -> IntArray:
        """Ids of the trials that were asked for, in increasing order; the others were observed elsewhere."""
        if self.offers is None:  # observations have no propensity
            return np.flatnonzero(~np.isnan(np.array(self.propensity, dtype=np.float64)))
        steps, trials = self.events.as_arrays()
        return np.asarray(trials[steps == "ask"])

    def measured(self) -> IntArray:
        """Candidates that have a reward, each once, in increasing order."""
        return np.unique(self.told_candidates())

    def told_candidates(self) -> IntArray:
        """The candidate of every trial with a reward."""
        return np.array(self.index, dtype=np.int64)[~np.isnan(np.array(self.reward, dtype=np.float64))]

    def told_in_order(self) -> list[int]:
        """Ids of all trials with a reward, in the order in which the rewards came.

        Corrected rewards keep their place.
        """
        steps, trials = self.events.as_arrays()
        came = trials[(steps == "tell") | (steps == "observe")].tolist()
        return [trial for trial in came if trial not in self.retracted] if self.retracted else came

    def trial(self, trial_id: int, domain: Domain, scores: FloatArray | None = None) -> Trial:
        """Trial `trial_id` as the user saw it."""
        model, offers = self.model[trial_id], self.offers
        return Trial(
            id=trial_id,
            x=domain[self.index[trial_id]] if offers is None else offers.actions[trial_id],
            index=self.index[trial_id],
            model=None if model < 0 else model,
            explored=bool(self.explored[trial_id]),
            propensity=self.propensity[trial_id],
            context=None if offers is None else offers.contexts[trial_id],
            n_candidates=None if offers is None else offers.n_candidates[trial_id],
            scores=scores,
        )

    # -- checks ------------------------------------------------------------------------------------------------

    def check_id(self, trial: Trial | int | str) -> int:
        """Id of a trial of this run, given as to `id_of`."""
        trial_id = id_of(trial)
        if not 0 <= trial_id < len(self):
            asked = f"ids 0..{len(self) - 1} have been asked for" if len(self) else "none has been asked for yet"
            raise UnknownTrialError(f"there is no trial {trial_id}: {asked}")
        if isinstance(trial, Trial):
            self._check_own(trial)
        return trial_id

    def _check_own(self, trial: Trial) -> None:
        """Refuse a trial of another run where that shows."""
        k, model = trial.id, -1 if trial.model is None else trial.model
        if trial.index != self.index[k]:
            what = f"proposed candidate {self.index[k]}, not {trial.index}"
        elif (model, trial.explored) != (self.model[k], bool(self.explored[k])):
            what = f"was proposed by {_proposer(self.model[k])}, not by {_proposer(model)}, or one of them explored"
        elif (
            trial.propensity != self.propensity[k]
            and not isclose(trial.propensity, self.propensity[k], rel_tol=1e-6)
            and not (isnan(trial.propensity) and isnan(self.propensity[k]))
        ):
            what = f"had the propensity {self.propensity[k]:.6g}, not {trial.propensity:.6g}"
        else:
            return
        raise UnknownTrialError(f"trial {k} of this run {what}: the trial belongs to another run")

    def check_pending(self, trial: Trial | int | str) -> int:
        """Id of a trial that awaits its reward, or an error that says why it does not."""
        return self.check_is_pending(self.check_id(trial))

    def check_is_pending(self, trial_id: int) -> int:
        """The same for the id of a trial of this run."""
        if trial_id in self.pending:
            return trial_id
        if not isnan(self.reward[trial_id]):
            raise AlreadyToldError(
                f"trial {trial_id} already has the reward {self.value(trial_id)}; amend({trial_id}, ...) corrects it"
            )
        if trial_id in self.failed:
            raise AbandonedTrialError(f"trial {trial_id} failed; amend({trial_id}, reward) gives it a reward after all")
        if trial_id in self.retracted:
            raise AbandonedTrialError(
                f"the reward of trial {trial_id} was retracted, and it takes no other by tell; "
                f"amend({trial_id}, reward) gives it one again"
            )
        raise AbandonedTrialError(
            f"trial {trial_id} was abandoned; amend({trial_id}, reward) gives it a reward after all"
        )

    def check_told(self, trial: Trial | int | str, or_abandoned: bool = False) -> int:
        """Id of a trial that has or had a reward, or failed, or was abandoned; otherwise an error that says why not."""
        trial_id = self.check_id(trial)
        known = self.abandoned if or_abandoned else self.retracted | self.failed
        if isnan(self.reward[trial_id]) and trial_id not in known:
            why = "was abandoned" if trial_id in self.abandoned else "awaits its first reward"
            raise NotToldError(f"trial {trial_id} {why}; only a trial with a reward can be amended or retracted")
        return trial_id

    # -- saved -------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """The log as arrays."""
        return {
            "index": np.array(self.index, dtype=np.int64),
            "model": np.array(self.model, dtype=np.int64),
            "explored": np.array(self.explored, dtype=bool),
            "propensity": np.array(self.propensity, dtype=np.float64),
            "reward": np.array(self.reward, dtype=np.float64),
            "abandoned": np.array(sorted(self.abandoned), dtype=np.int64),
            "retracted": np.array(sorted(self.retracted), dtype=np.int64),
            "events": self.events.state(),
        } | self._rare_state()

    def _rare_state(self) -> State:
        """What most runs do not have."""
        out: State = {} if self.offers is None else {"offers": self.offers.state()}
        if self.failed:
            out["failed"] = np.array(sorted(self.failed), dtype=np.int64)
        if self.replicates:
            pairs = [(head, one) for head in sorted(self.replicates) for one in self.replicates[head]]
            out["replicates"] = np.array(pairs, dtype=np.int64).ravel()
        if self.further:
            known = np.flatnonzero(~np.isnan(np.array(self.reward, dtype=np.float64))).tolist()
            out["further"] = np.array([self.further[trial] for trial in known], dtype=np.float64).ravel()
        if self.arrivals:
            out["arrivals"] = np.array(self.arrivals, dtype=np.int64).ravel()
        if self.remarks:
            out["remarks"] = {str(trial): self.remarks[trial] for trial in sorted(self.remarks)}
        return out


def _proposer(model: int) -> str:
    return "no single model" if model < 0 else f"model {model}"


def id_of(trial: Trial | int | str) -> int:
    """Id of a trial that is given by itself, by its id, or by its id as text: "100", a key of JSON, or "#100"."""
    found = trial.id if isinstance(trial, Trial) else trial
    if isinstance(found, str) and (digits := found.removeprefix("#")).isdecimal() and digits.isascii():
        return int(digits)
    if isinstance(found, bool) or not isinstance(found, int | np.integer):
        raise TypeError(f"trial must be a Trial or its id (an int), got {type(trial).__name__}: {trial!r}")
    return int(found)


def looks_like_a_typo(seen: SeenRewards | Sequence[float] | FloatArray, reward: float) -> str | None:
    """Why a reward looks like a typing error beside those seen; None if it does not, or if too few were seen.

    It does if its distance from all of them is more than 10 times their range (their size where they are all equal) and
    more than their size: an algorithm that plays the best candidate again and again sees rewards in a narrow range, and
    a poor one after them is no typing error.

    >>> looks_like_a_typo([70.1, 64.0, 72.4, 55.3, 68.9], 7240.0)
    'a reward of 7240 is far outside the 5 seen so far, 55.3 to 72.4; if it is a typing error, amend it'
    >>> looks_like_a_typo([70.1, 64.0, 72.4, 55.3, 68.9], 12.0)
    """
    known = seen if isinstance(seen, SeenRewards) else SeenRewards.of(seen)
    if known.n < LEAST_SEEN:
        return None
    size = max(abs(known.low), abs(known.high))
    far = max(FAR * (known.high - known.low or size), size)
    if known.low - far <= reward <= known.high + far or size == 0.0:
        return None
    return (
        f"a reward of {reward:.10g} is far outside the {known.n} seen so far, {known.low:.10g} to {known.high:.10g}; "
        "if it is a typing error, amend it"
    )


def typos_among(known: FloatArray, new: FloatArray) -> list[str | None]:
    """For each of some new rewards (k,), why it looks like a typing error beside all others, known (n,) or new."""
    everything = np.sort(np.concatenate([known, new]))
    out: list[str | None] = []
    for reward in new.tolist():
        others = np.delete(everything, np.searchsorted(everything, reward))
        seen = SeenRewards(others.size, float(others[0]), float(others[-1])) if others.size else SeenRewards()
        out.append(looks_like_a_typo(seen, reward))
    return out


def trials_frame(log: TrialLog, domain: Domain) -> pd.DataFrame:
    """One row per trial; `reward` is missing while pending, `model` when no single model proposed it.

    Candidates of a data frame are dicts by column.
    Where objectives are measured, every one has a column in place of `reward`.
    """
    require("pandas")
    import pandas as pd  # slow to import, and needed here only

    rewards = {name: log.values(k) for k, name in enumerate(log.objectives)} or {"reward": log.values(0)}
    played = [_plain(domain[i]) for i in log.index] if log.offers is None else log.offers.actions
    return pd.DataFrame(
        {
            "id": np.arange(len(log)),
            "x": _objects(played) if len(log) and np.ndim(played[0]) > 0 else played,
            "index": np.array(log.index, dtype=np.int64),
            "model": pd.array([None if j < 0 else j for j in log.model], dtype="Int64"),
            "explored": np.array(log.explored, dtype=bool),
            "propensity": np.array(log.propensity, dtype=np.float64),
        }
        | rewards
    )


def _plain(x: Action) -> Action:
    """An action as a cell of a table: rows of a data frame as a dict by column."""
    return x.to_dict() if hasattr(x, "iloc") else x


def rounds_frame(log: TrialLog, domain: Domain) -> pd.DataFrame:
    """The same with what every round offered: `context`, `ids`, `n`, `available` and `features`.

    `ids` are those that were passed, names of arms, or None; `available` positions that could be chosen, or None for
    all; `features` (n, P), of all candidates in the order in which they were passed, or None where they were not kept.
    """
    frame, offers, trials = trials_frame(log, domain), log.offers, range(len(log))
    n = domain.n_candidates
    frame["n"] = np.full(len(log), n) if offers is None else np.array(offers.n_candidates, dtype=np.int64)
    if offers is None:
        for name in ("context", "ids", "available", "features"):
            frame[name] = _objects([None] * len(log))
        return frame
    frame["context"] = _objects(offers.contexts)
    arms = [domain[k] for k in range(n)]
    frame["ids"] = _objects([list(arms[: offers.n_candidates[k]]) if n else _listed(offers.ids[k]) for k in trials])
    frame["available"] = _objects([offers.allowed(k) for k in trials])
    frame["features"] = _objects([offers.offered(k) for k in trials])
    return frame


def _listed(ids: tuple[object, ...] | None) -> list[object] | None:
    return None if ids is None else list(ids)


def _objects(values: Sequence[object]) -> AnyArray:
    """A column of anything, one entry per row whatever its own shape."""
    out = np.empty(len(values), dtype=object)
    for k, value in enumerate(values):
        out[k] = value
    return out
