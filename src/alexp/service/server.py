"""Running the service: listening, and a stop that loses nothing."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from alexp.service.access import is_loopback
from alexp.service.journal import LOG, JsonLines

if TYPE_CHECKING:
    from fastapi import FastAPI

_IDLE = 60  # seconds for which a connection may lie idle; proxies and clients pool them
GRACE = 60  # seconds for what is in flight when the service is stopped


class GracefulServer(uvicorn.Server):
    """Stops on SIGTERM or SIGINT: takes no more requests, lets streams end and requests finish, closes the studies."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Say it before waiting for open connections: streams would last for ever."""
        app = self.config.app
        app.state.shelf.stop()  # type: ignore[union-attr]
        LOG.info("stopping")
        await super().shutdown(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Say where it listens, also if the port was chosen by the system."""
        await super().startup(sockets)
        for server in getattr(self, "servers", []):
            for listening in server.sockets:
                host, port = listening.getsockname()[:2]
                name = f"[{host}]" if ":" in host else host
                LOG.info("listening", extra={"fields": {"url": f"http://{name}:{port}"}})


def check_host(host: str, has_tokens: bool) -> None:
    """Refuse to listen where others can reach the service, unless they need a token."""
    if not has_tokens and not is_loopback(host):
        raise ValueError(
            f"--host {host} can be reached by others, who could do anything without a token; pass --token-file, a file "
            "with a long random text on a line of its own, or listen on 127.0.0.1"
        )


def warn_if_others_can_read(token_file: Path) -> None:
    """Point out a file of tokens that is no secret on this host."""
    if os.name == "posix" and token_file.stat().st_mode & 0o077:
        LOG.warning("the token file can be read by other users of this host; chmod 600 makes it private")


def make_server(app: FastAPI, host: str, port: int, grace: int = GRACE) -> GracefulServer:
    """A server for an application that `create_app` made."""
    config = uvicorn.Config(
        app,
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
    """One line of JSON per event, of the service and of what carries it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("alexp.service", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO if name == "alexp.service" else logging.WARNING)


def serve(app: FastAPI, host: str, port: int, grace: int = GRACE) -> bool:
    """Serve until somebody stops it; returns whether it ever listened."""
    server = make_server(app, host, port, grace)
    for one in (
        signal.SIGINT,
        signal.SIGTERM,
    ):  # uvicorn passes them on once it has stopped; being told to is no failure
        signal.signal(one, _end)
    asyncio.run(server.serve())
    return server.started


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)
