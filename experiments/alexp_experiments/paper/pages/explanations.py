"""The prose of the report: why the numbers are what they are, and where the paper was read differently."""

from __future__ import annotations

import numpy as np

from alexp_experiments.core.statistics import locked
from alexp_experiments.paper.grids import MAIN_SCENARIOS
from alexp_experiments.paper.methods import BETA
from alexp_experiments.paper.pages.captions import flow, item
from alexp_experiments.paper.pages.tables import HANGS, hanging
from alexp_experiments.paper.results import Results


def why(results: Results) -> str:
    """What the measured figures come from."""
    parts = (_lock_in(results), *_rivals(results), _true_model(results))
    return "\n".join(["## Why", "", *(item(*part) for part in parts)])


def _mean(results: Results, name: str, method: str) -> str:
    return f"{results.final(name, method).mean():.1f}"


def _lock_in(results: Results) -> tuple[str, str]:
    def stuck(method: str) -> str:
        runs = np.concatenate([locked(results.curves(name, method)) for name in MAIN_SCENARIOS])
        return f"{int(runs.sum())} of {runs.size}"

    curves = np.concatenate([results.curves(name, "alexp") for name in MAIN_SCENARIOS])
    bad = locked(curves)
    price = (
        f" A locked run of ALExp has regret {curves[bad, -1].mean():.1f} on average, any other "
        f"{curves[~bad, -1].mean():.1f}."
        if bad.any() and not bad.all()
        else ""
    )
    weak = sum(hanging(records) is not None for records in results.runs.values())
    return (
        "Lock-in.",
        f"""Once the weights concentrate on agents that agree on a wrong action, nothing new is learnt: the group Lasso
        sees that action only, predicts it well, and gamma_t is too small to look elsewhere. Locked runs over the four
        problems: ALExp {stuck("alexp")}, its released-code variant {stuck("alexp-released")}, Naive UCB
        {stuck("naive")}, Oracle UCB {stuck("oracle")}, Corral on shared data {stuck("corral")}.{price} So a mean over
        {len(results.scope.seeds)} seeds depends on how many of them happen to lock: of the {len(results.runs)} means
        behind the figures {weak} change by more than {100 * HANGS:.0f}% if locked runs are left out. The tables name
        them and give medians.""",
    )


def _rivals(results: Results) -> list[tuple[str, str]]:
    def mean(name: str, method: str) -> str:
        return _mean(results, name, method)

    released, curves = results.final("large", "alexp-released"), results.curves("large", "alexp-released")
    easy, large = (results.scope.scenario(name) for name in ("easy", "large"))
    lengths = {name: min(int(results.tuned.values("etc", name)["n0"]), curves.shape[1]) for name in MAIN_SCENARIOS}
    paid = {name: results.curves(name, "etc")[:, n - 1].mean() for name, n in lengths.items()}
    explored = [paid[name] / results.final(name, "etc").mean() for name in MAIN_SCENARIOS]
    per_round = [paid[name] / n for name, n in lengths.items()]
    return [
        (
            "Corral's published curve",
            f"""has more to do with its data than with its master. On the easy problem and on the large class the same
            master has regret {mean("easy", "corral")} and {mean("large", "corral")} when all agents learn from every
            reward, {mean("easy", "corral-own")} and {mean("large", "corral-own")} when only the drawn agent does (at
            M = {easy.n_models} an agent then sees {easy.steps / easy.n_models:.1f} rewards in {easy.steps} rounds on
            average), and {mean("easy", "corral-released")} and
            {mean("large", "corral-released")} with the released code's double importance weights and its regression on
            y / q. EXP4-IX, where agents that agree share a loss, has {mean("easy", "exp4-ix")} and
            {mean("large", "exp4-ix")}.{_tried(results)} At n = {large.steps} importance weights are too noisy to tell
            {large.n_models} agents apart.""",
        ),
        (
            "The released code of ALExp",
            f"""(constants tied to the horizon, per-step products of weights, scores from a refit on the selected
            groups) has {mean("easy", "alexp-released")} on the easy problem and {mean("large", "alexp-released")} on
            the large class; the algorithm as printed has {mean("easy", "alexp")} and {mean("large", "alexp")}. On the
            large class its median is {np.median(released):.1f}, and {int(locked(curves).sum())} of {released.size} runs
            lock.""",
        ),
        (
            "ETC and ETS",
            f"""pay {min(per_round):.2f} to {max(per_round):.2f} of regret for each round of exploration on the four
            problems, because rewards are of size one: exploration makes {100 * min(explored):.0f} to
            {100 * max(explored):.0f}% of ETC's regret. With less of it some runs commit to a wrong action, and their
            regret grows linearly.""",
        ),
        (
            "Naive UCB",
            f"""is a strong baseline here: all models share {easy.degree + 1} polynomials, and by round
            {_settled(results)} its mean curves have reached 99% of their regret. It falls behind when the dictionary
            itself grows (Figure 3, last panel). What it pays on the four problems is the paper's width: beta = {BETA:g}
            has it try every direction at full length. With beta chosen as well it has {_both(results, "naive")}, ALExp
            {_both(results, "alexp")} (means on the four problems, before the arrow as printed).""",
        ),
    ]


def _tried(results: Results) -> str:
    """What all settings of eta_0 gave on the tuning seeds, if they were run."""
    tried = [[one.regret.mean for one in results.tried("corral", scenario=name)] for name in ("easy", "large")]
    if not all(tried):
        return ""
    ends = " and ".join(f"{min(means):.1f} to {max(means):.1f}" for means in tried)
    return f" Over all settings of (gamma_0, eta_0) it has {ends} on the tuning seeds (Figure 7)."


def _settled(results: Results) -> int:
    """The round from which Naive UCB's mean regret is 99% of its last, at the latest of the four problems."""
    means = [results.curves(name, "naive").mean(axis=0) for name in MAIN_SCENARIOS]
    return max(int(np.argmax(mean >= 0.99 * mean[-1])) + 1 for mean in means)


def _both(results: Results, method: str) -> str:
    """Mean regret on the main problems, as printed and with the width chosen as well."""
    wide = results.widened()
    return ", ".join(f"{_mean(results, name, method)} -> {_mean(wide, name, method)}" for name in MAIN_SCENARIOS)


def _true_model(results: Results) -> tuple[str, str]:
    records = results.runs["large", "alexp"]
    rivals = [int(np.sum(r.snapshot >= 0.5 * r.snapshot.max())) for r in records]
    return (
        "The true model is not singled out",
        f"""because q weighs policies by what they earn, not models by how they fit. Agents that suggest the same action
        earn the same, and at t = 20 a median of {np.median(rivals):.0f} models of {records[0].snapshot.size} have at
        least half of the largest probability. That is no loss for regret, but q_t is no posterior over models.""",
    )


def deviations() -> str:
    """Where the paper contradicts itself or its code, and what was chosen."""
    items = [
        """- The hard problem is printed as s = 8, p = 10, M = 55, which cannot be: C(11, 8) = 165. Both readings are
        run, s = 8 and the one with M = 55 in which 36 models share 7 polynomials with the true one, s = 9.""",
        """- Exploration happens with probability gamma_t = gamma_0 t^(-1/4), and one learning rate eta_0 t^(-1/2)
        weights the whole sum of estimated returns, as in the algorithm's pseudo-code.""",
        """- Corral gets losses in [0, 1]; its thresholds and rates follow the new mixed probabilities. Its tuned
        constants are gamma_0 / n and eta_0 sqrt(M / n); the released-code variant takes eta_0 itself.""",
        """- lambda~ of agents is 0.01; exact linear algebra needs no more for long features. Oracle and Naive UCB have
        theirs chosen, as in the paper. lambda_1 of ETC and ETS is lambda_0 x 4 sigma sqrt(log M / n_0).""",
        """- The group Lasso of overlapping groups has many minimisers; the one of least norm is taken, which does not
        depend on the order of columns or models.""",
    ]
    return "\n".join(["## What was read differently", "", *(flow(i, "  ") for i in items)])
