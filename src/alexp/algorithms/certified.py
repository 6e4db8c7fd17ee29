"""Certificates: which models are still plausible, what the reward can be, and whether one may stop.

Certified statements hold at every moment of an adaptive run at once with probability 1 - delta, if

* one of the models is true;
* either the noise is Gaussian with one variance for all rewards, whatever it is: `noise="gaussian"`, see
  `estimation.shape`;
* or the noise is sub-Gaussian with the parameter `noise_std` that was stated, and the true coefficients have at most
  the norm `norm_bound` that was stated (in the features as `ModelClass.features` returns them), or the noiseless reward
  of every candidate is at most the `reward_bound` that was stated in size, which implies a norm for each model
  (`alexp.problem.bounds`). Where these are stated they are used, whether or not the shape is;
* the order of tells, and the choice of which measurements to `observe`, did not depend on the rewards. Telling the best
  results first, or leaving out failures, makes them false.

They need neither a prior nor exploration. What was not stated is not certified: `NotCertified` says what is missing.
Once the rewards contradict what was stated (`check_models`), nothing is certified any more; with `forget=`, nothing is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import ClassVar, TypeVar

import numpy as np

from alexp.algorithms.assumptions import NotCertified
from alexp.algorithms.base import Algorithm, RoundArguments, any_given
from alexp.algorithms.capabilities import WeighsModels, offers
from alexp.algorithms.certifier import (
    Certifier,
    PlausibleFits,
    ShapeCertifier,
    SharedCertifier,
    StatedCertifier,
    ToldSoFar,
    condition,
    missing,
)
from alexp.algorithms.statements import DELTA, Band, ModelCheck, StopReport
from alexp.common.arrays import Action, FloatArray, IntArray
from alexp.common.validation import SMALLEST, fraction, positive
from alexp.estimation.calibrated import PriorGap, PriorLedger
from alexp.estimation.checking import Rewards
from alexp.estimation.credible import CrediblePrediction, believe
from alexp.estimation.posteriors import NotFiniteError
from alexp.problem.candidates import Choices, Round
from alexp.problem.domains import Available, Ball
from alexp.problem.models import ModelClass
from alexp.problem.offers import Reference
from alexp.problem.rows import spread

_T = TypeVar("_T")
TYPICAL = (
    "if the rewards are of the kind that the models expect and errors are bell-shaped with the same spread everywhere"
)
_LOOKED_AT = 300  # candidates that are looked at for what is wrong with a model


class Certified(Algorithm):
    """An algorithm that certifies: adds `plausible_models`, `confidence`, `stop_report` and `check_models`.

    All of it is computed from the log of rewards when asked for; an algorithm's own decisions are not involved.
    """

    ridges_per_model: ClassVar[int] = 1
    _certifier: Certifier | None = None
    _prior_ledger: PriorLedger | None = None
    _told_so_far: ToldSoFar | None = None
    _last_check: tuple[ModelCheck, ModelCheck] | None = None  # the last one, and with names

    @property
    def certifies(self) -> bool:
        """Whether enough was stated: the shape of the noise, or its size and a bound."""
        return (self.noise is not None or missing(self.stated) is None) and self.not_certified is None

    @property
    def not_certified(self) -> str | None:
        """Why nothing can be certified, whatever is stated; None where it can."""
        if self.forget is None:
            return None
        return f"forget={self.forget} is for rewards that drift; certificates are about rewards that do not"

    @property
    def rests_on(self) -> str:
        """What every certificate rests on, as a clause: "if one of the 3 models is true, ..."."""
        if self.noise is None and (reason := missing(self.stated)) is not None:
            raise NotCertified(reason)
        return condition(self.stated, self._certified_models().n_models, self.noise, self.reward_range)

    def plausible_models(self, delta: float = DELTA) -> IntArray:
        """Numbers of the models not yet ruled out, in increasing order; at least one, or NotCertified.

        The true model is among them at every moment of the run with probability 1 - delta.
        """
        _, local, _ = self._said(delta, "plausible", lambda certifier: certifier.plausible(delta))
        return self._numbers()[local]

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
        lower, upper = plausible.envelope(Choices(None, np.ascontiguousarray(rows.T)))
        if not np.isfinite(upper - lower).any():
            raise NotCertified("x has features that no reward so far says anything about; measure one that has them")
        if self._sign < 0.0:
            lower, upper = -upper, -lower
        lower, upper = self.within_range(lower), self.within_range(upper)
        return Band(float(lower[0]), float(upper[0])) if single else Band(lower, upper)

    def check_models(self, delta: float = DELTA) -> ModelCheck:
        """Whether the rewards contradict what was stated; if all of it is true, they ever do with probability delta.

        Models are held against a mixture of Gaussian processes that needs none of them, see `estimation.checking` and,
        with `noise="gaussian"`, `estimation.shape`. May be looked at as often as one likes.
        """
        fraction("delta", delta)
        return self._cached(("check", delta), lambda: self._named(self._certify().check(delta)))

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
        report = StopReport(best.x, best.index, delta, inf, target)
        try:
            return self._certified_report(report, round_, position)
        except NotCertified as error:
            report = replace(report, reason=str(error))
        if (known := self._calibrated(round_, position, delta)) is not None:
            return replace(report, **known._asdict(), kind="calibrated", rests_on=TYPICAL)
        gap, likely = self._credible(round_, position, delta)
        return replace(report, epsilon=gap, plausible=likely)

    def _calibrated(self, round_: Round, position: int, delta: float) -> PriorGap | None:
        """The gap if rewards are of the kind that the models expect; None where the shape of the noise was not stated.

        Nor is there one where the rewards speak against the models, or candidates are new in every round.
        """
        listed = self.models.is_listable and self._candidates is not None
        if self.noise is None or self.not_certified is not None or not listed:
            return None
        try:
            if self.check_models(delta).contradicted or self._withheld(delta) is not None:
                return None
        except NotCertified:  # kernels are not checked
            pass
        if self._prior_ledger is None:
            self._prior_ledger = PriorLedger(self._certified_models(), self._listed)
        self._prior_ledger.catch_up(self._rewards_told())
        if not self._prior_ledger.is_ready:
            return None
        if (found := self._prior_ledger.gap(round_.choices, position, delta)) is None:
            return None
        gap, local = found
        if self.reward_range is not None:
            gap = min(gap, self.reward_range.high - self.reward_range.low)
        return PriorGap(gap, self._numbers()[local])

    def _certified_report(self, report: StopReport, round_: Round, position: int) -> StopReport:
        """The report about the choice at `position`, filled in; NotCertified where nothing is proved."""
        certifier, plausible, checked = self._certificate(report.delta)
        gaps, estimates = plausible.largest_gaps(round_.choices, position)
        if not np.isfinite(gaps).all():
            raise NotCertified(
                "candidates have features that no reward so far says anything about; measure some of these"
            )
        disagrees = np.flatnonzero(estimates > 0.0 if report.target is None else gaps > report.target)
        ranked = disagrees[np.argsort(-gaps[disagrees], kind="stable")]
        numbers, now = self._numbers()[plausible.local], float(gaps.max())
        if self.reward_range is not None:
            lower, _ = plausible.envelope(Choices(None, np.ascontiguousarray(round_.choices.table[:, [position]])))
            now = min(now, self.reward_range.largest_gap(float(lower[0]), self._sign))
        between = certifier.between(plausible, self.domain, position, now)
        return replace(
            report, epsilon=now, plausible=numbers, disagreeing=numbers[ranked], kind="certified",
            between_candidates=between, checked=checked, rests_on=self.rests_on,
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
        return self._source().rewards()

    def _source(self) -> ToldSoFar:
        if self._told_so_far is None or self._told_so_far.log is not self._log:
            self._told_so_far = ToldSoFar(self._log, self._candidates, self._sign)
        return self._told_so_far

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

    def _named(self, check: ModelCheck) -> ModelCheck:
        """With numbers of models and trials in place of positions; made once for each check."""
        if self._last_check is None or self._last_check[0] is not check:
            ids = self._log.told_in_order() if check.trials else []
            trials = tuple(ids[position] for position in check.trials)
            self._last_check = check, replace(check, rejected=self._numbers()[check.rejected], trials=trials)
        return self._last_check[1]

    def _certify(self) -> Certifier:
        """What makes certificates of the rewards so far."""
        if self.not_certified is not None:
            raise NotCertified(self.not_certified)
        if not self.models.is_listable:
            raise NotCertified(
                f"certificates look at models one by one, and {self.models.n_models} are enumerated, never listed"
            )
        if self._certifier is None or self._certifier.source is not self._source():
            self._certifier = self._new_certifier()
        return self._certifier

    def _new_certifier(self) -> Certifier:
        """By what was stated: numbers, the shape of the noise, or both where the models allow it."""
        problem, unknown = (self._certified_models(), self._source()), missing(self.stated) is not None
        if self.noise is None:
            return StatedCertifier(*problem, self.stated)
        try:
            shape = ShapeCertifier(*problem, self._reward_size())
        except NotCertified:
            if unknown:
                raise
            return StatedCertifier(*problem, self.stated)
        return shape if unknown else SharedCertifier(StatedCertifier(*problem, self.stated), shape)

    def _reward_size(self) -> float | None:
        """How far rewards of candidates lie from a constant, or from zero where models have none; None if unknown."""
        known = [self.stated.reward_bound]
        if self.reward_range is not None:
            low, high = self.reward_range
            known.append(0.5 * (high - low) if self.models.intercept else max(abs(low), abs(high)))
        return min((size for size in known if size is not None), default=None)

    def _certificate(self, delta: float) -> tuple[Certifier, PlausibleFits, bool]:
        """What makes certificates, what survives at level delta, and whether it was checked."""
        return self._said(delta, "fits", lambda certifier: certifier.fits(delta))

    def _said(self, delta: float, what: str, make: Callable[[Certifier], _T]) -> tuple[Certifier, _T, bool]:
        """With what a certifier makes of the rewards; NotCertified if they contradict all that was stated."""
        fraction("delta", delta)
        certifier, check = self._certify(), self.check_models(delta)
        if check.contradicted:
            constant = certifier.lacking(delta)
            raise NotCertified(check.verdict if constant is None else f"{check.verdict}: {constant}")
        made = self._cached((what, delta), lambda: make(certifier))
        if (reason := self._withheld(delta)) is not None:
            raise NotCertified(reason)
        return certifier, made, check.checked

    def _withheld(self, delta: float) -> str | None:
        return self._cached(("withheld", delta), lambda: self._certify().withheld(delta))

    def _credible(self, round_: Round, position: int, delta: float) -> tuple[float, IntArray]:
        """The gap by an estimate, and the likeliest models with 1 - delta of the probability.

        Where numbers were stated and nothing can be certified, rewards mostly contradict them, and so what an algorithm
        makes of them: then the estimate is one that needs no statements.
        """
        from scipy.special import stdtrit  # slow to import, and needed here only

        listable, can_read = self.models.is_listable, self.log_features != "none"
        free = missing(self.stated) is None and self.not_certified is None and listable and can_read
        belief = Certified._predictive(self, round_) if free else self._predictive(round_)
        gap = self._gap(belief, position, float(stdtrit(self.n_told + 2.0, 1.0 - delta / 2.0)))
        if not listable:
            return gap, np.empty(0, dtype=np.int64)
        subject: object = self
        q = subject.probabilities if offers(subject, WeighsModels) and not free else belief.probabilities
        if q is None:
            return gap, self._numbers()
        ranked = np.argsort(-q, kind="stable")
        needed = int(np.searchsorted(np.cumsum(q[ranked]), 1.0 - delta)) + 1
        return gap, np.sort(ranked[:needed])

    def _gap(self, belief: CrediblePrediction, position: int, quantile: float) -> float:
        """By how much another candidate may beat the one at `position`, within the range of rewards."""
        gap = belief.gap(position, quantile)
        if self.reward_range is None:
            return gap
        lower = float(belief.mean[position] - quantile * belief.std[position])
        return min(gap, self.reward_range.largest_gap(lower, self._sign))
