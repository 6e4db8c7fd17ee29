"""The ask/tell protocol that every algorithm shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

import numpy as np

from alexp.algorithms.components import component_from_dict, component_to_dict
from alexp.algorithms.streams import ASK, ORDER, RandomState, Streams
from alexp.algorithms.trials import Recommendation, Trial, TrialLog
from alexp.common.arrays import FloatArray
from alexp.common.codec import fingerprint, pack, unpack
from alexp.common.validation import count, finite, positive
from alexp.problem.candidates import CandidateTable, Choices
from alexp.problem.domains import Domain, domain_from_dict
from alexp.problem.models import ModelClass

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 2  # version of what to_dict writes
READABLE = (1, 2)  # formats that from_dict reads: 1 is that of version 0.1.0
LARGEST_REWARD = 1e150  # squares of rewards are accumulated and must stay finite


@dataclass(frozen=True)
class Proposal:
    """What an algorithm decides in one round; `position` counts within the round's choices."""

    position: int
    model: int | None = None
    explored: bool = False
    propensity: float = 1.0


class Algorithm(ABC):
    """Base class: asks, tells, the trial log, direction, randomness, saving and loading.

    A subclass has a `name`, stores its own constructor arguments as attributes of the same names and lists them
    in `settings`, and implements `_propose`, `_learn`, `_recommend`, `_state` and `_restore`. It sees rewards to
    be maximised only; `direction` is handled here.
    """

    name: ClassVar[str]
    settings: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[dict[str, Any]] = {}  # arguments the conformance suite needs to construct it
    depends_on: ClassVar[frozenset[str]] = frozenset()  # "order" of tells, "scale" of rewards: by design, see docs
    registry: ClassVar[dict[str, type[Algorithm]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in cls.__dict__:
            Algorithm.registry[cls.name] = cls

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        noise_std: float = 0.1,
        reward_bound: float = 1.0,
        direction: str = "maximize",
        random_state: RandomState = None,
    ) -> None:
        if not isinstance(models, ModelClass):
            raise TypeError(f"models must be a ModelClass, got {type(models).__name__}")
        if not isinstance(domain, Domain):
            raise TypeError(f"domain must be an Interval, a Box or a FiniteSet, got {type(domain).__name__}")
        if direction not in ("maximize", "minimize"):
            raise ValueError(f'direction must be "maximize" or "minimize", got {direction!r}')
        self.models, self.domain, self.direction = models, domain, direction
        self.noise_std = positive("noise_std", noise_std)
        self.reward_bound = positive("reward_bound", reward_bound)
        self._sign = 1.0 if direction == "maximize" else -1.0
        self._streams = Streams(random_state)
        order = self._streams.generator(ORDER).permutation(domain.n_candidates)
        self._candidates = CandidateTable(models, domain, order)
        self._log = TrialLog()

    # -- what users call ---------------------------------------------------------------------------------------

    @overload
    def ask(self, n: None = None, available: Any = None) -> Trial: ...
    @overload
    def ask(self, n: int, available: Any = None) -> list[Trial]: ...
    def ask(self, n: int | None = None, available: Any = None) -> Trial | list[Trial]:
        """Propose an action, or a list of `n` actions before any of their rewards is known.

        `available` restricts the round to some candidates, by index or boolean mask.
        """
        wanted = 1 if n is None else count("n", n)
        choices = self._candidates.choices(available)
        trials = [self._ask_once(choices) for _ in range(wanted)]
        return trials[0] if n is None else trials

    def _ask_once(self, choices: Choices) -> Trial:
        proposal = self._propose(choices, self._streams.generator(ASK, len(self._log)))
        index = int(choices.indices[proposal.position])
        trial_id = self._log.append(index, proposal.model, proposal.explored, proposal.propensity)
        return self._log.trial(trial_id, self.domain)

    def tell(self, trial: Trial | int, reward: float) -> None:
        """Report the reward of a trial, by the trial or its id, in any order. Wrong input changes nothing."""
        trial_id, value = self.check_tell(trial, reward)
        self._learn(self._log.index[trial_id], self._sign * value)
        self._log.record(trial_id, value)

    def check_tell(self, trial: Trial | int, reward: float) -> tuple[int, float]:
        """Id and reward as `tell` would take them, or the error it would raise; changes nothing."""
        return self._log.check_pending(trial), check_reward(reward)

    def observe(self, index: int, reward: float) -> Trial:
        """Take in a reward of candidate `index` that was measured elsewhere, without having asked for it.

        It becomes a trial of its own with no model and a propensity of NaN: no probability was at work, and an
        estimate that weights by propensities must notice. Later asks draw the same random numbers as they would
        after any other trial.
        """
        if count("index", index, 0) >= self.domain.n_candidates:
            raise ValueError(f"index must be below the number of candidates ({self.domain.n_candidates}), got {index}")
        value = check_reward(reward)
        self._learn(int(index), self._sign * value)
        trial_id = self._log.append(int(index), None, False, float("nan"))
        self._log.record(trial_id, value)
        return self._log.trial(trial_id, self.domain)

    def abandon(self, trial: Trial | int) -> None:
        """Give up a pending trial, for instance a broken vial. It keeps its number and takes no reward any more."""
        trial_id = self._log.check_pending(trial)
        self._log.abandon(trial_id)
        self._forget(trial_id)

    def best(self) -> Recommendation:
        """The action to stop with, judged by what is known now."""
        if self.n_told == 0:
            raise RuntimeError("best() needs at least one reward; call tell() first")
        position, value, model = self._recommend()
        index = int(self._candidates.order[position])
        return Recommendation(self.domain[index], index, self._sign * value, model)

    @property
    def n_asked(self) -> int:
        """Number of trials proposed so far."""
        return len(self._log)

    @property
    def n_told(self) -> int:
        """t, the number of rewards so far."""
        return self._log.n_told

    def trial(self, trial_id: int) -> Trial:
        """A trial of this run by its id."""
        if not 0 <= trial_id < len(self._log):
            raise IndexError(f"there are {len(self._log)} trials, no trial {trial_id}")
        return self._log.trial(trial_id, self.domain)

    def pending(self) -> list[Trial]:
        """Trials whose reward has not been told yet."""
        return [self._log.trial(i, self.domain) for i in self._log.pending()]

    def trials_dataframe(self) -> pd.DataFrame:
        """One row per trial: id, x, index, model, explored, propensity, reward."""
        return self._log.dataframe(self.domain)

    @property
    def log(self) -> TrialLog:
        """All trials column by column; to be read, not written."""
        return self._log

    # -- what subclasses provide -------------------------------------------------------------------------------

    @abstractmethod
    def _propose(self, choices: Choices, rng: np.random.Generator) -> Proposal:
        """Decide one round on the given choices with this round's generator."""

    @abstractmethod
    def _learn(self, index: int, reward: float) -> None:
        """Take in the reward of candidate `index` (larger is better)."""

    @abstractmethod
    def _recommend(self) -> tuple[int, float, int | None]:
        """Position (in visiting order) of the best candidate, its estimated reward, and the model behind it."""

    @abstractmethod
    def _state(self) -> dict[str, Any]:
        """Arrays and numbers from which `_restore` continues bit for bit."""

    @abstractmethod
    def _restore(self, state: dict[str, Any]) -> None:
        """Continue from `_state`."""

    def _forget(self, trial_id: int) -> None:  # noqa: B027 (most algorithms keep nothing)
        """Drop what was kept for a trial whose reward will never come."""

    def _row(self, index: int) -> FloatArray:
        return self._candidates.row(index)

    # -- saving and loading ------------------------------------------------------------------------------------

    def to_dict(self, problem: bool = True) -> dict[str, Any]:
        """JSON-safe state. With `problem`, built-in models and plain tables are stored along with it."""
        shared = ("noise_std", "reward_bound", "direction")
        settings = {key: component_to_dict(getattr(self, key)) for key in (*shared, *self.settings)}
        stored = {"models": self.models.to_dict(), "domain": self.domain.to_dict()} if problem else {}
        data = {
            "format": FORMAT,
            "algorithm": self.name,
            "settings": settings,
            "problem": stored,
            "fingerprint": self.fingerprint(),
            "entropy": str(self._streams.entropy),
            "log": self._log.state(),
            "state": self._state(),
        }
        packed: dict[str, Any] = pack(data)
        return packed

    @classmethod
    def from_dict(
        cls, data: dict[str, Any], models: ModelClass | None = None, domain: Domain | None = None, **settings: Any
    ) -> Self:
        """Continue a saved run.

        Pass `models` and `domain` again when they hold your own code or objects; they are checked against the
        saved run's features. Keywords replace settings that could not be stored, such as agents of your own.
        """
        if data.get("format") not in READABLE:
            raise ValueError(f"this state has format {data.get('format')!r}; this version reads formats 1 to {FORMAT}")
        kind = Algorithm.registry.get(data["algorithm"])
        if kind is None or not issubclass(kind, cls):
            raise ValueError(f"this state was saved by {data['algorithm']!r}, not by {cls.__name__}")
        data = unpack(data)
        stored = data["problem"]
        models = models if models is not None else _stored(stored, "models", ModelClass.from_dict)
        domain = domain if domain is not None else _stored(stored, "domain", domain_from_dict)
        saved = data["settings"].items()
        arguments = {key: component_from_dict(value, key) for key, value in saved if key not in settings}
        out = kind(models, domain, random_state=int(data["entropy"]), **arguments, **settings)
        if out.fingerprint() != data["fingerprint"]:
            raise ValueError("models and domain give other features than those of the saved run; pass the same ones")
        out.resume(data["log"], data["state"])
        return out

    def state(self) -> dict[str, Any]:
        """JSON-safe: what was learned, without settings and trials. `resume` takes it, unpacked."""
        packed: dict[str, Any] = pack(self._state())
        return packed

    def resume(self, log: dict[str, Any], state: dict[str, Any]) -> None:
        """Take over trials and state from a run with the same problem, settings and seed."""
        self._log.restore(log)
        self._restore(state)

    def features(self) -> FloatArray:
        """The dictionary on all candidates in the domain's order, shape (N, P)."""
        return np.asarray(self._candidates.table[:, self._candidates.position].T)

    def fingerprint(self) -> str:
        """Content hash of the features on the candidates and of the groups of columns."""
        parts = [self.features().T, self.models.columns_flat, self.models.offsets, self.models.scales]
        return fingerprint(np.array([fingerprint(part) for part in parts] + [str(self.models.intercept)]))


def check_reward(reward: float) -> float:
    """Return a reward as a float, or raise unless it is finite and not absurdly large."""
    value = finite("reward", reward)
    if abs(value) > LARGEST_REWARD:
        raise ValueError(f"reward must not exceed {LARGEST_REWARD:g} in size, got {reward!r}; rescale the rewards")
    return value


def _stored(problem: dict[str, Any], key: str, build: Any) -> Any:
    if problem.get(key) is None:
        raise ValueError(f"the saved run does not contain its {key}; pass {key}= as it was constructed")
    return build(problem[key])
