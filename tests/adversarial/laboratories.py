"""Kill -9 of one of several laboratories at one study: failures, replicates, corrections, new compounds, objectives."""

import json
import os
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

import alexp
from alexp.study import check, create_study, load_study
from tests.adversarial.kills import MARK, counted, insist, killed, opened, small_snapshots
from tests.adversarial.servers import new_database, postgres_server

KILLS = 100  # of each kind, at scale 1
ADDED = -2  # marks below: candidate -2 - mark was added

INPUTS = np.random.default_rng(8).uniform(-1.0, 1.0, (400, 2))


def outcome(trial):
    """What an experiment of the laboratory gives: a failure, or one to three measurements."""
    if trial.index % 7 == 0:
        return "failed"
    value = float(50.0 + 20.0 * INPUTS[trial.index % len(INPUTS), 0] + np.sin(37.0 * trial.id))
    return value if trial.id % 3 else [value, value + 0.5, value - 0.25][: 2 + trial.id % 2]


TWO = {"yield": "maximize", "waste": "minimize"}


def results_of(log, trial):
    """The same as the study takes it: with several objectives, by name."""
    wanted = outcome(trial)
    if wanted == "failed" or not log.objectives:
        return wanted
    named = [{"yield": value, "waste": 0.5 * value + trial.index % 3} for value in np.atleast_1d(wanted).tolist()]
    return named[0] if len(named) == 1 else named


def work_for_ever(storage, pipe):
    """What a laboratory does: plates, failures, replicates, results by name, notes, corrections and new compounds."""
    study, number = opened(storage, pipe), 0
    log = study.algorithm.log
    while True:
        number += 1
        first, second = insist(lambda key: study.ask(2, key=key), f"{os.getpid()} {number} ask")
        if first.id % 5 == 0:  # entered wrong, and corrected below
            wrong = {"yield": 1.0, "waste": 2.0} if log.objectives else 1.0
            insist(
                lambda key, trial=first, wrong=wrong: study.tell(trial, wrong, key=key), f"{os.getpid()} {number} wrong"
            )
        results = [(first, results_of(log, first), None, "corrected"), (second.x["id"], results_of(log, second))]
        told = "amend" if first.id % 5 == 0 else "raise"
        insist(
            lambda key, results=results, told=told: study.tell_many(results, told, key), f"{os.getpid()} {number} tell"
        )
        if number % 3 == 0:
            more = compounds([f"{os.getpid()}-{number}"], number)
            added = insist(lambda key, more=more: study.add_candidates(more, key), f"{os.getpid()} {number} add")
            os.write(pipe, MARK.pack(ADDED - added[0], 0.0))
        for trial in (first, second):
            os.write(pipe, MARK.pack(trial.id, float(np.sum(outcome(trial)) if outcome(trial) != "failed" else -1.0)))


def compounds(names, first=0):
    rows = INPUTS[np.arange(first, first + len(names)) % len(INPUTS)]
    table = alexp.Table.from_frame(pd.DataFrame({"id": names, "x": rows[:, 0], "y": rows[:, 1]}))
    return table.describe("both", ["x", "y"]).describe("first", ["x"])


def new_study(storage, objectives=None):
    table = compounds([f"c{k}" for k in range(len(INPUTS))])
    models, domain = table.models("linear"), table.domain
    more = {} if objectives is None else {"objectives": objectives}
    study = create_study(models, domain, name="s", storage=storage, random_state=5, repeats=True, **more)
    plain = alexp.EvidenceMixture(models, domain, random_state=5, goal="best", **more)  # compiles before the first fork
    for trial in plain.ask(8):
        plain.fail(trial) if outcome(trial) == "failed" else plain.tell(trial, results_of(plain.log, trial))
    plain.add_candidates(compounds(["one more"], 7))
    plain.ask()
    study.close()


def what_is_wrong(storage, acknowledged):
    """Results or compounds lost, changed or doubled, failures proposed again, replays that differ in any bit."""
    study, wrong = load_study("s", storage), []
    algorithm, events = study.algorithm, study.events()
    log, failed = algorithm.log, {}
    added = [ADDED - mark for mark, _ in acknowledged if mark <= ADDED]
    acknowledged = [pair for pair in acknowledged if pair[0] > ADDED]
    stored = [event["candidate"] for event in events if event["kind"] == "add"]
    names = algorithm.domain.candidates["id"]
    if stored != list(range(len(INPUTS), len(names))) or not set(added) <= set(stored) or len(set(names)) < len(names):
        wrong.append(f"compounds are lost or came twice: {len(added)} acknowledged, {len(stored)} stored")
    done = [(event["kind"], event["trial"]) for event in events if event["kind"] != "add"]
    if len(set(done)) != len(done) or len({trial for trial, _ in acknowledged}) != len(acknowledged):
        wrong.append("something happened twice")
    for trial, _ in acknowledged:
        wanted = results_of(log, algorithm.trial(trial))
        found = "failed" if trial in log.failed else log.measurements(trial)
        if found != (wanted if wanted == "failed" else algorithm.check_rewards(wanted)):
            wrong.append(f"the acknowledged result of trial {trial} is lost: {found}, not {wanted}")
    for event in events:
        if event["kind"] == "ask" and event["candidate"] in failed.values():
            wrong.append(f"trial {event['trial']} is of a candidate that had failed")
        if event["kind"] == "fail":
            failed[event["trial"]] = log.index[event["trial"]]
    if json.dumps(study.replayed().algorithm.to_dict()) != json.dumps(algorithm.to_dict()):
        wrong.append("the log, replayed, gives something else")
    return wrong + check("s", storage).problems


def kill_many(storage, kills, rng, objectives=None):
    """Kill one of several laboratories again and again; returns (acknowledged results, what is wrong)."""
    new_study(storage, objectives)
    acknowledged, problems = killed(storage, kills, rng, work_for_ever)
    return len(acknowledged), problems + what_is_wrong(storage, acknowledged)


def soak(scale=1.0, seed=0, server=None):
    """One objective and two, on both storages; `violations` must be 0."""
    kills = max(1, round(KILLS * scale))
    with ExitStack() as stack:
        stack.enter_context(small_snapshots())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="alexp-laboratories-")))
        running = stack.enter_context(postgres_server()) if server is None else server
        parts = []
        for what, objectives in (("one objective", None), ("two objectives", TWO)):
            name = what.partition(" ")[0]
            places = {
                "sqlite": f"sqlite:///{folder / name}.db",
                "postgresql": new_database(running, f"laboratories{seed}_{name}"),
            }
            parts += [
                (f"kills with {what} on {kind}", kills, partial(kill_many, where, objectives=objectives))
                for kind, where in places.items()
            ]
        return counted(parts, np.random.default_rng(seed), "results")
