"""Asks: what may be chosen, what chance decides on, and what is recommended."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar, cast, overload

import numpy as np

from alexp.algorithms.protocol.contextual.offering import Offering, Presented, given
from alexp.algorithms.protocol.course import pack_restriction
from alexp.algorithms.protocol.rounds import Decision
from alexp.algorithms.protocol.streams import AGENTS, ASK
from alexp.algorithms.protocol.trials import NoRewardYetError, Recommendation, Trial
from alexp.common.arrays import Action, FloatArray, IntArray
from alexp.common.codec import Packable
from alexp.common.validation import count
from alexp.decision.plays import Play, Proposal
from alexp.estimation.device.subsets.engine import enumerating_card
from alexp.problem.available import Available, check_available
from alexp.problem.candidates import Pending, Round
from alexp.problem.contextual.offers import Ids, Offer, points_offer

MOST_KNOWN = 16  # results kept between two rewards


_T = TypeVar("_T")


class Asking(Offering):
    """The part of an algorithm that proposes and recommends."""

    # -- what users call ---------------------------------------------------------------------------------------

    @overload
    def ask(
        self,
        n: None = None,
        available: Available = None,
        *,
        context: object = None,
        candidates: Action = None,
        features: object = None,
        ids: Ids | None = None,
        scores: bool = False,
    ) -> Trial: ...
    @overload
    def ask(
        self,
        n: int,
        available: Available = None,
        *,
        context: object = None,
        candidates: Action = None,
        features: object = None,
        ids: Ids | None = None,
        scores: bool = False,
    ) -> list[Trial]: ...
    def ask(
        self,
        n: int | None = None,
        available: Available = None,
        *,
        context: object = None,
        candidates: Action = None,
        features: object = None,
        ids: Ids | None = None,
        scores: bool = False,
    ) -> Trial | list[Trial]:
        """Propose an action, or a list of `n` actions before any of their rewards is known.

        No candidate is proposed while a trial of it is pending, from this list or an earlier ask, unless all have one;
        with `repeats=False` none that has been measured either. `available` restricts the choice to some candidates, by
        index, boolean mask, or, where candidates are texts, by name.

        A contextual round is asked for with `context` (arms), `context` and `candidates`, or `features` and perhaps
        `ids` (blocks). `context` may hold `n` contexts, see `contexts_of`: one trial each. One round with `n` gives n
        different candidates; what other rounds have pending is no reason to avoid anything here, but counts as known to
        come. On a ball nothing is passed, and the action is a point of it. `scores=True` has every trial carry the
        probabilities of all candidates of its round.
        """
        presented: Presented = {"context": context, "candidates": candidates, "features": features, "ids": ids}
        if self.is_contextual or given(presented):
            trials = self.ask_offers(self.check_offers(n, available, **presented), scores)
        else:
            wanted, allowed = self.check_ask(1 if n is None else n, available)
            trials = [self._ask_once(allowed, scores) for _ in range(wanted)]
            self._end()  # all of them or none
        return trials[0] if n is None else trials

    def ask_offers(self, offers: Sequence[Offer], scores: bool = False) -> list[Trial]:
        """One trial for each of some offers that `check_offers` has let pass; one that comes again, without repeats."""
        trials: list[Trial] = []
        taken: dict[int, list[int]] = {}
        for made in offers:
            own = taken.setdefault(id(made), [])
            left = self.narrowed(made.least(own))
            trials.append(self._propose(self._open_offer(left), made=left, scores=scores))
            own.append(trials[-1].index)
        self._end()  # all of them or none
        return trials

    def narrowed(self, made: Offer) -> Offer:
        """An offer as it is, or, of the whole of a ball, the point that is to be played next; changes nothing."""
        return points_offer(self._aim()[None]) if made.is_whole else made

    def policy(
        self,
        available: Available = None,
        *,
        context: object = None,
        candidates: Action = None,
        features: object = None,
        ids: Ids | None = None,
    ) -> FloatArray:
        """The probability with which the next ask with these arguments would play each candidate, shape (n,).

        In the order of the candidates as they were passed, or of the domain; zero for what is not available. Nothing is
        recorded.
        """
        presented: Presented = {"context": context, "candidates": candidates, "features": features, "ids": ids}
        if self.is_contextual or given(presented):
            (made,) = self.check_offers(None, available, **presented)
            if made.is_whole:
                raise TypeError("policy lists probabilities of candidates, and a ball has infinitely many points")
            round_, n = self._open_offer(made), len(made)
        else:
            _, allowed = self.check_ask(1, available)
            round_, n = self._open(allowed), self.domain.n_candidates
        return chances(self._decision(round_).play, round_, n)

    def best(
        self,
        *,
        available: Available = None,
        context: object = None,
        candidates: Action = None,
        features: object = None,
        ids: Ids | None = None,
    ) -> Recommendation:
        """The action to stop with, judged by what is known now; of a contextual round, on the set that it offers."""
        presented: Presented = {"context": context, "candidates": candidates, "features": features, "ids": ids}
        return self._best(*self._recommended_on(available, presented))[0]

    # -- checks ------------------------------------------------------------------------------------------------

    def check_ask(self, n: int, available: Available = None) -> tuple[int, IntArray | None]:
        """Number of trials and allowed candidates as `ask` would take them, or its error; changes nothing."""
        wanted, allowed = count("n", n), check_available(available, self.domain)
        if not self.repeats and (left := self.choosable(allowed).size) < wanted:
            whose = "candidate" if allowed is None else "available candidate"
            if left == 0:
                raise ValueError(
                    f"every {whose} has been measured or is pending; tell or abandon what is pending, allow more, or "
                    "construct the algorithm with repeats=True"
                )
            raise ValueError(f"n must be at most {left}, every other {whose} has been measured or is pending; got {n}")
        return wanted, allowed

    def choosable(self, allowed: IntArray | None = None) -> IntArray:
        """The candidates that an ask would choose from now, if those with the `allowed` indices (all if None) may be.

        They are those with the fewest pending trials, which is none unless all have one; without `repeats`, those that
        have neither a pending trial nor a reward.
        """
        if self.ignores_pending:
            return np.arange(self.domain.n_candidates) if allowed is None else allowed
        if allowed is None and not self.repeats:
            free = np.ones(self.domain.n_candidates, dtype=bool)
            free[self._waiting()] = free[self._log.measured()] = False
            return np.flatnonzero(free)
        taken = np.bincount(self._waiting(), minlength=self.domain.n_candidates)
        if not self.repeats:
            taken[self._log.measured()] += 1
        own = np.arange(taken.size) if allowed is None else allowed
        least = taken[own].min() if self.repeats else 0
        return np.asarray(own[taken[own] == least])

    # -- inside ------------------------------------------------------------------------------------------------

    def _open(self, allowed: IntArray | None) -> Round:
        """The round of an ask: what may be chosen, and the trials whose rewards are out."""
        listed = self._listed
        if self.ignores_pending:
            return listed.round(allowed, copied=True)
        if self.repeats and not self._log.waiting:
            return listed.round(allowed)
        trials, indices = tuple(self._log.waiting), self._waiting()
        pending = Pending(trials, indices, listed.rows(indices)) if trials else None
        return listed.round(self.choosable(allowed), pending)

    def _ask_once(self, allowed: IntArray | None, scores: bool = False) -> Trial:
        return self._propose(self._open(allowed), self.restriction(allowed), scores=scores)

    @property
    def decides_on(self) -> str | None:
        """The device that decisions are computed on, by its name; None for the CPU as everybody has it."""
        return self.models.device or enumerating_card(self.models.enumerated_on)

    def take_trial(
        self,
        made: Offer | None,
        index: int,
        model: int | None,
        explored: bool,
        propensity: float,
        allowed: IntArray | None = None,
    ) -> None:
        """Take over a trial that was decided on elsewhere, among the `allowed` candidates.

        Nothing is decided here. Where asking leaves more behind than the trial, that is computed for the one taken;
        contextual rounds, `made` before, are taken only where it does not.
        """
        if made is None and self.asks_matter():
            round_ = self._open(allowed)
            position = int(np.flatnonzero(round_.indices == index)[0])
            self._propose(round_, self.restriction(allowed), Proposal(position, model, explored, propensity))
        else:
            self._begin()
            self._log.append(index, model, explored, propensity, made=made)
        self._end()

    def _propose(
        self,
        round_: Round,
        restriction: bytes | None = None,
        played: Proposal | None = None,
        made: Offer | None = None,
        scores: bool = False,
    ) -> Trial:
        """One trial: what chance decides on, or what is known to have been `played` when a run is repeated."""
        decision = self._decision(round_)
        self._begin()
        self._commit(round_, decision)
        proposal = played or decision.play.draw(self._streams.generator(ASK, len(self._log)))
        index = int(round_.indices[proposal.position])
        proposal.propensity = min(proposal.propensity, 1.0)  # a sum of probabilities may be rounded beyond one
        note = self._note(decision, proposal)
        trial_id = self._log.append(index, proposal.model, proposal.explored, proposal.propensity, restriction, made)
        if note is not None:
            self._notes[trial_id] = note
        n = self.domain.n_candidates if made is None else len(made)
        return self._log.trial(trial_id, self.domain, chances(decision.play, round_, n) if scores else None)

    def _recommended_on(self, available: Available, presented: Presented) -> tuple[Round, Offer | None]:
        """The round that a recommendation is about; NoRewardYetError before the first reward."""
        if self.is_contextual or given(presented):
            made = self._check_offer(available, **presented)
            if made.is_whole and self._log.n_told:
                made = points_offer(self._peak()[None])
            round_ = self._open_offer(made, wait=False)
        else:
            allowed = check_available(available, self.domain)
            made, round_ = None, self._everything if allowed is None else self._listed.round(allowed)
        if self._log.n_told == 0:
            raise NoRewardYetError("best() needs at least one reward; call tell() first")
        return round_, made

    def _best(self, round_: Round, made: Offer | None) -> tuple[Recommendation, int]:
        """The recommendation in a round, and its position there."""
        position, value, model = self._recommend(round_)
        index = int(round_.indices[position])
        x = self.domain[index] if made is None else made.actions[index]
        return Recommendation(x, index, self._sign * value, model), position

    def restriction(self, allowed: IntArray | None) -> bytes | None:
        """What must be remembered of the candidates that an ask was allowed to choose, so that it can be repeated."""
        if allowed is None or not self.asks_matter():
            return None
        return pack_restriction(allowed, self.domain.n_candidates)

    # -- what subclasses provide -------------------------------------------------------------------------------

    @abstractmethod
    def _decide(self, round_: Round) -> Decision:
        """What to do in a round, given all rewards so far; changes nothing."""

    def _commit(self, round_: Round, decision: Decision) -> None:
        """Take note that a decision is acted on."""

    def _note(self, decision: Decision, proposal: Proposal) -> Packable:
        """What to remember about a trial until its reward comes, as JSON data and arrays; None for nothing."""
        return None

    @abstractmethod
    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        """Position of the best choice of a round, its estimated reward, and the model behind it."""

    def _aim(self) -> FloatArray:
        """On a ball, the point (dim,) that the next ask plays; a round on it alone is then decided. Changes nothing."""
        raise NotImplementedError

    def _peak(self) -> FloatArray:
        """On a ball, the point (dim,) to stop with."""
        raise NotImplementedError

    @classmethod
    def plays_balls(cls) -> bool:
        """Whether it finds points of a ball, and not only the best of some candidates."""
        return cls._aim is not Asking._aim

    @classmethod
    def asks_matter(cls) -> bool:
        """Whether asking leaves anything behind but the trial, so that a run is repeated with its asks."""
        return cls._commit is not Asking._commit or cls._note is not Asking._note

    # -- what subclasses may use -------------------------------------------------------------------------------

    def _agents_chance(self) -> np.random.Generator:
        """Random numbers of agents and posterior draws: a function of the seed and of the number of rewards.

        Contextual rounds come between rewards as well, often many of them: there every ask has its own.
        """
        key = (self._log.n_told, len(self._log)) if self.is_contextual else (self._log.n_told,)
        return self._streams.generator(AGENTS, *key)

    def _once(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """What `make` computes from the rewards so far; computed again only after another reward."""
        if key not in self._known:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[key] = make()
        return cast(_T, self._known[key])

    def _keep_only(self, round_: Round, decision: Decision) -> None:
        """Forget what was computed for other rounds, because acting on this decision changes what they would be."""
        self._known = {("decision", round_.key): decision}

    def _decision(self, round_: Round) -> Decision:
        """The decision of a round, made once per set of choices and reward."""
        return self._once(("decision", round_.key), lambda: self._decide(round_))


def chances(play: Play, round_: Round, n: int) -> FloatArray:
    """The probability of each of n candidates in a round, zero for those that may not be chosen, shape (n,)."""
    out = np.zeros(n)
    out[round_.indices] = [min(play.probability(position), 1.0) for position in range(len(round_))]
    return out
