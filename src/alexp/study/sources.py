"""Which results of a file a study has already: files grow and are read again, and equal results may be two.

A source is what came in together: a file, as it grew, or the results of one call. A file is known again if it holds
more than half of the results of a source and, where that is a single result, if it has the same name. Results of such
a source are then known, each as often as it came in, and the others of the file are new. Results of other files are
new, equal or not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from alexp.algorithms.log import TrialLog
from alexp.problem.objectives import Value
from alexp.study.events import Event, new_key, reward_of

REWARDED = ("tell", "observe", "amend")  # kinds of events that hold a result
_KEY = re.compile(r"file:([0-9a-f]{12}):([0-9a-f]{16}):[0-9a-f]{16}")  # name, source, and results of a call

Result = tuple[int, str]  # a candidate and its reward as text


class NewResults(NamedTuple):
    """Results of a file that a study does not have.

    Attributes
    ----------
    positions : of the results that are new, in order.
    changed : {position: trial} of results that the file had otherwise when it was read before.
    key : of the call that adds them; the same for the same file.
    """

    positions: list[int]
    changed: dict[int, int]
    key: str


@dataclass
class _Source:
    """The trials that came in together, each with all results that it has had; the file's name as a digest."""

    name: str
    own: str  # what its key calls it; empty if it is no file
    trials: dict[int, list[Result]] = field(default_factory=dict)

    def among(self, rows: Mapping[Result, Sequence[int]]) -> dict[int, int]:
        """{trial: position} of its trials that are among the rows, a row for each."""
        taken: set[int] = set()
        found = {}
        for trial, results in self.trials.items():
            at = next((row for result in results for row in rows.get(result, ()) if row not in taken), None)
            if at is not None:
                found[trial] = at
                taken.add(at)
        return found

    def is_in(self, n_found: int, name: str) -> bool:
        """Whether a file of this name holds it, if so many of its results are there."""
        return 2 * n_found > len(self.trials) and (n_found > 1 or self.name in ("", name))


def new_results(
    events: Iterable[Event],
    log: TrialLog,
    file: str,
    measured: Sequence[tuple[int, Value]],
    again: bool = False,
) -> NewResults:
    """The (candidate, reward) of a file that are new to a study.

    Parameters
    ----------
    events : of the study, those of the kinds `REWARDED`, in order.
    log : its trials.
    file : its name, without folders.
    again : the file is a source of its own, whatever is known.
    """
    name, rows = _digest(file)[:12], dict[Result, list[int]]()
    for row, (candidate, reward) in enumerate(measured):
        rows.setdefault((candidate, _spelled(reward)), []).append(row)
    known, continued, gone = set[int](), new_key()[:16] if again else "", list[int]()
    for source in _sources(events, log.index):
        found = source.among({result: [row for row in own if row not in known] for result, own in rows.items()})
        if source.is_in(len(found), name):
            known.update(found.values())
            continued = continued or source.own
            gone += [trial for trial in source.trials if trial not in found and _is_plain(log, trial)]
    left = [row for row in range(len(measured)) if row not in known]
    changed = dict[int, int]()
    for trial in gone:
        at = next((row for row in left if measured[row][0] == log.index[trial] and row not in changed), None)
        if at is not None:
            changed[at] = trial
    content = _digest(json.dumps([name, *((candidate, _spelled(reward)) for candidate, reward in measured)]))[:16]
    return NewResults(
        [row for row in left if row not in changed], changed, f"file:{name}:{continued or content}:{content}"
    )


def _sources(events: Iterable[Event], candidates: Sequence[int]) -> list[_Source]:
    """What came in together, oldest first. Calls of one result that no file brought count together."""
    calls, corrected = dict[str, list[Event]](), dict[int, list[Result]]()
    told = set[int]()
    for event in events:
        if event.kind == "amend" and event.trial in told:
            result = candidates[event.trial], _spelled(reward_of(event))
            corrected.setdefault(event.trial, []).append(result)
        else:
            told.add(event.trial)
            calls.setdefault((event.key or "").rpartition(":")[0], []).append(event)
    out = dict[str, _Source]()
    for call, own in calls.items():
        file = _KEY.fullmatch(call)
        title = file[2] if file else call if len(own) > 1 else own[0].kind
        source = out.setdefault(title, _Source(file[1] if file else "", file[2] if file else ""))
        for event in own:
            had = candidates[event.trial], _spelled(reward_of(event))
            source.trials[event.trial] = [*reversed(corrected.get(event.trial, [])), had]
    return list(out.values())


def _is_plain(log: TrialLog, trial: int) -> bool:
    """Whether a trial has one reward, which a corrected file may replace."""
    replicates = log.replicates
    several = trial in replicates or any(trial in own for own in replicates.values())
    return not several and trial not in log.retracted and trial not in log.failed


def _spelled(reward: Value | None) -> str:
    return json.dumps(reward, sort_keys=True)


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
