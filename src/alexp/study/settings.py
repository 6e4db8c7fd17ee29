"""Settings as formula and value, for people."""

from __future__ import annotations

from alexp.algorithms.base import Algorithm
from alexp.decision.schedules import Schedules
from alexp.study.view import SettingLine

_MEANING = {
    "noise_std": "σ, standard deviation of the noise",
    "reward_bound": "B, bound on the size of the reward",
    "norm_bound": "bound on the norm of the coefficients",
    "repeats": "whether a measured candidate may be proposed again",
    "direction": "whether large or small rewards are good",
}

# What a mixture takes beyond that.
_OF_MIXTURES = {
    "goal": "large rewards in every round, or one large reward soon",
    "rule": "what a round is decided by, from mean m and deviation s",
    "beta": "width of the index m + β s; None: by rule and round",
    "power": "weights of models ∝ prior × evidence^power",
    "noise_grid": "levels of noise with a component each, × σ",
    "scale_grid": "sizes of coefficients with a component each, × bound",
    "ratio_grid": "ratios of noise to prior variance with a component each",
    "misfit_grid": "what a candidate may have beyond every model, × B",
    "gamma": "share γ t^(-1/3) of even play",
    "floor": "least share of even play",
    "draws": "posterior draws that a round chooses among",
    "sharpness": "shares ∝ P(best)^sharpness",
    "forget": "weight of a reward per later one",
}


def explained_settings(algorithm: Algorithm) -> list[SettingLine]:
    """Everything an algorithm was constructed with."""
    models, domain = algorithm.models, algorithm.domain
    sizes = f"{models.n_models}, {models.n_columns}, {models.dimension}"
    known = str(domain.n_candidates) if domain.n_candidates else "by the round"
    rows = [
        SettingLine("models", "M models over P columns, the largest with d", sizes),
        SettingLine("domain", "N candidates", f"{type(domain).__name__}, {known}"),
    ]
    if algorithm.log_features is not None:
        rows.append(SettingLine("log_features", "features of rounds that are kept", algorithm.log_features))
    for key, meaning in _MEANING.items():
        value = _text(getattr(algorithm, key))
        if getattr(algorithm.stated, key, True) is None:  # a number is assumed only where one is needed
            value = f"{value}, assumed" if key in algorithm.relies_on else "not stated"
        rows.append(SettingLine(key, meaning, value))
    meanings: dict[str, str] = _OF_MIXTURES if "goal" in algorithm.settings else {}
    for key in algorithm.settings:
        value = getattr(algorithm, key)
        if isinstance(value, Schedules):
            rows += _schedules(algorithm, value)
        else:
            rows.append(SettingLine(key, meanings.get(key, ""), _text(value)))
    return rows


def _schedules(algorithm: Algorithm, schedules: Schedules) -> list[SettingLine]:
    t, models = max(algorithm.n_told, 1), algorithm.models
    gamma, eta = schedules.gamma_t(t), schedules.eta_t(t, algorithm.reward_bound)
    lam = schedules.lambda_t(t, algorithm.noise_std, models.n_models, models.dimension)
    if type(schedules) is not Schedules:
        now = f"now γ = {gamma:.3g}, η = {eta:.3g}, λ = {lam:.3g}"
        return [SettingLine("schedules", _text(schedules), now)]
    width = "√(1 + (12/√2) w + (5/√2) √(d w)), w = log(2M/δ) + (log log d)₊"
    return [
        SettingLine(
            "exploration rate", f"γ_t = min(1, γ t^(-1/4)), γ = {schedules.gamma:g}", f"{gamma:.3g} at t = {t}"
        ),
        SettingLine("learning rate", f"η_t = η / (B √t), η = {schedules.eta:g}", f"{eta:.3g} at t = {t}"),
        SettingLine(
            "regularisation",
            f"λ_t = c (2σ/√t) {width}, c = {schedules.lam:g}, δ = {schedules.delta:g}",
            f"{lam:.3g} at t = {t}",
        ),
    ]


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, dict) or (isinstance(value, list | tuple) and len(value) > 5):
        kinds = sorted({repr(item) for item in (value.values() if isinstance(value, dict) else value)})
        return f"{len(value)} of them: {', '.join(kinds[:5])}"
    if isinstance(value, list | tuple):
        return ", ".join(_text(item) for item in value) or "none"
    return str(value)
