"""A worker with an empty cache: compiles everything first, slowly, and says what it compiled under the lock.

`python -m tests.study.cold_worker STORAGE ROUNDS` prints JSON.
"""

import json
import sys
import time
from contextlib import contextmanager

import numpy as np
import pandas as pd
from numba import njit
from numba.core import event

import alexp
from alexp.algorithms.base import Decision
from alexp.decision.plays import Certain
from alexp.study import Storage, load_study

from .conftest import reward

TIMEOUT = 2.0  # seconds for which one waits for the lock
COMPILING = 3.0  # seconds which compiling takes at least


@njit
def first_best(values):
    best = 0
    for k in range(values.shape[0]):
        if values[k] > values[best]:
            best = k
    return best


@njit
def added(values, index, reward):
    out = values.copy()
    out[index] += reward
    return out


class Compiled(alexp.Algorithm):
    """Two kernels, one for asks and one for tells, neither of them cached."""

    def __init__(self, models, domain, **shared):
        super().__init__(models, domain, **shared)
        self._sums = np.zeros(domain.n_candidates)

    def _decide(self, round_):
        return Decision(Certain(first_best(self._sums[round_.choices.indices])))

    def _learn(self, seen):
        self._sums = added(self._sums, seen.index, seen.reward)

    def _recommend(self, round_):
        index = first_best(self._sums)
        return int(self._candidates.position[index]), float(self._sums[index]), None

    def _state(self):
        return {"sums": self._sums}

    def _restore(self, state):
        self._sums = state["sums"]


Compiled.name = "compiled"  # said afterwards: whoever imports this file does not register it


class Watch(event.Listener):
    """Makes compiling slow, and notices when it happens under the lock."""

    def __init__(self):
        self.locked, self.compiled, self.under_lock = False, [], []

    def on_start(self, event):
        name = str(event.data["dispatcher"])
        self.compiled.append(name)
        if self.locked:
            self.under_lock.append(name)
        if len(self.compiled) == 1:
            time.sleep(COMPILING)

    def on_end(self, event):
        pass


def main(storage, rounds):
    alexp.Algorithm.registry[Compiled.name] = Compiled
    watch, writing = Watch(), Storage.writing

    @contextmanager
    def watched(self):
        with writing(self) as connection:
            watch.locked = True
            try:
                yield connection
            finally:
                watch.locked = False

    Storage.writing = watched
    event.register("numba:compile", watch)
    with load_study("s", Storage(storage, timeout=TIMEOUT)) as study:
        for _ in range(rounds):
            trial = study.ask()
            study.tell(trial, reward(trial))
        study.amend(0, 0.25)
        study.retract(1)
        study.add_observations(pd.DataFrame({"index": [3, 4], "reward": [0.5, 0.25]}))
        study.abandon(study.ask(key="one's own"))
        study.ask(2, available=[1, 4, 5], distinct=True)
    print(json.dumps({"compiled": len(watch.compiled), "under_lock": watch.under_lock}))


if __name__ == "__main__":
    from tests.study import cold_worker  # under its own name, which the algorithm's class is known by

    cold_worker.main(sys.argv[1], int(sys.argv[2]))
