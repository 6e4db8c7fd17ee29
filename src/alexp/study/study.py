"""Study: an algorithm whose life is longer than its process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

import numpy as np

from alexp.algorithms.base import Algorithm, check_reward
from alexp.algorithms.trials import AlreadyToldError, Recommendation, Trial
from alexp.common.arrays import FloatArray, IntArray
from alexp.problem.candidates import check_available
from alexp.study import records
from alexp.study.errors import ReplayError, StorageError
from alexp.study.events import LIBRARY, Event
from alexp.study.observations import observations
from alexp.study.replay import Replica
from alexp.study.storage import Storage

if TYPE_CHECKING:
    import pandas as pd
    from sqlalchemy.engine import Connection

_Checked = TypeVar("_Checked")


class Study:
    """A durable run of an algorithm; make one with `create_study` or `load_study`.

    Any number of processes and threads may hold the same study. Each keeps the algorithm in memory; to act, it
    locks the study, applies what others have done since, acts, appends the events, and commits. What a method
    has returned is therefore in the database, and all processes agree on every trial.
    """

    def __init__(self, storage: Storage, row: Any, make: Callable[[], Algorithm], first: Algorithm) -> None:
        self.name: str = row.name
        self.created_at: float = row.created_at
        self.library: str = row.library
        self.storage = storage
        self._id = int(row.id)
        self._make = make
        self._fresh: Algorithm | None = first  # not used yet; saves building the algorithm twice
        self._replica: Replica | None = None
        self._mutex = threading.RLock()

    # -- acting ------------------------------------------------------------------------------------------------

    @overload
    def ask(self, n: None = None, available: Any = None, distinct: bool = False) -> Trial: ...
    @overload
    def ask(self, n: int, available: Any = None, distinct: bool = False) -> list[Trial]: ...
    def ask(self, n: int | None = None, available: Any = None, distinct: bool = False) -> Trial | list[Trial]:
        """Propose an action, or a list of `n`, for instance a plate.

        `available` restricts the choice to some candidates, by index or boolean mask. With `distinct` no candidate
        comes twice in one list; otherwise a promising one may be repeated, as noise can make worthwhile.
        """
        wanted = 1 if n is None else n

        def check(replica: Replica) -> IntArray | None:
            size = replica.algorithm.domain.n_candidates
            allowed = None if available is None else check_available(available, size)
            replica.check_ask(wanted, allowed, distinct)
            return allowed

        replica, events = self._act(check, lambda replica, allowed: replica.ask(wanted, allowed, distinct))
        trials = [replica.algorithm.trial(event.trial) for event in events]
        return trials[0] if n is None else trials

    def tell(self, trial: Trial | int, reward: float) -> None:
        """Report the reward of a trial, by the trial or its id, from any process and in any order."""
        self.tell_many([(trial, reward)])

    def tell_many(self, results: Iterable[tuple[Trial | int, float]] | Mapping[int, float]) -> None:
        """Report several rewards at once: all of them, or, if any is wrong, none."""
        pairs = list(results.items() if isinstance(results, Mapping) else results)

        def check(replica: Replica) -> list[tuple[int, float]]:
            checked = [replica.check_tell(trial, reward) for trial, reward in pairs]
            _no_trial_twice([trial_id for trial_id, _ in checked])
            return checked

        self._act(check, lambda replica, checked: [replica.tell(*pair) for pair in checked])

    def abandon(self, trial: Trial | int) -> None:
        """Give up a pending trial, for instance a broken vial. It keeps its number and takes no reward any more."""
        self._act(lambda replica: replica.check_pending(trial), lambda replica, trial_id: [replica.abandon(trial_id)])

    def add_observations(self, frame: pd.DataFrame, nearest: bool = False) -> list[Trial]:
        """Take in data measured elsewhere: all rows, or, if any is wrong, none.

        The frame has a column `reward` and names the candidates by `index`, by `x`, or by columns of their own
        table. Each row becomes a trial that is told at once, with no model and a missing propensity: the
        algorithm learns from it, and nobody can mistake it for a decision of the algorithm. Points off the grid
        of an Interval or Box are refused unless `nearest`.
        """

        def check(replica: Replica) -> list[tuple[int, float]]:
            rows = observations(replica.algorithm.domain, frame, nearest)
            return [(index, check_reward(reward) + 0.0) for index, reward in rows]

        replica, events = self._act(check, lambda replica, rows: [replica.observe(*row) for row in rows])
        return [replica.algorithm.trial(event.trial) for event in events]

    def _act(
        self, check: Callable[[Replica], _Checked], decide: Callable[[Replica, _Checked], list[Event]]
    ) -> tuple[Replica, list[Event]]:
        """One transaction: lock, catch up, check, act, append. The replica counts only once it is committed."""
        with self._mutex:
            self._opened()
            with self.storage.writing() as connection:
                replica = self._catch_up(connection, lock=True)
                checked = check(replica)  # raises without having changed anything
                self._replica = None  # until the commit; if anything fails, the log is read again
                events = decide(replica, checked)
                if events:
                    records.append(connection, self._id, events)
            self._replica = replica
            if replica.snapshot_is_due:
                self._save(replica)
            return replica, events

    # -- looking -----------------------------------------------------------------------------------------------

    @property
    def algorithm(self) -> Algorithm:
        """The algorithm as of now, to be looked at; asking or telling it directly would not be recorded."""
        return self.refresh().algorithm

    @property
    def probabilities(self) -> FloatArray:
        """q over the M models for the next round, shape (M,), for algorithms that have it."""
        with self._mutex:
            algorithm = self.algorithm
            if not hasattr(algorithm, "probabilities"):
                raise AttributeError(f"algorithm {algorithm.name!r} has no probabilities over models")
            return np.asarray(algorithm.probabilities)

    def best(self) -> Recommendation:
        """The action to stop with, judged by what is known now."""
        with self._mutex:
            return self.algorithm.best()

    def pending(self) -> list[Trial]:
        """Trials that await their reward, oldest first."""
        with self._mutex:
            replica = self.refresh()
            return [trial for trial in replica.algorithm.pending() if trial.id not in replica.abandoned]

    def trial(self, trial_id: int) -> Trial:
        """A trial by its id."""
        return self.algorithm.trial(trial_id)

    @property
    def counts(self) -> dict[str, int]:
        """Number of trials: asked, told (with observations from elsewhere), pending, abandoned."""
        with self._mutex:
            replica = self.refresh()
            asked, told, abandoned = replica.algorithm.n_asked, replica.algorithm.n_told, len(replica.abandoned)
        return {"trials": asked, "told": told, "pending": asked - told - abandoned, "abandoned": abandoned}

    def trials_dataframe(self) -> pd.DataFrame:
        """One row per trial: id, x, index, model, explored, propensity, reward, state.

        `state` is "told", "pending", "abandoned", or "observed" for data added from elsewhere.
        """
        with self._mutex:
            replica = self.refresh()
            frame = replica.algorithm.trials_dataframe()
        given_up = frame["id"].isin(replica.abandoned)
        observed = frame["propensity"].isna()
        frame["state"] = np.select(
            [given_up, observed, frame["reward"].isna()], ["abandoned", "observed", "pending"], "told"
        )
        return frame

    def events_dataframe(self) -> pd.DataFrame:
        """One row per event: kind, trial, at (UTC), worker (host:process); the row number is the total order."""
        import pandas as pd  # slow to import, and needed here only

        with self.storage.reading() as connection:
            rows = records.moments(connection, self._id)
        frame = pd.DataFrame(rows, columns=["kind", "trial", "at", "worker"])
        frame["at"] = pd.to_datetime(frame["at"], unit="s", utc=True)
        return frame

    def beliefs(self) -> list[tuple[int, dict[str, Any]]]:
        """(trial, {"told", "q", "returns", "models"}) at the asks for which they were recorded."""
        with self.storage.reading() as connection:
            return records.beliefs(connection, self._id)

    def report(self, path: str | Path) -> Path:
        """Write a self-contained HTML page about the study."""
        from alexp.study.report.report import write_report

        return write_report(self, Path(path))

    # -- keeping up --------------------------------------------------------------------------------------------

    def refresh(self) -> Replica:
        """Apply what other processes have done; every method does this by itself."""
        with self._mutex:
            self._opened()
            with self.storage.reading() as connection:
                return self._catch_up(connection, lock=False)

    def _opened(self) -> None:
        """Rebuild the replica from the newest snapshot if there is none."""
        if self._replica is not None:
            return
        with self.storage.reading() as connection:
            self._replica = self._rebuild(connection)
            self._catch_up(connection, lock=False)
        if self._replica is not None and self._replica.snapshot_is_due:
            self._save(self._replica)

    def _rebuild(self, connection: Connection) -> Replica:
        records.head(connection, self._id, lock=False)  # raises if the study has been deleted
        for n_events, snapshot in records.read_snapshots(connection, self._id):
            replica = Replica(self._new_algorithm())
            try:
                replica.resume(n_events, snapshot)
            except (KeyError, TypeError, ValueError, AttributeError):  # of another version: the log is the truth
                continue
            return replica
        return Replica(self._new_algorithm())

    def _new_algorithm(self) -> Algorithm:
        algorithm, self._fresh = self._fresh or self._make(), None
        return algorithm

    def _catch_up(self, connection: Connection, lock: bool) -> Replica:
        replica = self._replica
        assert replica is not None
        n_events, snapshot_at = records.head(connection, self._id, lock)
        if n_events < replica.n_events:
            self._replica = None
            raise StorageError("the log of the study has become shorter: was an old copy of the database put back?")
        if n_events > replica.n_events:
            try:
                replica.follow(records.since(connection, self._id, replica.n_events))
            except (AlreadyToldError, ValueError, IndexError) as error:
                self._replica = None
                raise ReplayError(f"the log of study {self.name!r} contradicts itself: {error}") from error
            except BaseException:
                self._replica = None
                raise
        replica.noted(snapshot_at)
        return replica

    def _save(self, replica: Replica) -> None:
        """Write a snapshot. It only saves time, so a failure must not undo what has been acknowledged."""
        start = perf_counter()
        with suppress(StorageError), self.storage.writing() as connection:
            records.write_snapshot(connection, self._id, replica.n_events, LIBRARY, replica.snapshot())
        replica.saved(perf_counter() - start)

    def close(self) -> None:
        """Save what opening would have to replay, and close the connections; they open again when needed."""
        with self._mutex:
            if self._replica is not None and self._replica.is_ahead:
                self._save(self._replica)
            self.storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Study({self.name!r}, storage={self.storage.describe()!r})"


def _no_trial_twice(trial_ids: list[int]) -> None:
    seen: set[int] = set()
    for trial_id in trial_ids:
        if trial_id in seen:
            raise AlreadyToldError(f"trial {trial_id} is told twice in one call")
        seen.add(trial_id)
