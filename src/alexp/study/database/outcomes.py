"""What became of a call whose answer was lost: found out by its key, which the call had before it wrote anything."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar
from uuid import uuid4

from sqlalchemy.engine import Connection

from alexp.study.database import logbook, records
from alexp.study.database.events import Event
from alexp.study.database.storage import Storage
from alexp.study.errors import StorageError, UnknownOutcomeError

T = TypeVar("T")

RECONNECT = 10.0  # seconds for which to try to reach a storage again
_PAUSE = 0.1
_LONGEST = 100  # characters of a key


def new_key() -> str:
    """A key that no other call has."""
    return uuid4().hex


def check_key(key: str | None) -> str | None:
    """A key as the caller chose it, or the reason why it cannot be one."""
    if key is None or (isinstance(key, str) and 0 < len(key) <= _LONGEST and key.isprintable()):
        return key
    raise ValueError(f"key must be a text of 1 to {_LONGEST} printable characters, got {key!r:.120}")


def find_out(storage: Storage, question: Callable[[Connection], T], unknown: Callable[[str], StorageError]) -> T:
    """Ask a storage that has just been lost; if it does not come back in time, raise what `unknown` makes of that."""
    deadline, answers = time.monotonic() + min(RECONNECT, storage.timeout), list[T]()
    while not answers:
        try:
            with storage.writing() as connection:
                answers.append(question(connection))
        except UnknownOutcomeError:  # of a transaction that wrote nothing
            continue
        except (StorageError, MemoryError) as error:
            if time.monotonic() > deadline:
                why = str(error).partition(". Nothing was changed")[0]  # by looking, which says nothing about the call
                raise unknown(why) from error
            time.sleep(_PAUSE)
    return answers[0]


def look(storage: Storage, study: int, key: str, wrote: Sequence[Event], lost: StorageError) -> list[Event]:
    """The events of the call that was lost while it was committed, or an error that says what is known.

    Asks under the study's lock: the lost transaction held it, so that by then it is either in the log or never will be.
    """
    what = describe(wrote)

    def stored(connection: Connection) -> list[Event]:
        records.head(connection, study, lock=True)
        return logbook.of_call(connection, study, key)

    def unknown(why: str) -> UnknownOutcomeError:
        return with_key(key, f"unknown whether {what} was stored: {lost}, and it cannot be looked up: {why}")

    found = find_out(storage, stored, unknown)
    if not found:
        raise StorageError(f"{what} was not stored: {lost}. Nothing was changed; try again") from lost
    return found


def with_key(key: str, text: str) -> UnknownOutcomeError:
    """The error for a call that can only be finished later, by its key."""
    error = UnknownOutcomeError(
        f"{text}. When the storage is back, repeat the call with key={key!r}: if it was stored, that returns what "
        "happened, and nothing happens twice; `events()` of the study lists what was stored"
    )
    error.key = key
    return error


def describe(wrote: Sequence[Event]) -> str:
    """Some events in a few words."""
    if not wrote:
        return "nothing"
    more = f" and {len(wrote) - 1} more" if len(wrote) > 1 else ""
    return f"the {wrote[0].kind} of trial {wrote[0].trial}{more}"


def same_call(key: str | None, events: Sequence[Event], kind: str, number: int) -> None:
    """Raise if a key that was used before stands for another call now."""
    if key is not None and [event.kind for event in events] != [kind] * number:
        raise ValueError(f"key {key!r} was used before, for {describe(events)}; another call needs another key")


def same_rewards(key: str, events: Sequence[Event], rewards: Mapping[int, float]) -> None:
    """The same for rewards by trial."""
    if any(event.reward is None or rewards.get(event.trial) != event.reward for event in events):
        raise ValueError(f"key {key!r} was used before, for {describe(events)}; another call needs another key")
