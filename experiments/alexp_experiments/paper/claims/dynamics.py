"""Claims about q_t on the large class: what it rules out, and what it does to the true model."""

from __future__ import annotations

import numpy as np

from alexp_experiments.core.statistics import estimate
from alexp_experiments.core.tasks import SNAPSHOT_ROUND, Record
from alexp_experiments.paper.claims.rules import Claim, above, below, often, verdict
from alexp_experiments.paper.results import Results

LIMIT = 0.25


def ruled_out(results: Results) -> Claim:
    """Most agents are ruled out at t = 20 though few have played."""
    records = results.runs["large", "alexp"]
    m = records[0].snapshot.size
    out = estimate([np.mean(record.snapshot < 0.1 / m) for record in records])
    tiny = estimate([np.mean(record.snapshot < 0.01 / m) for record in records])
    visited = estimate([record.visited[min(SNAPSHOT_ROUND, record.visited.size) - 1] / m for record in records])
    return Claim(
        f"At t = {SNAPSHOT_ROUND} more than 80% of the agents are practically ruled out, and less than 10% have been "
        f"queried (M = {m}).",
        "mean share of agents with q below a tenth of 1/M above 0.8, mean share that has played at most 0.1, each with "
        "its whole 95% interval",
        (
            f"share of agents with q < 0.1/M: {out}; with q < 0.01/M: {tiny}",
            f"share of agents that had played: {visited}",
        ),
        verdict([above(out, 0.8), below(visited, 0.1)]),
    )


def true_rank(record: Record) -> int:
    """How many models have a larger q than the true one at t = 20, plus one."""
    q = record.snapshot
    return int(np.sum(q > q[record.true_model] * (1.0 + 1e-5))) + 1


def shown_run(results: Results) -> str:
    """Where the true model is in the run that Figure 4 (a) shows."""
    record = results.runs["large", "alexp"][results.typical]
    q = record.snapshot
    near = int(np.sum(q >= 0.9 * q.max()))
    return (
        f"in the run of Figure 4 (a), seed {results.scope.seeds[results.typical]}, it has rank {true_rank(record)} of "
        f"{q.size}, with {q[record.true_model] / q.max():.2f} of the largest q; {near} models have at least 0.9 of it"
    )


def leads(results: Results) -> Claim:
    """The true model is on top, alone or with others."""
    records = results.runs["large", "alexp"]
    rank = [true_rank(record) for record in records]
    first = [one == 1 for one in rank]
    m = records[0].snapshot.size
    return Claim(
        f"At t = {SNAPSHOT_ROUND} the true model has the highest probability of selection.",
        "in at least 80% of the runs (holds), in at least 20% (partly); those count in which others are level with it",
        (f"on top in {sum(first)} of {len(first)} runs; median rank {np.median(rank):.0f} of {m}", shown_run(results)),
        often(float(np.mean(first)), 0.8, 0.2),
    )


def below_quarter(results: Results) -> Claim:
    """q of the true model stays below 0.25, and above that of the others.

    The paper: "While this probability is higher than that of the other agents, [...] q is not exceeding 0.25, therefore
    there is always a probability of greater than 0.75 that we sample another agent". A q that never moves away from
    1/M would stay below 0.25 and contradict the sentence all the same. Three things are asked: (a) the mean curve stays
    below 0.25 with its 95% interval; (b) so does every single run, since "always" is said of a run; (c) in the last
    quarter of the rounds q of the true model is above the average of the others, hence above 1/M, in at least two
    thirds of the runs.
    """
    curves = np.array([record.q_true for record in results.runs["large", "alexp"]], dtype=np.float64)
    m = results.runs["large", "alexp"][0].snapshot.size
    top = estimate(curves[:, int(np.argmax(curves.mean(axis=0)))])
    over = int(np.sum(curves.max(axis=1) > LIMIT))
    late = curves[:, -max(curves.shape[1] // 4, 1) :].mean(axis=1)
    higher = int(np.sum(late > 1.0 / m))
    return Claim(
        f"The probability of the true model, while higher than that of the others, does not exceed 0.25 (M = {m}).",
        "the mean curve stays below 0.25 with its 95% interval, every single run does, and in at least two thirds of "
        "the runs q of the true model is above 1/M over the last quarter of the rounds",
        (
            f"largest value of the mean curve: {top.mean:.3f} [{top.low:.3f}, {top.high:.3f}], 1/M = {1.0 / m:.4f}",
            f"above 0.25 at some time in {over} of {len(curves)} runs, the largest value being {curves.max():.2f}",
            f"above 1/M over the last quarter in {higher} of {len(curves)} runs; median there {np.median(late):.2g}",
        ),
        verdict([below(top, LIMIT), over == 0, higher >= 2.0 / 3.0 * len(curves)]),
    )
