"""Does routing pay? Prompts go to a small or a large language model; the reward is 1 for a right answer, less a cost.

``python -m alexp_experiments.contextual.routellm "$ALEXP_BOARD/routellm_mmlu_half.npz"`` prints a table of
docs/routing.md, with ``--defaults`` the one where nothing is stated. The file has RouteLLM's answers to MMLU prompts
(github.com/lm-sys/RouteLLM, Apache-2.0): the subject, four counts, a text embedding, and whether each model was right.
Without a file, prompts are made up (`routing`).

The large model costs the difference in accuracy, so that both are worth the same. Two policies frame the others: the
better of the two models for all prompts, and logistic regressions of both answers on all features, trained beforehand
on prompts that are not routed. A policy is measured by the share of the gap between them that it closes: by the answers
that were given, and, with less noise, by the probabilities of right answers that these regressions predict.

Prompts whose number in the source leaves less than 3 when divided by 7 are those that constants were chosen on, and
that the logistic regressions are trained on; the others are routed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np

from alexp.algorithms import Algorithm, EvidenceMixture
from alexp.algorithms.assumptions import quietly
from alexp.algorithms.evidence_mixture import RATIOS
from alexp.common.arrays import BoolArray, FloatArray
from alexp.common.codec import State
from alexp.problem import Arms, ModelClass
from alexp.problem.contextual import Given
from alexp.rivals import LinUCB
from alexp_experiments.contextual.playing import Pick
from alexp_experiments.contextual.routing import BLOCKS, routing_stream
from alexp_experiments.contextual.streams import ContextRound, ContextStream
from alexp_experiments.core.runner import spread

LAST = 2000  # rounds that the last column is about
CORRELATION = 0.8  # of the arms' coefficients; the evidence of the training prompts is largest there
MEASURES = ("all rounds", "last {last}", "all rounds, expected")
NAMES = ("small", "large")
COMPONENTS = (16, 64)  # principal components of the embedding that are feature sets of their own
TOGETHER = ("counts", "subject", "16 components", "64 components", "subject and 16 components")
# What is stated beside the sets, by how rows are called: nothing but the cost; nothing at all; and both as in 1.0.0.
STATED: dict[str, State] = {
    "cost stated": {},
    "cost taken off": {"takes_off": True},
    "cost stated, 1.0.0": {"likelihood": "gaussian", "ratio_grid": RATIOS},
    "cost taken off, 1.0.0": {"likelihood": "gaussian", "ratio_grid": RATIOS, "takes_off": True},
}
VOWPAL = {
    "Vowpal Wabbit": "--cb_explore_adf -q xa",
    "Vowpal Wabbit, squarecb": "--cb_explore_adf --squarecb -q xa",
    "Vowpal Wabbit, squarecb, gamma 1000": "--cb_explore_adf --squarecb --gamma_scale 1000 -q xa",
}


@dataclass(frozen=True)
class Prompts:
    """Contexts (n, D) standardised, whether each model was right (n, 2), places of the feature sets, who is routed.

    The last columns of the contexts are principal components of the embedding, which are in none of the `sets`.
    """

    contexts: FloatArray
    right: FloatArray
    sets: dict[str, list[int]]
    is_routed: BoolArray

    @property
    def n_raw(self) -> int:
        """Columns of the `sets`."""
        return sum(map(len, self.sets.values()))

    @property
    def further(self) -> dict[str, list[int]]:
        """Further feature sets: the first principal components, and the subject with some of them."""
        places = list(range(self.n_raw, self.contexts.shape[1]))
        out = {f"{k} components": places[:k] for k in COMPONENTS}
        return out | {
            f"subject and {COMPONENTS[0]} components": self.sets["subject"] + out[f"{COMPONENTS[0]} components"]
        }

    @property
    def cost(self) -> float:
        """Of the large model: the difference in accuracy over the prompts that are routed."""
        small, large = self.right[self.is_routed].mean(axis=0)
        return float(large - small)


def read(path: str) -> Prompts:
    """The prompts of a file; one-hot subjects, counts and embedding, each with mean zero over the training prompts."""
    with np.load(path) as file:
        subject, source = file["subject"], file["source_row"]
        blocks = {
            "subject": np.eye(int(subject.max()) + 1)[subject],
            "counts": file["counts"].astype(np.float64),
            "embedding": file["embedding"].astype(np.float64),
        }
        right = np.stack([file["small"], file["large"]], axis=1).astype(np.float64)
    return _prompts(blocks, right, source % 7 >= 3)


def made_up(n: int = 5000) -> Prompts:
    """Prompts of `routing_stream`."""
    stream = routing_stream(n, seed=0)
    names, ends = list(BLOCKS), np.cumsum(list(BLOCKS.values()))[:-1]
    blocks = dict(zip(names, np.split(stream.contexts, ends, axis=1), strict=True))
    return _prompts(blocks, (stream.rewards > 0.0).astype(np.float64), np.arange(n) % 7 >= 3)


def _prompts(blocks: dict[str, FloatArray], right: FloatArray, is_routed: BoolArray) -> Prompts:
    known = {name: block[~is_routed] for name, block in blocks.items()}
    units = {name: float(np.sqrt(known[name].var(axis=0).mean())) for name in blocks}
    units["counts"] = known["counts"].std(axis=0)
    contexts = np.hstack([(blocks[name] - known[name].mean(axis=0)) / units[name] for name in blocks])
    sizes = np.cumsum([0, *(block.shape[1] for block in blocks.values())]).tolist()
    sets = {name: list(range(*ends)) for name, ends in zip(blocks, pairwise(sizes), strict=True)}
    embedding = contexts[:, sets["embedding"]]
    axes = np.linalg.svd(embedding[~is_routed], full_matrices=False)[2][: max(COMPONENTS)]
    scores = embedding @ axes.T
    contexts = np.hstack([contexts, scores / scores[~is_routed].std(axis=0)])
    return Prompts(contexts, right, sets, is_routed)


def offline(prompts: Prompts) -> FloatArray:
    """Probabilities of a right answer, (n, 2), by logistic regressions on the prompts that are not routed."""
    from sklearn.linear_model import LogisticRegressionCV

    x, known = prompts.contexts[:, : prompts.n_raw], ~prompts.is_routed
    fit = partial(
        LogisticRegressionCV, Cs=np.logspace(-3, 0, 7), l1_ratios=(0.0,), scoring="neg_log_loss", max_iter=500
    )
    models = [fit(cv=5, use_legacy_attributes=False).fit(x[known], prompts.right[known, arm]) for arm in range(2)]
    return np.stack([model.predict_proba(x)[:, 1] for model in models], axis=1)


# -- who routes --------------------------------------------------------------------------------------------------


class Router(NamedTuple):
    """Who decides (a context and its number to an arm) and who learns (an arm, and whether it was right)."""

    decide: Callable[[FloatArray], int]
    learn: Callable[[int, bool], None]


def _ours(
    prompts: Prompts,
    seed: int,
    sets: Sequence[str],
    union: bool = False,
    unions: bool = True,
    correlation: float = 0.0,
    takes_off: bool = False,
    make: type[Algorithm] = EvidenceMixture,
    **settings: Given,
) -> Router:
    """An algorithm of `alexp` on some sets and their `unions`, or on the `union` of all alone.

    Told whether an answer was right, and what it costs; or, where the router `takes_off` the cost, right less cost.
    """
    arms, known_sets = Arms(NAMES), prompts.sets | prompts.further
    chosen = {name: known_sets[name] for name in sets}
    if union:
        chosen = {"all": [place for places in chosen.values() for place in places]}
    models = ModelClass.per_arm(chosen, arms, unions=unions and len(chosen) > 1, correlation=correlation)
    known: State = {} if takes_off else {"cost": [0.0, prompts.cost]}
    with quietly():
        run = make(models, arms, random_state=seed, log_features="none", **known, **settings)
    trials = list[int]()

    def decide(context: FloatArray) -> int:
        trial = run.ask(context=context)
        trials.append(trial.id)
        return int(trial.index)

    def learn(arm: int, right: bool) -> None:
        run.tell(trials.pop(), float(right) - (0.0 if known else arm * prompts.cost))

    return Router(decide, learn)


def _vowpal(prompts: Prompts, seed: int, arguments: str) -> Router:
    from alexp_experiments.contextual.peers.vowpal import VowpalChooser

    contexts = prompts.contexts[:1, : prompts.n_raw]
    empty = np.zeros((1, 2))
    stream = ContextStream(contexts, empty, empty, prompts.sets, contexts.shape[1], NAMES)
    chooser, last = VowpalChooser(arguments, stream, seed), list[tuple[ContextRound, Pick]]()

    def decide(context: FloatArray) -> int:
        presented = ContextRound(context[: prompts.n_raw], None)
        pick = chooser.decide(presented)
        last.append((presented, pick))
        return pick.action

    def learn(arm: int, right: bool) -> None:
        presented, pick = last.pop()
        chooser.learn(presented, pick, float(right) - arm * prompts.cost)

    return Router(decide, learn)


def entrants(prompts: Prompts) -> dict[str, Callable[[int], Router]]:
    """Who routes, by name."""
    sets, right = list(prompts.sets), {"likelihood": "bernoulli"}
    linucb = {"make": LinUCB, "noise_std": 0.4, "reward_bound": 1.0, "takes_off": True}
    kinds: dict[str, State] = {
        "all sets and unions": right,
        **{f"{name} alone": {"sets": [name], **right} for name in sets},
        "correlated arms": {"correlation": CORRELATION, **right},
        "LinUCB": {"union": True, **linucb},
        "Thompson": {"union": True, "rule": "thompson", "takes_off": True},
        "Thompson, logistic": {"union": True, "rule": "thompson", **right},
    }
    out: dict[str, Callable[[int], Router]] = {
        name: partial(_ours, prompts, **{"sets": sets, **settings}) for name, settings in kinds.items()
    }
    for stated, settings in STATED.items():
        own = {"unions": False, **settings}
        out[f"five sets, {stated}"] = partial(_ours, prompts, sets=TOGETHER, **own)
        out |= {f"{name}, {stated}": partial(_ours, prompts, sets=[name], **own) for name in TOGETHER}
        out[f"three sets and unions, {stated}"] = partial(_ours, prompts, sets=sets, **settings)
    for name, arguments in VOWPAL.items():
        out[name] = partial(_vowpal, prompts, arguments=arguments)
    return out


# -- runs --------------------------------------------------------------------------------------------------------


@cache
def _known(path: str) -> tuple[Prompts, FloatArray]:
    prompts = read(path) if path else made_up()
    return prompts, offline(prompts)


class Routed(NamedTuple):
    """Rewards per prompt of a run, of the better model and of the offline policy, by each of `MEASURES`, (3,)."""

    earned: list[float]
    single: list[float]
    offline: list[float]
    milliseconds: float


def play(path: str, name: str, rounds: int, seed: int) -> Routed:
    """Prompts of a seed in random order, each routed once."""
    prompts, known = _known(path)
    order = np.random.default_rng([31, seed]).permutation(np.flatnonzero(prompts.is_routed))[:rounds]
    rewards, expected = ((one - [0.0, prompts.cost])[order] for one in (prompts.right, known))
    arms, every = np.empty(order.size, dtype=np.int64), np.arange(order.size)
    router, begin = entrants(prompts)[name](seed), process_time()
    for t, (context, right) in enumerate(zip(prompts.contexts[order], prompts.right[order], strict=True)):
        arms[t] = router.decide(context)
        router.learn(int(arms[t]), bool(right[arms[t]]))
    spent = process_time() - begin
    last = slice(-min(LAST, order.size // 2), None)
    parts = [(rewards, slice(None)), (rewards, last), (expected, slice(None))]
    by_offline = np.argmax(expected, axis=1)
    earned, reached = (
        [float(values[every, chosen][part].mean()) for values, part in parts] for chosen in (arms, by_offline)
    )
    single = [float(values[part].mean(axis=0).max()) for values, part in parts]
    return Routed(earned, single, reached, 1e3 * spent / order.size)


def _play(run: tuple[str, str, int, int, str]) -> Routed:
    """The same, kept in a file of a folder where there is one."""
    path, name, rounds, seed, folder = run
    kept = Path(folder) / f"{name}-{rounds}-{seed}.json" if folder else None
    if kept is not None and kept.exists():
        return Routed(*json.loads(kept.read_text()))
    found = play(path, name, rounds, seed)
    if kept is not None:
        kept.write_text(json.dumps(found))
    return found


def shares(runs: Sequence[Routed]) -> FloatArray:
    """Share of the gap that each run closes, by each of `MEASURES`: (3, seeds).

    The gap is the mean over the seeds: that of one order of the prompts is noisy, above all in its last rounds.
    """
    earned, single, reached = (np.array([run[k] for run in runs]) for k in range(3))
    return np.asarray(((earned - single) / (reached - single).mean(axis=0)).T)


def defaults() -> list[str]:
    """Rows with nothing stated but the cost, or not even that; now, and as in 1.0.0."""
    now, then = list(STATED)[:2], list(STATED)[2:]
    return [
        *(f"{name}, {stated}" for stated in now for name in ("five sets", *TOGETHER, "three sets and unions")),
        *(f"{name}, {stated}" for stated in then for name in ("five sets", "subject", "three sets and unions")),
    ]


def table(path: str, names: Sequence[str], rounds: int, seeds: Sequence[int], folder: str, workers: int | None) -> str:
    """One row per router."""
    runs = [(path, name, rounds, seed, folder) for seed in seeds for name in names]
    found = spread(_play, runs, workers)
    by_name = {name: found[k :: len(names)] for k, name in enumerate(names)}
    first = by_name[names[0]]
    rounds, last = min(rounds, int(_known(path)[0].is_routed.sum())), min(LAST, rounds // 2)
    levels = [np.mean([run.single[0] for run in first]), np.mean([run.offline[0] for run in first])]
    titles = [measure.format(last=last) for measure in MEASURES]
    lines = [
        f"{rounds} prompts, {len(seeds)} seeds: reward of the better single model {levels[0]:.4f}, of logistic "
        f"regressions trained offline on {int((~_known(path)[0].is_routed).sum())} other prompts {levels[1]:.4f}. "
        "Share of the gap closed ± standard error.",
        "",
        f"| router | {' | '.join(titles)} | less than the first row |",
        "|---" * 5 + "|",
    ]
    reference = shares(first)[0]
    for name, own in by_name.items():
        cells = [f"{one.mean():.2f} ± {_error(one):.2f}" for one in shares(own)]
        behind = reference - shares(own)[0]
        cells.append("" if own is first else f"{behind.mean():.2f} ± {_error(behind):.2f}")
        lines.append("| " + " | ".join([name, *cells]) + " |")
    return "\n".join(lines)


def _error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / np.sqrt(values.size))


def main(arguments: Sequence[str] | None = None) -> None:
    """Route and print."""
    parser = argparse.ArgumentParser(description="Share of the gap to offline logistic regressions that routers close.")
    parser.add_argument("file", nargs="?", default="", help="prompts as an .npz file; made up without one")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--defaults", action="store_true", help="the rows with nothing stated, now and as in 1.0.0")
    parser.add_argument("--rounds", type=int, default=4000)
    parser.add_argument("--routers", nargs="*", help="names of the rows; all by default")
    parser.add_argument("--keep", default="", help="a folder for finished runs, so that a stopped command goes on")
    parser.add_argument("--workers", type=int, help="processes; all cores by default")
    chosen = parser.parse_args(arguments)
    names = defaults() if chosen.defaults else chosen.routers or list(entrants(_known(chosen.file)[0]))
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    print(table(chosen.file, names, chosen.rounds, seeds, chosen.keep, chosen.workers))


if __name__ == "__main__":
    main()
