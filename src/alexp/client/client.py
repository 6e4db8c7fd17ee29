"""Client: the studies of a service."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn, Self
from urllib.parse import quote

from alexp.client.remote_study import RemoteStudy
from alexp.client.tables import results_of, table_problem
from alexp.client.transport import HttpTransport, without_none
from alexp.common.codec import Packable, State
from alexp.common.validation import positive
from alexp.study.errors import StorageError
from alexp.study.view import StudySummary
from alexp.table.understood import Understood, UnderstoodColumn

if TYPE_CHECKING:
    from alexp.algorithms.base import Direction
    from alexp.client.tables import Features, TableSource
    from alexp.study.leases import WhenExpired
    from alexp.table.columns import Reading


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
        table: TableSource | None = None,
        models: Mapping[str, Features] | None = None,
        *,
        name: str,
        problem: Mapping[str, object] | None = None,
        kernels: str | Mapping[str, str] | None = None,
        intercept: bool | None = None,
        reading: Reading | None = None,
        memory: Mapping[str, TableSource] | None = None,
        reward: str | None = None,
        algorithm: str | None = None,
        direction: Direction | None = None,
        objectives: Mapping[str, Direction] | None = None,
        cost: str | Sequence[float] | Mapping[str, float] | None = None,
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
        memory, reward
            Results of old campaigns by name, DataFrames or files; see `Table.with_memory`. The column of results, there
            and in the table, where they count as measured.
        algorithm, direction, objectives, cost, budget, repeats, expired, random_state, load_if_exists, settings
            As for `alexp.create_study`; settings are JSON data, such as `noise_std=0.1`.
        """
        if (table is None) == (problem is None):
            raise ValueError("a new study needs either a table (and models), or a problem")
        options: State = {**(reading or {}), "kernels": kernels, "intercept": intercept}
        options |= {} if reward is None else {"reward": reward}
        options |= {"memory": results_of(memory)} if memory else {}
        described = table_problem(table, models, options) if table is not None else problem
        body: State = {"name": name, "problem": described, "settings": settings or None, "algorithm": algorithm}
        body |= {"direction": direction, "repeats": repeats, "expired": expired, "random_state": random_state}
        body |= {
            "objectives": objectives,
            "cost": cost if isinstance(cost, str | Mapping | None) else list(cost),
            "budget": budget,
        }
        return self._create(without_none(body), load_if_exists)

    def preview(
        self, table: TableSource, models: Mapping[str, Features] | None = None, *, reading: Reading | None = None
    ) -> Understood:
        """What the service understands a table as, column by column; nothing is made. Arguments as of `create`."""
        body = table_problem(table, models, reading or {})
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
