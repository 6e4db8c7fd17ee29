"""Running the service with uvicorn, and its graceful shutdown."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Collection
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from alexp.service.monitoring import LOG, JsonLines, SparingHandler
from alexp.service.security import is_loopback

if TYPE_CHECKING:
    from fastapi import FastAPI

_IDLE = 60  # seconds that an idle connection stays open; proxies and clients pool them
GRACE = 60  # seconds that requests have to finish when the service is stopped


_HEAD = 64 * 2**10  # bytes of the headers of a request
_AHEAD = 16  # requests that a connection may send before it has the answers
_FILES = 500  # files beside connections: the storage, compiled code, the log


class BoundedConnection(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """A connection whose requests begin in time, with few headers and few at a time, and whose answers are read.

    Of too many connections, the idle are closed.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Wait for a request; if there are too many connections, close the one that has waited longest."""
        super().connection_made(transport)
        self._limits, self._unsent = self.config.app.state.limits, 0
        self._wait()
        self._look()
        if len(self.connections) > self._limits.connections:
            open_now = [one for one in self.connections if not one.transport.is_closing()]
            if len(open_now) > self._limits.connections:
                min((one for one in open_now if one.is_waiting), key=lambda one: one.since).transport.abort()

    @property
    def is_waiting(self) -> bool:
        """Whether the caller is to act: no request is being answered, or the answer is not being read."""
        return self.cycle is None or self.cycle.response_complete or self.flow.write_paused

    def _wait(self) -> None:
        self.since, self._head = time.monotonic(), 0

    def _look(self) -> None:
        """Close the connection if it waits for too long; else look again when it might."""
        left = self._limits.patience
        if self.is_waiting:
            left += self.since - time.monotonic()
        if left <= 0.0 and (unsent := self.transport.get_write_buffer_size()) != self._unsent:
            self._unsent = unsent  # an answer is on its way: look again
            self._wait()
            left = self._limits.patience
        if left <= 0.0:
            self.transport.abort()
        else:
            self._timer = self.loop.call_later(left, self._look)

    def data_received(self, data: bytes) -> None:
        """Take in a part of a request; close the connection if its headers are too long."""
        super().data_received(data)
        self._head += len(data)
        if self.is_waiting and self._head > _HEAD:
            self.transport.abort()

    def on_headers_complete(self) -> None:
        """Take in a request, which httptools has parsed; close the connection if too many wait for their answers."""
        if len(self.pipeline) < _AHEAD:
            super().on_headers_complete()
        else:
            self.transport.abort()

    def pause_writing(self) -> None:
        """Wait until the caller reads."""
        super().pause_writing()
        self._wait()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no more."""
        self._timer.cancel()
        super().connection_lost(exc)


class GracefulServer(uvicorn.Server):
    """On SIGTERM or SIGINT takes no more requests, ends streams, finishes requests and closes the studies."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the event streams before waiting for open connections."""
        app = self.config.app
        app.state.studies.stop()  # type: ignore[union-attr]
        LOG.info("stopping")
        await super().shutdown(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Log the address, also if the system has chosen the port."""
        await super().startup(sockets)
        for server in getattr(self, "servers", []):
            for listening in server.sockets:
                host, port = listening.getsockname()[:2]
                name = f"[{host}]" if ":" in host else host
                LOG.info("listening", extra={"fields": {"url": f"http://{name}:{port}"}})


def check_host(host: str, has_tokens: bool) -> None:
    """Raise if other hosts could reach a service without tokens."""
    if not has_tokens and not is_loopback(host):
        raise ValueError(
            f"--host {host} can be reached from other hosts and needs tokens; pass --token-file, a file with a long "
            "random text on a line of its own, or listen on 127.0.0.1"
        )


def warn_if_others_can_read(token_file: Path) -> None:
    """Log a warning if other users of this host can read the token file."""
    if os.name == "posix" and token_file.stat().st_mode & 0o077:
        LOG.warning("the token file can be read by other users of this host; chmod 600 makes it private")


def make_server(
    app: FastAPI, host: str, port: int, grace: int = GRACE, proxies: Collection[str] = ()
) -> GracefulServer:
    """A server for an application that `create_app` made. Only `proxies` may say for whom they call."""
    config = uvicorn.Config(
        app,
        http=BoundedConnection,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=grace,
        timeout_keep_alive=_IDLE,
        ws="none",
    )
    return GracefulServer(config)


def log_to_stderr() -> None:
    """Log one line of JSON per event of the service and of uvicorn."""
    handler = SparingHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("alexp.service", "uvicorn", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO if name == "alexp.service" else logging.WARNING)


def serve(app: FastAPI, host: str, port: int, grace: int = GRACE, proxies: Collection[str] = ()) -> bool:
    """Serve until stopped; returns whether the server ever listened."""
    server = make_server(app, host, port, grace, proxies)
    _allow_files(app.state.limits.connections + _FILES)
    for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises them again once it has stopped
        signal.signal(number, _exit)
    server.run()
    return server.started


def _allow_files(number: int) -> None:
    """Raise the limit of open files of this process, where there is one, to this number."""
    try:
        import resource
    except ImportError:  # Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = number if hard == resource.RLIM_INFINITY else min(number, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < number:
        LOG.warning("the limit of open files is too low for all connections", extra={"fields": {"limit": most}})


def _exit(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)
