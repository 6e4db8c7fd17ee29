"""The part of a study that asks, and that takes in what was measured without having been asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack, overload

import numpy as np

from alexp.algorithms.base import (
    Algorithm,
    ExternalObservation,
    RoundArguments,
    any_given,
    check_reward,
    offers_for,
    warn_of,
)
from alexp.algorithms.log import Trial
from alexp.problem.domains import Available
from alexp.problem.offers import Offer
from alexp.study.database.events import Event, detail_of
from alexp.study.database.outcomes import same_call
from alexp.study.errors import SuspiciousRewardError
from alexp.study.following import Follower
from alexp.study.observations import contextual_observations, observations
from alexp.study.replay import Replica
from alexp.study.rounds.storing import offer_from, recordable
from alexp.study.workers.desk import AskDesk, Request
from alexp.study.workers.leases import WhenExpired
from alexp.study.workers.sharing import check_lease

if TYPE_CHECKING:
    import pandas as pd


class Proposing:
    """Asks and observations, on fixed domains and in contextual rounds."""

    _id: int
    _follower: Follower
    _is_contextual: bool
    when_expired: WhenExpired

    @overload
    def ask(
        self,
        n: None = None,
        available: Available = None,
        distinct: bool = False,
        key: str | None = None,
        lease: float | None = None,
        **presented: Unpack[RoundArguments],
    ) -> Trial: ...
    @overload
    def ask(
        self,
        n: int,
        available: Available = None,
        distinct: bool = False,
        key: str | None = None,
        lease: float | None = None,
        **presented: Unpack[RoundArguments],
    ) -> list[Trial]: ...
    def ask(
        self,
        n: int | None = None,
        available: Available = None,
        distinct: bool = False,
        key: str | None = None,
        lease: float | None = None,
        **presented: Unpack[RoundArguments],
    ) -> Trial | list[Trial]:
        """Propose an action, or a list of `n`, for instance a plate.

        `available` restricts the choice to some candidates, by index, boolean mask or, where candidates are texts, by
        name. No candidate is proposed while another worker measures it, unless there is no other; with `distinct` it
        is an error if one list would need the same candidate twice.

        A contextual round is asked for as in memory, with `context=`, `context=` and `candidates=`, or `features=`, and
        perhaps `ids=`. Features are computed before the study is locked, once; the log stores them with the trial, so
        that no other process computes them again.

        Whoever gives the call a `key` of its own may repeat it, after a crash or a lost connection: if it was stored,
        the same trials are returned and nothing happens twice. All methods that write take one.

        With `lease` the trials are this worker's for so many seconds, and longer by `heartbeat`. Trials of others whose
        lease has expired are handed out first (but not under a key of the caller's own, which stands for new trials,
        nor in contextual studies, where a trial belongs to its context: `take_over` hands those out), or given up if
        the study was created with `expired="abandon"`.
        """
        is_contextual = self._is_contextual or any_given(presented)
        made = self._offers(n, available, presented) if is_contextual else []
        may_offer = key is None and not is_contextual
        desk = AskDesk(self._id, self.when_expired, check_lease(lease), distinct, may_offer)

        def check(replica: Replica) -> Request:
            if not is_contextual:
                return Request(*replica.check_ask(1 if n is None else n, available, distinct))
            if not replica.still_offers(made):  # an arm was added meanwhile
                made[:] = offers_for(replica.algorithm.models, replica.algorithm.domain, n, available, presented)
            return Request(len(made), None, offers=tuple(replica.check_offers(made, distinct)))

        def act(replica: Replica, request: Request) -> list[Event]:
            given_up = [replica.abandon(trial) for trial in request.given_up]
            if request.offers:
                return given_up + replica.ask_offers(request.offers)
            held = [replica.algorithm.log.index[trial] for trial in request.offered]
            return given_up + replica.ask(request.wanted, request.available, distinct, held)

        replica, events = self._follower.act(check, act, key=key, beside=desk)
        asked = [event for event in events if event.kind == "ask"]
        same_call(key, asked or events, "ask", 1 if n is None else n)
        if key is not None and made:
            _same_rounds(key, asked, made)
        trials = [replica.algorithm.trial(trial) for trial in (*desk.offered, *(event.trial for event in asked))]
        if made:
            trials = [_as_passed(trial, one) for trial, one in zip(trials, made, strict=True)]
        return trials[0] if n is None else trials

    def _offers(self, n: int | None, available: Available, presented: RoundArguments) -> list[Offer]:
        """What is offered, by the models as they are known here: code of the user's runs before anybody waits."""
        algorithm = self._follower.known().algorithm
        return offers_for(algorithm.models, algorithm.domain, n, available, presented)

    def observe(
        self,
        index: int | str,
        reward: float,
        *,
        available: Available = None,
        propensity: float | None = None,
        key: str | None = None,
        sure: bool = True,
        **presented: Unpack[RoundArguments],
    ) -> Trial:
        """Take in a reward of candidate `index` that was measured elsewhere, without having asked for it.

        Whoever is not `sure` gets a `SuspiciousRewardError` for a reward that looks like a typing error.

        In contextual studies the round is passed as it would be to `ask`; `index` is a position in it, or the name of
        an arm, and `propensity` the probability with which whoever played it did so, if that is known.
        """

        def made(algorithm: Algorithm) -> list[ExternalObservation]:
            return [algorithm.check_observation(index, reward, available, propensity, **presented)]

        return self._take(made, key, sure)[0]

    def add_observations(
        self, frame: pd.DataFrame, nearest: bool = False, key: str | None = None, *, sure: bool = True
    ) -> list[Trial]:
        """Take in data measured elsewhere: all rows, or, if any is wrong, none.

        The frame has a column `reward` and names the candidates by `index`, by `x`, or by columns of their own
        table. Each row becomes a trial that is told at once, with no model and a missing propensity: the
        algorithm learns from it, and nobody can mistake it for a decision of the algorithm. Points off the grid
        of an Interval or Box are refused unless `nearest`.

        In contextual studies a row has `index` and `reward`, and what `observe` takes: some of `context`, `candidates`,
        `features`, `ids`, `available` and `propensity`. What `log_frame` gives is such a frame, where the log has all
        features.
        """

        def made(algorithm: Algorithm) -> list[ExternalObservation]:
            if algorithm.is_contextual:
                return contextual_observations(algorithm, frame)
            found = observations(algorithm.domain, frame, nearest)
            return [ExternalObservation(index, check_reward(reward)) for index, reward in found]

        return self._take(made, key, sure)

    def _take(self, make: Callable[[Algorithm], list[ExternalObservation]], key: str | None, sure: bool) -> list[Trial]:
        made = make(self._follower.known().algorithm)

        def check(replica: Replica) -> list[ExternalObservation]:
            if not replica.still_offers([row.made for row in made if row.made is not None]):
                made[:] = make(replica.algorithm)
            if not sure:
                _check_plausible(replica.algorithm, [row.reward for row in made])
            plain = [row._replace(reward=row.reward + 0.0) for row in made]  # databases do not keep the sign of zero
            rounds = [None if row.made is None else recordable(replica.algorithm, row.made) for row in plain]
            return [row._replace(made=one) for row, one in zip(plain, rounds, strict=True)]

        def act(replica: Replica, rows: list[ExternalObservation]) -> list[Event]:
            warn_of(replica.algorithm.suspect_observations([row.reward for row in rows]))
            return [replica.observe(*row) for row in rows]

        replica, events = self._follower.act(check, act, key=key)
        same_call(key, events, "observe", len(made))
        return [replica.algorithm.trial(event.trial) for event in events]

    def add_arm(self, name: str, key: str | None = None) -> int:
        """Add an arm to a study of arms, for all its workers, and return its number.

        Later rounds have it. Where models have columns for every arm, the run is repeated with columns for the new one.
        """
        _, events = self._follower.act(
            lambda replica: replica.algorithm.check_arm(name), lambda replica, arm: [replica.add_arm(arm)], key=key
        )
        same_call(key, events, "arm", 1)
        if detail_of(events[0]).get("arm") != name or events[0].candidate is None:
            raise ValueError(f"key {key!r} was used before, for another arm; another call needs another key")
        return events[0].candidate


def _check_plausible(algorithm: Algorithm, rewards: Sequence[float]) -> None:
    found = enumerate(algorithm.suspect_observations(rewards))
    if reasons := [f"observation {k}: {reason}" for k, reason in found if reason is not None]:
        raise SuspiciousRewardError("\n".join(reasons))


def _same_rounds(key: str, asked: Sequence[Event], made: Sequence[Offer]) -> None:
    """Raise if a key that was used before stood for other rounds."""
    for event, one in zip(asked, made, strict=True):
        if one.is_whole:  # rounds on a ball are all alike
            continue
        assert event.candidate is not None
        at, n_columns = event.candidate, one.rows.shape[1]
        stored = offer_from(detail_of(event), at, n_columns)
        if len(stored) > len(one) or not np.allclose(stored.rows[at], one.rows[at]):  # arms may have been added since
            raise ValueError(
                f"key {key!r} was used before, for the ask of trial {event.trial}, which had another context or other "
                "features; another call needs another key"
            )


def _as_passed(trial: Trial, made: Offer) -> Trial:
    """A trial with action and context as the caller knows them."""
    return trial if made.is_whole else replace(trial, x=made.actions[trial.index], context=made.context)
