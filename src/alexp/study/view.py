"""Results of a study's methods: counts, summaries, pending trials, and the view. Needs no database."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NotRequired, TypedDict

import numpy as np

from alexp.algorithms.log import Trial
from alexp.common.arrays import Action, FloatArray, IntArray
from alexp.common.codec import Packable, State, jsonable
from alexp.common.extras import require

if TYPE_CHECKING:
    import pandas as pd

TrialState = Literal["told", "pending", "abandoned", "failed", "retracted", "observed"]


class Counts(TypedDict):
    """Numbers of trials: all, told (with external observations), pending, abandoned (with retracted).

    `failed` is there where any trial has failed.
    """

    trials: int
    told: int
    pending: int
    abandoned: int
    failed: NotRequired[int]


class TellCounts(NamedTuple):
    """Numbers of rewards and failures that were stored, known already (skipped), and changed (amended)."""

    told: int
    skipped: int
    amended: int


@dataclass(frozen=True)
class StudySummary:
    """One line of the list of studies."""

    name: str
    algorithm: str
    created_at: float
    trials: int
    told: int
    pending: int
    abandoned: int
    failed: int
    latest: float | None


@dataclass(frozen=True)
class SettingLine:
    """One setting: its name, the formula or meaning behind it, and its value now."""

    name: str
    formula: str
    value: str


@dataclass(frozen=True)
class TrialColumns:
    """Trials column by column, oldest first; all columns have the same length.

    Attributes
    ----------
    id, index : number of the trial, and of its candidate.
    label : the candidate in one short line.
    model : number of the model that chose it; None if no single model did.
    explored : whether it came from the exploration distribution.
    propensity : probability with which it was played; NaN for external observations.
    reward : NaN while there is none.
    state : "told", "pending", "abandoned", "failed", "retracted", or "observed" for external observations.
    note : what was written about it, for instance why it failed; empty where nothing was.
    values : the rewards of every measured objective by name, where there are several objectives; `reward` is that of
        the first.
    """

    id: IntArray
    index: IntArray
    label: list[str]
    model: list[int | None]
    explored: list[bool]
    propensity: FloatArray
    reward: FloatArray
    state: list[TrialState]
    note: list[str]
    values: dict[str, FloatArray]

    def dataframe(self) -> pd.DataFrame:
        """One row per trial; measured objectives have a column each in place of `reward`."""
        require("pandas")
        import pandas as pd  # slow to import, and needed here only

        columns: dict[str, Any] = {}
        for field in fields(self):
            if field.name == "reward" and self.values:
                columns |= self.values
            elif field.name != "values":
                columns[field.name] = getattr(self, field.name)
        return pd.DataFrame(columns)


@dataclass(frozen=True, eq=False)
class HeldTrial(Trial):
    """A pending trial with its worker and lease.

    Attributes
    ----------
    worker : the worker that asked for it, or took it over last.
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
        """Equal as trials: worker, age and lease are not compared."""
        return isinstance(other, Trial) and _facts(self) == _facts(other)

    __hash__ = Trial.__hash__


def _facts(trial: Trial) -> tuple[object, ...]:
    return tuple(getattr(trial, field.name) for field in fields(Trial))


class PendingAsk(NamedTuple):
    """When and by which worker a trial was asked for, and the first trial of the same call: the plate it belongs to."""

    at: float
    worker: str
    plate: int


@dataclass(frozen=True)
class PendingTrial:
    """A pending trial in a view, with times in seconds since 1970, UTC.

    `at` is when it was asked for, `worker` the one that asked for it or took it over, `plate` the first trial that was
    asked for in the same call, `until` the end of its lease.
    """

    id: int
    index: int
    label: str
    at: float
    worker: str
    plate: int
    until: float | None = None


@dataclass(frozen=True)
class NotedEvent:
    """A failure, a correction, a reward with a note, or new candidates, which have no trial.

    What, by which worker, and when (seconds since 1970, UTC).
    """

    trial: int | None
    label: str
    what: str
    note: str
    worker: str
    at: float


@dataclass(frozen=True)
class Best:
    """The recommendation: the candidate (number, label, and as JSON data) and its estimated reward.

    `model` and `model_name` are those of the model that gave the estimate; None if no single one did.
    """

    index: int
    label: str
    x: Action
    value: float
    model: int | None
    model_name: str | None


@dataclass(frozen=True)
class Leader:
    """One of the leading models.

    Attributes
    ----------
    model, name : its number and name.
    q : its probability now.
    behind : its cumulative return minus that of the best model (<= 0); None where the algorithm has no returns.
    chosen : number of trials that it chose; None where no single model chooses.
    plausible : whether it is not ruled out by the certificate; None where there is none.
    """

    model: int
    name: str
    q: float
    behind: float | None
    chosen: int | None
    plausible: bool | None


@dataclass(frozen=True)
class Memory:
    """An old campaign: the weight of its models before the first reward and now, and what that means in words."""

    name: str
    prior: float
    q: float
    sentence: str


@dataclass(frozen=True)
class History:
    """Probabilities and returns of the leading models in earlier rounds.

    Attributes
    ----------
    told : (K,) number of rewards at the recorded rounds; the last entry is now.
    q : (K, leaders) probabilities; NaN where not recorded.
    behind : (K, leaders) return behind the best model; None where the algorithm has no returns.
    likeliest : (K,) how many of the recorded models, the likeliest first, together had 1 - delta of the probability.
    """

    told: IntArray
    q: FloatArray
    behind: FloatArray | None
    likeliest: IntArray


@dataclass(frozen=True)
class Standing:
    """Present probabilities and returns of the models.

    Attributes
    ----------
    meaning : "posterior" if q is the probability that a model is the true one given the rewards, "followed" if it is
        how often a model's agent is followed.
    q, returns : (L,) probability and cumulative return of the listed models; returns only where there are any.
    leaders : the leading models, best first.
    n_level : how many models have the leader's probability up to rounding, itself included.
    n_ruled_out : how many have a probability below 1 / (100 M).
    ruled_out : names of the first of them.
    history : None if it was not requested.
    memories : old campaigns, where q is a posterior.
    """

    meaning: str
    q: FloatArray
    returns: FloatArray | None
    leaders: list[Leader]
    n_level: int
    n_ruled_out: int
    ruled_out: list[str]
    history: History | None
    memories: list[Memory]


@dataclass(frozen=True)
class Explanation:
    """Prediction of every reward from the rewards before it, in the order of the rewards, and the odds of two models.

    Attributes
    ----------
    leader, runner_up : names of the two leading models; runner_up is None if there is only one.
    trial, label : (t,) number of the trial, and its candidate in one short line.
    reward : (t,) measured rewards.
    expected, spread : (t,) prediction from the rewards before, and its standard deviation, noise included; NaN where
        there is no prediction.
    by_leader, by_runner_up : (t,) predictions of the two models alone.
    odds : (t + 1,) decimal logarithm of the odds of the leader against the runner-up after 0..t rewards.
    """

    leader: str
    runner_up: str | None
    trial: IntArray
    label: list[str]
    reward: FloatArray
    expected: FloatArray
    spread: FloatArray
    by_leader: FloatArray
    by_runner_up: FloatArray | None
    odds: FloatArray | None


@dataclass(frozen=True)
class Certificates:
    """Statements that hold with probability 1 - `delta` at every moment of the run, under a condition.

    Attributes
    ----------
    rests_on : the condition, as a clause: "if one of the 3 models is true, ...".
    epsilon : no candidate is better than the recommended one by more than this; infinite in contextual studies, where
        it depends on the round.
    n_plausible : how many models are not ruled out.
    plausible : numbers of those that are listed.
    """

    delta: float
    epsilon: float
    n_plausible: int
    plausible: IntArray
    rests_on: str


@dataclass(frozen=True)
class Curve:
    """The reward on an interval.

    Attributes
    ----------
    points : (n,) points of the domain; a fine grid is thinned.
    estimate : (n,) the algorithm's estimate of the mean reward, if it has one.
    spread : (n,) standard deviation of that estimate, if the algorithm has one.
    lower, upper : (n,) certified band, if there is one.
    played : (K,) points of the listed trials.
    """

    points: FloatArray
    estimate: FloatArray | None
    spread: FloatArray | None
    lower: FloatArray | None
    upper: FloatArray | None
    played: FloatArray


@dataclass(frozen=True)
class Pareto:
    """Measured candidates that no other measured one beats in every objective, sorted by the first objective.

    Attributes
    ----------
    directions : of every objective by name.
    trial, index, label : the first trial of each candidate, its number, and the candidate in one short line.
    values : (m,) values of every objective by name.
    others : (k,) values of all other measured candidates by name.
    """

    directions: dict[str, str]
    trial: list[int]
    index: list[int]
    label: list[str]
    values: dict[str, FloatArray]
    others: dict[str, FloatArray]


@dataclass(frozen=True)
class Money:
    """What experiments have cost, and what is left of the budget; None without one."""

    spent: float
    budget: float | None
    left: float | None


@dataclass(frozen=True)
class StudyView:
    """A study after its first `n_events` events, as reports, status lines and pages show it.

    Attributes
    ----------
    where : the storage, without a password.
    created_at, library : when it was created (seconds since 1970, UTC), and with which version.
    algorithm, direction, reward_bound, settings : what runs, settings as JSON data.
    explained : the settings as formula and value.
    n_models, n_candidates, domain : sizes of the problem, and the class name of its domain; zero candidates for
        `Candidates`.
    listed, names : numbers and names of the models listed: all, or the leading ones of very many.
    noted : failures, corrections, rewards with notes, and new candidates, oldest first.
    counts, trials, pending : numbers of trials; all trials or the last ones, as requested; all pending trials.
    best : the recommendation; None before the first reward, in contextual studies, and with several objectives.
    pareto : the best compromises of several objectives; None with one. Models are then judged by the first objective.
    money : what was spent, where experiments have a cost.
    chosen_likelihood : "bernoulli" or "gaussian" where the rewards decide which one is believed; else None.
    standing : probabilities of the models; None for algorithms that have none.
    stopping : one sentence: how far from the best the recommendation may be, and whether that is certified.
    certificates, curve, explanation : None where there are none, where they were not requested, or where they would
        take too long.
    """

    name: str
    where: str
    created_at: float
    library: str
    n_events: int
    algorithm: str
    direction: str
    reward_bound: float
    settings: State
    explained: list[SettingLine]
    n_models: int
    n_candidates: int
    domain: str
    listed: IntArray
    names: list[str]
    counts: Counts
    trials: TrialColumns
    pending: list[PendingTrial]
    noted: list[NotedEvent]
    best: Best | None
    standing: Standing | None
    certificates: Certificates | None
    stopping: str | None
    curve: Curve | None
    explanation: Explanation | None
    pareto: Pareto | None = None
    money: Money | None = None
    chosen_likelihood: str | None = None

    @property
    def is_contextual(self) -> bool:
        """Whether candidates differ from round to round, so that there is no single recommendation."""
        return self.domain in ("Arms", "Candidates", "Ball")

    def to_dict(self) -> State:
        """The view as JSON data: dicts, lists, text, numbers and None; NaN and infinity become None."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}


_AS_IT_IS = {bool, int, str, type(None)}


def _plain(value: object) -> Packable:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        numbers = value.tolist()
        return numbers if value.dtype.kind in "bi" or np.isfinite(value).all() else _plain(numbers)
    if isinstance(value, list | tuple):
        return list(value) if set(map(type, value)) <= _AS_IT_IS else [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return jsonable(value)
