"""What is kept of contextual rounds, one entry per trial; the rest of the log is in `log`."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from alexp.algorithms.log import check_restriction, pack_restriction, unpack_restriction
from alexp.common.arrays import Action, FloatArray, IntArray
from alexp.common.codec import Packable, State
from alexp.common.schema import anything, integers, record, same, sequence
from alexp.common.validation import one_of
from alexp.problem.domains import ContextualDomain, Domain
from alexp.problem.offers import Key, Offer

if TYPE_CHECKING:
    from alexp.algorithms.log import TrialLog

_MOST_CANDIDATES = 10**7  # of a round, in stored logs
LogFeatures = Literal["chosen", "all", "none"]
FORMS: tuple[LogFeatures, ...] = get_args(LogFeatures)


def check_log_features(log_features: LogFeatures | None, domain: Domain) -> LogFeatures | None:
    """What is kept of contextual rounds, "chosen" unless stated; None on domains that are fixed."""
    if isinstance(domain, ContextualDomain):
        return "chosen" if log_features is None else one_of("log_features", log_features, FORMS)
    if log_features is not None:
        raise ValueError("log_features is for contextual rounds; the features of a fixed domain are those of its table")
    return None


class Forgotten(ValueError):
    """What is asked for was not kept, because the run was made with `log_features="none"`."""


class OfferLog:
    """Contexts, ids and rows of all trials.

    The row that was chosen is kept until its reward is told, and from then on unless `form` is "none"; all rows that
    were offered are kept if `form` is "all", or if the run could not be repeated without them (`whole`). One row takes
    8 P bytes, or 12 for each number that is not zero.
    """

    def __init__(self, form: str, whole: bool, n_columns: int) -> None:
        self.form, self.n_columns = form, n_columns
        self.keeps_all = form == "all" or (form == "chosen" and whole)
        self.n_candidates = array("q")
        self.actions: list[Action] = []
        self.contexts: list[object] = []
        self.ids: list[tuple[Key, ...] | None] = []
        self.played: Counter[Key] = Counter()  # trials of every id that are pending or have a reward
        self._restrictions: list[bytes | None] = []
        self._chosen: list[bytes | None] = []
        self._offered: list[bytes | None] = []

    def __len__(self) -> int:
        return len(self.n_candidates)

    def append(self, offer: Offer, index: int) -> None:
        """Keep what the next trial was chosen from."""
        n = len(offer)
        self.n_candidates.append(n)
        self.actions.append(_kept(offer.actions[index]))
        self.contexts.append(_kept(offer.context))
        self.ids.append(offer.ids)
        if offer.ids is not None:
            self.played[offer.ids[index]] += 1
        self._restrictions.append(None if offer.allowed is None else pack_restriction(offer.allowed, n))
        self._chosen.append(pack_rows(offer.rows[index : index + 1]))
        self._offered.append(pack_rows(offer.rows) if self.keeps_all else None)

    def settle(self, trial: int, index: int, lost: bool = False) -> None:
        """The trial awaits nothing any more; `lost` if it has no reward either."""
        ids = self.ids[trial]
        if lost and ids is not None:
            self.played[ids[index]] -= 1
        if self.form == "none":
            self.contexts[trial] = self.ids[trial] = self._restrictions[trial] = self._chosen[trial] = None

    def row(self, trial: int) -> FloatArray:
        """The row that was chosen, (P,)."""
        packed = self._chosen[trial]
        if packed is None:
            raise Forgotten('log_features="none" keeps no rows after the reward; this needs "chosen" or "all"')
        row: FloatArray = unpack_rows(packed, 1, self.n_columns)[0]
        return row

    def rows(self, trials: list[int] | tuple[int, ...]) -> FloatArray:
        """Rows that were chosen, (k, P)."""
        return np.array([self.row(trial) for trial in trials]).reshape(len(trials), self.n_columns)

    def offered(self, trial: int) -> FloatArray | None:
        """All rows that a trial was chosen from, (n, P); None where only one was kept."""
        packed = self._offered[trial]
        return None if packed is None else unpack_rows(packed, self.n_candidates[trial], self.n_columns)

    def allowed(self, trial: int) -> IntArray | None:
        """Positions that could be chosen; None for all."""
        packed = self._restrictions[trial]
        return None if packed is None else unpack_restriction(packed, self.n_candidates[trial])

    def offer(self, trial: int, index: int, n_columns: int) -> Offer:
        """What a trial was chosen from, on so many columns; where only its own row was kept, the others are zero."""
        n, known = self.n_candidates[trial], self.offered(trial)
        rows = np.zeros((n, n_columns))
        if known is None:
            rows[index, : self.n_columns] = self.row(trial)
        else:
            rows[:, : self.n_columns] = known
        chosen = {index: self.actions[trial]}
        actions = [chosen.get(k) for k in range(n)]
        return Offer(rows, actions, self.ids[trial], self.contexts[trial], self.allowed(trial))

    # -- saved -------------------------------------------------------------------------------------------------

    def state(self) -> State:
        """Everything, as arrays and plain data."""
        bundles = {"restrictions": self._restrictions, "chosen": self._chosen, "offered": self._offered}
        return {
            "n_candidates": np.array(self.n_candidates, dtype=np.int64),
            "actions": [plain(one) for one in self.actions],
            "contexts": [plain(one) for one in self.contexts],
            "ids": [None if ids is None else [plain(key) for key in ids] for ids in self.ids],
        } | {name: _bundle(parts) for name, parts in bundles.items()}

    def check(self, log: TrialLog) -> None:
        """Raise unless actions were among the candidates, and rows are there for all trials that need them.

        Counts what was played of every id.
        """
        if np.any(np.array(log.index, dtype=np.int64) >= np.array(self.n_candidates, dtype=np.int64)):
            raise ValueError("log['index'] must be below log['offers']['n_candidates'] in every round")
        live = (k for k, ids in enumerate(self.ids) if ids is not None and k not in log.abandoned)
        self.played = Counter((self.ids[k] or ())[log.index[k]] for k in live)
        for trial in log.pending if self.form == "none" else range(len(log)):
            if self._chosen[trial] is None:
                raise ValueError(f"log['offers']['chosen'] lacks the row of trial {trial}")
            if self.keeps_all and self._offered[trial] is None:
                raise ValueError(f"log['offers']['offered'] lacks the rows that trial {trial} was chosen from")

    def restore(self, state: Packable, n: int) -> None:
        """Invert `state`, of a log of n trials."""
        fields = ("actions", "contexts", "ids", "restrictions", "chosen", "offered")
        checks = {"n_candidates": integers(n, low=1, high=_MOST_CANDIDATES)} | dict.fromkeys(fields, anything)
        known = record("log['offers']", state, checks)
        self.n_candidates = array("q", known["n_candidates"].tobytes())
        for name in ("actions", "contexts"):
            setattr(self, name, [unplain(one) for one in sequence(f"log['offers'][{name!r}]", known[name], n)])
        ids = sequence("log['offers']['ids']", known["ids"], n)
        self.ids = [None if one is None else _keys(one, size) for one, size in zip(ids, self.n_candidates, strict=True)]
        self._restrictions = _parts("restrictions", known["restrictions"], n)
        self._chosen, self._offered = _parts("chosen", known["chosen"], n), _parts("offered", known["offered"], n)
        for k, size in enumerate(self.n_candidates):
            for name, packed, rows in (("chosen", self._chosen[k], 1), ("offered", self._offered[k], size)):
                if packed is not None:
                    check_packed(f"log['offers'][{name!r}] of trial {k}", packed, rows, self.n_columns)
            restriction = self._restrictions[k]
            if restriction is not None:
                check_restriction(restriction, [size])


def _kept(value: Action) -> Action:
    """A context or an action as it was; arrays as copies, since callers fill them with the next one."""
    return np.array(value) if isinstance(value, np.ndarray) else value


def _keys(ids: Packable, n: int) -> tuple[Key, ...]:
    keys = tuple(unplain(key) for key in sequence("log['offers']['ids']", ids, n))
    if len({repr(key) for key in keys}) != n:
        raise ValueError("log['offers']['ids'] must be distinct in every round")
    return keys


def _bundle(parts: list[bytes | None]) -> State:
    """Many byte strings as two arrays; no bytes for None."""
    sizes = np.array([0 if part is None else len(part) for part in parts], dtype=np.int64)
    return {"sizes": sizes, "data": np.frombuffer(b"".join(part or b"" for part in parts), dtype=np.uint8)}


def _parts(name: str, state: Packable, n: int) -> list[bytes | None]:
    checks = {"sizes": integers(n, low=0), "data": integers(None, low=0, high=255)}
    known = record(f"log['offers'][{name!r}]", state, checks)
    data, ends = known["data"].astype(np.uint8).tobytes(), np.cumsum(known["sizes"]).tolist()
    same(f"length of log['offers'][{name!r}]", len(data), ends[-1] if ends else 0, "the sum of its sizes")
    sizes = known["sizes"].tolist()
    return [data[end - size : end] if size else None for end, size in zip(ends, sizes, strict=True)]


_TUPLE = "__tuple__"
_HEADER = 8  # bytes of P


def pack_rows(rows: FloatArray) -> bytes:
    """Rows (n, P) as bytes: all numbers, or those that are not zero with their places, whatever is shorter.

    Rows of models per arm are zero but for one arm's columns.
    """
    flat = np.ascontiguousarray(rows, dtype=np.float64).ravel()
    head = np.int64(rows.shape[-1]).tobytes()
    places = np.flatnonzero(flat.view(np.int64)) if flat.size else np.empty(0, dtype=np.int64)  # -0.0 is no zero
    if 12 * places.size >= 8 * flat.size:
        return head + b"#" + flat.tobytes()
    return head + b"+" + places.astype(np.uint32).tobytes() + flat[places].tobytes()


def unpack_rows(packed: bytes, n: int, n_columns: int) -> FloatArray:
    """Invert `pack_rows`: (n, P); rows of an earlier time with fewer columns have zeros in the new ones.

    >>> unpack_rows(pack_rows(np.array([[0.0, 2.0, 0.0]])), 1, 4).tolist()
    [[0.0, 2.0, 0.0, 0.0]]
    """
    width, form, data = int(np.frombuffer(packed[:_HEADER], np.int64)[0]), packed[_HEADER:9], packed[9:]
    flat = np.zeros(n * width)
    if form == b"#":
        flat[:] = np.frombuffer(data)
    else:
        count = len(data) // 12
        flat[np.frombuffer(data[: 4 * count], np.uint32)] = np.frombuffer(data[4 * count :])
    rows = flat.reshape(n, width)
    if width == n_columns:
        return rows
    out = np.zeros((n, n_columns))
    out[:, :width] = rows
    return out


def check_packed(name: str, packed: bytes, n: int, n_columns: int) -> None:
    """Raise unless these bytes hold n finite rows of at most P columns."""
    width = int(np.frombuffer(packed[:_HEADER], np.int64)[0]) if len(packed) > _HEADER else 0
    form, size = packed[_HEADER:9], len(packed) - 9
    fits = size == 8 * n * width if form == b"#" else form == b"+" and size % 12 == 0 and size < 8 * n * width
    if not 1 <= width <= n_columns or not fits:
        raise ValueError(f"{name} must hold {n} rows of at most {n_columns} columns")
    first = 9 + size // 3 if form == b"+" else 9
    places = np.frombuffer(packed[9:first], np.uint32).astype(np.int64)
    if places.size and not (np.all(np.diff(places) > 0) and places[-1] < n * width):
        raise ValueError(f"{name} must name places among {n} rows of {width} columns, in order")
    if not np.all(np.isfinite(np.frombuffer(packed[first:]))):  # without taking memory for what is not there
        raise ValueError(f"{name} must hold finite features")


def plain(value: Packable) -> Packable:
    """A context, an id or an action as data that can be stored: arrays stay, objects of one's own become text.

    >>> plain({"age": np.int64(4), "tags": ("a", "b")})
    {'age': 4, 'tags': {'__tuple__': ['a', 'b']}}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        return value if value.dtype.kind in "biufU" else [plain(one) for one in value.tolist()]
    if isinstance(value, tuple):
        return {_TUPLE: [plain(one) for one in value]}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, Mapping) or hasattr(value, "to_dict"):
        items = value if isinstance(value, Mapping) else value.to_dict()
        return {str(key): plain(one) for key, one in items.items()}
    return str(value)


def unplain(value: Packable) -> Packable:
    """Invert `plain`, as far as that goes."""
    if isinstance(value, list):
        return [unplain(one) for one in value]
    if isinstance(value, dict):
        if set(value) == {_TUPLE}:
            return tuple(unplain(one) for one in value[_TUPLE])
        return {key: unplain(one) for key, one in value.items()}
    return value
