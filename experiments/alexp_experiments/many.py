"""What a step costs on many candidates: in Parquet files on two Dask workers, and as combinations that are enumerated.

    python -m alexp_experiments.many --rows 10000000 --columns 64 --folder /tmp/many
    python -m alexp_experiments.many --combinations 63 63 63 63 63 --steps 1

Seconds are CPU time of all processes together, so that a busy machine does not count; a step is an ask and a tell.
"""

from __future__ import annotations

import argparse
import time
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

import alexp
from alexp.common.arrays import FloatArray
from alexp.estimation.onepass.backends import product
from alexp.parts.backend import PartedRows
from alexp.parts.program import BLOCK, CandidatePart, PartTask
from alexp_experiments.bench.worker import peak_mb

_CHUNK = 500_000  # rows of a file that are made at a time
_WARM = 5  # steps before those that are measured


def write_table(folder: Path, rows: int, columns: int) -> None:
    """Write rows of standard normal numbers in single precision: four Parquet files with one column of lists."""
    import pyarrow as arrow
    from pyarrow import parquet

    folder.mkdir(parents=True, exist_ok=True)
    schema = arrow.schema({"id": arrow.int64(), "embedding": arrow.list_(arrow.float32(), columns)})
    rng, first = np.random.default_rng(0), 0
    for number in range(4):
        last = rows * (number + 1) // 4
        with parquet.ParquetWriter(folder / f"part-{number}.parquet", schema, compression="none") as file:
            while first < last:
                n = min(_CHUNK, last - first)
                values = rng.standard_normal((n, columns), dtype=np.float32)
                lists = arrow.FixedSizeListArray.from_arrays(arrow.array(values.ravel()), columns)
                file.write_table(arrow.table({"id": np.arange(first, first + n), "embedding": lists}, schema=schema))
                first += n


class OneProduct(PartTask):
    """A pass over the features of a part: their products with some directions (k, d), which stay in the cache."""

    def __init__(self, rows: PartedRows, directions: FloatArray) -> None:
        self._key, self._directions = rows.features.pieces[0][0], directions
        self.tables = frozenset({self._key})

    def run(self, part: CandidatePart) -> None:
        """Nothing is kept."""
        rows = part.tables[self._key]
        for low in range(0, len(rows), BLOCK):
            product(rows[low : low + BLOCK], self._directions)


def cpu_seconds() -> float:
    """Of this process, all threads together."""
    return time.process_time()


def peak_gigabytes() -> float:
    """Largest memory of this process so far."""
    return peak_mb() / 1e3


class Clock:
    """CPU time of this process and of the workers of a cluster."""

    def __init__(self, client: Any = None) -> None:
        self._client = client
        self._before = self._now()

    def _now(self) -> float:
        others = [] if self._client is None else self._client.run(cpu_seconds).values()
        return cpu_seconds() + float(sum(others))

    def lap(self) -> float:
        """Seconds since the last call."""
        before, self._before = self._before, self._now()
        return self._before - before


def play(opt: alexp.EvidenceMixture, steps: int, weights: FloatArray, clock: Clock) -> float:
    """Seconds of steps whose rewards are linear in the features, with noise; what rewards take is not counted."""
    rng, seconds = np.random.default_rng(opt.n_told), 0.0
    for _ in range(steps):
        clock.lap()
        trial = opt.ask()
        seconds += clock.lap()
        reward = float(opt.models.columns([trial.index])[0] @ weights + 0.1 * rng.standard_normal())
        clock.lap()
        opt.tell(trial, reward)
        seconds += clock.lap()
    return seconds


def on_workers(rows: int, columns: int, folder: Path, steps: int, rule: Any, memory: str = "3GB") -> dict[str, float]:
    """A step on two workers beside one product with all features by the same processes."""
    library: Any = import_module("distributed")  # it has no types
    if not folder.exists():
        write_table(folder, rows, columns)
    local = library.LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=memory, dashboard_address=None)
    with local, library.Client(local) as client:
        candidates = alexp.Parquet(folder)
        features = candidates.features("embedding")
        clock = Clock(client)
        models = alexp.ModelClass.from_matrices({"embedding": features})
        opt = alexp.EvidenceMixture(models, alexp.FiniteSet(candidates), rule=rule, random_state=0)
        out = {"candidates": len(candidates), "columns": columns, "reading": clock.lap()}
        weights = np.random.default_rng(1).standard_normal(columns) / np.sqrt(columns)
        play(opt, _WARM, weights, clock)
        directions = np.random.default_rng(2).standard_normal((5, columns))
        task, step, passes = OneProduct(features, directions), 0.0, 0.0
        features.device.run(lambda k: task)
        for _ in range(steps):  # side by side
            step += play(opt, 1, weights, clock) / steps
            features.device.run(lambda k: task)
            passes += clock.lap() / steps
        peaks = [peak_gigabytes(), *client.run(peak_gigabytes).values()]
    return out | {"step": step, "product": passes, "ratio": step / passes, "gigabytes": max(peaks)}


def enumerated(sizes: list[int], columns: int, steps: int) -> dict[str, float]:
    """A step on all combinations of some components, with `columns` descriptors each, in this process."""
    rng = np.random.default_rng(0)
    described = {f"component {k}": rng.standard_normal((n, columns)) for k, n in enumerate(sizes)}
    candidates = alexp.Combinations({name: range(len(own)) for name, own in described.items()})
    models = alexp.ModelClass.from_matrices({"descriptors": candidates.features(described)})
    opt = alexp.EvidenceMixture(models, alexp.FiniteSet(candidates), rule="ucb", random_state=0)
    weights = rng.standard_normal(models.n_columns) / np.sqrt(models.n_columns)
    for _ in range(models.n_columns + 4):  # as many rewards as coefficients: a step costs the same from then on
        opt.observe(int(rng.integers(prod(sizes))), float(rng.standard_normal()))
    before, n = peak_gigabytes(), prod(sizes)
    seconds = play(opt, steps, weights, Clock()) / steps
    return {"candidates": n, "step": seconds, "ns": 1e9 * seconds / n, "before": before, "gigabytes": peak_gigabytes()}


def main() -> None:
    """Print a table of what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=64)
    parser.add_argument("--folder", type=Path, default=Path("many"), help="where the Parquet files are, or will be")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rules", nargs="*", default=["ucb", "ids"])
    parser.add_argument("--combinations", type=int, nargs="*", action="append", help="sizes of components")
    given = parser.parse_args()
    if given.combinations:
        print("| combinations | step, s | ns per candidate | memory before, GB | memory after, GB |")
        print("|---|---|---|---|---|")
        for sizes in given.combinations:
            found = enumerated(sizes, 4, given.steps)
            named = " x ".join(map(str, sizes))
            print(
                f"| {named} = {found['candidates']:,} | {found['step']:.2f} | {found['ns']:.0f} | "
                f"{found['before']:.2f} | {found['gigabytes']:.2f} |",
                flush=True,
            )
        return
    print("| candidates | rule | step, s | one product, s | ratio | largest process, GB |")
    print("|---|---|---|---|---|---|")
    for rule in given.rules:
        found = on_workers(given.rows, given.columns, given.folder, given.steps, rule)
        print(
            f"| {given.rows:,} x {given.columns} | {rule} | {found['step']:.2f} | {found['product']:.2f} | "
            f"{found['ratio']:.2f} | {found['gigabytes']:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
