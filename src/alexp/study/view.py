"""What methods of a study return: counts, summaries, pending trials, and the view. Needs no database."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypedDict

import numpy as np

from alexp.algorithms.log import Trial
from alexp.common.arrays import Action, FloatArray, IntArray
from alexp.common.codec import Packable, State, jsonable

if TYPE_CHECKING:
    import pandas as pd

TrialState = Literal["told", "pending", "abandoned", "retracted", "observed"]


class Counts(TypedDict):
    """Numbers of trials: all of them, told (with observations from elsewhere), pending, abandoned (with retracted)."""

    trials: int
    told: int
    pending: int
    abandoned: int


class TellCounts(NamedTuple):
    """Numbers of rewards that were stored, known already (skipped), and changed (amended)."""

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
    propensity : probability with which it was played; NaN for observations from elsewhere.
    reward : NaN while there is none.
    state : "told", "pending", "abandoned", "retracted", or "observed" for data added from elsewhere.
    """

    id: IntArray
    index: IntArray
    label: list[str]
    model: list[int | None]
    explored: list[bool]
    propensity: FloatArray
    reward: FloatArray
    state: list[TrialState]

    def dataframe(self) -> pd.DataFrame:
        """One row per trial."""
        import pandas as pd  # slow to import, and needed here only

        return pd.DataFrame({field.name: getattr(self, field.name) for field in fields(self)})


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


@dataclass(frozen=True)
class PendingTrial:
    """A pending trial in a view, with times in seconds since 1970, UTC.

    `at` is when it was asked for, `worker` the one that asked for it or took it over, `until` the end of its lease.
    """

    id: int
    index: int
    label: str
    at: float
    worker: str
    until: float | None = None


@dataclass(frozen=True)
class Best:
    """The recommendation: the candidate (its number, in one line, and as JSON data) and its estimated reward.

    `model` and `model_name` say which model the estimate comes from; None if from no single one.
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
class History:
    """How the leading models stood in earlier rounds.

    Attributes
    ----------
    told : (K,) number of rewards at the recorded rounds; the last entry is now.
    q : (K, leaders) probabilities; NaN where not recorded.
    behind : (K, leaders) return behind the best model; None where the algorithm has no returns.
    likeliest : (K,) how many models, the likeliest first, together had 1 - delta of the probability; of very many
        models as far as they were recorded.
    """

    told: IntArray
    q: FloatArray
    behind: FloatArray | None
    likeliest: IntArray


@dataclass(frozen=True)
class Standing:
    """How the models stand.

    Attributes
    ----------
    meaning : "posterior" if q is the probability that a model is the true one given the rewards, "followed" if it is
        how often a model's agent is followed.
    q, returns : (L,) probability and cumulative return of the listed models; returns only where there are any.
    leaders : the leading models, best first.
    n_level : how many models have the leader's probability up to rounding, itself included.
    n_ruled_out : how many have a probability below 1 / (100 M).
    ruled_out : names of the first of them.
    history : how the leaders came to lead; None if it was not asked for.
    """

    meaning: str
    q: FloatArray
    returns: FloatArray | None
    leaders: list[Leader]
    n_level: int
    n_ruled_out: int
    ruled_out: list[str]
    history: History | None


@dataclass(frozen=True)
class Explanation:
    """Prediction of every reward from the rewards before it, in the order of the rewards, and the odds of two models.

    Attributes
    ----------
    leader, runner_up : names of the two leading models; runner_up is None if there is only one.
    trial, label : (t,) number of the trial, and its candidate in one short line.
    reward : (t,) what was measured.
    expected, spread : (t,) prediction given the rewards before, and its standard deviation, noise included; NaN where
        nothing could be predicted.
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
    """What holds with probability 1 - `delta` at every moment of the run, under a condition.

    Attributes
    ----------
    rests_on : the condition, as a clause: "if one of the 3 models is true, ...".
    epsilon : no candidate is better than the recommended one by more than this; infinite in contextual studies, where
        that is a question about one round.
    n_plausible : how many models are not ruled out.
    plausible : their numbers, as far as these models are listed.
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
    points : (n,) where; a grid of very many points is thinned.
    estimate : (n,) the algorithm's estimate of the mean reward, if it has one.
    spread : (n,) standard deviation of that estimate, if the algorithm has one.
    lower, upper : (n,) certified band, if there is one.
    played : (K,) where the listed trials were.
    """

    points: FloatArray
    estimate: FloatArray | None
    spread: FloatArray | None
    lower: FloatArray | None
    upper: FloatArray | None
    played: FloatArray


@dataclass(frozen=True)
class StudyView:
    """A study after its first `n_events` events, as reports, status lines and pages show it.

    Attributes
    ----------
    where : the storage, without a password.
    created_at, library : when it was created (seconds since 1970, UTC), and with which version.
    algorithm, direction, reward_bound, settings : what runs, settings as JSON data.
    explained : the settings as formula and value, for people.
    n_models, n_candidates, domain : sizes of the problem, and the kind of its domain; no candidates are known before a
        round of `Candidates`.
    listed, names : numbers and names of the models listed: all, or the leading ones of very many.
    counts, trials, pending : all numbers; all trials or the last ones, as asked for; all that is awaited.
    best : the recommendation; None before the first reward, and in contextual studies.
    standing : how the models stand; None for algorithms that have no probabilities over models.
    stopping : in one sentence, how far from the best the recommendation may be, and whether that is certified.
    certificates, curve, explanation : None where there are none, where they were not asked for, or where they cost too
        much.
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
    best: Best | None
    standing: Standing | None
    certificates: Certificates | None
    stopping: str | None
    curve: Curve | None
    explanation: Explanation | None

    @property
    def is_contextual(self) -> bool:
        """Whether every round brings its candidates along: there is then no table, and no one recommendation."""
        return self.domain in ("Arms", "Candidates", "Ball")

    def to_dict(self) -> State:
        """The view as JSON data: dicts, lists, text, numbers and None, which also stands for NaN and infinity."""
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
