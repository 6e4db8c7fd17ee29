"""Entrants of the rows: constants, instances, numbers of seeds; and all runs behind the measured columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self, TypedDict, Unpack

from alexp.common.validation import count
from alexp_experiments.core.scenarios import Settings
from alexp_experiments.core.tasks import Record, Task, registered
from alexp_experiments.sparse.tables.instances import SparseScenario
from alexp_experiments.sparse.tables.known import master_cells, released_cells
from alexp_experiments.sparse.tables.tasks import SparseCell

if TYPE_CHECKING:
    import pandas as pd


GRID = (250, 500, 1000, 2000, 4000)  # n, over which slopes are measured
BEYOND = (8000, 16000, 32000)  # further, for rows that explore for thousands of rounds by their theory
WIDE = (50, 100, 200, 400, 800, 1600)  # p of contexts, over which growth is measured
SOME = (50, 100, 200, 400)  # the same for rows whose rounds take p^2 or more
VECTORS = (30, 60, 120, 240)  # p of vectors
AT = {"contexts": 100, "vectors": 30, "ball": 100}  # p at which slopes are measured
SIZES = {"contexts": (5, 0.5), "vectors": (2, 0.1), "ball": (3, 0.1)}  # columns that matter, and the noise


@dataclass(frozen=True)
class RowPlayer:
    """A row of the measured tables.

    Attributes
    ----------
    row : the printed row or class it stands for; "" for yardsticks.
    family, layout : where it plays and what it is given as models, see `SparseScenario`.
    told_horizon : whether it must be told n, so that every n is a run of its own.
    widths : p over which growth is measured, after `width_rounds` rounds.
    further : n beyond the grid that are played as well.
    seeds, width_seeds : runs per cell.
    note : what a reader should know of it.
    """

    row: str
    family: str
    layout: str
    algorithm: str
    settings: Settings = field(default_factory=dict)
    width_settings: Settings = field(default_factory=dict)
    told_horizon: bool = False
    widths: Sequence[int] = WIDE
    width_rounds: int = 500
    further: Sequence[int] = ()
    seeds: int = 20
    width_seeds: int = 10
    note: str = ""

    @property
    def plays(self) -> bool:
        """Whether its algorithm is there."""
        return self.algorithm in registered()

    def scenario(self, columns: int, steps: int) -> SparseScenario:
        """Where it plays with so many columns and rounds."""
        size, noise = SIZES[self.family]
        return SparseScenario(
            family=self.family, layout=self.layout, n_columns=columns, steps=steps, size=size, noise_std=noise
        )


_LI: Settings = {"n_explore": "li2022", "sparsity": "$size", "lam": 0.5}
_CHEAP_DESIGN: Settings = {"exploration": {"kind": "HOptimal"}}
_RELEASED: Settings = {"reward_bound": 1.0}
_HORIZON: Settings = {"horizon": "$steps"}


class _More(TypedDict, total=False):
    settings: Settings
    width_settings: Settings
    told_horizon: bool
    widths: Sequence[int]
    width_rounds: int
    further: Sequence[int]
    seeds: int
    width_seeds: int
    note: str


def _contexts(row: str, algorithm: str, layout: str = "groups", **more: Unpack[_More]) -> RowPlayer:
    return RowPlayer(row, "contexts", layout, algorithm, **more)


def _vectors(row: str, algorithm: str, layout: str = "groups", **more: Unpack[_More]) -> RowPlayer:
    shared: _More = {"widths": VECTORS, "width_rounds": 1000}
    return RowPlayer(row, "vectors", layout, algorithm, **(shared | more))


def _master(algorithm: str, settings: Settings, told_horizon: bool = False, widths: Sequence[int] = WIDE) -> RowPlayer:
    return RowPlayer("T1.black-box", "contexts", "groups", algorithm, settings, {}, told_horizon, widths, seeds=10)


ENTRANTS: Mapping[str, RowPlayer] = {
    "O2CS-EW": _vectors("T2.1", "o2cs-ew", note="theory's width"),
    "O2CS-EW, width x .05": _vectors("T2.1", "o2cs-ew", settings={"scale": 0.05}, note="no theory covers that width"),
    "ModCB": _contexts(
        "T2.2", "modcb", "nested", widths=SOME, note="nested sets; the smallest true one has 10 columns"
    ),
    "SL-UCB": RowPlayer(
        "T2.3", "ball", "columns", "sl-ucb", _HORIZON, told_horizon=True, note="given n; noise in the parameters",
    ),
    "SL-UCB, scale .5": RowPlayer(
        "T2.3", "ball", "columns", "sl-ucb", {"scale": 0.5, **_HORIZON}, told_horizon=True, widths=(),
        note="half of theory's threshold",
    ),
    "LASSO Bandit": _contexts(
        "T2.4", "lasso-bandit", "stacked", settings={"lam1": 0.04, "lam2": 0.5, **_RELEASED}, widths=(50, 100, 200),
        seeds=10, note="made for one vector per arm: it learns 20",
    ),
    "DR Lasso": _contexts("T2.5", "dr-lasso", "columns", settings={"clip": 3.0, **_RELEASED}),
    "SA Lasso": _contexts("T2.6", "sa-lasso", "columns", settings={"lam": 0.8}),
    "Li 2022": _contexts(
        "T2.7", "etc", "singles", settings={**_LI, **_HORIZON}, told_horizon=True, note="given n and s"
    ),
    "Li 2022, doubling": _contexts(
        "T2.7", "doubling", "singles", settings={**_LI, "algorithm": "etc"}, note="given s"
    ),
    "ESTC": _vectors(
        "T2.8", "estc", "columns", settings={"sparsity": "$size", **_HORIZON}, width_settings=_CHEAP_DESIGN,
        told_horizon=True, further=BEYOND, width_rounds=10_000, seeds=10,
        note="given n and s; growth with an H-optimal design, since E-optimal ones are slow",
    ),
    "ESTC, doubling": _vectors(
        "T2.8", "doubling", "columns", settings={"algorithm": "estc", "sparsity": "$size"}, widths=(), note="given s",
    ),
    "PopArt": _vectors(
        "T2.9", "popart", "columns", settings={"sparsity": "$size", **_HORIZON}, told_horizon=True, further=BEYOND,
        width_rounds=10_000, seeds=10, note="given n and s",
    ),
    "PopArt, doubling": _vectors(
        "T2.9", "doubling", "columns", settings={"algorithm": "popart", "sparsity": "$size"}, widths=(), note="given s",
    ),
    "ALExp": _vectors("T2.10", "alexp", note="given the groups"),
    "ALExp, contexts": _contexts("T2.10", "alexp", note="given the groups"),
    "Corral": _master("corral", _HORIZON, told_horizon=True),
    "Corral, doubling": _master("doubling", {"algorithm": "corral"}, widths=()),
    "smoothed Corral": _master("smoothed-corral", _HORIZON, told_horizon=True, widths=SOME),
    "EXP3.P, smoothed": _master("smoothed-corral", {"master": "exp3p", **_HORIZON}, told_horizon=True, widths=()),
    "balancing, dynamic": _master("balancing", {}, widths=SOME),
    "D3RB": _master("d3rb", {}),
    "EXP4-IX": _master("exp4-ix", {}),
    "EXP4-LS": _master("exp4-ls", {}, widths=(50, 100, 200)),
    "EXP4-LS, vectors": _vectors("T1.black-box", "exp4-ls", widths=(30, 60, 120), seeds=10),
    "Corral, vectors": _vectors(
        "T1.black-box", "corral", settings=_HORIZON, told_horizon=True, seeds=10
    ),
    "TH Lasso": _contexts("", "th-lasso", "columns"),
    "mixture": _vectors("", "evidence-mixture", note="EvidenceMixture, given the groups"),
    "mixture, contexts": _contexts(
        "", "evidence-mixture", note="EvidenceMixture, given the groups; its rule for contexts keeps exploring"
    ),
    "LinUCB, all columns": _vectors("", "linucb"),
    "LinUCB, all columns, contexts": _contexts("", "linucb", widths=SOME),
    "oracle": _vectors("", "linucb", settings={"model": "$true_model"}, note="LinUCB, given the group"),
    "oracle, contexts": _contexts("", "linucb", settings={"model": "$true_model"}, note="LinUCB, given the group"),
    "even play": _vectors("", "uniform", "columns", widths=(30, 240)),
    "even play, contexts": _contexts("", "uniform", "columns", widths=(50, 1600)),
}  # fmt: skip


def entrant(name: str) -> RowPlayer:
    """An entrant by name, or an error that lists the names."""
    if name not in ENTRANTS:
        raise ValueError(f"there is no row {name!r}; known are {'; '.join(ENTRANTS)}; and released; masters")
    return ENTRANTS[name]


FIRST_SEED = 98_000  # no setting was chosen on these seeds
KEY = ("entrant", "part", "p", "n")
QUICK_GRID, QUICK_WIDTHS, QUICK_SEEDS = (50, 100, 200), 2, 4


@dataclass(frozen=True)
class SparseContest:
    """What to run."""

    cells: tuple[SparseCell, ...]

    @classmethod
    def of(
        cls,
        names: Sequence[str] | None = None,
        seeds: int | None = None,
        first_seed: int = FIRST_SEED,
        quick: bool = False,
    ) -> Self:
        """Check the names; errors list the valid ones. Rows without an algorithm are left out unless named."""
        if seeds is not None:
            count("seeds", seeds, 2)
        others = {"released": released_cells, "masters": master_cells}
        chosen = {name: entrant(name) for name in names or ENTRANTS if name not in others}
        for name, one in chosen.items():
            if names is not None and not one.plays:
                raise ValueError(f"row {name!r} needs the algorithm {one.algorithm!r}, which is not there")
        playing = [(name, one) for name, one in chosen.items() if one.plays]
        cells = [cell for name, one in playing for cell in _cells(name, one, seeds, first_seed, quick)]
        for name, made in others.items():
            if not quick and (names is None or name in names):
                cells += made(first_seed, seeds)
        return cls(tuple(cells))

    @property
    def tasks(self) -> list[Task]:
        """All runs."""
        return [task for cell in self.cells for task in cell.tasks]

    def run(self, sweep: Callable[[list[Task]], list[Record]]) -> pd.DataFrame:
        """One line per run and moment."""
        import pandas as pd

        records = iter(sweep(self.tasks))
        rows: list[dict[str, object]] = []
        for cell in self.cells:
            rows += cell.rows([next(records) for _ in cell.seeds])
        return pd.DataFrame(rows)


def _cells(name: str, one: RowPlayer, seeds: int | None, first: int, quick: bool) -> Iterator[SparseCell]:
    def numbers(default: int) -> tuple[int, ...]:
        return tuple(range(first, first + (seeds or (QUICK_SEEDS if quick else default))))

    def cell(part: str, p: int, n: int, moments: tuple[int, ...], settings: Settings, default: int) -> SparseCell:
        return SparseCell(name, part, one.scenario(p, n), moments, one.algorithm, settings, numbers(default))

    at, grid = AT[one.family], QUICK_GRID if quick else GRID
    if one.told_horizon:
        for n in grid if quick else (*grid, *one.further):
            yield cell("n", at, n, (n,), one.settings, one.seeds)
    else:
        yield cell("n", at, grid[-1], tuple(grid), one.settings, one.seeds)
    rounds = grid[-1] if quick else one.width_rounds
    for p in one.widths[:QUICK_WIDTHS] if quick else one.widths:
        yield cell("p", p, rounds, (rounds,), {**one.settings, **one.width_settings}, one.width_seeds)
