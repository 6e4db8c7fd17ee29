"""Client: the studies of a service."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Self
from urllib.parse import quote

import numpy as np

from alexp.client.remote_study import RemoteStudy, without_none
from alexp.client.transport import HttpTransport
from alexp.common.arrays import AnyArray
from alexp.common.codec import Packable, State
from alexp.common.files import read_array, read_bytes
from alexp.common.validation import matrix, positive
from alexp.study.errors import StorageError
from alexp.study.view import StudySummary
from alexp.table.files import frame_lines, text_of
from alexp.table.understood import Understood, UnderstoodColumn

if TYPE_CHECKING:
    import pandas as pd

    from alexp.algorithms.base import Direction
    from alexp.study.leases import WhenExpired
    from alexp.table.columns import Reading

    Table = pd.DataFrame | str | Path
    # Features of a model: columns of the table, a matrix or frame (N, d), or a file of one.
    Features = Sequence[str] | AnyArray | pd.DataFrame | str | Path


class Client:
    """The studies of an `alexp serve`. Threads may share a client.

    Parameters
    ----------
    url
        The address of the service, such as "http://127.0.0.1:8000"; a list if several processes serve the same storage:
        if one does not respond, the next is tried.
    token
        A token of the service; by default the environment variable ALEXP_TOKEN, if it is set.
    timeout
        Seconds to wait for a response.
    retries
        How often a call is repeated that got no response, or status 429 or 503: first after 0.05 seconds, then after
        twice as long each time, at most five seconds, or after the Retry-After of the service. The default, about half
        a minute in all, bridges a restart of the service. Calls that write carry a key and are stored once.

    >>> Client("http://127.0.0.1:8000")
    Client('http://127.0.0.1:8000')
    """

    def __init__(
        self, url: str | Sequence[str], token: str | None = None, timeout: float = 60.0, retries: int = 10
    ) -> None:
        self._transport = HttpTransport([url] if isinstance(url, str) else list(url), token, timeout, retries)

    def wait(self, seconds: float = 60.0) -> Self:
        """Wait until the service answers, for instance while it starts; `StorageError` if it does not."""
        deadline = time.monotonic() + positive("seconds", seconds)
        while True:
            try:
                self._transport.read("/healthz")
                return self
            except StorageError:
                if time.monotonic() > deadline:
                    raise

    def studies(self) -> list[StudySummary]:
        """All studies of the service, by name."""
        return [
            StudySummary(
                one["name"], one["algorithm"], one["created_at"], **{"failed": 0} | one["counts"], latest=one["latest"]
            )
            for one in self._transport.read("/v1/studies")["studies"]
        ]

    def study(self, name: str) -> RemoteStudy:
        """A study by its name; `StudyNotFoundError` if there is none."""
        return RemoteStudy(self._transport, name)

    def create(
        self,
        table: Table | None = None,
        models: Mapping[str, Features] | None = None,
        *,
        name: str,
        problem: Mapping[str, object] | None = None,
        kernels: str | Mapping[str, str] | None = None,
        intercept: bool | None = None,
        reading: Reading | None = None,
        algorithm: str | None = None,
        direction: Direction | None = None,
        objectives: Mapping[str, Direction] | None = None,
        cost: str | Sequence[float] | None = None,
        budget: float | None = None,
        repeats: bool | None = None,
        expired: WhenExpired | None = None,
        random_state: int | None = None,
        load_if_exists: bool = False,
        **settings: Packable,
    ) -> RemoteStudy:
        """Start a study.

        Parameters
        ----------
        table
            The candidates, one per row: a DataFrame, or the path of a CSV, .xlsx or Parquet file.
        models
            Descriptions of the candidates by name: columns of the table, a matrix or DataFrame (N, d), or the path of a
            file, matched by id. None are needed: the table has columns of its own.
        name
            Distinct within the service.
        problem
            In place of a table, any problem the service knows, such as `{"kind": "interval", "lower": -1.0, "upper":
            1.0, "models": {"family": "legendre", "degree": 6, "size": 2}}`.
        kernels, intercept
            Kernels of the models of a table ("auto", "linear", or {model: "matern+linear"}), and whether each has a
            free constant.
        reading
            Keywords of `alexp.Table.read`, such as `{"missing": "drop", "kinds": {"lot": "words"}}`; see `preview`.
        algorithm, direction, objectives, cost, budget, repeats, expired, random_state, load_if_exists, settings
            As for `alexp.create_study`; settings are JSON data, such as `noise_std=0.1`.
        """
        if (table is None) == (problem is None):
            raise ValueError("a new study needs either a table (and models), or a problem")
        options = {**(reading or {}), "kernels": kernels, "intercept": intercept}
        described = _table_problem(table, models, options) if table is not None else problem
        body: State = {"name": name, "problem": described, "settings": settings or None, "algorithm": algorithm}
        body |= {"direction": direction, "repeats": repeats, "expired": expired, "random_state": random_state}
        body |= {
            "objectives": objectives,
            "cost": cost if isinstance(cost, str | None) else list(cost),
            "budget": budget,
        }
        return self._create(without_none(body), load_if_exists)

    def preview(
        self, table: Table, models: Mapping[str, Features] | None = None, *, reading: Reading | None = None
    ) -> Understood:
        """What the service understands a table as, column by column; nothing is made. Arguments as of `create`."""
        body = _table_problem(table, models, reading or {})
        found = self._transport.send("POST", "/v1/tables/preview", body).json()
        columns = tuple(UnderstoodColumn(**column) for column in found["columns"])
        return Understood(found["file"], found["n_candidates"], columns, tuple(found["remarks"]))

    def _create(self, body: State, load_if_exists: bool) -> RemoteStudy:
        name = body["name"]
        response = self._transport.send(
            "POST",
            "/v1/studies",
            body | {"load_if_exists": load_if_exists},
            again=lambda response: response.status_code == 409,  # an earlier attempt succeeded
            changes=True,
        )
        if response.status_code == 409:
            body = body | {"load_if_exists": True}  # an error if the study is another one
            response = self._transport.send("POST", "/v1/studies", body)
        return RemoteStudy(self._transport, name, response.json())

    def delete(self, name: str) -> None:
        """Delete a study and all its data."""
        self._transport.send(
            "DELETE",
            f"/v1/studies/{quote(name, safe='')}",
            again=lambda response: response.status_code == 404,  # an earlier attempt succeeded
            changes=True,
        )

    def close(self) -> None:
        """Close the connections; they open again when needed."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a client cannot be pickled: it holds connections, and perhaps a token. Pass the address to the worker, "
            "and the token in the environment variable ALEXP_TOKEN, and create a Client there"
        )

    def __repr__(self) -> str:
        return f"Client({self._transport.urls[0]!r})"


def _table_problem(table: Table, models: Mapping[str, Features] | None, options: Mapping[str, object]) -> State:
    """A table of candidates, one per row, and further descriptions by name."""
    if models is not None and not isinstance(models, Mapping):
        raise ValueError(
            'models must be features by name of the model, such as {"size": ["mass", "volume"], "learned": array}'
        )
    out: State = {"kind": "table"}
    out |= {"file": _file(Path(table))} if isinstance(table, str | Path) else {"columns": _columns(table)}
    if models:
        out["models"] = {name: _features(name, value) for name, value in models.items()}
    return out | without_none(dict(options))


def _file(path: Path) -> State:
    """A file as it is."""
    return {"name": path.name, "content": b64encode(read_bytes(path)).decode()}


def _columns(table: pd.DataFrame) -> State:
    if not hasattr(table, "columns") or not hasattr(table, "iloc"):
        raise TypeError(f"table must be a DataFrame or the path of a file, got {type(table).__name__}")
    lines = frame_lines(table)
    return {
        name: [text_of(row[k]) if isinstance(row[k], date) else row[k] for _, row in lines.rows]
        for k, name in enumerate(lines.header)
    }


def _features(name: str, value: Features) -> object:
    what = f"models[{name!r}]"
    if isinstance(value, str | Path):
        path = Path(value)
        if path.suffix.lower() != ".npy":
            return _file(path)
        return matrix(what, read_array(path)).tolist()
    if hasattr(value, "columns") or isinstance(value, np.ndarray):
        return matrix(what, np.asarray(value)).tolist()
    return list(value)
