"""The candidates of one contextual round as algorithms see them."""

from __future__ import annotations

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.problem.candidates import Listing, Pending, Round
from alexp.problem.contextual.offers import Offer


class OfferTable(Listing):
    """An offer in a visiting order of its own; `mark` tells it apart from all other rounds of a run."""

    def __init__(self, rows: FloatArray, order: IntArray, mark: bytes) -> None:
        table = np.ascontiguousarray(rows[order].T)
        table.flags.writeable = False  # like that of a fixed domain; sweeps would be compiled again for one that is
        self._table = table
        super().__init__(order, mark)

    @property
    def table(self) -> FloatArray:
        """(P, n) features."""
        return self._table


class Reference:
    """Rows (E, P) that stand in for the candidates where these are not known: typical ones, or those seen so far."""

    def __init__(self, rows: FloatArray) -> None:
        self.rows = rows

    def mean_squares(self, centred: bool) -> FloatArray:
        """Mean square of every column, or its variance, shape (P,); zero without rows."""
        if not len(self.rows):
            return np.zeros(self.rows.shape[1])
        return np.asarray(np.var(self.rows, axis=0) if centred else np.mean(np.square(self.rows), axis=0))


def open_round(offer: Offer, order: IntArray, mark: bytes, pending: Pending | None = None) -> Round:
    """The round in which one of the offer's candidates is chosen."""
    return OfferTable(offer.rows, order, mark).round(offer.allowed, pending)
