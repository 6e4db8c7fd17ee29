"""Claims about hyper-parameters, judged on the tuning seeds."""

from __future__ import annotations

import numpy as np

from alexp.experiments.paper.claims import FAILS, HOLDS, PARTLY, Claim, verdict
from alexp.experiments.paper.methods import METHODS
from alexp.experiments.paper.results import Results
from alexp.experiments.paper.tuning import Attempt

_NO_REGRET = 1e-3  # ratios to less than this say nothing


def _names(results: Results) -> list[str]:
    return list(dict.fromkeys(attempt.scenario for attempt in results.attempts))


def _best(results: Results, method: str, parameter: str, name: str) -> Attempt:
    return min((t for t in results.tried(method, parameter) if t.scenario == name), key=lambda t: t.regret.mean)


def best_exploration(results: Results) -> Claim:
    """The best n_0 is near 20."""
    lines, chosen = [], []
    for method in ("etc", "ets"):
        best = {name: _best(results, method, "n0", name) for name in _names(results)}
        chosen += [attempt.values["n0"] for attempt in best.values()]
        found = ", ".join(f"{name} {attempt.values['n0']:.0f} ({attempt.regret})" for name, attempt in best.items())
        lines.append(f"{METHODS[method].label}: best n_0 per problem (mean regret): {found}")
    near = [11 <= n <= 28 for n in chosen]
    share = float(np.mean(near))
    lines.append(f"{sum(near)} of {len(near)} best values are the grid points next to 20 (11, 19 or 28)")
    return Claim(
        "The optimal n_0 of ETC and ETS is often around 20.",
        "at least half of the best values lie in 11..28 (holds), at least a quarter (partly)",
        tuple(lines),
        HOLDS if share >= 0.5 else PARTLY if share >= 0.25 else FAILS,
    )


def robust(results: Results) -> Claim:
    """ALExp beats the tuned rivals for most of its own settings."""
    lines, good = [], []
    for name in _names(results):
        ours = np.sort([t.regret.mean for t in results.tried("alexp", "eta") if t.scenario == name])
        rivals = {
            METHODS[method].label: _best(results, method, parameter, name).regret.mean
            for method, parameter in (("etc", "n0"), ("ets", "n0"), ("corral", "eta"))
        }
        label, level = min(rivals.items(), key=lambda item: item[1])
        share = float(np.mean(ours < level))
        good.append(share >= 0.8)
        lines.append(
            f"{name}: over {ours.size} settings of (gamma_0, eta_0) mean regret {ours[0]:.2f} (best), "
            f"{np.median(ours):.2f} (median), {ours[-1]:.2f} (worst); {100 * share:.0f}% of them beat the best tuned "
            f"rival ({label}, {level:.2f})"
        )
    spread = _lambda_spread(results)
    return Claim(
        "ALExp is robust to the choice of hyper-parameters.",
        "on each problem at least 80% of the settings tried beat every tuned rival (ETC, ETS, Corral)",
        (*lines, *spread),
        verdict(good),
    )


def _lambda_spread(results: Results) -> list[str]:
    lines = []
    attempts = results.tried("alexp", "lambda")
    for name in dict.fromkeys(attempt.scenario for attempt in attempts):
        means = [attempt.regret.mean for attempt in attempts if attempt.scenario == name]
        lines.append(f"{name}: over all lambda_0 in [1e-5, 1] mean regret {min(means):.2f} to {max(means):.2f}")
    return lines


def transfer(results: Results) -> Claim:
    """The settings that are best on one problem do well on the others."""
    names = _names(results)
    table = {
        name: {tuple(t.values.values()): t.regret.mean for t in results.tried("alexp", "eta") if t.scenario == name}
        for name in names
    }
    lines, losses = [], []
    for home in names:
        setting = min(table[home], key=lambda key: table[home][key])
        loss = [table[away][setting] / max(min(table[away].values()), _NO_REGRET) for away in names if away != home]
        losses += loss
        gamma, eta = setting
        lines.append(
            f"best on {home} (gamma_0 = {gamma:.2g}, eta_0 = {eta:.2g}): elsewhere {np.median(loss):.2f} times the "
            f"best there (median; worst {max(loss):.2f})"
        )
    share = float(np.mean(np.array(losses) <= 1.5))
    lines.append(f"{100 * share:.0f}% of all transfers cost at most a factor 1.5")
    return Claim(
        "The optimal hyper-parameters of ALExp work well across all problems.",
        "at least 80% of the transfers cost at most a factor 1.5 in mean regret (holds), at least half (partly)",
        tuple(lines),
        HOLDS if share >= 0.8 else PARTLY if share >= 0.5 else FAILS,
    )
