"""Base agents: how one model turns its ridge posterior into a policy over the candidates.

The protocol for an agent of your own: subclass `Agent`, keep its settings in a frozen dataclass, give it a
`ridge`, and implement `policy`, which sees one model's posterior and returns a candidate's position or a
probability for every candidate. The built-in agents answer for all models at once through compiled loops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import count, fraction, non_negative, positive
from alexp.decision.suggestions import Suggestions
from alexp.decision.widths import ucb_width
from alexp.estimation.posteriors import Posteriors
from alexp.problem.candidates import Choices


@dataclass(frozen=True)
class Crowd:
    """All models that share one agent, and what that agent may look at.

    `fits` holds their posteriors (models of the crowd are numbered from 0), `models` their numbers in the whole class.
    `believed` are the same with the variances that will be left when pending rewards are in; means are no others.
    """

    fits: Posteriors
    believed: Posteriors
    models: IntArray
    choices: Choices
    noise_std: float
    norm_bound: float
    rng: np.random.Generator


@dataclass(frozen=True)
class View:
    """What one model's agent sees: posterior mean and standard deviation of the reward on the n choices.

    Attributes
    ----------
    model : number of the model.
    mean, std : (n,) posterior mean, and norm_bound x ridge x ||phi||_{V^-1} (the paper's sigma_t), where V has
        the rows of pending trials as well.
    features : (n, P) dictionary rows of the choices.
    rng : generator for agents that randomise.
    """

    model: int
    mean: FloatArray
    std: FloatArray
    features: FloatArray
    n_observations: int
    noise_std: float
    norm_bound: float
    rng: np.random.Generator


class Agent:
    """A base agent. Subclasses give `ridge` (lambda-tilde, V = Phi'Phi + ridge^2 I) and `policy`."""

    ridge: float
    determined: ClassVar[bool] = False  # whether its policy is a function of its data alone, without random numbers
    believes: ClassVar[bool] = True  # whether its policy uses the variances that pending rewards will leave

    @property
    def sweeps(self) -> bool:
        """Whether one sweep finds what all models want, so that models need not be listed."""
        return False

    def policy(self, view: View) -> int | FloatArray:
        """Position of the choice to play, or a probability for each of the n choices, shape (n,)."""
        raise TypeError(f"{type(self).__name__} must implement policy(view)")

    def suggest(self, crowd: Crowd) -> Suggestions:
        """Policies of every model of the crowd; built-in agents override this with compiled loops."""
        features = np.ascontiguousarray(crowd.choices.table.T)
        rows = []
        for local, model in enumerate(crowd.models):
            mean = crowd.fits.mean(local, features)
            std = crowd.norm_bound * self.ridge * crowd.believed.width(local, crowd.choices)
            view = View(
                int(model), mean, std, features, crowd.fits.n_observations,
                crowd.noise_std, crowd.norm_bound, crowd.rng,
            )  # fmt: skip
            rows.append(_as_distribution(self.policy(view), len(crowd.choices), type(self).__name__))
        return Suggestions.distributions(rows, len(crowd.choices))


def _as_distribution(answer: int | FloatArray, n: int, agent: str) -> FloatArray:
    if np.ndim(answer) == 0:
        position = count(f"the position returned by {agent}.policy", np.asarray(answer).item(), 0)
        if position >= n:
            raise ValueError(f"{agent}.policy returned position {position} but there are only {n} choices")
        row = np.zeros(n)
        row[position] = 1.0
        return row
    row = np.asarray(answer, dtype=np.float64)
    if row.shape != (n,) or not np.all(row >= 0.0) or not np.isclose(row.sum(), 1.0, rtol=0, atol=1e-9):
        raise ValueError(f"{agent}.policy must return a position or {n} probabilities that sum to one")
    return np.asarray(row / row.sum())


@dataclass(frozen=True)
class UCB(Agent):
    """Optimism: argmax of mean + beta x norm_bound x ridge x ||phi||_{V^-1}, V = Phi'Phi + ridge^2 I.

    `ridge` is the paper's lambda-tilde in units of `norm_bound`. `beta="theory"` replaces the whole factor by
    the time-uniform confidence width sqrt(sigma^2 (logdet(V/ridge^2) + 2 log(1/delta)) + ridge^2 B^2).
    """

    beta: float | str = 2.0
    ridge: float = 0.01
    delta: float = 0.1
    determined: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.beta, str):
            if self.beta != "theory":
                raise ValueError(f'beta must be a number or "theory", got {self.beta!r}')
        else:
            non_negative("beta", self.beta)
        positive("ridge", self.ridge)
        fraction("delta", self.delta)

    @property
    def sweeps(self) -> bool:
        """Unless every model has a width of its own."""
        return self.beta != "theory"

    def widths(self, fits: Posteriors, noise_std: float, norm_bound: float) -> FloatArray | float:
        """What multiplies ||phi||_{V^-1}: one number for each of the fits' models (M,), or one for all."""
        if self.beta == "theory":
            return ucb_width(fits.log_determinants(), self.ridge, noise_std, norm_bound, self.delta)
        return float(self.beta) * norm_bound * self.ridge

    def suggest(self, crowd: Crowd) -> Suggestions:
        width = self.widths(crowd.fits, crowd.noise_std, crowd.norm_bound)
        return Suggestions.certain(crowd.believed.argmax_ucb(crowd.choices, width), len(crowd.choices))


@dataclass(frozen=True)
class Greedy(Agent):
    """Argmax of the posterior mean."""

    ridge: float = 0.01
    determined: ClassVar[bool] = True
    believes: ClassVar[bool] = False

    def __post_init__(self) -> None:
        positive("ridge", self.ridge)

    @property
    def sweeps(self) -> bool:
        return True

    def suggest(self, crowd: Crowd) -> Suggestions:
        return Suggestions.certain(crowd.fits.argmax_mean(crowd.choices), len(crowd.choices))


@dataclass(frozen=True)
class EpsilonGreedy(Agent):
    """Argmax of the posterior mean with probability 1 - epsilon, any candidate alike with probability epsilon."""

    epsilon: float = 0.1
    ridge: float = 0.01
    determined: ClassVar[bool] = True
    believes: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0.0 <= non_negative("epsilon", self.epsilon) <= 1.0:
            raise ValueError(f"epsilon must lie in [0, 1], got {self.epsilon!r}")
        positive("ridge", self.ridge)

    @property
    def sweeps(self) -> bool:
        return True

    def suggest(self, crowd: Crowd) -> Suggestions:
        return Suggestions.certain(crowd.fits.argmax_mean(crowd.choices), len(crowd.choices), spread=self.epsilon)


@dataclass(frozen=True)
class ThompsonSampling(Agent):
    """Argmax of a draw from N(mean, (scale x norm_bound x ridge)^2 V^-1).

    The policy of a round is the even mixture of `draws` such maximisers: expected returns under it are the Monte
    Carlo estimate of the exact ones, and the propensity of what is played is exact given the draws.
    """

    ridge: float = 0.01
    scale: float = 1.0
    draws: int = 8
    believes: ClassVar[bool] = False  # draws differ by themselves

    def __post_init__(self) -> None:
        positive("ridge", self.ridge)
        non_negative("scale", self.scale)
        count("draws", self.draws)

    def suggest(self, crowd: Crowd) -> Suggestions:
        scale = self.scale * crowd.norm_bound * self.ridge
        positions = np.empty((crowd.models.size, self.draws), dtype=np.int64)
        for k in range(self.draws):
            positions[:, k] = crowd.fits.argmax_draw(crowd.choices, crowd.rng, scale)
        return Suggestions.samples(positions, len(crowd.choices))


BUILT_IN: dict[str, type[Agent]] = {agent.__name__: agent for agent in (UCB, Greedy, EpsilonGreedy, ThompsonSampling)}
