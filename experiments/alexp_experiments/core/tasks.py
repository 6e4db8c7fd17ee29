"""One run of one algorithm as data, what it leaves behind, and which code made it.

A `Task` is plain data: a scenario, an algorithm, its settings and a seed. Everything random in it follows from the
seed through `SeedSequence.spawn`, so that a task gives the same record on any machine, in any process, in any order.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import import_module
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from alexp.algorithms import Algorithm
from alexp.algorithms.assumptions import quietly
from alexp.algorithms.components import component_from_dict
from alexp.common.arrays import FloatArray, NarrowArray
from alexp.common.codec import State
from alexp.common.extensions import load_installed
from alexp.common.validation import count
from alexp.simulation import ModelEnvironment
from alexp_experiments.core.scenarios import Scenario, Settings

_OWN = frozenset({"alexp", "alexp_experiments"})
# It imports every kind of component there is. A task names those that it uses, and an algorithm imports its own.
_KNOWS_ALL = "alexp.algorithms.components"
_DOOR = "alexp.extend"  # it imports all that extensions may need, each of which needs little of it


@lru_cache(maxsize=64)
def code_fingerprint(*modules: str) -> str:
    """Hash of the sources of some modules and of all that they import from the library, from here or their own package.

    Results are kept under it, so that a change to the code that made them makes them again, and a change
    elsewhere does not. Imports for type checkers alone make no results.
    """
    seen = sources(*modules)
    digest = hashlib.sha256()
    for name in sorted(seen):
        digest.update(name.encode() + b"\0" + seen[name] + b"\0")
    return digest.hexdigest()[:16]


def sources(*modules: str) -> dict[str, bytes]:
    """Sources of some modules and of every module behind them, by name."""
    packages = frozenset({*_OWN, *(name.partition(".")[0] for name in modules)})
    pending, seen = list(modules), dict[str, bytes]()
    while pending:
        name = pending.pop()
        if name not in seen:
            seen[name], imported = read_module(name, packages)
            pending += imported if name != _KNOWS_ALL else []
    return seen


@lru_cache(maxsize=1024)
def read_module(name: str, packages: frozenset[str] = _OWN) -> tuple[bytes, list[str]]:
    """Source of a module, and the modules of some packages that it imports; nothing for what is not Python."""
    path, package = _find(name)
    if path is None:
        return b"", []
    source = path.read_bytes()
    return source, list(_imported(ast.parse(source), package, packages))


def _find(name: str) -> tuple[Path | None, str]:
    """Source file of a module, and the package that its relative imports start from."""
    if name in ("__main__", "__mp_main__"):  # a script, which has no specification to be found by
        origin, package = getattr(sys.modules[name], "__file__", None), ""
    else:
        spec = find_spec(name)
        origin, package = (None, "") if spec is None else (spec.origin, spec.parent or "")
    return (Path(origin) if origin is not None and origin.endswith(".py") else None), package


def _imported(tree: ast.Module, package: str, packages: frozenset[str]) -> Iterator[str]:
    """Modules of some packages imported anywhere in a source; `from a import b` may mean the module a.b."""
    for node in _run(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] in packages)
        elif isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), package) if node.level else node.module or ""
            if module == _DOOR:
                yield from (_behind_the_door()[alias.name] for alias in node.names)
            elif module.partition(".")[0] in packages:
                yield module
                yield from (f"{module}.{alias.name}" for alias in node.names if _is_module(module, alias.name))


@lru_cache(maxsize=1)
def _behind_the_door() -> dict[str, str]:
    """Modules that the names of `alexp.extend` come from."""
    path, _ = _find(_DOOR)
    assert path is not None
    imports = (node for node in ast.parse(path.read_bytes()).body if isinstance(node, ast.ImportFrom))
    return {alias.name: node.module or "" for node in imports for alias in node.names}


def _run(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those that only a type checker reads."""
    for node in ast.iter_child_nodes(tree):
        unread = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        if not unread:
            yield node
            yield from _run(node)


def _is_module(package: str, name: str) -> bool:
    with contextlib.suppress(ModuleNotFoundError, ValueError):
        return find_spec(f"{package}.{name}") is not None
    return False


RECORD_FORMAT = 1  # raise it when records of the same run change
_CODE_OF_EVERY_RUN = ("alexp.simulation",)
SNAPSHOT_ROUND = 20  # q_t of this round is kept whole, as in the paper's figure on learning dynamics

# Names for algorithms with settings that make them a baseline of the paper.
ALIASES: dict[str, tuple[str, Settings]] = {
    "oracle": ("linucb", {"model": "$true_model"}),
    "naive": ("linucb", {}),
    "corral": ("corral", {"horizon": "$steps", "loss_range": "$reward_range"}),
    "corral-own": ("corral", {"horizon": "$steps", "loss_range": "$reward_range", "data_mode": "own"}),
    "corral-released": ("corral", {"horizon": "$steps", "variant": "released-code"}),
    "alexp-released": ("alexp", {"horizon": "$steps", "variant": "released-code"}),
    "exp4-ix": ("exp4-ix", {"loss_range": "$reward_range"}),
}


def _component_modules(settings: Settings) -> list[str]:
    """Where the components that settings name are defined."""
    made = [component_from_dict(value, name, whole=False) for name, value in settings.items()]
    flat = [one for item in made for one in (item if isinstance(item, list) else [item])]
    return sorted({type(one).__module__ for one in flat} - {"builtins"})


def registered() -> Mapping[str, type[Algorithm]]:
    """Algorithms by name. Nothing else in `experiments` looks at the registry."""
    load_installed()
    return Algorithm.registry


def algorithm_names() -> list[str]:
    """Every name a task may use: those of the registry, and the aliases."""
    return sorted({*registered(), *ALIASES} - {"linucb"})


def algorithm_class(kind: str) -> type[Algorithm]:
    """The class behind a name of the registry, or behind "package.module:Class", which need not be registered."""
    module, _, name = kind.partition(":")
    if not name:
        return registered()[kind]
    try:
        found = getattr(import_module(module), name, None)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):  # a package that the module itself needs
            raise
        file = f"{module.replace('.', '/')}.py"
        raise ValueError(
            f"there is no module {module!r} for the algorithm {kind!r}: run this in the folder of {file}, or install it"
        ) from None
    if not (isinstance(found, type) and issubclass(found, Algorithm)):
        raise ValueError(f"{kind!r} names no algorithm: {module} must have a subclass of alexp.Algorithm called {name}")
    return found


def resolve(name: str, settings: Settings | None = None) -> tuple[str, Settings]:
    """Registry name and settings of an algorithm or alias, or an error that lists the names."""
    kind, defaults = ALIASES.get(name, (name, {}))
    if ":" not in kind and kind not in registered():
        raise ValueError(f"there is no algorithm {name!r}; known are {', '.join(algorithm_names())}")
    return kind, dict(defaults) | dict(settings or {})


class Description(TypedDict):
    """What a file of results says about itself: a task without its seed."""

    scenario: Settings
    algorithm: str
    settings: Settings
    shared_seed: bool


@dataclass(frozen=True)
class Task:
    """A scenario, an algorithm, its settings and a seed.

    `algorithm` is a name of the registry, an alias, or "package.module:Class". `settings` are JSON data for its
    constructor; objects are written as {"kind": "Schedules", "gamma": 0.01}, and three placeholders stand for what only
    the environment knows: "$true_model", "$steps" and "$reward_range".

    Environment and algorithm get seeds of their own, spawned from `seed` (see `run_seeds`). With `shared_seed` both
    get `seed` itself, as in ``SyntheticEnvironment(..., random_state=7)`` and ``ALExp(..., random_state=7)``: that is
    how the runs behind the default schedules were made (docs/tuning.md, docs/headline.md). Their random streams have
    different purposes and stay independent.

    >>> Task(Scenario(steps=5), "oracle", {}, 0).kind
    'linucb'
    """

    scenario: Scenario
    algorithm: str
    settings: Settings = field(default_factory=dict)
    seed: int = 0
    shared_seed: bool = False

    def __post_init__(self) -> None:
        count("seed", self.seed, 0)
        resolve(self.algorithm)

    @property
    def kind(self) -> str:
        """Name in the registry of algorithms."""
        return resolve(self.algorithm)[0]

    @cached_property
    def configuration(self) -> str:
        """Content hash of everything but the seed: scenario, algorithm, settings and the code that runs it."""
        kind, settings = resolve(self.algorithm, self.settings)
        made_by = (algorithm_class(kind).__module__, type(self.scenario).__module__, *_component_modules(settings))
        code = code_fingerprint(*made_by, *_CODE_OF_EVERY_RUN)
        content = [RECORD_FORMAT, self.scenario.to_dict(), kind, settings, self.shared_seed, code]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]

    @property
    def description(self) -> Description:
        """Everything but the seed, as plain data."""
        return {
            "scenario": self.scenario.to_dict(),
            "algorithm": self.algorithm,
            "settings": dict(self.settings),
            "shared_seed": self.shared_seed,
        }

    @property
    def seeds(self) -> tuple[int, int]:
        """Seeds of the environment and of the algorithm."""
        return (self.seed, self.seed) if self.shared_seed else run_seeds(self.seed)

    @property
    def key(self) -> str:
        """Content hash of the task."""
        return f"{self.configuration}-{self.seed}"

    def run(self) -> Record:
        """Play it."""
        return _played(self)


@dataclass(frozen=True)
class Record:
    """What a run leaves behind, n rounds and M models.

    Attributes
    ----------
    regret : (n,) cumulative regret after each round.
    visited : (n,) number of distinct models that had proposed an action by then; zeros if none ever did.
    q_true : (n,) probability of the true model in force at each round; empty for algorithms without.
    snapshot : (M,) q_t of round 20 (of the last round, if there are fewer); empty for algorithms without.
    true_model : its number.
    recommended : model behind the final recommendation, -1 if none.
    final_gap : regret of the recommended action.
    seconds : time spent in ask and tell.
    chosen : (n,) the candidate of each round; empty if it was not recorded.
    """

    regret: FloatArray
    visited: NDArray[np.int32]
    q_true: NarrowArray
    snapshot: NarrowArray
    true_model: int
    recommended: int
    final_gap: float
    seconds: float
    chosen: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))


def run_seeds(seed: int) -> tuple[int, int]:
    """Seeds of the environment and of the algorithm, from two spawned children of SeedSequence(seed).

    All algorithms meet the same environment, with the same noise, under the same seed.
    """
    children = np.random.SeedSequence(seed).spawn(2)
    environment, algorithm = (int.from_bytes(child.generate_state(4).tobytes(), "little") for child in children)
    return environment, algorithm


def build(task: Task) -> tuple[Algorithm, ModelEnvironment]:
    """The algorithm of a task, and its environment."""
    environment_seed, algorithm_seed = task.seeds
    environment = task.scenario.environment(environment_seed)
    kind, settings = resolve(task.algorithm, task.settings)
    known = {
        "$true_model": environment.true_model,
        "$steps": task.scenario.steps,
        "$reward_range": list(task.scenario.reward_range),
    }
    filled = {
        name: known[value]
        if isinstance(value, str) and value in known
        else component_from_dict(value, name, whole=False)
        for name, value in settings.items()
    }
    stated_noise = task.scenario.noise_std * task.scenario.stated_noise
    arguments: State = {"noise_std": stated_noise, "random_state": algorithm_seed} | filled
    return algorithm_class(kind)(environment.models, environment.domain, **arguments), environment


def run_task(task: Task) -> Record:
    """Play one task. Same task, same record, apart from `seconds`."""
    return task.run()


def _played(task: Task) -> Record:
    algorithm, environment = build(task)
    with quietly():  # methods are compared as they are, whatever they assume
        run = task.scenario.play(algorithm, environment)
    models = [trial.model for trial in run.trials]
    first = {model: t for t, model in reversed(list(enumerate(models))) if model is not None}
    visited = np.cumsum(np.bincount(np.array(list(first.values()), np.int64), minlength=len(models))).astype(np.int32)
    q = run.probabilities
    best = algorithm.best()
    return Record(
        regret=run.regret,
        visited=visited,
        q_true=np.empty(0, np.float32) if q is None else q[:, environment.true_model].astype(np.float32),
        snapshot=np.empty(0, np.float32) if q is None else q[min(SNAPSHOT_ROUND, len(q)) - 1].astype(np.float32),
        true_model=environment.true_model,
        recommended=-1 if best.model is None else best.model,
        final_gap=float(environment.best_value - environment.rewards[best.index]),
        seconds=run.seconds,
        chosen=np.array([trial.index for trial in run.trials], np.int32),
    )
