"""The rules of the house, read off the source: who may import whom, how large things may grow, what must exist.

The table of rooms in docs/architecture.md is the law. Imports inside functions count like those at the top of a file;
imports under `if TYPE_CHECKING:` count for the order of the rooms, because a type one names is a thing one knows, but
not for cycles, because they are never executed. Exceptions are listed here, each with its reason, and an exception that
is no longer needed fails the test.
"""

import ast
import re
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import alexp
from tests.service.serving import client, create, serving

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
FILES = sorted((SOURCE / "alexp").rglob("*.py"))
RESEARCH = sorted((ROOT / "experiments" / "alexp_experiments").rglob("*.py"))

# Data flows downwards: a room imports itself, the rooms before it, and `common`, which imports no room.
ROOMS = (
    "problem",
    "table",
    "datasets",
    "estimation",
    "decision",
    "gpu",  # reached through `alexp.common.backends` only
    "parts",  # likewise, but for the names that users call
    "rules",
    "algorithms",
    "extend",
    "rivals",
    "theory",
    "simulation",
    "ope",
    "study",
    "plot",
    "integrations",
    "client",
    "service",
    "cli",
)
RUNNING = {"problem", "table", "estimation", "decision", "algorithms"}  # what a run needs; `theory` is not among it
# Files beside the rooms: the package itself, the command line and the conformance suite use whatever they show.
FACES = {"alexp", "alexp.cli", "alexp.__main__", "alexp.kernels"}
TESTING = "alexp.testing"

ALIASES = ("AnyArray", "BoolArray", "FloatArray", "NarrowArray", "RealArray", "IntArray")

# (module, imported module) -> why it is allowed for now.
AGAINST_THE_ORDER: dict[tuple[str, str], str] = {}
INTO_PRIVATE: dict[tuple[str, str], str] = {}
CYCLES: set[frozenset[str]] = set()


class Import(NamedTuple):
    """One import of one module by another."""

    by: str
    of: str
    when: str  # "load", "call" or "types"


def name_of(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in FILES}


def room_of(module):
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def package_of(module):
    """The folder a module lives in; a package lives in itself."""
    return module if MODULES[module].stem == "__init__" else module.rpartition(".")[0]


def is_for_types(node):
    test = node.test
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def targets(node, by):
    """Modules of this library that a statement imports."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name
        return
    base = node.module or ""
    if node.level:
        folder = package_of(by).split(".")
        kept = folder[: len(folder) - (node.level - 1)]
        base = ".".join([*kept, *([node.module] if node.module else [])])
    for alias in node.names:
        inner = f"{base}.{alias.name}"
        yield inner if inner in MODULES else base


def imports_in(tree, by):
    def visit(node, when):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for of in targets(node, by):
                if of.split(".")[0] == "alexp":
                    yield Import(by, of, when)
            return
        if isinstance(node, ast.If) and is_for_types(node):
            for child in node.body:
                yield from visit(child, "types")
            for child in node.orelse:
                yield from visit(child, when)
            return
        inner = "call" if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) else when
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inner)

    yield from visit(tree, "load")


@cache
def all_imports():
    found = []
    for module, path in MODULES.items():
        found += imports_in(ast.parse(path.read_text(encoding="utf-8")), module)
    return tuple(dict.fromkeys(found))


def check_exceptions(found, allowed):
    """Nothing is broken but what is listed, and nothing is listed that is not broken."""
    broken = set(found)
    assert sorted(broken - set(allowed), key=str) == []
    assert sorted(set(allowed) - broken, key=str) == [], "these exceptions are no longer needed"


def against_the_order(found):
    rank = {room: number for number, room in enumerate(ROOMS)}
    for by, of, _ in found:
        if by in FACES:
            continue
        mine, other = room_of(by), room_of(of)
        if by.startswith(TESTING):  # the conformance suite simulates: it stands beside `study`, above `simulation`
            broken = of in FACES or rank.get(other, 0) > rank["simulation"]
        elif mine == "common":
            broken = other != "common"
        else:
            broken = of in FACES or of.startswith(TESTING) or (other != "common" and rank[other] > rank[mine])
        if broken:
            yield by, of


def test_every_folder_is_a_room():
    folders = {room_of(module) for module, path in MODULES.items() if path.parent != SOURCE / "alexp"}
    assert folders <= {*ROOMS, "common", "testing"}


def test_rooms_import_only_what_lies_before_them():
    check_exceptions(against_the_order(all_imports()), AGAINST_THE_ORDER)


def test_theory_is_not_needed_to_run():
    assert [i for i in all_imports() if room_of(i.by) in RUNNING and room_of(i.of) == "theory"] == []


def test_the_library_does_not_know_its_experiments():
    assert [path for path in FILES if "alexp_experiments" in path.read_text(encoding="utf-8")] == []


def test_the_gpu_is_reached_through_its_registry():
    assert [i for i in all_imports() if room_of(i.of) == "gpu" != room_of(i.by)] == []


def test_rivals_come_in_by_the_door():
    allowed = ("alexp.extend", "alexp.rivals")
    found = {i.of for i in all_imports() if room_of(i.by) == "rivals" and not i.of.startswith(allowed)}
    assert found == set()


def test_experiments_import_no_private_module():
    found = [
        (path.name, of)
        for path in RESEARCH
        for _, of, _ in imports_in(ast.parse(path.read_text(encoding="utf-8")), "alexp.cli")
        if any(part.startswith("_") and not part.startswith("__") for part in of.split(".")[1:])
    ]
    assert found == []


def into_private(found):
    for by, of, _ in found:
        parts = of.split(".")
        hidden = [k for k, part in enumerate(parts) if part.startswith("_") and not part.startswith("__")]
        if not hidden:
            continue
        owner = ".".join(parts[: hidden[0]])
        if package_of(by) != owner and not package_of(by).startswith(owner + "."):
            yield by, of


def test_private_modules_stay_in_their_folder():
    check_exceptions(into_private(all_imports()), INTO_PRIVATE)


def cycles(edges):
    """Strongly connected components with more than one module (Tarjan 1972)."""
    number, low, stack, out = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for neighbour in edges.get(node, ()):
            if neighbour not in number:
                visit(neighbour)
                low[node] = min(low[node], low[neighbour])
            elif neighbour in stack:
                low[node] = min(low[node], number[neighbour])
        if low[node] == number[node]:
            component = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(component) > 1:
                out.append(frozenset(component))

    for node in edges:
        if node not in number:
            visit(node)
    return out


def test_no_cycles_when_loading():
    edges = {module: [] for module in MODULES}
    for by, of, when in all_imports():
        if when == "load" and of in MODULES and of != by:
            edges[by].append(of)
    check_exceptions(cycles(edges), CYCLES)


def test_array_types_have_one_home():
    """Nobody else defines an alias of theirs, or an alias of NDArray under another name."""
    elsewhere = []
    for module, path in MODULES.items():
        if module == "alexp.common.arrays":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            values = (ast.Assign, ast.AnnAssign)
            if not isinstance(node, values) or node.value is None:
                continue
            names = [
                t.id for t in (node.targets if isinstance(node, ast.Assign) else [node.target]) if hasattr(t, "id")
            ]
            is_alias = isinstance(node.value, ast.Subscript) and ast.unparse(node.value.value).endswith("NDArray")
            if is_alias or set(names) & set(ALIASES):
                elsewhere.append((module, names))
    assert elsewhere == []


def test_a_class_name_means_one_thing():
    names = [
        node.name
        for path in [*FILES, *RESEARCH]
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    ]
    assert sorted({name for name in names if names.count(name) > 1}) == ["UCB"]  # an agent and a rule, fixed names


def test_signatures_name_their_keywords():
    open_ended = re.compile(r"\*\*\w+: Any")
    assert [path.name for path in FILES if open_ended.search(path.read_text(encoding="utf-8"))] == []


def test_public_names_exist():
    public = [name for name in dir(alexp) if not name.startswith("_")]
    assert [name for name in public if not hasattr(alexp, name)] == []


@pytest.mark.parametrize(
    ("text", "by", "broken"),
    [
        ("from alexp.theory import regret", "alexp.decision.pool", True),
        ("def f():\n    from alexp.algorithms import base", "alexp.problem.groups", True),
        ("if TYPE_CHECKING:\n    import alexp.study", "alexp.estimation.estimate", True),
        ("import alexp", "alexp.decision.pool", True),
        ("from alexp import testing", "alexp.algorithms.base", True),
        ("from . import pool", "alexp.decision.agents", False),
        ("from alexp.common.arrays import FloatArray", "alexp.problem.groups", False),
        ("from alexp.problem import models", "alexp.common.codec", True),
        ("import numpy", "alexp.problem.groups", False),
    ],
)
def test_the_order_would_be_noticed(text, by, broken):
    assert bool(list(against_the_order(imports_in(ast.parse(text), by)))) == broken


@pytest.mark.parametrize(
    ("text", "by", "broken"),
    [
        ("from alexp.estimation.ridge import _kernels", "alexp.decision.pool", True),
        ("from alexp.estimation.ridge._kernels import absorb", "alexp.estimation.mixture.mixture", True),
        ("from alexp.estimation.ridge import _kernels", "alexp.estimation.ridge.bank", False),
        ("from ._restricted import split", "alexp.theory.eigenvalues", False),
        ("from alexp.common.codec import _TAG", "alexp.decision.designs", False),
    ],
)
def test_reaching_into_private_modules_would_be_noticed(text, by, broken):
    assert bool(list(into_private(imports_in(ast.parse(text), by)))) == broken


def test_cycles_would_be_noticed():
    assert cycles({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]}) == [frozenset("abc")]
    assert cycles({"a": ["b"], "b": ["c"], "c": []}) == []


def test_import_loads_what_every_run_needs():
    code = "import sys, alexp; print(sum(name.partition('.')[0] == 'alexp' for name in sys.modules), *dir(alexp))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded, *names = run.stdout.split()
    assert 50 < int(loaded) <= 135
    assert set(alexp.rivals.__all__) < set(names)


class Way:
    """Files of the functions of the library that are called, one entry per call, in all threads begun meanwhile."""

    def __init__(self):
        self.calls = []

    def __enter__(self):
        threading.setprofile(self.note)
        sys.setprofile(self.note)
        return self.calls

    def __exit__(self, *_):
        sys.setprofile(None)
        threading.setprofile(None)

    def note(self, frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(str(Path(alexp.__file__).parent)):
            self.calls.append(frame.f_code.co_filename)


def test_a_warm_plate_takes_a_short_way():
    rng = np.random.default_rng(0)
    maps = {"a": rng.normal(size=(200, 5)), "b": rng.normal(size=(200, 8))}
    rewards = maps["a"] @ rng.normal(size=5)
    models, domain = alexp.ModelClass.from_matrices(maps), alexp.FiniteSet(range(200))
    opt = alexp.EvidenceMixture(models, domain, repeats=False, random_state=0)
    for _ in range(3):
        for trial in opt.ask(8):
            opt.tell(trial, float(rewards[trial.index]))
    with Way() as calls:
        opt.ask(8)
    assert 200 < len(calls) <= 540
    assert len(set(calls)) <= 13


@pytest.mark.parametrize(
    ("problem", "most"),
    [
        ({"kind": "interval", "resolution": 101, "models": {"family": "legendre", "degree": 3, "size": 2}}, 31),
        ({"kind": "table", "columns": {"x": list(range(60))}, "models": {"line": ["x"]}, "kernels": "linear"}, 34),
    ],
    ids=["interval", "table"],
)
def test_a_warm_ask_over_http_takes_a_short_way(tmp_path, problem, most):
    """A table is asked for its best candidate: the expected improvement looks at the rewards once more."""
    storage = f"sqlite:///{tmp_path / 's.db'}"
    with Way() as calls, serving(storage) as (address, _), client(address) as http:
        study = create(http, problem=problem)
        for _ in range(12):
            (trial,) = study.post("ask")["trials"]
            study.post("tell", results=[{"trial": trial["id"], "reward": 0.1 * trial["index"]}])
        calls.clear()
        study.post("ask")
        way = {str(Path(file).relative_to(Path(alexp.__file__).parent)) for file in calls}
    assert {"service/security.py", "study/storage.py", "algorithms/base.py", "rules.py"} < way
    assert len(way) <= most, sorted(way)
