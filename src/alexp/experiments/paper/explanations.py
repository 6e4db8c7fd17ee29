"""The prose of the report: why the numbers are what they are, and where the paper was read differently."""

from __future__ import annotations

import textwrap

import numpy as np

from alexp.experiments.core.statistics import locked
from alexp.experiments.paper.results import Results
from alexp.experiments.paper.tuning import MAIN_SCENARIOS


def flow(text: str, indent: str = "") -> str:
    """Text as one paragraph of lines of at most 118 characters."""
    return textwrap.fill(" ".join(text.split()), 118, subsequent_indent=indent, break_on_hyphens=False)


def _item(title: str, text: str) -> str:
    return flow(f"- **{title}** {text}", indent="  ")


def why(results: Results) -> str:
    """What the measured figures come from."""
    parts = (_lock_in(results), *_rivals(results), _true_model(results))
    return "\n".join(["## Why", "", *(_item(*part) for part in parts)])


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
    return (
        "Lock-in.",
        f"""Once the weights concentrate on agents that agree on a wrong action, nothing new is learnt: the group Lasso
        sees that action only, predicts it well, and gamma_t is too small to look elsewhere. Locked runs over the four
        problems: ALExp {stuck("alexp")}, its released-code variant {stuck("alexp-released")}, Naive UCB
        {stuck("naive")}, Oracle UCB {stuck("oracle")}, Corral on shared data {stuck("corral")}.{price} So a mean over
        twenty seeds depends on how many of them happen to lock; the tables give medians too.""",
    )


def _rivals(results: Results) -> list[tuple[str, str]]:
    def mean(name: str, method: str) -> str:
        return _mean(results, name, method)

    released, curves = results.final("large", "alexp-released"), results.curves("large", "alexp-released")
    explored = [
        results.curves(name, "etc")[:, n - 1].sum() / results.final(name, "etc").sum()
        for name in MAIN_SCENARIOS
        for n in [min(results.tuned.exploration("etc", name), curves.shape[1])]
    ]
    return [
        (
            "Corral's published curve",
            f"""has more to do with its data than with its master. On the easy problem and on the large class the same
            master has regret {mean("easy", "corral")} and {mean("large", "corral")} when all agents learn from every
            reward, {mean("easy", "corral-own")} and {mean("large", "corral-own")} when only the drawn agent does (at
            M = 55 an agent then sees two rewards in a hundred rounds), and {mean("easy", "corral-released")} and
            {mean("large", "corral-released")} with the released code's double importance weights and its regression on
            y / q. EXP4-IX, where agents that agree share a loss, has {mean("easy", "exp4-ix")} and
            {mean("large", "exp4-ix")}. No setting of eta_0 helps (Figure 7): at n = 100 importance weights are too
            noisy to tell {results.scope.scenario("large").n_models} agents apart.""",
        ),
        (
            "The released code of ALExp",
            f"""(constants tied to the horizon, per-step products of weights, scores from a refit on the selected
            groups) has {mean("easy", "alexp-released")} on the easy problem and {mean("large", "alexp-released")} on
            the large class; the algorithm as printed has {mean("easy", "alexp")} and {mean("large", "alexp")}. On the
            large class its median is {np.median(released):.1f}, and {int(locked(curves).sum())} of {released.size} runs
            lock: the authors' own code behaves alike (eight seeds, other rewards: mean 8.4, median 3.1, one run stuck
            at 34).""",
        ),
        (
            "ETC and ETS",
            f"""pay about one unit of regret for each round of exploration, whatever M is, because rewards are of size
            one: exploration makes {100 * min(explored):.0f} to {100 * max(explored):.0f}% of ETC's regret on the four
            problems. With less of it some runs commit to a wrong action, and their regret grows linearly.""",
        ),
        (
            "Naive UCB",
            """is a strong baseline here: all models share 11 polynomials, and a dozen rounds suffice to learn them all.
            It falls behind when the dictionary itself grows (Figure 3, last panel).""",
        ),
    ]


def _true_model(results: Results) -> tuple[str, str]:
    records = results.runs["large", "alexp"]
    rivals = [int(np.sum(r.snapshot >= 0.5 * r.snapshot.max())) for r in records]
    return (
        "The true model is not singled out",
        f"""because q weighs policies by what they earn, not models by how they fit. Agents that suggest the same action
        earn the same, and at t = 20 a median of {np.median(rivals):.0f} models of {records[0].snapshot.size} have at
        least half of the largest probability. That is no loss for regret, but q_t is no posterior over models.""",
    )


def deviations(results: Results) -> str:
    """Where the paper contradicts itself or its code, and what was chosen."""
    chosen = [
        f"{name}: gamma_0 = {entry['alexp']['values']['gamma']:.2g}, eta_0 = {entry['alexp']['values']['eta']:.3g}, "
        f"n_0 = {entry['etc']['values']['n0']:.0f} for ETC and {entry['ets']['values']['n0']:.0f} for ETS"
        for name, entry in results.tuned.chosen.items()
    ]
    items = [
        """- The hard problem is printed as s = 8, p = 10, M = 55, which cannot be: C(11, 8) = 165. Both readings are
        run, s = 8 and the one with M = 55 in which 36 models share 7 polynomials with the true one, s = 9.""",
        """- Exploration happens with probability gamma_t = gamma_0 t^(-1/4), and one learning rate eta_0 t^(-1/2)
        weights the whole sum of estimated returns, as in the algorithm's pseudo-code.""",
        """- Corral gets losses in [0, 1]; its thresholds and rates follow the new mixed probabilities. Its tuned
        constants are gamma_0 / n and eta_0 sqrt(M / n); the released-code variant takes eta_0 itself.""",
        """- UCB uses beta = 2 and lambda-tilde = 0.01 everywhere; exact linear algebra needs no more for long
        features.""",
        """- lambda_1 of ETC and ETS is lambda_0 x 4 sigma sqrt(log M / n_0). Sizes beyond p = 13 use what was tuned at
        p = 13. Variants and EXP4-IX that were not tuned on a problem use their defaults.""",
        f"""- Chosen: lambda_0 = {results.tuned.lam:.3g}. {"; ".join(chosen)}.""",
    ]
    return "\n".join(["## What was read differently, and what was chosen", "", *(flow(i, "  ") for i in items)])
