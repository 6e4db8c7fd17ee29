"""ETC: explore, then commit (Hao, Lattimore and Wang 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import ClassVar, Unpack

import numpy as np

from alexp.algorithms.protocol.base import Algorithm, Shared
from alexp.algorithms.protocol.rounds import Decision, Observation
from alexp.common.codec import State
from alexp.common.schema import a_dict, anything, maybe, record, same
from alexp.common.validation import count, offering, positive
from alexp.decision.designs import Exploration, Uniform, design_weights
from alexp.decision.plays import Certain, Weighted, on_choices
from alexp.estimation.estimate import Estimate, predict
from alexp.estimation.lasso.group_lasso import GroupLasso
from alexp.problem.candidates import Round
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass


@dataclass(frozen=True)
class Commitment(Decision):
    """A decision after exploration has ended, and the estimate that ended it."""

    fit: Estimate


class ETC(Algorithm):
    """Explore until `n_explore` rewards are known, solve one group Lasso, then play its best action forever.

    The Lasso is solved by the first ask that finds `n_explore` rewards, on all rewards known by then; asks made
    while rewards are still out go on exploring. With one ask per reward that is exactly `n_explore` rounds of
    exploration. Rewards that come later change nothing.

    lambda_1 = lam x 4 noise_std sqrt(log M / n_explore), for (1/t)||y - Phi theta||^2 + 2 lambda sum_j ||theta_j||.

    Needs `noise_std`; bounds do not matter to it.
    """

    name: ClassVar[str] = "etc"
    needs_columns: ClassVar[str] = "it chooses columns by a group Lasso"
    settings: ClassVar[tuple[str, ...]] = ("n_explore", "lam", "exploration", "oracle")
    example: ClassVar[State] = {"n_explore": 4}

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        n_explore: int = 20,
        lam: float = 0.009,
        exploration: Exploration | None = None,
        oracle: GroupLasso | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(models, domain, **shared)
        self.n_explore, self.lam = count("n_explore", n_explore), positive("lam", lam)
        self.exploration = Uniform() if exploration is None else exploration
        self.oracle = GroupLasso() if oracle is None else oracle
        offering("oracle", self.oracle, "bind")
        offering("exploration", self.exploration, "design")
        self._data = self.oracle.bind(models)
        self._pi = design_weights(self.exploration, models, domain)
        self._fit: Estimate | None = None  # set once, when exploration ends

    @property
    def relies_on(self) -> frozenset[str]:
        """The noise, for lambda_1."""
        return frozenset({"noise_std"})

    @property
    def lambda_1(self) -> float:
        """Regularisation of the one group Lasso."""
        return self.lam * 4.0 * self.noise_std * sqrt(log(max(self.models.n_models, 2)) / self.n_explore)

    def _decide(self, round_: Round) -> Decision:
        if self.n_told < self.n_explore:
            pi = on_choices(self._pi, round_.indices)
            return Decision(Weighted(np.arange(pi.size), pi, explored=True))
        fit = self._data.solve(self.lambda_1) if self._fit is None else self._fit
        return self._exploit(round_, fit)

    def _exploit(self, round_: Round, fit: Estimate) -> Decision:
        """What to play once exploration has ended with this estimate."""
        return Commitment(Certain(int(np.argmax(round_.narrow(predict(fit, round_.wide.table))))), fit)

    def _commit(self, round_: Round, decision: Decision) -> None:
        if isinstance(decision, Commitment):
            self._fit = decision.fit

    def _learn(self, seen: Observation) -> None:
        if self._fit is None:
            self._data.append(seen.row, seen.reward)

    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        fit = self._fit or self._data.solve(self.lambda_1)
        estimate = predict(fit, round_.choices.table)
        position = int(np.argmax(estimate))
        leader = int(fit.groups[np.argmax(fit.magnitudes)]) if fit.groups.size else None
        return position, float(estimate[position]), leader

    @property
    def fit(self) -> Estimate | None:
        """The estimate it committed to; None while it explores."""
        return self._fit

    def _state(self) -> State:
        return {"data": self._data.state(), "fit": None if self._fit is None else self._fit.state()}

    def _restore(self, state: State) -> None:
        known = record("state", state, {"data": anything, "fit": maybe(a_dict)})
        self._data.restore(known["data"])
        self._fit = None if known["fit"] is None else self._data.read(known["fit"])
        if self._fit is None or self._data.n_observations > self.n_told:  # it stops counting when it commits
            same("n_observations of the regression", self._data.n_observations, self.n_told, "the number of rewards")
