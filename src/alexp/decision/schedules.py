"""How exploration, learning rate and regularisation change with time."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

from alexp.common.validation import count, fraction, non_negative, positive


def anytime_lasso_lambda(t: int, noise_std: float, n_models: int, dimension: int, delta: float) -> float:
    """lambda_t of the anytime Lasso theorem as printed, for (1/t)||y - Phi theta||^2 + 2 lambda sum_j ||theta_j||.

    (2 sigma/sqrt t) sqrt(1 + (12/sqrt 2) w + (5/sqrt 2) sqrt(d w)), w = log(2M/delta) + (log log d)_+, with
    sigma = noise_std and d the size of the largest model.

    >>> round(anytime_lasso_lambda(100, 1.0, 55, 2, 0.1) * 10, 1)
    17.2
    """
    w = log(2.0 * n_models / delta) + (max(log(log(dimension)), 0.0) if dimension > 1 else 0.0)
    return 2.0 * noise_std / sqrt(t) * sqrt(1.0 + 12.0 / sqrt(2.0) * w + 5.0 / sqrt(2.0) * sqrt(dimension * w))


@dataclass(frozen=True)
class Schedules:
    """Constants of the three schedules; the rates are the paper's.

    gamma_t = min(1, gamma t^(-1/4)), eta_t = eta / (reward_bound sqrt t), lambda_t = lam x the printed formula.
    The defaults were chosen by a sweep on tuning seeds, recorded in docs/tuning.md and docs/stability.md.

    >>> Schedules(gamma=0.5).gamma_t(16)
    0.25
    """

    gamma: float = 0.003
    eta: float = 3.0
    lam: float = 0.009
    delta: float = 0.1

    def __post_init__(self) -> None:
        non_negative("gamma", self.gamma)
        non_negative("eta", self.eta)
        positive("lam", self.lam)
        fraction("delta", self.delta)

    def gamma_t(self, t: int) -> float:
        """Probability of exploring in round t."""
        return min(1.0, self.gamma / sqrt(sqrt(count("t", t))))

    def eta_t(self, t: int, reward_bound: float = 1.0) -> float:
        """Learning rate of the exponential weights after t rewards."""
        return self.eta / (reward_bound * sqrt(count("t", t)))

    def lambda_t(self, t: int, noise_std: float, n_models: int, dimension: int) -> float:
        """Regularisation of the group Lasso on t rewards."""
        return self.lam * anytime_lasso_lambda(count("t", t), noise_std, n_models, dimension, self.delta)


@dataclass(frozen=True)
class ReleasedSchedules(Schedules):
    """What the authors' released code does instead: constants tied to the horizon n, and a larger lambda formula.

    gamma = gamma/sqrt(n), eta = eta/(reward_bound sqrt(n)) in every round, and lambda_t = lam (8 sigma/sqrt t)
    sqrt(1 + (12/sqrt 2) w + (5/sqrt 2) sqrt(d w)) with w = log(8M/delta). With a constant rate, the code's
    products of exp(eta * return_s) equal the exponential of the sum.
    """

    lam: float = 0.009
    horizon: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        count("horizon", self.horizon)

    def gamma_t(self, t: int) -> float:
        """The same in every round."""
        return min(1.0, self.gamma / sqrt(self.horizon))

    def eta_t(self, t: int, reward_bound: float = 1.0) -> float:
        """The same after every reward."""
        return self.eta / (reward_bound * sqrt(self.horizon))

    def lambda_t(self, t: int, noise_std: float, n_models: int, dimension: int) -> float:
        """The formula in the code."""
        w = log(8.0 * n_models / self.delta)
        root = sqrt(1.0 + 12.0 / sqrt(2.0) * w + 5.0 / sqrt(2.0) * sqrt(dimension * w))
        return self.lam * 8.0 * noise_std / sqrt(count("t", t)) * root
