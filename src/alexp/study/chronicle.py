"""What the log knows beyond the state of the algorithm, read once and continued."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from alexp.study.database import logbook
from alexp.study.database.events import Belief

if TYPE_CHECKING:
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
        self.beliefs: list[tuple[int, Belief]] = []
        self.asked: dict[int, tuple[float, str]] = {}

    def read(self, connection: Connection, n_events: int, pending: Sequence[int], history: bool) -> None:
        """Take in what the first `n_events` events say about pending trials and, if wanted, about earlier rounds."""
        if history:
            self.beliefs += logbook.beliefs(connection, self._study, self._n_read, n_events)
            self._n_read = n_events
        known = {trial: self.asked[trial] for trial in pending if trial in self.asked}
        self.asked = known | logbook.asked(connection, self._study, set(pending) - known.keys(), n_events)
