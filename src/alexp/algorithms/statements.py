"""What is said about a run: bands of the reward, whether one may stop, whether the rewards contradict it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from alexp.common.arrays import Action, IntArray
from alexp.common.notebook import paragraph

DELTA = 0.05  # the default everywhere: statements fail in at most one run of twenty
Kind = Literal["certified", "calibrated", "estimate"]
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
    trials : if contradicted with only the shape of the noise stated, the trials that the best model misses most.
    """

    delta: float
    contradicted: bool
    at: int | None
    e_value: float
    rejected: IntArray
    speaks_against: tuple[str, ...]
    checked: bool = True
    trials: tuple[int, ...] = ()

    @property
    def verdict(self) -> str:
        """The sentence without details."""
        if not self.checked:
            return "not checked: so many models and rewards would take too long"
        if not self.contradicted:
            return "the rewards do not contradict what is assumed"
        return "none of the models explains the rewards" if self.trials else "the rewards contradict what is assumed"

    @property
    def text(self) -> str:
        """One sentence."""
        if not self.contradicted:
            return self.verdict
        found = f"{self.verdict}, first after {self.at} of them"
        if self.trials:
            return f"{found}; trials {', '.join(map(str, self.trials))} say so most"
        told = {
            "noise": "noise_std is too small, or what the models leave out looks like more noise",
            "bound": "the bound is too small",
            "models": "none of the models is true, and neither more noise nor a larger bound would explain it",
        }
        causes = "; or ".join(told[cause] for cause in self.speaks_against)
        return f"{found}: {causes}"

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return paragraph(self)


@dataclass(frozen=True)
class StopReport:
    """How far the recommended action may be from the best candidate.

    Attributes
    ----------
    x, index : the recommended action.
    delta : probability with which the statement may fail.
    epsilon : no candidate is better than it by more than this, in the sense of `kind`.
    target : the epsilon asked for, if any.
    plausible : numbers of the models not ruled out; if not certified, the likeliest that together have 1 - delta of the
        probability.
    disagreeing : those under which the action may be worse than `target`; without a target, those whose own
        estimate has its maximum elsewhere. Largest gap first. Empty if not certified.
    kind : "certified": holds with probability 1 - delta at every moment of the run, whatever the coefficients, if one
        of the models is true and the rest is as stated. "calibrated": not proved; for delta = .05 about
        4% of runs on real tables that it was not chosen on had a false report at some look. "estimate": by the
        algorithm's own posterior (by a mixture of all models in the units of the rewards, where it has none, or where
        numbers were stated and nothing is certified), which may be wrong.
    reason : why it is not certified; None if it is.
    between_candidates : on an Interval, by how much more a point between the candidates may be better; None where
        candidates are all there is, or where no bound is known (a Box, feature maps of one's own).
    checked : if certified, whether the rewards were held against what was stated, see `check_models`.
    rests_on : what a report that is no estimate rests on, as a clause.
    """

    x: Action
    index: int
    delta: float
    epsilon: float
    target: float | None
    plausible: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    disagreeing: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    kind: Kind = "estimate"
    reason: str | None = None
    between_candidates: float | None = None
    checked: bool = True
    rests_on: str | None = None

    @property
    def certified(self) -> bool:
        """Whether epsilon is proved from what was stated."""
        return self.kind == "certified"

    @property
    def can_stop(self) -> bool:
        """Whether the epsilon is more than an estimate, and within the target."""
        return self.kind != "estimate" and self.target is not None and self.epsilon <= self.target

    def __str__(self) -> str:
        if self.kind == "estimate":
            text = f"{described(self.x)} is probably within {self.epsilon:.3g} of the best candidate, by an estimate"
            return f"{text} without a guarantee: {self.reason}"
        times = 100.0 * (1.0 - self.delta)
        text = f"No candidate is better than {described(self.x)}"
        text += f" by more than {self.epsilon:.3g}" if self.epsilon > 0.0 else ""
        if self.between_candidates is not None:
            text += f", and no point between the candidates by more than {self.epsilon + self.between_candidates:.3g}"
        text += f", in at least {times:g} of 100 such runs, {self.rests_on}"
        text += "" if self.certified else ": calibrated, not certified"
        return text if self.checked else f"{text}; whether the rewards are as assumed was not checked"

    def _repr_html_(self) -> str:
        return paragraph(self)


def described(x: Action) -> str:
    """An action in one short line.

    >>> described(0.25), described(np.array([1.0, 2.5])), described("water")
    ('0.25', '(1, 2.5)', 'water')
    >>> described({"id": "r068", "temperature": 116.4})
    'r068'
    """
    if hasattr(x, "items") and len(x):  # a row of a table
        first, name = next(iter(x.items()))
        if str(first).lower() in ("id", "name"):
            return described(name)
        text = ", ".join(f"{key} = {described(value)}" for key, value in x.items())
    elif isinstance(x, np.ndarray | list | tuple) and np.ndim(x) == 1:
        text = f"({', '.join(described(value) for value in x)})"
    elif isinstance(x, float | np.floating):
        text = f"{x:.6g}"
    else:
        text = " ".join(str(x).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
