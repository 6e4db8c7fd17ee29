"""A quick form of `alexp tables`: every row and every master once, on small instances for a few rounds.

`python -m alexp_experiments.sparse.tables.sample DIR` leaves tables.csv in DIR.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from alexp_experiments.core.runner import sweep
from alexp_experiments.sparse.tables.contest import AT, ENTRANTS, FIRST_SEED, SparseContest
from alexp_experiments.sparse.tables.known import MASTERS, MasterScenario
from alexp_experiments.sparse.tables.report import add_runs
from alexp_experiments.sparse.tables.tasks import SparseCell

ROUNDS = 40
SEEDS = (FIRST_SEED, FIRST_SEED + 1)


def sample_contest() -> SparseContest:
    """One cell for every row that can be played, with its smallest number of columns, and one for every master."""
    rows = [
        SparseCell(
            name, "n", one.scenario(min([*one.widths, AT[one.family]]), ROUNDS), (ROUNDS,), one.algorithm, one.settings,
            SEEDS,
        )
        for name, one in ENTRANTS.items()
        if one.plays
    ]  # fmt: skip
    small = MasterScenario(n_columns=60, arms=120, steps=ROUNDS)
    masters = [
        SparseCell(name, "masters", small.with_(layout=layout), (ROUNDS,), algorithm, settings, SEEDS)
        for name, (layout, algorithm, settings) in MASTERS.items()
    ]
    return SparseContest((*rows, *masters))


if __name__ == "__main__":
    add_runs(sample_contest(), partial(sweep, workers=1, cache=None, progress=False), Path(sys.argv[1]))
