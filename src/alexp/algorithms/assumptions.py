"""What a user has stated about noise and rewards, what is merely assumed, and warnings when the data disagree."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.common.validation import LARGEST, SMALLEST, scale
from alexp.common.warning import caution, quietly as quietly
from alexp.estimation.credible import residual_noise, typical_norms
from alexp.problem.candidates import CandidateTable
from alexp.problem.models import ModelClass
from alexp.problem.offers import Reference

ASSUMED_NOISE, ASSUMED_BOUND = 0.1, 1.0  # what algorithms that need a number work with when none was stated


class AssumptionWarning(UserWarning):
    """The data contradict something that was stated or assumed about them."""


class NotCertified(RuntimeError):
    """There is no statement to be made: an assumption it would rest on was not stated, or the data contradict it."""


class Stated(NamedTuple):
    """What the user stated; None where nothing was.

    Attributes
    ----------
    noise_std : standard deviation (sub-Gaussian parameter) of the noise.
    reward_bound : the noiseless reward of every candidate is at most this in size.
    norm_bound : the coefficients of the true model, in the features as `ModelClass.features` gives them, have at
        most this Euclidean norm.
    """

    noise_std: float | None
    reward_bound: float | None
    norm_bound: float | None

    @classmethod
    def checked(cls, **values: float | None) -> Stated:
        """Positive numbers whose squares are numbers, too, or None."""
        out = cls(**{name: None if value is None else scale(name, value) for name, value in values.items()})
        for name, bound in (("reward_bound", out.reward_bound), ("norm_bound", out.norm_bound)):
            if out.noise_std is not None and bound is not None and not SMALLEST <= bound / out.noise_std <= LARGEST:
                raise ValueError(
                    f"{name} must be at most {LARGEST:g} times noise_std, and at least {SMALLEST:g} times; "
                    f"got {name}={bound!r} with noise_std={out.noise_std!r}"
                )
        return out


_NOISES = 5.0  # how many times the noise beyond the bound a reward may be
_OFF = 3.0  # factor between stated and estimated noise
_LOOKS = {2**k for k in range(4, 40)}  # numbers of rewards at which the noise is estimated


def warn(message: str) -> None:
    """Warn about data that do not go with what is assumed, at the line that called the library."""
    caution(message, AssumptionWarning)


class AssumptionMonitor:
    """What an algorithm was told to expect, and what it has warned of.

    Parameters
    ----------
    stated : what the user stated.
    used : the numbers in use, by the same names.
    relies_on : gives the names of those that matter to the algorithm.
    """

    def __init__(self, stated: Stated, used: Stated, relies_on: Callable[[], frozenset[str]]) -> None:
        self._stated, self._used, self._relies_on = stated, used, relies_on
        self._warned: set[str] = set()

    def look_at_features(self, models: ModelClass, candidates: CandidateTable | Reference) -> None:
        """Warn if no coefficients within the norm bound can give rewards of the size that is expected."""
        norm, bound = self._used.norm_bound, self._used.reward_bound
        if "norm_bound" not in self._relies_on() or norm is None or bound is None or models.enumerated_on is not None:
            return
        norms = typical_norms(models, candidates)
        largest, usual = norm * float(norms.max()), norm * float((norms / models.roots).min())
        if not (largest < 0.1 * bound or usual > 10.0 * bound):
            return
        size = float(np.median(norms))
        seen, limit = (largest, "at most") if largest < 0.1 * bound else (usual, "at least")
        alone = self._stated.norm_bound is not None and self._stated.reward_bound is None
        advice = "reward_bound, too" if alone else "norm_bound for these features, or scale them, for instance with "
        advice += "" if alone else "models.normalized(domain)"
        self._warn(
            "features",
            f"features of size {size:.3g} with {self._name('norm_bound')} give rewards of {limit} about {seen:.2g}, "
            f"which does not go with {self._name('reward_bound')}: state {advice}",
        )

    @cached_property
    def limit(self) -> float:
        """Size beyond which a reward contradicts the bound."""
        bound, noise = self._used.reward_bound, self._used.noise_std or 0.0
        return inf if "reward_bound" not in self._relies_on() or bound is None else bound + _NOISES * noise

    def look_at_reward(self, value: float) -> None:
        """Warn of a reward beyond the limit."""
        self._warn(
            "bound",
            f"the reward {value:g} is beyond {self._name('reward_bound')} by more than five times the noise; "
            f"reward_bound, the largest size of a noiseless reward, should be {abs(value):.2g} or more",
        )

    def is_time(self, n_told: int) -> bool:
        """Whether to estimate the noise now: at 16, 32, 64, ... rewards, if it matters."""
        return n_told in _LOOKS and "noise_std" in self._relies_on() and "noise" not in self._warned

    def look_at_noise(self, models: ModelClass, rows: FloatArray, rewards: FloatArray) -> None:
        """Warn if residuals of all rewards (t,) at rows (t, P) are three times off the noise."""
        noise = self._used.noise_std
        unknown = noise is None or models.enumerated_on is not None  # where no model is looked at by itself
        found = None if unknown else residual_noise(models, rows, rewards)
        if noise is None or found is None or noise / _OFF <= found <= _OFF * noise:
            return
        if found < noise and np.unique(rewards).size <= 2:  # clicks: rare ones vary little, and noise bounds them still
            return
        larger = "the noise is larger, or none of the models is true" if found > noise else "the noise is smaller"
        found = max(found, 1e-6 * noise)  # without noise there is only rounding
        self._warn(
            "noise",
            f"the model that fits best leaves residuals of about {found:.2g}, unlike {self._name('noise_std')}: "
            f"{larger}; noise_std should be about {found:.2g}",
        )

    def _name(self, argument: str) -> str:
        value = getattr(self._used, argument)
        if getattr(self._stated, argument) is not None:
            return f"{argument}={value:g} (given)"
        if argument == "norm_bound":
            return f"{argument}={value:g} (not given; reward_bound stands in for it)"
        return f"{argument}={value:g} (not given; assumed)"

    def _warn(self, cause: str, message: str) -> None:
        if cause not in self._warned:
            self._warned.add(cause)
            warn(message)
