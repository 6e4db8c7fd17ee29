"""What one ask + tell costs where every round has a context, beside coba and Vowpal Wabbit; and 10^5 such rounds."""

from __future__ import annotations

from itertools import cycle
from math import sqrt
from typing import NamedTuple

import numpy as np

from alexp.algorithms.assumptions import quietly
from alexp_experiments.bench.records import Lap, Measurement, median_ms, one_blas_thread, record, timed
from alexp_experiments.bench.worker import in_fresh_process, peak_mb, resident_mb
from alexp_experiments.contextual.contest import OWN, ContextEntrant
from alexp_experiments.contextual.playing import OURS, Chooser, ContextScenario
from alexp_experiments.contextual.streams import ContextStream

_PEERS = "alexp_experiments.contextual.peers"
ROUNDS = 2_000  # different contexts; longer runs meet them again


class ContextCase(NamedTuple):
    """M sets of d of the `width` columns of a context, K arms."""

    n_sets: int = 50
    n_arms: int = 10
    size: int = 20
    width: int = 100

    @property
    def label(self) -> str:
        """In words."""
        return f"M={self.n_sets}, K={self.n_arms}, d={self.size}"

    def stream(self) -> ContextStream:
        """Gaussian contexts; rewards are linear in the first set."""
        rng = np.random.default_rng(0)
        contexts = rng.standard_normal((ROUNDS, self.width)) / sqrt(self.size)
        sets = {f"set {k}": sorted(rng.permutation(self.width)[: self.size].tolist()) for k in range(self.n_sets)}
        theta = rng.standard_normal((self.size, self.n_arms))
        values = contexts[:, sets["set 0"]] @ theta
        rewards = values + 0.3 * rng.standard_normal(values.shape)
        arms = tuple(f"arm {k}" for k in range(self.n_arms))
        everything = {"all": list(range(self.width))}
        return ContextStream(contexts, values, rewards, sets | everything, self.width, arms, true_set=0)


def _only(stream: ContextStream, wide: bool) -> ContextStream:
    """With the set of all columns alone, or with all sets but that."""
    if wide:
        return stream.with_set("all")
    sets = {name: columns for name, columns in stream.sets.items() if name != "all"}
    return ContextStream(
        stream.contexts, stream.values, stream.rewards, sets, stream.n_raw, stream.arms, true_set=stream.true_set
    )


class Subject(NamedTuple):
    """Who is timed, and whether on the sets or on all columns as one set."""

    entrant: ContextEntrant
    wide: bool = False


SUBJECTS: dict[str, Subject] = {
    "EvidenceMixture": Subject(OWN["mixture"]),
    "LM-UCB": Subject(OWN["lm-ucb"]),
    "ALExp": Subject(OWN["alexp"]),
    "LinUCB, one set": Subject(ContextEntrant(OURS, {"algorithm": "linucb", "noise_std": 0.3, "model": 0})),
    "LinUCB, all columns": Subject(OWN["linucb, all columns"], wide=True),
    "coba LinUCB, all columns": Subject(ContextEntrant(f"{_PEERS}.coba:make", {"learner": "linucb"}), wide=True),
    "VW --cb_explore_adf -q xa, all columns": Subject(
        ContextEntrant(f"{_PEERS}.vowpal:make", {"arguments": "--cb_explore_adf -q xa"}), wide=True
    ),
}
LONG = ("EvidenceMixture", "LM-UCB", "LinUCB, one set")


class ContextPlayer:
    """A chooser and the rounds it meets, again and again."""

    def __init__(self, subject: Subject, stream: ContextStream) -> None:
        self.chooser: Chooser = subject.entrant.task(ContextScenario(), 0).chooser(_only(stream, subject.wide))
        self._rounds = cycle(zip(stream, stream.rewards.tolist(), strict=True))

    def step(self) -> None:
        """One decision, and what is learnt from it."""
        presented, rewards = next(self._rounds)
        pick = self.chooser.decide(presented)
        with quietly():  # what a bound that was not stated is assumed to be is of no interest here
            self.chooser.learn(presented, pick, rewards[pick.action])


def bench_context(quick: bool = False, rounds: int = 100_000) -> list[Measurement]:
    """CPU time of a step around round 300, subjects taking turns on one core; peak memory; and long runs."""
    case = ContextCase(3, 2, 2, 5) if quick else ContextCase()
    out = _steps(case, 5 if quick else 300, 5 if quick else 200)
    rounds, window = (60, 20) if quick else (rounds, 1_000)
    for number, name in enumerate(SUBJECTS):
        if name not in LONG:
            continue
        found = in_fresh_process("context", subject=number, quick=int(quick), rounds=rounds, window=window)
        instance = f"{case.label}, {rounds:,} rounds"
        out += [
            record("context", instance, f"{name}, first {window:,}", median_ms=found["early_ms"]),
            record(
                "context", instance, f"{name}, last {window:,}",
                median_ms=found["late_ms"], ratio=found["slowdown"], ratio_of="the first rounds",
                growth_mb=found["growth_mb"], peak_mb=found["peak_mb"],
            ),
        ]  # fmt: skip
    return out


def _steps(case: ContextCase, before: int, steps: int) -> list[Measurement]:
    stream, players, out = case.stream(), dict[str, ContextPlayer](), []
    with one_blas_thread():
        for name, subject in SUBJECTS.items():
            try:
                players[name] = ContextPlayer(subject, stream)
            except ImportError as error:
                out.append(record("context", case.label, name, error=str(error)))
        for _ in range(before):
            for player in players.values():
                player.step()
        laps: dict[str, list[Lap]] = {name: [] for name in players}
        for _ in range(steps):
            for name, player in players.items():
                laps[name].append(timed(player.step)[1])
    own = float(np.median([lap.thread for lap in laps["EvidenceMixture"]]))
    return [
        record(
            "context", case.label, name,
            median_ms=median_ms([lap.wall for lap in found]), cpu_ms=median_ms([lap.cpu for lap in found]),
            slowest_ms=1e3 * max(lap.thread for lap in found),
            ratio=float(np.median([lap.thread for lap in found])) / own, ratio_of="EvidenceMixture",
        )
        for name, found in laps.items()
    ] + out  # fmt: skip


def long_contexts(subject: int, quick: int, rounds: int, window: int) -> dict[str, float]:
    """Time per step in the first and the last rounds of a run, and how much memory it took in between."""
    case = ContextCase(3, 2, 2, 5) if quick else ContextCase()
    player = ContextPlayer(list(SUBJECTS.values())[subject], case.stream())
    for _ in range(window // 10):  # compiled code, and what is set up once
        player.step()
    early = [timed(player.step)[1].thread for _ in range(window)]
    before = resident_mb()
    for _ in range(rounds - 2 * window - window // 10):
        player.step()
    late = [timed(player.step)[1].thread for _ in range(window)]
    return {
        "early_ms": median_ms(early),
        "late_ms": median_ms(late),
        "slowdown": float(np.median(late) / np.median(early)),
        "growth_mb": resident_mb() - before,
        "peak_mb": peak_mb(),
    }
