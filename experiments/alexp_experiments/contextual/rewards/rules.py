"""What rules of `EvidenceMixture` cost where candidates are new in every round, and what their logs are worth.

``python -m alexp_experiments.contextual.rewards.rules`` prints the tables "rules" of docs/clicks.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import NamedTuple

import numpy as np

from alexp.algorithms import EvidenceMixture
from alexp.algorithms.base import RoundArguments
from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import State
from alexp.problem import Arms, Candidates, ModelClass
from alexp.rules import Matching
from alexp_experiments.core.runner import spread

_SETS, _SIZE = 10, 3  # feature sets, and columns of each


@dataclass(frozen=True)
class Stream:
    """Ten feature sets of three standard normal columns each; the reward is linear in the first set, of variance one.

    Attributes
    ----------
    candidates : of a round; or arms, each with coefficients of its own, on one context.
    per_arm : whether they are arms.
    period : rounds after which all coefficients are drawn anew; 0 for never.
    drift : standard deviation of a random walk of the coefficients, per round, in units of their own.
    """

    name: str
    candidates: int
    rounds: int
    noise: float
    per_arm: bool = False
    period: int = 0
    drift: float = 0.0


class Played(NamedTuple):
    """Regret of a run, and what a round of its log counts for in evaluating even play, or the best choices.

    A policy pi is evaluated with weights pi(a) / p(a), p the propensities; a round counts for 1 / E[weight^2], with
    E[weight^2] = mean over rounds of sum_a pi(a)^2 / p(a). Zero where a choice of the policy is never played.
    """

    regret: float
    even: float = 0.0
    best: float = 0.0


def play(stream: Stream, settings: State, seed: int, logs: bool = False) -> Played:
    """A run of `EvidenceMixture` with these settings; all see the same candidates and the same noise."""
    rng = np.random.default_rng([11, seed])
    groups = [np.arange(_SIZE * k, _SIZE * (k + 1)) for k in range(_SETS)]
    opt = _algorithm(stream, groups, settings, seed)
    width, n, total = _SETS * _SIZE, stream.candidates, 0.0
    squares = np.zeros(2)  # of weights, even play and best choices
    shape = (n, _SIZE) if stream.per_arm else (_SIZE,)
    theta = rng.standard_normal(shape) / sqrt(_SIZE)
    for t in range(stream.rounds):
        if stream.period and t and t % stream.period == 0:
            theta = rng.standard_normal(shape) / sqrt(_SIZE)
        step = stream.drift  # keeps the variance: an autoregressive walk
        theta = sqrt(1.0 - step**2) * theta + step * rng.standard_normal(shape) / sqrt(_SIZE)
        rows = rng.standard_normal(width) if stream.per_arm else rng.standard_normal((n, width))
        values: FloatArray = theta @ rows[:_SIZE] if stream.per_arm else rows[:, :_SIZE] @ theta
        noise = stream.noise * rng.standard_normal()
        presented: RoundArguments = {"context": rows} if stream.per_arm else {"features": rows}
        if logs:
            with np.errstate(divide="ignore", over="ignore"):
                inverse = 1.0 / opt.policy(**presented)
            squares += inverse.mean() / n / stream.rounds, inverse[np.argmax(values)] / stream.rounds
        trial = opt.ask(**presented)
        opt.tell(trial, float(values[trial.index]) + noise)
        total += float(values.max() - values[trial.index])
    return Played(total, *(1.0 / squares).tolist()) if logs else Played(total)


def _algorithm(stream: Stream, groups: Sequence[IntArray], settings: State, seed: int) -> EvidenceMixture:
    if not stream.per_arm:
        models = ModelClass.from_blocks({f"set {k}": len(group) for k, group in enumerate(groups)})
        return EvidenceMixture(models, Candidates(), random_state=seed, **settings)
    arms = Arms([f"arm {k}" for k in range(stream.candidates)])
    sets = {f"set {k}": group.tolist() for k, group in enumerate(groups)}
    return EvidenceMixture(ModelClass.per_arm(sets, arms), arms, random_state=seed, **settings)


def table(streams: Sequence[Stream], entrants: dict[str, State], seeds: int, workers: int | None = None) -> str:
    """Mean regret and its standard error, one row per entrant."""
    return _shown(_runs(streams, entrants, seeds, workers)[..., 0], streams, entrants, 1)


def three_tables(streams: Sequence[Stream], entrants: dict[str, State], seeds: int, workers: int | None = None) -> str:
    """The same, and what the logs are worth for even play and for the best choices."""
    found = _runs(streams, entrants, seeds, workers, logs=True)
    titles = (
        "Regret",
        "A round of the log in evaluating even play",
        "A round of the log in evaluating the best choices",
    )
    parts = [
        f"{title}. {_shown(found[..., k], streams, entrants, 1 if k == 0 else 3)}" for k, title in enumerate(titles)
    ]
    return "\n\n".join(parts)


def _runs(
    streams: Sequence[Stream], entrants: dict[str, State], seeds: int, workers: int | None, logs: bool = False
) -> FloatArray:
    """(entrants, streams, seeds, 3)."""
    runs = [(stream, entrants[name], seed, logs) for name in entrants for stream in streams for seed in range(seeds)]
    return np.reshape(spread(_play, runs, workers), (len(entrants), len(streams), seeds, 3))


def _shown(found: FloatArray, streams: Sequence[Stream], names: Iterable[str], digits: int) -> str:
    seeds = found.shape[2]
    lines = [
        f"Mean ± standard error of {seeds} seeds.",
        "",
        "| | " + " | ".join(stream.name for stream in streams) + " |",
        "|---|" + "---|" * len(streams),
    ]
    for name, row in zip(names, found, strict=True):
        cells = [f"{one.mean():.{digits}f} ± {one.std(ddof=1) / sqrt(seeds):.{digits}f}" for one in row]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _play(run: tuple[Stream, State, int, bool]) -> Played:
    return play(*run)


STREAMS = (
    Stream("10 new candidates", 10, 500, 0.5),
    Stream("10 new candidates, noise 2", 10, 500, 2.0),
    Stream("5 arms", 5, 500, 0.5, per_arm=True),
    Stream("2 arms, noise 1", 2, 500, 1.0, per_arm=True),
)
ENTRANTS: dict[str, State] = {
    "ucb": {"rule": "ucb"},
    "ids": {"rule": "ids"},
    "thompson, 8 draws": {"rule": "thompson"},
    "matching, floor 0": {"rule": Matching(), "floor": 0.0},
    "matching, sharpness 2, floor 0": {"rule": Matching(sharpness=2.0), "floor": 0.0},
    "matching": {"rule": "matching"},
    "matching, share 0.5": {"rule": Matching(share=0.5)},
    "matching, share 0.25 (default)": {},
    "matching, share 0.1": {"rule": Matching(share=0.1)},
    "ucb, floor 0.01": {"rule": "ucb", "floor": 0.01},
    "ucb, floor 0.05": {"rule": "ucb", "floor": 0.05},
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description="Regret of rules where candidates are new in every round.")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rounds", type=int, help="fewer rounds than the streams have")
    parser.add_argument("--workers", type=int, help="processes; all cores by default")
    chosen = parser.parse_args(arguments)
    streams = [replace(stream, rounds=chosen.rounds or stream.rounds) for stream in STREAMS]
    print(three_tables(streams, ENTRANTS, chosen.seeds, chosen.workers))


if __name__ == "__main__":
    main()
