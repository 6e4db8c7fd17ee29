"""Contextual rounds as the log of a study stores them: the rows that replay needs, contexts and ids as JSON.

What is stored is also what the process that asked keeps in memory: all processes know the same, and what a caller does
with his objects later changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from alexp.algorithms.base import Algorithm
from alexp.algorithms.offer_log import check_packed, pack_rows, plain, unpack_rows, unplain
from alexp.common.arrays import Action, AnyArray, FloatArray
from alexp.common.codec import Packable, pack, unpack
from alexp.problem.offers import Offer
from alexp.study.database.events import Detail, StoredOffer, describe_restriction, restriction

MOST_TEXT = 2**20  # bytes that context and ids of a round, or an action, may take as JSON
MOST_FEATURES = 2**24  # bytes of features that one ask may store


def stores_all(algorithm: Algorithm) -> bool:
    """Whether every ask stores all rows it was offered: because they are wanted, or because asks are repeated."""
    return algorithm.log_features == "all" or algorithm.asks_matter()


def recordable(algorithm: Algorithm, made: Offer) -> Offer:
    """An offer as every process will know it, or an error if it is too large to be stored."""
    rows, everything = made.rows, stores_all(algorithm)
    size = rows.nbytes if everything else rows[:1].nbytes
    if size > MOST_FEATURES:
        n, p = rows.shape
        if everything and algorithm.log_features == "all":
            why = 'log_features="all" stores all of them; "chosen" one row only, or offer fewer candidates'
        elif everything:
            why = f"{type(algorithm).__name__} is repeated with all rows it was offered: offer fewer candidates"
        else:
            why = "one row is too large"
        raise ValueError(
            f"the features of this round, {n} candidates x {p} columns, take {_megabytes(size)}, and a study stores at "
            f"most {_megabytes(MOST_FEATURES)} per ask; {why}"
        )
    if algorithm.log_features == "none":  # what is not stored cannot leak
        return replace(made, context=None, ids=None, actions=_Recorded(made.actions))
    context, ids = _recorded("context and ids", (made.context, made.ids))
    return replace(made, context=context, ids=ids, actions=_Recorded(made.actions))


class _Recorded(Sequence[Action]):
    """Actions as they come back from the log; each is converted when it is played."""

    def __init__(self, actions: Sequence[Action]) -> None:
        self._actions = actions

    def __len__(self) -> int:
        return len(self._actions)

    def __getitem__(self, index: int | slice) -> Action:
        return _recorded("the candidate", self._actions[index])


def _recorded(name: str, value: object) -> Packable:
    """A value as it comes back from the log."""
    try:
        text = json.dumps(pack(plain(value)))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{name} cannot be stored as JSON: {error}") from error
    if len(text) > MOST_TEXT:
        raise ValueError(
            f"{name} of this round: {_megabytes(len(text))} as JSON, and a study stores at most "
            f"{_megabytes(MOST_TEXT)}; pass what the models need and a name for the rest, or create the study with "
            'log_features="none", which stores neither contexts nor ids'
        )
    return unplain(unpack(json.loads(text)))


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.3g} MB"


# -- details of events -----------------------------------------------------------------------------------------


def offer_detail(made: Offer, index: int, everything: bool) -> Detail:
    """What an event stores of the round in which candidate `index` was played."""
    stored: StoredOffer = {"n": len(made), "action": plain(made.actions[index])}
    if everything:
        stored["rows"] = _bytes(made.rows)
    else:
        stored["row"] = _bytes(made.rows[index : index + 1])
    if made.context is not None:
        stored["context"] = plain(made.context)
    if made.ids is not None:
        stored["ids"] = [plain(one) for one in made.ids]
    return describe_restriction(made.allowed, len(made)) | {"offer": stored}


def _bytes(rows: FloatArray) -> AnyArray:
    return np.frombuffer(pack_rows(rows), dtype=np.uint8)


def offer_from(detail: Detail, index: int, n_columns: int) -> Offer:
    """The round of an event; rows that were not stored are zero, actions that were not played None."""
    stored = detail.get("offer")
    if stored is None:
        raise ValueError("it has no features, and contextual rounds do")
    n, everything = int(stored["n"]), "rows" in stored
    if not 0 <= index < n:
        raise ValueError(f"candidate {index} is none of the {n} of its round")
    packed = np.asarray(stored["rows"] if everything else stored["row"], dtype=np.uint8).tobytes()
    check_packed("the features", packed, n if everything else 1, n_columns)
    if everything:
        rows = unpack_rows(packed, n, n_columns)
    else:
        rows = np.zeros((n, n_columns))
        rows[index] = unpack_rows(packed, 1, n_columns)[0]
    actions: list[Action] = [None] * n
    actions[index] = unplain(stored["action"])
    ids = stored.get("ids")
    keys = None if ids is None else tuple(unplain(one) for one in ids)
    return Offer(rows, actions, keys, unplain(stored.get("context")), restriction(detail, n))
