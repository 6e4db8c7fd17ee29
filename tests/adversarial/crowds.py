"""Many clients at one study through two servers: none lost, none doubled, and the log replays bit for bit."""

import tempfile
from contextlib import ExitStack
from pathlib import Path

from alexp.study import load_study
from tests.adversarial.fleet import Clients, Server
from tests.adversarial.kills import new_study, what_is_wrong
from tests.adversarial.servers import new_database, postgres_server

SIZES = {"postgresql": (64, 100), "sqlite": (16, 50)}  # clients, and pairs of ask and tell by each, at scale 1
PROCESSES = 4


def crowd(storage, clients, pairs, servers=2):
    """Let them work; returns what is wrong."""
    new_study(storage)
    running = [Server(storage) for _ in range(servers)]
    try:
        for server in running:
            server.wait()
        told, errors = Clients([server.url for server in running], clients, pairs, min(PROCESSES, clients)).finished()
    finally:
        for server in running:
            server.stop()
    wrong = [f"a client failed: {error}" for error in errors]
    if sorted(trial for trial, _ in told) != list(range(clients * pairs)):
        wrong.append(f"{clients * pairs} trials were to be told, and {len(told)} were")
    study = load_study("s", storage)
    if len(study.events()) != 2 * clients * pairs:
        wrong.append(f"{2 * clients * pairs} events were to happen, and {len(study.events())} did")
    workers = study.events_dataframe()["worker"].nunique()
    if workers != min(PROCESSES, clients):
        wrong.append(f"the log names {workers} workers")
    study.close()
    return wrong + what_is_wrong(storage, told)


def soak(scale=1.0, seed=0, server=None):
    """Both storages; `violations` must be 0."""
    figures, wrong = {"tried": 0}, []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="alexp-crowds-")))
        running = stack.enter_context(postgres_server()) if server is None else server
        places = {"sqlite": f"sqlite:///{folder / 's.db'}"}
        places["postgresql"] = new_database(running, f"crowds{seed}").render_as_string(hide_password=False)
        for what, where in places.items():
            clients, most = SIZES[what]
            clients, pairs = max(4, round(clients * min(1.0, 2.0 * scale))), max(3, round(most * scale))
            problems = crowd(where, clients, pairs)
            figures["tried"] += clients * pairs
            figures |= {f"{what}, clients x pairs": f"{clients} x {pairs}"}
            wrong += [f"{what}: {problem}" for problem in problems]
    return figures | {"violations": len(wrong)} | ({"first": wrong[0]} if wrong else {})
