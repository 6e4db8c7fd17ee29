"""What an algorithm can tell beyond asks and tells, each as a small protocol.

`offers(algorithm, WeighsModels)` looks at the class and computes nothing, so that it is cheap even where the answer
itself is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from inspect import getattr_static
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, TypeVar

from alexp.common.arrays import Action, FloatArray, IntArray
from alexp.problem.domains import Available

if TYPE_CHECKING:
    from alexp.algorithms.statements import Band, ModelCheck, StopReport
    from alexp.estimation.estimate import Estimate
    from alexp.estimation.mixture.replays import Hindsight

_Capability = TypeVar("_Capability")


class WeighsModels(Protocol):
    """Has probabilities over the models."""

    @property
    def probabilities(self) -> FloatArray:
        """Probability of every model now, shape (M,)."""


class SumsReturns(Protocol):
    """Keeps a cumulative return per model."""

    @property
    def cumulative_returns(self) -> FloatArray:
        """Returns of every model summed over all rewards so far, shape (M,)."""


class Certifies(Protocol):
    """Gives certificates that hold at every moment, from what was stated about noise and rewards."""

    @property
    def certifies(self) -> bool:
        """Whether enough was stated for this instance to give them, as long as the rewards do not contradict it."""

    @property
    def rests_on(self) -> str:
        """What they rest on, as a clause that begins with "if"."""

    def plausible_models(self, delta: float = ...) -> IntArray:
        """Numbers of the models not ruled out."""

    def confidence(
        self,
        x: Action = ...,
        delta: float = ...,
        *,
        context: object = ...,
        candidates: Action = ...,
        features: object = ...,
    ) -> Band:
        """Certified band of the reward, at an action or at all candidates of a contextual round."""

    def stop_report(
        self,
        delta: float = ...,
        epsilon: float | None = ...,
        *,
        available: Available = ...,
        context: object = ...,
        candidates: Action = ...,
        features: object = ...,
    ) -> StopReport:
        """How far the recommendation may be from the best, in all or in a contextual round."""

    def check_models(self, delta: float = ...) -> ModelCheck:
        """Whether the rewards contradict what was stated."""


class Predicts(Protocol):
    """Has a predictive mean and standard deviation of the reward."""

    def predict(self, x: Action) -> tuple[Any, Any]:
        """Mean and standard deviation at `x`."""


class LooksBack(Protocol):
    """Can say what it expected of every reward, and which rewards decided between models."""

    def hindsight(self, models: Sequence[int]) -> Hindsight:
        """The rewards so far as they were expected, by all models together and by some of them alone."""


class Estimates(Protocol):
    """Keeps one linear estimate of the reward."""

    @property
    def fit(self) -> Estimate | None:
        """The estimate on all rewards so far; None before there is one."""


def offers(algorithm: object, capability: type[_Capability]) -> TypeGuard[_Capability]:
    """Whether the algorithm's class has all members of a capability.

    >>> class Sure:
    ...     probabilities = (1.0,)
    >>> offers(Sure(), WeighsModels), offers(Sure(), Predicts)
    (True, False)
    """
    return provides(type(algorithm), capability)


def _provides(kind: type, capability: type) -> bool:
    """Whether a class has all members of a capability."""
    wanted = [name for name in vars(capability) if not name.startswith("_")]
    missing = object()
    return all(getattr_static(kind, name, missing) is not missing for name in wanted)


provides: Callable[[type, type], bool] = cache(_provides)
