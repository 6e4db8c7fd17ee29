"""Trials: what an algorithm proposed, and the log of what came back."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, isclose, isnan, nan
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from alexp.algorithms.protocol.course import Course
from alexp.common.arrays import Action, FloatArray, IntArray
from alexp.common.codec import State, jsonable
from alexp.problem.domains import Domain

if TYPE_CHECKING:
    from alexp.algorithms.protocol.contextual.record import OfferLog
    from alexp.problem.contextual.offers import Offer


@dataclass(frozen=True)
class Trial:
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


@dataclass(frozen=True)
class Recommendation:
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

    Attributes
    ----------
    waiting : candidates of the pending trials by their ids, oldest first.
    abandoned : trials that were given up, those with a withdrawn reward included.
    retracted : trials whose reward was withdrawn.
    happened : what happened in which order, since the first event or since `origin`.
    origin : log and state, as loaded, of a run saved by a version that did not keep the order; None for all others.
    seen : the range of the rewards.
    offers : contexts and rows of contextual rounds; None on a fixed domain.

    The columns of a trial are written first; it counts from when its event is committed on.
    """

    def __init__(self, offers: OfferLog | None = None) -> None:
        self.offers = offers
        self.index = array("q")
        self.model = array("q")  # -1 for none
        self.explored = array("b")
        self.propensity = array("d")
        self.reward = array("d")
        self.waiting: dict[int, int] = {}  # candidates of the pending trials by their ids, oldest first
        self.abandoned: set[int] = set()
        self.retracted: set[int] = set()
        self.happened = Course()
        self.origin: tuple[State, State] | None = None
        self.seen = SeenRewards()

    def __len__(self) -> int:
        return len(self.index)

    @property
    def n_told(self) -> int:
        """Number of rewards."""
        return self.seen.n

    @property
    def course(self) -> Course | None:
        """What happened in which order from the first event on; None in runs saved by versions that did not keep it."""
        return self.happened if self.origin is None else None

    @course.setter
    def course(self, found: Course) -> None:
        self.happened, self.origin = found, None

    def commit(self) -> None:
        """Make what was added part of the log, in one step."""
        self.happened.commit()

    def append(
        self,
        index: int,
        model: int | None,
        explored: bool,
        propensity: float,
        restriction: bytes | None = None,
        made: Offer | None = None,
    ) -> int:
        """Record a proposal, with what its round was restricted to if that must be remembered, and return its id."""
        self.happened.asked(restriction)
        if made is not None and self.offers is not None:
            self.offers.append(made, index)
        trial_id = self._add(index, model, explored, propensity)
        self.waiting[trial_id] = index
        return trial_id

    def observe(self, index: int, reward: float, propensity: float = nan, made: Offer | None = None) -> None:
        """Record a measurement from elsewhere as the next trial; NaN if it was withdrawn."""
        self.happened.observed()
        if made is not None and self.offers is not None:
            self.offers.append(made, index)
        self._set(self._add(index, None, False, propensity), reward)

    def _add(self, index: int, model: int | None, explored: bool, propensity: float) -> int:
        self.index.append(index)
        self.model.append(-1 if model is None else model)
        self.explored.append(explored)
        self.propensity.append(propensity)
        self.reward.append(float("nan"))
        return len(self) - 1

    def record(self, trial_id: int, reward: float) -> None:
        """Store the reward of a trial; NaN if it was withdrawn."""
        self.happened.told(trial_id)
        self._set(trial_id, reward)

    def _set(self, trial_id: int, reward: float) -> None:
        self.reward[trial_id] = reward
        self.waiting.pop(trial_id, None)
        if isnan(reward):
            self.abandoned.add(trial_id)
            self.retracted.add(trial_id)
        else:
            self.seen = self.seen.including(reward)
        if self.offers is not None:
            self.offers.settle(trial_id, self.index[trial_id], isnan(reward))

    def seen_beside(self, trial_id: int) -> SeenRewards:
        """The range of the rewards of all other trials."""
        if isnan(self.reward[trial_id]):
            return self.seen
        return SeenRewards.of(np.delete(np.array(self.reward, dtype=np.float64), trial_id))

    def abandon(self, trial_id: int) -> None:
        """Give up a pending trial."""
        self.happened.abandoned(trial_id)
        self.abandoned.add(trial_id)
        self.waiting.pop(trial_id, None)
        if self.offers is not None:
            self.offers.settle(trial_id, self.index[trial_id], lost=True)

    def pending(self) -> list[int]:
        """Ids of trials that await a reward."""
        return list(self.waiting)

    def proposed(self) -> IntArray:
        """Ids of the trials that were asked for, in increasing order; the others were observed elsewhere."""
        if self.offers is None:  # nobody knows with which probability those were played
            return np.flatnonzero(~np.isnan(np.array(self.propensity, dtype=np.float64)))
        steps, trials = self.happened.as_arrays()
        return np.asarray(trials[steps == "ask"])

    def measured(self) -> IntArray:
        """Candidates that have a reward, each once, in increasing order."""
        return np.unique(np.array(self.index, dtype=np.int64)[~np.isnan(np.array(self.reward, dtype=np.float64))])

    def told_in_order(self) -> list[int]:
        """Ids of all trials with a reward, in the order in which the rewards came.

        Corrected rewards keep their place. Where the order was not kept, it is that of the trials: what each trial
        was decided on came from earlier ones, so that statements about sequences hold in that order, too.
        """
        if self.course is None:
            return [i for i, reward in enumerate(self.reward) if reward == reward]
        came = (event.trial for event in self.course.since() if event.step in ("tell", "observe"))
        return [trial for trial in came if trial not in self.retracted]

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
        """Id of a trial of this run, given by itself, by its id, or by its id as text ("100" or "#100")."""
        trial_id = trial.id if isinstance(trial, Trial) else _number(trial)
        if isinstance(trial_id, bool) or not isinstance(trial_id, int | np.integer):
            raise TypeError(f"a Trial or its id (an int) is needed, got {type(trial).__name__}: {trial!r}")
        if not 0 <= trial_id < len(self):
            asked = f"ids 0..{len(self) - 1} have been asked for" if len(self) else "none has been asked for yet"
            raise UnknownTrialError(f"there is no trial {trial_id}: {asked}")
        if isinstance(trial, Trial):
            self._check_own(trial)
        return int(trial_id)

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
        return self.check_waiting(self.check_id(trial))

    def check_waiting(self, trial_id: int) -> int:
        """The same for the id of a trial of this run."""
        if trial_id in self.waiting:
            return trial_id
        if not isnan(self.reward[trial_id]):
            raise AlreadyToldError(
                f"trial {trial_id} already has the reward {self.reward[trial_id]}; amend({trial_id}, ...) corrects it"
            )
        if trial_id in self.retracted:
            raise AbandonedTrialError(
                f"the reward of trial {trial_id} was retracted, and it takes no other by tell; "
                f"amend({trial_id}, reward) gives it one again"
            )
        raise AbandonedTrialError(
            f"trial {trial_id} was abandoned and takes no reward; add the measurement as an observation"
        )

    def check_told(self, trial: Trial | int | str) -> int:
        """Id of a trial that has or had a reward, or an error that says why it has none."""
        trial_id = self.check_id(trial)
        if isnan(self.reward[trial_id]) and trial_id not in self.retracted:
            why = "was abandoned" if trial_id in self.abandoned else "awaits its first reward"
            raise NotToldError(f"trial {trial_id} {why}; only a reward that was told can be amended or retracted")
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
            "course": None if self.course is None else self.course.state(),
        } | ({} if self.offers is None else {"offers": self.offers.state()})


def _proposer(model: int) -> str:
    return "no single model" if model < 0 else f"model {model}"


def _number(trial: object) -> object:
    """Ids as they come from keys of JSON objects and from labels, as whole numbers."""
    digits = trial.removeprefix("#") if isinstance(trial, str) else ""
    return int(digits) if digits.isascii() and digits.isdigit() else trial
