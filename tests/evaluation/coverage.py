"""How often intervals hold at all moments at once: `python -m tests.evaluation.coverage [--logs 100] [--rounds 2000]`.

Two adaptive loggers, three policies with known values, all ways to make intervals, and the i.i.d. interval that
textbooks give (mean +- 1.96 standard errors, from round 30 on), at the end and read after every round. --own does the
same for logs of this library's own algorithms. They print the parts "coverage" and "own" of docs/evaluation.md.
"""

import argparse
import warnings
from functools import partial

import numpy as np

from alexp import ope
from alexp.evaluation.sequences import METHODS
from alexp_experiments.core.runner import spread
from tests.evaluation import adaptive, own

RANGE = (0.0, 1.0)
LOGGERS, POLICIES = ("greedy", "thompson"), ("sharp", "soft", "wrong")
WAYS = {
    "ips, betting": (ope.ips, {}),
    "ips, betting, floor": (ope.ips, {"floor": adaptive.FLOOR}),
    "dr, betting, floor": (ope.dr, {"floor": adaptive.FLOOR}),
    "ips, hedged": (ope.ips, {"method": "hedged"}),
    "dr, hedged, floor": (ope.dr, {"method": "hedged", "floor": adaptive.FLOOR}),
    "ips, bernstein": (ope.ips, {"method": "bernstein"}),
    "dr, bernstein, floor": (ope.dr, {"method": "bernstein", "floor": adaptive.FLOOR}),
    "ips, drifting": (ope.ips, {"method": "drifting"}),
    "dr, drifting, floor": (ope.dr, {"method": "drifting", "floor": adaptive.FLOOR}),
}
IID = ("i.i.d., at the end", "i.i.d., every round")
FIRST_LOOK = 30


def log_of(logs, k):
    """Log number k."""
    return ope.Log(logs.rewards[k], logs.propensities[k], logs.actions[k], adaptive.ARMS)


def holds(lower, upper, value):
    """Whether bounds hold at every moment; `value` is one number, or one per moment."""
    return bool(np.all(lower <= value) and np.all(value <= upper))


def running_value(policy, images):
    """The policy's mean value over the images seen so far, (n,), which is what "drifting" is about."""
    own = policy[images, adaptive.digits()[1][images]]
    return np.cumsum(own) / np.arange(1, own.size + 1)


def iid_bounds(log, policy):
    """Mean +- 1.96 standard errors of the IPS terms after each round."""
    weights = np.array([policy[t][log.index[t]] for t in range(len(log))]) / log.propensities
    terms = weights * log.rewards
    t = np.arange(1, len(log) + 1)
    mean = np.cumsum(terms) / t
    error = np.sqrt(np.maximum(np.cumsum(terms**2) / t - mean**2, 0.0) / t)
    return mean - 1.96 * error, mean + 1.96 * error


def figures(logs, rounds, seed, ways=WAYS, loggers=LOGGERS, policies=POLICIES, workers=1):
    """{(logger, policy, way): (logs whose interval held at all moments, mean width at the end)}."""
    columns = [(logger, kind) for logger in loggers for kind in policies]
    found = spread(partial(_column, logs=logs, rounds=rounds, seed=seed, ways=ways), columns, workers)
    return _counted(columns, found)


def _column(column, logs, rounds, seed, ways):
    """{way: [(held, width) of each log]} for one logger and one policy."""
    logger, kind = column
    played, policy = adaptive.play(logger, logs, rounds, seed), adaptive.target(kind)
    value = adaptive.value(policy)
    results = {way: [] for way in (*ways, *IID)}
    for k in range(logs):
        log, new = log_of(played, k), policy[played.images[k]]
        for way, (estimator, options) in ways.items():
            extra = {"model": played.predictions[k]} if estimator is ope.dr else {}
            results[way].append(
                _judged(estimator, log, new, running_value(policy, played.images[k]), value, options | extra)
            )
        _judge_iid(results, log, new, value)
    return results


def _judged(estimator, log, new, moving, value, options):
    """Whether an interval held at every moment, and its width at the end; "drifting" is about the moving value."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ope.LogWarning)
        result = estimator(log, new, reward_range=RANGE, **options)
    about = moving if result.method == "drifting" else value
    return holds(result.running_lower, result.running_upper, about), result.upper - result.lower


def _judge_iid(results, log, new, value):
    low, high = iid_bounds(log, new)
    results[IID[0]].append((low[-1] <= value <= high[-1], high[-1] - low[-1]))
    results[IID[1]].append((holds(low[FIRST_LOOK:], high[FIRST_LOOK:], value), high[-1] - low[-1]))


def _counted(columns, found):
    counted = {}
    for column, results in zip(columns, found, strict=True):
        for way, pairs in results.items():
            if pairs:
                held, widths = np.array(pairs, dtype=float).T
                counted[*column, way] = (int(held.sum()), float(widths.mean()))
    return counted


OWN = {
    **{f"ips, {method}": (ope.ips, {"method": method}) for method in METHODS},
    # Of "matching": 1% of even play, at most 6 candidates.
    **{f"dr, {method}, floor": (ope.dr, {"method": method, "floor": 0.01 / 6}) for method in METHODS},
}


def own_figures(logs, rounds, seed, names=("matching", "alexp"), workers=1):
    """The same for logs of this library's own algorithms."""
    runs = [(name, seed + k) for name in names for k in range(logs)]
    found = spread(partial(_own_log, rounds=rounds), runs, workers)
    merged = {name: {way: [] for way in (*OWN, *IID)} for name in names}
    for (name, _), results in zip(runs, found, strict=True):
        for way, pairs in results.items():
            merged[name][way] += pairs
    return _counted([(name, "softmax of the truth") for name in names], merged.values())


def _own_log(run, rounds):
    """{way: [(held, width)]} of one log."""
    name, seed = run
    _, chances = own.problem()
    policy = own.policy(chances)
    value = own.value(policy, chances)
    results = {way: [] for way in (*OWN, *IID)}
    opt, seen = own.play(name, rounds, seed, log_features="all")
    log, new = ope.Log.from_frame(opt.log_frame()), [policy[i] for i in seen]
    moving = np.cumsum([new[t] @ chances[i] for t, i in enumerate(seen)]) / np.arange(1, rounds + 1)
    for way, (estimator, options) in OWN.items():
        if name == "matching" or "floor" not in way:
            results[way].append(_judged(estimator, log, new, moving, value, options))
    _judge_iid(results, log, new, value)
    return results


def table(found, logs):
    """The figures as text."""
    heads = list(dict.fromkeys(key[:2] for key in found))
    lines = [
        "| interval | " + " | ".join(f"{logger}, {kind}" for logger, kind in heads) + " |",
        "|---|" + "---:|" * len(heads),
    ]
    for way in dict.fromkeys(key[2] for key in found):
        cells = (found.get((*head, way)) for head in heads)
        lines.append(f"| {way} | " + " | ".join(_cell(cell, logs) for cell in cells) + " |")
    return "\n".join(lines)


def _cell(cell, logs):
    return "" if cell is None else f"{cell[0]}/{logs}, {cell[1]:.3f}"


def main(arguments=None):
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
