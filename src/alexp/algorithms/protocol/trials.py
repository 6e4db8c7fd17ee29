"""Trials: what an algorithm proposed, and the log of what came back."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from alexp.common.arrays import Action, IntArray
from alexp.common.codec import State, jsonable
from alexp.problem.domains import Domain

if TYPE_CHECKING:
    import pandas as pd


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
    """

    id: int
    x: Action
    index: int
    model: int | None
    explored: bool
    propensity: float

    def to_dict(self) -> State:
        """The trial as JSON data; `x` as numbers, text, a list or a dict by column."""
        return vars(self) | {"x": jsonable(self.x), "propensity": jsonable(self.propensity)}


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


class TrialLog:
    """All trials of one run, column by column in 33 bytes each; rewards are NaN while pending."""

    def __init__(self) -> None:
        self.index = array("q")
        self.model = array("q")  # -1 for none
        self.explored = array("b")
        self.propensity = array("d")
        self.reward = array("d")
        self.abandoned: set[int] = set()
        self.waiting: dict[int, int] = {}  # candidates of the pending trials by their ids, oldest first
        self.n_told = 0

    def __len__(self) -> int:
        return len(self.index)

    def append(self, index: int, model: int | None, explored: bool, propensity: float) -> int:
        """Record a proposal and return its id."""
        self.index.append(index)
        self.model.append(-1 if model is None else model)
        self.explored.append(explored)
        self.propensity.append(propensity)
        self.reward.append(float("nan"))
        self.waiting[len(self) - 1] = index
        return len(self) - 1

    def trial(self, trial_id: int, domain: Domain) -> Trial:
        """Trial `trial_id` as the user saw it."""
        model = self.model[trial_id]
        return Trial(
            id=trial_id,
            x=domain[self.index[trial_id]],
            index=self.index[trial_id],
            model=None if model < 0 else model,
            explored=bool(self.explored[trial_id]),
            propensity=self.propensity[trial_id],
        )

    def check_pending(self, trial: Trial | int) -> int:
        """Id of a trial that awaits its reward, or an error that says why it does not."""
        trial_id = trial.id if isinstance(trial, Trial) else trial
        if isinstance(trial_id, bool) or not isinstance(trial_id, int | np.integer):
            raise TypeError(f"tell needs a Trial or its id (an int), got {type(trial).__name__}: {trial!r}")
        if not 0 <= trial_id < len(self):
            asked = f"ids 0..{len(self) - 1} have been asked for" if len(self) else "none has been asked for yet"
            raise UnknownTrialError(f"there is no trial {trial_id}: {asked}")
        if isinstance(trial, Trial) and trial.index != self.index[trial_id]:
            raise UnknownTrialError(
                f"trial {trial_id} of this run proposed candidate {self.index[trial_id]}, not {trial.index}: "
                "the trial belongs to another run"
            )
        if not np.isnan(self.reward[trial_id]):
            raise AlreadyToldError(f"trial {trial_id} already has the reward {self.reward[trial_id]}")
        if trial_id in self.abandoned:
            raise AbandonedTrialError(
                f"trial {trial_id} was abandoned and takes no reward; add the measurement as an observation"
            )
        return int(trial_id)

    def record(self, trial_id: int, reward: float) -> None:
        """Store the reward of a trial."""
        self.reward[trial_id] = reward
        self.waiting.pop(trial_id, None)
        self.n_told += 1

    def pending(self) -> list[int]:
        """Ids of trials that await a reward."""
        return list(self.waiting)

    def measured(self) -> IntArray:
        """Candidates that have a reward, each once, in increasing order."""
        return np.unique(np.array(self.index, dtype=np.int64)[~np.isnan(np.array(self.reward, dtype=np.float64))])

    def abandon(self, trial_id: int) -> None:
        """Give up a pending trial."""
        self.abandoned.add(trial_id)
        self.waiting.pop(trial_id, None)

    def dataframe(self, domain: Domain) -> pd.DataFrame:
        """One row per trial; `reward` is missing while pending, `model` when no single model proposed it."""
        import pandas as pd  # slow to import, and needed here only

        return pd.DataFrame(
            {
                "id": np.arange(len(self)),
                "x": pd.Series([domain[i] for i in self.index], dtype=object)
                if len(self) and np.ndim(domain[0]) > 0
                else [domain[i] for i in self.index],
                "index": np.array(self.index, dtype=np.int64),
                "model": pd.array([None if j < 0 else j for j in self.model], dtype="Int64"),
                "explored": np.array(self.explored, dtype=bool),
                "propensity": np.array(self.propensity, dtype=np.float64),
                "reward": np.array(self.reward, dtype=np.float64),
            }
        )

    def state(self) -> State:
        """The log as arrays."""
        return {
            "index": np.array(self.index, dtype=np.int64),
            "model": np.array(self.model, dtype=np.int64),
            "explored": np.array(self.explored, dtype=bool),
            "propensity": np.array(self.propensity, dtype=np.float64),
            "reward": np.array(self.reward, dtype=np.float64),
            "abandoned": np.array(sorted(self.abandoned), dtype=np.int64),
        }

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        self.index, self.model = array("q", state["index"].tolist()), array("q", state["model"].tolist())
        self.explored = array("b", state["explored"].tolist())
        self.propensity, self.reward = array("d", state["propensity"].tolist()), array("d", state["reward"].tolist())
        self.abandoned = set(state["abandoned"].tolist()) if "abandoned" in state else set()
        missing = np.flatnonzero(np.isnan(state["reward"])).tolist()
        self.waiting = {i: self.index[i] for i in missing if i not in self.abandoned}
        self.n_told = len(self) - len(missing)
