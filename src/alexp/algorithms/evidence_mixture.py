"""Evidence mixture: act on the exact posterior over models, noise levels and coefficient scales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, log, sqrt
from typing import Any, ClassVar, Unpack

import numpy as np

from alexp.algorithms.certified import Certified
from alexp.algorithms.mixture.goals import NARROW, defaults
from alexp.algorithms.mixture.grids import check_multiples, grid, levels_and_scales, ratios_of
from alexp.algorithms.mixture.improvement import best_so_far, expected_gains
from alexp.algorithms.protocol.contextual.offering import Presented
from alexp.algorithms.protocol.rounds import Decision, Observation
from alexp.algorithms.ranking import RanksModels, check_enumerable
from alexp.common.arrays import Action, FloatArray, IntArray
from alexp.common.codec import State
from alexp.common.schema import same
from alexp.common.validation import count, fraction, non_negative, one_of, positive, share
from alexp.decision.plays import Among, Certain, Explore, Play, Weighted
from alexp.decision.selection import information_directed, upper_confidence
from alexp.decision.weights import draw_index
from alexp.estimation.checking.credible import Credence
from alexp.estimation.mixture.hindsight import Hindsight, look_back
from alexp.estimation.mixture.making import level_mixture, ratio_mixture, take_up
from alexp.estimation.mixture.mixture import Mixture
from alexp.estimation.mixture.replays import Replays, replayed
from alexp.problem.candidates import NOTHING, Choices, Pending, Round
from alexp.problem.domains import Domain, FiniteSet
from alexp.problem.models import ModelClass

_BETA_SQUARED = {"ids": 4.0, "ucb": 2.0, "thompson": 0.0, "ei": 0.0, "ei+ucb": 0.0, "matching": 0.0}
_NOISY = 0.1  # share of the rewards' variance beyond which noise makes the best reward told no fair incumbent
_FLOOR = 0.01  # share of even play, by default, where propensities are for others to use


@dataclass(frozen=True)
class Outlook:
    """What a round is decided on: component weights (cells, M), mixture mean and standard deviation (n,)."""

    weights: FloatArray
    mean: FloatArray
    std: FloatArray


class EvidenceMixture(RanksModels, Certified):
    """Bayesian model averaging whose uncertainty includes the disagreement between models.

    Every component, one model with one noise level and one coefficient scale, is weighted by its exact evidence. The
    mixture's mean m(x) and standard deviation s(x), within plus between components, decide the round:

    * rule="ids": argmin of (max(m + beta s) - m(x))^2 / log(1 + s(x)^2 / noise^2), regret per information;
    * rule="ucb": argmax of m + beta s;
    * rule="ei": argmax of the expected improvement over the incumbent under deviations times beta, averaged over
      components; what a component expects of pending trials counts among its incumbents;
    * rule="ei+ucb": "ei", and where rewards come one by one, not in plates, m + 0.7 s in every second round;
    * rule="thompson": argmax under coefficients drawn from the posterior; a round chooses evenly among `draws`
      such maximisers, so that its propensity is exact given the draws;
    * rule="matching": every choice in proportion to the posterior probability that it is the best, over components and
      coefficients, to the power `sharpness`, and with probability `floor` / n at least. For logs that others will learn
      from.

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
    goal : "sum", large rewards in every round, or "best", one large reward soon; decides the defaults of what follows.
    rule : by default "ids", "ucb" where `repeats=False` or models are kernels, "matching" where candidates are new in
        every round; "ei" where the goal is "best", "ei+ucb" if `repeats=False` besides.
    noise_std : nominal noise; None when unknown.
    reward_bound, norm_bound : nominal norm of the coefficients: `norm_bound` where it is stated, else `reward_bound`.
    noise_grid, scale_grid : multiples of the two that get a component each; (1/3, 1, 3) and (1, 4) by default.
    ratio_grid : ratios of noise to prior variance where no bound is stated; 1e-4 to 0.5 by default.
    misfit_grid : sizes, as multiples of `reward_bound`, of what a candidate's reward may have beyond any model; each is
        weighed against none at all. For tables, where playing a candidate again tells more than its features do.
    light : a single noise level and scale, six times cheaper; for when both are stated and trusted.
    beta : constant width; by default beta_t^2 = 4 + log(t)/4 for "ids" and 2 + log(t)/4 for "ucb", and 0.7 where
        `repeats=False`: a small width locks only where a candidate may be played again. For "ei" 1, and 2 where
        `repeats=False`, since posteriors of candidates chosen by them are too sure of themselves.
    gamma : explore evenly with probability gamma t^(-1/3); zero by default.
    sharpness : of "matching": 1, the default, is Thompson sampling with its propensities integrated; more of it mostly
        has less regret, and more runs that stay with a wrong choice.
    floor : explore evenly with this probability at least, so that each of n choices has a propensity of floor / n or
        more; 0.01 for "matching", zero for other rules.
    forget : weight of a reward for each one that came after it, for rewards that drift: 0.99 looks back some hundred
        rewards. None, by default, forgets nothing. Nothing is certified then, and the order of rewards matters. For
        models linear in at most 200 features, without `misfit_grid`.
    power : weights are proportional to the evidence to this power; 1 by default, and where `repeats=False` 1/2 (1/4 for
        the goal "best"): there models are seldom true and evidence on candidates chosen by it is too sure of itself.

    The incumbent of "ei" is the best reward told, which stands where nothing is measured twice. With repeats and noise
    of more than a tenth of the rewards' variance, or `forget`, it is the best mean among the candidates told.

    On a table, with neither noise nor bound stated, "ids" and "ucb" learn a reward once if its candidate, and no other,
    gives exactly the same again. Replays then make that candidate's own mean and deviation surer, no other's, and
    argmax of m + beta s decides. As soon as a candidate gives another reward, all rewards are learned.

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
    own_rule: ClassVar[str] = ""
    settings: ClassVar[tuple[str, ...]] = (
        "goal", "rule", "noise_grid", "scale_grid", "ratio_grid", "misfit_grid", "beta", "gamma", "draws", "power",
        "sharpness", "floor", "forget",
    )  # fmt: skip

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        goal: str = "sum",
        rule: str | None = None,
        noise_grid: Sequence[float] | None = None,
        scale_grid: Sequence[float] | None = None,
        ratio_grid: Sequence[float] | None = None,
        misfit_grid: Sequence[float] = (),
        light: bool = False,
        beta: float | None = None,
        gamma: float = 0.0,
        draws: int = 8,
        power: float | None = None,
        sharpness: float = 1.0,
        floor: float | None = None,
        forget: float | None = None,
        **shared: Any,
    ) -> None:
        if rule is not None:
            one_of("rule", rule, tuple(sorted(_BETA_SQUARED)))
        self.goal = one_of("goal", goal, ("sum", "best"))
        super().__init__(models, domain, **shared)
        self._defaults = defaults(self.goal, self.repeats, self.is_contextual, models.kernels is not None)
        self.rule = rule or self.own_rule or self._defaults.rule
        check_enumerable(models, self.rule)
        self.beta = None if beta is None else non_negative("beta", beta)
        self.gamma, self.draws = non_negative("gamma", gamma), count("draws", draws)
        self.power = self._defaults.power if power is None else positive("power", power)
        self.sharpness = positive("sharpness", sharpness)
        self.forget = None if forget is None else fraction("forget", forget)
        self.floor = (_FLOOR if self.rule == "matching" else 0.0) if floor is None else share("floor", floor)
        self.noise_grid: tuple[float, ...] | None = None
        self.scale_grid: tuple[float, ...] | None = None
        self.ratio_grid: tuple[float, ...] | None = None
        self.misfit_grid = grid("misfit_grid", misfit_grid) if np.size(misfit_grid) else ()
        grids = noise_grid is not None or scale_grid is not None
        if light and (None in (self.stated.noise_std, self._bound) or grids):
            raise ValueError(
                "light means one noise level and one scale; state noise_std and reward_bound, and give neither grid"
            )
        known = self.stated.noise_std is not None
        if self._in_ratios:
            self.ratio_grid = ratios_of(ratio_grid, known, grids, bool(self.misfit_grid))
        else:
            self.noise_std = self.noise_std if known else self.reward_bound
            chosen = levels_and_scales(noise_grid, scale_grid, light, known, ratio_grid is not None)
            self.noise_grid, self.scale_grid = chosen
            if grids:
                check_multiples("noise_grid times noise_std", self.noise_grid, self.noise_std)
                check_multiples("scale_grid times the bound", self.scale_grid, self.norm_bound)
        self._mixture, self._replays = self._new_mixture(), Replays(self._may_be_exact)

    @property
    def _may_be_exact(self) -> bool:
        """Whether rewards may turn out to have no noise, so that replays are looked for."""
        unknown = self.ratio_grid is not None and self.stated.noise_std is None and self.forget is None
        return unknown and self.repeats and isinstance(self.domain, FiniteSet) and self.rule in ("ids", "ucb")

    @property
    def _bound(self) -> float | None:
        """What the prior takes for the norm of the coefficients, if something was stated."""
        return self.stated.norm_bound or self.stated.reward_bound

    @property
    def _in_ratios(self) -> bool:
        """Whether too little is stated for levels of noise and scales, so that components are ratios of the two."""
        return (self.stated.reward_bound if self.stated.noise_std is None else self._bound) is None

    def _new_mixture(self, models: ModelClass | None = None) -> Mixture:
        where = (models or self.models, self._candidates)
        if self.ratio_grid is not None:
            return ratio_mixture(*where, self.ratio_grid, self.stated.noise_std, self.power, forget=self.forget)
        assert self.noise_grid is not None
        assert self.scale_grid is not None
        unit = (self.stated.reward_bound or self.norm_bound) / self.norm_bound
        effects = [unit * misfit for misfit in self.misfit_grid]
        check_multiples("misfit_grid times reward_bound", effects, self.norm_bound)
        check_multiples("misfit_grid times reward_bound over noise_std", effects, self.norm_bound / self.noise_std)
        grids = (self.noise_grid, self.scale_grid)
        return level_mixture(*where, self.noise_std, self.norm_bound, *grids, effects, self.power, self.forget)

    @property
    def relies_on(self) -> frozenset[str]:
        """What was stated; nothing is assumed, except that a stated bound on rewards stands in for one on norms."""
        stated = {name for name, value in self.stated._asdict().items() if value is not None}
        return frozenset(stated if self._in_ratios else stated | {"norm_bound"})

    def _decide(self, round_: Round) -> Decision:
        t, n = self.n_told + 1, len(round_)
        gamma = max(self.floor, min(1.0, self.gamma * t ** (-1.0 / 3.0)))
        play = self._play(round_)
        return Decision(Explore(gamma, n, None, play) if gamma > 0.0 else play)

    def _play(self, round_: Round) -> Play:
        if self.rule == "thompson":
            return Among(self._maximisers(round_))
        if self.rule == "matching":
            chances = self._chances(round_)
            shares = (chances / chances.max()) ** self.sharpness
            return Weighted(np.arange(len(round_)), shares / shares.sum())
        return Certain(self._index_rule(round_))

    def _chances(self, round_: Round) -> FloatArray:
        """Posterior probability that each choice is the best, (n,): a function of the seed and of all rewards alone."""
        return self._mixture.chances(self._weights(), round_.choices, self._agents_chance())

    def _index_rule(self, round_: Round) -> int:
        """Position of the choice that the "ids", "ucb", "ei" or "ei+ucb" rule plays."""
        looks = self.rule == "ei+ucb" and self.n_told % 2 == 0 and not round_.pending and self._log.happened.one_by_one
        if self.rule in ("ei", "ei+ucb") and not looks:
            return self._improving(round_)
        outlook = self._outlook(round_)
        if self.rule in ("ucb", "ei+ucb") or len(self._replays) > 0:
            return upper_confidence(outlook.mean, outlook.std, NARROW if looks else self.beta_t(self.n_told + 1))
        variance = self._mixture.noise_variance(outlook.weights)
        return information_directed(outlook.mean, outlook.std, self.beta_t(self.n_told + 1), variance)

    def _improving(self, round_: Round) -> int:
        """Position of the choice with the largest expected improvement; of the largest mean, if none has any."""
        width = self.beta_t(self.n_told + 1)
        gains = expected_gains(self._mixture, self._weights(), round_, self.incumbent(), width)
        return int(np.argmax(gains if gains.max() > 0.0 else self._outlook(round_).mean))

    def incumbent(self) -> float:
        """The reward to improve on, in the sign that is maximised; zero if none was told."""
        return self._once("incumbent", self._best_so_far) if self.n_told else 0.0

    def _best_so_far(self) -> float:
        told = self._rewards_told()
        level = _NOISY * float(np.var(told.rewards)) if self.repeats else inf
        fair = self.forget is None and self._mixture.noise_variance(self._weights()) <= level
        return best_so_far(self._mixture, self._weights(), told, fair)

    def _maximisers(self, round_: Round) -> IntArray:
        """Best choices under `draws` samples of the posterior; the samples depend on the seed and t alone."""
        rng, weights, choices = self._agents_chance(), self._weights().ravel(), round_.choices
        out = np.empty(self.draws, dtype=np.int64)
        for k in range(self.draws):
            cell, model = divmod(draw_index(weights, rng), self.models.n_models)
            out[k] = np.argmax(self._mixture.draw(cell, model, rng, choices))
        return out

    def _learn(self, seen: Observation) -> None:
        if not self._replays.hold(seen.index, seen.reward):
            for candidate, reward in self._replays.release():
                self._mixture.update(self._listed.row(candidate), reward, candidate)
            self._mixture.update(seen.row, seen.reward, seen.index)

    def _outlook(self, round_: Round) -> Outlook:
        return self._once(("outlook", round_.key), lambda: self._look(round_))

    def _look(self, round_: Round) -> Outlook:
        mean, variance = self._moments(round_.wide, round_.pending)
        return Outlook(self._weights(), round_.narrow(mean), np.sqrt(round_.narrow(variance)))

    def _moments(self, choices: Choices, pending: Pending = NOTHING) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the reward of each choice, noise aside."""
        mean, variance = self._mixture.moments(self._weights(), choices, pending)
        if len(self._replays) == 0:
            return mean, variance
        return self._replays.settle(mean, variance, self._mixture.noise_variance(self._weights()), choices)

    def _weights(self) -> FloatArray:
        """Posterior of the components, shape (cells, M)."""
        return self._once("weights", self._mixture.weights)

    def beta_t(self, t: int) -> float:
        """Width of the index in round t."""
        if self.beta is not None:
            return self.beta
        constant = self._defaults.beta
        return sqrt(_BETA_SQUARED[self.rule] + 0.25 * log(t)) if constant is None else constant

    @property
    def noise_estimate(self) -> float:
        """Square root of the posterior mean of the noise variance; what models leave unexplained counts as noise.

        With nothing stated it follows the noise down to rounding, as far as the rewards can tell: a model with as many
        coefficients as rewards fits any noise, and smooth kernels fit noise of less than a millionth of the rewards.
        There, and where `reward_bound` or `noise_std` is stated, the smallest level that is considered, 1% of the
        bound or a third of the noise stated, is an upper bound. The same holds for `forget`, for models with
        coefficients of their own for every arm, and for subsets that are enumerated: 1% of the rewards' size.
        """
        return self._once("noise", self._estimate_noise)

    def _estimate_noise(self) -> float:
        told, weights = self._rewards_told(), self._weights()
        _, learned = replayed(told.indices, told.rewards, self._replays.watched)
        return sqrt(self._mixture.estimated_noise(weights, told.rows[learned], told.rewards[learned]))

    def predict(self, x: Action = None, **presented: Unpack[Presented]) -> tuple[Any, Any]:
        """Mixture mean and standard deviation of the reward at `x`, or in a contextual round; credible, not certain."""
        rows, single = self._rows_at(x, presented)
        indices = np.array([self.domain.locate(x)]) if isinstance(self.domain, FiniteSet) else None
        mean, variance = self._moments(Choices(indices, np.ascontiguousarray(rows.T)))
        mean, std = self._sign * mean, np.sqrt(variance)
        return (float(mean[0]), float(std[0])) if single else (mean, std)

    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        outlook = self._outlook(round_)
        position = int(np.argmax(outlook.mean))
        return position, float(outlook.mean[position]), self._mixture.leader(outlook.weights)

    def _belief(self, round_: Round) -> Credence:
        outlook = self._outlook(round_)
        return Credence(outlook.mean, outlook.std)

    def hindsight(self, models: Sequence[int]) -> Hindsight:
        """What was expected of every reward before it came, by all models together and by some of them alone."""
        told = self._rewards_told()
        numbers = np.asarray(models, dtype=np.int64)
        mixture = self._new_mixture(self.models.as_listed())
        seen = look_back(mixture, told, numbers, Replays(self._replays.watched))
        return replace(seen, mean=self._sign * seen.mean, model_mean=self._sign * seen.model_mean)

    def _state(self) -> State:
        return {"mixture": self._mixture.state()}

    def _restore(self, state: State) -> None:
        log, ids = self._log, self._log.told_in_order()
        candidates, rewards = np.array(log.index)[ids], self._sign * np.array(log.reward)[ids]
        replays, learned = replayed(candidates, rewards, self._may_be_exact)
        take_up(self._mixture, state, lambda: self._rewards_told().only(learned))
        n_learned = self._mixture.n_observations
        self._replays = Replays(False) if len(replays) and n_learned == self.n_told else replays  # once learned, so on
        same("n_observations of the mixture", n_learned, self.n_told - len(self._replays), "the number of rewards")
