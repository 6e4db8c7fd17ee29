"""Study: an algorithm whose life is longer than its process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Self

from alexp.algorithms.base import Algorithm, IfTold, Told, warn_of
from alexp.algorithms.certified import DELTA
from alexp.algorithms.log import AlreadyToldError, Trial
from alexp.common.validation import count
from alexp.study.answering import Answering
from alexp.study.chronicle import Chronicle, Logged
from alexp.study.database import records
from alexp.study.database.events import Event
from alexp.study.database.outcomes import describe, same_call, same_rewards
from alexp.study.database.storage import Storage
from alexp.study.errors import SuspiciousRewardError
from alexp.study.explaining import explanation
from alexp.study.following import Follower
from alexp.study.labels import TrialLine, labeller, trial_lines, trial_states
from alexp.study.replay import Replica
from alexp.study.rounds.proposing import Proposing
from alexp.study.view import Counts, Explanation, Standing, StudyView, TellCounts
from alexp.study.viewing import Identity, Wanted, counts, make_view
from alexp.study.workers import leases
from alexp.study.workers.leases import Lease, WhenExpired
from alexp.study.workers.sharing import AnyTrial, Sharing, listed

if TYPE_CHECKING:
    import pandas as pd


class Study(Proposing, Answering, Logged, Sharing):
    """A durable run of an algorithm; make one with `create_study` or `load_study`.

    Many processes and threads may hold the same study. Each keeps the algorithm in memory; to act, it
    locks the study, applies what others have done since, acts, appends the events, and commits. What a method
    has returned is therefore in the database, and all processes agree on every trial.
    """

    def __init__(
        self, storage: Storage, row: records.StudyRow, make: Callable[[], Algorithm], first: Algorithm
    ) -> None:
        self.name, self.created_at, self.library, self.storage = row.name, row.created_at, row.library, storage
        self._id, self._is_contextual = row.id, first.is_contextual
        self.when_expired: WhenExpired = "abandon" if row.when_expired == "abandon" else "offer"
        self._follower = Follower(storage, row, make, first)
        self._chronicle: tuple[Replica, Chronicle] | None = None
        self._seen: tuple[Replica, Wanted, dict[int, Lease], StudyView] | None = None

    # -- acting ------------------------------------------------------------------------------------------------

    def tell(self, trial: AnyTrial, reward: float, if_told: IfTold = "raise", key: str | None = None) -> None:
        """Report the reward of a trial, by the trial or its id, from any process and in any order.

        Where the trial has a reward already, `if_told` decides: "raise" an error, accept the "same" reward in silence
        and raise at another one, or "amend" it.
        """
        self.tell_many([(trial, reward)], if_told, key)

    def tell_many(
        self,
        results: Iterable[tuple[AnyTrial, float]] | Mapping[int, float] | Mapping[str, float],
        if_told: IfTold = "raise",
        key: str | None = None,
        *,
        sure: bool = True,
    ) -> TellCounts:
        """Report several rewards at once: all of them, or, if any is wrong, none. Returns what became of them.

        Rewards far outside what was seen are taken in with a warning; whoever is not `sure` gets a
        `SuspiciousRewardError` instead, and nothing has changed.
        """
        pairs = list(results.items() if isinstance(results, Mapping) else results)

        def check(replica: Replica) -> list[Told]:
            checked = [replica.check_tell(trial, reward, if_told) for trial, reward in pairs]
            _no_trial_twice([told.trial for told in checked])
            return checked if sure else _plausible(replica, checked)

        return self._take_in(pairs, check, if_told == "amend", key)

    def amend(self, trial: AnyTrial, reward: float, key: str | None = None, *, sure: bool = True) -> None:
        """Correct a reward that was told or added, or give one again to a trial whose reward was retracted.

        The study then stands where it would had the right reward been told at once, with the trials as they were
        asked for. The log keeps both rewards. `sure` is as for `tell_many`.
        """

        def check(replica: Replica) -> list[Told]:
            checked = [replica.check_amend(trial, reward)]
            return checked if sure else _plausible(replica, checked)

        self._take_in([(trial, reward)], check, True, key)

    def retract(self, trial: AnyTrial, key: str | None = None) -> None:
        """Withdraw a reward that was told or added. The trial counts as given up; `amend` gives it a reward again."""

        def check(replica: Replica) -> dict[int, float | None]:
            return {replica.algorithm.check_retract(trial): None}

        _, events = self._follower.act(check, Replica.mend, Replica.prepare_mend, key)
        same_call(key, events, "retract", 1)

    def _take_in(
        self,
        pairs: list[tuple[AnyTrial, float]],
        check: Callable[[Replica], list[Told]],
        may_mend: bool,
        key: str | None,
    ) -> TellCounts:
        def act(replica: Replica, tells: list[Told]) -> list[Event]:
            warn_of(replica.algorithm.suspects(tells).values())
            events = [replica.tell(told.trial, told.reward) for told in tells if told.deed == "tell"]
            return events + replica.mend(_amendments(tells))

        def prepare(replica: Replica, tells: list[Told]) -> None:
            replica.prepare_mend(_amendments(tells))

        replica, events = self._follower.act(check, act, prepare if may_mend else None, key)
        if key is not None:
            same_rewards(key, events, {replica.algorithm.log.check_id(trial): reward for trial, reward in pairs})
        kinds = [event.kind for event in events]
        return TellCounts(kinds.count("tell"), len(pairs) - len(events), kinds.count("amend"))

    def abandon(self, trials: AnyTrial | Iterable[AnyTrial], key: str | None = None) -> None:
        """Give up a pending trial, for instance a broken vial, or several: all, or, if any is wrong, none.

        A trial that was given up keeps its number and takes no reward any more.
        """
        wanted = listed(trials)

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

    # -- looking -----------------------------------------------------------------------------------------------

    def trial(self, trial_id: int) -> Trial:
        """A trial by its id."""
        with self._follower.mutex:
            return self.algorithm.trial(trial_id)

    def trials(self, since: int = 0, limit: int | None = None) -> list[TrialLine]:
        """The trials from number `since` on, at most `limit` of them, as JSON data with reward, state and label."""
        start, most = count("since", since, 0), None if limit is None else count("limit", limit)
        with self._follower.mutex:
            algorithm = self.algorithm
            stop = len(algorithm.log) if most is None else min(len(algorithm.log), start + most)
            return trial_lines(algorithm, range(start, stop))

    @property
    def counts(self) -> Counts:
        """Number of trials: asked, told (with observations from elsewhere), pending, abandoned."""
        with self._follower.mutex:
            return counts(self.algorithm)

    @contextmanager
    def counting(self) -> Iterator[Callable[[], Counts]]:
        """No other thread acts on the study in this block; gives the counts as they are after what is done in it.

        Others are not asked once more, and a crowd of threads is not queued up with twice.
        """
        with self._follower.mutex:
            yield lambda: counts(self._follower.known().algorithm)

    def trials_dataframe(self) -> pd.DataFrame:
        """One row per trial: id, x, index, model, explored, propensity, reward, state.

        `state` is "told", "pending", "abandoned", "retracted", or "observed" for data added from elsewhere.
        """
        with self._follower.mutex:
            algorithm = self.algorithm
            frame = algorithm.trials_dataframe()
            frame["state"] = trial_states(algorithm.log, range(len(frame)))
        return frame

    def log_frame(self) -> pd.DataFrame:
        """The trials with what their rounds offered, for off-policy evaluation; see `Algorithm.log_frame`."""
        with self._follower.mutex:
            return self.algorithm.log_frame()

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
    ) -> StudyView:
        """Everything that a report, a status line or a page shows, read in one transaction: one consistent moment.

        Asking again before anything has happened costs one small query and returns the same object.

        Parameters
        ----------
        trials
            List only the last so many trials; all by default.
        leaders
            How many leading models are described one by one.
        history
            Whether to tell how the leaders came to lead.
        certificates
            Whether to compute certified statements, where the algorithm has them and unless models x candidates
            exceed 20 million.
        curve
            Whether to compute the estimated reward on a one-dimensional domain.
        explanation
            Whether to look back on what was expected of every reward, where the algorithm can; takes as long as
            learning did, and is left out where models x rewards exceed 5 million.
        delta
            Certified statements hold with probability 1 - delta.
        """
        wanted = Wanted(trials, leaders, history, certificates, curve, explanation, delta)
        with self._follower.mutex:
            with self._follower.moment() as (replica, connection):
                n_events, waiting = replica.n_events, replica.algorithm.log.pending()
                held = leases.read(connection, self._id) if waiting else {}
                if self._seen is not None:
                    *before, view = self._seen
                    if (*before, view.n_events) == (replica, wanted, held, n_events):
                        return view
                chronicle = self._chronicle_of(replica)
                chronicle.read(connection, n_events, waiting, history)
            identity = Identity(self.name, self.storage.describe(), self.created_at, self.library)
            view = make_view(identity, n_events, replica.algorithm, chronicle, held, wanted)
            self._seen = (replica, wanted, held, view)
        return view

    def explanation(self, standing: Standing | None) -> Explanation | None:
        """What was expected of every reward so far, and what that says of the two leaders of a view's `standing`.

        For pages that look after every reward and can wait for this part; see `explanation` of `view`.
        """
        with self._follower.mutex:
            algorithm = self.algorithm
            return explanation(algorithm, standing, labeller(algorithm))

    def report(self, path: str | Path) -> Path:
        """Write a self-contained HTML page about the study."""
        from alexp.study.report import write_report

        return write_report(self.view(), Path(path))

    # -- keeping up --------------------------------------------------------------------------------------------

    def refresh(self) -> Replica:
        """Apply what other processes have done; every method does this by itself."""
        return self._follower.refresh()

    def replayed(self) -> Replica:
        """The whole log applied anew, from its first event on, to hold against what is known; takes its time."""
        with self._follower.mutex:
            return self._follower.replayed()

    def close(self) -> None:
        """Save what opening would have to replay, and close the connections; they open again when needed."""
        self._follower.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a study is not pickled: it holds connections, and its storage may hold a password. Give the worker the "
            "study's name and where it is stored, for instance in the environment variable ALEXP_STORAGE, and let it "
            "call alexp.load_study(name, storage)"
        )

    def __repr__(self) -> str:
        return f"Study({self.name!r}, storage={self.storage.describe()!r})"


def _plausible(replica: Replica, tells: list[Told]) -> list[Told]:
    """The same rewards, unless some look like typing errors."""
    if reasons := list(replica.algorithm.suspects(tells).values()):
        raise SuspiciousRewardError("\n".join(reasons))
    return tells


def _amendments(tells: list[Told]) -> dict[int, float | None]:
    return {told.trial: told.reward for told in tells if told.deed == "amend"}


def _no_trial_twice(trial_ids: list[int]) -> None:
    seen: set[int] = set()
    for trial_id in trial_ids:
        if trial_id in seen:
            raise AlreadyToldError(f"trial {trial_id} is told twice in one call")
        seen.add(trial_id)
