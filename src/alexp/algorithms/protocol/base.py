"""The ask/tell protocol that every algorithm shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict, cast

import numpy as np

from alexp.algorithms.protocol.asking import Asking
from alexp.algorithms.protocol.assumptions import ASSUMED_BOUND, ASSUMED_NOISE, Stated
from alexp.algorithms.protocol.contextual.expecting import Expecting
from alexp.algorithms.protocol.contextual.record import check_log_features
from alexp.algorithms.protocol.frames import rounds_frame, trials_frame
from alexp.algorithms.protocol.streams import ORDER, RandomState, Streams
from alexp.algorithms.protocol.trials import Trial, TrialLog
from alexp.algorithms.protocol.vigilance import Vigilance
from alexp.common.codec import State
from alexp.estimation.announcing import announce
from alexp.problem.candidates import CandidateTable
from alexp.problem.contextual.balls import Ball
from alexp.problem.contextual.domains import Arms, ContextualDomain
from alexp.problem.contextual.offers import check_problem
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass

if TYPE_CHECKING:
    import pandas as pd


class Shared(TypedDict, total=False):
    """Constructor keywords that all algorithms share."""

    noise_std: float | None
    reward_bound: float | None
    norm_bound: float | None
    repeats: bool
    direction: str
    random_state: RandomState
    log_features: str | None


class Algorithm(Asking):
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
        them corrections of rewards, certificates, and the repair of a run that was interrupted. Algorithms whose asks
        leave something behind (ALExp, Corral, ETC and others) keep all features with "chosen", too, because only
        so the run can be repeated: 8 n P bytes an ask, or 12 for each number that is not zero.

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

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """One that waits for its first round, where only that tells how many features the models have."""
        problem = (*args, *(kwargs[name] for name in ("models", "domain")[len(args) :] if name in kwargs))
        if len(problem) == 2 and getattr(problem[0], "awaits_round", False):
            check_problem(*problem)
            settings = {name: value for name, value in kwargs.items() if name not in ("models", "domain")}
            return cast(Self, Expecting(cls, *problem, settings))
        return super().__new__(cls)

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
        log_features: str | None = None,
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
        self.stated = Stated.checked(noise_std=noise_std, reward_bound=reward_bound, norm_bound=norm_bound)
        self.noise_std = self.stated.noise_std or ASSUMED_NOISE
        self.reward_bound = self.stated.reward_bound or ASSUMED_BOUND
        self.norm_bound = self.stated.norm_bound or self.reward_bound
        self._sign = 1.0 if direction == "maximize" else -1.0
        self._streams = Streams(random_state)
        if self.log_features is None:
            order = self._streams.generator(ORDER).permutation(domain.n_candidates)
            self._candidates = CandidateTable(models, domain, order)
        announce(type(self).__name__, models, domain.n_candidates or 0, self.ridges_per_model)
        self._n_arms = domain.n_candidates
        self._log = TrialLog(self._new_offers())
        self._notes = {}  # of trials whose reward is out
        self._known = {}  # what was computed since the last reward
        used = Stated(self.noise_std, self.reward_bound, self.norm_bound)
        self._vigilance = Vigilance(self.stated, used, self._relevant)
        if (known := self._known_features()) is not None:
            self._vigilance.look_at_features(models, known)

    def __repr__(self) -> str:
        models, candidates = self.models.n_models, self.domain.n_candidates
        what = "arm" if isinstance(self.domain, Arms) else "candidate"
        unknown = repr(self.domain) if isinstance(self.domain, Ball) else "candidates by the round"
        known = f"{candidates} {what}{'s' * (candidates != 1)}" if candidates else unknown
        counts = f"{models} model{'s' * (models != 1)}, {known}"
        waiting = self.n_asked - self.n_told - len(self._log.abandoned)
        return f"{type(self).__name__}({counts}, {self.n_told} told{f', {waiting} pending' if waiting else ''})"

    # -- what users call ---------------------------------------------------------------------------------------

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

    def _relevant(self) -> frozenset[str]:
        return self.relies_on
