"""Every verb on every kind of problem, through every door: what each call answers, refuses, and leaves behind.

The scripts use public names only, so that they run on other versions of the library. `python -m tests.golden.record`
writes what they say; `tests/golden/test_verbs.py` compares.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import sqlite3
import warnings
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import pandas as pd

import alexp
from alexp.algorithms.registry import algorithm_named, registered_names
from tests.golden.studies import reactions

NOW = 1_700_000_000.0  # of the clock in stored studies
_LONG = 24  # numbers of an array that are listed; longer ones are hashed
ABSENT = 10**6  # a number that no candidate and no trial has


# -- problems --------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Problem:
    """Models and domain, what a round is asked for with, and settings that belong to it."""

    make: object  # () -> (models, domain)
    presents: object = None  # step -> arguments of ask; None where candidates are listed
    settings: dict = dataclasses.field(default_factory=dict)
    objectives: tuple = ()

    @property
    def action(self):
        """One action, where candidates are listed."""
        domain = self.make()[1]
        return (domain.domain if isinstance(domain, alexp.Table) else domain)[3]

    def reward(self, index, trial):
        """The reward of a trial: a number, or one for every objective that is measured."""
        value = ((index * 37 + 11) % 64) / 64.0 - ((index - 20) / 16.0) ** 2 / 2.0 + ((trial * 29) % 32 - 16) / 320.0
        return {name: value + k for k, name in enumerate(self.objectives)} or value


def _numbers(n, p, seed):
    return np.random.default_rng(seed).integers(-8, 9, (n, p)) / 8.0


def _items(n):
    return alexp.FiniteSet([f"item {i}" for i in range(n)])


def _line():
    return alexp.ModelClass.legendre(degree=4, size=2), alexp.Interval(-1.0, 1.0, resolution=30)


def _maps():
    maps = {"a": _numbers(30, 3, 1), "b": _numbers(30, 2, 2)}
    return alexp.ModelClass.from_matrices(maps, intercept=True), _items(30)


def _kernels():
    return alexp.ModelClass.from_matrices({"a": _numbers(30, 3, 1)}, kernels="auto"), _items(30)


def _box():
    return alexp.ModelClass.subsets(alexp.Polynomial(2, 2), 2), alexp.Box([0.0, 0.0], [1.0, 2.0], resolution=40)


def _table():
    table = alexp.Table.from_frame(reactions(0, 24))
    return table.models("linear"), table


def _enumerated():
    models = alexp.ModelClass.subsets(alexp.Polynomial(2, 2), 2, device="cpu")
    return models, alexp.Box([0.0, 0.0], [1.0, 2.0], resolution=40)


def _combinations():
    candidates = alexp.Combinations({"base": ["KOAc", "CsOPiv"], "celsius": [90, 105, 120], "solvent": list("abcd")})
    own = {"base": _numbers(2, 2, 3), "celsius": _numbers(3, 1, 4), "solvent": _numbers(4, 2, 5)}
    return alexp.ModelClass.from_matrices({"all": candidates.features(own)}), alexp.FiniteSet(candidates)


def _per_arm():
    return alexp.ModelClass.per_arm({"x": [0], "z": [1, 2]}, arms=3), alexp.Arms(["low", "mid", "high"])


def _context(step):
    return {"context": _numbers(1, 3, 100 + step)[0]}


def _blocks():
    return alexp.ModelClass.from_blocks({"user": 2, "item": 3}, example=_numbers(9, 5, 6)), alexp.Candidates()


def _features(step):
    return {"features": _numbers(5, 5, 200 + step), "ids": [f"{step}.{k}" for k in range(5)]}


def _crossed():
    return alexp.ModelClass.crossed(["age", "dose"], ["size"], order=2), alexp.Candidates()


def _pairs(step):
    ages, sizes = _numbers(1, 2, 300 + step)[0].tolist(), _numbers(4, 1, 400 + step)[:, 0].tolist()
    return {"context": dict(zip(("age", "dose"), ages, strict=True)), "candidates": [{"size": one} for one in sizes]}


def _ball():
    return alexp.ModelClass.coordinates(3), alexp.Ball(3, 2.0)


PROBLEMS = {
    "line": Problem(_line),
    "maps": Problem(_maps),
    "once": Problem(_maps, settings={"repeats": False}),
    "kernels": Problem(_kernels),
    "box": Problem(_box),
    "table": Problem(_table, settings={"repeats": False}),
    "enumerated": Problem(_enumerated),
    "combinations": Problem(_combinations, settings={"repeats": False}),
    "range": Problem(_maps, settings={"reward_range": (-5.0, 5.0), "noise": "gaussian", "direction": "minimize"}),
    "objectives": Problem(
        _table,
        settings={
            "repeats": False,
            "objectives": {"yield": "maximize", "purity": "maximize"},
            "cost": "price",
            "budget": 90.0,
        },
        objectives=("yield", "purity"),
    ),
    "per arm": Problem(_per_arm, _context),
    "blocks": Problem(_blocks, _features),
    "crossed": Problem(_crossed, _pairs),
    "all features": Problem(_blocks, _features, {"log_features": "all"}),
    "no features": Problem(_per_arm, _context, {"log_features": "none"}),
    "ball": Problem(_ball, lambda step: {}),
}  # fmt: skip


def settings_of(kind, problem):
    """Arguments of the constructor."""
    known = {"noise_std": 0.1, "reward_bound": 2.0, "norm_bound": 1.0, "random_state": 5}
    plain = not {"noise", "objectives"} & problem.settings.keys()
    return (known if plain else {"random_state": 5}) | kind.example | problem.settings


# -- what was said ---------------------------------------------------------------------------------------------


def said(value):
    """A value as JSON data, floats as hexadecimal text."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, float | np.floating):
        return float(value).hex()
    if value is None or isinstance(value, int | str):
        return value
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.ndarray):
        shown = [said(one) for one in value.ravel().tolist()]
        return shown if value.ndim == 1 and value.size <= _LONG else [list(value.shape), digest(shown)]
    if isinstance(value, pd.DataFrame):
        return {str(name): said(value[name].tolist()) for name in value}
    if isinstance(value, dict):
        return {str(name): said(one) for name, one in value.items()}
    if hasattr(value, "_asdict"):
        return said(value._asdict())
    if dataclasses.is_dataclass(value):
        return said({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    if isinstance(value, set | frozenset):
        return sorted(said(one) for one in value)
    if isinstance(value, list | tuple):
        return [said(one) for one in value]
    return type(value).__name__


def digest(value):
    """A short hash of JSON data; its mark says that it differs where the last bit of a number does."""
    return "#" + hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


class Script:
    """Calls of a run, and what was said to each."""

    def __init__(self, run, problem):
        self.run, self.problem, self.lines = run, problem, []

    def do(self, name, *args, **kwargs):
        """Call a method, or read an attribute; returns None after an error."""
        out, heard = None, []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                member = getattr(self.run, name)
                out = member(*args, **kwargs) if callable(member) else member
                line = said(out)
            except Exception as error:
                line = f"{type(error).__name__}: {error}"
            heard = [str(one.message) for one in caught if issubclass(one.category, alexp.AssumptionWarning)]
        self.lines.append([name, line, *heard])
        return out

    def ask(self, n=None, step=0, **more):
        """Ask on the round of a step."""
        presented = {} if self.problem.presents is None else self.problem.presents(step)
        return self.do("ask", n, **presented, **more)

    def tell(self, *trials, **more):
        """Tell the rewards of trials."""
        for trial in trials:
            if trial is not None:
                self.do("tell", trial.id, self.problem.reward(trial.index, trial.id), **more)


def played(script):
    """All verbs on a run, the right and the wrong uses of them."""
    do, problem = script.do, script.problem
    reward, present = problem.reward, problem.presents or (lambda step: {})
    do("best", **present(0))
    for step in range(4):
        script.tell(script.ask(step=step))
    plate = script.ask(3, step=4) or []
    script.tell(*plate[:0:-1])
    some = script.ask(step=5, available=[1, 2])
    script.tell(some)
    do("policy", **present(6))
    do("policy", available=[0, 1], **present(7))
    do("probabilities")
    do("best", **present(8))
    do("best", available=[0, 2], **present(9))
    if plate:
        do("tell", plate[0].id, [reward(3, 1), reward(3, 2), reward(3, 3)], note="three vials")
    for step, after in enumerate(("tell", "amend", "fail", "retract"), 10):
        late = script.ask(step=step)
        if late is None:
            continue
        if after in ("tell", "amend"):
            do("abandon", late.id)
            script.tell(late, if_told="amend" if after == "amend" else "raise")
        elif after == "fail":
            do("fail", late.id, reason="tar")
            do("tell", late.id, reward(0, 0))
            do("fail", late.id, if_told="same")
        else:
            script.tell(late)
            do("retract", late.id)
            do("retract", late.id)
            do("amend", late.id, reward(1, 1))
    observed = do("observe", 1, reward(7, 7), **present(20))
    if observed is not None:
        do("amend", observed.id, reward(8, 8))
    do("amend", 1, reward(9, 9))
    do("fail", 2, if_told="amend", reason="was tar")
    do("tell", 3, reward(0, 50), if_told="amend", note="read again")
    _wrong(script)
    for step in range(30, 33):
        script.tell(script.ask(step=step))
    script.ask(2, step=33)
    for name in ("stop_report", "plausible_models", "check_models", "noise_estimate", "likeliest", "pareto"):
        do(name)
    do("stop_report", 0.1, 0.5, **present(34))
    do("confidence", **(present(34) if problem.presents else {"x": problem.action}))
    do("predict", **(present(34) if problem.presents else {"x": problem.action}))
    do("summary")
    do("pending")
    do("trials_dataframe")
    do("log_frame")
    do("best", **present(35))


def _wrong(script):
    """Calls that are refused."""
    do, present = script.do, script.problem.presents or (lambda step: {})
    reward = script.problem.reward(2, 2)
    for trial in (ABSENT, -1, "no trial", 1.5, None):
        do("tell", trial, reward)
    for wrong in (float("nan"), float("inf"), "much", None, [], [1.0, float("nan")], {"yield": 1.0}, 1e200):
        do("tell", 0, wrong, if_told="amend")
    do("tell", 0, reward)
    do("tell", 0, reward, if_told="same")
    do("tell", 0, reward, if_told="always")
    do("tell", 0, reward, note=7)
    do("tell", 0, reward, candidate="item 29")
    do("fail", 0)
    do("fail", 0, if_told="same")
    do("fail", ABSENT)
    do("abandon", 0)
    do("abandon", ABSENT)
    do("amend", ABSENT, reward)
    do("amend", 0, float("nan"))
    do("retract", ABSENT)
    for n in (0, -1, 1.5, "two", *([ABSENT] if script.problem.settings.get("repeats") is False else [])):
        do("ask", n, **present(40))
    for available in ([], [ABSENT], [-1], [0, 0], ["nothing"], [True], "item 3"):
        do("ask", available=available, **present(41))
    do("ask", where="celsius >")
    do("ask", where="weight > 3", **present(42))
    do("ask", 2, at_most={"solvent": 0}, **present(42))
    do("ask", 2, at_most={"weight": 1}, **present(42))
    do("ask", 2, together=["weight"], **present(42))
    do("ask", context=[1.0])
    do("ask", features=[[1.0]])
    do("ask", candidates=[1])
    do("observe", ABSENT, reward, **present(43))
    do("observe", 0, float("nan"), **present(43))
    do("observe", 0, reward, propensity=2.0, **present(43))
    do("best", available=[ABSENT], **present(44))


# -- doors -----------------------------------------------------------------------------------------------------


def cases():
    """(algorithm, problem) of every run in memory."""
    return [(name, problem) for name in registered_names() if name in _own() for problem in PROBLEMS]


def _own():
    return {name for name in registered_names() if algorithm_named(name).__module__.startswith("alexp.")}


def memory(algorithm, name):
    """A run in memory: what was said, what is saved, and how the saved run goes on."""
    kind, problem = algorithm_named(algorithm), PROBLEMS[name]
    with _quiet():
        try:
            models, domain = problem.make()
            if isinstance(domain, alexp.Table) and algorithm not in ("evidence-mixture", "mixture-thompson"):
                domain = domain.domain
            run = kind(models, domain, **settings_of(kind, problem))
        except (ValueError, TypeError) as error:
            return {"refused": f"{type(error).__name__}: {error}"}
    script = Script(run, problem)
    if name in ("table", "objectives"):
        plates(script)
    played(script)
    out = {"calls": script.lines}
    with _quiet():
        state = json.loads(json.dumps(run.to_dict(problem=False)))
        out["state"] = {key: digest(state[key]) for key in sorted(state.keys() - {"digest"})}
        again = Script(kind.from_dict(state, run.models, run.domain), problem)
    for step in range(60, 63):
        again.tell(again.ask(step=step))
    out["after"] = again.lines
    return out


def plates(script):
    """Plates under conditions."""
    where = "celsius <= 105 and solvent != 'DMF'"
    script.tell(*(script.do("ask", 4, where=where, at_most={"solvent": 2}) or []))
    script.tell(*(script.do("ask", 3, together="solvent") or []))
    script.do("ask", 9, where="celsius <= 60", at_most={"solvent": 1})
    script.tell(*(script.do("ask", 2, available=["r3", "r4", "r5"]) or []))


STUDIES = ("evidence-mixture", "alexp", "corral", "etc", "linucb")


@contextmanager
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _stopped_clock():
    """Times of stored events do not move."""
    with patch("time.time", lambda: NOW), patch.dict(os.environ, {"ALEXP_WORKER": "golden"}):
        yield


def study(algorithm, name):
    """The same in a study, with calls that only studies have; and the rows of its database."""
    kind, problem = algorithm_named(algorithm), PROBLEMS[name]
    with TemporaryDirectory() as folder, _stopped_clock():
        path = Path(folder) / "golden.db"
        with _quiet():
            try:
                models, domain = problem.make()
                run = alexp.create_study(
                    models, domain, name="g", storage=path, algorithm=algorithm, **settings_of(kind, problem)
                )
            except (ValueError, TypeError) as error:
                return {"refused": f"{type(error).__name__}: {error}"}
        with run:
            script = Script(run, problem)
            if name in ("table", "objectives"):
                plates(script)
            played(script)
            _shared(script)
            lines = script.lines
        with alexp.load_study("g", path) as again:
            more = Script(again, problem)
            for step in range(60, 63):
                more.tell(more.ask(step=step))
            more.do("counts")
            more.do("events", 0, 4)
        return {"calls": _without_clock(lines), "after": _without_clock(more.lines), "rows": rows(path)}


def _shared(script):
    """Keys, leases, many results at once, and what makes a study grow."""
    do, problem = script.do, script.problem
    present, reward = problem.presents or (lambda step: {}), problem.reward
    for _ in range(2):
        do("ask", 2, key="plate", **present(50))
    do("ask", 1, key="plate", **present(50))
    held = do("ask", 2, key="held", lease=3600.0, **present(51)) or []
    do("ask", lease=-1.0, **present(51))
    do("heartbeat", [trial.id for trial in held], 60.0)
    do("take_over", [trial.id for trial in held], lease=60.0)
    do("take_over", n=0)
    results = {trial.id: reward(trial.index, trial.id) for trial in held}
    for _ in range(2):
        do("tell_many", results, key="results")
    do("tell_many", {trial: reward(1, 9) for trial in results}, key="results")
    do("tell_many", {trial: reward(1, 9) for trial in results}, "amend", sure=False)
    do("tell_many", {0: reward(1, 9), ABSENT: reward(1, 9)}, "amend")
    do("tell_many", [(0, reward(1, 9)), (0, reward(1, 9))], "amend")
    do("tell", 0, reward(4, 4), "amend", "told")
    do("tell", 0, reward(4, 4), "amend", "told")
    do("tell", 0, reward(5, 4), "amend", "told")
    do("fail", 1, "spilled", "amend", "failed")
    do("abandon", [trial.id for trial in do("ask", 2, **present(52)) or []], key="gone")
    do("retract", 0, key="back")
    do("retract", 0, key="back")
    frame = pd.DataFrame({"index": [3, 4], "reward": [0.25, -0.5]})
    for _ in range(2):
        do("add_observations", frame, key="old")
    do("add_observations", pd.DataFrame({"index": [ABSENT], "reward": [0.25]}))
    do("add_arm", "huge", key="arm")
    do("add_arm", "huge")
    with _quiet():
        more = alexp.Table.from_frame(reactions(30, 4))
    do("add_candidates", more, key="more")
    do("add_candidates", more)
    past = reactions(0, 12).assign(reward=lambda one: 10.0 + one["celsius"] / 2.0 + one["price"] % 3.0)
    do("learn_from", {"last year": past}, key="past")
    script.tell(script.ask(step=53))
    do("trials", 0, 3)


def rows(path):
    """Every row that is stored, without the clock of the database and without what is random."""
    with sqlite3.connect(path) as connection:
        found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1").fetchall()
        return {name: _rows(connection, name) for (name,) in found if not name.startswith("sqlite_")}


_RANDOM = {"expires_at", "key", "chain", "checksum", "at", "created_at", "held_at"}


def _rows(connection, name):
    cursor = connection.execute(f"SELECT * FROM {name}")
    columns = [one[0] for one in cursor.description]
    return [[_cell(value) for title, value in zip(columns, row, strict=True) if title not in _RANDOM] for row in cursor]


def _cell(value):
    return "#" + hashlib.sha256(value).hexdigest()[:16] if isinstance(value, bytes) else said(value)


REMOTE = ("table", "line", "per arm", "objectives")
_BODIES = {
    "table": {
        "kind": "table",
        "csv": reactions(0, 24).to_csv(index=False),
        "kernels": "linear",
    },
    "line": {"kind": "interval", "resolution": 30, "models": {"family": "legendre", "degree": 4, "size": 2}},
    "per arm": {"kind": "arms", "arms": ["low", "mid", "high"], "features": {"x": [0], "z": [1, 2]}},
}
_BODIES["objectives"] = _BODIES["table"]


def remote(name):
    """The same through the client of a service."""
    from tests.service.serving import FREE, serving

    problem = PROBLEMS[name]
    with (
        TemporaryDirectory() as folder,
        _stopped_clock(),
        _quiet(),
        serving(Path(folder) / "golden.db", limits=FREE) as (url, _),
        alexp.Client(url) as client,
    ):
        settings = settings_of(alexp.EvidenceMixture, problem)
        top = {key: settings.pop(key) for key in _TOP & settings.keys()}
        body = {"name": "g", "problem": _BODIES[name], "settings": settings, **top}
        client._transport.send("POST", "/v1/studies", body)
        script = Script(client.study("g"), problem)
        if name in ("table", "objectives"):
            plates(script)
        played(script)
        _shared(script)
        for call in ("info", "counts", "view"):
            script.do(call)
    return {"calls": _without_clock(script.lines)}


_TOP = {"random_state", "repeats", "direction", "objectives", "cost", "budget"}
_CLOCK = ("instance", "library", "created_at", "age", "at", "lease", "worker", "url", "where", "storage", "key")


def _without_clock(value):
    """Answers without what the clock, the version and the place say."""
    if isinstance(value, dict):
        return {key: _without_clock(one) for key, one in value.items() if key not in _CLOCK}
    if isinstance(value, list):
        return [_without_clock(one) for one in value]
    if not isinstance(value, str):
        return value
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "a time", re.sub(r"[^ '\"]*golden\.db", "golden.db", value))


def http():
    """Raw requests: right ones, wrong ones, repeated ones; status and answer of each, and the description of all."""
    from starlette.testclient import TestClient

    from alexp.service import create_app
    from tests.service.serving import FREE

    out = []
    with TemporaryDirectory() as folder, _stopped_clock(), _quiet():
        app = create_app(Path(folder) / "golden.db", limits=FREE)
        with TestClient(app, base_url="http://localhost") as client:
            for method, path, body in _requests():
                answer = client.request(method, path, json=body) if body is not None else client.request(method, path)
                is_json = "json" in answer.headers.get("content-type", "")
                text = _without_clock(said(answer.json() if is_json else answer.text))
                out.append([method, path, answer.status_code, text if len(str(text)) < 20_000 else digest(text)])
            schema = client.get("/openapi.json").json()
    return {"calls": out, "schema": schema | {"info": None}}


def _requests():
    made = {name: {"name": name, "problem": body, "random_state": 3} for name, body in _BODIES.items()}
    made["objectives"] |= {"objectives": {"yield": "maximize", "purity": "maximize"}, "cost": "price", "budget": 40.0}
    for name, body in made.items():
        yield "POST", "/v1/studies", body
        yield "GET", f"/v1/studies/{name}", None
    yield "POST", "/v1/studies", made["line"]
    yield "POST", "/v1/studies", made["line"] | {"load_if_exists": True}
    for wrong in ({}, {"name": ""}, {"name": "x", "problem": {"kind": "sphere"}}, made["line"] | {"noise": 1.0}):
        yield "POST", "/v1/studies", wrong
    yield "POST", "/v1/studies", made["line"] | {"name": "y", "settings": {"noise_sd": 1.0}}
    yield "POST", "/v1/studies", made["line"] | {"name": "y", "settings": {"noise_std": -1.0}}
    yield "POST", "/v1/tables/preview", {"csv": _BODIES["table"]["csv"], "ignore": ["price"]}
    yield "POST", "/v1/tables/preview", {"csv": "a,a\n1,2\n"}
    yield "GET", "/v1/studies", None
    yield "GET", "/v1/studies/nothing", None
    for name in ("table", "line"):
        at = f"/v1/studies/{name}"
        yield "POST", f"{at}/ask", {"n": 4, "key": "plate"}
        yield "POST", f"{at}/ask", {"n": 4, "key": "plate"}
        yield "POST", f"{at}/ask", {"n": 3, "key": "plate"}
        yield "POST", f"{at}/ask", {}
        yield "POST", f"{at}/ask", {"n": 2, "lease": 60, "worker": "robot"}
        for wrong in (
            {"n": 0}, {"n": "two"}, {"m": 2}, {"n": 2, "lease": -1}, {"available": []}, {"available": [99]},
            {"where": "x >"}, {"where": "celsius > 100"}, {"at_most": {"solvent": 1}, "n": 2}, {"together": ["color"]},
            {"context": [1.0]}, {"key": ""}, [], "text",
        ):  # fmt: skip
            yield "POST", f"{at}/ask", wrong
        yield "POST", f"{at}/tell", {"results": [{"trial": 0, "reward": 0.5}, {"trial": 1, "reward": [0.25, 0.5]}]}
        yield "POST", f"{at}/tell", {"results": [{"trial": 0, "reward": 0.5}]}
        yield "POST", f"{at}/tell", {"results": [{"trial": 0, "reward": 0.75}], "if_told": "same"}
        yield "POST", f"{at}/tell", {"results": [{"trial": 0, "reward": 0.75}], "if_told": "amend", "key": "late"}
        yield "POST", f"{at}/tell", {"results": [{"trial": 0, "reward": 0.75}], "if_told": "amend", "key": "late"}
        yield "POST", f"{at}/tell", {"results": [{"trial": 2, "reward": "failed", "note": "tar"}]}
        yield "POST", f"{at}/tell", {"results": [{"candidate": "r3", "reward": 0.1}]}
        yield "POST", f"{at}/tell", {"results": [{"trial": 3, "reward": 1e9}]}
        yield "POST", f"{at}/tell", {"results": [{"trial": 3, "reward": 0.3}, {"trial": 99, "reward": 1.0}]}
        for wrong in ({}, {"results": []}, {"results": [{"reward": 1.0}]}, {"results": [{"trial": 3, "reward": "x"}]}):
            yield "POST", f"{at}/tell", wrong
        yield "POST", f"{at}/amend", {"trial": 0, "reward": 0.5}
        yield "POST", f"{at}/amend", {"trial": 99, "reward": 0.5}
        yield "POST", f"{at}/retract", {"trial": 0, "key": "back"}
        yield "POST", f"{at}/retract", {"trial": 0}
        yield "POST", f"{at}/fail", {"trial": 3, "reason": "spilled"}
        yield "POST", f"{at}/fail", {"candidate": "r99"}
        yield "POST", f"{at}/abandon", {"trials": [4]}
        yield "POST", f"{at}/abandon", {"trials": [4, 99]}
        yield "POST", f"{at}/heartbeat", {"trials": [5], "lease": 60, "worker": "robot"}
        yield "POST", f"{at}/heartbeat", {"trials": [5], "lease": 60, "worker": "another"}
        yield "POST", f"{at}/take-over", {"n": 1, "worker": "another"}
        yield "POST", f"{at}/observe", {"observations": [{"index": 7, "reward": 0.2}]}
        yield "POST", f"{at}/observe", {"observations": [{"index": 99, "reward": 0.2}, {"reward": 1.0}]}
        yield "POST", f"{at}/candidates", {"csv": "id,solvent,celsius,price\nr40,water,65,2\n"}
        yield "POST", f"{at}/candidates", {"csv": "id,solvent,celsius,price\nr40,water,65,2\n"}
        yield "POST", f"{at}/learn", {"memory": {"old": "id,solvent,celsius,price,yield\nr1,water,60,1,3\n"}}
        yield "POST", f"{at}/arms", {"name": "huge"}
        for what in (
            "best", "pending", "probabilities", "stop-report", "plausible-models", "check-models", "pareto", "view",
            "figures", "trials?limit=3", "trials?since=-1", "progress", "export", "nothing",
        ):  # fmt: skip
            yield "GET", f"{at}/{what}", None
        yield "POST", f"{at}/policy", {"available": [0, 1]}
        yield "POST", f"{at}/best", {"available": [0, 1]}
        yield "POST", f"{at}/stop-report", {"epsilon": 0.5, "delta": 0.1}
        yield "POST", f"{at}/stop-report", {"delta": 2.0}
        yield "POST", f"{at}/results/preview", {"csv": "trial;reward\n3;0,7\n"}
        yield "POST", f"{at}/results/preview", {"csv": "trial;reward\n77;0,7\n"}
        yield "GET", f"{at}/plate", None
        yield "GET", f"{at}/plate?trials=5", None
    at = "/v1/studies/per arm"
    for k in range(4):
        yield "POST", f"{at}/ask", {"context": [0.5 * k, 1.0, -0.5]}
        yield "POST", f"{at}/tell", {"results": [{"trial": k, "reward": k / 4}]}
    yield "POST", f"{at}/ask", {}
    yield "POST", f"{at}/ask", {"context": [1.0]}
    yield "POST", f"{at}/ask", {"context": [1.0, 2.0, 3.0], "available": ["low", "high"], "key": "c"}
    yield "POST", f"{at}/ask", {"context": [1.0, 2.0, 4.0], "available": ["low", "high"], "key": "c"}
    yield "POST", f"{at}/policy", {"context": [1.0, 2.0, 3.0]}
    yield "POST", f"{at}/best", {"context": [1.0, 2.0, 3.0]}
    yield "POST", f"{at}/arms", {"name": "huge"}
    yield (
        "POST",
        f"{at}/observe",
        {"observations": [{"index": 1, "reward": 0.5, "context": [1.0, 0.0, 0.0], "propensity": 0.5}]},
    )
    at = "/v1/studies/objectives"
    yield "POST", f"{at}/ask", {"n": 2}
    yield "POST", f"{at}/tell", {"results": [{"trial": 0, "reward": {"yield": 50.0, "purity": 0.9}}]}
    yield "POST", f"{at}/tell", {"results": [{"trial": 1, "reward": 50.0}]}
    yield "GET", f"{at}/pareto", None
    yield "DELETE", "/v1/studies/line", None
    yield "DELETE", "/v1/studies/line", None


def shell():
    """Commands on a storage in an empty folder: what they print, their exit status, and the files they write."""
    from typer.testing import CliRunner

    from alexp.cli import app

    out, before = [], Path.cwd()
    with TemporaryDirectory() as folder, _stopped_clock(), _quiet(), patch.dict(os.environ, {"COLUMNS": "100"}):
        os.chdir(folder)
        try:
            _BODY = _BODIES["table"]["csv"]
            Path("reactions.csv").write_text(_BODY)
            Path("more.csv").write_text("id,solvent,celsius,price\nr40,water,65,2\n")
            for command in _commands():
                if callable(command):
                    command()
                    continue
                result = CliRunner().invoke(app, command)
                written = {one.name: one.read_text() for one in sorted(Path().glob("*.csv"))}
                text = result.output
                out.append([" ".join(command), result.exit_code, text, digest(written)])
        finally:
            os.chdir(before)
    return {"calls": _without_clock(out)}


def _commands():
    made = ["study", "create", "lab", "--candidates", "reactions.csv"]
    yield [*made, "--preview"]
    yield [*made, "--seed", "1", "--range", "0", "100"]
    yield made
    for wrong in (["--direction", "up"], ["--kind", "celsius=colour"], ["--setting", "noise_sd=1"], ["--ignore", "x"]):
        yield ["study", "create", "other", *made[3:], *wrong]
    yield ["study", "ask", "lab", "-n", "3", "--out", "plate.csv"]
    yield ["study", "ask", "lab", "-n", "3", "--out", "plate.csv"]
    yield ["study", "ask", "lab", "-n", "2", "--where", "celsius <= 80", "--at-most", "solvent=1"]
    yield ["study", "ask", "lab", "--where", "celsius <="]
    yield ["study", "ask", "nothing"]
    yield lambda: _fill(Path("plate.csv"), ["50", "20.5; 21", "failed"])
    yield ["study", "tell", "lab", "plate.csv"]
    yield ["study", "tell", "lab", "plate.csv"]
    yield lambda: _fill(Path("plate.csv"), ["51", "20.5", "failed"])
    yield ["study", "tell", "lab", "plate.csv"]
    yield ["study", "tell", "lab", "plate.csv", "--amend"]
    yield ["study", "tell", "lab", "3", "44"]
    yield ["study", "tell", "lab", "3", "45"]
    yield ["study", "tell", "lab", "4", "much"]
    yield ["study", "tell", "lab", "99", "45"]
    yield ["study", "amend", "lab", "3", "45"]
    yield ["study", "retract", "lab", "3"]
    yield ["study", "fail", "lab", "4", "--reason", "tar"]
    yield ["study", "fail", "lab", "4"]
    yield ["study", "add", "lab", "more.csv"]
    yield ["study", "add", "lab", "more.csv"]
    yield ["study", "ask", "lab", "--lease", "90s"]
    yield ["study", "heartbeat", "lab", "5", "--lease", "2h"]
    yield ["study", "take-over", "lab"]
    yield ["study", "abandon", "lab", "5"]
    yield ["study", "abandon", "lab", "5"]
    for what in ("status", "pending", "export", "pareto", "check"):
        yield ["study", what, "lab"]
    yield ["study", "list"]
    yield ["study", "delete", "lab", "--yes"]
    for what in (
        "create", "ask", "tell", "fail", "amend", "retract", "observe", "add", "learn", "abandon", "status", "pareto",
        "heartbeat", "take-over", "pending", "export", "report", "list", "delete", "check", "salvage",
    ):  # fmt: skip
        yield ["study", what, "--help"]


def _fill(plate, results):
    """Write results into the last column of a plate."""
    head, *lines = plate.read_text().splitlines()
    filled = [line.rsplit(",", 1)[0] + f",{result}" for line, result in zip(lines, results, strict=True)]
    plate.write_text("\n".join([head, *filled]) + "\n")


def everything():
    """All recordings by name."""
    out = {f"memory/{algorithm}/{name}": memory(algorithm, name) for algorithm, name in cases()}
    out |= {f"study/{algorithm}/{name}": study(algorithm, name) for algorithm, name in studies()}
    out |= {f"remote/{name}": remote(name) for name in REMOTE}
    return out | {"http": http(), "shell": shell()}


def studies():
    """(algorithm, problem) of every recorded study: the mixture on all problems, others on three."""
    few = ("maps", "table", "per arm")
    return [(name, problem) for name in STUDIES for problem in (PROBLEMS if name == "evidence-mixture" else few)]
