"""SA Lasso: greedy on a Lasso, and nothing to know about sparsity (Oh, Iyengar and Zeevi 2021)."""

from __future__ import annotations

from math import log
from typing import ClassVar, Unpack

from alexp.extend import Domain, Estimate, GroupLasso, ModelClass, Shared, positive
from alexp.rivals.lasso_based import FIRST_FIT, LassoBased, decay, nothing_known


class SALasso(LassoBased):
    """Play argmax_a x_a . beta, beta the Lasso on the played rows; there is no exploration and no other knob.

    lambda_t = lam noise_std sqrt((4 log t + 2 log P) / t), from the sixth reward on; `lam` is the paper's 2 x_max.
    (The released code's "sigma" is a tuned number, not the noise: its 0.2 at a noise of 0.5 is lam = 0.8.)

    Greedy play explores only because contexts differ: the paper assumes that those of the K arms are roughly
    symmetric around zero and balanced. On a fixed set of candidates nothing of that holds, and it gets stuck.
    Before the first fit all candidates tie, and the first in visiting order is played.

    Needs `noise_std`; bounds do not matter to it. No horizon: what the literature calls "not anytime" is its guarantee.
    """

    name: ClassVar[str] = "sa-lasso"
    settings: ClassVar[tuple[str, ...]] = ("lam", "oracle")

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        lam: float = 2.0,
        oracle: GroupLasso | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(models, domain, oracle=oracle, **shared)
        self.lam = positive("lam", lam)

    def lambda_t(self, t: int) -> float:
        """Regularisation after t rewards."""
        return self.lam * self.noise_std * decay(t, 4.0 * log(t), 2.0 * log(max(self.models.n_columns, 2)))

    def _solve(self) -> Estimate:
        if self.n_told < FIRST_FIT:
            return nothing_known(self.models.n_columns)
        return self._data.solve(self.lambda_t(self.n_told))
