"""One optimiser, many threads: what comes out must be what one thread could have done.

Threads ask, tell, observe, abandon, correct and look at random, each with trials of its own. The log keeps the order in
which everything happened; repeated in that order by a single thread, it must give the same actions, propensities and
rewards, and the same state to the last bit. Nobody may get another's trial, and nothing may be raised.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable

import numpy as np

from alexp.algorithms.base import Algorithm
from alexp.algorithms.log import Trial, unpack_restriction
from alexp.testing.settings import make, reward, settings_for
from tests.adversarial.interrupts import built_in, digest, look

THREADS, STEPS = 8, 40  # what scale 1 means for each algorithm
RESTLESS = 1e-6  # seconds between two switches of threads


def work(run: Algorithm, seed: int, steps: int) -> list[tuple[Trial, float | None]]:
    """What one thread does; returns its trials with their rewards, None for those without."""
    rng, mine = np.random.default_rng(seed), list[tuple[Trial, float | None]]()
    for _ in range(steps):
        action = rng.random()
        waiting = [k for k, (_, told) in enumerate(mine) if told is None]
        if action < 0.1:
            index = int(rng.integers(run.domain.n_candidates))
            mine.append((run.observe(index, reward(index)), reward(index)))
        elif action < 0.2:
            look(run)
        elif action < 0.55 or not waiting:
            mine.extend((trial, None) for trial in run.ask(int(rng.integers(1, 3))))
        else:
            k = int(rng.choice(waiting))
            trial, _ = mine[k]
            mine[k] = trial, reward(trial.index)
            run.tell(trial, reward(trial.index))
    return mine


def together(tasks: list[Callable[[], object]]) -> list[BaseException]:
    """Run tasks at once, switching between them as often as possible; what they raised."""
    raised: list[BaseException] = []

    def guard(task: Callable[[], object]) -> None:
        try:
            task()
        except BaseException as error:  # whatever it is, the test has to hear of it
            raised.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(RESTLESS)
    try:
        threads = [threading.Thread(target=guard, args=(task,), daemon=True) for task in tasks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120.0)
        if any(thread.is_alive() for thread in threads):
            raised.append(TimeoutError("threads wait for each other"))
    finally:
        sys.setswitchinterval(before)
    return raised


def in_order(run: Algorithm, fresh: Algorithm) -> bool:
    """Whether one thread that does the same in the order of the log comes to the same trials and the same state."""
    log, n = run.log, run.domain.n_candidates
    for event in log.events.since():
        k = event.trial
        if event.step == "ask":
            allowed = None if event.restriction is None else unpack_restriction(event.restriction, n)
            if repr(fresh.ask(available=allowed)) != repr(run.trial(k)):
                return False
        elif event.step == "tell":
            fresh.tell(k, log.reward[k])
        elif event.step == "observe":
            fresh.observe(log.index[k], log.reward[k])
        else:
            fresh.abandon(k)
    return digest(fresh) == digest(run)


def violations(kind: type[Algorithm], seed: int, threads: int = THREADS, steps: int = STEPS) -> dict[str, int]:
    """Share one optimiser among threads, and count what went wrong."""
    setting = settings_for(kind)[seed % len(settings_for(kind))]
    run, fresh = (make(kind, setting, reward_bound=1.0, random_state=seed) for _ in range(2))
    done: list[list[tuple[Trial, float | None]]] = []
    raised = together([lambda s=seed * 1000 + k: done.append(work(run, s, steps)) for k in range(threads)])
    mine = sorted((trial.id, repr(trial), told) for own in done for trial, told in own)
    known = [(k, repr(run.trial(k))) for k in range(run.n_asked)]
    same = [(k, trial) for k, trial, _ in mine] == known
    rewards = [None if np.isnan(value) else value for value in run.log.reward]
    return {
        "calls": threads * steps,
        "raised": len(raised),
        "mixed up": int(not raised and not (same and [told for _, _, told in mine] == rewards)),
        "out of order": int(not raised and not in_order(run, fresh)),
    }


def soak(scale: float = 1.0, seed: int = 0) -> dict[str, int | float | str]:
    """8 threads with 40 calls each on every algorithm at scale 1, which is about 5,000 calls."""
    total = {"calls": 0, "raised": 0, "mixed up": 0, "out of order": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, kind in enumerate(built_in().values()):
            for name, count in violations(kind, seed + number, steps=max(3, round(STEPS * scale))).items():
                total[name] += count
    wrong = total["raised"] + total["mixed up"] + total["out of order"]
    return {"tried": total.pop("calls"), "violations": wrong} | total
