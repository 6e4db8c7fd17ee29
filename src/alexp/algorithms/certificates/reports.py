"""What a user reads: bands, when to stop, and whether the rewards are as stated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from alexp.common.arrays import Action, IntArray

Ends = Any  # a float for one action, an array (n,) for several
_LONGEST = 60  # characters of an action in a sentence


class Band(NamedTuple):
    """Certified lower and upper ends of the reward; floats for one action, arrays for several."""

    lower: Ends
    upper: Ends


@dataclass(frozen=True)
class ModelCheck:
    """Whether the rewards contradict what was stated: noise_std, the bound, and that one of the models is true.

    Attributes
    ----------
    contradicted : whether they do. If everything stated is true, this ever happens with probability at most `delta`.
    at : number of rewards after which it first did; None if it has not.
    e_value : log of the e-value; contradicted once it exceeds log(1 / delta).
    rejected : numbers of the models that are contradicted each by itself, at level delta / M.
    speaks_against : if contradicted, "noise" where noise up to ten times as large would explain the rewards, "bound"
        where a bound up to a hundred times as large would, "models" where neither does; empty otherwise.
    checked : False where checking would have taken too long; nothing is known then.
    """

    delta: float
    contradicted: bool
    at: int | None
    e_value: float
    rejected: IntArray
    speaks_against: tuple[str, ...]
    checked: bool = True

    @property
    def text(self) -> str:
        """One sentence."""
        if not self.checked:
            return "not checked: so many models and rewards would take too long"
        if not self.contradicted:
            return "the rewards do not contradict what was stated"
        told = {
            "noise": "noise_std is too small, or what the models leave out looks like more noise",
            "bound": "the bound is too small",
            "models": "none of the models is true, and neither more noise nor a larger bound would explain it",
        }
        causes = "; or ".join(told[cause] for cause in self.speaks_against)
        return f"the rewards contradict what was stated, first after {self.at} of them: {causes}"

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class StopReport:
    """How far the recommended action may be from the best candidate.

    Attributes
    ----------
    x, index : the recommended action.
    delta : probability with which a certified statement may fail, over all moments of the run together.
    epsilon : no candidate is better than it by more than this: with probability 1 - delta at every moment of the run if
        `certified`; otherwise an estimate by the algorithm's own posterior (by a mixture of all models in the units of
        the rewards, where it has none or the rewards contradict what it was told), which may be wrong.
    target : the epsilon asked for, if any.
    plausible : numbers of the models not ruled out; if not certified, the likeliest that together have 1 - delta of the
        probability.
    disagreeing : those under which the action may be worse than `target`; without a target, those whose own
        estimate has its maximum elsewhere. Largest gap first. Empty if not certified.
    certified : whether epsilon is proved from what was stated.
    reason : why it is not; None if it is.
    between_candidates : on an Interval, by how much more a point between the candidates may be better; None where
        candidates are all there is, or where no bound is known (a Box, feature maps of one's own).
    checked : whether the rewards were held against what was stated, see `check_models`.
    rests_on : if certified, what that rests on, as a clause.
    """

    x: Action
    index: int
    delta: float
    epsilon: float
    target: float | None
    plausible: IntArray
    disagreeing: IntArray
    certified: bool = False
    reason: str | None = None
    between_candidates: float | None = None
    checked: bool = True
    rests_on: str | None = None

    @property
    def can_stop(self) -> bool:
        """Whether the epsilon is certified and within the target."""
        return self.certified and self.target is not None and self.epsilon <= self.target

    def __str__(self) -> str:
        text = f"{described(self.x)} is"
        if not self.certified:
            text += f" probably within {self.epsilon:.3g} of the best candidate, by an estimate without a guarantee"
            return f"{text}: {self.reason}"
        times = 100.0 * (1.0 - self.delta)
        text += f" within {self.epsilon:.3g} of the best candidate, in at least {times:g} of 100 runs like this one"
        if self.between_candidates is not None:
            everywhere = self.epsilon + self.between_candidates
            text += f", and within {everywhere:.3g} of the best point between the candidates"
        if self.rests_on is not None:
            text += f", {self.rests_on}"
        return text if self.checked else f"{text}; whether the rewards are as stated was not checked"


def described(x: Action) -> str:
    """An action in one short line.

    >>> described(0.25), described(np.array([1.0, 2.5])), described("water")
    ('0.25', '(1, 2.5)', 'water')
    """
    if hasattr(x, "items"):  # a row of a table
        text = ", ".join(f"{key} = {described(value)}" for key, value in x.items())
    elif isinstance(x, np.ndarray | list | tuple) and np.ndim(x) == 1:
        text = f"({', '.join(described(value) for value in x)})"
    elif isinstance(x, float | np.floating):
        text = f"{x:.6g}"
    else:
        text = " ".join(str(x).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
