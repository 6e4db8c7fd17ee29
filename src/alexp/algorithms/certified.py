"""Certificates: which models are still plausible, what the reward can be, and whether one may stop.

Certified statements hold at every moment of an adaptive run at once with probability 1 - delta, if

* one of the models is true;
* the noise is sub-Gaussian with the parameter `noise_std` that was stated;
* the true coefficients have at most the norm `norm_bound` that was stated (in the features as `ModelClass.features`
  returns them), or the noiseless reward of every candidate is at most the `reward_bound` that was stated in size, which
  implies a norm for each model (`alexp.problem.bounds`);
* the order of tells, and the choice of which measurements to `observe`, did not depend on the rewards. Telling the best
  results first, or leaving out failures, makes them false.

They need neither a prior nor exploration. What was not stated is not certified: `NotCertified` says what is missing.
Once the rewards contradict what was stated (`check_models`), nothing is certified any more; with `forget=`, nothing is.

The likelihood-mixing argument: average the Gaussian marginal likelihoods of all M models. Divided by the likelihood
of the truth it is a non-negative supermartingale that starts at one, so by Ville's inequality it exceeds 1/delta at
any time with probability at most delta. The ridge penalty of the fits is the prior used in that average; any fixed
value is valid, noise_std over the norm is the natural one. With an unpenalised intercept the first reward fixes the
constant: delta is split between that reward's noise and all that follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from alexp.algorithms.assumptions import NotCertified, Stated
from alexp.algorithms.base import Algorithm, RoundArguments, any_given, rows_of
from alexp.algorithms.capabilities import WeighsModels, offers
from alexp.algorithms.log import TrialLog
from alexp.algorithms.offer_log import Forgotten
from alexp.common.arrays import Action, FloatArray, IntArray
from alexp.common.notebook import paragraph
from alexp.common.validation import SMALLEST, fraction, positive
from alexp.decision.widths import model_radii, model_radii_with_constant
from alexp.estimation.checking import Ledger, Monitor, Rewards
from alexp.estimation.credible import CrediblePrediction, believe, log_odds_of_a_constant, typical_norms
from alexp.estimation.posteriors import NotFiniteError, Posteriors
from alexp.problem.bounds import NormBounds, curvature_bounds, norm_bounds
from alexp.problem.candidates import CandidateTable, Choices, Round
from alexp.problem.domains import Available, Ball, Domain, Interval
from alexp.problem.models import ModelClass
from alexp.problem.offers import Reference
from alexp.problem.rows import spread

Ends = Any  # a float for one action, an array (n,) for several
_LONGEST = 60  # characters of an action in a sentence


class Band(NamedTuple):
    """Certified lower and upper ends of the reward; floats for one action, arrays for several."""

    lower: Ends
    upper: Ends


@dataclass(frozen=True)
class ModelCheck:
    """Whether the rewards contradict what was stated: noise_std, the bound, and that one of the models is true.

    Attributes
    ----------
    contradicted : whether they do. If everything stated is true, this ever happens with probability at most `delta`.
    at : number of rewards after which it first did; None if it has not.
    e_value : log of the e-value; contradicted once it exceeds log(1 / delta).
    rejected : numbers of the models that are contradicted each by itself, at level delta / M.
    speaks_against : if contradicted, "noise" where noise up to ten times as large would explain the rewards, "bound"
        where a bound up to a hundred times as large would, "models" where neither does; empty otherwise.
    checked : False where checking would have taken too long; nothing is known then.
    """

    delta: float
    contradicted: bool
    at: int | None
    e_value: float
    rejected: IntArray
    speaks_against: tuple[str, ...]
    checked: bool = True

    @property
    def text(self) -> str:
        """One sentence."""
        if not self.checked:
            return "not checked: so many models and rewards would take too long"
        if not self.contradicted:
            return "the rewards do not contradict what was stated"
        told = {
            "noise": "noise_std is too small, or what the models leave out looks like more noise",
            "bound": "the bound is too small",
            "models": "none of the models is true, and neither more noise nor a larger bound would explain it",
        }
        causes = "; or ".join(told[cause] for cause in self.speaks_against)
        return f"the rewards contradict what was stated, first after {self.at} of them: {causes}"

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return paragraph(self)


@dataclass(frozen=True)
class StopReport:
    """How far the recommended action may be from the best candidate.

    Attributes
    ----------
    x, index : the recommended action.
    delta : probability with which a certified statement may fail, over all moments of the run together.
    epsilon : no candidate is better than it by more than this: with probability 1 - delta at every moment of the run if
        `certified`; otherwise an estimate by the algorithm's own posterior (by a mixture of all models in the units of
        the rewards, where it has none or the rewards contradict what it was told), which may be wrong.
    target : the epsilon asked for, if any.
    plausible : numbers of the models not ruled out; if not certified, the likeliest that together have 1 - delta of the
        probability.
    disagreeing : those under which the action may be worse than `target`; without a target, those whose own
        estimate has its maximum elsewhere. Largest gap first. Empty if not certified.
    certified : whether epsilon is proved from what was stated.
    reason : why it is not; None if it is.
    between_candidates : on an Interval, by how much more a point between the candidates may be better; None where
        candidates are all there is, or where no bound is known (a Box, feature maps of one's own).
    checked : whether the rewards were held against what was stated, see `check_models`.
    rests_on : if certified, what that rests on, as a clause.
    """

    x: Action
    index: int
    delta: float
    epsilon: float
    target: float | None
    plausible: IntArray
    disagreeing: IntArray
    certified: bool = False
    reason: str | None = None
    between_candidates: float | None = None
    checked: bool = True
    rests_on: str | None = None

    @property
    def can_stop(self) -> bool:
        """Whether the epsilon is certified and within the target."""
        return self.certified and self.target is not None and self.epsilon <= self.target

    def __str__(self) -> str:
        text = f"{described(self.x)} is"
        if not self.certified:
            text += f" probably within {self.epsilon:.3g} of the best candidate, by an estimate without a guarantee"
            return f"{text}: {self.reason}"
        times = 100.0 * (1.0 - self.delta)
        text += f" within {self.epsilon:.3g} of the best candidate, in at least {times:g} of 100 runs like this one"
        if self.between_candidates is not None:
            everywhere = self.epsilon + self.between_candidates
            text += f", and within {everywhere:.3g} of the best point between the candidates"
        if self.rests_on is not None:
            text += f", {self.rests_on}"
        return text if self.checked else f"{text}; whether the rewards are as stated was not checked"

    def _repr_html_(self) -> str:
        return paragraph(self)


def described(x: Action) -> str:
    """An action in one short line.

    >>> described(0.25), described(np.array([1.0, 2.5])), described("water")
    ('0.25', '(1, 2.5)', 'water')
    """
    if hasattr(x, "items"):  # a row of a table
        text = ", ".join(f"{key} = {described(value)}" for key, value in x.items())
    elif isinstance(x, np.ndarray | list | tuple) and np.ndim(x) == 1:
        text = f"({', '.join(described(value) for value in x)})"
    elif isinstance(x, float | np.floating):
        text = f"{x:.6g}"
    else:
        text = " ".join(str(x).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


_CHECKED_WORK = 1e9  # squared sizes of all models times rewards; some ten seconds
_FINEST = 5_000  # points of an interval that are looked at between the candidates
_GAP_WORK = 2e7  # models times points times squared sizes


class PlausibleFits(NamedTuple):
    """The fits that are not ruled out: positions among the fits, and the radii of their confidence sets."""

    fits: Posteriors
    local: IntArray
    radii: FloatArray


def rewards_told(log: TrialLog, candidates: CandidateTable | None, sign: float) -> Rewards:
    """All rewards so far, in the order in which they came, to be maximised.

    Candidates of contextual rounds are never the same: they have a negative number each.
    """
    ids = np.array(log.told_in_order(), dtype=np.int64)
    rewards = sign * np.array(log.reward, dtype=np.float64)[ids]
    try:
        rows = rows_of(log, candidates, ids)
    except Forgotten as error:
        raise NotCertified(str(error)) from error
    return Rewards(np.array(log.index, dtype=np.int64)[ids] if log.offers is None else -1 - ids, rewards, rows)


def missing(stated: Stated) -> str | None:
    """What would have to be stated for certificates, as a sentence; None if nothing is missing."""
    if stated.noise_std is None:
        return "noise_std was not stated; certificates need the size of the noise"
    if stated.reward_bound is None and stated.norm_bound is None:
        return "neither reward_bound nor norm_bound was stated; certificates need one of them"
    return None


def condition(stated: Stated, n_models: int) -> str:
    """What certificates rest on, as a clause; with both bounds stated, `norm_bound` is the one that is used.

    >>> condition(Stated(0.1, 2.0, None), 15)
    'if one of the 15 models is true, the noise is at most noise_std = 0.1 and rewards are within reward_bound = 2'
    """
    truth = "the model is true" if n_models == 1 else f"one of the {n_models} models is true"
    if stated.norm_bound is None:
        bound = f"rewards are within reward_bound = {stated.reward_bound:g}"
    else:
        bound = f"its norm is within norm_bound = {stated.norm_bound:g}"
    return f"if {truth}, the noise is at most noise_std = {stated.noise_std:g} and {bound}"


class Certifier:
    """Certificates about some models from rewards told, all of it made when first asked for."""

    def __init__(self, models: ModelClass, candidates: CandidateTable | None, stated: Stated) -> None:
        if (reason := missing(stated)) is not None:
            raise NotCertified(reason)
        assert stated.noise_std is not None
        self._models, self._candidates, self._stated = models, candidates, stated
        self._noise_std = stated.noise_std
        self.told = Rewards(np.empty(0, dtype=np.int64), np.empty(0), np.empty((0, models.n_columns)))

    @cached_property
    def norms(self) -> NormBounds:
        """S_j: `norm_bound` where stated, else what `reward_bound` implies for each model."""
        if self._stated.norm_bound is not None:
            m = self._models.n_models
            return NormBounds(np.full(m, self._stated.norm_bound), np.ones(m, dtype=bool))
        assert self._stated.reward_bound is not None
        if self._models.kernels is not None:
            raise NotCertified(
                "reward_bound says nothing about a function's norm under a kernel; state norm_bound, a bound on that"
            )
        if self._candidates is None:
            raise NotCertified(
                "reward_bound says nothing about coefficients where candidates are not known before the round; state "
                "norm_bound"
            )
        return norm_bounds(self._models, self._candidates.table, self._stated.reward_bound)

    @property
    def _known(self) -> CandidateTable | Reference:
        """What typical features are taken from: the candidates, an example of them, or the rows told."""
        if self._candidates is not None:
            return self._candidates
        example = self._models.example_rows
        return Reference(self.told.rows if example is None else example)

    @cached_property
    def _ledger(self) -> Ledger:
        return Ledger(self._models, self._noise_std, self.norms.values)

    @cached_property
    def _monitor(self) -> Monitor:
        columns = None if self._candidates is None else self._candidates.table
        if columns is None and self._models.example_rows is not None:
            columns = self._models.example_rows.T
        return Monitor(self._models, columns, self._noise_std, self.norms.values, self._size)

    def _size(self, known: CandidateTable | Reference | None = None) -> float:
        """A typical size of rewards, if what was stated is not far off."""
        if self._stated.reward_bound is not None:
            return self._stated.reward_bound / 3.0
        typical = typical_norms(self._models, known or self._known)
        size = float(np.median(self.norms.values * typical / self._models.roots))
        return size if size > 0.0 else self._noise_std

    def check(self, delta: float) -> ModelCheck:
        """The e-process of all rewards told."""
        work = float(np.square(np.diff(self._models.offsets), dtype=np.float64).sum()) * len(self.told)
        if work > _CHECKED_WORK:
            return ModelCheck(delta, False, None, 0.0, np.empty(0, dtype=np.int64), (), checked=False)
        monitor = self._monitor
        monitor.catch_up(self.told)
        at = monitor.contradicted_at(delta)
        against = () if at is None else monitor.speaks_against(delta, self.told)
        return ModelCheck(delta, at is not None, at, monitor.log_e_value, monitor.rejected(delta), against)

    def lacks_a_constant(self, delta: float) -> str | None:
        """Why models without a constant should not be trusted with these rewards; None if nothing speaks for one."""
        norms = typical_norms(self._models, self._known)
        if log_odds_of_a_constant(self._models, norms, self.told) <= np.log(1.0 / delta):
            return None
        low, high = float(self.told.rewards.min()), float(self.told.rewards.max())
        return (
            f"the rewards, from {low:.3g} to {high:.3g}, speak for a constant that the models lack; give them one "
            "with intercept=True"
        )

    def plausible(self, delta: float) -> PlausibleFits:
        """The models that survive at level delta; NotCertified where none does, or nothing is known yet."""
        ledger, noise = self._ledger, self._noise_std
        ledger.catch_up(self.told)
        fits, numbers = ledger.fits, (ledger.ridge, noise, self.norms.values, delta)
        losses, levels = fits.residuals(), fits.log_determinants()
        if not fits.intercept:
            squares = model_radii(losses, levels, *numbers)
        elif len(self.told) == 0:
            raise NotCertified("no reward was told yet, and the models' constant may be anything")
        else:
            squares = model_radii_with_constant(losses, levels, fits.counts, *numbers)
        local = np.flatnonzero(squares >= 0.0)
        if local.size == 0:
            raise NotCertified(
                "the rewards rule out every model: noise_std or the bound is too small, or no model is true"
            )
        return PlausibleFits(fits, local, np.sqrt(squares[local]))

    def covers(self, plausible: PlausibleFits, domain: Domain, points: FloatArray) -> bool:
        """Whether bands at these points are bounded by rewards at candidates."""
        if self._candidates is None or not isinstance(domain.points, np.ndarray):
            return True
        if self.norms.determined[plausible.local].all():
            return True
        grid = domain.points.reshape(domain.n_candidates, -1)
        return all(np.any(np.all(grid == point, axis=1)) for point in np.asarray(points).reshape(len(points), -1))

    def between(self, plausible: PlausibleFits, domain: Domain, position: int, epsilon: float) -> float | None:
        """By how much more than epsilon a point between an interval's candidates may beat the one at `position`.

        The same bound as for candidates on a finer grid, plus what any model can bend between two points of that.
        """
        known = self._models.kernels is None and self.norms.determined[plausible.local].all()
        if self._candidates is None or not isinstance(domain, Interval) or not known:
            return None
        curvature = curvature_bounds(self._models.dictionary, domain)
        if curvature is None or domain.n_candidates < 2:
            return None
        bends = np.sqrt(np.add.reduceat(curvature[self._models.columns_flat] ** 2, self._models.offsets[:-1]))
        steepest = float((self.norms.values * bends / self._models.scales)[plausible.local].max())
        work = plausible.local.size * self._models.dimension**2
        finer = max(1, int(min(_FINEST, _GAP_WORK / work)) // domain.n_candidates)
        cells = finer * (domain.n_candidates - 1)
        larger = 0.0
        if finer > 1:
            grid = np.linspace(domain.lower, domain.upper, cells + 1)
            table = self._models.columns(grid).T
            table = np.ascontiguousarray(np.column_stack([self._candidates.table[:, position], table]))
            gaps, _ = plausible.fits.largest_gaps(plausible.local, plausible.radii, Choices(None, table), 0)
            larger = max(float(gaps.max()) - epsilon, 0.0)
        step = (domain.upper - domain.lower) / cells
        return larger + steepest * step**2 / 8.0


_LOOKED_AT = 300  # candidates that are looked at for what is wrong with a model
DELTA = 0.05  # the default everywhere: statements fail in at most one run of twenty


class Certified(Algorithm):
    """An algorithm that certifies: adds `plausible_models`, `confidence`, `stop_report` and `check_models`.

    All of it is computed from the log of rewards when asked for; an algorithm's own decisions are not involved.
    """

    ridges_per_model: ClassVar[int] = 1
    _certifier: Certifier | None = None

    @property
    def certifies(self) -> bool:
        """Whether enough was stated: the noise, and a bound."""
        return missing(self.stated) is None and self.forget is None

    @property
    def rests_on(self) -> str:
        """What every certificate rests on, as a clause: "if one of the 3 models is true, ..."."""
        if (reason := missing(self.stated)) is not None:
            raise NotCertified(reason)
        return condition(self.stated, self._certified_models().n_models)

    def plausible_models(self, delta: float = DELTA) -> IntArray:
        """Numbers of the models not yet ruled out, in increasing order; at least one, or NotCertified.

        The true model is among them at every moment of the run with probability 1 - delta.
        """
        _, plausible, _ = self._certificate(delta)
        return self._numbers()[plausible.local]

    def confidence(
        self,
        x: Action = None,
        delta: float = DELTA,
        *,
        context: object = None,
        candidates: Action = None,
        features: object = None,
    ) -> Band:
        """Certified band of the noiseless reward at `x`, over all plausible models and all their coefficients.

        At all n candidates of a contextual round, if one is passed as to `ask`. NotCertified where there is no such
        statement: see this module.
        """
        rows, single = self._rows_at(x, {"context": context, "candidates": candidates, "features": features})
        certifier, plausible, _ = self._certificate(delta)
        if not self.is_contextual and not certifier.covers(plausible, self.domain, self.domain.batch(x)[0]):
            raise NotCertified(
                "x is no candidate, and reward_bound says nothing about other points, because the features of some "
                "models are linearly dependent on the candidates; state norm_bound, or refine the domain"
            )
        lower, upper, _ = plausible.fits.envelope(
            plausible.local, plausible.radii, Choices(None, np.ascontiguousarray(rows.T))
        )
        if self._sign < 0.0:
            lower, upper = -upper, -lower
        lower, upper = self.within_range(lower), self.within_range(upper)
        return Band(float(lower[0]), float(upper[0])) if single else Band(lower, upper)

    def check_models(self, delta: float = DELTA) -> ModelCheck:
        """Whether the rewards contradict what was stated; if all of it is true, they ever do with probability delta.

        Models are held against a mixture of Gaussian processes that needs none of them, see `estimation.checking`. May
        be looked at as often as one likes. Needs `noise_std` and a bound; NotCertified says which is missing.
        """
        fraction("delta", delta)
        check = self._cached(("check", delta), lambda: self._certify().check(delta))
        return ModelCheck(**(vars(check) | {"rejected": self._numbers()[check.rejected]}))

    def stop_report(
        self,
        delta: float = DELTA,
        epsilon: float | None = None,
        *,
        available: Available = None,
        context: object = None,
        candidates: Action = None,
        features: object = None,
    ) -> StopReport:
        """Whether the recommended action is within `epsilon` of the best, and the smallest epsilon that holds.

        Where nothing can be certified the report says why, and how large the gap is by the algorithm's own estimate.
        In contextual runs it is about one round, passed as to `ask`.
        """
        target = None if epsilon is None else positive("epsilon", epsilon)
        fraction("delta", delta)
        if isinstance(self.domain, Ball) and candidates is None:
            raise NotCertified("stop_report compares candidates, and a ball has no list: pass candidates=points")
        presented: RoundArguments = {"context": context, "candidates": candidates, "features": features}
        round_, offer = self._recommended_on(available, presented)
        best, position = self._best(round_, offer)
        try:
            certifier, (fits, local, radii), checked = self._certificate(delta)
        except NotCertified as error:
            gap, likely = self._credible(round_, position, delta)
            none = np.empty(0, dtype=np.int64)
            return StopReport(best.x, best.index, delta, gap, target, likely, none, reason=str(error))
        gaps, estimates = fits.largest_gaps(local, radii, round_.choices, position)
        disagrees = np.flatnonzero(estimates > 0.0 if target is None else gaps > target)
        ranked = disagrees[np.argsort(-gaps[disagrees], kind="stable")]
        numbers, now = self._numbers()[local], float(gaps.max())
        if self.reward_range is not None:
            lower, _, _ = fits.envelope(
                local, radii, Choices(None, np.ascontiguousarray(round_.choices.table[:, [position]]))
            )
            now = min(now, self.reward_range.largest_gap(float(lower[0]), self._sign))
        between = certifier.between(PlausibleFits(fits, local, radii), self.domain, position, now)
        return StopReport(
            best.x, best.index, delta, now, target, numbers, numbers[ranked],
            certified=True, between_candidates=between, checked=checked, rests_on=self.rests_on,
        )  # fmt: skip

    # -- what subclasses may change ----------------------------------------------------------------------------

    def _certified_models(self) -> ModelClass:
        """The models one of which is supposed to be true."""
        return self.models

    def _numbers(self) -> IntArray:
        """Their numbers among all models."""
        return np.arange(self.models.n_models)

    def _predictive(self, round_: Round) -> CrediblePrediction:
        """Mean and standard deviation of the reward at all choices of a round: not certified."""
        told = self._rewards_told()
        return believe(self.models, self._known_features() or Reference(told.rows), round_.choices, told)

    # -- inside ------------------------------------------------------------------------------------------------

    def _rewards_told(self) -> Rewards:
        """All rewards so far, in the order in which they came, to be maximised."""
        return rewards_told(self._log, self._candidates, self._sign)

    def _explanation(self, error: NotFiniteError) -> str:
        """Name the model, and its column that is farthest from zero for its spread."""
        number, table = int(self._numbers()[error.model]), self._candidates
        name, columns = self.models.names[number], self.models.groups[number]
        told = self._rewards_told().rows
        rows = told if table is None else table.rows(spread(table.n_candidates, _LOOKED_AT))
        what = f"the {error.what} of model {name!r} is not a finite number after {self.n_told} rewards"
        if not len(rows):
            return what
        low, high = rows[:, columns].min(axis=0), rows[:, columns].max(axis=0)
        size, apart = np.maximum(np.abs(low), np.abs(high)), np.maximum(high - low, SMALLEST)
        worst = int(np.argmax(size / apart))
        return (
            f"{what}; its column {self.models.dictionary.names[int(columns[worst])]!r}, between {low[worst]:g} and "
            f"{high[worst]:g}, is the farthest from zero for its spread. Rescale the columns, or leave out the model"
        )

    def _rows_at(self, x: Action, presented: RoundArguments) -> tuple[FloatArray, bool]:
        """The dictionary at an action or several, or at all candidates of a contextual round, and if it is but one."""
        if not self.is_contextual and not any_given(presented):
            return self.models.rows(self.domain, x)
        if x is not None:
            raise ValueError("actions of contextual runs have features in a round only: pass it as to ask, without x")
        return self._check_offer(**presented).rows, False

    def _certify(self) -> Certifier:
        """The certifier, caught up with all rewards."""
        if self.forget is not None:
            raise NotCertified(
                f"forget={self.forget:g} is for rewards that drift; certificates are about rewards that do not"
            )
        if not self.models.is_listable:
            raise NotCertified(
                f"certificates look at models one by one, and {self.models.n_models} are enumerated, never listed"
            )
        if self._certifier is None:
            self._certifier = Certifier(self._certified_models(), self._candidates, self.stated)
        self._certifier.told = self._cached("told", self._rewards_told)
        return self._certifier

    def _certificate(self, delta: float) -> tuple[Certifier, PlausibleFits, bool]:
        """What survives at level delta, and whether it was checked; NotCertified if the rewards contradict it all."""
        fraction("delta", delta)
        certifier, check = self._certify(), self.check_models(delta)
        if check.contradicted:
            raise NotCertified(check.text)
        if (reason := self._cached(("constant", delta), lambda: certifier.lacks_a_constant(delta))) is not None:
            raise NotCertified(reason)
        return certifier, self._cached(("plausible", delta), lambda: certifier.plausible(delta)), check.checked

    def _credible(self, round_: Round, position: int, delta: float) -> tuple[float, IntArray]:
        """The gap by an estimate, and the likeliest models with 1 - delta of the probability.

        Where the rewards contradict what was stated, so do they what an algorithm makes of it: then the estimate is
        one that needs no statements.
        """
        from scipy.special import stdtrit  # slow to import, and needed here only

        contradicted = self.certifies and self.models.is_listable
        belief = Certified._predictive(self, round_) if contradicted else self._predictive(round_)
        quantile = float(stdtrit(self.n_told + 2.0, 1.0 - delta / 2.0))
        subject: object = self
        if not self.models.is_listable:
            return self._gap(self._predictive(round_), position, quantile), np.empty(0, dtype=np.int64)
        own = offers(subject, WeighsModels) and not contradicted
        q = subject.probabilities if own and offers(subject, WeighsModels) else belief.probabilities
        if q is None:
            return self._gap(belief, position, quantile), self._numbers()
        ranked = np.argsort(-q, kind="stable")
        needed = int(np.searchsorted(np.cumsum(q[ranked]), 1.0 - delta)) + 1
        return self._gap(belief, position, quantile), np.sort(ranked[:needed])

    def _gap(self, belief: CrediblePrediction, position: int, quantile: float) -> float:
        """By how much another candidate may beat the one at `position`, within the range of rewards."""
        gap = belief.gap(position, quantile)
        if self.reward_range is None:
            return gap
        lower = float(belief.mean[position] - quantile * belief.std[position])
        return min(gap, self.reward_range.largest_gap(lower, self._sign))
