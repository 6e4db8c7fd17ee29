"""Certificates about some models from the rewards told: what was stated decides which `Certifier` makes them.

Where the size of the noise and a bound were stated, that is the likelihood-mixing argument: average the Gaussian
marginal likelihoods of all M models. Divided by the likelihood of the truth it is a non-negative supermartingale that
starts at one, so by Ville's inequality it exceeds 1/delta at any time with probability at most delta. The ridge penalty
of the fits is the prior used in that average; any fixed value is valid, noise_std over the norm is the natural one.
With an unpenalised intercept the first reward fixes the constant: delta is split between that reward's noise and all
that follows. Where the shape of the noise was stated, `estimation.shape` has the argument. Both share delta.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from alexp.algorithms.assumptions import NotCertified, Stated
from alexp.algorithms.base import rows_of
from alexp.algorithms.log import TrialLog
from alexp.algorithms.offer_log import Forgotten
from alexp.algorithms.statements import ModelCheck
from alexp.common.arrays import FloatArray, IntArray
from alexp.decision.widths import model_radii, model_radii_with_constant
from alexp.estimation.checking import Ledger, Monitor, Rewards, next_look
from alexp.estimation.credible import log_odds_of_a_constant, typical_norms
from alexp.estimation.posteriors import Posteriors
from alexp.estimation.shape import FIRST, LeastSquares, ShapeLedger
from alexp.problem.bounds import NormBounds, curvature_bounds, norm_bounds
from alexp.problem.candidates import CandidateTable, Choices
from alexp.problem.domains import Domain, Interval
from alexp.problem.models import ModelClass
from alexp.problem.offers import Reference
from alexp.problem.ranges import RewardRange
from alexp.problem.rows import spread

_CHECKED_WORK = 1e9  # squared sizes of all models times rewards; some ten seconds
_FINEST = 5_000  # points of an interval that are looked at between the candidates
_GAP_WORK = 2e7  # models times points times squared sizes
_LOOKS_APART = 1.5  # ratio of the numbers of rewards at which a constant is looked for
# Where only the shape of the noise was stated:
_WIDEST, _MOST_COLUMNS = 200, 2000  # features of a model, and columns of all of them together, that are looked at
_LOOKED_AT = 300  # candidates that show how large the columns are
_SHOWN = 3  # trials that are named


class PlausibleFits(NamedTuple):
    """The models that are not ruled out: their positions, and one or more fits with the radii of confidence sets.

    Where there are several, all of them hold at once.
    """

    local: IntArray
    sets: tuple[tuple[Posteriors | LeastSquares, FloatArray], ...]

    def envelope(self, choices: Choices) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest reward, (n,) each."""
        ends = [fits.envelope(self.local, radii, choices)[:2] for fits, radii in self.sets]
        lower, upper = np.array(ends).transpose(1, 0, 2)
        return lower.max(axis=0), upper.min(axis=0)

    def largest_gaps(self, choices: Choices, reference: int) -> tuple[FloatArray, FloatArray]:
        """By how much some choice can beat the one at `reference`: within the radii, and by the estimates, (K,)."""
        found = [fits.largest_gaps(self.local, radii, choices, reference) for fits, radii in self.sets]
        return np.min([gaps for gaps, _ in found], axis=0), found[0][1]

    def both(self, other: PlausibleFits) -> PlausibleFits:
        """What neither rules out."""
        common = np.intersect1d(self.local, other.local)
        parts = ((part.local, one) for part in (self, other) for one in part.sets)
        return PlausibleFits(common, tuple((fits, radii[np.isin(own, common)]) for own, (fits, radii) in parts))


class ToldSoFar:
    """All rewards of a log, in the order in which they came, to be maximised; new ones are appended to those known.

    Candidates of contextual rounds are never the same: they have a negative number each.
    """

    def __init__(self, log: TrialLog, candidates: CandidateTable | None, sign: float) -> None:
        self.log, self.candidates, self._sign = log, candidates, sign
        self._n_events = self._n_trials = 0
        self._rewards: Rewards | None = None

    def __len__(self) -> int:
        return self.log.n_told

    def rewards(self) -> Rewards:
        """Those of now. A log only grows: corrections make another one."""
        log = self.log
        events = log.events.since(self._n_events, self._n_trials)
        came = [event.trial for event in events if event.step in ("tell", "observe")]
        ids = [trial for trial in came if trial not in log.retracted]
        if ids or self._rewards is None:
            trials = np.array(ids, dtype=np.int64)
            try:
                rows = rows_of(log, self.candidates, trials)
            except Forgotten as error:
                raise NotCertified(str(error)) from error
            values = self._sign * np.array([log.reward[trial] for trial in ids])
            indices = np.array([log.index[trial] for trial in ids], dtype=np.int64)
            new = Rewards(indices if log.offers is None else -1 - trials, values, rows)
            self._rewards = new if self._rewards is None else self._rewards.followed_by(new)
        self._n_events, self._n_trials = len(log.events), len(log)
        return self._rewards


def missing(stated: Stated) -> str | None:
    """What would have to be stated for certificates, as a sentence; None if nothing is missing."""
    if stated.noise_std is None:
        return 'certificates need the size of the noise: give noise_std=..., or noise="gaussian"'
    if stated.reward_bound is None and stated.norm_bound is None:
        return "certificates need a bound: give reward_bound=... or norm_bound=..."
    return None


def truth(n_models: int) -> str:
    """That one of the models is true, as a clause."""
    return "the model is true" if n_models == 1 else f"one of the {n_models} models is true"


def condition(stated: Stated, n_models: int, noise: str | None = None, known: RewardRange | None = None) -> str:
    """What certificates rest on, as a clause; with both bounds stated, `norm_bound` is the one that is used.

    >>> condition(Stated(0.1, 2.0, None), 15)
    'if one of the 15 models is true, the noise is at most noise_std = 0.1 and rewards are within reward_bound = 2'
    >>> condition(Stated(None, None, None), 3, "gaussian")
    'if one of the 3 models is true and errors are bell-shaped with the same spread everywhere'
    """
    parts, sizes = [truth(n_models)], missing(stated) is None
    parts += [] if noise is None else ["errors are bell-shaped with the same spread everywhere"]
    parts += [f"the noise is at most noise_std = {stated.noise_std:g}"] if sizes else []
    if sizes and stated.norm_bound is not None:
        parts.append(f"its norm is within norm_bound = {stated.norm_bound:g}")
    elif stated.reward_bound is not None:
        parts.append(f"rewards are within reward_bound = {stated.reward_bound:g}")
    parts += [] if noise is None or known is None else [f"rewards lie between {known.low:g} and {known.high:g}"]
    return f"if {', '.join(parts[:-1])} and {parts[-1]}"


class Certifier(ABC):
    """Certificates about some models from the rewards of a log, all of it made when first asked for."""

    def __init__(self, models: ModelClass, source: ToldSoFar) -> None:
        self._models, self.source, self._candidates = models, source, source.candidates
        self._constant = 0, 0.0  # number of rewards at the last look for a constant, and its log odds

    @property
    def told(self) -> Rewards:
        """The rewards so far, in the order in which they came."""
        return self.source.rewards()

    @abstractmethod
    def check(self, delta: float) -> ModelCheck:
        """Whether the rewards contradict what was stated; its trials are positions among the rewards."""

    @abstractmethod
    def fits(self, delta: float) -> PlausibleFits:
        """The models that survive at level delta, with bands; NotCertified where none does, or nothing is known yet."""

    def plausible(self, delta: float) -> IntArray:
        """Positions of the models that survive at level delta, without their bands."""
        return self.fits(delta).local

    def covers(self, plausible: PlausibleFits, domain: Domain, points: FloatArray) -> bool:
        """Whether there are bands at these points."""
        return True

    def between(self, plausible: PlausibleFits, domain: Domain, position: int, epsilon: float) -> float | None:
        """By how much more than epsilon a point between an interval's candidates may beat the one at `position`."""
        return None

    @property
    def _known(self) -> CandidateTable | Reference:
        """What typical features are taken from: the candidates, an example of them, or the rows told."""
        if self._candidates is not None:
            return self._candidates
        example = self._models.example_rows
        return Reference(self.told.rows if example is None else example)

    def _log_odds_of_a_constant(self, t: int) -> float:
        """After the first t rewards."""
        norms = typical_norms(self._models, self._known)
        return log_odds_of_a_constant(self._models, norms, self.told.only(slice(t)))

    def withheld(self, delta: float) -> str | None:
        """Why nothing should be certified although nothing is contradicted; None if nothing speaks against it."""
        return self.lacking(delta)

    def lacking(self, delta: float) -> str | None:
        """That the rewards speak for a constant that the models lack; None if they do not.

        They are looked at whenever there are half as many more.
        """
        if self._models.intercept:
            return None
        look, odds = before = self._constant
        while (later := next_look(look, 1, _LOOKS_APART)) <= len(self.source):
            look = later
        if look != before[0]:
            odds = self._log_odds_of_a_constant(look)
            self._constant = look, odds
        limit = np.log(1.0 / delta)
        if odds <= limit or self._log_odds_of_a_constant(len(self.source)) <= limit:
            return None
        low, high = float(self.told.rewards.min()), float(self.told.rewards.max())
        return (
            f"the rewards, from {low:.3g} to {high:.3g}, speak for a constant that the models lack; give them one "
            "with intercept=True"
        )


class StatedCertifier(Certifier):
    """From the noise level and the bound that were stated."""

    def __init__(self, models: ModelClass, source: ToldSoFar, stated: Stated) -> None:
        if (reason := missing(stated)) is not None:
            raise NotCertified(reason)
        assert stated.noise_std is not None
        super().__init__(models, source)
        self._stated, self._noise_std = stated, stated.noise_std

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

    def fits(self, delta: float) -> PlausibleFits:
        """The models that survive at level delta; NotCertified where none does, or nothing is known yet."""
        ledger, noise = self._ledger, self._noise_std
        ledger.catch_up(self.told)
        fits, numbers = ledger.fits, (ledger.ridge, noise, self.norms.values, delta)
        losses, levels = fits.residuals(), fits.log_determinants()
        if not fits.intercept:
            squares = model_radii(losses, levels, *numbers)
        elif len(self.told) == 0:
            raise NotCertified("there is no reward yet, and the models' constant may be anything")
        else:
            squares = model_radii_with_constant(losses, levels, fits.counts, *numbers)
        local = np.flatnonzero(squares >= 0.0)
        if local.size == 0:
            raise NotCertified(
                "the rewards rule out every model: noise_std or the bound is too small, or no model is true"
            )
        return PlausibleFits(local, ((fits, np.sqrt(squares[local])),))

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
            gaps, _ = plausible.largest_gaps(Choices(None, table), 0)
            larger = max(float(gaps.max()) - epsilon, 0.0)
        step = (domain.upper - domain.lower) / cells
        return larger + steepest * step**2 / 8.0


class ShapeCertifier(Certifier):
    """From nothing but models that are linear, and noise that is Gaussian with one unknown variance.

    `size` bounds how far the rewards of candidates lie from a constant, or from zero where models have none, if a range
    or a bound was stated.
    """

    def __init__(self, models: ModelClass, source: ToldSoFar, size: float | None) -> None:
        if models.kernels is not None:
            raise NotCertified(
                "models with kernels can follow any rewards, so that nothing tells how large the noise is; give "
                "noise_std=... and norm_bound=..., or take linear models"
            )
        widest = int(np.diff(models.offsets).max())
        if widest > _WIDEST or models.n_columns > _MOST_COLUMNS:
            raise NotCertified(
                f"certificates for noise of unknown size are for models of at most {_WIDEST} features, and "
                f"{_MOST_COLUMNS} columns together; got one with {widest}, and {models.n_columns} columns"
            )
        super().__init__(models, source)
        self._size = size if source.candidates is not None else None
        self._checks: dict[float, tuple[int, ModelCheck]] = {}  # by delta: number of looks, and what they said

    @cached_property
    def _ledger(self) -> ShapeLedger:
        typical: FloatArray | None = None
        if self._candidates is not None:
            typical = self._candidates.rows(spread(self._candidates.n_candidates, _LOOKED_AT)).T
        elif self._models.example_rows is not None:
            typical = self._models.example_rows.T
        return ShapeLedger(self._models, typical, self._size)

    def check(self, delta: float) -> ModelCheck:
        """Whether every model was ruled out, at the last look of the schedule; between looks nothing is done."""
        ledger = self._ledger
        if len(self.source) >= ledger.next_look:
            ledger.catch_up(self.told)
        looks, check = self._checks.get(delta, (-1, None))
        if check is None or looks != len(ledger.history):
            at = ledger.contradicted_at(delta)
            rejected = np.flatnonzero(ledger.lasting > np.log(1.0 / delta))
            e_value = ledger.history[-1][1] if ledger.history else 0.0
            trials = () if at is None else self._missed(int(np.argmin(ledger.lasting)), at)
            against = () if at is None else ("models",)
            check = ModelCheck(delta, at is not None, at, max(e_value, 0.0), rejected, against, trials=trials)
            self._checks[delta] = len(ledger.history), check
        return check

    def withheld(self, delta: float) -> str | None:
        """As of all certificates; or because the rival has most of the weight: it predicts better than all models."""
        if self._ledger.doubt > 0.0:
            return "a smooth function of the columns predicts the rewards better than the models do"
        return super().withheld(delta)

    def _missed(self, j: int, at: int) -> tuple[int, ...]:
        """Positions of the rewards up to `at` that model j, fitted to them, misses most."""
        features, rewards = self.told.rows[:at, self._models.groups[j]], self.told.rewards[:at]
        if self._models.intercept:
            features, rewards = features - features.mean(axis=0), rewards - rewards.mean()
        rest = rewards - features @ np.linalg.lstsq(features, rewards)[0]
        return tuple(sorted(np.argsort(-np.abs(rest), kind="stable")[:_SHOWN].tolist()))

    def plausible(self, delta: float) -> IntArray:
        """Those that no look of the schedule has ruled out; `check` has made the last one."""
        local = self._ledger.plausible(delta)
        if len(self._ledger.history) < 2 or (self._size is None and np.isneginf(self._ledger.lasting[local]).any()):
            raise self._too_few()
        return local

    def fits(self, delta: float) -> PlausibleFits:
        """The models that were never ruled out at level delta; NotCertified while nothing is said of one of them."""
        ledger = self._ledger
        ledger.catch_up(self.told)
        ledger.look(delta)
        local = np.flatnonzero(ledger.largest <= np.log(1.0 / delta))
        if local.size == 0:
            raise NotCertified("none of the models explains the rewards")
        # With a bound on rewards, models may have more coefficients than there are rewards.
        if ledger.n_counted < 2 or (self._size is None and ledger.n_told <= int(ledger.ranks[local].max())):
            raise self._too_few()
        return PlausibleFits(local, ((ledger.fits(delta), ledger.radii(local, delta)),))

    def _too_few(self) -> NotCertified:
        n, first = len(self.told), self._ledger.n_first or FIRST
        if self._ledger.units is None and n >= FIRST:
            return NotCertified(f"all {n} rewards are the same, which does not tell how large the noise is")
        widest = int(np.diff(self._models.offsets).max()) + int(self._models.intercept and not self._models.arm_blocks)
        needed = max(first + 3, widest + 1 if self._size is None else 0)
        return NotCertified(
            f"too few rewards, {n} so far: certificates begin after about {needed}, because the first {first} set "
            f"units and models have up to {widest} coefficients"
        )


class SharedCertifier(Certifier):
    """From the numbers stated and from the shape of the noise, each with half of delta.

    The second is the tighter one where the numbers were stated with room to spare.
    """

    def __init__(self, stated: StatedCertifier, shape: ShapeCertifier) -> None:
        super().__init__(stated._models, stated.source)
        self._stated, self._shape = stated, shape

    def check(self, delta: float) -> ModelCheck:
        """The first of the two that is contradicted; if neither is, what both say."""
        first, second = self._stated.check(0.5 * delta), self._shape.check(0.5 * delta)
        check = second if second.contradicted and not first.contradicted else first
        return replace(check, delta=delta, rejected=np.union1d(first.rejected, second.rejected))

    def fits(self, delta: float) -> PlausibleFits:
        """What neither rules out; the numbers alone while there are too few rewards for the shape."""
        first = self._stated.fits(0.5 * delta)
        try:
            both = first.both(self._shape.fits(0.5 * delta))
        except NotCertified:
            return first
        if both.local.size == 0:
            raise NotCertified(
                "the rewards rule out every model: some by the numbers stated, the others by their shape"
            )
        return both

    def withheld(self, delta: float) -> str | None:
        """As by the shape alone."""
        return self._shape.withheld(delta)

    def covers(self, plausible: PlausibleFits, domain: Domain, points: FloatArray) -> bool:
        """Whether the numbers stated say something at these points."""
        return self._stated.covers(plausible, domain, points)

    def between(self, plausible: PlausibleFits, domain: Domain, position: int, epsilon: float) -> float | None:
        """From the numbers stated."""
        return self._stated.between(plausible, domain, position, epsilon)
