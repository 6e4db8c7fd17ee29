"""What a user has stated about noise and rewards, as opposed to what is merely assumed."""

from __future__ import annotations

from typing import NamedTuple

from alexp.common.validation import LARGEST, SMALLEST, scale

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
