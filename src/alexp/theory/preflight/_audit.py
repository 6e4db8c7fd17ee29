"""The constants audit of a preflight: what ALExp will use, beside what the theory asks for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from alexp.common.arrays import FloatArray
from alexp.decision.schedules import Schedules
from alexp.problem.models import ModelClass
from alexp.theory.exploration import burn_in, expected_explorations, explored_lambda_min_bound
from alexp.theory.lasso import corrected_lambda, printed_lambda, self_normalised_lambda_bound
from alexp.theory.preflight._facts import Constant
from alexp.theory.regret import lasso_complexity

AUDIT_TIMES = (1, 10, 100, 1000)
_HORIZON = 1_000_000


def audit(
    models: ModelClass,
    schedules: Schedules,
    noise_std: float,
    reward_bound: float,
    feature_bound: float,
    model_wise: float | None,
) -> list[Constant]:
    """One line per constant: quantity, formula, and its value at each of AUDIT_TIMES.

    ``feature_bound`` is max_j,x ||phi_j(x)||; ``model_wise`` the best model-wise lambda_min known, or None.
    """
    n_models, size, delta = models.n_models, models.dimension, schedules.delta
    shape = (noise_std, n_models, size, delta, feature_bound)
    plain = type(schedules) is Schedules
    printed = "(2 sigma/sqrt t) sqrt(1 + 12/sqrt2 w + 5/sqrt2 sqrt(d w)), w = log(2M/delta) + (log log d)_+"

    def at(function: Callable[[int], float | FloatArray]) -> dict[str, float]:
        return {f"t={t}": float(function(t)) for t in AUDIT_TIMES}

    gammas = np.cumsum([schedules.gamma_t(t) for t in range(1, AUDIT_TIMES[-1] + 1)])
    lines: list[Constant] = [
        {
            "quantity": "gamma_t (used)",
            "formula": f"min(1, {schedules.gamma:g} t^(-1/4))" if plain else repr(schedules),
            **at(schedules.gamma_t),
        },
        {"quantity": "explored rounds, expected", "formula": "sum of gamma_s, s <= t", **at(lambda t: gammas[t - 1])},
        {
            "quantity": "eta_t (used)",
            "formula": f"{schedules.eta:g} / (B sqrt t)" if plain else repr(schedules),
            **at(lambda t: schedules.eta_t(t, reward_bound)),
        },
        {
            "quantity": "lambda_t (used)",
            "formula": f"{schedules.lam:g} x printed" if plain else repr(schedules),
            **at(lambda t: schedules.lambda_t(t, noise_std, n_models, size)),
        },
        {"quantity": "lambda_t, printed theorem", "formula": f"L {printed}", **at(lambda t: printed_lambda(t, *shape))},
        {
            "quantity": "lambda_t, repaired constants",
            "formula": "L (2 sigma/sqrt t) sqrt(1 + 5 sqrt(d w) + 12 w), w = log(2M/delta) + log log(4 e d)",
            **at(lambda t: corrected_lambda(t, *shape)),
        },
        {
            "quantity": "lambda_t, proved (worst data)",
            "formula": "(2 sigma/t) max_j sqrt(lmax(V_j) (logdet(V_j/rho) + 2 log(M/delta))), rho = 2 L^2",
            **at(lambda t: self_normalised_lambda_bound(t, *shape)),
        },
    ]
    if model_wise is not None and model_wise > 0.0:
        complexity = lasso_complexity(n_models, size, delta, noise_std)
        lines.append(
            {
                "quantity": "eta_t, theorem's shape (constant one)",
                "formula": "lambda_min / (B sqrt t C(M, delta, d)), model-wise lambda_min in place of C_min",
                **at(lambda t: model_wise / (reward_bound * np.sqrt(t) * complexity)),
            }
        )
        lines.append(_guarantee(schedules, model_wise, feature_bound, size, n_models))
    return lines


def _guarantee(schedules: Schedules, model_wise: float, feature_bound: float, size: int, n_models: int) -> Constant:
    """What exploration alone promises about every model's data, and from when on it promises anything."""
    if type(schedules) is Schedules:
        expected = expected_explorations(_HORIZON, schedules.gamma)
    else:  # schedules of another shape know their own rates
        expected = np.cumsum([schedules.gamma_t(t) for t in range(1, _HORIZON + 1)])
    square = feature_bound**2
    bound = explored_lambda_min_bound(expected, model_wise, square, size, feature_bound, schedules.delta, n_models)
    start = burn_in(bound)
    since = f"positive from t = {start}" if start is not None else f"still zero at t = {_HORIZON:,}"
    return {
        "quantity": "lambda_min of every model's data, promised",
        "formula": f"explored_lambda_min_bound; {since}",
        **{f"t={t}": float(bound[t - 1]) for t in AUDIT_TIMES},
    }
