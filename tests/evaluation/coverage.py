"""How often intervals hold at all moments at once: `python -m tests.evaluation.coverage [--logs 100] [--rounds 2000]`.

Two adaptive loggers, three policies with known values, all ways to make intervals, and the i.i.d. interval that
textbooks give (mean +- 1.96 standard errors, from round 30 on), at the end and read after every round. With --write the
table goes into docs/evaluation.md. --own does the same for logs of this library's own algorithms.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np

from alexp import ope
from alexp.evaluation.sequences import METHODS
from tests.evaluation import adaptive, own

PAGE = Path(__file__).parents[2] / "docs/evaluation.md"
BEGIN, END = "<!-- coverage: begin -->", "<!-- coverage: end -->"
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


def figures(logs, rounds, seed, ways=WAYS, loggers=LOGGERS, policies=POLICIES):
    """{(logger, policy, way): (logs whose interval held at all moments, mean width at the end)}."""
    found = {}
    for logger in loggers:
        played = adaptive.play(logger, logs, rounds, seed)
        for kind in policies:
            policy = adaptive.target(kind)
            value = adaptive.value(policy)
            results = {way: [] for way in (*ways, *IID)}
            for k in range(logs):
                log, new = log_of(played, k), policy[played.images[k]]
                for way, (estimator, options) in ways.items():
                    extra = {"model": played.predictions[k]} if estimator is ope.dr else {}
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", ope.LogWarning)
                        result = estimator(log, new, reward_range=RANGE, **options, **extra)
                    about = running_value(policy, played.images[k]) if result.method == "drifting" else value
                    held = holds(result.running_lower, result.running_upper, about)
                    results[way].append((held, result.upper - result.lower))
                low, high = iid_bounds(log, new)
                results[IID[0]].append((low[-1] <= value <= high[-1], high[-1] - low[-1]))
                results[IID[1]].append((holds(low[FIRST_LOOK:], high[FIRST_LOOK:], value), high[-1] - low[-1]))
            for way, pairs in results.items():
                held, widths = np.array(pairs, dtype=float).T
                found[logger, kind, way] = (int(held.sum()), float(widths.mean()))
    return found


OWN = {
    **{f"ips, {method}": (ope.ips, {"method": method}) for method in METHODS},
    # Of "matching": 1% of even play, at most 6 candidates.
    **{f"dr, {method}, floor": (ope.dr, {"method": method, "floor": 0.01 / 6}) for method in METHODS},
}


def own_figures(logs, rounds, seed, names=("matching", "alexp")):
    """The same for logs of this library's own algorithms."""
    _, chances = own.problem()
    policy = own.policy(chances)
    value = own.value(policy, chances)
    found = {}
    for name in names:
        ways = {way: how for way, how in OWN.items() if name == "matching" or "floor" not in way}
        results = {way: [] for way in (*OWN, *IID)}
        for k in range(logs):
            opt, seen = own.play(name, rounds, seed + k, log_features="all")
            log, new = ope.Log.from_frame(opt.log_frame()), [policy[i] for i in seen]
            moving = np.cumsum([new[t] @ chances[i] for t, i in enumerate(seen)]) / np.arange(1, rounds + 1)
            for way, (estimator, options) in ways.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ope.LogWarning)
                    result = estimator(log, new, reward_range=RANGE, **options)
                about = moving if result.method == "drifting" else value
                held = holds(result.running_lower, result.running_upper, about)
                results[way].append((held, result.upper - result.lower))
            low, high = iid_bounds(log, new)
            results[IID[0]].append((low[-1] <= value <= high[-1], high[-1] - low[-1]))
            results[IID[1]].append((holds(low[FIRST_LOOK:], high[FIRST_LOOK:], value), high[-1] - low[-1]))
        for way, pairs in results.items():
            if pairs:
                held, widths = np.array(pairs, dtype=float).T
                found[name, "softmax of the truth", way] = (int(held.sum()), float(widths.mean()))
    return found


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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--own", action="store_true", help="logs of this library's own algorithms")
    parser.add_argument("--write", action="store_true", help="put the table into docs/evaluation.md")
    chosen = parser.parse_args()
    text = table((own_figures if chosen.own else figures)(chosen.logs, chosen.rounds, chosen.seed), chosen.logs)
    print(text)
    if chosen.write:
        begin, end = (mark.replace("coverage", "own" if chosen.own else "coverage") for mark in (BEGIN, END))
        before, rest = PAGE.read_text(encoding="utf-8").split(begin)
        said = f"{chosen.logs} logs of {chosen.rounds} rounds, seed {chosen.seed}."
        page = f"{before}{begin}\n{said}\n\n{text}\n{end}{rest.split(end)[1]}"
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
