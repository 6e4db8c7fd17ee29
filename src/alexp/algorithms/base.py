"""The ask/tell protocol that every algorithm shares: asks, rewards, corrections, saving and loading."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from inspect import Parameter
from itertools import islice, repeat
from math import isnan, nan
from operator import is_not
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, TypedDict, TypeVar, Unpack, cast, overload

import numpy as np

from alexp.algorithms.assumptions import ASSUMED_BOUND, ASSUMED_NOISE, AssumptionMonitor, Stated, quietly, warn
from alexp.algorithms.components import check_arguments, component_from_dict, component_to_dict
from alexp.algorithms.first_round import AwaitingFirstRound
from alexp.algorithms.guard import Guarded
from alexp.algorithms.log import (
    AlreadyToldError,
    Entry,
    Failure,
    NoRewardYetError,
    Recommendation,
    Trial,
    TrialLog,
    check_remark,
    looks_like_a_typo,
    pack_restriction,
    rounds_frame,
    trials_frame,
    typos_among,
)
from alexp.algorithms.naming import Name, find_trial
from alexp.algorithms.offer_log import LogFeatures, OfferLog, check_log_features
from alexp.algorithms.rerun import Rerun
from alexp.algorithms.saving import FIELDS, FORMAT, content_digest, read_log, read_notes, read_stored
from alexp.common.arguments import FullSignature, constructor
from alexp.common.arrays import Action, FloatArray, IntArray
from alexp.common.backends import enumerating_card
from alexp.common.codec import Packable, State, fingerprint, pack, unpack
from alexp.common.extensions import Registry
from alexp.common.schema import Check, record, text
from alexp.common.validation import count, limited, one_of, positive
from alexp.decision.plays import Play, Proposal
from alexp.estimation.announcing import announce
from alexp.problem.candidates import (
    NOTHING,
    AllBut,
    CandidateTable,
    ComputedOrder,
    Pending,
    PendingList,
    Round,
)
from alexp.problem.domains import (
    Arms,
    Available,
    Ball,
    ContextualDomain,
    Domain,
    FiniteSet,
    check_available,
    domain_from_dict,
    not_withheld,
)
from alexp.problem.models import ModelClass
from alexp.problem.objectives import Measurements, Objectives, Reward, Value, first_of
from alexp.problem.offers import (
    Ids,
    Offer,
    Reference,
    check_problem,
    contexts_of,
    make_offer,
    n_arms_of,
    open_round,
    points_offer,
)
from alexp.problem.plates import PlateLimits, Purse, check_plate, check_unrestricted, check_where
from alexp.problem.ranges import RewardRange
from alexp.table.arrivals import arriving
from alexp.table.encoding import Arrivals, extended
from alexp.table.remedies import FileError, Remedy
from alexp.table.table import Table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_T = TypeVar("_T")
RandomState = int | np.random.Generator | None
ORDER, ASK, AGENTS = 0, 1, 2  # purposes
_MOST_CACHED = 16  # results kept between two rewards
_MOST_PENDING = 32  # pending trials that a contextual round takes into account
_LOOKED_AT = 1_000_000  # numbers in the rows of a contextual run that are looked at for the size of the noise
_FEW = 3  # candidates whose rewards say nothing about those of others
_MOST_REPLICATES = 1000  # measurements of one experiment
_MOST_LISTED = 1 << 24  # candidates up to which their visiting order is a permutation that is kept
_MARKED = 256  # candidates of a large table that kernels are recognised by

Direction = Literal["maximize", "minimize"]
Noise = Literal["gaussian"]
# Names for studies and extensions: public, and left out of `dir(algorithm)`, which shows what a user calls.
_NOT_LISTED = frozenset(
    """adopt amend_all amended ask_offers asks_matter certifies check_amend check_arm check_ask check_campaigns
    check_candidates check_fail check_observation check_offers check_results check_retract check_reward check_rewards
    check_tell choosable computes_on_device decides_on default_rule depends_on entries enumerates example fresh narrowed
    needs_ball needs_columns needs_table not_certified of_first_objective plate_limits plays_balls registry resume
    ridges_per_model settings state suspect_observations suspects take_candidates take_failure take_in
    take_observation take_trial weights_mean withdrawal within_range""".split()  # noqa: SIM905
)

IfTold = Literal["raise", "same", "amend"]
IF_TOLD: tuple[IfTold, ...] = ("raise", "same", "amend")


class Streams:
    """Independent generators keyed by purpose and counter.

    The randomness of ask k is a function of the seed and k alone. That makes runs repeatable whatever else was
    looked at in between, and lets a log of asks and tells be replayed by another process bit for bit.

    >>> a, b = Streams(7), Streams(7)
    >>> bool(a.generator(ASK, 3).random() == b.generator(ASK, 3).random())
    True
    """

    def __init__(self, random_state: RandomState | object = None) -> None:
        if isinstance(random_state, np.random.Generator):
            words = random_state.integers(0, 2**32, size=4, dtype=np.uint64)
            self.entropy = sum(int(word) << (32 * i) for i, word in enumerate(words))
        elif random_state is None:
            entropy = np.random.SeedSequence().entropy
            assert isinstance(entropy, int)
            self.entropy = entropy
        elif isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
            if random_state < 0:
                raise ValueError(f"random_state must not be negative, got {random_state}")
            self.entropy = int(random_state)
        else:
            raise TypeError(f"random_state must be an int, a numpy.random.Generator or None, got {random_state!r}")

    def generator(self, *key: int) -> np.random.Generator:
        """The generator for one purpose, e.g. `generator(ASK, 12)`."""
        return np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=key))


class Shared(TypedDict, total=False):
    """Constructor keywords that all algorithms share."""

    noise_std: float | None
    reward_bound: float | None
    norm_bound: float | None
    repeats: bool
    direction: Direction
    random_state: RandomState
    log_features: LogFeatures | None
    reward_range: Sequence[float] | None
    noise: Noise | None


class RoundArguments(TypedDict, total=False):
    """What a contextual round is asked for with; which of it is right depends on domain and models."""

    context: object
    candidates: Action
    features: object
    ids: Ids | None


@dataclass(frozen=True)
class Decision:
    """The play that an algorithm decides on in a round, before it is drawn from. Subclasses add to it."""

    play: Play


@dataclass(eq=False, slots=True)  # one per tell; a frozen one takes four times as long to make
class Observation:
    """A reward, as algorithms learn from it: larger is better, whatever the direction.

    Attributes
    ----------
    row : (P,) the dictionary at the action.
    reward : the reward, to be maximised; that of the first objective where several are measured.
    trial : the trial's id.
    index : the action's number among the candidates; None where candidates have no numbers.
    model : whose agent proposed it; None if no single one did, and for measurements from elsewhere.
    note : what the algorithm wanted to remember when it was asked; None for measurements from elsewhere.
    further : the rewards of the other objectives that are measured, to be maximised.
    """

    row: FloatArray
    reward: float
    trial: int
    index: int | None
    model: int | None = None
    note: Packable = None
    further: tuple[float, ...] = ()


class ExternalObservation(NamedTuple):
    """A measurement that was not asked for: candidate and reward, and of a contextual round what it offered."""

    candidate: int
    reward: Value
    offer: Offer | None = None
    propensity: float = nan


class CheckedTell(NamedTuple):
    """What a checked tell will do: take in the reward of a pending trial, skip one that is known, or amend one."""

    trial: int
    reward: Value
    action: Literal["tell", "skip", "amend"]
    more: tuple[Value, ...] = ()  # further measurements of the same experiment
    note: str = ""


class CheckedFail(NamedTuple):
    """What a checked failure will do: fail a pending trial, skip one that has failed, or replace a reward by it."""

    trial: int
    reason: str
    action: Literal["fail", "skip", "amend"]


class Algorithm(Guarded, ABC):
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
        Whether a candidate that has been measured may be proposed again; where candidates are new in every round, their
        `ids` tell.
    log_features
        What the log keeps of contextual rounds: the features that were "chosen" (the default), "all" that were offered,
        which off-policy evaluation needs, or "none": contexts, ids and rows then go when the reward comes, and with
        them `amend`, certificates, and the repair of an interrupted run. Algorithms whose asks change their state
        (ALExp, Corral, ETC and others) keep all features with "chosen", too, which replaying the run needs: 8 n P
        bytes an ask, or 12 for each number that is not zero.

    reward_range
        Lowest and highest reward that is possible, such as (0, 100) for yields. A reward outside is refused;
        predictions, bands and the gap of a stop report are cut off at its ends.
    noise
        "gaussian" states that measurement errors are bell-shaped, all with the same deviation, whatever that is. Then
        certificates need no number. Decisions stay the same.

    A second algorithm with the same name is an error, unless its class says `replaces=True`:
    `class Mine(ALExp, replaces=True)`.
    """

    example: ClassVar[State] = {}  # arguments the conformance suite needs to construct it
    weights_mean: ClassVar[str] = "followed"  # what `probabilities` are: how often agents are, or the "posterior"
    # Why models must be linear in their columns; empty for algorithms that take kernels as well.
    needs_columns: ClassVar[str] = "it computes with columns of features"
    # Why there must be a table of candidates; empty for algorithms that play contextual rounds as well.
    needs_table: ClassVar[str] = ""
    enumerates: ClassVar[bool] = False  # whether it takes subsets that are enumerated and never listed
    # Whether it computes where the models' features are; others have them in the memory of the CPU.
    computes_on_device: ClassVar[bool] = False
    # Why there must be a ball; empty for algorithms that choose from candidates.
    needs_ball: ClassVar[str] = ""
    ridges_per_model: ClassVar[int] = 0  # posteriors that are kept of each model, for estimates of time and memory
    depends_on: ClassVar[frozenset[str]] = frozenset()  # "order" of tells, "scale" of rewards: by design, see docs
    # Weight of a reward for each one that came after it, or several that compete; None where all weigh the same.
    forget: float | tuple[float, ...] | None = None
    objectives: Objectives | None = None  # where there are several
    budget: float | None = None  # what all trials may cost together, or a contextual round on average

    name: ClassVar[str]
    settings: ClassVar[tuple[str, ...]] = ()
    registry: ClassVar[Registry] = Registry()  # every algorithm by its name
    models: ModelClass
    domain: Domain
    stated: Stated
    repeats: bool
    direction: Direction
    log_features: LogFeatures | None  # what is kept of contextual rounds; None on a fixed domain
    reward_range: RewardRange | None = None
    noise: str | None = None
    _measured: tuple[str, ...] = ()  # names of the objectives that are measured, where there are several objectives
    _sign: float
    _streams: Streams
    _candidates: CandidateTable | None = None  # those of a fixed domain
    _log: TrialLog
    _waiting: tuple[TrialLog, int, PendingList | None]  # pending trials of a log from which so many have been settled
    _notes: dict[int, Packable]
    _known: dict[Hashable, object]
    _monitor: AssumptionMonitor
    _n_candidates = 0  # how many candidates the domain has had; arms may be added
    _n_opened = 0  # rounds opened so far: what is computed in one is of no use in another
    _fingerprint: str | None = None  # the table never changes, and hashing a large one takes seconds

    # -- construction -----------------------------------------------------------------------------------------------

    __signature__ = FullSignature()

    def __init_subclass__(cls, replaces: bool = False, **kwargs: object) -> None:
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

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """An `AwaitingFirstRound` where only the first round shows how many features the models have."""
        check_arguments(cls.__name__, kwargs, cls._takes(kwargs))
        problem = (*args, *(kwargs[name] for name in ("models", "domain")[len(args) :] if name in kwargs))
        if len(problem) == 2 and getattr(problem[0], "awaits_round", False):
            models, domain = cast("tuple[ModelClass, Domain]", problem)
            check_problem(models, domain)
            settings = {name: value for name, value in kwargs.items() if name not in ("models", "domain")}
            return cast(Self, AwaitingFirstRound(cls, models, domain, settings))
        return super().__new__(cls)

    @classmethod
    def _takes(cls, given: Mapping[str, object]) -> Mapping[str, Parameter]:
        """Parameters of the constructor, by name; some of its arguments may decide on others."""
        return constructor(cls).parameters

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        noise_std: float | None = None,
        reward_bound: float | None = None,
        norm_bound: float | None = None,
        repeats: bool = True,
        direction: Direction = "maximize",
        random_state: RandomState = None,
        log_features: LogFeatures | None = None,
        reward_range: Sequence[float] | None = None,
        noise: Noise | None = None,
    ) -> None:
        if not isinstance(models, ModelClass):
            raise TypeError(f"models must be a ModelClass, got {type(models).__name__}")
        contextual = isinstance(domain, ContextualDomain)
        if not contextual and not isinstance(domain, Domain):
            raise TypeError(
                "domain must be an Interval, a Box or a FiniteSet, for contextual rounds Arms or Candidates, or a "
                f"Ball, got {type(domain).__name__}"
            )
        if isinstance(domain, Ball) and not self.plays_balls():
            raise ValueError(
                f"{type(self).__name__} chooses from a list of candidates, and a ball has none: use LinUCB or SLUCB, "
                "or alexp.Candidates() with points of the ball as features"
            )
        if self.needs_ball and not isinstance(domain, Ball):
            raise ValueError(f"{type(self).__name__} plays on alexp.Ball(dim) only: {self.needs_ball}")
        check_problem(models, domain)
        if contextual and self.needs_table:
            raise ValueError(f"{type(self).__name__} needs a table of candidates: {self.needs_table}")
        if models.device is not None and not self.computes_on_device:
            raise ValueError(
                f"{type(self).__name__} computes in the memory of the CPU, and these models are on a device "
                f"({models.device}): make them without device=, from NumPy's arrays; EvidenceMixture takes them there"
            )
        if self.needs_columns:
            models.require_linear(type(self).__name__, self.needs_columns)
        if models.enumerated_on is not None and not self.enumerates:
            raise ValueError(
                f"{type(self).__name__} needs a list of its models, and these are enumerated: leave device out of "
                "ModelClass.subsets, or take EvidenceMixture or ALExp"
            )
        if direction not in ("maximize", "minimize"):
            raise ValueError(f'direction must be "maximize" or "minimize", got {direction!r}')
        self.models, self.domain, self.direction = models, domain, direction
        if not isinstance(repeats, bool | np.bool_):
            raise TypeError(f"repeats must be True or False, got {repeats!r}")
        self.repeats = bool(repeats)
        self.log_features = check_log_features(log_features, domain)
        if isinstance(domain, Arms) and not repeats:
            raise ValueError("repeats=False has no meaning for arms: they are there to be played in other contexts")
        if isinstance(domain, Ball) and not repeats:
            raise ValueError("repeats=False has no meaning on a ball: there is always another point next to one played")
        if self.log_features == "none" and not repeats:
            raise ValueError('repeats=False needs to know what was measured, and log_features="none" forgets it')
        self.reward_range = RewardRange.checked(reward_range)
        self.noise = None if noise is None else one_of("noise", noise, ("gaussian",))
        self.stated = Stated.checked(noise_std=noise_std, reward_bound=reward_bound, norm_bound=norm_bound)
        self.noise_std = self.stated.noise_std or ASSUMED_NOISE
        self.reward_bound = self.stated.reward_bound or ASSUMED_BOUND
        self.norm_bound = self.stated.norm_bound or self.reward_bound
        self._sign = 1.0 if direction == "maximize" else -1.0
        self._streams = Streams(random_state)
        if self.log_features is None:
            self._candidates = CandidateTable(models, domain, self._listing_order())
        announce(type(self).__name__, models, domain.n_candidates or 0, self.ridges_per_model)
        self._n_candidates = domain.n_candidates
        self._log = TrialLog(self._new_offers(), self._measured)
        self._waiting = self._log, -1, None
        self._notes = {}  # of pending trials
        self._known = {}  # what was computed since the last reward
        used = Stated(self.noise_std, self.reward_bound, self.norm_bound)
        self._monitor = AssumptionMonitor(self.stated, used, self._relevant)
        if (known := self._known_features()) is not None:
            self._monitor.look_at_features(models, known)

    def _listing_order(self) -> IntArray | ComputedOrder:
        """In which order all candidates are visited, (N,): first those of the first table, then each further batch."""
        batches, parts = self.models.batches or (self.domain.n_candidates,), list[IntArray]()
        if batches == (self.domain.n_candidates,) and batches[0] > _MOST_LISTED:
            return ComputedOrder.drawn(batches[0], self._streams.generator(ORDER))
        for k, n in enumerate(batches):
            key = (ORDER,) if k == 0 else (ORDER, k)
            parts.append(sum(batches[:k]) + self._streams.generator(*key).permutation(n))
        return np.concatenate(parts)

    def __dir__(self) -> list[str]:
        return sorted(set(super().__dir__()) - _NOT_LISTED)

    def __repr__(self) -> str:
        models, candidates = self.models.n_models, self.domain.n_candidates
        what = "arm" if isinstance(self.domain, Arms) else "candidate"
        unknown = repr(self.domain) if isinstance(self.domain, Ball) else "candidates by the round"
        known = f"{candidates} {what}{'s' * (candidates != 1)}" if candidates else unknown
        counts = f"{models} model{'s' * (models != 1)}, {known}"
        pending = len(self._log.pending)
        return f"{type(self).__name__}({counts}, {self.n_told} told{f', {pending} pending' if pending else ''})"

    def plot(self, kind: str | None = None, ax: Axes | None = None, *, engine: str = "matplotlib") -> Any:
        """Draw which model leads, what was found, and whether the models predict it: an array of axes.

        `kind` names one figure: "models", "rewards", "predictions", "residuals", "odds", "curve", "coverage",
        "plates" or "pareto". It is drawn into `ax`, an axes of Matplotlib, and the axes are returned; with
        `engine="plotly"` a figure of Plotly is returned.
        """
        return import_module("alexp.plot").draw(self, kind, ax, engine=engine)  # loaded when a figure is wanted

    def summary(self) -> str:
        """The state of the run in a paragraph."""
        return str(import_module("alexp.plot").summary(self))

    def _repr_html_(self) -> str:
        """Shown by notebooks."""
        return str(import_module("alexp.plot").html(self))

    # -- asking -----------------------------------------------------------------------------------------------------

    @overload
    def ask(
        self,
        n: None = None,
        available: Available = None,
        *,
        where: str | None = None,
        at_most: Mapping[str, int] | None = None,
        together: Sequence[str] | str | None = None,
        context: object = None,
        candidates: Action = None,
        features: object = None,
        ids: Ids | None = None,
        scores: bool = False,
    ) -> Trial: ...
    @overload
    def ask(
        self,
        n: int,
        available: Available = None,
        *,
        where: str | None = None,
        at_most: Mapping[str, int] | None = None,
        together: Sequence[str] | str | None = None,
        context: object = None,
        candidates: Action = None,
        features: object = None,
        ids: Ids | None = None,
        scores: bool = False,
    ) -> list[Trial]: ...
    def ask(
        self,
        n: int | None = None,
        available: Available = None,
        *,
        where: str | None = None,
        at_most: Mapping[str, int] | None = None,
        together: Sequence[str] | str | None = None,
        context: object = None,
        candidates: Action = None,
        features: object = None,
        ids: Ids | None = None,
        scores: bool = False,
    ) -> Trial | list[Trial]:
        """Propose an action, or a list of `n` actions before any of their rewards is known.

        No candidate is proposed while a trial of it is pending, from this list or an earlier ask, unless all have one;
        with `repeats=False` none that has been measured either. `available` restricts the choice to some candidates, by
        index, boolean mask, or, where candidates are texts, by name. Candidates of a table with a number that was
        filled in are proposed only where `available` names them.

        Where candidates have named columns, `where` restricts it by a condition, such as "temperature <= 105 and
        solvent != 'DMF'"; `at_most` says how many of the n actions may share a value of a column, and `together` names
        columns that have one value for all n. Pending trials of earlier asks do not count among the n.

        A contextual round is asked for with `context` (arms), `context` and `candidates`, or `features` and perhaps
        `ids` (blocks). `context` may hold `n` contexts, see `contexts_of`: one trial each. One round with `n` gives n
        different candidates; what other rounds have pending is no reason to avoid anything here, but counts as known to
        come. On a ball nothing is passed, and the action is a point of it. `scores=True` has every trial carry the
        probabilities of all candidates of its round.
        """
        presented: RoundArguments = {"context": context, "candidates": candidates, "features": features, "ids": ids}
        if self._log.offers is not None or any_given(presented):
            check_unrestricted(where, at_most, together)
            trials = self.ask_offers(self.check_offers(n, available, **presented), scores)
        else:
            limits = self.plate_limits(at_most, together)
            if scores:
                self._check_listed()
            wanted, allowed, free = self._check_ask(n, available, where, limits)
            listed, pending, trials = self._listed, self._pending_now(), list[Trial]()
            restriction = self._restriction(allowed)
            while len(trials) < wanted:
                if limits is not None and not isinstance(free, AllBut):
                    left = limits.choices(free, [trial.index for trial in trials], wanted - len(trials))
                    if left.size < free.size:
                        allowed = free = left
                        restriction = self._restriction(allowed)
                trials.append(self._propose(listed.round(free, pending), restriction, scores=scores))
                if len(trials) < wanted:
                    pending, last = self._pending_now(), trials[-1].index
                    free = free.without(last) if isinstance(free, AllBut) else free[free != last]
                    free = free if free.size else self._free(allowed, pending.indices)  # each has one more pending
            self._end()  # all of them or none
        return trials[0] if n is None else trials

    def policy(
        self,
        available: Available = None,
        *,
        context: object = None,
        candidates: Action = None,
        features: object = None,
        ids: Ids | None = None,
    ) -> FloatArray:
        """The probability with which the next ask with these arguments would play each candidate, shape (n,).

        In the order of the candidates as they were passed, or of the domain; zero for what is not available. Nothing is
        recorded.
        """
        presented: RoundArguments = {"context": context, "candidates": candidates, "features": features, "ids": ids}
        if self.is_contextual or any_given(presented):
            (offer,) = self.check_offers(None, available, **presented)
            if offer.is_whole:
                raise TypeError("policy lists probabilities of candidates, and a ball has infinitely many points")
            round_, n = self._open_offer(self.narrowed(offer)), len(offer)
        else:
            limits = self.plate_limits()
            self._check_listed()
            _, _, free = self._check_ask(None, available, None, limits)
            free = free if limits is None or isinstance(free, AllBut) else limits.choices(free, [], 1)
            round_, n = self._listed.round(free, self._pending_now()), self.domain.n_candidates
        return propensities(self._decision(round_).play, round_, n)

    def best(
        self,
        *,
        available: Available = None,
        context: object = None,
        candidates: Action = None,
        features: object = None,
        ids: Ids | None = None,
    ) -> Recommendation:
        """The action to stop with, judged by what is known now; of a contextual round, on the set that it offers."""
        presented: RoundArguments = {"context": context, "candidates": candidates, "features": features, "ids": ids}
        return self._best(*self._recommended_on(available, presented))[0]

    # -- telling ----------------------------------------------------------------------------------------------------

    def tell(
        self,
        trial: Trial | int | str | None,
        reward: Measurements,
        if_told: IfTold = "raise",
        *,
        candidate: Name | None = None,
        note: str = "",
    ) -> None:
        """Report the reward of a trial, by the trial or its id, in any order. Wrong input changes nothing.

        On a table the name of the candidate, in place of the trial or as `candidate`, names its pending trial; with
        both they must agree. A list of rewards is as many measurements of one experiment: the first is the reward of
        the trial, the others become trials of their own with the same candidate.

        The log keeps a `note`, for instance what was unusual.

        Where the trial has a reward already, `if_told` decides: "raise" an error, accept the "same" reward in silence
        and raise at another one, or "amend" it, where the trial was given up, too. A reward far outside what was seen
        so far is taken in with a warning.
        """
        told, seen = self.check_tell(trial, reward, if_told, candidate, note), self._log.seen
        plain = told.action == "tell" and not told.more and not isinstance(told.reward, dict)
        if not (plain and seen.low <= first_of(told.reward) <= seen.high):  # which most rewards are
            warn_of(self.suspects([told]).values())
        self.take_in(told)

    def observe(
        self,
        index: int | str,
        reward: Reward,
        *,
        context: object = None,
        candidates: Action = None,
        features: object = None,
        ids: Ids | None = None,
        available: Available = None,
        propensity: float | None = None,
    ) -> Trial:
        """Take in a reward of candidate `index` that was measured elsewhere, without having asked for it.

        It becomes a trial of its own with no model and a propensity of NaN: no probability was at work, and an
        estimate that weights by propensities must notice. Later asks draw the same random numbers as they would
        after any other trial.

        On a contextual domain the round is passed as it would be to `ask`; `index` is a position in it, or the name of
        an arm, and `propensity` the probability with which it was played, if that is known.
        """
        presented = {"context": context, "candidates": candidates, "features": features, "ids": ids}
        seen = self.check_observation(index, reward, available, propensity, **presented)
        warn_of(self.suspect_observations([seen.reward]))
        return self.take_observation(*seen)

    def abandon(self, trial: Trial | int | str) -> None:
        """Give up a pending trial, for instance feedback that will not come. It keeps its number.

        Should its reward come after all, `amend` gives it one.
        """
        trial_id = self._log.check_pending(trial)
        self._changing = True
        self._given_up(trial_id)
        self._log.abandon(trial_id)
        self._notes.pop(trial_id, None)
        self._end()

    def fail(
        self,
        trial: Trial | int | str | None,
        reason: str = "",
        if_told: IfTold = "raise",
        *,
        candidate: Name | None = None,
    ) -> None:
        """Report that the experiment of a pending trial failed: a broken vial, tar instead of a product.

        The candidate is not proposed again, the trial takes no reward, and the log keeps the reason.
        `EvidenceMixture` learns from failures where further ones are to be expected. Where the trial has a reward or
        has failed already, `if_told` decides: "raise" an error, accept the "same" failure in silence, or "amend" the
        reward. `amend` gives a failed trial a reward after all, `retract` takes the failure back. The trial may be
        named by its candidate, as for `tell`.
        """
        self.take_failure(self.check_fail(trial, reason, if_told, candidate))

    def amend(self, trial: Trial | int | str, reward: Measurements) -> None:
        """Correct a reward that was told or observed, or give one to a trial that was given up, retracted or failed.

        The run is then what it would be had the right reward been told at once, with the actions as they were played:
        it is computed by repeating the run, so that nothing of the wrong reward is left, to the last bit. If that
        fails or is interrupted, nothing has changed.
        """
        told = self.check_amend(trial, reward)
        warn_of(self.suspects([told]).values())
        self.take_in(told)

    def add_candidates(self, table: Table) -> list[int]:
        """Add the candidates of a table, read like the one that the run began with, and return their numbers.

        They must have the columns and descriptions of the first, and ids of their own. Units, centres and scales of
        features and kernels stay as the first candidates have set them, and these keep their numbers and their visiting
        order. A word that no candidate had before is one more: in models of components as far from every other as these
        are from each other. The run is repeated with the new candidates, as for `amend`.
        """
        added = self.take_candidates(self.check_candidates(table))
        for one in self.check_results(table, added[0]):
            self.take_observation(*one)
        return added

    def learn_from(self, campaigns: Mapping[str, Any], reward: str = "reward") -> None:
        """Learn from old campaigns, {name: results}: each gets further models behind those there are.

        Arguments as of `Table.with_memory`, which does the same before a run begins. The run is repeated with the new
        models, as for `amend`.
        """
        self.take_candidates(self.check_campaigns(campaigns, reward))

    def retract(self, trial: Trial | int | str) -> None:
        """Withdraw a reward that was told or observed, or a failure; the run is then what it would be without it.

        The trial counts as given up and takes no reward by `tell`; `amend` gives it one again.
        """
        self.amend_all(self.withdrawal(self.check_retract(trial)))

    # -- looking ----------------------------------------------------------------------------------------------------

    @property
    def n_asked(self) -> int:
        """Number of trials proposed so far."""
        return len(self._log)

    @property
    def n_told(self) -> int:
        """t, the number of rewards so far."""
        return self._log.n_told

    @property
    def is_contextual(self) -> bool:
        """Whether every round brings its candidates along."""
        return self._log.offers is not None

    def trial(self, trial_id: int) -> Trial:
        """A trial of this run by its id."""
        if not 0 <= trial_id < len(self._log):
            raise IndexError(f"there are {len(self._log)} trials, no trial {trial_id}")
        return self._log.trial(trial_id, self.domain)

    def pending(self) -> list[Trial]:
        """Trials whose reward has not been told yet."""
        return [self._log.trial(i, self.domain) for i in self._log.pending]

    def trials_dataframe(self) -> pd.DataFrame:
        """One row per trial: id, x, index, model, explored, propensity, reward."""
        return trials_frame(self._log, self.domain)

    def log_frame(self) -> pd.DataFrame:
        """The trials with what their rounds offered, as off-policy evaluation needs it.

        Columns: id, x, index, model, explored, propensity, reward, n, context, ids, available and features; all
        features of a round, (n, P), are there with `log_features="all"`.
        """
        return rounds_frame(self._log, self.domain)

    @property
    def log(self) -> TrialLog:
        """All trials column by column; to be read, not written."""
        return self._log

    @property
    def relies_on(self) -> frozenset[str]:
        """Which of noise_std, reward_bound and norm_bound matter to its decisions, whether stated or assumed."""
        return frozenset(Stated._fields)

    # -- saving -----------------------------------------------------------------------------------------------------

    def arguments(self) -> State:
        """Keywords that construct this algorithm again, apart from its seed; None for what was not stated."""
        shared = self.stated._asdict() | {"repeats": self.repeats, "direction": self.direction}
        if self.log_features is not None:
            shared["log_features"] = self.log_features
        if self.reward_range is not None:
            shared["reward_range"] = list(self.reward_range)
        if self.noise is not None:
            shared["noise"] = self.noise
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
        cls, data: State, models: ModelClass | None = None, domain: Domain | None = None, **settings: object
    ) -> Self:
        """Continue a saved run.

        Pass `models` and `domain` again when they hold your own code or objects; they are checked against the
        saved run's features. Keywords replace settings that could not be stored, such as agents of your own.
        """
        kind, known = cls._saved_kind(data), record("state", data, FIELDS, optional=["digest"])
        check_arguments(f"{cls.__name__}.from_dict", settings, kind._takes(settings))
        if "digest" in known and known["digest"] != content_digest(data):
            raise ValueError("this state is not as it was saved: state['digest'] is that of another content")
        stored = known["problem"]
        models = models if models is not None else read_stored(stored, "models", ModelClass.from_dict)
        domain = domain if domain is not None else read_stored(stored, "domain", domain_from_dict)
        saved = unpack(known["settings"]).items()
        arguments = {key: component_from_dict(value, key) for key, value in saved if key not in settings}
        if not (known["entropy"].isascii() and known["entropy"].isdigit()):
            raise ValueError(f"state['entropy'] must be a whole number as text, got {known['entropy']!r:.80}")
        make: Callable[..., Self] = kind
        with quietly():
            try:
                out = make(models, domain, random_state=int(known["entropy"]), **arguments, **settings)
            except (TypeError, AttributeError, LookupError, ArithmeticError) as error:
                raise ValueError(f"state['settings'] do not go with {kind.__name__}: {error}") from error
        missing = set(out.arguments()) - set(arguments) - set(settings)
        if missing:
            raise ValueError(f"state['settings'] lacks {', '.join(map(repr, sorted(missing)))}")
        if out.fingerprint() != known["fingerprint"]:
            raise ValueError("models and domain give other features than those of the saved run; pass the same ones")
        out.resume(unpack(known["log"]), unpack(known["state"]))
        return out

    @classmethod
    def _saved_kind(cls, data: State) -> type[Self]:
        """The class of a saved run, which has to be this one or one of its own."""
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            form = data.get("format") if isinstance(data, dict) else type(data).__name__
            raise ValueError(f"this state has format {form!r:.80}; this version reads format {FORMAT}")
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
        before = self._log
        after = read_log(log, n, self.models.n_models, self._new_offers(), self._measured)
        self._changing = True
        try:
            self._log = after
            self._notes = read_notes("state['notes']", state.get("notes", {}))
            self._known.clear()
            self._restore(state)
            self._notes = {trial: note for trial, note in self._notes.items() if trial in after.pending}
        except Exception:
            self._log = before
            raise
        self._end()

    def features(self) -> FloatArray:
        """The dictionary on all candidates in the domain's order, shape (N, P)."""
        return np.asarray(self._listed.table[:, self._listed.position].T)

    def fingerprint(self) -> str:
        """Content hash of the features on the candidates and of the groups of columns."""
        if self._fingerprint is None:
            parts = self.models.listing
            seen, rows = self._recognised_by()
            kernels = self.models.kernel_signature(rows)
            own = [] if kernels is None else [kernels.kinds, fingerprint(kernels.numbers)]
            hashes = [*seen, *(fingerprint(part) for part in parts)]
            self._fingerprint = fingerprint(np.array([*hashes, str(self.models.intercept), *own]))
        return self._fingerprint

    def _recognised_by(self) -> tuple[list[str], FloatArray]:
        """Hashes of the features, and some rows of them: on the candidates, or on the example of contextual models."""
        if self._candidates is None:
            rows = self.models.identifying_rows
            return ["contextual", *self.models.dictionary.names, fingerprint(rows)], rows
        small = self._candidates.is_small
        rows = self.features() if small else self._candidates.rows(np.arange(_MARKED))
        return self._candidates.hashes(), rows

    # -- what subclasses provide ------------------------------------------------------------------------------------

    @abstractmethod
    def _decide(self, round_: Round) -> Decision:
        """What to do in a round, given all rewards so far; changes nothing."""

    def _commit(self, round_: Round, decision: Decision) -> None:
        """Take note that a decision is acted on."""

    def _note(self, decision: Decision, proposal: Proposal) -> Packable:
        """What to remember about a trial until its reward comes, as JSON data and arrays; None for nothing."""
        return None

    @abstractmethod
    def _learn(self, seen: Observation) -> None:
        """Take in a reward."""

    def _given_up(self, trial: int) -> None:
        """Take note that a pending trial will have no reward: abandoned, failed, or its reward was withdrawn."""

    def _learn_failure(self, row: FloatArray, index: int) -> None:
        """Take in that the experiment of a candidate failed; `row` (P,) is the dictionary there."""

    @abstractmethod
    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        """Position of the best choice of a round, its estimated reward, and the model behind it."""

    @abstractmethod
    def _state(self) -> State:
        """Arrays and numbers from which `_restore` continues bit for bit."""

    @abstractmethod
    def _restore(self, state: State) -> None:
        """Continue from `_state`."""

    def _aim(self) -> FloatArray:
        """On a ball, the point (dim,) that the next ask plays; a round on it alone is then decided. Changes nothing."""
        raise NotImplementedError

    def _peak(self) -> FloatArray:
        """On a ball, the point (dim,) to stop with."""
        raise NotImplementedError

    # -- what subclasses may use ------------------------------------------------------------------------------------

    def _agent_rng(self) -> np.random.Generator:
        """Random numbers of agents and posterior draws: a function of the seed and of the number of rewards.

        Contextual rounds come between rewards as well, often many of them: there every ask has its own.
        """
        key = (self._log.n_told, len(self._log)) if self.is_contextual else (self._log.n_told,)
        return self._streams.generator(AGENTS, *key)

    def _cached(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """What `make` computes from the rewards so far; computed again only after another reward."""
        if key in self._known:
            value = self._known.pop(key)
        else:
            if len(self._known) >= _MOST_CACHED:
                del self._known[next(iter(self._known))]  # the least recently used
            value = make()
        self._known[key] = value
        return cast(_T, value)

    def _keep_only(self, round_: Round, decision: Decision) -> None:
        """Forget what was computed for other rounds, because acting on this decision changes what they would be."""
        self._known = {("decision", round_.key): decision}

    def _decision(self, round_: Round) -> Decision:
        """The decision of a round, made once per set of choices and reward."""
        return self._cached(("decision", round_.key), partial(self._decide, round_))

    def _check_notes(self, check: Check) -> None:
        """For algorithms with a note for every trial: raise unless all pending trials have one."""
        checked = {trial: check(f"note of trial {trial}", note) for trial, note in self._notes.items()}
        missing = sorted(set(self._log.pending) - set(checked))
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

    def _row(self, trial: int) -> FloatArray:
        """The dictionary at the action of a trial, (P,)."""
        offers = self._log.offers
        return self._listed.row(self._log.index[trial]) if offers is None else offers.row(trial)

    def _rows(self, trials: IntArray) -> FloatArray:
        """The dictionary at the actions of k trials, (k, P)."""
        return rows_of(self._log, self._candidates, trials)

    @classmethod
    def plays_balls(cls) -> bool:
        """Whether it finds points of a ball, and not only the best of some candidates."""
        return cls._aim is not Algorithm._aim

    @classmethod
    def asks_matter(cls) -> bool:
        """Whether asking leaves anything behind but the trial, so that a run is repeated with its asks."""
        return cls._commit is not Algorithm._commit or cls._note is not Algorithm._note

    # -- rounds, for asks here and in studies -----------------------------------------------------------------------

    def check_ask(
        self, n: int | None, available: Available = None, where: str | None = None, limits: PlateLimits | None = None
    ) -> tuple[int, IntArray | None]:
        """Number of trials and allowed candidates as `ask` would take them, or its error; changes nothing."""
        return self._check_ask(n, available, where, limits)[:2]

    def _check_ask(
        self, n: int | None, available: Available, where: str | None, limits: PlateLimits | None
    ) -> tuple[int, IntArray | None, IntArray | AllBut]:
        """Number of trials, allowed candidates, and those of them that the first trial chooses from."""
        wanted = 1 if n is None else count("n", n)
        allowed = None if available is None and where is None else check_where(available, where, self.domain)
        free = self._free(allowed, self._pending_now().indices)
        if free.size < (1 if self.repeats else wanted):
            whose = "candidate" if allowed is None else "available candidate"
            raise self._refusal(wanted, free.size, whose if where is None else f"{whose} with {where}")
        if limits is not None:
            if isinstance(free, AllBut):
                raise ValueError("at_most, together and budget need a list of all candidates, and these are in parts")
            limits.check(free, wanted)
        return wanted, allowed, free

    def _check_listed(self) -> None:
        """Raise unless there may be a number for every candidate."""
        if self._listed.is_in_parts:
            raise ValueError("probabilities of all candidates are a list of them, and these candidates are in parts")

    def _refusal(self, n: int, left: int, whose: str) -> ValueError:
        """What to raise where n trials are more than the candidates that are left."""
        if self.repeats:
            return ValueError(f"every {whose} has failed; allow others, or amend or retract a failure")
        failed = ", has failed" if self._log.failed else ""
        failed += ", has a number that was filled in" if not_withheld(self.domain) is not None else ""
        if left == 0:
            return ValueError(
                f"every {whose} has been measured{failed} or is pending; tell or abandon what is pending, allow more, "
                "or construct the algorithm with repeats=True"
            )
        return ValueError(
            f"n must be at most {left}, every other {whose} has been measured{failed} or is pending; got {n}"
        )

    def plate_limits(
        self, at_most: Mapping[str, int] | None = None, together: Sequence[str] | str | None = None
    ) -> PlateLimits | None:
        """What limits the trials of one ask, or the error that says what is wrong; None where nothing does."""
        if at_most is None and together is None and self.budget is None:
            return None
        return check_plate(self.domain, at_most, together, self._purse())

    def _purse(self) -> Purse | None:
        """What candidates cost and what is left of the budget; None without a budget."""
        return None

    def choosable(self, allowed: IntArray | None = None) -> IntArray:
        """The candidates that an ask would choose from now, if those with the `allowed` indices (all if None) may be.

        They are those with the fewest pending trials, which is none unless all have one; without `repeats`, those that
        have neither a pending trial nor a reward. Candidates that failed are left out.
        """
        free = self._free(allowed, self._pending_now().indices)
        return np.setdiff1d(np.arange(self._n_candidates), free.but) if isinstance(free, AllBut) else free

    def _free(self, allowed: IntArray | None, pending: IntArray) -> IntArray | AllBut:
        """The same, with the candidates of the pending trials."""
        n = self._n_candidates
        if allowed is None and self._listed.is_in_parts:
            failed = np.asarray(self._log.failed_candidates(), dtype=np.int64)
            told = failed if self.repeats else self._log.told_candidates()
            left_out = AllBut(n, np.unique(np.concatenate([failed, pending, told]).astype(np.int64)))
            if left_out.size or not self.repeats:
                return left_out
            allowed = np.arange(n)  # every candidate has a pending trial
        found = self._not_failed(not_withheld(self.domain) if allowed is None else allowed)
        left = np.arange(n) if found is None or isinstance(found, AllBut) else found
        if not self.repeats:
            closed = np.zeros(n, dtype=bool)
            closed[pending] = closed[self._log.told_candidates()] = True
            return np.asarray(left[~closed[left]])
        if pending.size and left.size:
            taken = np.bincount(pending, minlength=n)[left]
            return np.asarray(left[taken == taken.min()])
        return left

    def _not_failed(self, allowed: IntArray | None) -> IntArray | AllBut | None:
        """Those of the allowed candidates that have not failed; None for all candidates."""
        if not self._log.failed:
            return allowed
        if allowed is None and self._listed.is_in_parts:
            return AllBut(self._n_candidates, np.unique(self._log.failed_candidates()))
        return np.setdiff1d(
            np.arange(self._n_candidates) if allowed is None else allowed, self._log.failed_candidates()
        )

    def _open(self, allowed: IntArray | None) -> Round:
        """The round of an ask: what may be chosen, and the pending trials."""
        pending = self._pending_now()
        return self._listed.round(self._free(allowed, pending.indices), pending)

    def _pending_now(self) -> Pending:
        """The pending trials on a fixed domain; of those that were there at the last call, only new ones are added."""
        log, (of, n_settled, known) = self._log, self._waiting
        if not log.pending:
            return NOTHING
        if known is None or of is not log or known.candidates is not self._listed:
            known, n_settled = PendingList(self._listed), -1
        if n_settled != log.n_settled:
            n = len(log.pending)
            known.replace(np.fromiter(log.pending, np.int64, n), np.fromiter(log.pending.values(), np.int64, n))
            self._waiting = log, log.n_settled, known
        elif (n_new := len(log.pending) - known.now.trials.size) > 0:
            new = list(islice(reversed(log.pending.items()), n_new))[::-1]
            known.extend(*np.array(new, dtype=np.int64).T)
        return known.now

    def _check_offer(self, available: Available = None, **presented: Unpack[RoundArguments]) -> Offer:
        """What a round with these arguments offers, or the error that says what would be right; changes nothing."""
        self._keep_up()
        return make_offer(self.models, self.domain, available=available, **presented)

    def check_offers(
        self, n: int | None, available: Available = None, **presented: Unpack[RoundArguments]
    ) -> list[Offer]:
        """What `ask` would choose from, one offer per trial, or its error; changes nothing.

        One offer that comes n times asks for n different candidates of it.
        """
        self._keep_up()
        return self.fresh(offers_for(self.models, self.domain, n, available, presented))

    def fresh(self, offers: Sequence[Offer]) -> list[Offer]:
        """What may be chosen of some offers, or the error that `ask` would raise; changes nothing.

        An offer that comes several times must have as many candidates left.
        """
        times = Counter(map(id, offers))
        left = {id(one): self._fresh(one, times[id(one)]) for one in offers}
        return [left[id(one)] for one in offers]

    def _fresh(self, offer: Offer, wanted: int) -> Offer:
        """Without `repeats`, what is left of an offer: candidates that are neither measured nor pending."""
        if self.repeats:
            return offer
        if offer.ids is None:
            raise ValueError("repeats=False needs ids=: only they tell which candidates have been measured before")
        played = self._offers.played
        left = np.array([k for k in offer.choosable if not played[offer.ids[k]]], dtype=np.int64)
        if left.size < wanted:
            raise ValueError(
                f"n must be at most {left.size}, every other candidate of this round has been measured or is pending; "
                f"got {wanted}; construct the algorithm with repeats=True to measure candidates again"
            )
        return offer.only(left)

    @property
    def _offers(self) -> OfferLog:
        assert self._log.offers is not None
        return self._log.offers

    def _open_offer(self, offer: Offer, wait: bool = True) -> Round:
        """The round of the next ask on an offer: visiting order by its number, and the pending trials.

        Of many pending trials only the newest count: rewards of clicks may take days, and fantasies take time for each.
        """
        k, pending = len(self._log), NOTHING
        if wait and self._log.pending:
            newest = tuple(islice(reversed(self._log.pending), _MOST_PENDING))[::-1]
            indices = np.array([self._log.pending[trial] for trial in newest], dtype=np.int64)
            pending = Pending(np.array(newest, dtype=np.int64), indices, self._offers.rows(newest))
        self._n_opened += 1
        mark = np.array([self._n_opened, k], dtype=np.int64).tobytes()
        return open_round(offer, self._visiting_order(k, len(offer)), mark, pending)

    def _visiting_order(self, k: int, n: int) -> IntArray:
        """In which order the n candidates of ask k are looked at: the first of equally good ones is played."""
        return self._streams.generator(ORDER, k).permutation(n)

    def ask_offers(self, offers: Sequence[Offer], scores: bool = False) -> list[Trial]:
        """One trial for each of some offers that `check_offers` has let pass; one that comes again, without repeats."""
        trials: list[Trial] = []
        taken: dict[int, list[int]] = {}
        for offer in offers:
            own = taken.setdefault(id(offer), [])
            left = self.narrowed(offer.least(own))
            trials.append(self._propose(self._open_offer(left), offer=left, scores=scores))
            own.append(trials[-1].index)
        self._end()  # all of them or none
        return trials

    def narrowed(self, offer: Offer) -> Offer:
        """What the next ask chooses from: the offer, of the whole of a ball the point to be played; changes nothing."""
        return points_offer(self._aim()[None]) if offer.is_whole else offer

    def take_trial(
        self,
        offer: Offer | None,
        index: int,
        model: int | None,
        explored: bool,
        propensity: float,
        allowed: IntArray | None = None,
    ) -> None:
        """Take over a trial that was decided on elsewhere, among the `allowed` candidates.

        Nothing is decided here. Where asking leaves more behind than the trial, that is computed for the one taken;
        contextual rounds, with an `offer`, are taken only where it does not.
        """
        if offer is None and self.asks_matter():
            round_ = self._open(allowed)
            position = round_.position_of(index)
            assert position is not None
            self._propose(round_, self._restriction(allowed), Proposal(position, model, explored, propensity))
        else:
            self._changing = True
            self._log.append(index, model, explored, propensity, offer=offer)
        self._end()

    def _propose(
        self,
        round_: Round,
        restriction: bytes | None = None,
        played: Proposal | None = None,
        offer: Offer | None = None,
        scores: bool = False,
    ) -> Trial:
        """One trial: drawn from the decision, or as it was `played` when a run is repeated."""
        decision = self._decision(round_)
        self._changing = True
        self._commit(round_, decision)
        proposal = played or decision.play.draw(self._streams.generator(ASK, len(self._log.index)))
        listed = round_.indices
        index = round_.candidate(proposal.position) if listed is None else int(listed[proposal.position])
        proposal.propensity = min(proposal.propensity, 1.0)  # a sum of probabilities may be rounded beyond one
        note = self._note(decision, proposal)
        trial_id = self._log.append(index, proposal.model, proposal.explored, proposal.propensity, restriction, offer)
        if note is not None:
            self._notes[trial_id] = note
        probabilities = None
        if scores:
            n = self.domain.n_candidates if offer is None else len(offer)
            probabilities = propensities(decision.play, round_, n)
        return self._log.trial(trial_id, self.domain, probabilities)

    def _recommended_on(self, available: Available, presented: RoundArguments) -> tuple[Round, Offer | None]:
        """The round that a recommendation is about; NoRewardYetError before the first reward."""
        if self.is_contextual or any_given(presented):
            offer = self._check_offer(available, **presented)
            if offer.is_whole and self._log.n_told:
                offer = points_offer(self._peak()[None])
            round_ = self._open_offer(offer, wait=False)
        else:
            known = check_available(available, self.domain)
            if known is None and (left := not_withheld(self.domain)) is not None:
                known = np.union1d(left, self._log.told_candidates())
            allowed = self._not_failed(known)
            if allowed is not None and not allowed.size:
                raise ValueError("every candidate that is available has failed, so that none can be recommended")
            offer, round_ = None, self._everything if allowed is None else self._listed.round(allowed)
        if self._log.n_told == 0:
            raise NoRewardYetError("best() needs at least one reward; call tell() first")
        return round_, offer

    def _best(self, round_: Round, offer: Offer | None) -> tuple[Recommendation, int]:
        """The recommendation in a round, and its position there."""
        position, value, model = self._recommend(round_)
        index = round_.candidate(position)
        x = self.domain[index] if offer is None else offer.actions[index]
        value = float(self.within_range(np.array(self._sign * value)))
        return Recommendation(x, index, value, model), position

    def _observation(
        self, row: FloatArray, reward: Value, trial: int, index: int | None, model: int | None = None
    ) -> Observation:
        """What is learned of a reward: all numbers such that larger is better."""
        if not isinstance(reward, dict):
            return Observation(row, self._sign * reward, trial, index, model, self._notes.get(trial))
        assert self.objectives is not None
        first, *further = (self.objectives.sign(name) * number for name, number in reward.items())
        return Observation(row, first, trial, index, model, self._notes.get(trial), tuple(further))

    def of_first_objective(self) -> Algorithm:
        """The run as far as its first measured objective is concerned, for reading; itself where there is only one."""
        return self

    def within_range(self, values: FloatArray) -> FloatArray:
        """Rewards as users see them, cut off at the ends of `reward_range` where that is stated."""
        return values if self.reward_range is None else self.reward_range.clip(values)

    def _restriction(self, allowed: IntArray | None) -> bytes | None:
        """What must be remembered of the candidates that an ask was allowed to choose, so that it can be repeated."""
        if allowed is None or not self.asks_matter():
            return None
        return pack_restriction(allowed, self.domain.n_candidates)

    @property
    def decides_on(self) -> str | None:
        """Name of the device that decisions are computed on; None for the CPU."""
        enumerated_on = self.models.enumerated_on
        return self.models.device or (enumerating_card(enumerated_on) if enumerated_on else None)

    # -- rewards, for tells here and in studies ---------------------------------------------------------------------

    def check_tell(
        self,
        trial: Trial | int | str | None,
        reward: Measurements,
        if_told: IfTold = "raise",
        candidate: Name | None = None,
        note: str = "",
    ) -> CheckedTell:
        """What `tell` would do, or the error it would raise; changes nothing."""
        if if_told not in IF_TOLD:
            one_of("if_told", if_told, IF_TOLD)
        trial_id = find_trial(self._log, self.domain, trial, candidate)
        value, *more = values = self.check_rewards(reward)
        text = check_remark("note", note) if note != "" else ""
        known = self._log.reward[trial_id]
        if if_told == "amend" and trial_id in self._log.abandoned and trial_id not in self._log.retracted:
            self._check_repeatable()
            return CheckedTell(trial_id, value, "amend", tuple(more), text)
        if isnan(known) or if_told == "raise":
            return CheckedTell(self._log.check_is_pending(trial_id), value, "tell", tuple(more), text)
        renoted = if_told == "amend" and text not in ("", self._log.remarks.get(trial_id))
        if values == self._log.measurements(trial_id) and not renoted:
            return CheckedTell(trial_id, value, "skip", tuple(more))
        if if_told == "same":
            had, said = _listed(self._log.measurements(trial_id)), _listed(values)
            raise AlreadyToldError(
                f"trial {trial_id} already has the reward {had}, and now got {said}; "
                f'if that is a correction, amend({trial_id}, {said}), or tell it with if_told="amend"'
            )
        return CheckedTell(trial_id, value, "amend", tuple(more), text)

    def check_rewards(self, reward: Measurements) -> tuple[Value, ...]:
        """The measurements of one experiment: a reward, or a list of them; raises if any is wrong."""
        if self.objectives is not None:
            reward = self.objectives.listed(reward)
        if not isinstance(reward, list | tuple | np.ndarray) or not np.ndim(reward):
            return (self.check_reward(cast(Reward, reward)),)
        if self.is_contextual:
            raise ValueError("several rewards of one trial are for candidates of a fixed domain; tell their mean")
        if not 1 <= len(reward) <= _MOST_REPLICATES:
            raise ValueError(f"reward must be 1 to {_MOST_REPLICATES} measurements, got {len(reward)}")
        return tuple(self.check_reward(one) for one in reward)

    def check_reward(self, reward: Reward) -> Value:
        """A reward as a float, or as numbers by name where several objectives are measured.

        Raises unless it is finite, and within `reward_range` where that is stated.
        """
        if self.objectives is not None:
            return self.objectives.check(reward)
        value = check_reward(reward)
        return value if self.reward_range is None else self.reward_range.check(value)

    def entries(self, one: CheckedTell | CheckedFail) -> tuple[dict[int, Entry], tuple[Value, ...]]:
        """What an amendment changes, by trial: the trial and its replicates; and measurements that come in addition.

        Replicates that there are no longer are withdrawn.
        """
        more = one.more if isinstance(one, CheckedTell) else ()
        changes: dict[int, Entry] = {one.trial: one.reward if isinstance(one, CheckedTell) else Failure(one.reason)}
        own = self._log.replicates.get(one.trial, [])
        for k, replicate in enumerate(own):
            entry = more[k] if k < len(more) else None
            if self._log.entry(replicate) != entry:
                changes[replicate] = entry
        return changes, more[len(own) :]

    def withdrawal(self, trial_id: int) -> dict[int, Entry]:
        """What a retraction changes: the trial, and its replicates that have a reward."""
        own = (k for k in self._log.replicates.get(trial_id, ()) if self._log.entry(k) is not None)
        return dict.fromkeys((trial_id, *own))

    def suspects(self, tells: Sequence[CheckedTell]) -> dict[int, str]:
        """Which of some rewards look like typing errors beside all others, by trial, and why."""
        bound = self.stated.reward_bound or 0.0  # what was stated to be possible is no typing error
        rewards = ((told.trial, one) for told in tells if told.action != "skip" for one in (told.reward, *told.more))
        new = [(trial, number) for trial, one in rewards if abs(number := first_of(one)) > bound]
        reasons = zip(new, self._typos([number for _, number in new], [trial for trial, _ in new]), strict=True)
        return {trial: f"trial {trial}: {reason}" for (trial, _), reason in reasons if reason is not None}

    def suspect_observations(self, rewards: Sequence[Value]) -> list[str | None]:
        """For each of some measurements from elsewhere, why it looks like a typing error; None where it does not."""
        new, bound = [first_of(reward) for reward in rewards], self.stated.reward_bound or 0.0
        return [None if abs(one) <= bound else why for one, why in zip(new, self._typos(new, []), strict=True)]

    def _typos(self, new: list[float], of: list[int]) -> list[str | None]:
        """For each of some rewards, why it looks like a typing error beside those of all trials but `of`.

        None where all rewards are of a few candidates: another one may differ, other rounds do.
        """
        log = self._log
        if len(new) == 1:  # the usual case takes no longer for a long run
            found = [looks_like_a_typo(log.seen_beside(of[0]) if of else log.seen, new[0])]
        else:
            known = np.array(log.reward, dtype=np.float64)
            known[of] = np.nan
            found = typos_among(known[~np.isnan(known)], np.array(new, dtype=np.float64))
        many = not any(found) or log.offers is not None or log.measured().size + len(found) > _FEW
        return found if many else [None] * len(found)

    def take_in(self, told: CheckedTell) -> None:
        """Do what `check_tell` has let pass."""
        if told.action == "amend":
            changes, added = self.entries(told)
            self.amend_all(changes)
            if told.note:
                self._log.remark(told.trial, told.note)
            for value in added:
                self.take_observation(self._log.index[told.trial], value, replicate_of=told.trial)
        if told.action != "tell":
            return
        index, model = self._log.index[told.trial], self._log.model[told.trial]
        row = self._row(told.trial)
        seen = self._observation(row, told.reward, told.trial, index, None if model < 0 else model)
        self._changing = True
        self._learn(seen)
        self._log.record(told.trial, told.reward)
        self._known.clear()
        self._notes.pop(told.trial, None)
        for value in told.more:
            self._learn(self._observation(row, value, len(self._log), index))
            self._log.observe(index, value, replicate_of=told.trial)
        if told.note:
            self._log.remark(told.trial, told.note)
        self._end()
        self._beware(first_of(told.reward))

    def check_fail(
        self,
        trial: Trial | int | str | None,
        reason: str = "",
        if_told: IfTold = "raise",
        candidate: Name | None = None,
    ) -> CheckedFail:
        """What `fail` would do, or the error it would raise; changes nothing."""
        one_of("if_told", if_told, IF_TOLD)
        trial_id = find_trial(self._log, self.domain, trial, candidate)
        text, log = check_remark("reason", reason), self._log
        if self.is_contextual:
            raise ValueError(
                "fail is for candidates of a fixed domain, which are then left out; in contextual rounds abandon the "
                "trial, or tell the reward that a failure is worth"
            )
        if trial_id in log.failed and if_told != "raise":
            return CheckedFail(trial_id, text, "skip")
        if trial_id not in log.failed and (not isnan(log.reward[trial_id]) or trial_id in log.retracted):
            if isnan(log.propensity[trial_id]):
                raise ValueError(f"trial {trial_id} was observed, not asked for; retract({trial_id}) withdraws it")
            if if_told == "amend":
                return CheckedFail(trial_id, text, "amend")
            if if_told == "same":
                raise AlreadyToldError(
                    f"trial {trial_id} has the reward {log.reward[trial_id]}, and is now said to have failed; if that "
                    f'is a correction, fail({trial_id}, if_told="amend")'
                )
        return CheckedFail(log.check_is_pending(trial_id), text, "fail")

    def take_failure(self, failed: CheckedFail) -> None:
        """Do what `check_fail` has let pass."""
        if failed.action == "amend":
            self.amend_all(self.entries(failed)[0])
        if failed.action != "fail":
            return
        index = self._log.index[failed.trial]
        row = self._listed.row(index)
        self._changing = True
        self._given_up(failed.trial)
        self._learn_failure(row, index)
        self._log.fail(failed.trial, failed.reason)
        self._known.clear()
        self._notes.pop(failed.trial, None)
        self._end()

    def check_observation(
        self,
        index: int | str,
        reward: Reward,
        available: Available = None,
        propensity: float | None = None,
        **presented: Action,
    ) -> ExternalObservation:
        """What `observe` would take in, or the error it would raise; changes nothing."""
        if self._log.offers is not None or any(value is not None for value in presented.values()):
            self._keep_up()
            offer = make_offer(self.models, self.domain, available=available, **presented)
            known = nan if propensity is None else _check_propensity(propensity)
            return ExternalObservation(self._position_in(offer, index), self.check_reward(reward), offer, known)
        if propensity is not None or available is not None:
            raise ValueError("propensity and available are for observations of contextual rounds")
        if count("index", index, 0) >= self.domain.n_candidates:
            raise ValueError(f"index must be below the number of candidates ({self.domain.n_candidates}), got {index}")
        return ExternalObservation(int(index), self.check_reward(reward))

    def check_results(self, table: Table, first: int = 0) -> list[ExternalObservation]:
        """What is measured already, in the column of results of a table, or the error that taking it in would raise.

        `first` is the number of its first candidate.
        """
        if table.result is not None and self._log.objectives:
            listed = ", ".join(map(repr, self._log.objectives))
            raise FileError(
                f"{table.result!r} is one column of results, and the objectives {listed} are measured; leave that "
                "column out: ",
                Remedy("ignore", [table.result]),
            )
        found = []
        for index, reward in table.results:
            try:
                found.append(self.check_observation(first + index, reward))
            except ValueError as error:
                raise ValueError(f"{table.called(index)}, column {table.result!r}: {error}") from None
        return found

    def _position_in(self, offer: Offer, index: int | str) -> int:
        """Position of the candidate that was played in a round."""
        if offer.is_whole:
            raise ValueError("candidates= is missing: rewards on a ball come by observe(0, reward, candidates=[x])")
        if isinstance(index, str) and isinstance(self.domain, Arms):
            index = self.domain.locate(index)
        if count("index", index, 0) >= len(offer):
            raise ValueError(f"index must be below the number of candidates of the round ({len(offer)}), got {index}")
        if index not in offer.choosable:
            raise ValueError(f"index must be one of the available candidates, {offer.choosable.tolist()}, got {index}")
        return int(index)

    def take_observation(
        self,
        index: int,
        value: Value,
        offer: Offer | None = None,
        propensity: float = nan,
        replicate_of: int | None = None,
    ) -> Trial:
        """Do what `observe` does, with what has been checked; for a further measurement of a trial, too."""
        row, trial_id = self._listed.row(index) if offer is None else offer.rows[index], len(self._log)
        self._changing = True
        self._learn(self._observation(row, value, trial_id, index))
        self._log.observe(index, value, propensity, offer, replicate_of)
        self._known.clear()
        self._end()
        self._beware(first_of(value))
        return self._log.trial(trial_id, self.domain)

    def _beware(self, value: float) -> None:
        """Warn, once per cause, if a reward that was just taken in does not look as stated or assumed."""
        monitor = self._monitor
        if abs(value) > monitor.limit:
            monitor.look_at_reward(value)
        if monitor.is_time(self._log.n_told) and self.forget is None and not isinstance(self.domain, Ball):
            rewards = np.array(self._log.reward, dtype=np.float64)
            known = np.flatnonzero(~np.isnan(rewards))
            if self.log_features is None or (self.log_features != "none" and self._is_short()):
                monitor.look_at_noise(self.models, self._rows(known), rewards[known])

    def _is_short(self) -> bool:
        """Whether all rows of a contextual run are few enough to be looked at on the way."""
        return self._log.n_told * self.models.n_columns <= _LOOKED_AT

    # -- corrections and added arms, which repeat the run -----------------------------------------------------------

    def check_amend(self, trial: Trial | int | str, reward: Measurements) -> CheckedTell:
        """What `amend` would do, or the error it would raise; changes nothing."""
        trial_id, values = self._log.check_told(trial, or_abandoned=True), self.check_rewards(reward)
        self._check_repeatable()
        known = self._log.value(trial_id) == values[0] and values == self._log.measurements(trial_id)
        return CheckedTell(trial_id, values[0], "skip" if known else "amend", values[1:])

    def check_retract(self, trial: Trial | int | str) -> int:
        """Id of a trial whose reward can be withdrawn, or the reason why not; changes nothing."""
        trial_id = self._log.check_told(trial)
        if trial_id in self._log.retracted:
            raise ValueError(f"the reward of trial {trial_id} was retracted already")
        self._check_repeatable()
        return trial_id

    def amend_all(self, changes: Mapping[int, Entry]) -> None:
        """Amend several rewards at once, by checked ids; None withdraws one, a `Failure` takes its place."""
        self.adopt(self.amended(changes))

    def amended(self, changes: Mapping[int, Entry]) -> Rerun:
        """The run repeated with some rewards amended, without changing this one; `adopt` takes it over."""
        self._check_repeatable()
        return Rerun(self, changes)

    def adopt(self, rerun: Rerun) -> None:
        """Take over the outcome of `amended`, in one step."""
        self.__dict__ = rerun.outcome(self)

    def _end(self) -> None:
        """Make the change part of the log, in one step."""
        self._log.events.commit()
        self._changing = False

    def _repair(self) -> None:
        """Repeat what is in the log in place of a state that was left half-way; see `guarding`."""
        if self.log_features == "none":
            raise RuntimeError(
                'the run was interrupted half-way, and log_features="none" keeps too little to repeat it; load the '
                "last state that was saved"
            )
        run = object.__new__(type(self))  # a view that does not ask for repairs
        vars(run).update(vars(self), _torn=False, _changing=False)
        self.__dict__ = Rerun(run, {}).outcome(run)

    def check_candidates(self, table: Table) -> Arrivals:
        """What `add_candidates` would add, or the error it would raise; changes nothing."""
        for _, reward in table.results if isinstance(table, Table) else ():
            self.check_reward(reward)
        return arriving(self.models, self.domain, table)

    def check_campaigns(self, campaigns: Mapping[str, Any], reward: str = "reward") -> Arrivals:
        """What `learn_from` would learn, or the error it would raise; changes nothing."""
        from alexp.table.memory import learning

        return learning(self.models, self.domain, campaigns, reward)

    def take_candidates(self, arrivals: Arrivals) -> list[int]:
        """Do what `check_candidates` or `check_campaigns` has let pass."""
        assert isinstance(self.domain, FiniteSet)
        before = self.domain.n_candidates
        self.adopt(Rerun(self, {}, extended(self.models, self.domain, arrivals)))
        return list(range(before, self.domain.n_candidates))

    def check_arm(self, name: str) -> str:
        """The name of an arm that can be added, or the reason why not; changes nothing."""
        if not isinstance(self.domain, Arms):
            raise TypeError(f"arms are added to a domain of alexp.Arms, and this one is {type(self.domain).__name__}")
        Arms([*self.domain.names, name])
        if n_arms_of(self.models) is not None:
            self._check_repeatable()
        return name

    def add_arm(self, name: str) -> int:
        """Add an arm that `check_arm` has let pass, and return its number; `Arms.add` is noticed at the next ask."""
        assert isinstance(self.domain, Arms)
        number = self.domain.add(name)
        self._keep_up()
        return number

    def _keep_up(self) -> None:
        """Take notice of arms that were added to the domain; the run is repeated if models have columns for arms."""
        n = self.domain.n_candidates
        if n == self._n_candidates:
            return
        if n_arms_of(self.models) in (None, n):
            self._take_arms(n)
            return
        self._check_repeatable()
        assert isinstance(self.domain, Arms)
        self.__dict__ = Rerun(self, {}, (self.models.with_arms(self.domain), self.domain)).outcome(self)

    def _take_arms(self, n: int) -> None:
        """There are n arms now."""
        self._n_candidates, self._fingerprint = n, None

    def _check_repeatable(self) -> None:
        if self.log_features == "none":
            raise ValueError(
                'log_features="none" keeps too little to repeat the run, so that rewards cannot be amended or '
                'retracted, nor arms added to models with columns for each; construct it with log_features="chosen"'
            )

    def _new_offers(self) -> OfferLog | None:
        """An empty log of contextual rounds; None on a fixed domain."""
        if self.log_features is None:
            return None
        return OfferLog(self.log_features, self.asks_matter(), self.models.n_columns)

    def _relevant(self) -> frozenset[str]:
        return self.relies_on


def any_given(presented: RoundArguments) -> bool:
    """Whether any of it was given."""
    return any(map(is_not, presented.values(), repeat(None)))


def offers_for(
    models: ModelClass, domain: Domain, n: int | None, available: Available, presented: RoundArguments
) -> list[Offer]:
    """One offer per trial: n different ones for n contexts, or the same one n times."""
    wanted = None if n is None else count("n", n)
    if isinstance(domain, Ball) and presented.get("candidates") is not None:
        raise ValueError("candidates= is for best, observe and confidence on a ball; an ask finds its point by itself")
    contexts = contexts_of(presented.get("context"), wanted)
    if contexts is None:
        return [make_offer(models, domain, available=available, **presented)] * (wanted or 1)
    several = [presented | {"context": context} for context in contexts]
    return [make_offer(models, domain, available=available, **one) for one in several]


def propensities(play: Play, round_: Round, n: int) -> FloatArray:
    """The probability of each of n candidates in a round, zero for those that may not be chosen, shape (n,)."""
    out = np.zeros(n)
    out[round_.indices] = [min(play.probability(position), 1.0) for position in range(len(round_))]
    return out


def warn_of(reasons: Iterable[str | None]) -> None:
    """Warn of rewards that look like typing errors."""
    for reason in reasons:
        if reason is not None:
            warn(reason)


def rows_of(log: TrialLog, candidates: CandidateTable | None, trials: IntArray) -> FloatArray:
    """The dictionary at the actions of k trials, (k, P), on fixed domains and of contextual rounds."""
    if log.offers is not None:
        return log.offers.rows(trials.tolist())
    assert candidates is not None
    return candidates.rows(np.array(log.index, dtype=np.int64)[trials])


def _listed(values: Sequence[Value]) -> str:
    return str(values[0]) if len(values) == 1 else str(list(values))


def _check_propensity(propensity: object) -> float:
    value = positive("propensity", propensity)
    if value > 1.0:
        raise ValueError(f"propensity must be a probability, above 0 and at most 1, got {propensity!r}")
    return value


def check_reward(reward: Reward) -> float:
    """Return a reward as a float, or raise unless it is finite and at most 1e100 in size."""
    return limited("reward", reward)
