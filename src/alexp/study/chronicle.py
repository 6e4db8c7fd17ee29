"""What the log knows beyond the state of the algorithm, read once and continued."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from alexp.common.validation import count
from alexp.study.database import logbook, records
from alexp.study.database.events import BeliefRecord, EventDict
from alexp.study.database.storage import Storage

if TYPE_CHECKING:
    import pandas as pd
    from sqlalchemy.engine import Connection


class Chronicle:
    """Beliefs of earlier rounds, and when and by whom pending trials were asked for.

    Events never change, so that a page which looks often reads only those that are new.

    Attributes
    ----------
    beliefs : (trial, beliefs) of the rounds at which they were recorded.
    asked : time and worker of the ask, by pending trial.
    """

    def __init__(self, study: int) -> None:
        self._study = study
        self._n_read = 0
        self.beliefs: list[tuple[int, BeliefRecord]] = []
        self.asked: dict[int, tuple[float, str]] = {}

    def read(self, connection: Connection, n_events: int, pending: Sequence[int], history: bool) -> None:
        """Take in what the first `n_events` events say about pending trials and, if wanted, about earlier rounds."""
        if history:
            self.beliefs += logbook.beliefs(connection, self._study, self._n_read, n_events)
            self._n_read = n_events
        known = {trial: self.asked[trial] for trial in pending if trial in self.asked}
        self.asked = known | logbook.asked(connection, self._study, set(pending) - known.keys(), n_events)


class Logged:
    """The part of a study that shows its log."""

    storage: Storage
    _id: int

    def events(self, since: int = 0, limit: int | None = None) -> list[EventDict]:
        """What happened after the first `since` events, oldest first and at most `limit` of them, as JSON data.

        To follow a study, ask again with the number of events seen so far, `events[-1]["seq"] + 1`.
        """
        start, most = count("since", since, 0), None if limit is None else count("limit", limit)
        with self.storage.reading() as connection:
            stop = records.head(connection, self._id, lock=False).n_events  # raises if the study has been deleted
            stop = stop if most is None else min(stop, start + most)
            return logbook.public_events(connection, self._id, start, stop)

    def events_dataframe(self) -> pd.DataFrame:
        """One row per event: kind, trial, at (UTC), worker (host:process); the row number is the total order."""
        import pandas as pd  # slow to import, and needed here only

        with self.storage.reading() as connection:
            head = records.head(connection, self._id, lock=False)
            rows = logbook.moments(connection, self._id, head.n_events)
        frame = pd.DataFrame(rows, columns=["kind", "trial", "at", "worker"])
        frame["at"] = pd.to_datetime(frame["at"], unit="s", utc=True)
        return frame

    def beliefs(self) -> list[tuple[int, BeliefRecord]]:
        """(trial, {"told", "q", "returns", "models"}) at the asks for which they were recorded."""
        with self.storage.reading() as connection:
            head = records.head(connection, self._id, lock=False)
            return logbook.beliefs(connection, self._id, 0, head.n_events)
