"""What an algorithm can tell beyond asks and tells, each as a small protocol.

`offers(algorithm, WeighsModels)` looks at the class and computes nothing, so that it is cheap even where the answer
itself is not.
"""

from __future__ import annotations

from inspect import getattr_static
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard, TypeVar

from alexp.common.arrays import Action, FloatArray, IntArray

if TYPE_CHECKING:
    from alexp.algorithms.certified import Band, StopReport
    from alexp.estimation.estimate import Estimate

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
    """Gives certificates that hold at every moment."""

    @property
    def certifies(self) -> bool:
        """Whether this instance, with its settings, can give them."""

    def plausible_models(self, delta: float = ...) -> IntArray:
        """Numbers of the models not ruled out."""

    def confidence(self, x: Action, delta: float = ...) -> Band:
        """Certified band of the reward."""

    def stop_report(self, delta: float = ..., epsilon: float | None = ...) -> StopReport:
        """How far the recommendation may be from the best."""


class ChecksModels(Protocol):
    """Notices when no model explains the rewards."""

    def check_models(self, delta: float = ...) -> object:
        """What the rewards say about all models at once; text of it is one sentence."""


class Predicts(Protocol):
    """Has a predictive mean and standard deviation of the reward."""

    def predict(self, x: Action) -> tuple[Any, Any]:
        """Mean and standard deviation at `x`."""


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
    wanted = [name for name in vars(capability) if not name.startswith("_")]
    missing = object()
    return all(getattr_static(type(algorithm), name, missing) is not missing for name in wanted)
