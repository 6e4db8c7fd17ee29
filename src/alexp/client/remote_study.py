"""RemoteStudy: a study behind a service, with the methods of a `Study`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from importlib import import_module
from math import inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self, Unpack, cast, overload
from urllib.parse import quote

import numpy as np

from alexp.algorithms import AssumptionWarning
from alexp.algorithms.base import IfTold, RoundArguments, check_reward
from alexp.algorithms.log import Recommendation, Trial, UnknownTrialError, id_of
from alexp.algorithms.statements import DELTA, ModelCheck, StopReport
from alexp.client.tables import results_of, table_problem
from alexp.client.transport import HttpTransport, without_none
from alexp.common import notebook
from alexp.common.arrays import Action, FloatArray, IntArray
from alexp.common.codec import Packable, State
from alexp.common.extras import require
from alexp.common.files import write_bytes
from alexp.common.progress import Progress
from alexp.common.validation import count
from alexp.common.warning import caution
from alexp.problem.domains import Available
from alexp.problem.objectives import Measurements, Reward
from alexp.study.errors import StorageError, StudyNotFoundError
from alexp.study.events import FAILED, new_key, worker_name
from alexp.study.view import Counts, HeldTrial, TellCounts

if TYPE_CHECKING:
    import httpx
    import pandas as pd
    from matplotlib.axes import Axes

    from alexp.algorithms.naming import Name
    from alexp.client.tables import Features, TableSource
    from alexp.study.events import EventDict
    from alexp.study.study import About, AnyReward, Results
    from alexp.table.columns import Reading


AnyTrial = Trial | int | str  # itself, its id, or its id as text
_PAGE = 1000  # trials per answer
_TYPES = {"id": "int64", "index": "int64", "model": "Int64", "explored": "bool", "propensity": "f8", "reward": "f8"}
_PAUSE = 1.0  # seconds before a stream that has ended is opened again


class RemoteStudy:
    """A study of a service; make one with `Client.study` or `Client.create`.

    It has the methods of a `Study`, with the same arguments, results and errors. What a method has returned is in the
    service's database. Every call that writes has a key, the caller's or a new one; if its response is lost, it is
    repeated under that key and stored once. Threads may share the object.
    """

    def __init__(self, transport: HttpTransport, name: str, info: State | None = None) -> None:
        self.name, self._transport = name, transport
        self._path = f"/v1/studies/{quote(name, safe='')}"
        known = self.info() if info is None else info
        self._domain = str(known["domain"])
        self._objectives = list(known.get("objectives") or ())
        self._known = [one for one in self._objectives if one in known.get("columns", ())]  # columns of the candidates
        self._offers_expired = known.get("expired", "offer") == "offer" and not known.get("contextual", False)

    def _write(self, what: str, body: State, key: str | None) -> State:
        """One call that writes, under the caller's key or a new one."""
        named = new_key() if key is None else key
        answer: State = self._transport.send(
            "POST",
            f"{self._path}/{what}",
            without_none(body) | {"worker": worker_name(), "key": named},
            key=named,
            changes=True,
        ).json()
        _warn(answer.get("warnings"))
        return answer

    @overload
    def ask(
        self,
        n: None = None,
        available: Available = None,
        distinct: bool = False,
        key: str | None = None,
        lease: float | None = None,
        *,
        where: str | None = None,
        at_most: Mapping[str, int] | None = None,
        together: Sequence[str] | str | None = None,
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
        *,
        where: str | None = None,
        at_most: Mapping[str, int] | None = None,
        together: Sequence[str] | str | None = None,
        **presented: Unpack[RoundArguments],
    ) -> list[Trial]: ...
    def ask(
        self,
        n: int | None = None,
        available: Available = None,
        distinct: bool = False,
        key: str | None = None,
        lease: float | None = None,
        *,
        where: str | None = None,
        at_most: Mapping[str, int] | None = None,
        together: Sequence[str] | str | None = None,
        **presented: Unpack[RoundArguments],
    ) -> Trial | list[Trial]:
        """Propose an action, or a list of `n`, for instance a plate; see `Study.ask`.

        A contextual round is asked for with `context=`, `context=` and `candidates=`, or `features=`, and perhaps
        `ids=`: numbers, text, lists and dicts of them, and arrays. With `lease`, in seconds, no other worker gets the
        trials until it expires; the worker's name is $ALEXP_WORKER, or its host and process.
        """
        wanted, trials = 1 if n is None else count("n", n), list[Trial]()
        plate = {"where": where, "at_most": at_most, "together": [together] if isinstance(together, str) else together}
        free = available is None and not distinct and all(value is None for value in plate.values())
        if self._offers_expired and lease is not None and key is None and free:
            trials = self.take_over(lease=lease, n=wanted)  # expired trials first; a key is for new trials
        if len(trials) < wanted:
            more = None if n is None else wanted - len(trials)
            body: State = {"n": more, "available": available, "lease": lease, **plate, **presented}
            answer = self._write("ask", body | ({"distinct": True} if distinct else {}), key)["trials"]
            trials += [_trial(one, self._domain) for one in answer]
        if n is not None:
            return trials
        context = presented.get("context")
        return trials[0] if context is None else replace(trials[0], context=context)  # as it was passed

    def tell(
        self,
        trial: AnyTrial | None,
        reward: AnyReward,
        if_told: IfTold = "raise",
        key: str | None = None,
        *,
        candidate: Name | None = None,
        note: str = "",
    ) -> None:
        """Report the reward of a trial, by the trial or its id, from any process and in any order.

        On a table the name of the candidate, in place of the trial or as `candidate`, names its pending trial. A list
        of rewards is as many measurements of one experiment; log, export and report keep a `note`. Where the trial
        has a reward already, `if_told` decides: "raise" an error, accept the "same" reward and raise for another one,
        or "amend" it.
        """
        self._tell([_result(trial, reward, candidate, note)], if_told, key)

    def tell_many(self, results: Results, if_told: IfTold = "raise", key: str | None = None) -> TellCounts:
        """Report several rewards, or none if any is wrong; "failed" reports a failed experiment.

        Returns how many were told, skipped and amended.
        """
        pairs = results.items() if isinstance(results, Mapping) else results
        return self._tell([_result(*one) for one in pairs], if_told, key)

    def _tell(self, results: list[State], if_told: IfTold, key: str | None) -> TellCounts:
        answer = self._write("tell", {"results": results, "if_told": if_told, "sure": True}, key)
        return TellCounts(answer["told"], answer["skipped"], answer["amended"])

    def fail(
        self,
        trial: AnyTrial | None,
        reason: str = "",
        if_told: IfTold = "raise",
        key: str | None = None,
        *,
        candidate: Name | None = None,
    ) -> None:
        """Report that the experiment of a pending trial failed; its candidate is not proposed again. See `Study.fail`.

        `amend` gives a failed trial a reward after all, `retract` takes the failure back.
        """
        self._write("fail", _named(trial, candidate) | {"reason": reason, "if_told": if_told}, key)

    def amend(self, trial: AnyTrial, reward: Measurements, key: str | None = None) -> None:
        """Correct a reward that was told or added, or give one to a retracted or failed trial; see `Study.amend`."""
        self._write("amend", {"trial": id_of(trial), "reward": _reward(reward), "sure": True}, key)

    def retract(self, trial: AnyTrial, key: str | None = None) -> None:
        """Withdraw a reward that was told or added. The trial is then abandoned; `amend` gives it a reward again."""
        self._write("retract", {"trial": id_of(trial)}, key)

    def abandon(self, trials: AnyTrial | Iterable[AnyTrial], key: str | None = None) -> None:
        """Abandon one or several pending trials, for instance broken vials, or none if any is wrong.

        An abandoned trial keeps its number; `amend` gives it a reward that comes after all.
        """
        self._write("abandon", {"trials": _ids(trials)}, key)

    def observe(
        self,
        index: int | str,
        reward: Reward,
        *,
        available: Available = None,
        propensity: float | None = None,
        key: str | None = None,
        **presented: Unpack[RoundArguments],
    ) -> Trial:
        """Add a reward of candidate `index` that was measured without a trial."""
        facts: State = {"index": index, "available": available}
        facts |= _reward(reward) if isinstance(reward, Mapping) else {"reward": check_reward(reward)}
        return self._observe([facts | {"propensity": propensity, **presented}], False, key)[0]

    def add_observations(self, frame: pd.DataFrame, nearest: bool = False, key: str | None = None) -> list[Trial]:
        """Add measurements made without trials, or none if any row is wrong; see `Study.add_observations`.

        The frame has a column `reward` and names the candidates by `index`, by `x`, or by columns of their own table.
        """
        rows = frame.to_dict("records")
        return self._observe([{str(name): _cell(value) for name, value in row.items()} for row in rows], nearest, key)

    def _observe(self, rows: list[State], nearest: bool, key: str | None) -> list[Trial]:
        body: State = {"observations": [without_none(row) for row in rows], "sure": True}
        answer = self._write("observe", body | ({"nearest": True} if nearest else {}), key)
        return [_trial(one, self._domain) for one in answer["trials"]]

    def add_arm(self, name: str, key: str | None = None) -> int:
        """Add an arm to a study of arms, for all its workers, and return its number."""
        return int(self._write("arms", {"name": name}, key)["arm"])

    def add_candidates(
        self,
        table: TableSource,
        models: Mapping[str, Features] | None = None,
        *,
        reading: Reading | None = None,
        key: str | None = None,
    ) -> list[int]:
        """Add candidates to a study of a table, for all its workers, and return their numbers.

        A DataFrame, or the path of a file, with the columns of the first table; `models` are its descriptions, and
        `reading` keywords of `alexp.Table.read`, as of `Client.create`. See `Study.add_candidates`.
        """
        answer = self._write("candidates", table_problem(table, models, reading or {}), key)
        return [int(number) for number in answer["candidates"]]

    def learn_from(self, campaigns: Mapping[str, TableSource], reward: str = "reward", key: str | None = None) -> None:
        """Learn from old campaigns, DataFrames or paths of files by name, for all workers; see `Study.learn_from`."""
        self._write("learn", {"memory": results_of(campaigns), "reward": reward}, key)

    def heartbeat(self, trials: AnyTrial | Iterable[AnyTrial], lease: float | None = None) -> None:
        """Restart the leases of trials that this worker still measures; see `Study.heartbeat`."""
        self._change_leases("heartbeat", {"trials": _ids(trials), "lease": lease})

    def take_over(
        self,
        trials: AnyTrial | Iterable[AnyTrial] | None = None,
        *,
        lease: float | None = None,
        n: int | None = None,
    ) -> list[Trial]:
        """Take over trials of other workers: those given, or `n` or all of the expired ones; see `Study.take_over`."""
        wanted = {"trials": None if trials is None else _ids(trials), "lease": lease}
        answer = self._change_leases("take-over", wanted | {"n": None if n is None else count("n", n)})["trials"]
        return [_trial(one, self._domain) for one in answer]

    def _change_leases(self, what: str, body: State) -> State:
        """A call about leases. It has no key, because repeating it changes nothing."""
        body = without_none(body) | {"worker": worker_name()}
        answer: State = self._transport.send("POST", f"{self._path}/{what}", body, changes=True).json()
        return answer

    def _get(self, what: str, **params: object) -> Packable:
        answer = self._transport.read(f"{self._path}/{what}", **params)
        if isinstance(answer, dict):
            _warn(answer.get("warnings"))
        return answer

    def _post(self, what: str, body: State) -> State:
        """The response to a POST that changes nothing; its body may hold a context."""
        answer: State = self._transport.send("POST", f"{self._path}/{what}", body).json()
        _warn(answer.get("warnings"))
        return answer

    @property
    def counts(self) -> Counts:
        """Numbers of trials: all, told (with external observations), pending, abandoned (with retracted), failed."""
        return cast(Counts, self.info()["counts"])

    def pending(self) -> list[HeldTrial]:
        """Pending trials, oldest first, each with its worker, its age and the rest of its lease in seconds."""
        return [_held_trial(one, self._domain) for one in self._get("pending")["pending"]]

    @property
    def progress(self) -> Progress | None:
        """How far the view, report or explanation is that another request waits for; None if there is none."""
        now = self._get("progress")["progress"]
        return None if now is None else Progress(**now)

    @property
    def probabilities(self) -> FloatArray:
        """q over the M models for the next round, shape (M,), for algorithms that have it.

        A service lists the ten thousand most probable models; the rest is spread evenly over all others.
        """
        answer = self._get("probabilities")
        listed, n = _numbers(answer["probabilities"]), int(answer["n_models"])
        q = np.full(n, max(0.0, 1.0 - float(listed.sum())) / max(1, n - listed.size))
        q[answer["models"]] = listed
        return q

    def best(self, *, available: Available = None, **presented: Unpack[RoundArguments]) -> Recommendation:
        """The recommended action, given all rewards so far; in contextual studies of a round, passed as to `ask`."""
        answer = self._statement("best", {"available": available, **presented})
        return _recommendation(answer, self._domain)

    def pareto(self) -> pd.DataFrame:
        """Measured candidates that no other measured one beats in every objective; see `Study.pareto`."""
        require("pandas")
        import pandas as pd  # slow to import, and needed here only

        answer = self._get("pareto")
        found = answer["pareto"]
        columns: dict[str, list[Any]] = {
            "id": [row["trial"] for row in found],
            "x": [_action(row["x"], self._domain) for row in found],
            "index": [row["index"] for row in found],
        }
        return pd.DataFrame(columns | {name: [row["values"][name] for row in found] for name in answer["objectives"]})

    def policy(self, available: Available = None, **presented: Unpack[RoundArguments]) -> FloatArray:
        """The probability with which the next ask with these arguments would play each candidate, shape (n,)."""
        return _numbers(self._post("policy", without_none({"available": available, **presented}))["policy"])

    def stop_report(self, delta: float = DELTA, epsilon: float | None = None, **about: Unpack[About]) -> StopReport:
        """Whether the recommended action is within `epsilon` of the best, and the smallest epsilon that holds.

        In contextual studies about one round, passed as to `ask`.
        """
        answer = self._statement("stop-report", {**about}, delta=delta, epsilon=epsilon)
        return _stop_report(answer, self._domain)

    def _statement(self, what: str, round_: State, **params: float | None) -> State:
        """A statement about all candidates, or about the round in the body."""
        known = without_none(round_)
        answer: State = self._post(what, known | without_none(params)) if known else self._get(what, **params)
        return answer

    def plausible_models(self, delta: float = DELTA) -> IntArray:
        """Numbers of the models not yet ruled out."""
        return np.array(self._get("plausible-models", delta=delta)["models"], dtype=np.int64)

    def check_models(self, delta: float = DELTA) -> ModelCheck:
        """Whether the rewards contradict what was stated about noise, bound and models."""
        return _model_check(self._get("check-models", delta=delta))

    def trial(self, trial_id: int) -> Trial:
        """A trial by its id."""
        found = self._get("trials", since=count("trial_id", trial_id, 0), limit=1)["trials"]
        if not found:
            raise UnknownTrialError(f"there is no trial {trial_id}")
        return _trial(found[0], self._domain)

    def trials_dataframe(self) -> pd.DataFrame:
        """One row per trial: id, x, index, model, explored, propensity, reward, state.

        `state` is "told", "pending", "abandoned", "failed", "retracted", or "observed" for external measurements.
        """
        rows = list(self._pages("trials"))
        return self._frame(rows).assign(state=[row["state"] for row in rows])

    def log_frame(self) -> pd.DataFrame:
        """The trials with what their rounds offered, for off-policy evaluation; see `Algorithm.log_frame`.

        Features, and ids of candidates that are no arms, stay with the service: their columns have None.
        """
        rows, info = list(self._pages("trials")), self.info()
        own: dict[str, list[Any]] = {
            "n": [row.get("n_candidates") or info["n_candidates"] for row in rows],
            "context": [row.get("context") for row in rows],
            "ids": [info["arms"] and info["arms"][: row["n_candidates"]] for row in rows],
            "available": [row["available"] for row in rows],
            "features": [None] * len(rows),
        }
        return self._frame(rows).assign(**own)

    def _frame(self, rows: Sequence[State]) -> pd.DataFrame:
        """Columns that all tables of trials have."""
        require("pandas")
        import pandas as pd  # slow to import, and needed here only

        columns = {name: [row[name] for row in rows] for name in ("id", "index", "model", "explored", "propensity")}
        measured = [name for name in self._objectives if name not in self._known]
        columns |= _reward_columns([row["reward"] for row in rows], measured)
        columns |= {name: [row["x"][name] for row in rows] for name in self._known}
        frame = pd.DataFrame(columns)
        frame = frame.astype({name: kind for name, kind in _TYPES.items() if name in frame})
        frame.insert(1, "x", pd.Series([_action(row["x"], self._domain) for row in rows], dtype=None))
        return frame

    def _pages(self, what: str) -> Iterator[State]:
        """All items of a list that the service returns in pages."""
        since: int | None = 0
        while since is not None:
            page = self._get(what, since=since, limit=_PAGE)
            yield from page[what]
            since = page["next"]

    def view(self, *, points: int = 600, rows: int = 25) -> State:
        """The view of the dashboard, as JSON data.

        The fields are those of `StudyView.to_dict`, thinned by the service: curves to `points` points, of the trials
        the last `rows`.
        """
        return cast(State, self._get("view", points=points, rows=rows))

    def plot(self, kind: str | None = None, ax: Axes | None = None, *, engine: str = "matplotlib") -> Any:
        """Draw which model leads, what was found, and whether the models predict it; see `Study.plot`."""
        return import_module("alexp.plot").draw(self._get("figures")["figures"], kind, ax, engine=engine)

    def summary(self) -> str:
        """The state of the study in a paragraph."""
        return " ".join(self._get("figures")["summary"].values())

    def _repr_html_(self) -> str:
        """Shown by notebooks."""
        return notebook.paragraph(repr(self)) + notebook.table(self._get("figures")["summary"].items())

    def report(self, path: str | Path) -> Path:
        """Write a self-contained HTML page about the study."""
        return self._download("report", Path(path))

    def export(self, path: str | Path) -> Path:
        """Write all trials as CSV: candidate, model, propensity, reward, state and times."""
        return self._download("export", Path(path))

    def _download(self, what: str, path: Path) -> Path:
        write_bytes(path, self._transport.send("GET", f"{self._path}/{what}").content)
        return path

    def info(self) -> State:
        """The study as JSON data: algorithm, direction, counts, domain, settings and their meaning."""
        return cast(State, self._transport.read(self._path))

    def events(self, since: int = 0, limit: int | None = None) -> list[EventDict]:
        """Events after the first `since`, oldest first, at most `limit`, as JSON data.

        To follow a study, use `follow`, or call this again with the number of events so far, `events[-1]["seq"] + 1`.
        """
        start, stop = count("since", since, 0), int(self.info()["n_events"])
        if limit is not None:
            stop = min(stop, start + count("limit", limit))
        found: list[EventDict] = []
        if start < stop:
            for event in self.follow(start):
                found.append(event)
                if event["seq"] + 1 >= stop:
                    break
        return found

    def follow(self, since: int | None = None) -> Iterator[EventDict]:
        """New events after the first `since`, or from now on; raises if the study is deleted.

        A lost connection is opened again; no event is missed.
        """
        import httpx

        attempts, position = 0, int(self.info()["n_events"]) if since is None else count("since", since, 0)
        while True:
            try:
                with self._transport.stream(f"{self._path}/events", since=position) as response:
                    for event in _events(response):
                        position, attempts = event["seq"] + 1, 0
                        yield event
            except httpx.TransportError as error:
                attempts += 1
                if attempts > self._transport.retries:
                    raise StorageError(f"the events of the study cannot be read: {error}") from error
            time.sleep(_PAUSE)

    def close(self) -> None:
        """Nothing is held open for one study; `Client.close` closes the connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a remote study cannot be pickled: it holds connections, and perhaps a token. Pass the study's name and "
            "the address of the service to the worker, and call alexp.Client(url).study(name) there"
        )

    def __repr__(self) -> str:
        return f"RemoteStudy({self.name!r}, url={self._transport.urls[0]!r})"


def _named(trial: AnyTrial | None, candidate: Name | None) -> State:
    """A trial by its number, by the name of its candidate, or by both."""
    if isinstance(trial, str) and candidate is None and not trial.removeprefix("#").isdecimal():
        trial, candidate = None, trial
    if trial is None and candidate is None:
        raise TypeError("trial must be a Trial or its id (an int), or candidate must name its candidate, got None")
    return without_none({"trial": None if trial is None else id_of(trial), "candidate": candidate})


def _result(trial: AnyTrial | None, reward: AnyReward, candidate: Name | None = None, note: str = "") -> State:
    return _named(trial, candidate) | {"reward": _reward(reward)} | ({"note": note} if note else {})


def _reward_columns(rewards: Sequence[Any], measured: Sequence[str]) -> dict[str, Any]:
    """A column of rewards, or one per measured objective."""
    if len(measured) < 2:
        return {name: np.array(rewards, dtype=np.float64) for name in measured} or {"reward": rewards}
    columns = {name: [None if reward is None else reward[name] for reward in rewards] for name in measured}
    return {name: np.array(column, dtype=np.float64) for name, column in columns.items()}


def _reward(reward: AnyReward) -> Packable:
    if isinstance(reward, str) and reward == FAILED:
        return FAILED
    if isinstance(reward, Mapping):
        return {name: _reward(value) for name, value in reward.items()}
    if isinstance(reward, list | tuple | np.ndarray) and np.ndim(reward):
        return [_reward(one) for one in cast(Sequence[float], reward)]
    return check_reward(cast(float, reward))


def _ids(trials: AnyTrial | Iterable[AnyTrial]) -> list[int]:
    return [id_of(trials)] if isinstance(trials, Trial | int | str) else [id_of(trial) for trial in trials]


def _cell(value: object) -> object:
    """A cell of a frame; None where it is missing."""
    return None if isinstance(value, float) and value != value else value


def _events(response: httpx.Response) -> Iterator[EventDict]:
    """The events of a stream, without its comments."""
    kind = ""
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        elif name == "data" and kind == "gone":
            raise StudyNotFoundError(json.loads(value)["detail"])
        elif name == "data" and kind == "":
            yield json.loads(value)
        elif line == "":
            kind = ""


def _warn(warnings: object) -> None:
    """Issue the warnings of a response at the line that called the library."""
    for text in warnings if isinstance(warnings, list) else ():
        caution(str(text), AssumptionWarning)


def _action(x: Packable, domain: str) -> Action:
    """An action as its domain has it: points of a Box are arrays, others are plain data."""
    return np.array(x, dtype=np.float64) if domain == "Box" else x


def _trial(answer: State, domain: str) -> Trial:
    return Trial(**_facts(answer, domain))


def _held_trial(answer: State, domain: str) -> HeldTrial:
    lease = answer.get("lease")
    return HeldTrial(**_facts(answer, domain), worker=answer["worker"], age=answer["age"], lease=lease)


def _facts(answer: State, domain: str) -> State:
    scores = answer.get("scores")
    return {
        "id": answer["id"],
        "x": _action(answer["x"], domain),
        "index": answer["index"],
        "model": answer["model"],
        "explored": answer["explored"],
        "propensity": _number(answer["propensity"]),
        "context": answer.get("context"),
        "n_candidates": answer.get("n_candidates"),
        "scores": None if scores is None else _numbers(scores),
    }


def _recommendation(answer: State, domain: str) -> Recommendation:
    return Recommendation(_action(answer["x"], domain), answer["index"], _number(answer["value"]), answer["model"])


def _stop_report(answer: State, domain: str) -> StopReport:
    """The report; an epsilon of None is infinite."""
    known = {field.name: answer[field.name] for field in fields(StopReport) if field.name in answer}
    known |= {name: np.array(answer[name], dtype=np.int64) for name in ("plausible", "disagreeing")}
    return StopReport(**known | {"x": _action(answer["x"], domain), "epsilon": _number(answer["epsilon"], inf)})


def _model_check(answer: State) -> ModelCheck:
    known = {field.name: answer[field.name] for field in fields(ModelCheck) if field.name in answer}
    arrays = {
        "rejected": np.array(answer["rejected"], dtype=np.int64),
        "speaks_against": tuple(answer["speaks_against"]),
        "trials": tuple(answer["trials"]),
    }
    return ModelCheck(**known | arrays | {"e_value": _number(answer["e_value"], inf)})


def _number(value: float | None, missing: float = nan) -> float:
    """A number; `missing` where JSON has None."""
    return missing if value is None else float(value)


def _numbers(values: Packable) -> FloatArray:
    """An array of numbers, with NaN for None."""
    return np.array(values, dtype=np.float64)
