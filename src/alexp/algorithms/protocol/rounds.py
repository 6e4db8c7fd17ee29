"""What passes between the ask/tell protocol and an algorithm: decisions out, observations in."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import NamedTuple

from alexp.common.arrays import FloatArray
from alexp.common.codec import Packable
from alexp.decision.plays import Play
from alexp.problem.contextual.offers import Offer


@dataclass(frozen=True)
class Decision:
    """What an algorithm decides in a round, before chance has spoken. Algorithms add what they decided it on."""

    play: Play


@dataclass(eq=False, slots=True)  # one per tell; a frozen one takes four times as long to make
class Observation:
    """A reward, as algorithms learn from it: larger is better, whatever the direction.

    Attributes
    ----------
    row : (P,) the dictionary at the action.
    reward : the reward, to be maximised.
    trial : the trial's id.
    index : the action's number among the candidates; None where candidates have no numbers.
    model : whose agent proposed it; None if no single one did, and for measurements from elsewhere.
    note : what the algorithm wanted to remember when it was asked; None for measurements from elsewhere.
    """

    row: FloatArray
    reward: float
    trial: int
    index: int | None
    model: int | None = None
    note: Packable = None


class Elsewhere(NamedTuple):
    """A measurement that was not asked for: candidate and reward, and of a contextual round what it offered."""

    candidate: int
    reward: float
    made: Offer | None = None
    propensity: float = nan
