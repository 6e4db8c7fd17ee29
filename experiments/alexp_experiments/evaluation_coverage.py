"""How often intervals of off-policy evaluation hold at all rounds at once, on adaptive logs.

``python -m alexp_experiments.evaluation_coverage [--logs 100] [--rounds 2000]`` prints the part "coverage" of
docs/evaluation-results.md: two adaptive loggers, three policies with known values, all kinds of intervals, and the
i.i.d. interval of textbooks (mean +- 1.96 standard errors, from round 30 on), at the end and read after every round.
With ``--own`` it prints the part "own", about logs of this library's own algorithms.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from alexp import ALExp, EvidenceMixture, LinUCB, ope
from alexp.algorithms.base import Algorithm
from alexp.common.arrays import FloatArray, IntArray
from alexp.ope.sequences import METHODS
from alexp.problem import Candidates, ModelClass
from alexp_experiments.core.runner import spread

ARMS = 10
EXPLORE = 0.2  # share of uniform exploration in every round
FLOOR = EXPLORE / ARMS
DRAWS = 20  # from the posterior, per round of the Thompson logger
OWN_COEFFICIENTS = np.array([0.25, -0.2, 0.1, 0.0, 0.0])

Estimator = Callable[..., ope.PolicyValue]
Ways = Mapping[str, tuple[Estimator, dict[str, Any]]]
Judged = dict[str, list[tuple[bool, float]]]  # whether the interval held, and its width at the end, of each log
Figures = dict[tuple[str, str, str], tuple[int, float]]

RANGE = (0.0, 1.0)
LOGGERS, POLICIES = ("greedy", "thompson"), ("sharp", "soft", "wrong")
WAYS: Ways = {
    "ips, betting": (ope.ips, {}),
    "ips, betting, floor": (ope.ips, {"floor": FLOOR}),
    "dr, betting, floor": (ope.dr, {"floor": FLOOR}),
    "ips, hedged": (ope.ips, {"method": "hedged"}),
    "dr, hedged, floor": (ope.dr, {"method": "hedged", "floor": FLOOR}),
    "ips, bernstein": (ope.ips, {"method": "bernstein"}),
    "dr, bernstein, floor": (ope.dr, {"method": "bernstein", "floor": FLOOR}),
    "ips, drifting": (ope.ips, {"method": "drifting"}),
    "dr, drifting, floor": (ope.dr, {"method": "drifting", "floor": FLOOR}),
}
OWN: Ways = {
    **{f"ips, {method}": (ope.ips, {"method": method}) for method in METHODS},
    # Of the mixture: 1% of even play, at most 6 candidates.
    **{f"dr, {method}, floor": (ope.dr, {"method": method, "floor": 0.01 / 6}) for method in METHODS},
}
IID = ("i.i.d., at the end", "i.i.d., every round")
FIRST_LOOK = 30


# -- digits as a bandit: a round shows an image, an action is a class, its reward is 1 if the class is right ------


class DigitLogs(NamedTuple):
    """L logs of n rounds: images (L, n), actions, rewards, probabilities of all classes and predictions (L, n, 10)."""

    images: IntArray
    actions: IntArray
    rewards: FloatArray
    probabilities: FloatArray
    predictions: FloatArray

    @property
    def propensities(self) -> FloatArray:
        """Probabilities of the played classes, (L, n)."""
        return np.take_along_axis(self.probabilities, self.actions[:, :, None], axis=2)[:, :, 0]

    def log(self, k: int) -> ope.Log:
        """Log number k."""
        return ope.Log(self.rewards[k], self.propensities[k], self.actions[k], ARMS)


@cache
def digits(size: int = 12) -> tuple[FloatArray, IntArray]:
    """Images as a constant and their first principal components, (1797, size + 1), and their classes."""
    pixels, labels = load_digits(return_X_y=True)
    centred = pixels / 16.0 - (pixels / 16.0).mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    scores = centred @ directions[:size].T
    return np.hstack([np.ones((len(scores), 1)), scores / scores.std(axis=0)]), labels


def digit_policy(kind: str, seed: int = 1) -> FloatArray:
    """Probabilities of the policy "sharp", "soft" or "wrong" on all images, (1797, 10)."""
    rows, labels = digits()
    some = np.random.default_rng(seed).choice(len(rows), 150, replace=False)
    gram = rows[some].T @ rows[some] + np.eye(rows.shape[1])
    scores = rows @ np.linalg.solve(gram, rows[some].T @ np.eye(ARMS)[labels[some]])
    sharpness = {"sharp": 12.0, "soft": 2.0, "wrong": 12.0}[kind]
    weights = np.exp(sharpness * (scores - scores.max(axis=1, keepdims=True)))
    found: FloatArray = weights / weights.sum(axis=1, keepdims=True)
    return np.roll(found, 1, axis=1) if kind == "wrong" else found


def digit_value(policy: FloatArray) -> float:
    """The true value of a policy, known because all labels are."""
    return float(policy[np.arange(len(policy)), digits()[1]].mean())


def digit_logs(logger: str, logs: int, rounds: int, seed: int) -> DigitLogs:
    """Logs of an adaptive logger, "greedy" or "thompson", with uniform exploration; images come with replacement.

    Loggers fit one linear model per class to what they have seen, so that propensities depend on everything before.
    """
    rows, labels = digits()
    rng = np.random.default_rng(seed)
    d, each = rows.shape[1], np.arange(logs)
    inverse = np.broadcast_to(np.eye(d), (logs, ARMS, d, d)).copy()
    moment, weights = np.zeros((logs, ARMS, d)), np.zeros((logs, ARMS, d))
    images = rng.integers(len(rows), size=(logs, rounds))
    out = DigitLogs(
        images,
        np.empty((logs, rounds), dtype=int),
        np.empty((logs, rounds)),
        np.empty((logs, rounds, ARMS)),
        np.empty((logs, rounds, ARMS)),
    )
    for t in range(rounds):
        x = rows[images[:, t]]
        scores = np.einsum("lad,ld->la", weights, x)
        out.predictions[:, t] = np.clip(scores, 0.0, 1.0)
        if logger == "greedy":
            favoured = (scores >= scores.max(axis=1, keepdims=True) - 1e-12).astype(float)
        else:  # how often each class wins in draws from the posterior; the propensity is exact given these
            deviations = np.sqrt(np.einsum("lade,ld,le->la", inverse, x, x))
            draws = scores[:, :, None] + 0.3 * deviations[:, :, None] * rng.standard_normal((logs, ARMS, DRAWS))
            favoured = (draws == draws.max(axis=1, keepdims=True)).sum(axis=2).astype(float)
        chances = EXPLORE / ARMS + (1.0 - EXPLORE) * favoured / favoured.sum(axis=1, keepdims=True)
        actions = np.minimum((chances.cumsum(axis=1) < rng.random(logs)[:, None]).sum(axis=1), ARMS - 1)
        rewards = (labels[images[:, t]] == actions).astype(float)
        out.actions[:, t], out.rewards[:, t], out.probabilities[:, t] = actions, rewards, chances
        step = np.einsum("lde,le->ld", inverse[each, actions], x)
        step_norm = 1.0 + (x * step).sum(axis=1)
        inverse[each, actions] -= step[:, :, None] * step[:, None, :] / step_norm[:, None, None]
        moment[each, actions] += x * rewards[:, None]
        weights[each, actions] = np.einsum("lde,le->ld", inverse[each, actions], moment[each, actions])
    return out


# -- logs of this library's own algorithms, on rounds whose true rewards are known --------------------------------


def own_problem(seed: int = 0) -> tuple[list[FloatArray], list[FloatArray]]:
    """Rows (n_t, 5) and probabilities of reward (n_t,) of 200 rounds with 3 to 6 candidates.

    The first three columns matter; rewards are 0 or 1. Rounds are drawn with replacement, so that values are exact.
    """
    rng = np.random.default_rng(seed)
    rows = [rng.uniform(-1.0, 1.0, size=(int(rng.integers(3, 7)), 5)) for _ in range(200)]
    return rows, [0.5 + block @ OWN_COEFFICIENTS for block in rows]


def own_policy(chances: Sequence[FloatArray], sharpness: float = 8.0) -> list[FloatArray]:
    """A softmax of the probabilities of reward, per round; no logger plays it."""
    weights = [np.exp(sharpness * one) for one in chances]
    return [one / one.sum() for one in weights]


def own_value(policy: Sequence[FloatArray], chances: Sequence[FloatArray]) -> float:
    """The true value of a policy."""
    return float(np.mean([pi @ one for pi, one in zip(policy, chances, strict=True)]))


def own_algorithm(name: str, seed: int, **options: Any) -> Algorithm:
    """A logger by name: "mixture", "exploring", "alexp" or "linucb"."""
    models, domain = ModelClass.from_blocks({"first": 3, "second": 2}, intercept=True), Candidates()
    if name == "mixture":
        return EvidenceMixture(models, domain, random_state=seed, **options)
    if name == "exploring":
        return EvidenceMixture(models, domain, random_state=seed, rule="ucb", gamma=0.5, **options)
    options |= {"random_state": seed, "noise_std": 0.5, "reward_bound": 1.0}
    return ALExp(models, domain, **options) if name == "alexp" else LinUCB(models, domain, **options)


def own_run(name: str, rounds: int, seed: int, **options: Any) -> tuple[Algorithm, IntArray]:
    """A run of an algorithm, and the numbers of the rounds it has seen, (rounds,)."""
    rows, chances = own_problem()
    rng = np.random.default_rng([seed, 1])
    opt = own_algorithm(name, seed, **options)
    seen = rng.integers(len(rows), size=rounds)
    for k in seen:
        trial = opt.ask(features=rows[k])
        opt.tell(trial, float(rng.random() < chances[k][trial.index]))
    return opt, seen


# -- counting -----------------------------------------------------------------------------------------------------


def holds(lower: FloatArray, upper: FloatArray, value: FloatArray | float) -> bool:
    """Whether bounds hold at every round; `value` is one number, or one per round."""
    return bool(np.all(lower <= value) and np.all(value <= upper))


def figures(
    logs: int,
    rounds: int,
    seed: int,
    ways: Ways = WAYS,
    loggers: Sequence[str] = LOGGERS,
    policies: Sequence[str] = POLICIES,
    workers: int | None = 1,
) -> Figures:
    """{(logger, policy, way): (logs whose interval held at all rounds, mean width at the end)}."""
    columns = [(logger, kind) for logger in loggers for kind in policies]
    found = spread(partial(_column, logs=logs, rounds=rounds, seed=seed, ways=ways), columns, workers)
    return _counted(columns, found)


def _column(column: tuple[str, str], logs: int, rounds: int, seed: int, ways: Ways) -> Judged:
    """The intervals of all logs of one logger and one policy."""
    logger, kind = column
    played, policy = digit_logs(logger, logs, rounds, seed), digit_policy(kind)
    value = digit_value(policy)
    results: Judged = {way: [] for way in (*ways, *IID)}
    for k in range(logs):
        images = played.images[k]
        log, new = played.log(k), policy[images]
        moving = np.cumsum(policy[images, digits()[1][images]]) / np.arange(1, rounds + 1)
        for way, (estimator, options) in ways.items():
            extra = {"model": played.predictions[k]} if estimator is ope.dr else {}
            results[way].append(_judged(estimator, log, new, moving, value, options | extra))
        _judge_iid(results, log, new, value)
    return results


def _judged(
    estimator: Estimator,
    log: ope.Log,
    new: FloatArray | list[FloatArray],
    moving: FloatArray,
    value: float,
    options: Mapping[str, Any],
) -> tuple[bool, float]:
    """Whether an interval held at every round, and its width at the end.

    `moving` is the mean value over the contexts so far, which "drifting" is about.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ope.LogWarning)
        result = estimator(log, new, reward_range=RANGE, **options)
    about = moving if result.method == "drifting" else value
    return holds(result.running_lower, result.running_upper, about), result.upper - result.lower


def _judge_iid(results: Judged, log: ope.Log, new: FloatArray | list[FloatArray], value: float) -> None:
    """Mean +- 1.96 standard errors of the IPS terms, after each round."""
    weights = np.array([new[t][log.index[t]] for t in range(len(log))]) / log.propensities
    terms = weights * log.rewards
    t = np.arange(1, len(log) + 1)
    mean = np.cumsum(terms) / t
    error = np.sqrt(np.maximum(np.cumsum(terms**2) / t - mean**2, 0.0) / t)
    low, high = mean - 1.96 * error, mean + 1.96 * error
    results[IID[0]].append((bool(low[-1] <= value <= high[-1]), float(high[-1] - low[-1])))
    results[IID[1]].append((holds(low[FIRST_LOOK:], high[FIRST_LOOK:], value), float(high[-1] - low[-1])))


def _counted(columns: Iterable[tuple[str, str]], found: Iterable[Judged]) -> Figures:
    counted: Figures = {}
    for column, results in zip(columns, found, strict=True):
        for way, pairs in results.items():
            if pairs:
                held, widths = np.array(pairs, dtype=float).T
                counted[*column, way] = (int(held.sum()), float(widths.mean()))
    return counted


def own_figures(
    logs: int, rounds: int, seed: int, names: Sequence[str] = ("mixture", "alexp"), workers: int | None = 1
) -> Figures:
    """The same for logs of this library's own algorithms."""
    runs = [(name, seed + k) for name in names for k in range(logs)]
    found = spread(partial(_own_log, rounds=rounds), runs, workers)
    merged: dict[str, Judged] = {name: {way: [] for way in (*OWN, *IID)} for name in names}
    for (name, _), results in zip(runs, found, strict=True):
        for way, pairs in results.items():
            merged[name][way] += pairs
    return _counted([(name, "softmax of the truth") for name in names], merged.values())


def _own_log(run: tuple[str, int], rounds: int) -> Judged:
    """The intervals of one log."""
    name, seed = run
    _, chances = own_problem()
    policy = own_policy(chances)
    value = own_value(policy, chances)
    results: Judged = {way: [] for way in (*OWN, *IID)}
    opt, seen = own_run(name, rounds, seed, log_features="all")
    log, new = ope.Log.from_frame(opt.log_frame()), [policy[i] for i in seen]
    moving = np.cumsum([new[t] @ chances[i] for t, i in enumerate(seen)]) / np.arange(1, rounds + 1)
    for way, (estimator, options) in OWN.items():
        if name == "mixture" or "floor" not in way:
            results[way].append(_judged(estimator, log, new, moving, value, options))
    _judge_iid(results, log, new, value)
    return results


def table(found: Figures, logs: int) -> str:
    """The figures as a Markdown table."""
    heads = list(dict.fromkeys((logger, kind) for logger, kind, _ in found))
    lines = [
        "| interval | " + " | ".join(f"{logger}, {kind}" for logger, kind in heads) + " |",
        "|---|" + "---:|" * len(heads),
    ]
    for way in dict.fromkeys(way for _, _, way in found):
        cells = (found.get((*head, way)) for head in heads)
        lines.append(f"| {way} | " + " | ".join(_cell(cell, logs) for cell in cells) + " |")
    return "\n".join(lines)


def _cell(cell: tuple[int, float] | None, logs: int) -> str:
    return "" if cell is None else f"{cell[0]}/{logs}, {cell[1]:.3f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--own", action="store_true", help="logs of this library's own algorithms")
    parser.add_argument("--workers", type=int, help="processes; all cores by default")
    chosen = parser.parse_args(arguments)
    measure = own_figures if chosen.own else figures
    found = measure(chosen.logs, chosen.rounds, chosen.seed, workers=chosen.workers)
    print(f"{chosen.logs} logs of {chosen.rounds} rounds, seed {chosen.seed}.\n\n{table(found, chosen.logs)}")


if __name__ == "__main__":
    main()
