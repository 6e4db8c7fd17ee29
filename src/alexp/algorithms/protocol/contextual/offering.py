"""Rounds that bring their candidates along: how they are checked, opened and asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import TypedDict, Unpack

import numpy as np

from alexp.algorithms.protocol.contextual.record import OfferLog
from alexp.algorithms.protocol.streams import ORDER
from alexp.algorithms.protocol.telling import Telling
from alexp.common.arrays import Action, IntArray
from alexp.common.validation import count
from alexp.problem.available import Available
from alexp.problem.candidates import Pending, Round
from alexp.problem.contextual.balls import Ball
from alexp.problem.contextual.domains import Arms
from alexp.problem.contextual.offers import Ids, Offer, contexts_of, n_arms_of, offer
from alexp.problem.contextual.tables import open_round
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass

_MOST_PENDING = 32  # trials whose rewards are out that a round reckons with


class Presented(TypedDict, total=False):
    """What a contextual round is asked for with; which of it is right depends on domain and models."""

    context: object
    candidates: Action
    features: object
    ids: Ids | None


def given(presented: Presented) -> bool:
    """Whether any of it was given."""
    return any(value is not None for value in presented.values())


class Offering(Telling):
    """The part of an algorithm that opens contextual rounds."""

    # Whether asks know nothing of pending trials: logs that 0.1.0 has written replay only so.
    ignores_pending: bool = False
    _n_opened = 0  # rounds opened so far: what is computed in one is of no use in another

    @property
    def is_contextual(self) -> bool:
        """Whether every round brings its candidates along."""
        return self._log.offers is not None

    def _check_offer(self, available: Available = None, **presented: Unpack[Presented]) -> Offer:
        """What a round with these arguments offers, or the error that says what would be right; changes nothing."""
        self._keep_up()
        return offer(self.models, self.domain, available=available, **presented)

    def check_offers(self, n: int | None, available: Available = None, **presented: Unpack[Presented]) -> list[Offer]:
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

    def _fresh(self, made: Offer, wanted: int) -> Offer:
        """Without `repeats`, what is left of an offer: candidates that are neither measured nor pending."""
        if self.repeats:
            return made
        if made.ids is None:
            raise ValueError("repeats=False needs ids=: only they tell which candidates have been measured before")
        played = self._offers.played
        left = np.array([k for k in made.choosable if not played[made.ids[k]]], dtype=np.int64)
        if left.size < wanted:
            raise ValueError(
                f"n must be at most {left.size}, every other candidate of this round has been measured or is pending; "
                f"got {wanted}; construct the algorithm with repeats=True to measure candidates again"
            )
        return made.only(left)

    def check_arm(self, name: str) -> str:
        """The name of an arm that can be added, or the reason why not; changes nothing."""
        if not isinstance(self.domain, Arms):
            raise TypeError(f"arms are added to a domain of alexp.Arms, and this one is {type(self.domain).__name__}")
        Arms([*self.domain.names, name])
        if n_arms_of(self.models) is not None:
            self._check_course()
        return name

    def add_arm(self, name: str) -> int:
        """Add an arm that `check_arm` has let pass, and return its number; `Arms.add` is noticed at the next ask."""
        assert isinstance(self.domain, Arms)
        number = self.domain.add(name)
        self._keep_up()
        return number

    @property
    def _offers(self) -> OfferLog:
        assert self._log.offers is not None
        return self._log.offers

    def _open_offer(self, made: Offer, wait: bool = True) -> Round:
        """The round of the next ask on an offer: visiting order by its number, and the trials whose rewards are out.

        If these are many, the newest will do: rewards of clicks may be out for days, and believing in what is to come
        takes time for each.
        """
        k, pending = len(self._log), None
        if wait and self._log.waiting:
            newest = tuple(islice(reversed(self._log.waiting), _MOST_PENDING))[::-1]
            indices = np.array([self._log.waiting[trial] for trial in newest], dtype=np.int64)
            pending = Pending(newest, indices, self._offers.rows(newest))
        self._n_opened += 1
        mark = np.array([self._n_opened, k], dtype=np.int64).tobytes()
        return open_round(made, self._visiting_order(k, len(made)), mark, pending)

    def _visiting_order(self, k: int, n: int) -> IntArray:
        """In which order the n candidates of ask k are looked at: the first of equally good ones is played."""
        return self._streams.generator(ORDER, k).permutation(n)

    def _waiting(self) -> IntArray:
        """Candidates of the pending trials, oldest first."""
        waiting = self._log.waiting
        return np.fromiter(waiting.values(), np.int64, len(waiting))


def offers_for(
    models: ModelClass, domain: Domain, n: int | None, available: Available, presented: Presented
) -> list[Offer]:
    """One offer per trial: n different ones for n contexts, or the same one n times."""
    wanted = None if n is None else count("n", n)
    if isinstance(domain, Ball) and presented.get("candidates") is not None:
        raise ValueError("candidates= is for best, observe and confidence on a ball; an ask finds its point by itself")
    contexts = contexts_of(presented.get("context"), wanted)
    if contexts is None:
        return [offer(models, domain, available=available, **presented)] * (wanted or 1)
    several = [presented | {"context": context} for context in contexts]
    return [offer(models, domain, available=available, **one) for one in several]
