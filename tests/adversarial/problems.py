"""Small problems of every kind, and what may be handed to an algorithm: right, wrong and on the edge."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import alexp
from alexp.estimation.lasso.post_lasso import PostLasso
from alexp.testing import Kind, takes


class Case(NamedTuple):
    """A problem, the arguments of an algorithm on it, and the size of its rewards."""

    models: alexp.ModelClass
    domain: Any
    arguments: dict[str, Any]
    unit: float


def draw_case(rng: np.random.Generator, kind: Kind) -> Case:
    """A problem with at most a dozen candidates, in ordinary or extreme units."""
    extreme = rng.random() < 0.4
    unit = 10.0 ** rng.uniform(-100.0, 99.0) if extreme and rng.random() < 0.5 else float(rng.choice([1.0, 50.0]))
    models, domain = _table(rng, extreme) if rng.random() < 0.7 else _functions(rng)
    return Case(models, domain, _arguments(rng, kind, unit), unit)


def _table(rng: np.random.Generator, extreme: bool) -> tuple[alexp.ModelClass, alexp.FiniteSet]:
    n, m = int(rng.choice([1, 2, 5, 9])), int(rng.choice([1, 2, 4]))
    blocks = {f"m{j}": rng.normal(size=(n, int(rng.integers(1, 4)))) for j in range(m)}
    for block in blocks.values():
        if rng.random() < 0.15:
            block[:, 0] = 1.0
        if rng.random() < 0.15:
            block[:, -1] = -2.0 * block[:, 0]
        if rng.random() < 0.05:
            block[:] = 0.0
        if rng.random() < 0.1 and n > 1:
            block[1] = block[0]
        if extreme:
            block *= 10.0 ** rng.uniform(-10.0, 10.0, block.shape[1])
    if rng.random() < 0.1:
        blocks["m0"] = next(iter(blocks.values())).copy()
    models = alexp.ModelClass.from_matrices(blocks, intercept=bool(rng.random() < 0.6))
    domain = alexp.FiniteSet([f"c{i}" for i in range(n)] if rng.random() < 0.5 else list(range(n)))
    all_zero = any(not block.any() for block in blocks.values())
    return (models.normalized(domain) if rng.random() < 0.2 and not all_zero else models), domain


def _functions(rng: np.random.Generator) -> tuple[alexp.ModelClass, Any]:
    which = rng.integers(4)
    intercept = bool(rng.random() < 0.3)
    if which == 0:
        return alexp.ModelClass.legendre(degree=3, size=2, intercept=intercept), alexp.Interval(resolution=9)
    if which == 1:
        return alexp.ModelClass(alexp.Legendre(2), [[0, 1], [1, 2], [2]]), alexp.Interval(resolution=1)
    if which == 2:
        box = alexp.Box([0.0, -1.0], [1.0, 1.0], resolution=8)
        return alexp.ModelClass(alexp.Polynomial(dim=2, degree=2), [[0, 1], [2, 3, 4]], intercept=intercept), box
    return alexp.ModelClass.fourier(2, 2), alexp.Interval(0.0, 1.0, resolution=6)


def _arguments(rng: np.random.Generator, kind: Kind, unit: float) -> dict[str, Any]:
    known, out = takes(kind), dict(kind.example)
    out["random_state"] = int(rng.integers(1000))
    if rng.random() < 0.3:
        out["direction"] = "minimize"
    if rng.random() < 0.25:
        out["repeats"] = False
    right = unit if rng.random() < 0.8 else 1.0  # or in the wrong units
    if rng.random() < 0.7:
        out["noise_std"] = max(0.1 * right, 1e-100)
    if rng.random() < 0.7:
        out["reward_bound"] = right
    if rng.random() < 0.3:
        out["norm_bound"] = right
    for name, choices in _SETTINGS.items():
        if name in known and rng.random() < 0.3:
            out[name] = choices[rng.integers(len(choices))]
    if kind.__name__ in _PLAIN_LASSO and "oracle" in out:
        out["oracle"] = alexp.GroupLasso(regime="rows")
    if "horizon" in known and out.get("variant") == "released-code":
        out["horizon"] = 20
    if "model" in kind.settings:
        out["model"] = None if rng.random() < 0.5 else 0
    return out


_PLAIN_LASSO = {"SALasso", "THLasso", "DRLasso", "LassoBandit", "ModCB", "PopArt", "ESTC", "SLUCB"}
_SETTINGS: dict[str, list[Any]] = {
    "agents": [alexp.Greedy(), alexp.ThompsonSampling(), alexp.EpsilonGreedy()],
    "agent": [alexp.Greedy(), alexp.ThompsonSampling()],
    "oracle": [PostLasso(), alexp.Evidence(), alexp.GroupLasso(regime="rows")],
    "exploration": [alexp.DOptimal(tol=0.1)],
    "returns": ["retrospective"],
    "clip_returns": [True],
    "data_mode": ["own"],
    "arms": ["all"],
    "rule": ["ucb", "thompson"],
    "gamma": [0.5],
}

WRONG_REWARDS: list[Any] = [
    float("nan"), float("inf"), -float("inf"), 1e101, -1e300, 10**400, -(10**101), "1.5", "nan", None, True, 1j, [],
    np.array([[1.0, 2.0]]), np.float64("nan"), np.inf, b"1", {}, np.array("x"), np.datetime64("2020-01-01"), object(),
]  # fmt: skip
SHARED = ("noise_std", "reward_bound", "norm_bound", "repeats", "random_state")
WRONG_SETTINGS: list[Any] = [
    0.0, -1.0, float("nan"), float("inf"), 1e-200, 1e200, 1e-99, 1e99, 10**400, "x", "own", None, True, (), (1.0,),
    [0.1, 0.1], (1e-300, 1e300), (5.0, 1.0), 0, 1, -3, 2.5, 1j, np.nan, {},
]  # fmt: skip
WRONG_TRIALS: list[Any] = [
    -1,
    10**6,
    10**30,
    1.0,
    None,
    True,
    "x",
    "#",
    "-1",
    "1.5",
    b"0",
    [0],
    np.float64(0),
    float("nan"),
    {},
]
WRONG_NUMBERS: list[Any] = [0, -1, 2.5, "2", True, 1e9, np.float64(1.0), [1]]
WRONG_CHOICES: list[Any] = [
    [],
    [10**6],
    [-1],
    [0.5],
    "c0",
    ["nobody"],
    [None],
    3,
    [True, False] * 40,
    np.zeros((2, 2)),
    {},
]


def draw_reward(rng: np.random.Generator, unit: float) -> Any:
    """A reward of any type and, once in a while, of any size."""
    value = unit * float(rng.normal())
    chance = rng.random()
    if chance < 0.08:
        value = float(rng.choice([-1.0, 1.0])) * 10.0 ** rng.uniform(-100.0, 100.0)
    elif chance < 0.14:
        value = float(rng.choice([0.0, -0.0, 1e12, -1e12, 1e100, -1e100, 5e-324, 1e-100]))
    elif chance < 0.2:
        value = 1e9 * unit
    value = float(np.clip(value, -1e100, 1e100))
    forms = [float, float, float, np.float64, np.array]
    if abs(value) < 1e6:
        forms += [lambda v: int(v), lambda v: np.int64(v), np.float32]
    return forms[rng.integers(len(forms))](value)
