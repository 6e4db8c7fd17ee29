"""Study: an algorithm whose run is stored in a database and shared by many processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, Self, TypedDict, Unpack, cast, overload

import numpy as np

from alexp.algorithms.base import (
    Algorithm,
    CheckedFail,
    CheckedTell,
    ExternalObservation,
    IfTold,
    RoundArguments,
    any_given,
    offers_for,
    warn_of,
)
from alexp.algorithms.capabilities import Certifies, offers
from alexp.algorithms.evidence_mixture import EvidenceMixture
from alexp.algorithms.log import AlreadyToldError, Entry, Recommendation, Trial
from alexp.algorithms.naming import Name, find_trial
from alexp.algorithms.statements import DELTA
from alexp.common.arrays import Action, FloatArray, IntArray
from alexp.common.progress import Listener, Progress, listening
from alexp.common.validation import count
from alexp.problem.domains import Available, Domain, FiniteSet
from alexp.problem.objectives import Measurements, Reward, Value
from alexp.problem.offers import Offer
from alexp.problem.plates import check_unrestricted
from alexp.study import leases, logbook
from alexp.study.candidates import (
    TrialLine,
    contextual_observations,
    labeller,
    observations,
    trial_lines,
    trial_states,
)
from alexp.study.errors import NotOfferedError, SuspiciousRewardError
from alexp.study.events import FAILED, BeliefRecord, Event, EventDict, detail_of, probabilities_of
from alexp.study.follower import Follower
from alexp.study.leases import (
    AskLeases,
    AskRequest,
    HeartbeatLeases,
    Lease,
    TakeOverLeases,
    WhenExpired,
    check_lease,
)
from alexp.study.logbook import LogCache, describe, same_call, same_rewards
from alexp.study.problem import Origin
from alexp.study.records import StudyRow
from alexp.study.replay import Replica, as_stored, offer_from, recordable
from alexp.study.sources import REWARDED, NewResults, new_results
from alexp.study.storage import Storage
from alexp.study.view import Counts, Explanation, HeldTrial, Standing, StudyView, TellCounts
from alexp.study.viewing import Identity, ViewOptions, counts, explanation, make_view
from alexp.table.columns import REWARD
from alexp.table.files import Dialect
from alexp.table.table import Table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from alexp.algorithms.statements import Band, ModelCheck, StopReport

AnyTrial = Trial | int | str  # itself, its id, or its id as text
AnyReward = Measurements | Literal["failed"]
Checked = CheckedTell | CheckedFail


class TrialResult(NamedTuple):
    """A result: the trial, its reward (several measurements as a list, or "failed"), or by the name of the candidate.

    If both trial and candidate are given they must agree.
    """

    trial: AnyTrial | None
    reward: AnyReward
    candidate: Name | None = None
    note: str = ""


Results = Iterable[tuple[AnyTrial, AnyReward] | TrialResult] | Mapping[int, AnyReward] | Mapping[str, AnyReward]


class About(TypedDict, total=False):
    """Arguments that name one contextual round, for certificates."""

    available: Available
    context: object
    candidates: Action
    features: object


class Study:
    """A durable run of an algorithm; make one with `create_study` or `load_study`.

    Many processes and threads may use the same study. Each keeps the algorithm in memory. A call that writes locks the
    study, applies the new events of other processes, acts, appends its events, and commits. What a method has returned
    is therefore in the database, and all processes agree on every trial.

    Views, reports, tables and certificates are computed from a second copy of the algorithm, which is read from the
    database when it is first needed: other threads ask and tell meanwhile.

    Attributes
    ----------
    result_column : the name of the column of results in files: that of the table that the study began with, if it was
        stated there, otherwise "reward". Where several objectives are measured, files have their names instead.
    dialect : how the file of that table is written; commas and points where there is none.
    """

    def __init__(
        self,
        storage: Storage,
        row: StudyRow,
        make: Callable[[], Algorithm],
        first: Algorithm,
        origin: Origin | None = None,
    ) -> None:
        self.name, self.created_at, self.library, self.storage = row.name, row.created_at, row.library, storage
        self.result_column = (None if origin is None else origin["result"]) or REWARD
        self.dialect = Dialect() if origin is None else Dialect(**cast("dict[str, Any]", origin["dialect"]))
        self._id, self._is_contextual = row.id, first.is_contextual
        self.when_expired: WhenExpired = "abandon" if row.when_expired == "abandon" else "offer"
        made = [first]

        def make_or_first() -> Algorithm:
            with suppress(IndexError):
                return made.pop()
            return make()

        self._follower = Follower(storage, row, make_or_first)
        self._progress: Progress | None = None
        self._reader = Follower(storage, row, make_or_first)  # for what may take long; asks and tells do not wait
        self._log_cache = LogCache(row.id)
        self._last_view: tuple[Replica, ViewOptions, dict[int, Lease], StudyView] | None = None

    def __dir__(self) -> list[str]:
        ours = {"counting", "explanation", "new_results", "refresh", "take_results"}  # for the service and the shell
        return sorted(set(super().__dir__()) - ours)

    # -- asking ------------------------------------------------------------------------------------------------

    @overload
    def ask(
        self,
        n: None = None,
        available: Available = None,
        distinct: bool = False,
        key: str | None = None,
        lease: float | None = None,
        *,
        where: str | None = None,
        at_most: Mapping[str, int] | None = None,
        together: Sequence[str] | str | None = None,
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
        *,
        where: str | None = None,
        at_most: Mapping[str, int] | None = None,
        together: Sequence[str] | str | None = None,
        **presented: Unpack[RoundArguments],
    ) -> list[Trial]: ...
    def ask(
        self,
        n: int | None = None,
        available: Available = None,
        distinct: bool = False,
        key: str | None = None,
        lease: float | None = None,
        *,
        where: str | None = None,
        at_most: Mapping[str, int] | None = None,
        together: Sequence[str] | str | None = None,
        **presented: Unpack[RoundArguments],
    ) -> Trial | list[Trial]:
        """Propose an action, or a list of `n`, for instance a plate.

        `available` restricts the choice to some candidates, by index, boolean mask or, where candidates are texts, by
        name. Candidates of a table with a number that was filled in are proposed only where it names them. No candidate
        is proposed while another worker measures it, unless there is no other; with `distinct` it is an error if one
        list would need the same candidate twice.

        Where candidates have named columns, `where` is a condition that they must meet, `at_most` says how many of the
        n trials may share a value of a column, and `together` names columns with one value for all n. The latter two
        are about new trials, so that no expired ones are handed out.

        A contextual round is passed as in memory: `context=`, `context=` and `candidates=`, or `features=`, and perhaps
        `ids=`. Features are computed once, before the study is locked, and stored with the trial.

        A call with a `key` may be repeated after a crash or a lost connection: if it was stored, the same trials are
        returned and nothing is done a second time. All methods that write take a key.

        With `lease` the trials are reserved for this worker for so many seconds; `heartbeat` prolongs that. Trials of
        other workers whose lease has expired are handed out first, or given up if the study was created with
        `expired="abandon"`. A call with a key gets new trials only. So do contextual studies, where a trial belongs to
        its context; `take_over` hands out their expired trials.
        """
        is_contextual = self._is_contextual or any_given(presented)
        rounds = self._offers(n, available, presented) if is_contextual else []
        if is_contextual:
            check_unrestricted(where, at_most, together)
        may_offer = key is None and not is_contextual and at_most is None and together is None
        handler = AskLeases(self._id, self.when_expired, check_lease(lease), distinct, may_offer)

        def check(replica: Replica) -> AskRequest:
            if not is_contextual:
                limits = replica.algorithm.plate_limits(at_most, together)
                return AskRequest(*replica.check_ask(n, available, distinct, where, limits), limits=limits)
            if not replica.still_offers(rounds):  # an arm was added meanwhile
                rounds[:] = offers_for(replica.algorithm.models, replica.algorithm.domain, n, available, presented)
            return AskRequest(len(rounds), None, offers=tuple(replica.check_offers(rounds, distinct)))

        def act(replica: Replica, request: AskRequest) -> list[Event]:
            given_up = [replica.abandon(trial) for trial in request.given_up]
            if request.offers:
                return given_up + replica.ask_offers(request.offers)
            held = [replica.algorithm.log.index[trial] for trial in request.offered]
            return given_up + replica.ask(request.wanted, request.available, distinct, held, request.limits)

        replica, events = self._follower.act(check, act, key=key, leases=handler)
        asked = [event for event in events if event.kind == "ask"]
        same_call(key, asked or events, "ask", 1 if n is None else n)
        if key is not None and rounds:
            _same_rounds(key, asked, rounds)
        trials = [replica.algorithm.trial(trial) for trial in (*handler.offered, *(event.trial for event in asked))]
        if rounds:
            trials = [_as_given(trial, one) for trial, one in zip(trials, rounds, strict=True)]
        return trials[0] if n is None else trials

    def _offers(self, n: int | None, available: Available, presented: RoundArguments) -> list[Offer]:
        """Contextual rounds, computed without the lock because the user's code may be slow."""
        algorithm = self._follower.known().algorithm
        return offers_for(algorithm.models, algorithm.domain, n, available, presented)

    def observe(
        self,
        index: int | str,
        reward: Reward,
        *,
        available: Available = None,
        propensity: float | None = None,
        key: str | None = None,
        sure: bool = True,
        **presented: Unpack[RoundArguments],
    ) -> Trial:
        """Add a reward of candidate `index` that was measured without an ask.

        With `sure=False`, a reward that looks like a typing error raises `SuspiciousRewardError`.

        In contextual studies the round is passed as to `ask`; `index` is a position in it, or the name of an arm, and
        `propensity` the probability with which it was played, if that is known.
        """

        def make(algorithm: Algorithm) -> list[ExternalObservation]:
            return [algorithm.check_observation(index, reward, available, propensity, **presented)]

        return self._store_observations(make, key, sure)[0]

    def add_observations(
        self, frame: pd.DataFrame, nearest: bool = False, key: str | None = None, *, sure: bool = True
    ) -> list[Trial]:
        """Add measurements made without an ask: all rows, or, if any is wrong, none.

        The frame has a column `reward`, or one per measured objective, and names the candidates by `index`, by `x`, or
        by columns of their own table. Each row becomes a trial with its reward, without a model and with a missing
        propensity, because the algorithm did not decide on it. Points off the grid of an Interval or Box are refused
        unless `nearest`.

        In contextual studies a row has `index` and `reward`, and what `observe` takes: some of `context`, `candidates`,
        `features`, `ids`, `available` and `propensity`. `log_frame` returns such a frame, if the log has all features.
        """

        def make(algorithm: Algorithm) -> list[ExternalObservation]:
            if algorithm.is_contextual:
                return contextual_observations(algorithm, frame)
            found = observations(algorithm.domain, frame, nearest, algorithm.log.objectives)
            return [algorithm.check_observation(index, reward) for index, reward in found]

        return self._store_observations(make, key, sure)

    def take_results(self, table: Table, first: int = 0, key: str | None = None) -> list[Trial]:
        """Add what is measured already, in the column of results of a table; `first` is its first candidate."""
        return self._store_observations(lambda algorithm: algorithm.check_results(table, first), key, True)

    def _store_observations(
        self, make: Callable[[Algorithm], list[ExternalObservation]], key: str | None, sure: bool
    ) -> list[Trial]:
        rows = make(self._follower.known().algorithm)

        def check(replica: Replica) -> list[ExternalObservation]:
            if not replica.still_offers([row.offer for row in rows if row.offer is not None]):
                rows[:] = make(replica.algorithm)
            if not sure:
                _check_plausible(replica.algorithm, [row.reward for row in rows])
            plain = [row._replace(reward=as_stored(row.reward)) for row in rows]
            rounds = [None if row.offer is None else recordable(replica.algorithm, row.offer) for row in plain]
            return [row._replace(offer=one) for row, one in zip(plain, rounds, strict=True)]

        def act(replica: Replica, rows: list[ExternalObservation]) -> list[Event]:
            warn_of(replica.algorithm.suspect_observations([row.reward for row in rows]))
            return [replica.observe(*row) for row in rows]

        replica, events = self._follower.act(check, act, key=key)
        same_call(key, events, "observe", len(rows))
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

    def add_candidates(self, table: Table, key: str | None = None) -> list[int]:
        """Add the candidates of a table to a study of a table, for all its workers, and return their numbers.

        They must have the columns and descriptions of the first, and ids of their own; see
        `Algorithm.add_candidates`. Later asks may propose them. Results of them are taken in, where `Table.read` was
        told their column.
        """
        _, events = self._follower.act(
            lambda replica: replica.check_candidates(table),
            lambda replica, arrivals: [replica.add_candidates(arrivals)],
            key=key,
        )
        same_call(key, events, "add", 1)
        cells, first = next(iter(detail_of(events[0])["added"]["cells"].values())), events[0].candidate
        if first is None or (key is not None and list(map(str, cells)) != table.names):
            raise ValueError(f"key {key!r} was used before, for other candidates; another call needs another key")
        if table.results:
            self.take_results(table, first, None if key is None else f"{key}: results")
        return list(range(first, first + len(cells)))

    def learn_from(self, campaigns: Mapping[str, Any], reward: str = "reward", key: str | None = None) -> None:
        """Learn from old campaigns, {name: results}, for all workers of a study of a table.

        Results are data frames, files or studies. Each campaign becomes further models with prior weight, see
        `Table.with_memory`, which does the same before a study begins. What was learned is stored: the old results are
        not needed again.
        """
        _, events = self._follower.act(
            lambda replica: replica.check_campaigns(campaigns, reward),
            lambda replica, arrivals: [replica.add_candidates(arrivals)],
            key=key,
        )
        same_call(key, events, "learn", 1)
        if not set(detail_of(events[0])["added"].get("learned", {})) <= set(campaigns):
            raise ValueError(f"key {key!r} was used before, for other campaigns; another call needs another key")

    # -- telling -----------------------------------------------------------------------------------------------

    def tell(
        self,
        trial: AnyTrial | None,
        reward: AnyReward,
        if_told: IfTold = "raise",
        key: str | None = None,
        *,
        candidate: Name | None = None,
        note: str = "",
    ) -> None:
        """Report the reward of a trial, by the trial or its id, from any process and in any order.

        On a table the name of the candidate, in place of the trial or as `candidate`, names its pending trial; with
        both they must agree. A list of rewards is as many measurements of one experiment: the first is the reward of
        the trial, the others become observations of the same candidate, in the same transaction.

        Log, export and report keep a `note`, for instance what was unusual.

        Where the trial has a reward already, `if_told` decides: "raise" an error, accept the "same" reward and raise
        for another one, or "amend" it.
        """
        self.tell_many([TrialResult(trial, reward, candidate, note)], if_told, key)

    def tell_many(
        self,
        results: Results,
        if_told: IfTold = "raise",
        key: str | None = None,
        *,
        sure: bool = True,
    ) -> TellCounts:
        """Report several rewards at once: all, or, if any is wrong, none. Returns how many were new, known and amended.

        "failed" in place of a reward reports a failed experiment, see `fail`. Rewards far outside those so far are
        stored with a warning; with `sure=False` they raise `SuspiciousRewardError` instead, and nothing is changed.
        """
        given = [TrialResult(*one) for one in (results.items() if isinstance(results, Mapping) else results)]

        def check(replica: Replica) -> list[Checked]:
            checked = [_check_result(replica, one, if_told) for one in given]
            _check_distinct([told.trial for told in checked])
            return checked if sure else _plausible(replica, checked)

        return self._store_results(given, check, if_told == "amend", key)

    def fail(
        self,
        trial: AnyTrial | None,
        reason: str = "",
        if_told: IfTold = "raise",
        key: str | None = None,
        *,
        candidate: Name | None = None,
    ) -> None:
        """Report that the experiment of a pending trial failed: a broken vial, tar instead of a product.

        The candidate is not proposed again, the trial takes no reward, and log, export and report keep the reason.
        `EvidenceMixture` learns from failures where further ones are to be expected. Where the trial has a reward or
        has failed already, `if_told` decides: "raise" an error, accept the "same" failure, or "amend" the reward.
        `amend` gives a failed trial a reward after all, `retract` takes the failure back.
        """

        def check(replica: Replica) -> list[Checked]:
            return [replica.algorithm.check_fail(trial, reason, if_told, candidate)]

        self._store_results([TrialResult(trial, FAILED, candidate)], check, if_told == "amend", key)

    def amend(self, trial: AnyTrial, reward: Measurements, key: str | None = None, *, sure: bool = True) -> None:
        """Correct a reward that was told or added, or give one to a trial that was retracted or had failed.

        The state is then that of a run in which the new reward was told at once; trials stay as they were asked for.
        The log keeps both rewards. `sure` is as for `tell_many`.
        """

        def check(replica: Replica) -> list[Checked]:
            checked: list[Checked] = [replica.check_amend(trial, reward)]
            return checked if sure else _plausible(replica, checked)

        self._store_results([TrialResult(trial, reward)], check, True, key)

    def retract(self, trial: AnyTrial, key: str | None = None) -> None:
        """Withdraw a reward that was told or added, or a failure.

        The trial counts as abandoned; `amend` gives it a reward again.
        """

        def check(replica: Replica) -> dict[int, Entry]:
            return replica.algorithm.withdrawal(replica.algorithm.check_retract(trial))

        _, events = self._follower.act(check, Replica.amend, Replica.prepare_amend, key)
        same_call(key, events, "retract", len(events))

    def _store_results(
        self,
        given: Sequence[TrialResult],
        check: Callable[[Replica], list[Checked]],
        may_amend: bool,
        key: str | None,
    ) -> TellCounts:
        def act(replica: Replica, results: list[Checked]) -> list[Event]:
            warn_of(replica.algorithm.suspects(_tells(results)).values())
            events = [event for one in results for event in _store_new(replica, one)]
            changes, added = _amendments(replica, results)
            notes = {one.trial: one.note for one in _tells(results) if one.action == "amend"}
            events += replica.amend(changes, notes)
            return events + [event for trial, more in added.items() for event in replica.replicates(trial, more)]

        def prepare(replica: Replica, results: list[Checked]) -> None:
            replica.prepare_amend(_amendments(replica, results)[0])

        replica, events = self._follower.act(check, act, prepare if may_amend else None, key)
        log = replica.algorithm.log
        heads = [log.head_of(event.trial) for event in events] if log.replicates else [event.trial for event in events]
        if key is not None:
            rewards = {_stored_trial(replica, one, heads): _measurements(replica, one.reward) for one in given}
            same_rewards(key, events, heads, rewards)
        new = {event.trial for event in events if event.kind in ("tell", "fail")}
        return TellCounts(len(new), len(given) - len(set(heads)), len(set(heads) - new))

    def abandon(self, trials: AnyTrial | Iterable[AnyTrial], key: str | None = None) -> None:
        """Abandon a pending trial, for instance a broken vial, or several: all, or, if any is wrong, none.

        An abandoned trial keeps its number; `amend` gives it a reward that comes after all.
        """
        wanted = _as_list(trials)

        def check(replica: Replica) -> list[int]:
            ids = [replica.check_pending(trial) for trial in wanted]
            return list(dict.fromkeys(ids))

        replica, events = self._follower.act(
            check, lambda replica, ids: [replica.abandon(trial_id) for trial_id in ids], key=key
        )
        ids = dict.fromkeys(replica.algorithm.log.check_id(trial) for trial in wanted)
        same_call(key, events, "abandon", len(ids))
        if key is not None and {event.trial for event in events} != ids.keys():
            raise ValueError(f"key {key!r} was used before, for {describe(events)}; another call needs another key")

    # -- workers -----------------------------------------------------------------------------------------------

    def heartbeat(self, trials: AnyTrial | Iterable[AnyTrial], lease: float | None = None) -> None:
        """Restart the leases of trials that this worker still measures: all, or, if any is lost, none.

        Each runs for as long as before, or for `lease` seconds. An expired lease is prolonged, too, unless another
        worker has taken the trial over: `LeaseError` names that worker.
        """
        wanted, seconds = _as_list(trials), check_lease(lease)
        self._follower.act(
            lambda replica: [replica.check_pending(trial) for trial in wanted],
            lambda _replica, _trials: [],
            leases=HeartbeatLeases(self._id, seconds),
        )

    def take_over(
        self,
        trials: AnyTrial | Iterable[AnyTrial] | None = None,
        *,
        lease: float | None = None,
        n: int | None = None,
    ) -> list[Trial]:
        """Take over trials of other workers: `n` or all of those that have expired, or the ones that are named.

        They are reserved for this worker for `lease` seconds, or without end. A named trial may have no lease; a trial
        that another worker holds is an error. No two workers get the same trial.
        """
        seconds, wanted = check_lease(lease), None if trials is None else _as_list(trials)
        handler = TakeOverLeases(self._id, seconds, None if n is None else count("n", n))

        def check(replica: Replica) -> list[int] | None:
            return None if wanted is None else [replica.check_pending(trial) for trial in wanted]

        replica, _ = self._follower.act(check, lambda _replica, _trials: [], leases=handler)
        return [replica.algorithm.trial(trial) for trial in handler.taken]

    def pending(self) -> list[HeldTrial]:
        """Pending trials, oldest first, each with its worker, its age and the rest of its lease."""
        with self._reader.mutex:
            with self._reader.moment() as (replica, connection):
                ids = list(replica.algorithm.log.pending)
                if not ids:
                    return []
                self._log_cache.read(connection, replica.n_events, ids, history=False)
                held, now = leases.read(connection, self._id), leases.now(connection)
            found = []
            for trial in ids:
                (at, worker, _), lease = self._log_cache.asked[trial], held.get(trial)
                left = None if lease is None or not isfinite(lease.expires_at) else lease.expires_at - now
                worker = worker if lease is None else lease.worker
                found.append(HeldTrial(**vars(replica.algorithm.trial(trial)), worker=worker, age=now - at, lease=left))
        return found

    @contextmanager
    def _reading(self) -> Iterator[Algorithm]:
        """The algorithm for what may take long: other threads ask and tell meanwhile."""
        with self._reader.mutex:
            yield self._reader.refresh().algorithm

    @contextmanager
    def _glancing(self) -> Iterator[Algorithm]:
        """The algorithm for what is quick."""
        with self._glanced_at.mutex:
            yield self._glanced_at.refresh().algorithm

    @property
    def _glanced_at(self) -> Follower:
        """The replica of asks and tells, unless this process only reads: one is enough then."""
        return self._reader if self._reader.is_used and not self._follower.is_used else self._follower

    # -- trials and views --------------------------------------------------------------------------------------

    def trial(self, trial_id: int) -> Trial:
        """A trial by its id."""
        with self._glancing() as algorithm:
            return algorithm.trial(trial_id)

    def trials(self, since: int = 0, limit: int | None = None) -> list[TrialLine]:
        """The trials from number `since` on, at most `limit` of them, as JSON data with reward, state and label."""
        start, most = count("since", since, 0), None if limit is None else count("limit", limit)
        with self._glancing() as algorithm:
            stop = len(algorithm.log) if most is None else min(len(algorithm.log), start + most)
            return trial_lines(algorithm, range(start, stop))

    @property
    def counts(self) -> Counts:
        """Numbers of trials: all, told (with external observations), pending, abandoned (with retracted), failed."""
        with self._glancing() as algorithm:
            return counts(algorithm)

    @contextmanager
    def counting(self) -> Iterator[Callable[[], Counts]]:
        """Block other threads within this block; yields a function that returns the present counts.

        The function does not read the log again.
        """
        with self._follower.mutex:
            yield lambda: counts(self._follower.known().algorithm)

    def trials_dataframe(self) -> pd.DataFrame:
        """One row per trial: id, x, index, model, explored, propensity, reward, state.

        `state` is "told", "pending", "abandoned", "failed", "retracted", or "observed" for external measurements.
        """
        with self._reading() as algorithm:
            frame = algorithm.trials_dataframe()
            frame["state"] = trial_states(algorithm.log, range(len(frame)))
        return frame

    def log_frame(self) -> pd.DataFrame:
        """The trials with what their rounds offered, for off-policy evaluation; see `Algorithm.log_frame`."""
        with self._reading() as algorithm:
            return algorithm.log_frame()

    def view(
        self,
        *,
        trials: int | None = None,
        leaders: int = 6,
        history: bool = True,
        certificates: bool = True,
        curve: bool = True,
        explanation: bool = True,
        delta: float = DELTA,
        progress: bool | Listener = False,
    ) -> StudyView:
        """What reports, status lines and pages show, read in one transaction.

        Without new events, a second call costs one small query and returns the same object.

        Parameters
        ----------
        trials
            List only the last so many trials; all by default.
        leaders
            How many leading models are described one by one.
        history
            Whether to include the leaders' probabilities in earlier rounds.
        certificates
            Whether to compute certified statements, where the algorithm has them and unless models x candidates
            exceed 20 million.
        curve
            Whether to compute the estimated reward on a one-dimensional domain.
        explanation
            Whether to predict every reward from the rewards before it, where the algorithm can. Takes as long as
            learning did, later only for new rewards; omitted where models x rewards exceed 5 million.
        delta
            Certified statements hold with probability 1 - delta.
        progress
            True shows a bar with the time left where this takes long; a function is called with what is being done, and
            how many of how many steps: see `alexp.common.progress.Progress`.
        """
        options = ViewOptions(trials, leaders, history, certificates, curve, explanation, delta)
        with listening(progress), self._noting_progress(), self._reader.mutex:
            with self._reader.moment() as (replica, connection):
                n_events, pending = replica.n_events, list(replica.algorithm.log.pending)
                held = leases.read(connection, self._id) if pending else {}
                if self._last_view is not None:
                    *before, view = self._last_view
                    if (*before, view.n_events) == (replica, options, held, n_events):
                        return view
                self._log_cache.read(connection, n_events, pending, history)
            identity = Identity(self.name, self.storage.describe(), self.created_at, self.library)
            view = make_view(identity, n_events, replica.algorithm, self._log_cache, held, options)
            self._last_view = (replica, options, held, view)
        return view

    def explanation(self, standing: Standing | None) -> Explanation | None:
        """Predictions of every reward so far, and the odds of the two leaders of the `standing` of a view.

        For pages that load this part later; see `explanation` of `view`.
        """
        with self._noting_progress(), self._reading() as algorithm:
            return explanation(algorithm, standing, labeller(algorithm))

    @property
    def progress(self) -> Progress | None:
        """How far the view, report or explanation is that another thread waits for; None if there is none."""
        return self._progress

    @contextmanager
    def _noting_progress(self) -> Iterator[None]:
        try:
            with listening(partial(setattr, self, "_progress")):
                yield
        finally:
            self._progress = None

    def plot(self, kind: str | None = None, ax: Axes | None = None, *, engine: str = "matplotlib") -> Any:
        """Draw which model leads, what was found, and whether the models predict it: an array of axes.

        `kind` names one figure: "models", "rewards", "predictions", "residuals", "odds", "curve", "coverage",
        "plates" or "pareto". It is drawn into `ax`, an axes of Matplotlib, and the axes are returned; with
        `engine="plotly"` a figure of Plotly is returned.
        """
        return import_module("alexp.plot").draw(self, kind, ax, engine=engine)  # loaded when a figure is wanted

    def summary(self) -> str:
        """The state of the study in a paragraph."""
        return str(import_module("alexp.plot").summary(self))

    def _repr_html_(self) -> str:
        """Shown by notebooks."""
        return str(import_module("alexp.plot").html(self))

    def report(self, path: str | Path, *, progress: bool | Listener = False) -> Path:
        """Write a self-contained HTML page about the study; `progress` as for `view`."""
        from alexp.study.report import write_report

        return write_report(self.view(progress=progress), Path(path))

    # -- statements of the algorithm ---------------------------------------------------------------------------

    @property
    def domain(self) -> Domain:
        """The candidates as this process knows them; others may have added some since its last call."""
        return self._glanced_at.known().algorithm.domain

    @property
    def algorithm(self) -> Algorithm:
        """The algorithm in its present state, for reading: asking or telling it directly is not recorded."""
        return self._glanced_at.refresh().algorithm

    @property
    def probabilities(self) -> FloatArray:
        """q over the M models for the next round, shape (M,), for algorithms that have it."""
        with self._glancing() as algorithm:
            q = probabilities_of(algorithm)
        if q is None:
            raise NotOfferedError(f"algorithm {algorithm.name!r} has no probabilities over models")
        return q

    def best(self, *, available: Available = None, **presented: Unpack[RoundArguments]) -> Recommendation:
        """The recommended action, given all rewards so far; in contextual studies of a round, passed as to `ask`."""
        with self._glancing() as algorithm:
            return algorithm.best(available=available, **presented)

    def pareto(self) -> pd.DataFrame:
        """Measured candidates that no other measured one beats in every objective: the best compromises.

        For studies with `objectives=`; see `EvidenceMixture.pareto`.
        """
        with self._glancing() as algorithm:
            if not isinstance(algorithm, EvidenceMixture):
                raise NotOfferedError(f"algorithm {algorithm.name!r} has one objective only")
            return algorithm.pareto()

    def policy(self, available: Available = None, **presented: Unpack[RoundArguments]) -> FloatArray:
        """The probability with which the next ask with these arguments would play each candidate, shape (n,)."""
        with self._glancing() as algorithm:
            return algorithm.policy(available, **presented)

    def stop_report(self, delta: float = DELTA, epsilon: float | None = None, **about: Unpack[About]) -> StopReport:
        """Whether the recommended action is within `epsilon` of the best, and the smallest epsilon that holds.

        In contextual studies about one round, passed as to `ask`.
        """
        with self._reading() as algorithm:
            return _certifying(algorithm).stop_report(delta, epsilon, **about)

    def plausible_models(self, delta: float = DELTA) -> IntArray:
        """Numbers of the models not yet ruled out."""
        with self._reading() as algorithm:
            return _certifying(algorithm).plausible_models(delta)

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
        with self._reading() as algorithm:
            certifying = _certifying(algorithm)
            return certifying.confidence(x, delta, context=context, candidates=candidates, features=features)

    def check_models(self, delta: float = DELTA) -> ModelCheck:
        """Whether the rewards contradict what was stated about noise, bound and models."""
        with self._reading() as algorithm:
            return _certifying(algorithm).check_models(delta)

    # -- the log -----------------------------------------------------------------------------------------------

    def events(self, since: int = 0, limit: int | None = None) -> list[EventDict]:
        """The events after the first `since`, oldest first and at most `limit` of them, as JSON data.

        To follow a study, call it again with the number of events seen so far, `events[-1]["seq"] + 1`.
        """
        start, most = count("since", since, 0), None if limit is None else count("limit", limit)
        with self.storage.reading() as connection:
            stop = logbook.head(connection, self._id, lock=False).n_events  # raises if the study has been deleted
            stop = stop if most is None else min(stop, start + most)
            return logbook.public_events(connection, self._id, start, stop)

    def new_results(self, file: str, measured: Sequence[tuple[int, Value]], again: bool = False) -> NewResults:
        """Which (candidate, reward) of a file, by its name, the study does not have; see `alexp.study.sources`.

        With `again` they are all new.
        """
        with self._follower.moment() as (replica, connection):
            rewarded = [] if again else logbook.of_kinds(connection, self._id, REWARDED, replica.n_events)
            return new_results(rewarded, replica.algorithm.log, file, measured, again)

    def events_dataframe(self) -> pd.DataFrame:
        """One row per event: kind, trial, at (UTC), worker (host:process); the row number is the total order."""
        import pandas as pd  # slow to import, and needed here only

        with self.storage.reading() as connection:
            head = logbook.head(connection, self._id, lock=False)
            rows = logbook.event_times(connection, self._id, head.n_events)
        frame = pd.DataFrame(rows, columns=["kind", "trial", "at", "worker"])
        frame["at"] = pd.to_datetime(frame["at"], unit="s", utc=True)
        return frame

    def beliefs(self) -> list[tuple[int, BeliefRecord]]:
        """(trial, {"told", "q", "returns", "models"}) at the asks for which they were recorded."""
        with self.storage.reading() as connection:
            head = logbook.head(connection, self._id, lock=False)
            return logbook.beliefs(connection, self._id, 0, head.n_events)

    # -- keeping up --------------------------------------------------------------------------------------------

    def refresh(self) -> Replica:
        """Apply the new events of other processes and return the replica."""
        return self._follower.refresh()

    def replayed(self) -> Replica:
        """A replica made from the whole log without snapshots, for comparison; slow for long logs."""
        with self._reader.mutex:
            return self._reader.replayed()

    def close(self) -> None:
        """Save a snapshot if it would make opening faster, and close the connections; they open again when needed."""
        self._follower.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a study cannot be pickled: it holds connections, and its storage may hold a password. Pass the study's "
            "name and storage to the worker, for instance in the environment variable ALEXP_STORAGE, and call "
            "alexp.load_study(name, storage) there"
        )

    def __repr__(self) -> str:
        return f"Study({self.name!r}, storage={self.storage.describe()!r})"


def _certifying(algorithm: Algorithm) -> Certifies:
    subject: object = algorithm
    if not offers(subject, Certifies):
        raise NotOfferedError(f"algorithm {algorithm.name!r} gives no certificates")
    return subject


def _check_plausible(algorithm: Algorithm, rewards: Sequence[Value]) -> None:
    found = enumerate(algorithm.suspect_observations(rewards))
    if reasons := [f"observation {k}: {reason}" for k, reason in found if reason is not None]:
        raise SuspiciousRewardError("\n".join(reasons))


def _same_rounds(key: str, asked: Sequence[Event], rounds: Sequence[Offer]) -> None:
    """Raise if the key was used before for other rounds."""
    for event, one in zip(asked, rounds, strict=True):
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


def _as_given(trial: Trial, offer: Offer) -> Trial:
    """A trial with the caller's own action and context objects."""
    return trial if offer.is_whole else replace(trial, x=offer.actions[trial.index], context=offer.context)


def _plausible(replica: Replica, results: list[Checked]) -> list[Checked]:
    """The results, unchanged; raises if a reward looks like a typing error."""
    if reasons := list(replica.algorithm.suspects(_tells(results)).values()):
        raise SuspiciousRewardError("\n".join(reasons))
    return results


def _check_result(replica: Replica, one: TrialResult, if_told: IfTold) -> Checked:
    if isinstance(one.reward, str) and one.reward == FAILED:
        return replica.algorithm.check_fail(one.trial, one.note, if_told, one.candidate)
    return replica.check_tell(one.trial, one.reward, if_told, one.candidate, one.note)


def _measurements(replica: Replica, reward: AnyReward) -> tuple[Value, ...] | None:
    """The measurements of a result; None for a failure."""
    return None if isinstance(reward, str) else replica.algorithm.check_rewards(reward)


def _stored_trial(replica: Replica, one: TrialResult, stored: Sequence[int]) -> int:
    """The trial of a result after its call; a name means the trial that the call was about."""
    log, domain = replica.algorithm.log, replica.algorithm.domain
    name = one.trial if one.candidate is None else str(one.candidate)
    if isinstance(domain, FiniteSet) and isinstance(name, str):
        for trial in stored:
            if domain.name_of(log.index[trial]) == name:
                return trial
    return find_trial(log, domain, one.trial, one.candidate)


def _store_new(replica: Replica, one: Checked) -> list[Event]:
    """Store a result of a pending trial; nothing for others."""
    if one.action not in ("tell", "fail"):
        return []
    if isinstance(one, CheckedFail):
        return [replica.fail(one.trial, one.reason)]
    return replica.tell(one.trial, one.reward, one.more, one.note)


def _tells(results: Sequence[Checked]) -> list[CheckedTell]:
    return [one for one in results if isinstance(one, CheckedTell)]


def _amendments(replica: Replica, results: Sequence[Checked]) -> tuple[dict[int, Entry], dict[int, tuple[Value, ...]]]:
    """Entries that change, and measurements that are added, by trial."""
    changes: dict[int, Entry] = {}
    added: dict[int, tuple[Value, ...]] = {}
    for one in results:
        if one.action == "amend":
            own, added[one.trial] = replica.algorithm.entries(one)
            changes |= own
    return changes, added


def _check_distinct(trial_ids: list[int]) -> None:
    seen: set[int] = set()
    for trial_id in trial_ids:
        if trial_id in seen:
            raise AlreadyToldError(f"trial {trial_id} is told twice in one call")
        seen.add(trial_id)


def _as_list(trials: AnyTrial | Iterable[AnyTrial]) -> list[AnyTrial]:
    return [trials] if isinstance(trials, Trial | int | str) else list(trials)
