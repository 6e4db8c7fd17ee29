"""Running the service with uvicorn, and its graceful shutdown."""

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

from alexp.service.monitoring import LOG, JsonLines
from alexp.service.security import is_loopback

if TYPE_CHECKING:
    from fastapi import FastAPI

_IDLE = 60  # seconds that an idle connection stays open; proxies and clients pool them
GRACE = 60  # seconds that requests have to finish when the service is stopped


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
    """Log one line of JSON per event of the service and of uvicorn."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("alexp.service", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO if name == "alexp.service" else logging.WARNING)


def serve(app: FastAPI, host: str, port: int, grace: int = GRACE) -> bool:
    """Serve until stopped; returns whether the server ever listened."""
    server = make_server(app, host, port, grace)
    for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises them again once it has stopped
        signal.signal(number, _exit)
    asyncio.run(server.serve())
    return server.started


def _exit(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)
