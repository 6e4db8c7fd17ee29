"""Computes the view of a study from its algorithm and from log entries that the algorithm does not keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from math import inf, isfinite
from typing import TYPE_CHECKING, Protocol

import numpy as np

from alexp.algorithms.assumptions import NotCertified
from alexp.algorithms.base import Algorithm
from alexp.algorithms.capabilities import Certifies, Estimates, LooksBack, Predicts, offers
from alexp.algorithms.components import component_to_dict
from alexp.algorithms.evidence_mixture import EvidenceMixture
from alexp.algorithms.statements import DELTA, StopReport
from alexp.common.arrays import FloatArray, IntArray, NarrowArray
from alexp.common.codec import jsonable
from alexp.common.validation import count, fraction
from alexp.decision.schedules import Schedules
from alexp.estimation.estimate import predict
from alexp.problem.domains import Interval
from alexp.study.candidates import label, labeller, trial_states
from alexp.study.events import MOST_MODELS, BeliefRecord, leading_models, probabilities_of, returns_of
from alexp.study.view import (
    Best,
    Certificates,
    Counts,
    Curve,
    Explanation,
    History,
    Leader,
    Memory,
    Money,
    NotedEvent,
    Pareto,
    PendingAsk,
    PendingTrial,
    SettingLine,
    Standing,
    StudyView,
    TrialColumns,
)

if TYPE_CHECKING:
    from alexp.study.leases import Lease
    from alexp.study.logbook import Noted

_CERTIFIED_WORK = 20_000_000  # models x candidates up to which certificates are computed
_MOST_POINTS = 2001  # of a curve
_MOST_NAMES = 200  # of models that are ruled out
_TELLING = 3.0  # odds from which on rewards speak for or against a memory
_CONTEXTUAL = (
    "Rounds are contextual: recommendation and stopping depend on the round, see best(context=...) and "
    "stop_report(context=...)"
)


@dataclass(frozen=True)
class ViewOptions:
    """Arguments of `Study.view`."""

    trials: int | None
    leaders: int
    history: bool
    certificates: bool
    curve: bool
    explanation: bool
    delta: float

    def __post_init__(self) -> None:
        count("leaders", self.leaders, 0)
        fraction("delta", self.delta)
        if self.trials is not None:
            count("trials", self.trials, 0)


@dataclass(frozen=True)
class Identity:
    """The constant facts about a study."""

    name: str
    where: str
    created_at: float
    library: str


class Recorded(Protocol):
    """What is known of a run beside its algorithm: earlier beliefs, times and workers of pending asks, and notes."""

    @property
    def beliefs(self) -> Sequence[tuple[int, BeliefRecord]]: ...
    @property
    def asked(self) -> Mapping[int, PendingAsk]: ...
    @property
    def noted(self) -> Sequence[Noted]: ...


@dataclass(frozen=True)
class InMemory:
    """What an optimiser in memory knows of its run."""

    beliefs: list[tuple[int, BeliefRecord]]
    asked: dict[int, PendingAsk]
    noted: tuple[Noted, ...] = ()


def view_of(algorithm: Algorithm) -> StudyView:
    """The view of an optimiser that is in no study."""
    options = ViewOptions(None, 6, True, True, True, True, DELTA)
    identity = Identity(type(algorithm).__name__, "memory", 0.0, version("alexp"))
    pending = {trial: PendingAsk(0.0, "", trial) for trial in algorithm.log.pending}
    recorded = InMemory(_looked_back(algorithm.of_first_objective()), pending)
    return make_view(identity, len(algorithm.log.events), algorithm, recorded, {}, options)


def _looked_back(algorithm: Algorithm) -> list[tuple[int, BeliefRecord]]:
    """Weights of all models after every reward but the last, where the algorithm can look back in good time."""
    subject: object = algorithm
    m = algorithm.models.n_models
    if not 0 < m * algorithm.n_told <= _MOST_WORK or not offers(subject, LooksBack) or algorithm.log_features == "none":
        return []
    log_q = subject.hindsight(range(m)).log_odds[:-1]
    q = np.exp(log_q - log_q.max(axis=1, keepdims=True))
    q /= q.sum(axis=1, keepdims=True)
    return [(told, {"told": told, "q": row.astype(np.float32)}) for told, row in enumerate(q)]


def counts(algorithm: Algorithm) -> Counts:
    """Numbers of trials by state."""
    log, asked, told = algorithm.log, algorithm.n_asked, algorithm.n_told
    lost, failed = len(log.abandoned), len(log.failed)
    out: Counts = {"trials": asked, "told": told, "pending": asked - told - lost, "abandoned": lost - failed}
    return out | {"failed": failed} if failed else out


def make_view(
    study: Identity,
    n_events: int,
    algorithm: Algorithm,
    recorded: Recorded,
    held: Mapping[int, Lease],
    options: ViewOptions,
) -> StudyView:
    """The view after `n_events` events, which `algorithm` and `recorded` have applied; `held` are leases by trial.

    With several objectives, models are judged by the first that is measured.
    """
    run, algorithm = algorithm, algorithm.of_first_objective()
    several = isinstance(run, EvidenceMixture) and run.objectives is not None
    options = replace(options, certificates=False) if several else options
    q, models, name = probabilities_of(algorithm), algorithm.models, labeller(algorithm)
    listed = np.arange(min(models.n_models, MOST_MODELS)) if q is None else leading_models(q)
    report = _stop_report(algorithm, options)
    certificates = _certificates(report, listed) if report is not None else _plausible(algorithm, options, listed)
    stopping = _CONTEXTUAL if algorithm.is_contextual and algorithm.n_told else None if report is None else str(report)
    trials = _trials(run, options.trials, name)
    standing = None if q is None else _standing(algorithm, q, listed, recorded, certificates, options)
    return StudyView(
        name=study.name,
        where=study.where,
        created_at=study.created_at,
        library=study.library,
        n_events=n_events,
        algorithm=algorithm.name,
        direction=algorithm.direction,
        reward_bound=algorithm.reward_bound,
        settings={key: component_to_dict(value) for key, value in run.arguments().items()},
        explained=explained_settings(run),
        n_models=models.n_models,
        n_candidates=algorithm.domain.n_candidates,
        domain=type(algorithm.domain).__name__,
        listed=listed,
        names=[models.names[int(j)] for j in listed],
        counts=counts(algorithm),
        trials=trials,
        pending=_pending(algorithm, recorded, held, name),
        noted=[NotedEvent(one.trial, "" if one.trial is None else name(one.trial), *one[1:]) for one in recorded.noted],
        best=None if several else _best(algorithm),
        standing=standing,
        certificates=certificates,
        stopping=stopping,
        curve=_curve(algorithm, certificates, trials) if options.curve else None,
        explanation=explanation(algorithm, standing, name) if options.explanation else None,
        pareto=pareto_of(run) if several else None,
        money=money_of(run),
        chosen_likelihood=chosen_likelihood(run),
    )


def chosen_likelihood(run: Algorithm) -> str | None:
    """The likelihood that the rewards so far have chosen; None where it was stated, or is always the same."""
    if not isinstance(run, EvidenceMixture) or run.likelihood != "auto":
        return None
    return run.believed_likelihood


def pareto_of(run: Algorithm) -> Pareto:
    """The best compromises of a run with several objectives."""
    assert isinstance(run, EvidenceMixture)
    assert run.objectives is not None
    front, everything = run.pareto(), run.measured_values()
    others = everything[~everything["index"].isin(front["index"])]
    names = list(run.objectives.directions)
    return Pareto(
        directions=dict(run.objectives.directions),
        trial=front["id"].tolist(),
        index=front["index"].tolist(),
        label=[label(run.domain, index) for index in front["index"]],
        values={one: front[one].to_numpy(dtype=np.float64) for one in names},
        others={one: others[one].to_numpy(dtype=np.float64) for one in names},
    )


def money_of(run: Algorithm) -> Money | None:
    """What experiments have cost; None where they have no cost."""
    if not isinstance(run, EvidenceMixture) or run.cost is None:
        return None
    return Money(run.spent, run.total_budget, run.budget_left)


def _trials(algorithm: Algorithm, last: int | None, name: Callable[[int], str]) -> TrialColumns:
    log = algorithm.log
    shown = range(len(log))[0 if last is None else max(len(log) - last, 0) :]
    part = slice(shown.start, shown.stop)
    return TrialColumns(
        id=np.arange(shown.start, shown.stop),
        index=np.array(log.index[part], dtype=np.int64),
        label=[name(trial) for trial in shown],
        model=[None if model < 0 else model for model in log.model[part]],
        explored=[bool(explored) for explored in log.explored[part]],
        propensity=np.array(log.propensity[part], dtype=np.float64),
        reward=np.array(log.reward[part], dtype=np.float64),
        state=trial_states(log, shown),
        note=[log.remarks.get(trial, "") for trial in shown],
        values={one: log.values(k)[part] for k, one in enumerate(log.objectives)},
    )


def _pending(
    algorithm: Algorithm, recorded: Recorded, held: Mapping[int, Lease], name: Callable[[int], str]
) -> list[PendingTrial]:
    index, found = algorithm.log.index, []
    for trial in sorted(recorded.asked):
        (at, worker, plate), lease = recorded.asked[trial], held.get(trial)
        until = None if lease is None or not isfinite(lease.expires_at) else lease.expires_at
        worker = worker if lease is None else lease.worker
        found.append(PendingTrial(trial, index[trial], name(trial), at, worker, plate, until))
    return found


def _best(algorithm: Algorithm) -> Best | None:
    if algorithm.n_told == 0 or algorithm.is_contextual:
        return None
    best = algorithm.best()
    model_name = None if best.model is None else algorithm.models.names[best.model]
    return Best(
        best.index, label(algorithm.domain, best.index), jsonable(best.x), float(best.value), best.model, model_name
    )


# -- models ----------------------------------------------------------------------------------------------------


def _standing(
    algorithm: Algorithm,
    q: FloatArray,
    listed: IntArray,
    recorded: Recorded,
    certificates: Certificates | None,
    options: ViewOptions,
) -> Standing:
    returns, names = returns_of(algorithm), algorithm.models.names
    behind = None if returns is None else returns - returns.max()
    first = [int(j) for j in np.argsort(-q, kind="stable")[: options.leaders]]
    model = np.array(algorithm.log.model, dtype=np.int64)
    chosen = bool(np.any(model >= 0))
    leaders = [
        Leader(
            model=j,
            name=names[j],
            q=float(q[j]),
            behind=None if behind is None else float(behind[j]),
            chosen=int(np.sum(model == j)) if chosen else None,
            plausible=None if certificates is None else bool(np.isin(j, certificates.plausible)),
        )
        for j in first
    ]
    out = np.flatnonzero(q < 0.01 / q.size)
    return Standing(
        meaning=algorithm.weights_mean,
        q=q[listed],
        returns=None if returns is None else returns[listed],
        leaders=leaders,
        n_level=int(np.sum(np.isclose(q, q.max(), rtol=1e-9, atol=0.0))),
        n_ruled_out=int(out.size),
        ruled_out=[names[int(j)] for j in out[:_MOST_NAMES]],
        history=_history(algorithm.n_told, q, recorded, leaders, options.delta) if options.history else None,
        memories=_memories(algorithm, q),
    )


def _memories(algorithm: Algorithm, q: FloatArray) -> list[Memory]:
    """What old campaigns were worth so far."""
    if algorithm.weights_mean != "posterior" or not (algorithm.models.encoding or {}).get("memories"):
        return []
    from alexp.table.memory import worth

    return [
        Memory(name, prior, now, memory_sentence(name, prior, now, algorithm.n_told))
        for name, (prior, now) in worth(algorithm.models, q).items()
    ]


def memory_sentence(name: str, prior: float, now: float, n_told: int) -> str:
    """How much a campaign was worth: the weight of its models beside their prior weight, and the odds between the two.

    >>> memory_sentence("2023", 0.4, 0.4, 0)
    "The models of '2023' have 40% of the weight; rewards will tell what the past is worth."
    """
    if n_told == 0:
        return f"The models of {name!r} have {prior:.0%} of the weight; rewards will tell what the past is worth."
    odds = min(max(now * (1.0 - prior) / max((1.0 - now) * prior, 1e-300), 1e-6), 1e6)
    weights = f"had {prior:.0%} of the weight before the first reward, and have {now:.0%} now."
    if odds >= _TELLING:
        return f"The past helps: rewards speak for {name!r}, {odds:.2g} to 1. Its models {weights}"
    if odds <= 1.0 / _TELLING:
        against = f"rewards speak against {name!r}, {1.0 / odds:.2g} to 1"
        return f"The past is of little use here: {against}. Its models {weights}"
    return f"Whether the past helps is open: the models of {name!r} {weights}"


def _history(n_told: int, now: FloatArray, recorded: Recorded, leaders: list[Leader], delta: float) -> History:
    beliefs, models = [belief for _, belief in recorded.beliefs], [leader.model for leader in leaders]
    told = np.array([belief["told"] for belief in beliefs] + [n_told], dtype=np.int64)
    q = [_recorded(belief, belief["q"], models) for belief in beliefs] + [np.array([leader.q for leader in leaders])]
    likeliest = np.array([_likeliest(belief["q"], delta) for belief in beliefs] + [_likeliest(now, delta)])
    if any(leader.behind is None for leader in leaders):
        return History(told, np.array(q), None, likeliest)
    behind = [_recorded(belief, belief["returns"], models) - float(belief["returns"].max()) for belief in beliefs]
    behind.append(np.array([leader.behind for leader in leaders], dtype=np.float64))
    return History(told, np.array(q), np.array(behind), likeliest)


def _likeliest(q: FloatArray | NarrowArray, delta: float) -> int:
    """How many of the largest probabilities sum to 1 - delta, up to the rounding of recorded values."""
    together = np.cumsum(np.sort(q.astype(np.float64))[::-1])
    return min(int(np.searchsorted(together, 1.0 - delta - 1e-6)) + 1, q.size)


def _recorded(belief: BeliefRecord, values: NarrowArray, models: list[int]) -> FloatArray:
    """Recorded values of the models; NaN where not recorded."""
    place = {int(j): k for k, j in enumerate(belief.get("models", range(values.size)))}  # later there may be more
    return np.array([values[place[j]] if j in place else np.nan for j in models], dtype=np.float64)


# -- certificates and curve --------------------------------------------------------------------------------------


def _stop_report(algorithm: Algorithm, options: ViewOptions) -> StopReport | None:
    """The stop report; None if it was not requested or is not available."""
    subject: object = algorithm
    work = algorithm.models.n_models * algorithm.domain.n_candidates
    if algorithm.is_contextual or not options.certificates or algorithm.n_told == 0 or work > _CERTIFIED_WORK:
        return None
    return subject.stop_report(options.delta) if offers(subject, Certifies) else None


def _plausible(algorithm: Algorithm, options: ViewOptions, listed: IntArray) -> Certificates | None:
    """Plausible models of contextual runs; other certificates need a context."""
    subject: object = algorithm
    work = algorithm.models.n_models * algorithm.n_told
    if not (algorithm.is_contextual and options.certificates and 0 < work <= _CERTIFIED_WORK):
        return None
    if not offers(subject, Certifies) or not subject.certifies:
        return None
    try:
        plausible = subject.plausible_models(options.delta)
    except NotCertified:
        return None
    shown = np.intersect1d(plausible, listed, assume_unique=True)
    return Certificates(options.delta, inf, int(plausible.size), shown, subject.rests_on)


def _certificates(report: StopReport, listed: IntArray) -> Certificates | None:
    if not report.certified or report.rests_on is None:
        return None
    plausible = np.intersect1d(report.plausible, listed, assume_unique=True)
    return Certificates(report.delta, float(report.epsilon), int(report.plausible.size), plausible, report.rests_on)


def _curve(algorithm: Algorithm, certificates: Certificates | None, trials: TrialColumns) -> Curve | None:
    domain = algorithm.domain
    if not isinstance(domain, Interval) or algorithm.n_told == 0:
        return None
    n = domain.n_candidates
    shown = np.unique(np.linspace(0, n - 1, min(n, _MOST_POINTS)).round().astype(np.int64))
    points = domain.points[shown]
    subject: object = algorithm
    estimate = spread = lower = upper = None
    if offers(subject, Predicts):
        estimate, spread = subject.predict(points)
    elif offers(subject, Estimates) and (fit := subject.fit) is not None:
        sign = 1.0 if algorithm.direction == "maximize" else -1.0
        estimate = sign * predict(fit, algorithm.features()[shown].T)
        estimate = algorithm.within_range(estimate)
    if certificates is not None and offers(subject, Certifies):
        lower, upper = subject.confidence(points, certificates.delta)
    return Curve(points, estimate, spread, lower, upper, domain.points[trials.index])


# -- explanation -----------------------------------------------------------------------------------------------

_MOST_WORK = 5_000_000  # models x rewards up to which `explanation` is computed


def explanation(algorithm: Algorithm, standing: Standing | None, name: Callable[[int], str]) -> Explanation | None:
    """Predictions of the two leading models for every reward; None if not available, or if they would take too long."""
    subject: object = algorithm
    work = algorithm.models.n_models * algorithm.n_told
    if standing is None or work == 0 or work > _MOST_WORK or not offers(subject, LooksBack):
        return None
    if algorithm.log_features == "none":  # rows are not kept
        return None
    leaders = standing.leaders[:2]
    if not leaders:
        return None
    seen, log = subject.hindsight([leader.model for leader in leaders]), algorithm.log
    trials = np.array(log.told_in_order(), dtype=np.int64)
    both = len(leaders) == 2
    return Explanation(
        leader=leaders[0].name,
        runner_up=leaders[1].name if both else None,
        trial=trials,
        label=[name(int(trial)) for trial in trials],
        reward=np.array([log.reward[int(trial)] for trial in trials]),
        expected=seen.mean,
        spread=seen.std,
        by_leader=seen.model_mean[:, 0],
        by_runner_up=seen.model_mean[:, 1] if both else None,
        odds=-seen.log_odds[:, 1] / np.log(10.0) if both else None,
    )


# -- settings --------------------------------------------------------------------------------------------------

_MEANING = {
    "noise_std": "σ, standard deviation of the noise",
    "reward_bound": "B, bound on the size of the reward",
    "norm_bound": "bound on the norm of the coefficients",
    "reward_range": "lowest and highest reward that is possible",
    "noise": "shape of the noise",
    "repeats": "whether a measured candidate may be proposed again",
    "direction": "whether large or small rewards are good",
}

_OBJECTIVES = {
    "objectives": "what is improved at once",
    "cost": "what an experiment costs: a column or feature, or a number per candidate or arm",
    "budget": "what all experiments may cost, or a contextual round on average",
}

# Further settings of mixtures.
_MEANING_IN_MIXTURES = {
    "goal": "large rewards in every round, or one large reward soon",
    "rule": "decision rule, from mean m and standard deviation s",
    "beta": "width of the index m + β s; None: by rule and round",
    "power": "weights of models ∝ prior × evidence^power",
    "noise_grid": "levels of noise with a component each, × σ",
    "scale_grid": "sizes of coefficients with a component each, × bound",
    "ratio_grid": "ratios of noise to prior variance with a component each",
    "gamma": "share γ t^(-1/3) of even play",
    "floor": "least share of even play",
    "draws": "posterior draws that a round chooses among",
    "sharpness": "shares ∝ P(best)^sharpness",
    "forget": "weight of a reward per later one",
    "likelihood": "of a reward: Gaussian, or 0 or 1 (logistic)",
}


def explained_settings(algorithm: Algorithm) -> list[SettingLine]:
    """The arguments of an algorithm as formula and value."""
    models, domain = algorithm.models, algorithm.domain
    sizes = f"{models.n_models}, {models.n_columns}, {models.dimension}"
    known = str(domain.n_candidates) if domain.n_candidates else "differ by round"
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
    more = algorithm.arguments()
    rows += [SettingLine(key, meaning, _named(more[key])) for key, meaning in _OBJECTIVES.items() if key in more]
    meanings: dict[str, str] = _MEANING_IN_MIXTURES if "goal" in algorithm.settings else {}
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


def _named(value: object) -> str:
    return ", ".join(f"{key}: {one}" for key, one in value.items()) if isinstance(value, dict) else _text(value)


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, dict) or (isinstance(value, list | tuple) and len(value) > 5):
        kinds = sorted({repr(item) for item in (value.values() if isinstance(value, dict) else value)})
        return f"{len(value)} of them: {', '.join(kinds[:5])}"
    if isinstance(value, list | tuple):
        return ", ".join(_text(item) for item in value) or "none"
    return str(value)
