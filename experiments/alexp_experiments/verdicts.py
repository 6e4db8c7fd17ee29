"""How often `ope.verdict` is wrong at any moment of a growing log, at delta = 0.05.

``python -m alexp_experiments.verdicts [--logs 1000] [--rounds 1000]`` prints the part "verdicts" of
docs/evaluation-results.md. Digits as a bandit, with adaptive loggers (`evaluation_coverage`); a sixth of the rewards is
lost or still pending, independently of their values. The last row has logs of `EvidenceMixture`, of 200 rounds.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from alexp import ope
from alexp.common.arrays import FloatArray, IntArray
from alexp_experiments.core.runner import spread
from alexp_experiments.evaluation_coverage import (
    ARMS,
    digit_logs,
    digit_policy,
    digits,
    holds,
    own_algorithm,
    own_problem,
)

MISSING = 1.0 / 6.0
PART = 100  # logs that are made at once
OWN_ROUNDS = 200


class ReadLog(NamedTuple):
    """One log: whether every claim was true, the sentence at the end, and the true difference there."""

    right: bool
    sentence: str
    true: float


def judged(
    log: ope.Log,
    incumbent: ope.estimators.Policy,
    policy: ope.estimators.Policy | None,
    gains: FloatArray,
    method: ope.sequences.Method = "drifting",
) -> ReadLog:
    """A verdict against the true gains of all rounds, (n,)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ope.LogWarning)
        found = ope.verdict(log, incumbent, policy, method=method)
    some = gains[log.usable]
    moving = np.cumsum(some) / np.arange(1, some.size + 1)
    return ReadLog(holds(found.running_lower, found.running_upper, moving), found.verdict, float(moving[-1]))


def with_gaps(log: ope.Log, rng: np.random.Generator) -> ope.Log:
    """The log without a sixth of its rewards."""
    gone = rng.random(len(log)) < MISSING
    return ope.Log(np.where(gone, np.nan, log.rewards), log.propensities, log.index, log.n)


def alike(policy: FloatArray, labels: IntArray) -> FloatArray:
    """Another policy of the same value in every round: wrong classes exchange their probabilities."""
    columns = np.arange(ARMS - 1)
    wrong = (labels[:, None] + 1 + columns) % ARMS
    turned = (labels[:, None] + 1 + (columns + 1) % (ARMS - 1)) % ARMS
    found, each = policy.copy(), np.arange(len(policy))[:, None]
    found[each, wrong] = policy[each, turned]
    return found


def digit_part(part: tuple[str, int, int], rounds: int) -> dict[str, list[ReadLog]]:
    """The verdicts on some logs of one logger."""
    logger, first, logs = part
    labels = digits()[1]
    sharp, soft = digit_policy("sharp"), digit_policy("soft")
    played = digit_logs(logger, logs, rounds, first)
    rng = np.random.default_rng([first, 1])
    found: dict[str, list[ReadLog]] = {}
    same, each = alike(sharp, labels), np.arange(rounds)
    for k in range(logs):
        images = played.images[k]
        log, right = with_gaps(played.log(k), rng), labels[images]
        own = played.probabilities[k][each, right]
        value = {"sharp": sharp[images, right], "soft": soft[images, right], "even": 1.0 / ARMS}
        for title, one in {
            f"{logger} itself against even play": judged(log, _even, None, own - value["even"]),
            f"{logger} itself against a better policy": judged(log, sharp[images], None, own - value["sharp"]),
            "shadow: a sharper policy": judged(log, soft[images], sharp[images], value["sharp"] - value["soft"]),
            "shadow: two policies of one value": judged(log, same[images], sharp[images], np.zeros(rounds)),
        }.items():
            found.setdefault(title, []).append(one)
    return found


def own_part(seed: int, rounds: int = OWN_ROUNDS) -> dict[str, list[ReadLog]]:
    """The verdict on one log of `EvidenceMixture`, which plays itself, against even play."""
    rows, chances = own_problem()
    rng = np.random.default_rng([seed, 2])
    opt = own_algorithm("mixture", seed)
    gains = np.empty(rounds)
    for t in range(rounds):
        k = int(rng.integers(len(rows)))
        gains[t] = opt.policy(features=rows[k]) @ chances[k] - chances[k].mean()
        trial = opt.ask(features=rows[k])
        if rng.random() > MISSING:
            opt.tell(trial, float(rng.random() < chances[k][trial.index]))
    log = ope.Log.from_frame(opt.log_frame())
    return {"EvidenceMixture itself against even play": [judged(log, _even, None, gains)]}


def _even(round_: ope.LoggedRound) -> FloatArray:
    return np.full(round_.n, 1.0 / round_.n)


def figures(logs: int, rounds: int, own: int, seed: int, workers: int | None = 1) -> dict[str, list[ReadLog]]:
    """The verdicts on `logs` logs of each logger and `own` of `EvidenceMixture`, by title."""
    parts = [(name, seed + k, min(PART, logs - k)) for name in ("greedy", "thompson") for k in range(0, logs, PART)]
    found: dict[str, list[ReadLog]] = {}
    digits_, mixtures = partial(digit_part, rounds=rounds), range(seed, seed + own)
    for some in (*spread(digits_, parts, workers), *spread(own_part, mixtures, workers)):
        for title, several in some.items():
            found.setdefault(title, []).extend(several)
    return found


def table(found: dict[str, list[ReadLog]]) -> str:
    """The figures as a Markdown table."""
    lines = [
        "| | logs | a false claim at any moment | at the end: better | worse | not yet | true difference |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for title, some in found.items():
        said = [sum(one.sentence.startswith(word) for one in some) for word in ("better", "worse", "not yet")]
        counts = " | ".join(map(str, (len(some), sum(not one.right for one in some), *said)))
        lines.append(f"| {title} | {counts} | {np.mean([one.true for one in some]):.3f} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=1000, help="of every logger")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, help="processes; all cores by default")
    chosen = parser.parse_args(arguments)
    found = figures(chosen.logs, chosen.rounds, chosen.logs, chosen.seed, workers=chosen.workers)
    print(f"{chosen.logs} logs of each logger, {chosen.rounds} rounds, seeds from {chosen.seed}.\n\n{table(found)}")


if __name__ == "__main__":
    main()
