"""The part of a remote study that looks: what is pending, what the models say, reports and files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, cast

import numpy as np

from alexp.algorithms.base import RoundArguments
from alexp.algorithms.certified import DELTA
from alexp.algorithms.log import Recommendation, Trial, UnknownTrialError
from alexp.client import reading
from alexp.client.following import RemoteLog
from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import Packable, State
from alexp.common.files import write_bytes
from alexp.common.validation import count
from alexp.problem.domains import Available
from alexp.study.view import Counts, HeldTrial

if TYPE_CHECKING:
    import pandas as pd

    from alexp.algorithms.certified import ModelCheck, StopReport
    from alexp.study.study import About

_PAGE = 1000  # trials per answer
_TYPES = {"id": "int64", "index": "int64", "model": "Int64", "explored": "bool", "propensity": "f8", "reward": "f8"}


class Looking(RemoteLog):
    """What a study shows, asked of its service."""

    _domain: str

    def _get(self, what: str, **params: object) -> Packable:
        answer = self._line.read(f"{self._path}/{what}", **params)
        if isinstance(answer, dict):
            reading.warn_of(answer.get("warnings"))
        return answer

    def _question(self, what: str, body: State) -> State:
        """The answer to a question that is asked by POST, because a context belongs to it; changes nothing."""
        answer: State = self._line.send("POST", f"{self._path}/{what}", body).json()
        reading.warn_of(answer.get("warnings"))
        return answer

    @property
    def counts(self) -> Counts:
        """Number of trials: asked, told (with observations from elsewhere), pending, abandoned."""
        return cast(Counts, self.summary()["counts"])

    def pending(self) -> list[HeldTrial]:
        """Trials that await their reward, oldest first, each with its worker, its age, and what its lease has left."""
        return [reading.held(one, self._domain) for one in self._get("pending")["pending"]]

    @property
    def probabilities(self) -> FloatArray:
        """q over the M models for the next round, shape (M,), for algorithms that have it.

        A service lists at most ten thousand models, the likeliest; what is left is spread evenly over all others.
        """
        told = self._get("probabilities")
        listed, n = reading.numbers(told["probabilities"]), int(told["n_models"])
        q = np.full(n, max(0.0, 1.0 - float(listed.sum())) / max(1, n - listed.size))
        q[told["models"]] = listed
        return q

    def best(self, *, available: Available = None, **presented: Unpack[RoundArguments]) -> Recommendation:
        """The action to stop with, judged by what is known now; of a contextual round, passed as to `ask`."""
        told = self._about("best", {"available": available, **presented})
        return reading.recommendation(told, self._domain)

    def policy(self, available: Available = None, **presented: Unpack[RoundArguments]) -> FloatArray:
        """The probability with which the next ask with these arguments would play each candidate, shape (n,)."""
        return reading.numbers(self._question("policy", present({"available": available, **presented}))["policy"])

    def stop_report(self, delta: float = DELTA, epsilon: float | None = None, **about: Unpack[About]) -> StopReport:
        """Whether the recommended action is within `epsilon` of the best, and the smallest epsilon that holds.

        In contextual studies about one round, passed as to `ask`.
        """
        told = self._about("stop-report", {**about}, delta=delta, epsilon=epsilon)
        return reading.stop_report(told, self._domain)

    def _about(self, what: str, round_: State, **params: float | None) -> State:
        """A statement about all candidates, or about a round that goes with the question."""
        known = present(round_)
        told: State = self._question(what, known | present(params)) if known else self._get(what, **params)
        return told

    def plausible_models(self, delta: float = DELTA) -> IntArray:
        """Numbers of the models not yet ruled out."""
        return np.array(self._get("plausible-models", delta=delta)["models"], dtype=np.int64)

    def check_models(self, delta: float = DELTA) -> ModelCheck:
        """Whether the rewards contradict what was stated about noise, bound and models."""
        return reading.model_check(self._get("check-models", delta=delta))

    def trial(self, trial_id: int) -> Trial:
        """A trial by its id."""
        found = self._get("trials", since=count("trial_id", trial_id, 0), limit=1)["trials"]
        if not found:
            raise UnknownTrialError(f"there is no trial {trial_id}")
        return reading.trial(found[0], self._domain)

    def trials_dataframe(self) -> pd.DataFrame:
        """One row per trial: id, x, index, model, explored, propensity, reward, state.

        `state` is "told", "pending", "abandoned", "retracted", or "observed" for data added from elsewhere.
        """
        import pandas as pd  # slow to import, and needed here only

        rows = list(self._pages("trials"))
        columns = {name: [row[name] for row in rows] for name in ("id", "index", "model", "explored", "propensity")}
        columns |= {name: [row[name] for row in rows] for name in ("reward", "state")}
        frame = pd.DataFrame(columns).astype(_TYPES)
        frame.insert(1, "x", pd.Series([reading.action(row["x"], self._domain) for row in rows], dtype=None))
        return frame

    def _pages(self, what: str) -> Iterator[State]:
        """Everything that comes in pages."""
        since: int | None = 0
        while since is not None:
            page = self._get(what, since=since, limit=_PAGE)
            yield from page[what]
            since = page["next"]

    def view(self, *, points: int = 600, rows: int = 25) -> State:
        """Everything that a page shows, of one moment, as JSON data.

        The fields are those of `StudyView.to_dict`, thinned by the service: curves to `points` points, of the trials
        the last `rows`.
        """
        return cast(State, self._get("view", points=points, rows=rows))

    def report(self, path: str | Path) -> Path:
        """Write a self-contained HTML page about the study."""
        return self._download("report", Path(path))

    def export(self, path: str | Path) -> Path:
        """Write all trials as CSV: what was proposed and why, the reward, and when it came."""
        return self._download("export", Path(path))

    def _download(self, what: str, path: Path) -> Path:
        write_bytes(path, self._line.send("GET", f"{self._path}/{what}").content)
        return path


def present(values: State) -> State:
    """What was given of some arguments."""
    return {name: value for name, value in values.items() if value is not None}
