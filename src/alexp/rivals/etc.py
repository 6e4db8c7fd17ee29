"""ETC: explore, then commit (Hao, Lattimore and Wang 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from math import cbrt, ceil, log, sqrt
from typing import ClassVar, Literal, Unpack, get_args

import numpy as np

from alexp.extend import (
    Algorithm,
    Certain,
    Decision,
    Domain,
    Estimate,
    Exploration,
    GroupLasso,
    ModelClass,
    Observation,
    Round,
    Shared,
    State,
    Uniform,
    Weighted,
    a_dict,
    anything,
    count,
    design_weights,
    first_best,
    independent_columns,
    maybe,
    offering,
    on_choices,
    one_of,
    positive,
    predict,
    record,
    same,
    smallest_eigenvalue,
)

Length = Literal["theory", "li2022"]  # how long to explore, by the literature
RULES: tuple[Length, ...] = get_args(Length)


class ETCSettings(Shared, total=False):
    """Keywords of `ETC`, for its subclasses."""

    n_explore: int | Length
    horizon: int | None
    sparsity: int | None
    lam: float
    exploration: Exploration | None
    oracle: GroupLasso | None


@dataclass(frozen=True)
class Commitment(Decision):
    """A decision after exploration has ended, and the estimate that ended it."""

    fit: Estimate


class ETC(Algorithm):
    """Explore until `n_explore` rewards are known, solve one group Lasso, then play its best action forever.

    The Lasso is solved by the first ask that finds `n_explore` rewards, on all rewards known by then; until then asks
    explore, also while trials are pending. With one ask per reward that is exactly `n_explore` rounds of exploration.
    Later rewards change nothing.

    lambda_1 = lam x 4 noise_std sqrt(log M / n_explore), for (1/t)||y - Phi theta||^2 + 2 lambda sum_j ||theta_j||.

    `n_explore` may be left to theory, which knows `horizon` n and `sparsity` s, the number of models at work:
    "theory" is (2 (s sigma n / (B C_min))^2 log M)^(1/3), as Hao et al. have it, C_min the smallest eigenvalue that the
    exploration design attains on a table of candidates; "li2022" is (s n^2 (log M + d))^(1/3), for models of one column
    without the d, and asks for no table: with rounds that differ it is "explore the structure then commit" of Li, Barik
    and Honorio (2022), which commits to the estimate and not to an action. Both are at most n. Of "li2022" the order in
    s and n is sure, constants are not known (1 here), and the logarithm is ours: an l2 error of sqrt(s log M/n_explore)
    after n_explore rounds of loss is balanced by it and costs log^(1/3), while the bound in print, (s n^2)^(1/3)
    sqrt(log(M n)), is that of a length without it.

    Needs `noise_std`; bounds do not matter to it, but for "theory" `reward_bound` does.
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
        n_explore: int | Length = 20,
        horizon: int | None = None,
        sparsity: int | None = None,
        lam: float = 0.009,
        exploration: Exploration | None = None,
        oracle: GroupLasso | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        self.n_explore = checked_length(n_explore)  # which `relies_on` asks for
        super().__init__(models, domain, **shared)
        self.lam = positive("lam", lam)
        self.horizon = None if horizon is None else count("horizon", horizon)
        self.sparsity = None if sparsity is None else count("sparsity", sparsity)
        self.exploration = Uniform() if exploration is None else exploration
        self.oracle = GroupLasso() if oracle is None else oracle
        offering("oracle", self.oracle, "bind")
        offering("exploration", self.exploration, "design")
        self._data = self.oracle.bind(models)
        self._pi = design_weights(self.exploration, models, domain)
        self.n_exploring = self.n_explore if isinstance(self.n_explore, int) else self._length(self.n_explore)
        self._fit: Estimate | None = None  # set once, when exploration ends

    @property
    def relies_on(self) -> frozenset[str]:
        """The noise, for lambda_1; and the bound where theory says how long to explore."""
        return frozenset({"noise_std", "reward_bound"} if self.n_explore == "theory" else {"noise_std"})

    def arguments(self) -> State:
        """Constructor arguments; horizon and sparsity only where they were given."""
        known = {"horizon": self.horizon, "sparsity": self.sparsity}
        return super().arguments() | {name: value for name, value in known.items() if value is not None}

    def _length(self, rule: Length) -> int:
        """Rounds of exploration by a rule of the literature."""
        n, s = self.horizon, self.sparsity
        if n is None or s is None:
            raise ValueError(f'n_explore="{rule}" needs horizon= and sparsity=: how long to explore depends on them')
        if rule == "li2022":
            return min(n, ceil(cbrt(s * n**2 * self._log_size(True))))
        if self.models.is_contextual:
            raise ValueError('n_explore="theory" needs a table of candidates, whose C_min it computes; use "li2022"')
        assert self._pi is not None
        features = self.models.matrix(self.domain)
        smallest = smallest_eigenvalue(features[:, independent_columns(features)], self._pi)
        return theory_length(n, s, self.noise_std / self.reward_bound, smallest, self._log_size())

    def _log_size(self, grouped: bool = False) -> float:
        """log M, plus the size of the largest model for rules that count it."""
        size = int(np.diff(self.models.offsets).max())
        return log(max(self.models.n_models, 2)) + (size if grouped and size > 1 else 0)

    @property
    def lambda_1(self) -> float:
        """Regularisation of the one group Lasso."""
        return self.lam * 4.0 * self.noise_std * sqrt(log(max(self.models.n_models, 2)) / self.n_exploring)

    def _decide(self, round_: Round) -> Decision:
        if self.n_told < self.n_exploring:
            pi = on_choices(self._pi, round_.indices)
            return Decision(Weighted(np.arange(pi.size), pi, explored=True))
        fit = self._data.solve(self.lambda_1) if self._fit is None else self._fit
        return self._exploit(round_, fit)

    def _exploit(self, round_: Round, fit: Estimate) -> Decision:
        """What to play once exploration has ended with this estimate."""
        return Commitment(Certain(first_best(round_.narrow(predict(fit, round_.wide.table)))), fit)

    def _commit(self, round_: Round, decision: Decision) -> None:
        if isinstance(decision, Commitment):
            self._fit = decision.fit

    def _learn(self, seen: Observation) -> None:
        if self._fit is None:
            self._data.append(seen.row, seen.reward)

    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        fit = self._fit or self._data.solve(self.lambda_1)
        estimate = predict(fit, round_.choices.table)
        position = first_best(estimate)
        leader = int(fit.groups[first_best(fit.magnitudes)]) if fit.groups.size else None
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


def checked_length(n_explore: object) -> int | Length:
    """A number of rounds, or the name of a rule."""
    if isinstance(n_explore, str):
        return one_of("n_explore", n_explore, RULES)
    return count("n_explore", n_explore)


def theory_length(horizon: int, sparsity: int, noise: float, smallest: float, log_size: float) -> int:
    """(2 (s sigma n / (B C_min))^2 log p)^(1/3), at most n; `noise` is sigma / B."""
    if smallest <= 0.0:
        return horizon
    return min(horizon, max(1, int(cbrt(2.0 * (sparsity * noise * horizon / smallest) ** 2 * log_size))))
