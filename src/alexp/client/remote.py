"""RemoteStudy: a study behind a service, with the methods of one beside us."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn, Self, Unpack, overload
from urllib.parse import quote

import numpy as np

from alexp.algorithms.base import IfTold, RoundArguments, check_reward
from alexp.algorithms.log import Trial
from alexp.client import reading
from alexp.client.line import Line, new_key
from alexp.client.looking import Looking, present
from alexp.common.codec import State
from alexp.common.validation import count
from alexp.problem.domains import Available
from alexp.study.events import worker_name
from alexp.study.view import TellCounts

if TYPE_CHECKING:
    import pandas as pd

AnyTrial = Trial | int | str  # itself, its id, or its id as text


class RemoteStudy(Looking):
    """A study of a service; make one with `Client.study` or `Client.create`.

    It has the methods of a `Study`, with the same arguments, results and errors, and what a method has returned is in
    the service's database. Every call that writes has a key, its own or the caller's, under which it is repeated when
    its answer is lost: it happens once. Threads may share it.
    """

    def __init__(self, line: Line, name: str, summary: State | None = None) -> None:
        self.name, self._line = name, line
        self._path = f"/v1/studies/{quote(name, safe='')}"
        known = self.summary() if summary is None else summary
        self._domain = str(known["domain"])
        self._hands_on = known.get("expired", "offer") == "offer" and not known.get("contextual", False)

    def _write(self, what: str, body: State, key: str | None) -> State:
        """One deed, under the caller's key or one of its own."""
        named = new_key() if key is None else key
        answer: State = self._line.send(
            "POST",
            f"{self._path}/{what}",
            present(body) | {"worker": worker_name(), "key": named},
            key=named,
            changes=True,
        ).json()
        reading.warn_of(answer.get("warnings"))
        return answer

    @overload
    def ask(
        self,
        n: None = None,
        available: Available = None,
        distinct: bool = False,
        key: str | None = None,
        lease: float | None = None,
        **presented: Unpack[RoundArguments],
    ) -> Trial: ...
    @overload
    def ask(
        self,
        n: int,
        available: Available = None,
        distinct: bool = False,
        key: str | None = None,
        lease: float | None = None,
        **presented: Unpack[RoundArguments],
    ) -> list[Trial]: ...
    def ask(
        self,
        n: int | None = None,
        available: Available = None,
        distinct: bool = False,
        key: str | None = None,
        lease: float | None = None,
        **presented: Unpack[RoundArguments],
    ) -> Trial | list[Trial]:
        """Propose an action, or a list of `n`, for instance a plate; see `Study.ask`.

        A contextual round is asked for with `context=`, `context=` and `candidates=`, or `features=`, and perhaps
        `ids=`: numbers, text, lists and dicts of them, and arrays. With `lease` the trials are this worker's for so
        many seconds; a worker's name is that of $ALEXP_WORKER, or its host and process.
        """
        wanted, trials = 1 if n is None else count("n", n), list[Trial]()
        if self._hands_on and lease is not None and key is None and available is None and not distinct:
            trials = self.take_over(lease=lease, n=wanted)  # what has expired, first: a key stands for new trials only
        if len(trials) < wanted:
            more = None if n is None else wanted - len(trials)
            body: State = {"n": more, "available": available, "lease": lease, **presented}
            told = self._write("ask", body | ({"distinct": True} if distinct else {}), key)["trials"]
            trials += [reading.trial(one, self._domain) for one in told]
        if n is not None:
            return trials
        context = presented.get("context")
        return trials[0] if context is None else replace(trials[0], context=context)  # as it was passed

    def tell(self, trial: AnyTrial, reward: float, if_told: IfTold = "raise", key: str | None = None) -> None:
        """Report the reward of a trial, by the trial or its id, from any process and in any order.

        Where the trial has a reward already, `if_told` decides: "raise" an error, accept the "same" reward in silence
        and raise at another one, or "amend" it.
        """
        self.tell_many([(trial, reward)], if_told, key)

    def tell_many(
        self,
        results: Iterable[tuple[AnyTrial, float]] | Mapping[int, float] | Mapping[str, float],
        if_told: IfTold = "raise",
        key: str | None = None,
    ) -> TellCounts:
        """Report several rewards at once: all of them, or, if any is wrong, none. Returns what became of them."""
        pairs = list(results.items() if isinstance(results, Mapping) else results)
        rewards = [{"trial": _id(trial), "reward": check_reward(reward)} for trial, reward in pairs]
        told = self._write("tell", {"results": rewards, "if_told": if_told, "sure": True}, key)
        return TellCounts(told["told"], told["skipped"], told["amended"])

    def amend(self, trial: AnyTrial, reward: float, key: str | None = None) -> None:
        """Correct a reward that was told or added, or give one again to a trial whose reward was retracted."""
        self._write("amend", {"trial": _id(trial), "reward": check_reward(reward), "sure": True}, key)

    def retract(self, trial: AnyTrial, key: str | None = None) -> None:
        """Withdraw a reward that was told or added. The trial counts as given up; `amend` gives it a reward again."""
        self._write("retract", {"trial": _id(trial)}, key)

    def abandon(self, trials: AnyTrial | Iterable[AnyTrial], key: str | None = None) -> None:
        """Give up a pending trial, for instance a broken vial, or several: all, or, if any is wrong, none.

        A trial that was given up keeps its number and takes no reward any more.
        """
        self._write("abandon", {"trials": _ids(trials)}, key)

    def observe(
        self,
        index: int | str,
        reward: float,
        *,
        available: Available = None,
        propensity: float | None = None,
        key: str | None = None,
        **presented: Unpack[RoundArguments],
    ) -> Trial:
        """Take in a reward of candidate `index` that was measured elsewhere, without having asked for it."""
        facts: State = {"index": index, "reward": check_reward(reward), "available": available}
        return self._observe([facts | {"propensity": propensity, **presented}], False, key)[0]

    def add_observations(self, frame: pd.DataFrame, nearest: bool = False, key: str | None = None) -> list[Trial]:
        """Take in data measured elsewhere: all rows, or, if any is wrong, none; see `Study.add_observations`.

        The frame has a column `reward` and names the candidates by `index`, by `x`, or by columns of their own table.
        """
        rows = frame.to_dict("records")
        return self._observe([{str(name): _cell(value) for name, value in row.items()} for row in rows], nearest, key)

    def _observe(self, rows: list[State], nearest: bool, key: str | None) -> list[Trial]:
        body: State = {"observations": [present(row) for row in rows], "sure": True}
        told = self._write("observe", body | ({"nearest": True} if nearest else {}), key)
        return [reading.trial(one, self._domain) for one in told["trials"]]

    def add_arm(self, name: str, key: str | None = None) -> int:
        """Add an arm to a study of arms, for all its workers, and return its number."""
        return int(self._write("arms", {"name": name}, key)["arm"])

    def heartbeat(self, trials: AnyTrial | Iterable[AnyTrial], lease: float | None = None) -> None:
        """Say that this worker still measures some trials: their leases run anew, all or, if any is lost, none.

        Each runs for as long as before, or for `lease` seconds. A lease that has expired is prolonged, too, as long as
        nobody has taken the trial over; if somebody has, `LeaseError` says who.
        """
        self._lend("heartbeat", {"trials": _ids(trials), "lease": lease})

    def take_over(
        self,
        trials: AnyTrial | Iterable[AnyTrial] | None = None,
        *,
        lease: float | None = None,
        n: int | None = None,
    ) -> list[Trial]:
        """Take over trials of other workers: `n` or all of those that have expired, or the ones that are named.

        Who takes a trial over has it for `lease` seconds, or without end. A named trial may be one that was asked
        for without a lease; one that another worker holds is an error. No two workers get the same trial.
        """
        wanted = {"trials": None if trials is None else _ids(trials), "lease": lease}
        told = self._lend("take-over", wanted | {"n": None if n is None else count("n", n)})["trials"]
        return [reading.trial(one, self._domain) for one in told]

    def _lend(self, what: str, body: State) -> State:
        """About leases, which have no keys: doing it again does no harm."""
        body = present(body) | {"worker": worker_name()}
        answer: State = self._line.send("POST", f"{self._path}/{what}", body, changes=True).json()
        return answer

    def close(self) -> None:
        """Nothing is held open for one study; `Client.close` closes the connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a remote study is not pickled: it holds connections, and perhaps a token. Give the worker the study's "
            "name and the address of the service, and let it call alexp.Client(url).study(name)"
        )

    def __repr__(self) -> str:
        return f"RemoteStudy({self.name!r}, url={self._line.urls[0]!r})"


def _id(trial: AnyTrial) -> int:
    """The number of a trial that is given by itself, by its number, or by that as text ("100" or "#100")."""
    found = trial.id if isinstance(trial, Trial) else trial
    if isinstance(found, str) and (digits := found.removeprefix("#")).isdecimal() and digits.isascii():
        return int(digits)
    if isinstance(found, bool) or not isinstance(found, int | np.integer):
        raise TypeError(f"a Trial or its id (an int) is needed, got {type(trial).__name__}: {trial!r}")
    return int(found)


def _ids(trials: AnyTrial | Iterable[AnyTrial]) -> list[int]:
    return [_id(trials)] if isinstance(trials, Trial | int | str) else [_id(trial) for trial in trials]


def _cell(value: object) -> object:
    """A cell of a frame; None where it is missing."""
    return None if isinstance(value, float) and value != value else value
