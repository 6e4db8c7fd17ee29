"""The log of a study, its snapshots, and calls by their keys. Functions work in their caller's transaction.

Events are appended at the end. All that is read is verified by the checksums of `events`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from alexp.algorithms.saving import FORMAT
from alexp.common.warning import caution
from alexp.problem.objectives import Value
from alexp.study.errors import StorageError, StorageWarning, StudyNotFoundError, UnknownOutcomeError, damaged
from alexp.study.events import (
    AMENDS,
    FAILED,
    BeliefRecord,
    Event,
    EventDict,
    belief_is_due,
    decompress,
    detail_of,
    digest,
    follows,
    key_of,
    public_event,
    reward_of,
    verify,
    with_checksums,
)
from alexp.study.storage import Storage, damage_errors, events, is_unreadable, snapshots, studies
from alexp.study.view import PendingAsk

if TYPE_CHECKING:
    from alexp.study.replay import Snapshot

_T = TypeVar("_T")

BATCH = 10_000  # events read at a time
_FEW = 64  # events that are read without querying their sizes
_MOST_BYTES = 2**26  # of details read at a time: contextual rounds may store up to 16 MB each
_COLUMNS = [events.c[field.name] for field in fields(Event)]

# Built once: these run at every ask and tell.
_HEAD = sa.select(studies.c.n_events, studies.c.snapshot_at, studies.c.chain).where(
    studies.c.id == sa.bindparam("study")
)
_LOCK = _HEAD.with_for_update()
_RANGE = (
    events.c.study_id == sa.bindparam("study"),
    events.c.seq >= sa.bindparam("start"),
    events.c.seq < sa.bindparam("stop"),
)
_SINCE = sa.select(*_COLUMNS).where(*_RANGE).order_by(events.c.seq)
_SIZES = sa.select(events.c.seq, sa.func.length(events.c.detail)).where(*_RANGE).order_by(events.c.seq)
_ADVANCE = (
    studies.update()
    .where(studies.c.id == sa.bindparam("study"))
    .values(n_events=sa.bindparam("total"), chain=sa.bindparam("newest"))
)
_INSERT = events.insert().values({column.name: sa.bindparam(column.name) for column in events.columns})
_ADVANCE_AND_INSERT = _ADVANCE.add_cte(_INSERT.cte("appended"))

# Events with the checksum of the event before, by which they are verified.
_before = events.alias("before")
_PAIRS = sa.select(*_COLUMNS, _before.c.chain.label("chain_before")).select_from(
    events.outerjoin(_before, sa.and_(_before.c.study_id == events.c.study_id, _before.c.seq == events.c.seq - 1))
)


class Head(NamedTuple):
    """The end of a log: number of events, number of events in the newest snapshot, checksum of the last event."""

    n_events: int
    snapshot_at: int
    chain: bytes


def head(connection: Connection, study: int, lock: bool) -> Head:
    """The end of the log; with `lock`, no other process can append until the commit."""
    with damage_errors("the end of the log of the study"):
        row = connection.execute(_LOCK if lock else _HEAD, {"study": study}).first()
        if row is not None:
            return Head(int(row[0]), int(row[1]), bytes(row[2] or b""))
    raise StudyNotFoundError("the study has been deleted")


def append(connection: Connection, study: int, new: Sequence[Event], before: bytes, key: str) -> bytes:
    """Add the events of one call at the end of the log, whose checksum is `before`; returns the new checksum.

    The caller holds the lock.
    """
    sealed = list(with_checksums(before, new, key))
    rows, newest = [{"study_id": study} | vars(event) for event in sealed], sealed[-1].chain
    total = {"study": study, "total": new[-1].seq + 1, "newest": newest}
    if connection.dialect.name == "postgresql" and len(rows) == 1:  # one round trip to the server instead of two
        connection.execute(_ADVANCE_AND_INSERT, rows[0] | total)
        return newest
    connection.execute(events.insert(), rows)
    connection.execute(_ADVANCE, total)
    return newest


# -- in order --------------------------------------------------------------------------------------------------


def verified_events(connection: Connection, study: int, start: int, stop: int, before: bytes) -> list[Event]:
    """Events number `start` to `stop` - 1, in order, verified: they follow the checksum `before`."""
    found = read(connection, study, start, stop)
    verify(before, found, start, stop)
    return found


def read(connection: Connection, study: int, start: int, stop: int) -> list[Event]:
    """Events number `start` to `stop` - 1, not verified; an error names the first that cannot be read."""
    try:
        rows = connection.execute(_SINCE, {"study": study, "start": start, "stop": stop})
        return [Event(*row) for row in rows]
    except (sa.exc.DBAPIError, TypeError, ValueError, OverflowError, LookupError) as error:
        if stop - start == 1 or not is_unreadable(error, connection):
            with damage_errors(f"event {start}", start):
                raise
    for seq in range(start, stop):
        try:
            read(connection, study, seq, seq + 1)
        except sa.exc.DBAPIError as error:
            raise damaged(f"event {seq} cannot be read ({error.orig})", seq) from error
    raise damaged(f"events {start} to {stop - 1} can be read one by one only", start)


def batch_end(connection: Connection, study: int, start: int, stop: int) -> int:
    """The end, at most `stop`, of the next batch of events to read: at least one event, and limited bytes."""
    stop, total = min(stop, start + BATCH), 0
    if stop - start <= _FEW:
        return stop
    try:
        sizes = connection.execute(_SIZES, {"study": study, "start": start, "stop": stop}).all()
    except (sa.exc.DBAPIError, TypeError, ValueError):  # reading them will say which is damaged
        return stop
    for seq, size in sizes:
        total += size if isinstance(size, int) else 0
        if total > _MOST_BYTES:
            return min(max(int(seq), start + 1), stop)
    return stop


def read_all(connection: Connection, study: int, n_events: int, before: bytes, start: int = 0) -> Iterator[Event]:
    """Events `start` to `n_events` - 1, verified, read in parts; `before` is the checksum that they follow."""
    while start < n_events:
        stop = batch_end(connection, study, start, n_events)
        for event in verified_events(connection, study, start, stop, before):
            before = event.chain
            yield event
        start = stop


def last_correction(connection: Connection, study: int, start: int, stop: int) -> int:
    """Number of the last event among `start` to `stop` - 1 that amends or retracts a reward; -1 if there is none."""
    own = (events.c.study_id == study, events.c.seq >= start, events.c.seq < stop, events.c.kind.in_(AMENDS))
    with damage_errors("the table of events"):
        found = connection.execute(sa.select(sa.func.max(events.c.seq)).where(*own)).scalar()
    return -1 if found is None else int(found)


def checksum_after(connection: Connection, study: int, n_events: int) -> bytes | None:
    """The checksum that event number `n_events` follows: that of the event before it, or of the study's row."""
    query = sa.select(events.c.chain).where(events.c.study_id == study, events.c.seq == n_events - 1)
    first = sa.select(studies.c.checksum).where(studies.c.id == study)
    with damage_errors(f"event {n_events - 1}", n_events - 1):
        return connection.execute(query if n_events else first).scalar()


def count_events(connection: Connection, study: int) -> int:
    """Number of stored events."""
    query = sa.select(sa.func.count()).select_from(events).where(events.c.study_id == study)
    return int(connection.execute(query).scalar_one())


def first_gap(connection: Connection, study: int) -> int:
    """Number of the first missing event; the number of events if none is missing."""
    query = sa.select(events.c.seq).where(events.c.study_id == study).order_by(events.c.seq)
    for number, (seq,) in enumerate(connection.execute(query)):
        if seq != number:
            return number
    return count_events(connection, study)


def public_events(connection: Connection, study: int, start: int, stop: int) -> list[EventDict]:
    """Events number `start` to `stop` - 1 as JSON data, verified."""
    if start >= stop:
        return []
    before = checksum_after(connection, study, start) or b""
    found = read_all(connection, study, stop, before, start)
    return [public_event(event) for event in found]


def event_times(connection: Connection, study: int, stop: int) -> list[tuple[str, int, float, str]]:
    """Kind, trial, time and worker of the first `stop` events, verified."""
    first = checksum_after(connection, study, 0) or b""
    return [(event.kind, event.trial, event.at, event.worker) for event in read_all(connection, study, stop, first)]


# -- some of them ----------------------------------------------------------------------------------------------


def _matching(connection: Connection, study: int, *conditions: sa.ColumnElement[bool]) -> Iterator[Event]:
    """Events that fulfil the conditions, each of them verified."""
    query = _PAIRS.where(events.c.study_id == study, *conditions).order_by(events.c.seq)
    with damage_errors("an event"):
        rows = connection.execute(query).all()
    for *values, before in rows:
        event = Event(*values)
        if event.seq == 0:
            before = checksum_after(connection, study, 0)
        if not follows(before or b"", event):
            raise damaged(f"event {event.seq}, or the one before it, is damaged: its checksum is wrong")
        yield event


def _matching_between(
    connection: Connection, study: int, start: int, stop: int, *conditions: sa.ColumnElement[bool]
) -> Iterator[Event]:
    """Events among `start` to `stop` - 1 that fulfil the conditions, verified, read in parts."""
    while start < stop:
        end = batch_end(connection, study, start, stop)
        yield from _matching(connection, study, events.c.seq >= start, events.c.seq < end, *conditions)
        start = end


def events_of_call(connection: Connection, study: int, key: str) -> list[Event]:
    """The events of the call with this key, in order; empty if the call was not stored."""
    found = list(_matching(connection, study, events.c.key == key_of(key, 0)))
    while found:  # events of one call are consecutive
        last = found[-1].seq
        for event in _matching(connection, study, events.c.seq > last, events.c.seq <= last + len(found)):
            if event.key != key_of(key, len(found)):
                return found
            found.append(event)
        if found[-1].seq == last:
            break
    return found


def of_kinds(connection: Connection, study: int, kinds: Sequence[str], stop: int) -> list[Event]:
    """The events of some kinds among the first `stop`, in order, verified."""
    return list(_matching_between(connection, study, 0, stop, events.c.kind.in_(kinds)))


def asked(connection: Connection, study: int, trials: set[int], stop: int) -> dict[int, PendingAsk]:
    """The asks of these trials, among the first `stop` events.

    Trial k is asked for in event k or later, so only the end of a long log is read for late trials.
    """
    if not trials:
        return {}
    first, last = min(trials), max(trials)
    conditions = (events.c.kind == "ask", events.c.trial.between(first, last))
    known, plates = dict[int, PendingAsk](), dict[str, int]()
    for event in _matching_between(connection, study, first, stop, *conditions):
        if event.trial not in trials:
            continue
        call, _, position = (event.key or "").rpartition(":")
        if call not in plates:
            since = events.c.seq.between(event.seq - int(position or 0), event.seq)
            plates[call] = next(_matching(connection, study, since, events.c.kind == "ask")).trial
        known[event.trial] = PendingAsk(event.at, event.worker, plates[call])
    if missing := trials - known.keys():
        raise damaged(f"the event in which trial {min(missing)} was asked for is missing")
    return known


def beliefs(connection: Connection, study: int, start: int, stop: int) -> list[tuple[int, BeliefRecord]]:
    """(trial, beliefs) of the asks among events `start` to `stop` - 1 at which beliefs were recorded."""
    found: list[tuple[int, BeliefRecord]] = []
    conditions = (events.c.kind == "ask", events.c.detail.is_not(None))
    for event in _matching_between(connection, study, start, stop, *conditions):
        if belief_is_due(event.trial):  # the others store their rounds only
            with damage_errors(f"event {event.seq}", event.seq):
                detail = detail_of(event)
            if "belief" in detail:
                found.append((event.trial, detail["belief"]))
    return found


_MOST_NAMED = 5  # new candidates that are named


class Noted(NamedTuple):
    """A failure, a correction, a reward with a note, or new candidates, which have no trial."""

    trial: int | None
    what: str
    note: str
    worker: str
    at: float


def noted_events(connection: Connection, study: int, start: int, stop: int) -> list[Noted]:
    """Failures, corrections, rewards with notes and new candidates among events `start` to `stop` - 1."""
    kind = events.c.kind
    wanted = sa.or_(kind.in_(("fail", "add", *AMENDS)), sa.and_(kind == "tell", events.c.detail.is_not(None)))
    words = {"fail": "failed", "retract": "retracted", "tell": "reward", "amend": "amended to"}
    found = []
    for event in _matching_between(connection, study, start, stop, wanted):
        with damage_errors(f"event {event.seq}", event.seq):
            detail, reward = detail_of(event), reward_of(event)
        if event.kind == "add":
            names = [str(name) for name in next(iter(detail["added"]["cells"].values()))]
            what, note = (
                f"added {len(names)} candidates",
                ", ".join(names[:_MOST_NAMED]) + ", ..." * (len(names) > _MOST_NAMED),
            )
            found.append(Noted(None, what, note, event.worker, event.at))
            continue
        note = detail.get("note", "")
        if event.kind == "tell" and not note:
            continue
        shown = f"{reward:.6g}" if type(reward) is float else str(reward)
        what = words[event.kind] if reward is None else f"{words[event.kind]} {shown}"
        found.append(Noted(event.trial, what, note, event.worker, event.at))
    return found


class LogCache:
    """Beliefs of earlier rounds, and the asks of pending trials. Only new events are read, unless the log is another.

    Attributes
    ----------
    beliefs : (trial, beliefs) of the rounds at which they were recorded.
    asked : time, worker and plate of the ask, by pending trial.
    noted : failures, corrections, rewards with notes, and new candidates.
    """

    def __init__(self, study: int) -> None:
        self._study = study
        self._seen: tuple[int, bytes | None] = (0, None)  # number of events read, and the checksum of the last one
        self._n_beliefs = 0  # events that were read for beliefs
        self.beliefs: list[tuple[int, BeliefRecord]] = []
        self.asked: dict[int, PendingAsk] = {}
        self.noted: list[Noted] = []

    def read(self, connection: Connection, n_events: int, pending: Sequence[int], history: bool) -> None:
        """Read the asks of pending trials and, with `history`, beliefs among the first `n_events` events."""
        n_read, newest = self._seen
        if n_read > n_events or (n_read and checksum_after(connection, self._study, n_read) != newest):
            LogCache.__init__(self, self._study)
            n_read = 0
        if history:
            self.beliefs += beliefs(connection, self._study, self._n_beliefs, n_events)
            self._n_beliefs = n_events
        self.noted += noted_events(connection, self._study, n_read, n_events)
        self._seen = (n_events, checksum_after(connection, self._study, n_events))
        known = {trial: self.asked[trial] for trial in pending if trial in self.asked}
        self.asked = known | asked(connection, self._study, set(pending) - known.keys(), n_events)


# -- snapshots -------------------------------------------------------------------------------------------------

_KEPT = 2  # in case the newest cannot be read


def snapshot_checksum(n_events: int, layout: int, library: str, chain: bytes, data: bytes) -> bytes:
    """Checksum of a snapshot; `chain` is the checksum of the last event that the snapshot contains."""
    return digest(chain, ("alexp snapshot", n_events, layout, library), data)


@dataclass(frozen=True)
class StoredSnapshot:
    """A row of the table `snapshots`: a compressed state after `n_events` events."""

    n_events: int
    format: int
    library: str
    data: bytes
    chain: bytes
    checksum: bytes

    @property
    def is_intact(self) -> bool:
        try:
            own = snapshot_checksum(self.n_events, self.format, self.library, self.chain, self.data)
            return own == self.checksum
        except (TypeError, ValueError):
            return False

    def state(self) -> Snapshot:
        state: Snapshot = decompress(self.data)
        return state


_SNAPSHOT_COLUMNS = [snapshots.c[field.name] for field in fields(StoredSnapshot)]


def write_snapshot(
    connection: Connection, study: int, n_events: int, library: str, data: bytes, newest: bytes, spoiled: Set[int]
) -> None:
    """Store a compressed state after `n_events` events, the last with checksum `newest`, and delete older snapshots.

    `spoiled` are the numbers of events of damaged snapshots, which are deleted, too.
    """
    latest = head(connection, study, lock=True).snapshot_at
    if latest >= n_events and latest not in spoiled:
        return  # another process has written one
    own = snapshots.c.study_id == study
    connection.execute(snapshots.delete().where(own, snapshots.c.n_events.in_(spoiled)))
    checksum = snapshot_checksum(n_events, FORMAT, library, newest, data)
    values = {"format": FORMAT, "library": library, "data": data, "chain": newest, "checksum": checksum}
    connection.execute(snapshots.insert().values(study_id=study, n_events=n_events, **values))
    connection.execute(studies.update().where(studies.c.id == study).values(snapshot_at=n_events))
    kept = snapshots_of(connection, study)[:_KEPT]
    connection.execute(snapshots.delete().where(own, snapshots.c.n_events.not_in(kept)))


def snapshots_of(connection: Connection, study: int) -> list[int]:
    """Numbers of events after which there are snapshots, newest first."""
    query = sa.select(snapshots.c.n_events).where(snapshots.c.study_id == study)
    with damage_errors("the table of snapshots"):
        return sorted((row[0] for row in connection.execute(query) if isinstance(row[0], int)), reverse=True)


def read_snapshot(connection: Connection, study: int, n_events: int) -> StoredSnapshot | None:
    """The snapshot after `n_events` events; None if it cannot be read."""
    query = sa.select(*_SNAPSHOT_COLUMNS).where(snapshots.c.study_id == study, snapshots.c.n_events == n_events)
    try:
        row = connection.execute(query).first()
    except (TypeError, ValueError, sa.exc.DBAPIError) as error:
        if not is_unreadable(error, connection):
            raise
        return None
    return None if row is None else StoredSnapshot(*row)


def check_length(connection: Connection, study: int, n_events: int) -> None:
    """Raise unless the log has `n_events` events, including those before a snapshot."""
    if count_events(connection, study) != n_events:
        gap = first_gap(connection, study)
        if gap < n_events:
            raise damaged(f"event {gap} is missing of the {n_events} that the study records", gap)
        raise damaged(f"the study records {n_events} events, but the log has more", n_events)


def intact_snapshots(connection: Connection, study: int, n_events: int, spoiled: set[int]) -> Iterator[StoredSnapshot]:
    """Intact snapshots that fit the log, newest first; adds the numbers of events of damaged ones to `spoiled`."""
    for number in snapshots_of(connection, study):
        shot = read_snapshot(connection, study, number)
        fits = shot is not None and shot.is_intact and shot.n_events <= n_events
        if shot is not None and fits and checksum_after(connection, study, number) == shot.chain:
            if shot.format == FORMAT:  # others are of another version; the log suffices
                yield shot
            continue
        spoiled.add(number)
        caution(
            f"the snapshot after {number} events is damaged; the log is replayed instead, which takes longer",
            StorageWarning,
        )


# -- calls and their keys --------------------------------------------------------------------------------------

RECONNECT = 10.0  # seconds for which to try to reach a storage again
_PAUSE = 0.1
_LONGEST = 100  # characters of a key


def check_key(key: str | None) -> str | None:
    """The key, if it is valid; raises otherwise."""
    if key is None or (isinstance(key, str) and 0 < len(key) <= _LONGEST and key.isprintable()):
        return key
    raise ValueError(f"key must be a text of 1 to {_LONGEST} printable characters, got {key!r:.120}")


def query_after_loss(
    storage: Storage, question: Callable[[Connection], _T], unknown: Callable[[str], StorageError]
) -> _T:
    """Query a storage after a lost connection; raise the error that `unknown` returns if that fails for too long."""
    deadline, answers = time.monotonic() + min(RECONNECT, storage.timeout), list[_T]()
    while not answers:
        try:
            with storage.writing() as connection:
                answers.append(question(connection))
        except UnknownOutcomeError:  # of a transaction that wrote nothing
            continue
        except (StorageError, MemoryError) as error:
            if time.monotonic() > deadline:
                why = str(error).partition(". Nothing was changed")[0]  # refers to the query, not to the call
                raise unknown(why) from error
            time.sleep(_PAUSE)
    return answers[0]


def find_lost_call(storage: Storage, study: int, key: str, wrote: Sequence[Event], lost: StorageError) -> list[Event]:
    """The events of a call that lost its connection during the commit; raises if they were not stored or are unknown.

    The query runs under the lock of the study, which the lost transaction held: that transaction has ended.
    """
    what = describe(wrote)

    def stored(connection: Connection) -> list[Event]:
        head(connection, study, lock=True)
        return events_of_call(connection, study, key)

    def unknown(why: str) -> UnknownOutcomeError:
        return unknown_outcome(key, f"unknown whether {what} was stored: {lost}, and it cannot be looked up: {why}")

    found = query_after_loss(storage, stored, unknown)
    if not found:
        raise StorageError(f"{what} was not stored: {lost}. Nothing was changed; try again") from lost
    return found


def unknown_outcome(key: str, text: str) -> UnknownOutcomeError:
    """The error of a call with an unknown outcome, with the key by which to repeat it."""
    error = UnknownOutcomeError(
        f"{text}. When the storage is back, repeat the call with key={key!r}: if it was stored, the stored result is "
        "returned and nothing is done twice; `events()` of the study lists what was stored"
    )
    error.key = key
    return error


def describe(wrote: Sequence[Event]) -> str:
    """The events in a few words, for messages."""
    if not wrote:
        return "nothing"
    more = f" and {len(wrote) - 1} more" if len(wrote) > 1 else ""
    what = f"the {wrote[0].kind} of trial {wrote[0].trial}"
    return {"arm": "a new arm", "add": "new candidates", "learn": "old campaigns"}.get(wrote[0].kind, what) + more


def same_call(key: str | None, events: Sequence[Event], kind: str, number: int) -> None:
    """Raise if the key was used before for another call than `number` events of this kind."""
    if key is not None and [event.kind for event in events] != [kind] * number:
        raise ValueError(f"key {key!r} was used before, for {describe(events)}; another call needs another key")


def same_rewards(
    key: str,
    events: Sequence[Event],
    heads: Sequence[int],
    rewards: Mapping[int, tuple[Value, ...] | None],
) -> None:
    """Raise if the key was used before for other results; `heads` are the trials that the events are about.

    `rewards` are the measurements of each, None for a failure.
    """
    for event, head in zip(events, heads, strict=True):
        own = (FAILED,) if rewards.get(head, ()) is None else rewards.get(head, ())
        entry = FAILED if event.kind == "fail" else reward_of(event)
        if not own or (event.kind != "retract" and entry not in own):
            raise ValueError(f"key {key!r} was used before, for {describe(events)}; another call needs another key")
