"""What durability costs: opening a long study, and asking and telling compared with the algorithm in memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TypeVar

import numpy as np

from alexp.algorithms import ALExp
from alexp.problem import Interval, ModelClass
from alexp_experiments.bench.records import Measurement, record

OPEN_MS = 2000.0  # what opening a study of 100,000 trials may take
ADDED_MS = 5.0  # what a study may add to an ask

_MODELS = ModelClass.legendre(degree=6, size=3)
_DOMAIN = Interval(-1.0, 1.0, resolution=200)
_NOISE, _SEED = 0.1, 3
_BATCH = 1000

T = TypeVar("T")


def bench_study(trials: int = 100_000, rounds: int = 50, storage: str | None = None) -> list[Measurement]:
    """Fill a study with told trials, open it, and play on; one flat record per measurement.

    `storage` is a database of one's own, for instance on PostgreSQL; by default a SQLite file that is deleted
    afterwards. `ratio` is the measured value divided by its limit: below one is good. A commit waits for the disk,
    so the time of an `fsync` on the same disk, measured in between, stands beside it.
    """
    with tempfile.TemporaryDirectory(prefix="alexp-bench-", dir=os.getcwd()) as folder:
        where = storage or f"sqlite:///{Path(folder) / 'study.db'}"
        memory, fill_seconds = _fill(where, trials)
        records = [record("study", _instance(where, trials), "fill, per trial", median_ms=1e3 * fill_seconds / trials)]
        records.append(_opening(where, trials))
        records += _playing(where, memory, trials, rounds, Path(folder) / "fsync")
    return records


def _instance(where: str, trials: int) -> str:
    return f"{trials} trials on {where.split(':', 1)[0]}"


def _fill(where: str, trials: int) -> tuple[ALExp, float]:
    """A study with so many told trials, in plates of a thousand, and its twin in memory."""
    from alexp.study import create_study

    memory = ALExp(_MODELS, _DOMAIN, noise_std=_NOISE, random_state=_SEED)
    rng, points = np.random.default_rng(0), _DOMAIN.points
    seconds = 0.0
    with create_study(
        _MODELS, _DOMAIN, name="bench", storage=where, algorithm="alexp", noise_std=_NOISE, random_state=_SEED
    ) as study:
        for start in range(0, trials, _BATCH):
            begin = perf_counter()
            plate = study.ask(min(_BATCH, trials - start))
            rewards = 1.0 - points[[trial.index for trial in plate]] ** 2 + 0.1 * rng.standard_normal(len(plate))
            study.tell_many((trial, float(reward)) for trial, reward in zip(plate, rewards, strict=True))
            seconds += perf_counter() - begin
            memory.ask(len(plate))
            for trial, reward in zip(plate, rewards, strict=True):
                memory.tell(trial, float(reward))
    return memory, seconds


def _opening(where: str, trials: int) -> Measurement:
    from alexp.study import load_study

    times = []
    for _ in range(3):
        begin = perf_counter()
        with load_study("bench", where) as study:
            told = study.counts["told"]
        times.append(perf_counter() - begin)
        if told != trials:
            raise RuntimeError(f"{trials} rewards were told but {told} are there")
    ms = 1e3 * float(np.median(times))
    return record("study", _instance(where, trials), "open", median_ms=ms, ratio=ms / OPEN_MS, limit_ms=OPEN_MS)


def _playing(where: str, memory: ALExp, trials: int, rounds: int, scratch: Path) -> list[Measurement]:
    """The same rounds in the study and in memory, turn by turn, with a small write to disk in between."""
    from alexp.study import delete_study, load_study

    times: dict[str, list[float]] = {}

    def timed(key: str, action: Callable[[], T]) -> T:
        begin = perf_counter()
        answer = action()
        times.setdefault(key, []).append(1e3 * (perf_counter() - begin))
        return answer

    with load_study("bench", where) as study, scratch.open("wb", buffering=0) as file:
        for _ in range(rounds):
            trial, twin = timed("ask", study.ask), timed("ask in memory", memory.ask)
            if trial != twin:
                raise RuntimeError(f"the study asked for {trial}, the algorithm in memory for {twin}")
            timed("tell", partial(study.tell, trial, 0.5))
            timed("tell in memory", partial(memory.tell, trial, 0.5))
            file.write(b"x" * 4096)
            timed("fsync", partial(os.fsync, file.fileno()))
    delete_study("bench", where)
    median = {key: float(np.median(values)) for key, values in times.items()}
    return [
        record(
            "study",
            _instance(where, trials),
            case,
            median_ms=median[case],
            ratio=(median[case] - median[f"{case} in memory"]) / ADDED_MS,
            limit_ms=ADDED_MS,
            memory_ms=median[f"{case} in memory"],
            added_ms=median[case] - median[f"{case} in memory"],
            fsync_ms=median["fsync"],
        )
        for case in ("ask", "tell")
    ]
