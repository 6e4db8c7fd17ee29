"""The log of a study: appended to at its end, and read verified. Every function works in its caller's transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import cast

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from alexp.study.database import chain
from alexp.study.database.damage import damaged, is_unreadable, legible
from alexp.study.database.events import BeliefRecord, Event, EventDict, belief_is_due, detail_of
from alexp.study.database.schema import events, studies

PART = 10_000  # events read at a time
_FEW = 64  # that are read without asking how large they are
_MOST_BYTES = 2**26  # of details read at a time: contextual rounds may store up to 16 MB each
_COLUMNS = [events.c[field.name] for field in fields(Event)]
_PUBLIC = list(EventDict.__annotations__)

# Built once: these run at every ask and tell.
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

# An event beside the one before it, whose checksum tells whether it is unchanged.
_before = events.alias("before")
_PAIRS = sa.select(*_COLUMNS, _before.c.chain.label("chain_before")).select_from(
    events.outerjoin(_before, sa.and_(_before.c.study_id == events.c.study_id, _before.c.seq == events.c.seq - 1))
)


def append(connection: Connection, study: int, new: Sequence[Event], before: bytes, key: str) -> bytes:
    """Add the events of one call at the end of the log, whose checksum is `before`; returns the new checksum.

    The caller holds the lock.
    """
    sealed = list(chain.linked(before, new, key))
    rows, newest = [{"study_id": study} | vars(event) for event in sealed], sealed[-1].chain
    total = {"study": study, "total": new[-1].seq + 1, "newest": newest}
    if connection.dialect.name == "postgresql" and len(rows) == 1:  # one round trip to the server instead of two
        connection.execute(_ADVANCE_AND_INSERT, rows[0] | total)
        return newest
    connection.execute(events.insert(), rows)
    connection.execute(_ADVANCE, total)
    return newest


# -- in order --------------------------------------------------------------------------------------------------


def since(connection: Connection, study: int, start: int, stop: int, before: bytes) -> list[Event]:
    """Events number `start` to `stop` - 1, in order, verified: they follow the checksum `before`."""
    found = read(connection, study, start, stop)
    chain.verify(before, found, start, stop)
    return found


def read(connection: Connection, study: int, start: int, stop: int) -> list[Event]:
    """The same, whatever they are; an error names the first that cannot be read."""
    try:
        rows = connection.execute(_SINCE, {"study": study, "start": start, "stop": stop})
        return [Event(*row) for row in rows]
    except (sa.exc.DBAPIError, TypeError, ValueError, OverflowError, LookupError) as error:
        if stop - start == 1 or not is_unreadable(error, connection):
            with legible(f"event {start}", start):
                raise
    for seq in range(start, stop):
        try:
            read(connection, study, seq, seq + 1)
        except sa.exc.DBAPIError as error:
            raise damaged(f"event {seq} cannot be read ({error.orig})", seq) from error
    raise damaged(f"events {start} to {stop - 1} can be read one by one only", start)


def reach(connection: Connection, study: int, start: int, stop: int) -> int:
    """Up to where, at most `stop`, events from `start` on are read at a time: at least one, and not too many bytes."""
    stop, total = min(stop, start + PART), 0
    if stop - start <= _FEW:
        return stop
    try:
        sizes = connection.execute(_SIZES, {"study": study, "start": start, "stop": stop}).all()
    except (sa.exc.DBAPIError, TypeError, ValueError):  # whoever reads them will say which is damaged
        return stop
    for seq, size in sizes:
        total += size if isinstance(size, int) else 0
        if total > _MOST_BYTES:
            return min(max(int(seq), start + 1), stop)
    return stop


def all_before(connection: Connection, study: int, n_events: int, before: bytes, start: int = 0) -> Iterator[Event]:
    """Events `start` to `n_events` - 1, verified, read in parts; `before` is the checksum that they follow."""
    while start < n_events:
        stop = reach(connection, study, start, n_events)
        for event in since(connection, study, start, stop, before):
            before = event.chain
            yield event
        start = stop


def checksum_after(connection: Connection, study: int, n_events: int) -> bytes | None:
    """The checksum that event number `n_events` follows: that of the event before it, or of the study's row."""
    query = sa.select(events.c.chain).where(events.c.study_id == study, events.c.seq == n_events - 1)
    first = sa.select(studies.c.checksum).where(studies.c.id == study)
    with legible(f"event {n_events - 1}", n_events - 1):
        return connection.execute(query if n_events else first).scalar()


def how_many(connection: Connection, study: int) -> int:
    """Number of events that are there, whatever the study says."""
    query = sa.select(sa.func.count()).select_from(events).where(events.c.study_id == study)
    return int(connection.execute(query).scalar_one())


def first_gap(connection: Connection, study: int) -> int:
    """Number of the first event that is missing; that after the last one if none is."""
    query = sa.select(events.c.seq).where(events.c.study_id == study).order_by(events.c.seq)
    for number, (seq,) in enumerate(connection.execute(query)):
        if seq != number:
            return number
    return how_many(connection, study)


def public_events(connection: Connection, study: int, start: int, stop: int) -> list[EventDict]:
    """Events number `start` to `stop` - 1 as JSON data, verified."""
    if start >= stop:
        return []
    before = checksum_after(connection, study, start) or b""
    found = all_before(connection, study, stop, before, start)
    return [cast("EventDict", {name: getattr(event, name) for name in _PUBLIC}) for event in found]


def moments(connection: Connection, study: int, stop: int) -> list[tuple[str, int, float, str]]:
    """Kind, trial, time and worker of the first `stop` events, verified."""
    first = checksum_after(connection, study, 0) or b""
    return [(event.kind, event.trial, event.at, event.worker) for event in all_before(connection, study, stop, first)]


# -- some of them ----------------------------------------------------------------------------------------------


def _some(connection: Connection, study: int, *conditions: sa.ColumnElement[bool]) -> Iterator[Event]:
    """Events that fulfil the conditions, each of them verified."""
    query = _PAIRS.where(events.c.study_id == study, *conditions).order_by(events.c.seq)
    with legible("an event"):
        rows = connection.execute(query).all()
    for *values, before in rows:
        event = Event(*values)
        if event.seq == 0:
            before = checksum_after(connection, study, 0)
        if not chain.is_next(before or b"", event):
            raise damaged(f"event {event.seq}, or the one before it, is damaged: its checksum is wrong")
        yield event


def _some_between(
    connection: Connection, study: int, start: int, stop: int, *conditions: sa.ColumnElement[bool]
) -> Iterator[Event]:
    """The same among events `start` to `stop` - 1, read in parts."""
    while start < stop:
        end = reach(connection, study, start, stop)
        yield from _some(connection, study, events.c.seq >= start, events.c.seq < end, *conditions)
        start = end


def of_call(connection: Connection, study: int, key: str) -> list[Event]:
    """The events of the call with this key, in order; none if nothing of it was stored."""
    found = list(_some(connection, study, events.c.key == chain.key_of(key, 0)))
    while found:  # those of one call follow each other
        last = found[-1].seq
        for event in _some(connection, study, events.c.seq > last, events.c.seq <= last + len(found)):
            if event.key != chain.key_of(key, len(found)):
                return found
            found.append(event)
        if found[-1].seq == last:
            break
    return found


def asked(connection: Connection, study: int, trials: set[int], stop: int) -> dict[int, tuple[float, str]]:
    """When and by whom these trials were asked for, among the first `stop` events.

    Trial k cannot have been asked for before event k, so that of a long log only the end is read for late trials.
    """
    if not trials:
        return {}
    first, last = min(trials), max(trials)
    conditions = (events.c.kind == "ask", events.c.trial.between(first, last))
    found = _some_between(connection, study, first, stop, *conditions)
    known = {event.trial: (event.at, event.worker) for event in found if event.trial in trials}
    if missing := trials - known.keys():
        raise damaged(f"the event in which trial {min(missing)} was asked for is missing")
    return known


def beliefs(connection: Connection, study: int, start: int, stop: int) -> list[tuple[int, BeliefRecord]]:
    """(trial, beliefs in force) for the asks among events `start` to `stop` - 1 at which they were recorded."""
    found: list[tuple[int, BeliefRecord]] = []
    conditions = (events.c.kind == "ask", events.c.detail.is_not(None))
    for event in _some_between(connection, study, start, stop, *conditions):
        if belief_is_due(event.trial):  # the others store their rounds only
            with legible(f"event {event.seq}", event.seq):
                detail = detail_of(event)
            if "belief" in detail:
                found.append((event.trial, detail["belief"]))
    return found
