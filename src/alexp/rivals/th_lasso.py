"""TH Lasso: greedy on least squares over what a thresholded Lasso keeps (Ariu, Abe and Proutiere 2022)."""

from __future__ import annotations

from math import log, sqrt
from typing import ClassVar, Unpack

import numpy as np

from alexp.extend import Decision, Domain, Estimate, Even, GroupLasso, ModelClass, Round, Shared, positive
from alexp.rivals.lasso_based import LassoBased, nothing_known


class THLasso(LassoBased):
    """Play greedily on the columns that survive two thresholds, fitted by least squares; evenly while none does.

    With b the Lasso at lambda_t = lam noise_std sqrt(2 log t log P / t):

        S0 = {i : |b_i| > 4 lambda_t},   S1 = {i in S0 : |b_i| > 4 lambda_t sqrt(|S0|)},   beta = least squares on S1.

    Where S1 has more columns than there are rows, the solution of least norm is taken. lambda_1 = 0, so that the first
    Lasso is that of two rewards. The authors use lam noise_std = 0.02 throughout, at a noise of one.

    Needs `noise_std`; bounds do not matter to it. Assumes of the contexts what SA Lasso does.
    """

    name: ClassVar[str] = "th-lasso"
    settings: ClassVar[tuple[str, ...]] = ("lam", "oracle")

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        lam: float = 0.1,
        oracle: GroupLasso | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(models, domain, oracle=oracle, **shared)
        self.lam = positive("lam", lam)

    def lambda_t(self, t: int) -> float:
        """Regularisation after t >= 2 rewards."""
        return self.lam * self.noise_std * sqrt(2.0 * log(t) * log(max(self.models.n_columns, 2)) / t)

    def _decide(self, round_: Round) -> Decision:
        return super()._decide(round_) if self.fit.groups.size else Decision(Even(len(round_)))

    def _solve(self) -> Estimate:
        t = self.n_told
        if t < 2:
            return nothing_known(self.models.n_columns)
        lam = self.lambda_t(t)
        size = np.abs(self._data.solve(lam).beta)
        kept = np.flatnonzero(size > 4.0 * lam)
        kept = kept[size[kept] > 4.0 * lam * sqrt(kept.size)]
        return self._data.least_squares(kept)
