"""`alexp serve`: studies over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from alexp.cli.study import DEFAULT, Where


def serve(
    storage: Where = DEFAULT,
    host: Annotated[str, typer.Option(help="Where to listen; others than loopback need --token-file.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(help="Lines TOKEN or TOKEN read; without it only this host may call. Read again when it changes."),
    ] = None,
    origin: Annotated[
        list[str] | None, typer.Option(help="Another site whose pages may call, https://lab.example.org; repeat.")
    ] = None,
    proxy: Annotated[
        list[str] | None, typer.Option(help="Address of a proxy that may say for whom it calls; repeat.")
    ] = None,
    memory: Annotated[float, typer.Option(min=0.001, help="Gigabytes for all open studies.")] = 4.0,
    connections: Annotated[int, typer.Option(min=1, help="Connections at once.")] = 1000,
    max_body: Annotated[float, typer.Option(min=0.001, help="Megabytes of a request.")] = 32.0,
    rate: Annotated[
        float, typer.Option(min=0.0, help="Requests per second of one token or address; 0 for no limit.")
    ] = 500.0,
    grace: Annotated[int, typer.Option(min=1, help="Seconds for what is in flight when stopped.")] = 60,
) -> None:
    """Serve studies over HTTP, with a dashboard at /. SIGTERM stops it after the requests in flight.

    Example: alexp serve --storage sqlite:///lab.db --port 8000
    """
    from alexp.service import Limits, Tokens, create_app, server as running

    running.check_host(host, token_file is not None)
    tokens = None if token_file is None else Tokens.from_file(token_file)
    limits = Limits(
        body=int(max_body * 2**20),
        rate=rate,
        burst=max(1, int(2 * rate)),
        memory=memory * 1e9,
        connections=connections,
    )
    app = create_app(storage, tokens=tokens, limits=limits, origins=origin or ())
    app.state.studies.storage.prepare()  # raises now for a wrong storage
    running.log_to_stderr()
    if token_file is not None:
        running.warn_if_others_can_read(token_file)
    if not running.serve(app, host, port, grace, proxy or ()):
        raise typer.Exit(1)
