"""The ask/tell protocol that every algorithm shares."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, TypeVar, cast, overload

import numpy as np

from alexp.algorithms.protocol.assumptions import ASSUMED_BOUND, ASSUMED_NOISE, Stated
from alexp.algorithms.protocol.course import pack_restriction
from alexp.algorithms.protocol.rounds import Decision
from alexp.algorithms.protocol.streams import ASK, ORDER, RandomState, Streams
from alexp.algorithms.protocol.telling import Telling
from alexp.algorithms.protocol.trials import Recommendation, Trial, TrialLog
from alexp.algorithms.protocol.vigilance import Vigilance
from alexp.common.arrays import IntArray
from alexp.common.codec import Packable, State
from alexp.common.validation import count
from alexp.decision.plays import Proposal
from alexp.problem.candidates import Available, CandidateTable, Pending, Round, check_available
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass

if TYPE_CHECKING:
    import pandas as pd

MOST_KNOWN = 16  # results kept between two rewards


_T = TypeVar("_T")


class Shared(TypedDict, total=False):
    """Constructor keywords that all algorithms share."""

    noise_std: float | None
    reward_bound: float | None
    norm_bound: float | None
    repeats: bool
    direction: str
    random_state: RandomState


class Algorithm(Telling):
    """Base class: asks, tells, the trial log, direction, randomness, saving and loading.

    A subclass has a `name`, stores its own constructor arguments as attributes of the same names and lists them
    in `settings`, and implements `_decide`, `_learn`, `_recommend`, `_state` and `_restore`. It sees rewards to
    be maximised only; `direction` is handled here.

    `_decide` changes nothing and is called once per round and state of knowledge, however many actions are asked for.
    What deciding should leave behind goes into `_commit`, what a trial should remember until its reward comes into
    `_note`.

    Parameters
    ----------
    noise_std, reward_bound, norm_bound
        What is known about the problem, see `Stated`; None where nothing is. An algorithm that needs a number then
        assumes one (0.1 and 1), and gives no certificates. Where coefficients' norms matter and `norm_bound` is not
        stated, `reward_bound` stands in for it.
    repeats
        Whether a candidate that has been measured may be proposed again.

    A second algorithm with the same name is an error, unless its class says `replaces=True`:
    `class Mine(ALExp, replaces=True)`.
    """

    example: ClassVar[State] = {}  # arguments the conformance suite needs to construct it
    weights_mean: ClassVar[str] = "followed"  # what `probabilities` are: how often agents are, or the "posterior"
    # Whether asks know nothing of pending trials: logs that 0.1.0 has written replay only so.
    ignores_pending: bool = False
    # Why models must be linear in their columns; empty for algorithms that take kernels as well.
    needs_columns: ClassVar[str] = "it computes with columns of features"
    depends_on: ClassVar[frozenset[str]] = frozenset()  # "order" of tells, "scale" of rewards: by design, see docs

    def __init_subclass__(cls, replaces: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            return
        known = Algorithm.registry.get(cls.name)
        same_place = known is not None and (known.__module__, known.__qualname__) == (cls.__module__, cls.__qualname__)
        if known is not None and not replaces and not same_place:  # a cell of a notebook may be run again
            raise ValueError(
                f"there is an algorithm named {cls.name!r} already ({known.__module__}.{known.__qualname__}); give "
                f"{cls.__qualname__} another name, or replace it with `class {cls.__name__}(..., replaces=True)`"
            )
        Algorithm.registry[cls.name] = cls

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        noise_std: float | None = None,
        reward_bound: float | None = None,
        norm_bound: float | None = None,
        repeats: bool = True,
        direction: str = "maximize",
        random_state: RandomState = None,
    ) -> None:
        if not isinstance(models, ModelClass):
            raise TypeError(f"models must be a ModelClass, got {type(models).__name__}")
        if not isinstance(domain, Domain):
            raise TypeError(f"domain must be an Interval, a Box or a FiniteSet, got {type(domain).__name__}")
        if self.needs_columns:
            models.require_linear(type(self).__name__, self.needs_columns)
        if direction not in ("maximize", "minimize"):
            raise ValueError(f'direction must be "maximize" or "minimize", got {direction!r}')
        self.models, self.domain, self.direction = models, domain, direction
        if not isinstance(repeats, bool | np.bool_):
            raise TypeError(f"repeats must be True or False, got {repeats!r}")
        self.repeats = bool(repeats)
        self.stated = Stated.checked(noise_std=noise_std, reward_bound=reward_bound, norm_bound=norm_bound)
        self.noise_std = self.stated.noise_std or ASSUMED_NOISE
        self.reward_bound = self.stated.reward_bound or ASSUMED_BOUND
        self.norm_bound = self.stated.norm_bound or self.reward_bound
        self._sign = 1.0 if direction == "maximize" else -1.0
        self._streams = Streams(random_state)
        order = self._streams.generator(ORDER).permutation(domain.n_candidates)
        self._candidates = CandidateTable(models, domain, order)
        self._everything = self._candidates.everything
        self._log = TrialLog()
        self._notes: dict[int, Packable] = {}  # of trials whose reward is out
        self._known: dict[Hashable, object] = {}  # what was computed since the last reward
        used = Stated(self.noise_std, self.reward_bound, self.norm_bound)
        self._vigilance = Vigilance(self.stated, used, lambda: self.relies_on)
        self._vigilance.look_at_features(models, self._candidates)

    def __repr__(self) -> str:
        models, candidates = self.models.n_models, self.domain.n_candidates
        counts = f"{models} model{'s' * (models != 1)}, {candidates} candidate{'s' * (candidates != 1)}"
        waiting = self.n_asked - self.n_told - len(self._log.abandoned)
        return f"{type(self).__name__}({counts}, {self.n_told} told{f', {waiting} pending' if waiting else ''})"

    # -- what users call ---------------------------------------------------------------------------------------

    @overload
    def ask(self, n: None = None, available: Available = None) -> Trial: ...
    @overload
    def ask(self, n: int, available: Available = None) -> list[Trial]: ...
    def ask(self, n: int | None = None, available: Available = None) -> Trial | list[Trial]:
        """Propose an action, or a list of `n` actions before any of their rewards is known.

        No candidate is proposed while a trial of it is pending, from this list or an earlier ask, unless all have one;
        with `repeats=False` none that has been measured either. `available` restricts the choice to some candidates, by
        index, boolean mask, or, where candidates are texts, by name.
        """
        wanted, allowed = self.check_ask(1 if n is None else n, available)
        trials = [self._ask_once(allowed) for _ in range(wanted)]
        return trials[0] if n is None else trials

    def check_ask(self, n: int, available: Available = None) -> tuple[int, IntArray | None]:
        """Number of trials and allowed candidates as `ask` would take them, or its error; changes nothing."""
        wanted, allowed = count("n", n), check_available(available, self.domain)
        if not self.repeats and (left := self.choosable(allowed).size) < wanted:
            whose = "candidate" if allowed is None else "available candidate"
            if left == 0:
                raise ValueError(
                    f"every {whose} has been measured or is pending; tell or abandon what is pending, allow more, or "
                    "construct the algorithm with repeats=True"
                )
            raise ValueError(f"n must be at most {left}, every other {whose} has been measured or is pending; got {n}")
        return wanted, allowed

    def choosable(self, allowed: IntArray | None = None) -> IntArray:
        """The candidates that an ask would choose from now, if those with the `allowed` indices (all if None) may be.

        They are those with the fewest pending trials, which is none unless all have one; without `repeats`, those that
        have neither a pending trial nor a reward.
        """
        if self.ignores_pending:
            return np.arange(self.domain.n_candidates) if allowed is None else allowed
        taken = np.bincount(self._waiting(), minlength=self.domain.n_candidates)
        if not self.repeats:
            taken[self._log.measured()] += 1
        own = np.arange(taken.size) if allowed is None else allowed
        least = taken[own].min() if self.repeats else 0
        return np.asarray(own[taken[own] == least])

    def _waiting(self) -> IntArray:
        """Candidates of the pending trials, oldest first."""
        waiting = self._log.waiting
        return np.fromiter(waiting.values(), np.int64, len(waiting))

    def _open(self, allowed: IntArray | None) -> Round:
        """The round of an ask: what may be chosen, and the trials whose rewards are out."""
        if self.ignores_pending:
            return self._candidates.round(allowed, copied=True)
        if self.repeats and not self._log.waiting:
            return self._candidates.round(allowed)
        trials, indices = tuple(self._log.waiting), self._waiting()
        pending = Pending(trials, indices, self._candidates.rows(indices)) if trials else None
        return self._candidates.round(self.choosable(allowed), pending)

    def _ask_once(self, allowed: IntArray | None) -> Trial:
        return self._propose(self._open(allowed), self.restriction(allowed))

    def _propose(self, round_: Round, restriction: bytes | None, played: Proposal | None = None) -> Trial:
        """One trial: what chance decides on, or what is known to have been `played` when a run is repeated."""
        decision = self._decision(round_)
        self._commit(round_, decision)
        proposal = played or decision.play.draw(self._streams.generator(ASK, len(self._log)))
        index = int(round_.indices[proposal.position])
        note = self._note(decision, proposal)
        trial_id = self._log.append(index, proposal.model, proposal.explored, proposal.propensity, restriction)
        if note is not None:
            self._notes[trial_id] = note
        return self._log.trial(trial_id, self.domain)

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

    @property
    def relies_on(self) -> frozenset[str]:
        """Which of noise_std, reward_bound and norm_bound matter to its decisions, whether stated or assumed."""
        return frozenset(Stated._fields)

    # -- what subclasses provide -------------------------------------------------------------------------------

    @abstractmethod
    def _decide(self, round_: Round) -> Decision:
        """What to do in a round, given all rewards so far; changes nothing."""

    def _commit(self, round_: Round, decision: Decision) -> None:
        """Take note that a decision is acted on."""

    def _note(self, decision: Decision, proposal: Proposal) -> Packable:
        """What to remember about a trial until its reward comes, as JSON data and arrays; None for nothing."""
        return None

    @abstractmethod
    def _recommend(self) -> tuple[int, float, int | None]:
        """Position (in visiting order) of the best candidate, its estimated reward, and the model behind it."""

    @classmethod
    def asks_matter(cls) -> bool:
        """Whether asking leaves anything behind but the trial, so that a run is repeated with its asks."""
        return cls._commit is not Algorithm._commit or cls._note is not Algorithm._note

    def restriction(self, allowed: IntArray | None) -> bytes | None:
        """What must be remembered of the candidates that an ask was allowed to choose, so that it can be repeated."""
        if allowed is None or not self.asks_matter():
            return None
        return pack_restriction(allowed, self.domain.n_candidates)

    # -- what subclasses may use -------------------------------------------------------------------------------

    def _once(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """What `make` computes from the rewards so far; computed again only after another reward."""
        if key not in self._known:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[key] = make()
        return cast(_T, self._known[key])

    def _keep_only(self, round_: Round, decision: Decision) -> None:
        """Forget what was computed for other rounds, because acting on this decision changes what they would be."""
        self._known = {("decision", round_.key): decision}

    def _decision(self, round_: Round) -> Decision:
        """The decision of a round, made once per set of choices and reward."""
        return self._once(("decision", round_.key), lambda: self._decide(round_))
