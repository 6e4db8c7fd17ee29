"""Evidence mixture: act on the exact posterior over models, noise levels and coefficient scales."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import repeat
from math import inf, sqrt
from typing import Any, ClassVar, Literal, NamedTuple, Unpack

import numpy as np

from alexp.algorithms.base import (
    Decision,
    Direction,
    Observation,
    RoundArguments,
    check_reward,
)
from alexp.algorithms.grids import check_forget, check_multiples, grid, levels_and_scales
from alexp.algorithms.several import GRIDS, Cost, SeveralObjectives, SharedByObjective
from alexp.common.arrays import Action, FloatArray, IntArray
from alexp.common.backends import register
from alexp.common.codec import State
from alexp.common.schema import anything, record, same
from alexp.common.ties import first_best, rules
from alexp.common.validation import count, fraction, non_negative, one_of, positive, share
from alexp.decision.plays import Explore
from alexp.decision.weights import draw_index
from alexp.estimation.checking import Rewards
from alexp.estimation.credible import CrediblePrediction
from alexp.estimation.mixture.bernoulli import SCALES
from alexp.estimation.mixture.either import ANY_SCALES, EitherMixture
from alexp.estimation.mixture.making import bernoulli_mixture, level_mixture, prefer, ratio_mixture, take_up
from alexp.estimation.mixture.mixture import Mixture, expected_excesses, expected_improvement, improvements
from alexp.estimation.mixture.own_noise import OwnNoise, Scatter, noise_of_arms, own_noise
from alexp.estimation.mixture.replays import Hindsight, LookBack, Replays, replayed
from alexp.estimation.mixture.success import SuccessMixture, weighed
from alexp.problem.candidates import NOTHING, Choices, Pending, Round
from alexp.problem.domains import Domain, FiniteSet
from alexp.problem.matrices import Matrices
from alexp.problem.models import ModelClass
from alexp.problem.objectives import Reward, Value
from alexp.problem.plates import UpperBounds
from alexp.problem.ranges import RewardRange
from alexp.rules import NARROW, HypervolumeImprovement, Matching, Rule, RuleName, Score, rule_named
from alexp.table.posed import posed
from alexp.table.table import Table

_NOISY = 0.1  # share of the rewards' variance beyond which noise makes the best reward told no fair incumbent
_CONSIDERED = 1e-5  # weight of components whose expected improvement is computed
_FOLLOWED = 64  # models up to which all are followed in hindsight, so that a later call may ask for any of them
_NEGLIGIBLE = 1e-12  # weight of components that are left out
_ROUNDING = 1e-9  # share by which a deviation that only falls may rise
_FALLS = 1e-4  # share by which tabulated improvements may rise where they should fall
_SHARED = 10  # candidates for each coefficient of a model from which on they say enough about each other's noise
RATIOS = (1e-4, 1e-3, 1e-2, 0.1, 0.5)  # of noise to prior variance
_ALL_NOISE = (2.0, 8.0, 32.0)  # further ratios for old results, which may be all noise
WEAK_SIGNALS = (5.0, 50.0)  # further ratios for rounds with contexts, of which features may explain little
LARGE_SIGNALS = (1e-6, 1e-5)  # further ratios where the noise is stated and rewards of any size must fit it


Likelihood = Literal["auto", "gaussian", "bernoulli"]


class Defaults(NamedTuple):
    """What a goal means where nothing else is said: the rule, the power of the evidence, and a constant width."""

    rule: RuleName | Rule
    power: float
    width: float | None = None


# By goal, and whether a candidate may be measured again, if models are linear.
DEFAULTS = {
    ("sum", True): Defaults("ids", 1.0),
    ("sum", False): Defaults("ucb", 0.5, NARROW),
    ("best", True): Defaults("ei", 1.0, 1.0),
    ("best", False): Defaults("ei+ucb", 0.25, 2.0),
}
# Where candidates are new in every round: propensities that others can use, at 1.04 to 1.5 times the regret of "ucb".
CONTEXTUAL = Defaults(Matching(share=0.25), 1.0)

# Kernels learn about their neighbours only: "ids" then keeps on visiting rows that it knows nothing of.
KERNELS = Defaults("ucb", 1.0)


def defaults(goal: str, repeats: bool, contextual: bool, kernels: bool) -> Defaults:
    """What a goal means on a domain, for models that are linear or kernels."""
    if goal == "sum" and contextual:
        return CONTEXTUAL
    return KERNELS if goal == "sum" and repeats and kernels else DEFAULTS[goal, repeats]


class RoundMoments(NamedTuple):
    """Mixture mean and standard deviation of the choices of a round, (n,) each."""

    mean: FloatArray
    std: FloatArray


class MixtureBelief:
    """What a mixture believes about the rewards of a round: the `Belief` that rules decide on.

    It is a view of a run between two rewards, and what it computes is kept until the next one. After a failure it is
    about rewards that may fail to come: with probability 1 - P(success) a choice is worth as little as the worst reward
    so far. Every rule then weighs its choices by P(success). `plain_moments` and `moments_at` are about successes.
    """

    def __init__(self, run: EvidenceMixture) -> None:
        self._run, self.mixture, self.replays = run, run._mixture, run._replays
        self.n_told = run._log.seen.n
        self.is_exact = bool(run._replays.held)
        self.is_honest = run.likelihood == "auto" and run.believed_likelihood == "bernoulli"
        self.success = run._success
        self._is_priced = run.cost is not None and run.is_contextual
        self._moments: tuple[Hashable, RoundMoments] | None = None  # of the last round
        self._chances: tuple[Choices, FloatArray] | None = None  # P(success) where it was last asked for
        self._gains: tuple[float, UpperBounds] | None = None  # expected improvements, under a width
        self._deviations: tuple[FloatArray, UpperBounds] | None = None  # means by candidate (N,), standard deviations
        self._whole: tuple[FloatArray, FloatArray] | None = None  # moments of all candidates, by models alone
        self._front: tuple[Hashable, tuple[bool, IntArray, FloatArray, FloatArray]] | None = None  # of values in parts
        self._expected: tuple[Pending, FloatArray | float] = (NOTHING, -inf)  # the best of pending trials, by component

    @cached_property
    def weights(self) -> FloatArray:
        """Posterior of the components, shape (cells, M)."""
        return self.mixture.weights()

    @cached_property
    def noise_variance(self) -> float:
        """Posterior mean of the noise variance."""
        return self.mixture.noise_variance(self.weights)

    @property
    def one_by_one(self) -> bool:
        """Whether the newest reward came right after its ask."""
        return self._run._log.events.one_by_one

    def rng(self) -> np.random.Generator:
        """Random numbers of the next decision."""
        return self._run._agent_rng()

    def moments(self, round: Round) -> RoundMoments:
        """Mean and standard deviation of every choice: of a reward that may fail to come, less the price of cost."""
        mean, std = self.plain_moments(round)
        if self.success is not None:
            chances = self.success_probabilities(round)
            mean, std = weighed(mean, chances, self.worst), chances * std
        return RoundMoments(mean - self._run._price(round) if self._is_priced else mean, std)

    def success_probabilities(self, round: Round) -> FloatArray:
        """Probability that the experiment of each choice succeeds, (n,); one before the first failure."""
        if self.success is None:
            return np.ones(len(round))
        return round.narrow(self._wide_chances(round))

    def _wide_chances(self, round: Round) -> FloatArray:
        """P(success) of the candidates of `round.wide`."""
        assert self.success is not None
        if self._chances is None or self._chances[0] is not round.wide:
            self._chances = round.wide, self.success.probabilities(round.wide)
        return self._chances[1]

    @cached_property
    def worst(self) -> float:
        """The worst reward so far, zero before the first: what a failure is worth."""
        return float(self._run._rewards_told().rewards.min()) if self.n_told else 0.0

    def plain_moments(self, round: Round) -> RoundMoments:
        """Mean and standard deviation of every choice if it succeeds."""
        if self._moments is None or self._moments[0] != round.key:
            mean, variance = self.moments_at(round.wide, round.pending)
            self._moments = round.key, RoundMoments(round.narrow(mean), np.sqrt(round.narrow(variance)))
        return self._moments[1]

    def moments_at(self, choices: Choices, pending: Pending = NOTHING) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the reward of each choice, noise aside."""
        if self._run._scatter is None:
            mean, variance = self.mixture.moments(self.weights, choices, pending)
        else:
            mean, variance = self._expected_by_models(choices, pending)
            variance = variance if self._own_noise is None else self._own_noise.widened(variance, choices)
        return self.replays.settle(mean, variance, self.noise_variance, choices) if self.is_exact else (mean, variance)

    def _expected_by_models(self, choices: Choices, pending: Pending) -> tuple[FloatArray, FloatArray]:
        """The mixture's moments; those of all candidates with nothing pending are kept."""
        if pending or self._run.is_contextual or choices is not self._run._everything.choices:
            return self.mixture.moments(self.weights, choices, pending)
        if self._whole is None:
            self._whole = self.mixture.moments(self.weights, choices)
        return self._whole

    @cached_property
    def _own_noise(self) -> OwnNoise | None:
        """Noise of candidates or arms that may exceed the common one; None if none may."""
        own = self._run._scatter
        if own is None or not own.repeats or self._run.believed_likelihood == "bernoulli":  # whose noise is known
            return None
        if not self.noise_variance > 0.0:
            return None
        if self._run.is_contextual:
            fits = self.mixture.grid.residuals_by_arm(self.weights)
            return None if fits is None else noise_of_arms(own, self.noise_variance, *fits)
        table = self._run._listed

        def expected() -> tuple[FloatArray, FloatArray]:
            mean, variance = self._expected_by_models(table.everything.choices, NOTHING)
            mean, variance = np.asarray(mean), np.asarray(variance)
            places = table.position[own.numbers]
            return mean[places], variance[places]

        most = min(1.0, self.mixture.n_coefficients(self.weights) / table.n_candidates)
        return own_noise(own, self.noise_variance, expected, most, len(set(self.replays.held)))

    def first_best(self, round: Round, score: Score) -> tuple[int, float]:
        """Position and size of the largest score(mean, std), the first of equal ones.

        Means stay and deviations only fall while further trials become pending. Deviations with fewer trials pending
        are upper bounds, and only choices that may be the best by them are looked at again.
        """
        if not round.pending.trials.size or not self._looks_at_few:
            is_plain = self.success is None and not self._is_priced
            mean, std = self.plain_moments(round) if is_plain else self.moments(round)
            if hasattr(mean, "upper_front"):
                return self._best_on_front(round, mean, std, score)
            scores = score(mean, std)
            position = first_best(scores)
            return position, float(scores[position])
        (means, deviations), indices = self._upper_deviations(round), round.indices
        chances = None if self.success is None else self.success_probabilities(round)

        def scored(some: IntArray | slice) -> FloatArray:
            mean, std = means[indices[some]], deviations.upper[indices[some]]
            if chances is not None:
                mean, std = weighed(mean, chances[some], self.worst), chances[some] * std
            return score(mean, std)

        return deviations.first_best(indices, scored, lambda some: np.sqrt(self._variances_of(round, some, means)))

    def _best_on_front(self, round: Round, mean: Any, std: FloatArray, score: Score) -> tuple[int, float]:
        """The same for values in parts: choices that no other one equals or exceeds in both numbers are enough."""
        if self._front is None or self._front[0] != round.key:
            self._front = round.key, mean.upper_front(std)
        has_ties, where, *values = self._front[1]
        scores = score(*values)
        place = first_best(scores)
        position = first_best(score(mean, std)) if has_ties and rules.tie else int(where[place])
        return position, float(scores[place])

    @cached_property
    def _looks_at_few(self) -> bool:
        """Whether values are computed at few choices, one ask after the other, while trials are pending."""
        run = self._run
        if not self.n_told or self.is_exact or run.is_contextual or run._listed.is_in_parts or self._own_noise:
            return False
        return self.mixture.prefers_few(self.weights, run._listed.n_candidates)

    def _upper_deviations(self, round: Round) -> tuple[FloatArray, UpperBounds]:
        """Means by candidate, (N,), and upper bounds of the deviations of the choices of a round."""
        if self._deviations is None or not self._deviations[1].hold_for(round):
            means, bounds = np.zeros(self._run.domain.n_candidates), self._no_bounds(round, _ROUNDING)
            mean, variance = self.moments_at(round.wide, bounds.pending)
            means[round.wide.indices] = mean
            bounds.upper[round.wide.indices] = (1.0 + _ROUNDING) * np.sqrt(variance)
            self._deviations = means, bounds
        self._deviations[1].go_on(round.pending)
        return self._deviations

    def _no_bounds(self, round: Round, rises: float) -> UpperBounds:
        """Bounds of nothing yet, beside trials with which bounds are to be computed: none, or all of the round.

        Beside many pending trials, bounds without them would be loose. Before the first reward there are none: the
        first pending trial fixes the constant, and candidates far from it gain variance.
        """
        some = NOTHING if self.n_told and not round.pending.older else round.pending
        return UpperBounds(self._run.domain.n_candidates, some, rises)

    def _variances_of(self, round: Round, positions: IntArray, means: FloatArray) -> FloatArray:
        """Variances of some choices of a round with pending trials, whose means are known by candidate."""
        choices = self._some(round, positions)
        shares, mean, variance, _ = self.mixture.values(self.weights, choices, round.pending, _NEGLIGIBLE)
        apart = mean - means[choices.indices]
        return np.asarray((shares[:, None] * (variance + apart * apart)).sum(axis=0))

    def _some(self, round: Round, positions: IntArray) -> Choices:
        indices, listed = round.indices[positions], self._run._listed
        return Choices(indices, lambda: np.ascontiguousarray(listed.rows(indices).T))

    def sample(self, round: Round, rng: np.random.Generator) -> FloatArray:
        """Rewards of all choices under a component and coefficients drawn from the posterior."""
        cell, model = divmod(draw_index(self.weights.ravel(), rng), self._run.models.n_models)
        drawn = self.mixture.draw(cell, model, rng, round.choices)
        if self._own_noise is not None:
            drawn = drawn + self._further_std(round) * rng.standard_normal(len(round))
        if self.success is not None:
            drawn = weighed(drawn, self.success_probabilities(round), float(drawn.min()))
        return drawn - self._run._price(round) if self._is_priced else drawn

    def _further_std(self, round: Round) -> FloatArray:
        """Deviation of each choice that its own noise adds to what models expect."""
        _, variance = self._expected_by_models(round.wide, NOTHING)
        _, std = self.plain_moments(round.settled)
        return np.asarray(np.sqrt(np.maximum(std**2 - round.narrow(variance), 0.0)))

    def best_probabilities(self, round: Round, rng: np.random.Generator) -> FloatArray:
        """Posterior probability that each choice is the best, and succeeds where failures are known."""
        price = self._run._price(round) if self._is_priced else None
        chances = self.mixture.chances(self.weights, round.choices, rng, price)
        return chances if self.success is None else chances * self.success_probabilities(round)

    def expected_improvement(self, round: Round, width: float) -> FloatArray:
        """Expected improvement of each choice, averaged over components.

        What a component expects of pending trials counts among its incumbents.
        """
        return self.per_cost(round, round.narrow(self._wide_gains(round, width, round.pending)))

    def _wide_gains(self, round: Round, width: float, pending: Pending) -> FloatArray:
        """Expected improvements of the candidates of `round.wide`."""
        parts = self.mixture.components(self.weights, round.wide, pending, self._least)
        incumbents: Iterable[float] = self._incumbents(pending).tolist() if pending else repeat(self.incumbent)
        if self.success is not None:
            chances, worst = self._wide_chances(round), self.worst
            parts = (
                part._replace(mean=weighed(part.mean, chances, worst), variance=chances**2 * part.variance)
                for part in parts
            )
        return expected_improvement(parts, len(round.wide), incumbents, self.mixture.freedom, width)

    @property
    def _least(self) -> float:
        return _CONSIDERED * float(self.weights.max())

    def _incumbents(self, pending: Pending) -> FloatArray:
        """What each component that is considered wants to improve on while trials are pending, (K,)."""
        known, best = self._expected
        if not pending.begins_with(known) or pending.older != known.older:
            known, best = NOTHING, -inf
            for block in pending.older:
                best = np.maximum(best, self.mixture.largest_means(self.weights, block, self._least))
        if len(rows := pending.newest[len(known.newest) :]):
            new = Choices(pending.indices[pending.n_older + len(known.newest) :], np.ascontiguousarray(rows.T))
            best = np.maximum(best, self.mixture.values(self.weights, new, NOTHING, self._least).mean.max(axis=1))
            self._expected = pending, best
        return np.maximum(best, self.incumbent)

    def most_improving(self, round: Round, width: float) -> tuple[int, float]:
        """Position and size of the largest expected improvement, the first of equal ones.

        They only fall while further trials become pending. Those with fewer trials pending are upper bounds, and only
        choices that may be the best by them are looked at again.
        """
        if self._run.is_contextual or self._run.cost is not None or self._run._listed.is_in_parts:
            gains = self.expected_improvement(round, width)
            return first_best(gains), float(gains.max())
        bounds, indices = self._upper_gains(round, width), round.indices
        return bounds.first_best(
            indices, lambda some: bounds.upper[indices[some]], lambda some: self._gains_of(round, some, width)
        )

    def _upper_gains(self, round: Round, width: float) -> UpperBounds:
        """Upper bounds of the expected improvements of the choices of a round; exact if nothing is pending."""
        known = self._gains
        begins = bool(self.n_told or not round.pending or (known and known[1].pending))  # see `_no_bounds`
        if known is None or not begins or known[0] != width or not known[1].hold_for(round):
            bounds = self._no_bounds(round, _FALLS)
            gains = self._wide_gains(round, width, bounds.pending)
            bounds.upper[round.wide.indices] = gains if not round.pending else (1.0 + _FALLS) * gains
            bounds.is_exact[round.wide.indices] = not round.pending
            known = self._gains = width, bounds
        known[1].go_on(round.pending)
        return known[1]

    def _gains_of(self, round: Round, positions: IntArray, width: float) -> FloatArray:
        """Expected improvements of some choices of a round with pending trials."""
        some = self._some(round, positions)
        shares, mean, variance, _ = self.mixture.values(self.weights, some, round.pending, self._least)
        if self.success is not None:
            chances = self.success_probabilities(round)[positions]
            mean, variance = weighed(mean, chances, self.worst), chances**2 * variance
        above = mean - self._incumbents(round.pending)[:, None]
        gains = improvements(above, variance, self.mixture.freedom, width)
        return np.asarray((shares[:, None] * gains).sum(axis=0))

    def per_cost(self, round: Round, gains: FloatArray) -> FloatArray:
        """Gains (n,) of the choices divided by what they cost, where that was stated."""
        costs = self._run.costs
        return gains if costs is None else gains / costs[round.indices]

    def excess(self, round: Round, levels: FloatArray, width: float) -> FloatArray:
        """E[max(reward - level, 0)] of each choice if it succeeds, averaged over components, at L levels, (L, n)."""
        parts = self.mixture.components(self.weights, round.wide, round.pending, self._least)
        return round.narrow(expected_excesses(parts, len(round.wide), levels, self.mixture.freedom, width))

    def values_at(self, candidates: IntArray) -> FloatArray:
        """Values of measured candidates: means of their rewards, or of the posterior where these are noisy."""
        told = self._run._rewards_told()
        if not self._is_noisy(told.rewards):
            numbers, own = np.unique(told.indices, return_inverse=True)
            means = np.bincount(own, told.rewards) / np.bincount(own)
            return np.asarray(means[np.searchsorted(numbers, candidates)])
        rows = np.ascontiguousarray(self._run._listed.rows(candidates).T)
        return self.mixture.moments(self.weights, Choices(candidates, rows))[0]

    def _is_noisy(self, rewards: FloatArray) -> bool:
        """Whether rewards say less about their candidates than the posterior does."""
        level = _NOISY * float(np.var(rewards)) if self._run.repeats else inf
        return self._run.forget is not None or self.noise_variance > level

    @cached_property
    def incumbent(self) -> float:
        """The reward to improve on: the best one, or the best mean among measured candidates; zero before the first.

        The best reward is a fair incumbent where no candidate is measured twice, and where noise is at most a tenth of
        the variance of the rewards.
        """
        if not self.n_told:
            return 0.0
        told = self._run._rewards_told()
        if not self._is_noisy(told.rewards):
            return float(told.rewards.max())
        seen, first = np.unique(told.indices, return_index=True)
        mean, _ = self.mixture.moments(self.weights, Choices(seen, np.ascontiguousarray(told.rows[first].T)))
        return float(mean.max())


class EvidenceMixture(SeveralObjectives):
    """Bayesian model averaging whose uncertainty includes the disagreement between models.

    Every component, one model with one noise level and one coefficient scale, is weighted by its exact evidence. The
    mixture's mean m(x) and standard deviation s(x), within plus between components, decide the round:

    * "ids": argmin of (max(m + beta s) - m(x))^2 / log(1 + s(x)^2 / noise^2), regret per information;
    * "ucb": argmax of m + beta s;
    * "ei": argmax of the expected improvement over the incumbent, averaged over components;
    * "ei+ucb": "ei", and where rewards come one by one, not in plates, m + 0.7 s in every second round;
    * "thompson": argmax under coefficients drawn from the posterior;
    * "matching": every choice in proportion to the posterior probability that it is the best.

    Models may be kernels: then a component is a Gaussian process. Under the prior weights of a model class the weights
    are proportional to prior x evidence^power.

    Nothing needs to be stated: the size of the rewards and the noise are then learned. Rewards in other units give the
    same run, and so do rewards of another level if the models have an intercept. What is stated is made use of:

    ==================  =====================================================================================
    neither             components (model, ratio of noise to prior variance), common scale integrated out
    `noise_std`         the same with the noise known, and smaller ratios for large rewards
    `reward_bound`      noise levels from 1% to 100% of it, and its multiples as coefficients' norms
    both                multiples of both, see `noise_grid` and `scale_grid`
    ==================  =====================================================================================

    Parameters
    ----------
    models, domain : a `Table` alone; a `Table` as domain with models of your own; or models on another domain. The
        candidates of a table are not measured twice, unless `repeats=True`.
    goal : "sum", large rewards in every round, or "best", one large reward soon, the default for a table; decides the
        defaults of what follows.
    rule : a name, or an object of `alexp.rules` such as `alexp.rules.UCB(beta=2.0)`, or one of your own. By default
        "ids", "ucb" where `repeats=False` or models are kernels, `alexp.rules.Matching(share=0.25)` where candidates
        are new in every round: "matching" in a quarter of the rounds, "ucb" in the others;
        "ei" where the goal is "best", "ei+ucb" if `repeats=False` besides. By name, "ids" and "ucb" have a width of 0.7
        where `repeats=False`: with a small width runs get stuck only where a candidate may be played again. "ei" has 1,
        and 2 where `repeats=False`, since posteriors of candidates chosen by them are too sure of themselves.
    noise_std : nominal noise; None when unknown.
    reward_bound, norm_bound : nominal norm of the coefficients: `norm_bound` where it is stated, else `reward_bound`.
    noise_grid, scale_grid : multiples of the two that get a component each; (1/3, 1, 3) and (1, 4) by default.
    ratio_grid : ratios of noise to prior variance where no bound is stated; 1e-4 to 0.5 by default, and in contextual
        rounds 5 and 50 besides, where features may explain little of a reward.
    light : a single noise level and scale, six times cheaper; for when both are stated and trusted.
    gamma : explore evenly with probability gamma t^(-1/3); zero by default.
    floor : explore evenly with this probability at least, so that each of n choices has a propensity of floor / n or
        more; 0.01 for "matching", zero for other rules.
    forget : weight of a reward for each one that came after it, for rewards that drift: 0.99 looks back some hundred
        rewards, and halves a weight after 69. None, by default, forgets nothing. Several, such as (0.97, 0.99, 1.0),
        where 1.0 forgets nothing, are weighed by how well they predict, see `forget_probabilities`; each takes the time
        of one. Nothing is certified then, and the order of rewards matters. For models linear in at most 200 features.
    likelihood : "gaussian", or "bernoulli" for rewards that are 0 or 1: then models are logistic regressions, weighed
        by their evidence, and means are probabilities. `scale_grid` are prior standard deviations of the logit, 0.3, 1
        and 3 by default. Nothing about the noise may be stated, and nothing is certified. "auto", the default, is
        "gaussian", except in contextual rounds where nothing about rewards is stated and the rule is the usual one or
        "ucb": there 200 rewards that are all 0 or 1 choose "bernoulli", and any other reward "gaussian" for good.
    unequal_noise : whether candidates may differ in their noise, which is then not taken to be small for a candidate
        because it is small for another one. It matters for the goal "sum" where nothing is stated about the noise, to a
        `FiniteSet` in one memory of at most ten candidates for each coefficient of a model, and to arms with columns of
        their own. False for one noise of all, as in version 1.0.0.
    power : weights are proportional to the evidence to this power; 1 by default, and where `repeats=False` 1/2 (1/4 for
        the goal "best"): there models are seldom true and evidence on candidates chosen by it is too sure of itself.

    objectives : two or three by name, each "maximize" or "minimize", in place of `direction`. One whose name is a
        column of the candidates is known beforehand; the others are measured, and a reward is a number for each, by
        name. Each has a mixture of its own, and `rules.HypervolumeImprovement` decides. `noise_std`, `reward_bound`,
        `norm_bound` and `reward_range` are then stated by name. Statements about models are those of the first measured
        objective; `objective(name)` has those of each.
    cost : what an experiment costs: a column of the candidates, or a positive number for each. Choices are then weighed
        by expected improvement per cost, which needs the goal "best" and the rule "ei" or `HypervolumeImprovement`. In
        contextual rounds a number for each arm, in their order or by name, or the name of a block or map of one column
        that holds it; without a budget it is in the unit of the rewards, and every rule weighs rewards less cost.
        Rewards are told without it: whether an answer was right, say.
    budget : what all trials that are asked for may cost together; a plate that cannot be paid is refused. In contextual
        rounds what one may cost on average: the first t never cost more than t times that, for any t. Choices that
        cannot be paid have probability zero, and every rule weighs rewards less a price of cost, see docs/budgets.md.

    The incumbent of "ei" is the best reward told, which stands where nothing is measured twice. With repeats and noise
    of more than a tenth of the rewards' variance, or `forget`, it is the best mean among the candidates told.

    Candidates may differ in their noise, see `unequal_noise`: means and deviations of "ids", "ucb" and "thompson", and
    "ucb" within "matching", allow for it. The probabilities of "matching" and expected improvements do not.

    On a table, with neither noise nor bound stated, "ids" and "ucb" learn a reward once if its candidate, and no other,
    gives exactly the same again. Replays then make that candidate's own mean and deviation surer, no other's, and
    argmax of m + beta s decides. As soon as a candidate gives another reward, all rewards are learned.

    From the first failure on, a second mixture over the same models learns from successes and failures where
    experiments fail. Choices are then weighed by their probability of success, which is taken to be 5% at least.

    The credible band m -/+ 2 s is no confidence band (it covers the reward at the maximiser less often than it
    says); `confidence` and `plausible_models` are certified, if `noise_std` and a bound were stated. Pending trials
    shrink the variances within components, for "ids" and "ucb"; weights and means stay until their rewards come.

    >>> import alexp
    >>> models = alexp.ModelClass.legendre(degree=4, size=2)
    >>> opt = alexp.EvidenceMixture(models, alexp.Interval(-1.0, 1.0, resolution=50), random_state=0)
    >>> for _ in range(20):
    ...     trial = opt.ask()
    ...     opt.tell(trial, 900.0 * (1.0 - trial.x**2))  # any unit
    >>> abs(opt.best().x) < 0.1, opt.noise_estimate < 20.0
    (True, True)
    """

    name: ClassVar[str] = "evidence-mixture"
    enumerates: ClassVar[bool] = True
    ridges_per_model: ClassVar[int] = 5
    computes_on_device: ClassVar[bool] = True
    needs_columns: ClassVar[str] = ""
    weights_mean: ClassVar[str] = "posterior"
    default_rule: ClassVar[RuleName | None] = None  # in place of the goal's
    settings: ClassVar[tuple[str, ...]] = (
        "goal", "rule", "noise_grid", "scale_grid", "ratio_grid", "gamma", "power", "floor", "forget",
    )  # fmt: skip

    settings_absent: ClassVar[Mapping[str, object]] = {"likelihood": "gaussian", "unequal_noise": False}
    settings_kept: ClassVar[tuple[str, ...]] = ("likelihood", "unequal_noise", "ratio_grid", "rule")

    def __init__(
        self,
        models: ModelClass | Table,
        domain: Domain | Table | None = None,
        *,
        goal: Literal["sum", "best"] | None = None,
        rule: RuleName | Rule | None = None,
        noise_grid: Sequence[float] | None = None,
        scale_grid: Sequence[float] | None = None,
        ratio_grid: Sequence[float] | None = None,
        light: bool = False,
        gamma: float = 0.0,
        power: float | None = None,
        floor: float | None = None,
        forget: float | Sequence[float] | None = None,
        likelihood: Likelihood = "auto",
        unequal_noise: bool = True,
        objectives: Mapping[str, Direction] | None = None,
        cost: Cost | None = None,
        budget: float | None = None,
        **shared: Unpack[SharedByObjective],
    ) -> None:
        if not isinstance(rule, Rule | None):
            rule_named(rule)
        models, domain, table = posed(models, domain)
        improves = table is not None or objectives is not None or (cost is not None and not models.is_contextual)
        self.goal = one_of("goal", ("best" if improves else "sum") if goal is None else goal, ("sum", "best"))
        if table is not None:
            shared.setdefault("repeats", False)
        own_shared, *others = self._take_objectives(objectives, domain, shared)
        super().__init__(models, domain, **own_shared)
        self.likelihood: Likelihood = one_of("likelihood", likelihood, ("auto", "gaussian", "bernoulli"))
        usual = defaults(self.goal, self.repeats, self.is_contextual, models.kernels is not None)
        own = rule or self.default_rule or ("ei" if cost is not None and self.goal == "best" else usual.rule)
        if objectives is not None and rule is None and self.default_rule is None:
            own = HypervolumeImprovement(usual.width or 1.0)
        self.rule = own if isinstance(own, Rule) else rule_named(own, usual.width)
        self._check_weighs(cost, budget)
        if models.enumerated_on is not None and not self.rule.needs_only_moments:
            raise ValueError(
                f'rule={rule!r} looks at models one by one, and these are enumerated, never listed: take rule="ids" or '
                '"ucb", or leave device out of ModelClass.subsets'
            )
        self.gamma = non_negative("gamma", gamma)
        self.power = usual.power if power is None else positive("power", power)
        self.forget = check_forget(forget)
        self.floor = self.rule.floor if floor is None else share("floor", floor)
        self.noise_grid: tuple[float, ...] | None = None
        self.scale_grid: tuple[float, ...] | None = None
        self.ratio_grid: tuple[float, ...] | None = None
        grids = noise_grid is not None or scale_grid is not None
        if others and (grids or ratio_grid is not None or light):
            raise ValueError(f"{', '.join(GRIDS)} and light are for one measured objective; leave them out")
        known = self.stated.noise_std is not None
        if self.likelihood == "auto" and not self._may_be_binary:
            self.likelihood = "gaussian"
        if self.likelihood == "bernoulli":
            self._check_bernoulli(noise_grid, ratio_grid, light)
            self.reward_range = RewardRange(0.0, 1.0)
            self.scale_grid = grid("scale_grid", SCALES if scale_grid is None else scale_grid)
        elif light and (None in (self.stated.noise_std, self._bound) or grids):
            raise ValueError(
                "light means one noise level and one scale; state noise_std and reward_bound, and give neither grid"
            )
        elif self._in_ratios:
            self.ratio_grid = ratios_of(ratio_grid, known, grids, self.is_contextual)
        else:
            self.noise_std = self.noise_std if known else self.reward_bound
            chosen = levels_and_scales(noise_grid, scale_grid, light, known, ratio_grid is not None)
            self.noise_grid, self.scale_grid = chosen
            if grids:
                check_multiples("noise_grid times noise_std", self.noise_grid, self.noise_std)
                check_multiples("scale_grid times the bound", self.scale_grid, self.norm_bound)
        if not isinstance(unequal_noise, bool):
            raise TypeError(f"unequal_noise must be True or False, got {unequal_noise!r}")
        self.unequal_noise = unequal_noise
        self._mixture, self._replays = self._new_mixture(), Replays(self._may_be_exact)
        self._scatter = self._new_scatter()
        self._looked_back: LookBack | None = None
        self._success: SuccessMixture | None = None  # from the first failure on
        self._others = [self._beside(one) for one in others]
        for part in self._others:
            prefer(part._mixture, 0.0)
        if table is not None:
            for one in self.check_results(table):
                self.take_observation(*one)

    def _check_bernoulli(self, noise_grid: object, ratio_grid: object, light: bool) -> None:
        """Raise where rewards that are 0 or 1 cannot be learned, or something about their noise was stated."""
        stated: dict[str, object] = {**self.stated._asdict(), "noise": self.noise, "forget": self.forget}
        stated |= {"noise_grid": noise_grid, "ratio_grid": ratio_grid, "light": light or None}
        stated["reward_range"] = self.reward_range
        if given := [name for name, value in stated.items() if value is not None]:
            raise ValueError(f'{", ".join(given)} cannot be used with likelihood="bernoulli"; leave it out')
        if self.goal != "sum" or self.objectives is not None or self.direction != "maximize":
            raise ValueError(
                'likelihood="bernoulli" is for one objective, goal="sum" and direction="maximize": tell 1 for what you '
                "want, and leave the others as they are"
            )

    @property
    def _may_be_binary(self) -> bool:
        """Whether rewards may turn out to be 0 or 1, so that a Bernoulli mixture learns beside.

        Not on a fixed list: there the Bernoulli mixture stays with a wrong candidate more often (docs/clicks.md). Nor
        with rules that would explore too much by it, see `Belief.is_honest`.
        """
        nothing = not any(self.stated) and self.noise is None and self.forget is None and self.reward_range is None
        alone = self.goal == "sum" and self.objectives is None and self.direction == "maximize"
        usual = self.is_contextual and self.models.kernels is None and self.rule.narrows
        return nothing and alone and usual

    @property
    def believed_likelihood(self) -> Literal["gaussian", "bernoulli"]:
        """The likelihood of a reward that it goes by now; with "auto" that depends on the rewards so far."""
        if isinstance(self._mixture, EitherMixture):
            return self._mixture.likelihood
        return "bernoulli" if self.likelihood == "bernoulli" else "gaussian"

    def arguments(self) -> State:
        out = super().arguments()
        if self.likelihood == "bernoulli":
            del out["reward_range"]  # is known
        if self.likelihood == "bernoulli" or self._may_be_binary:
            out |= {"likelihood": self.likelihood}
        if self._noise_may_differ:
            out["unequal_noise"] = self.unequal_noise
        return out

    def check_reward(self, reward: Reward) -> Value:
        """A reward as a float; 0 or 1 where the likelihood is "bernoulli"."""
        if self.likelihood != "bernoulli":
            return super().check_reward(reward)
        value = check_reward(reward)
        if value not in (0.0, 1.0):
            raise ValueError(
                f'reward must be 0 or 1 with likelihood="bernoulli", got {value:g}; for other rewards leave likelihood '
                "out"
            )
        return value

    @property
    def not_certified(self) -> str | None:
        """Why there are no certificates."""
        if self.likelihood == "bernoulli":
            return 'certificates are about linear models of the reward, and likelihood="bernoulli" has a logistic one'
        return super().not_certified

    @property
    def belief(self) -> MixtureBelief:
        """What it believes about rewards now."""
        return self._cached("belief", partial(MixtureBelief, self))

    @property
    def _may_be_exact(self) -> bool:
        """Whether rewards may turn out to have no noise, so that replays are looked for."""
        unknown = self.ratio_grid is not None and self.stated.noise_std is None and self.forget is None
        return unknown and self.repeats and isinstance(self.domain, FiniteSet) and self.rule.needs_only_moments

    @property
    def _noise_may_differ(self) -> bool:
        """Whether candidates, or arms with columns of their own, may have a noise of their own that matters."""
        unknown = self.ratio_grid is not None and self.stated.noise_std is None and self.forget is None
        if not (unknown and self.repeats and self.goal == "sum") or self.models.enumerated_on is not None:
            return False
        if self.is_contextual:
            return self.models.arm_blocks is not None
        most = int(np.diff(self.models.offsets).max()) + self.models.intercept
        listed = isinstance(self.domain, FiniteSet) and not self.models.is_in_parts
        return listed and _SHARED * most >= self.domain.n_candidates

    def _new_scatter(self, told: Iterable[tuple[int, float]] = ()) -> Scatter | None:
        return Scatter(told) if self._noise_may_differ and self.unequal_noise else None

    @property
    def _bound(self) -> float | None:
        """What the prior takes for the norm of the coefficients, if something was stated."""
        return self.stated.norm_bound or self.stated.reward_bound

    @property
    def _in_ratios(self) -> bool:
        """Whether too little is stated for levels of noise and scales, so that components are ratios of the two."""
        return (self.stated.reward_bound if self.stated.noise_std is None else self._bound) is None

    def _new_mixture(self, models: ModelClass | None = None) -> Mixture:
        if isinstance(self.forget, tuple):
            from alexp.estimation.mixture.half_lives import HalfLives

            return HalfLives([self._one_mixture(models, None if one == 1.0 else one) for one in self.forget])
        return self._one_mixture(models, self.forget)

    def _one_mixture(self, models: ModelClass | None, forget: float | None) -> Mixture:
        where = (models or self.models, self._candidates)
        if self.likelihood == "bernoulli":
            assert self.scale_grid is not None
            return bernoulli_mixture(*where, self.scale_grid, self.power)
        out: Mixture
        if self.ratio_grid is not None:
            out = ratio_mixture(*where, self.ratio_grid, self.stated.noise_std, self.power, forget=forget)
        else:
            assert self.noise_grid is not None
            assert self.scale_grid is not None
            grids = (self.noise_grid, self.scale_grid)
            out = level_mixture(*where, self.noise_std, self.norm_bound, *grids, self.power, forget)
        prefer(out, self._sign if self.objectives is None else 0.0)
        if self.likelihood == "auto":
            return EitherMixture(out, partial(bernoulli_mixture, *where, ANY_SCALES, self.power))
        return out

    @property
    def relies_on(self) -> frozenset[str]:
        """What was stated; nothing is assumed, except that a stated bound on rewards stands in for one on norms."""
        stated = {name for name, value in self.stated._asdict().items() if value is not None}
        return frozenset(stated if self._in_ratios else stated | {"norm_bound"})

    def _decide(self, round_: Round) -> Decision:
        if self.objectives is None:
            play = self.rule.play(self._cached("belief", partial(MixtureBelief, self)), round_)
        else:
            play = self.rule.play(self._cached("objectives", self._several), round_)
        if self.gamma == self.floor == 0.0:
            return Decision(play)
        share = max(self.floor, min(1.0, self.gamma * (self._log.n_told + 1) ** (-1.0 / 3.0)))
        return Decision(Explore(share, len(round_), None, play))

    def _learn(self, seen: Observation) -> None:
        if self._scatter is not None and seen.index is not None:
            self._scatter.add(seen.index, seen.reward)
        if not self._replays.hold(seen.index, seen.reward):  # the same candidate has given exactly the same before
            for candidate, reward in self._replays.release():
                self._mixture.update(self._listed.row(candidate), reward, candidate)
            self._mixture.update(seen.row, seen.reward, seen.index)
        for part, reward in zip(self._others, seen.further, strict=True):
            part._mixture.update(seen.row, reward, seen.index)
        if self._success is not None:
            self._success.update(seen.row, True, seen.index)

    def _learn_failure(self, row: FloatArray, index: int) -> None:
        if self._success is None:
            self._success = self._new_success()
            told = self._rewards_told()
            for own, candidate in zip(told.rows, told.indices.tolist(), strict=True):
                self._success.update(own, True, candidate)
        self._success.update(row, False, index)

    def _new_success(self) -> SuccessMixture:
        return SuccessMixture(self.models, self._candidates, self.power)

    @property
    def probabilities(self) -> FloatArray:
        """Posterior probability of each model, shape (M,)."""
        self.models.require_list("probabilities")
        return self._mixture.probabilities(self.belief.weights)

    @property
    def forget_probabilities(self) -> dict[float, float]:
        """Probability of each value of `forget`, where several are given."""
        from alexp.estimation.mixture.half_lives import HalfLives

        if not isinstance(self._mixture, HalfLives) or not isinstance(self.forget, tuple):
            raise ValueError(
                f"forget_probabilities needs several values, such as forget=(0.97, 1.0); got {self.forget}"
            )
        return dict(zip(self.forget, self._mixture.shares.tolist(), strict=True))

    def likeliest(self, n: int = 10) -> list[tuple[str, float]]:
        """Names of the n most probable models, and their posterior probabilities."""
        numbers, shares = self._mixture.likeliest(self.belief.weights, count("n", n))
        names = self.models.names
        return [(names[int(j)], float(q)) for j, q in zip(numbers, shares, strict=True)]

    def column_probabilities(self) -> FloatArray:
        """Posterior probability that each column of the dictionary is in the model, shape (P,)."""
        return self._mixture.column_probabilities(self.belief.weights)

    @property
    def noise_estimate(self) -> float:
        """Square root of the posterior mean of the noise variance; what models leave unexplained counts as noise.

        With neither noise nor bound given it follows the noise down to rounding, as far as the rewards can tell: a
        model with as many coefficients as rewards fits any noise, and smooth kernels fit noise of less than a millionth
        of the rewards. There, and where `reward_bound` or `noise_std` is given, the smallest level that is considered,
        1% of the bound or a third of the noise given, is an upper bound. The same holds for `forget`, for models with
        coefficients of their own for every arm, and for subsets that are enumerated: 1% of the rewards' size.
        """
        return self._cached("noise", self._estimate_noise)

    def _estimate_noise(self) -> float:
        told, weights = self._rewards_told(), self.belief.weights
        _, learned = replayed(told.indices, told.rewards, self._replays.watched)
        return sqrt(self._mixture.estimated_noise(weights, told.rows[learned], told.rewards[learned]))

    def predict(self, x: Action = None, **presented: Unpack[RoundArguments]) -> tuple[Any, Any]:
        """Mixture mean and standard deviation of the reward at `x`, or in a contextual round; credible, not certain."""
        rows, single = self._rows_at(x, presented)
        indices = np.array([self.domain.locate(x)]) if isinstance(self.domain, FiniteSet) else None
        if self.models.arm_blocks is not None and len(rows) == self.domain.n_candidates:  # of all arms
            indices = np.arange(len(rows))
        mean, variance = self.belief.moments_at(Choices(indices, np.ascontiguousarray(rows.T)))
        mean, std = self.within_range(self._sign * mean), np.sqrt(variance)
        return (float(mean[0]), float(std[0])) if single else (mean, std)

    def credible(
        self, x: Action = None, level: float = 0.95, **presented: Unpack[RoundArguments]
    ) -> tuple[FloatArray, FloatArray]:
        """Ends of the interval in which the reward at `x`, noise aside, lies with probability `level`, shapes (n,).

        It is the posterior's, between equal tails, as much worth as models and priors; `confidence` is certified.
        """
        fraction("level", level)
        self.models.require_list("credible")
        rows, _ = self._rows_at(x, presented)
        choices = Choices(None, np.ascontiguousarray(rows.T))
        ends = [self._sign * one for one in self._mixture.interval(self.belief.weights, choices, level)]
        return self.within_range(np.minimum(*ends)), self.within_range(np.maximum(*ends))

    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        position = first_best(self.belief.moments(round_).mean)
        return (
            position,
            float(self.belief.plain_moments(round_).mean[position]),
            self._mixture.leader(self.belief.weights),
        )

    def _predictive(self, round_: Round) -> CrediblePrediction:
        return CrediblePrediction(*self.belief.plain_moments(round_))

    def hindsight(self, models: Sequence[int]) -> Hindsight:
        """What was expected of every reward before it came, by all models together and by some of them alone.

        A later call continues with the rewards that came since, unless one was amended.
        """
        told, before = self._rewards_told(), self._looked_back
        numbers, m = np.asarray(models, dtype=np.int64), self.models.n_models
        if before is None or not before.covers(numbers, self._replays.watched):
            followed = np.arange(m) if m <= _FOLLOWED else np.unique(numbers)
            mixture, replays = self._new_mixture(self.models.as_listed()), Replays(self._replays.watched)
            before = LookBack(mixture, followed, replays)
        self._looked_back = None  # while it changes
        seen = before.continued(told).about(numbers)
        self._looked_back = before
        return replace(seen, mean=self._sign * seen.mean, model_mean=self._sign * seen.model_mean)

    def _state(self) -> State:
        out = {"mixture": self._mixture.state()}
        if self._success is not None:
            out["success"] = self._success.mixture.state()
        if self._others:
            out["further"] = [part._mixture.state() for part in self._others]
        return out

    def _restore(self, state: State) -> None:
        self._restore_mixture(state)
        self._success = self._restored_success(state) if self._log.failed else None
        further = record("state", state, {"further": anything})["further"] if self._others else []
        if not isinstance(further, list):
            raise ValueError("state['further'] must be a list")
        same("length of state['further']", len(further), len(self._others), "the number of further objectives")
        for k, part in enumerate(self._others, 1):
            part._log, part._known = self._log.about(k), {}
            part._restore_mixture({"mixture": further[k - 1]})

    def _restore_mixture(self, state: State) -> None:
        log, ids = self._log, self._log.told_in_order()
        candidates, rewards = np.array(log.index)[ids], self._sign * np.array(log.reward)[ids]
        replays, learned = replayed(candidates, rewards, self._may_be_exact)
        take_up(self._mixture, state, lambda: self._rewards_told().only(learned))
        n_learned = self._mixture.n_observations
        replays = Replays(False) if len(replays) and n_learned == self.n_told else replays  # once learned, so on
        same("n_observations of the mixture", n_learned, self.n_told - len(replays), "the number of rewards")
        self._replays, self._looked_back = replays, None
        self._scatter = self._new_scatter(zip(candidates.tolist(), rewards.tolist(), strict=True))

    def _restored_success(self, state: State) -> SuccessMixture:
        log, out = self._log, self._new_success()
        steps = [event for event in log.events.since() if event.step != "ask" and event.trial not in log.retracted]
        ids = np.array([event.trial for event in steps if event.step != "abandon" or event.trial in log.failed])
        missing = -np.isin(ids, list(log.failed)).astype(np.float64)
        stored = record("state", state, {"success": anything})["success"]
        take_up(out.mixture, {"mixture": stored}, lambda: Rewards(np.array(log.index)[ids], missing, self._rows(ids)))
        same("n_observations of the mixture of successes", out.n_outcomes, ids.size, "the number of outcomes")
        return out


class MixtureThompson(EvidenceMixture):
    """Thompson sampling from the evidence mixture: `EvidenceMixture(rule="thompson")` under a name of its own."""

    name: ClassVar[str] = "mixture-thompson"
    default_rule: ClassVar[RuleName | None] = "thompson"


def learned_mean(models: ModelClass, places: IntArray, rewards: FloatArray) -> FloatArray:
    """Mean of every candidate, (N,), under a mixture with nothing stated, after rewards of some.

    Ratios go up to _ALL_NOISE, so that rewards in which no model finds anything are taken for noise.
    """
    assert isinstance(models.dictionary, Matrices)
    domain = FiniteSet(range(models.dictionary.n_rows))
    run = EvidenceMixture(models, domain, ratio_grid=(*RATIOS, *_ALL_NOISE), random_state=0)
    for place, reward in zip(places.tolist(), rewards.tolist(), strict=True):
        run._mixture.update(run._listed.row(place), reward, place)
    everything = np.arange(models.dictionary.n_rows)
    return run.belief.moments_at(Choices(everything, np.ascontiguousarray(models.dictionary.table.T)))[0]


register("learned_mean", learned_mean)


def ratios_of(
    ratio_grid: Sequence[float] | None, noise_known: bool, others_given: bool, contextual: bool
) -> tuple[float, ...]:
    """Ratios of noise to prior variance, where no bound on rewards is stated."""
    if others_given:
        raise ValueError(
            "noise_grid and scale_grid are multiples of noise_std and reward_bound; state reward_bound as well, or "
            "give ratio_grid in their place"
        )
    usual = (*LARGE_SIGNALS, *RATIOS) if noise_known else RATIOS
    usual = (*usual, *WEAK_SIGNALS) if contextual else usual
    return grid("ratio_grid", usual if ratio_grid is None else ratio_grid)
