"""A million candidates with wide maps on a GPU: time of an ask and a tell, and whether it decides as the CPU does."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import ModuleType
from typing import Literal, TypedDict

import numpy as np

from alexp.algorithms.evidence_mixture import EvidenceMixture
from alexp.common.arrays import AnyArray
from alexp.gpu.devices import Device, card, cuda
from alexp.gpu.torch_backend import TorchDevice
from alexp.problem.domains import FiniteSet
from alexp.problem.models import ModelClass
from alexp.rules import IDS, UCB, ExpectedImprovement, RuleName
from alexp_experiments.bench.records import Measurement, median_ms, record
from alexp_experiments.bench.worker import in_fresh_process


class Settings(TypedDict, total=False):
    """Of a mixture."""

    noise_std: float
    reward_bound: float
    norm_bound: float
    repeats: bool
    goal: Literal["sum", "best"]
    rule: RuleName


@dataclass(frozen=True)
class Duel:
    """N candidates with features of two maps, the second of which is true, and settings of the mixture."""

    text: str
    n: int
    sizes: tuple[int, int]
    settings: Settings


DUELS = (
    Duel("noise and bound not given", 2000, (64, 96), {}),
    Duel("noise and bound given, six cells", 2000, (64, 96), {"noise_std": 0.1, "reward_bound": 4.0}),
    Duel("without repeats", 4000, (48, 160), {"repeats": False}),
    Duel("the best one soon", 2000, (64, 96), {"goal": "best"}),
    Duel("upper confidence, more candidates", 10_000, (32, 48), {"rule": "ucb"}),
)


@dataclass
class Agreement:
    """Of `rounds`, in how many the same candidate was chosen; otherwise how far apart the two are at most.

    `gap` is by how much the mean of the one that the device chose would have to rise to be as good a choice as the
    CPU's, in units of beta times its deviation, all of it as the CPU knows it; `error` the largest difference of means
    or deviations at the end, in units of the largest deviation.
    """

    rounds: int = 0
    same: int = 0
    gap: float = 0.0
    error: float = 0.0


def duel(case: Duel, precision: str, rounds: int, device: str, rounded: bool = True, seed: int = 0) -> Agreement:
    """Play as the CPU decides in double precision, and ask the device every time what it would have done.

    Tables are in this `precision` on the device. The CPU has the same numbers, or, unless they are to be `rounded`,
    those in double precision that they were made from.
    """
    rng = np.random.default_rng(seed)
    tables: dict[str, AnyArray] = {
        name: rng.standard_normal((case.n, d)) / np.sqrt(d) for name, d in zip("ab", case.sizes, strict=True)
    }
    truth = tables["b"] @ rng.standard_normal(case.sizes[1])
    narrow = {name: table.astype(precision) for name, table in tables.items()}
    plain = {name: narrow[name].astype(np.float64) if rounded else tables[name] for name in tables}
    domain, settings = FiniteSet(np.arange(case.n)), case.settings
    here = EvidenceMixture(ModelClass.from_matrices(plain), domain, random_state=seed, **settings)
    there = EvidenceMixture(ModelClass.from_matrices(narrow, device=device), domain, random_state=seed, **settings)
    out = Agreement()
    for _ in range(rounds):
        one, other = here.ask(), there.ask()
        here.abandon(one)
        there.abandon(other)
        out.rounds, out.same = out.rounds + 1, out.same + (one.index == other.index)
        if one.index != other.index:
            out.gap = max(out.gap, _gap(here, one.index, other.index))
        reward = float(truth[one.index]) + 0.1 * float(rng.standard_normal())
        here.observe(one.index, reward)
        there.observe(one.index, reward)
    outlooks = [opt.belief.moments(opt._everything) for opt in (here, there)]
    known, found = (np.stack([np.asarray(view.mean), np.asarray(view.std)]) for view in outlooks)
    out.error = float(np.abs(known - found).max() / known[1].max())
    return out


def _gap(opt: EvidenceMixture, chosen: int, other: int) -> float:
    """By how much the mean of `other` would have to rise to be as good a choice as the one that was `chosen`."""
    everything = opt._everything
    places = [int(np.flatnonzero(everything.indices == index)[0]) for index in (chosen, other)]
    outlook = opt.belief.moments(everything)
    mean, std = (values[places] for values in outlook)
    if isinstance(opt.rule, ExpectedImprovement):
        gains = opt.belief.expected_improvement(everything, opt.rule.width)[places]
        return abs(float(gains[0]) - float(gains[1])) / (max(opt.rule.width, 0.5) * float(std[1]))
    assert isinstance(opt.rule, IDS | UCB)
    beta = opt.rule.width(opt.n_told + 1)
    unit = max(beta, 0.5) * float(std[1])
    if isinstance(opt.rule, UCB):
        return abs(float((mean + beta * std)[0] - (mean + beta * std)[1])) / unit
    regret = float((outlook.mean + beta * outlook.std).max()) - mean
    information = np.log1p(std**2 / opt.belief.noise_variance)
    return abs(float(regret[1] - regret[0] * np.sqrt(information[1] / information[0]))) / unit


_FIRST = 3  # rounds that are not timed


@dataclass(frozen=True)
class DeviceCase:
    """N candidates with maps of these numbers of features, in this precision, six cells."""

    n: int
    sizes: tuple[int, ...]
    precision: str
    steps: int = 20

    @property
    def label(self) -> str:
        """In words."""
        sizes = " + ".join(f"{d:,}" for d in self.sizes)
        return f"N={self.n:,}, d={sizes}, six cells, {self.precision}"

    @property
    def size(self) -> int:
        """Bytes of the tables."""
        return self.n * sum(self.sizes) * np.dtype(self.precision).itemsize


CASES = tuple(DeviceCase(1_000_000, (512, 1024, 2048), precision) for precision in ("float16", "float32"))
QUICK = tuple(DeviceCase(2_000, (64, 96), precision, steps=3) for precision in ("float16", "float32"))
OTHERS: tuple[tuple[str, Settings], ...] = (
    ("noise and bound not given, without repeats", {"repeats": False}),
    ("noise and bound not given, the best one soon", {"goal": "best"}),
)
Clock = Callable[[Callable[[], object]], float]


def bench_wide_device(quick: bool = False) -> list[Measurement]:
    """Steps on the card, tables that stay in the memory of the CPU, the CPU itself, and whether decisions agree."""
    torch, cases = cuda(), QUICK if quick else CASES
    peak = copy_gb_s(torch, 1 << (24 if quick else 32))
    total = torch.cuda.mem_get_info()[1] / 1e6
    out = [record("gpu", card(), "copy within its memory", peak_gb_s=peak, device_mb=total)]
    for case in cases:
        tables = device_tables(torch, case)
        out += on_card(torch, case, tables, peak)
        host: dict[str, AnyArray] = {}
        if case.precision == "float32":
            host = {name: TorchDevice(torch, "cuda").host(table) for name, table in tables.items()}
        tables.clear()
        gc.collect()  # mixtures are in cycles, and hold tables
        if host:
            out += [streamed(torch, case, host, peak), *on_cpu(case, host, out)]
    return out + agreements(quick)


def device_tables(torch: ModuleType, case: DeviceCase) -> dict[str, AnyArray]:
    """Normal features of about unit length, made on the card."""
    torch.manual_seed(0)
    kind = getattr(torch, case.precision)
    return {
        name: torch.randn((case.n, d), device="cuda", dtype=kind).mul_(d**-0.5)
        for name, d in zip("abcdef", case.sizes, strict=False)
    }


def on_card(torch: ModuleType, case: DeviceCase, tables: dict[str, AnyArray], peak: float) -> list[Measurement]:
    """Whole steps, their parts, the slowest of the first 70, and memory."""
    torch.cuda.reset_peak_memory_stats()
    opt = mixture(tables, None)
    clock = waiting(torch)
    step = stepping(opt)
    first = [clock(step) for _ in range(_FIRST)]
    whole = [clock(step) for _ in range(case.steps)]
    asks, tells = parts_of(opt, case.steps, clock)
    later = [clock(step) for _ in range(70 - opt.n_told)] if case.steps > 3 else []
    used = torch.cuda.max_memory_allocated() / 1e6
    reached = case.size / 1e9 / float(np.median(whole))
    common = {"reached_gb_s": reached, "peak_gb_s": peak, "share": reached / peak, "device_mb": used}
    del opt, step
    others = [
        record(
            "gpu",
            case.label.replace("six", "five"),
            f"ask + tell, {text}",
            median_ms=_median_step(tables, clock, case.steps, settings),
        )
        for text, settings in OTHERS
    ]
    return [
        record("gpu", case.label, "ask + tell", median_ms=median_ms(whole),
               slowest_ms=1e3 * max(first + whole + later), **common),
        record("gpu", case.label, "ask", median_ms=median_ms(asks)),
        record("gpu", case.label, "tell", median_ms=median_ms(tells)),
        *others,
    ]  # fmt: skip


def _median_step(tables: dict[str, AnyArray], clock: Clock, steps: int, settings: Settings) -> float:
    """Noise and bound not given, five cells."""
    models = ModelClass.from_matrices(tables)
    n = int(next(iter(tables.values())).shape[0])
    step = stepping(EvidenceMixture(models, FiniteSet(np.arange(n)), random_state=0, **settings))
    for _ in range(_FIRST):
        step()
    return median_ms([clock(step) for _ in range(steps)])


def streamed(torch: ModuleType, case: DeviceCase, host: dict[str, AnyArray], peak: float) -> Measurement:
    """Steps with tables that stay in the memory of the CPU and are sent in blocks, as those are that do not fit."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    opt, clock = mixture(host, TorchDevice(torch, "cuda", room=0)), waiting(torch)
    step = stepping(opt)
    for _ in range(_FIRST):
        step()
    times = [clock(step) for _ in range(3)]
    reached = case.size / 1e9 / float(np.median(times))
    return record(
        "gpu", case.label, "ask + tell, tables sent in blocks", median_ms=median_ms(times), reached_gb_s=reached,
        device_mb=torch.cuda.max_memory_allocated() / 1e6,
    )  # fmt: skip


def on_cpu(case: DeviceCase, host: dict[str, AnyArray], known: list[Measurement]) -> list[Measurement]:
    """The same steps by the CPU of this machine, all its cores."""
    opt = mixture(host, None)
    step = stepping(opt)
    for _ in range(_FIRST):
        step()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    mine = next(row for row in known if row["instance"] == case.label and row["subject"] == "ask + tell")
    assert mine["median_ms"] is not None
    host_ms = median_ms(times)
    return [record("gpu", case.label, "ask + tell, against the CPU", median_ms=mine["median_ms"], host_ms=host_ms,
                   ratio=host_ms / mine["median_ms"])]  # fmt: skip


def agreements(quick: bool) -> list[Measurement]:
    """Decisions against those of the CPU in double precision, all problems at once, each in a process of its own."""
    rounds = 20 if quick else 1000
    kinds = [("float32", 1), ("float16", 1), ("float16", 0)]
    tasks = [(k, precision, rounded) for k in range(len(DUELS)) for precision, rounded in kinds]

    def run(task: tuple[int, str, int]) -> Measurement:
        k, precision, rounded = task
        found = in_fresh_process("agreement", case=k, bits=int(precision[5:]), rounds=rounds, rounded=rounded)
        same = "the same numbers" if rounded else "numbers that were not rounded"
        others = "" if found["same"] == rounds else f"; where not, scores within {found['gap']:.1e} of the width"
        return record(
            "gpu", f"{DUELS[k].text}, {rounds:,} rounds", f"{precision}, CPU in double precision with {same}",
            agreement=found["same"] / found["rounds"], fixed=f"values within {found['error']:.1e}{others}",
        )  # fmt: skip

    with ThreadPoolExecutor(min(len(tasks), os.cpu_count() or 1)) as pool:
        return list(pool.map(run, tasks))


def mixture(tables: dict[str, AnyArray], device: str | Device | None) -> EvidenceMixture:
    """Default settings, with noise and bound given: six cells."""
    models = ModelClass.from_matrices(tables, device=device)
    n = int(next(iter(tables.values())).shape[0])
    return EvidenceMixture(models, FiniteSet(np.arange(n)), noise_std=0.1, reward_bound=1.0, random_state=0)


def stepping(opt: EvidenceMixture) -> Callable[[], None]:
    """One ask and one tell of a reward that knows nothing of the models."""
    rng = np.random.default_rng(0)

    def step() -> None:
        trial = opt.ask()
        opt.tell(trial, 0.3 * float(rng.normal()))

    return step


def parts_of(opt: EvidenceMixture, steps: int, clock: Clock) -> tuple[list[float], list[float]]:
    """Seconds of asks and of tells, each waited for."""
    asks, tells, trials = [], [], []
    for _ in range(steps):
        asks.append(clock(lambda: trials.append(opt.ask())))
        tells.append(clock(lambda: opt.tell(trials[-1], 0.1)))
    return asks, tells


def waiting(torch: ModuleType) -> Clock:
    """A clock that waits until the card has done all it was asked for."""

    def seconds(call: Callable[[], object]) -> float:
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        return time.perf_counter() - start

    return seconds


def copy_gb_s(torch: ModuleType, size: int) -> float:
    """What a copy within the card's memory reaches, bytes read and written, in 10^9 per second."""
    source, clock = torch.randint(0, 100, (size,), dtype=torch.uint8, device="cuda"), waiting(torch)
    target = torch.empty_like(source)
    laps = [clock(lambda: target.copy_(source)) for _ in range(10)]
    return 2.0 * size / 1e9 / min(laps)
