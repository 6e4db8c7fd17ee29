"""Kill -9 of servers under clients that repeat with their keys: nothing acknowledged is lost, nothing happens twice."""

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from alexp.study import load_study
from tests.adversarial.fleet import Clients, Server
from tests.adversarial.kills import new_study, what_is_wrong
from tests.adversarial.servers import new_database, postgres_server

KILLS = 100  # on each storage, at scale 1
CLIENTS = 6
MOST_MARKS = 12  # rewards that are told before a server is killed
LONGEST = 0.03  # seconds more, anywhere in whatever is under way


def kill_many(storage, kills, rng, servers):
    """Kill a server again and again and start it anew at once; returns (acknowledged tells, what is wrong).

    With two servers, clients go to the other one; with one, they wait until it is back.
    """
    new_study(storage)
    running = [Server(storage).wait() for _ in range(servers)]
    pairs = 5 + kills * MOST_MARKS // CLIENTS
    clients = Clients([server.url for server in running], CLIENTS, pairs, 2)
    done, wrong = 0, []
    try:
        while done < kills:
            until = clients.marks.value + int(rng.integers(1, MOST_MARKS))
            if until > CLIENTS * (pairs - 3):
                wrong.append(f"the clients were done after {done} kills")
                break
            while clients.marks.value < until and not clients.stand_still():
                time.sleep(0.001)
            if clients.marks.value < until:
                wrong.append("nobody gets on")
                break
            time.sleep(float(rng.uniform(0.0, LONGEST)))
            victim = running[int(rng.integers(servers))]
            victim.kill()
            victim.start()
            done += 1
        told, errors = clients.finished()
    finally:
        for server in running:
            server.stop()
    wrong += [f"a client failed: {error}" for error in errors]
    study = load_study("s", storage)
    if len(told) != CLIENTS * pairs or len(study.events()) != 2 * CLIENTS * pairs:
        wrong.append(f"{CLIENTS * pairs} were to be told, {len(told)} were, and {len(study.events())} events happened")
    study.close()
    return len(told), wrong + what_is_wrong(storage, told)


def soak(scale=1.0, seed=0, server=None):
    """One server on a file, two on PostgreSQL; `violations` must be 0."""
    rng, figures, wrong, kills = np.random.default_rng(seed), {"tried": 0}, [], max(1, round(KILLS * scale))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="alexp-outages-")))
        running = stack.enter_context(postgres_server()) if server is None else server
        url = new_database(running, f"outages{seed}").render_as_string(hide_password=False)
        for what, where, servers in (("sqlite", f"sqlite:///{folder / 's.db'}", 1), ("postgresql", url, 2)):
            acknowledged, problems = kill_many(where, kills, rng, servers)
            figures["tried"] += kills
            figures |= {f"kills on {what}": kills, f"pairs acknowledged, {what}": acknowledged}
            wrong += [f"{what}: {problem}" for problem in problems]
    return figures | {"violations": len(wrong)} | ({"first": wrong[0]} if wrong else {})
