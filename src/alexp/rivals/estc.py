"""ESTC: explore the sparsity, then commit (Hao, Lattimore and Wang 2020)."""

from __future__ import annotations

from math import log, sqrt
from typing import ClassVar, Unpack

from alexp.extend import Domain, EOptimal, Exploration, GroupLasso, ModelClass, Round, Shared, State
from alexp.rivals.etc import ETC, Length
from alexp.rivals.lasso_based import plain_lasso


class ESTC(ETC):
    """`ETC` on single columns, with the design that is best for the smallest eigenvalue, for as long as theory says.

    n_1 = (2 (s sigma n / (B C_min))^2 log P)^(1/3), at most the horizon n, with s = `sparsity` columns at work and B =
    `reward_bound`; lambda_1 = lam 2 sigma sqrt(log P / n_1) for (1/t)||.||^2 + 2 lambda ||beta||_1, which is the
    print's 4 sigma sqrt(log P / n_1) for (1/t)||.||^2 + lambda ||beta||_1. Then that Lasso's best action is played.
    (Print and released comparison agree up to what bounds the rewards. `ETC(n_explore="li2022")` is another algorithm
    of the same initials: "explore the structure then commit".)

    Hao et al. have a second algorithm, which keeps the support only and goes on by phased elimination on it; `ETS` is
    that with UCB.

    Needs `horizon`, `sparsity`, `noise_std` and `reward_bound`.
    """

    name: ClassVar[str] = "estc"
    needs_table: ClassVar[str] = "it explores by a design on a fixed set of candidates"
    settings: ClassVar[tuple[str, ...]] = ("horizon", "sparsity", "n_explore", "lam", "exploration", "oracle")
    example: ClassVar[State] = {"horizon": 12, "sparsity": 1}

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        horizon: int,
        sparsity: int,
        n_explore: int | Length = "theory",
        lam: float = 1.0,
        exploration: Exploration | None = None,
        oracle: GroupLasso | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(
            models,
            domain,
            n_explore=n_explore,
            horizon=horizon,
            sparsity=sparsity,
            lam=lam,
            exploration=EOptimal() if exploration is None else exploration,
            oracle=oracle,
            **shared,
        )
        self._data = plain_lasso(self.oracle, models.n_columns, models.intercept)

    @property
    def lambda_1(self) -> float:
        """Regularisation of the one Lasso."""
        return self.lam * 2.0 * self.noise_std * sqrt(self._log_size() / self.n_exploring)

    def _log_size(self, grouped: bool = False) -> float:
        """log P."""
        return log(max(self.models.n_columns, 2))

    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        return *super()._recommend(round_)[:2], None
