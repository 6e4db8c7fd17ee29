"""Client: the studies of a service."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn, Self
from urllib.parse import quote

from alexp.client.line import Line
from alexp.client.looking import present
from alexp.client.problems import table_problem
from alexp.client.remote import RemoteStudy
from alexp.common.codec import Packable, State
from alexp.common.validation import positive
from alexp.study.errors import StorageError
from alexp.study.view import StudySummary

if TYPE_CHECKING:
    from alexp.client.problems import Features, Table


class Client:
    """Studies behind `alexp serve`, used like those beside us. Threads may share one.

    Parameters
    ----------
    url
        Where the service is, such as "http://127.0.0.1:8000"; a list, if several processes serve the same storage: when
        one is gone, the next is asked.
    token
        What the service's token file has; by default the environment variable ALEXP_TOKEN, if it is set.
    timeout
        Seconds to wait for an answer.
    retries
        How often a call is repeated that got no answer, or was told to come back later: at first after a twentieth of a
        second, then after twice as long each time, at most five seconds, or as the service says. With the default that
        is about half a minute in all, in which a service may restart. Writes carry a key, and happen once.

    >>> Client("http://127.0.0.1:8000")
    Client('http://127.0.0.1:8000')
    """

    def __init__(
        self, url: str | Sequence[str], token: str | None = None, timeout: float = 60.0, retries: int = 10
    ) -> None:
        self._line = Line([url] if isinstance(url, str) else list(url), token, timeout, retries)

    def wait(self, seconds: float = 60.0) -> Self:
        """Wait until the service answers, for instance while it starts; `StorageError` if it does not."""
        deadline = time.monotonic() + positive("seconds", seconds)
        while True:
            try:
                self._line.read("/healthz")
                return self
            except StorageError:
                if time.monotonic() > deadline:
                    raise

    def studies(self) -> list[StudySummary]:
        """All studies of the service, by name."""
        return [
            StudySummary(one["name"], one["algorithm"], one["created_at"], **one["counts"], latest=one["latest"])
            for one in self._line.read("/v1/studies")["studies"]
        ]

    def study(self, name: str) -> RemoteStudy:
        """A study by its name; `StudyNotFoundError` if there is none."""
        return RemoteStudy(self._line, name)

    def create(
        self,
        table: Table | None = None,
        models: Mapping[str, Features] | None = None,
        *,
        name: str,
        problem: Mapping[str, object] | None = None,
        kernels: str | Mapping[str, str] | None = None,
        intercept: bool = True,
        algorithm: str | None = None,
        direction: str | None = None,
        repeats: bool | None = None,
        expired: str | None = None,
        random_state: int | None = None,
        load_if_exists: bool = False,
        **settings: Packable,
    ) -> RemoteStudy:
        """Start a study.

        Parameters
        ----------
        table
            The candidates, one per row: a DataFrame, or the path of a CSV file.
        models
            How each model sees the candidates, by name: columns of the table, a matrix or DataFrame (N, d), or the path
            of a CSV or NPY file of one.
        name
            Distinct within the service.
        problem
            In place of a table, any problem the service knows, such as `{"kind": "interval", "lower": -1.0, "upper":
            1.0, "models": {"family": "legendre", "degree": 6, "size": 2}}`.
        kernels, intercept
            Kernels of the models of a table ("linear", "auto", or {model: "matern+linear"}), and whether each has a
            free constant.
        algorithm, direction, repeats, expired, random_state, load_if_exists, settings
            As for `alexp.create_study`; settings are JSON data, such as `noise_std=0.1`.
        """
        if (table is None) == (problem is None):
            raise ValueError("a new study needs either a table (and models), or a problem")
        described = table_problem(table, models, kernels, intercept) if table is not None else problem
        body: State = {"name": name, "problem": described, "settings": settings or None, "algorithm": algorithm}
        body |= {"direction": direction, "repeats": repeats, "expired": expired, "random_state": random_state}
        return self._create(present(body), load_if_exists)

    def _create(self, body: State, load_if_exists: bool) -> RemoteStudy:
        name = body["name"]
        told = self._line.send(
            "POST",
            "/v1/studies",
            body | {"load_if_exists": load_if_exists},
            again=lambda response: response.status_code == 409,  # an earlier attempt was heard
            changes=True,
        )
        if told.status_code == 409:
            told = self._line.send("POST", "/v1/studies", body | {"load_if_exists": True})  # raises if it is another
        return RemoteStudy(self._line, name, told.json())

    def delete(self, name: str) -> None:
        """Remove a study with everything it consists of. There is no way back."""
        self._line.send(
            "DELETE",
            f"/v1/studies/{quote(name, safe='')}",
            again=lambda response: response.status_code == 404,  # an earlier attempt was heard
            changes=True,
        )

    def close(self) -> None:
        """Close the connections; they open again when needed."""
        self._line.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a client is not pickled: it holds connections, and perhaps a token. Give the worker the address, and the "
            "token in the environment variable ALEXP_TOKEN, and let it make its own"
        )

    def __repr__(self) -> str:
        return f"Client({self._line.urls[0]!r})"
