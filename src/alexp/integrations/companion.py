"""A companion for loops of other libraries: they choose what to measure, it says which models explain the outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict, Unpack

import numpy as np

from alexp.algorithms.base import check_reward
from alexp.algorithms.certified import DELTA, ModelCheck, StopReport
from alexp.algorithms.evidence_mixture import EvidenceMixture
from alexp.algorithms.log import Recommendation
from alexp.common.arrays import Action
from alexp.integrations.lookup import lookup
from alexp.problem.domains import Box, FiniteSet
from alexp.problem.models import ModelClass

if TYPE_CHECKING:
    import pandas as pd


class MixtureSettings(TypedDict, total=False):
    """What may be said of the `EvidenceMixture` behind a companion, as in its constructor."""

    direction: str
    noise_std: float | None
    reward_bound: float | None
    norm_bound: float | None
    ratio_grid: Sequence[float] | None
    power: float | None
    random_state: int


class CompanionOptions(MixtureSettings, total=False):
    """What may be said of a companion beyond models, domain and the column of rewards."""

    keys: Sequence[str] | None
    tolerance: float


class Companion:
    """What an `EvidenceMixture` makes of measurements that somebody else decides on.

    Parameters
    ----------
    models, domain : as for any algorithm; the domain is a FiniteSet or a Box.
    reward : the column of tables that has the outcome.
    keys : columns of tables that say which candidate a row is. By default all columns of a DataFrame of candidates; for
        a Box the names of its coordinates, in order.
    tolerance : how far numbers in tables may be from those of a candidate, as a share of the column's range.
    settings : of the `EvidenceMixture`: `direction`, and for certificates `noise_std` with `norm_bound` or
        `reward_bound`.

    Certificates ask for nothing of whoever chooses the measurements but that choices look at earlier outcomes only, so
    that they hold in other loops as in ours; they would be false if failures, or poor outcomes, were left out.

    Points of a Box need not be among its candidates: those that were measured become candidates, too.

    >>> import alexp
    >>> models = alexp.ModelClass.from_matrices({"line": [[0.0], [1.0], [2.0]], "other": [[1.0], [0.0], [1.0]]})
    >>> companion = Companion(models, alexp.FiniteSet(["a", "b", "c"]))
    >>> for name, outcome in [("a", 1.0), ("b", 2.1), ("c", 2.9), ("a", 1.1)]:
    ...     companion.tell(name, outcome)
    >>> companion.posterior().index[0], companion.best().x
    ('line', 'c')
    """

    def __init__(
        self,
        models: ModelClass,
        domain: FiniteSet | Box,
        *,
        reward: str = "reward",
        keys: Sequence[str] | None = None,
        tolerance: float = 1e-6,
        **settings: Unpack[MixtureSettings],
    ) -> None:
        self.models, self.reward = models, reward
        self._lookup = lookup(domain, keys, tolerance)
        self._settings: MixtureSettings = {"random_state": 0, **settings}
        self._algorithm = EvidenceMixture(models, domain, **self._settings)
        self._told: list[tuple[int, float]] = []  # candidates by number, and rewards

    def __len__(self) -> int:
        return len(self._told)

    # -- what was measured -------------------------------------------------------------------------------------

    def tell(self, x: Action, reward: float) -> None:
        """Take in the reward of one candidate, in its own form or as {column: value}."""
        value = check_reward(reward)
        self._told.append((self._lookup.one(x), value))

    def tell_frame(self, frame: pd.DataFrame, reward: str | None = None) -> int:
        """Take in new measurements, one per row, and return how many; rows without a reward are pending."""
        new = self._read(frame, reward)
        self._told += new
        return len(new)

    def follow(self, frame: pd.DataFrame, reward: str | None = None) -> int:
        """Make the measurements those of a table that has all of them, and return how many are new.

        To be called again and again with the same table as it grows. Where earlier rows were corrected, moved or
        deleted everything is computed anew.
        """
        all_of_them, before = self._read(frame, reward), len(self._told)
        if all_of_them[:before] != self._told:
            self._algorithm = EvidenceMixture(self.models, self._lookup.domain, **self._settings)
        self._told = all_of_them
        return max(len(all_of_them) - before, 0)

    def _read(self, frame: pd.DataFrame, reward: str | None) -> list[tuple[int, float]]:
        """The measurements in a table; raises before anything has changed."""
        column = self.reward if reward is None else reward
        if column not in frame.columns:
            raise ValueError(f"the table has no column {column!r} of rewards; it has {list(map(str, frame.columns))}")
        try:
            rewards = frame[column].to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError) as error:
            raise ValueError(f"the column {column!r} of rewards must hold numbers: {error}") from error
        known = ~np.isnan(rewards)
        values = [check_reward(float(value)) for value in rewards[known]]
        return list(zip(self._lookup.rows(frame[known]), values, strict=True))

    # -- what it means -----------------------------------------------------------------------------------------

    @property
    def algorithm(self) -> EvidenceMixture:
        """The mixture that has seen all measurements: `predict`, `confidence`, `trials_dataframe` and more."""
        domain = self._lookup.domain
        if self._algorithm.domain.n_candidates < domain.n_candidates:  # points of a box that nobody knew
            self._algorithm = EvidenceMixture(self.models, domain, **self._settings)
        for index, reward in self._told[self._algorithm.n_told :]:
            self._algorithm.observe(index, reward)
        return self._algorithm

    def posterior(self) -> pd.Series[float]:
        """Posterior probability of every model by name, the likeliest first."""
        import pandas as pd

        q = self.algorithm.probabilities
        order = np.argsort(-q, kind="stable")
        names = pd.Index([self.models.names[int(j)] for j in order], name="model")
        return pd.Series(q[order], index=names, name="probability")

    def plausible_models(self, delta: float = DELTA) -> list[str]:
        """Names of the models not yet ruled out; NotCertified says what would have to be stated, if not enough was.

        The true model is among them at every moment of the run with probability 1 - delta.
        """
        return [self.models.names[int(j)] for j in self.algorithm.plausible_models(delta)]

    def stop_report(self, delta: float = DELTA, epsilon: float | None = None) -> StopReport:
        """Whether the best candidate by these measurements is within `epsilon` of the best one, as a certificate.

        An estimate and the reason why it is no more than that, if not enough was stated.
        """
        return self.algorithm.stop_report(delta, epsilon)

    def check_models(self, delta: float = DELTA) -> ModelCheck:
        """Whether the measurements contradict what was stated."""
        return self.algorithm.check_models(delta)

    def best(self) -> Recommendation:
        """The candidate to stop with."""
        return self.algorithm.best()

    def summary(self) -> str:
        """Two lines for a log: the likeliest models, and how far the best candidate may be from the best."""
        if not self._told:
            return "no measurements yet"
        leading = ", ".join(f"{name} {share:.2f}" for name, share in self.posterior().head(3).items())
        return f"{len(self)} measurements; models: {leading}\n{self.stop_report()}"

    def __repr__(self) -> str:
        return f"Companion({self.models!r}, {len(self)} measurements)"
