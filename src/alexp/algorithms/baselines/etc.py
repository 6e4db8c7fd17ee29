"""ETC: explore, then commit (Hao, Lattimore and Wang 2020)."""

from __future__ import annotations

from math import log, sqrt
from typing import Any, ClassVar

import numpy as np

from alexp.algorithms.base import Algorithm, Proposal
from alexp.common.arrays import FloatArray
from alexp.common.validation import count, positive
from alexp.decision.designs import Uniform
from alexp.estimation.estimate import Estimate, predict
from alexp.estimation.lasso.group_lasso import GroupLasso
from alexp.problem.candidates import Choices
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass


class ETC(Algorithm):
    """Explore until `n_explore` rewards are known, solve one group Lasso, then play its best action forever.

    The Lasso is solved by the first ask that finds `n_explore` rewards, on all rewards known by then; asks made
    while rewards are still out go on exploring. With one ask per reward that is exactly `n_explore` rounds of
    exploration. Rewards that come later change nothing.

    lambda_1 = lam x 4 noise_std sqrt(log M / n_explore), for (1/t)||y - Phi theta||^2 + 2 lambda sum_j ||theta_j||.
    """

    name: ClassVar[str] = "etc"
    settings: ClassVar[tuple[str, ...]] = ("n_explore", "lam", "exploration", "oracle")
    example: ClassVar[dict[str, Any]] = {"n_explore": 4}

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        n_explore: int = 20,
        lam: float = 0.009,
        exploration: Any = None,
        oracle: GroupLasso | None = None,
        **shared: Any,
    ) -> None:
        super().__init__(models, domain, **shared)
        self.n_explore, self.lam = count("n_explore", n_explore), positive("lam", lam)
        self.exploration = Uniform() if exploration is None else exploration
        self.oracle = GroupLasso() if oracle is None else oracle
        self._data = self.oracle.bind(models)
        self._pi = self.exploration.design(models, domain).weights
        self._fit: Estimate | None = None  # set once, when exploration ends

    @property
    def lambda_1(self) -> float:
        """Regularisation of the one group Lasso."""
        return self.lam * 4.0 * self.noise_std * sqrt(log(max(self.models.n_models, 2)) / self.n_explore)

    def _propose(self, choices: Choices, rng: np.random.Generator) -> Proposal:
        if self.n_told < self.n_explore:
            pi = _restricted(self._pi, choices)
            position = int(rng.choice(len(choices), p=pi))
            return Proposal(position, None, True, float(pi[position]))
        if self._fit is None:
            self._commit(self._data.solve(self.lambda_1))
        return self._exploit(choices, rng)

    def _commit(self, fit: Estimate) -> None:
        """End the exploration with this estimate."""
        self._fit = fit

    def _exploit(self, choices: Choices, rng: np.random.Generator) -> Proposal:
        assert self._fit is not None
        return Proposal(int(np.argmax(predict(self._fit, choices.table))))

    def _learn(self, index: int, reward: float) -> None:
        if self._fit is None:
            self._data.append(self._row(index), reward)

    def _recommend(self) -> tuple[int, float, int | None]:
        fit = self._fit or self._data.solve(self.lambda_1)
        estimate = predict(fit, self._candidates.table)
        position = int(np.argmax(estimate))
        leader = int(fit.groups[np.argmax(fit.magnitudes)]) if fit.groups.size else None
        return position, float(estimate[position]), leader

    @property
    def fit(self) -> Estimate | None:
        """The estimate it committed to; None while it explores."""
        return self._fit

    def _state(self) -> dict[str, Any]:
        return {"data": self._data.state(), "fit": None if self._fit is None else self._fit.state()}

    def _restore(self, state: dict[str, Any]) -> None:
        self._data.restore(state["data"])
        self._fit = None if state["fit"] is None else self._data.read(state["fit"])


def _restricted(weights: FloatArray, choices: Choices) -> FloatArray:
    """The exploration distribution given that one of the choices is played, shape (n,)."""
    on_choices = weights[choices.indices]
    total = on_choices.sum()
    return on_choices / total if total > 0.0 else np.full(len(choices), 1.0 / len(choices))
