"""What the algorithm of a study says about it: passed on, after catching up with everybody else."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

from alexp.algorithms.base import Algorithm, RoundArguments
from alexp.algorithms.capabilities import Certifies, offers
from alexp.algorithms.certified import DELTA
from alexp.algorithms.log import Recommendation
from alexp.common.arrays import Action, FloatArray, IntArray
from alexp.problem.domains import Available
from alexp.study.database.events import probabilities_of
from alexp.study.errors import NotOfferedError
from alexp.study.following import Follower

if TYPE_CHECKING:
    from alexp.algorithms.certified import Band, ModelCheck, StopReport


class About(TypedDict, total=False):
    """The contextual round that a statement is about."""

    available: Available
    context: object
    candidates: Action
    features: object


class Answering:
    """The part of a study that lets its algorithm answer."""

    _follower: Follower

    @property
    def algorithm(self) -> Algorithm:
        """The algorithm as of now, to be looked at; asking or telling it directly would not be recorded."""
        return self._follower.refresh().algorithm

    @property
    def probabilities(self) -> FloatArray:
        """q over the M models for the next round, shape (M,), for algorithms that have it."""
        with self._follower.mutex:
            algorithm = self.algorithm
            q = probabilities_of(algorithm)
        if q is None:
            raise NotOfferedError(f"algorithm {algorithm.name!r} has no probabilities over models")
        return q

    def best(self, *, available: Available = None, **presented: Unpack[RoundArguments]) -> Recommendation:
        """The action to stop with, judged by what is known now; of a contextual round, passed as to `ask`."""
        with self._follower.mutex:
            return self.algorithm.best(available=available, **presented)

    def policy(self, available: Available = None, **presented: Unpack[RoundArguments]) -> FloatArray:
        """The probability with which the next ask with these arguments would play each candidate, shape (n,)."""
        with self._follower.mutex:
            return self.algorithm.policy(available, **presented)

    def stop_report(self, delta: float = DELTA, epsilon: float | None = None, **about: Unpack[About]) -> StopReport:
        """Whether the recommended action is within `epsilon` of the best, and the smallest epsilon that holds.

        In contextual studies about one round, passed as to `ask`.
        """
        with self._follower.mutex:
            return self._certifying().stop_report(delta, epsilon, **about)

    def plausible_models(self, delta: float = DELTA) -> IntArray:
        """Numbers of the models not yet ruled out."""
        with self._follower.mutex:
            return self._certifying().plausible_models(delta)

    def confidence(
        self,
        x: Action = None,
        delta: float = DELTA,
        *,
        context: object = None,
        candidates: Action = None,
        features: object = None,
    ) -> Band:
        """Certified band of the noiseless reward at `x`, or at all candidates of a contextual round."""
        with self._follower.mutex:
            certifying = self._certifying()
            return certifying.confidence(x, delta, context=context, candidates=candidates, features=features)

    def _certifying(self) -> Certifies:
        algorithm: object = self.algorithm
        if not offers(algorithm, Certifies):
            raise NotOfferedError(f"algorithm {self.algorithm.name!r} gives no certificates")
        return algorithm

    def check_models(self, delta: float = DELTA) -> ModelCheck:
        """Whether the rewards contradict what was stated about noise, bound and models."""
        with self._follower.mutex:
            return self._certifying().check_models(delta)
