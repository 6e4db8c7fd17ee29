"""DR Lasso: a Lasso of doubly robust rewards on the average context (Kim and Paik 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import ClassVar, Literal, Unpack

import numpy as np

from alexp.extend import (
    Certain,
    Decision,
    Domain,
    Estimate,
    Even,
    Explore,
    FloatArray,
    GroupLasso,
    ModelClass,
    Observation,
    Play,
    Proposal,
    Round,
    Shared,
    State,
    anything,
    first_best,
    floats,
    non_negative,
    number,
    positive,
    record,
)
from alexp.rivals.lasso_based import FIRST_FIT, LassoBased, decay, nothing_known

_SCALED = 0.5  # lam2 per unit of the average context's size


@dataclass(frozen=True)
class Weighing(Decision):
    """A decision, the round's average features (P,), and what the estimate says of its choices (n,)."""

    mean: FloatArray
    predicted: FloatArray


class DRLasso(LassoBased):
    """Regress a reward for the average context of a round, which does not depend on what was played.

    With K choices, r_a = x_a . beta and pi the probability of the choice that was made,

        r = mean_a r_a + (y - r_played) / (K pi), clipped to +-clip,     beta = Lasso of r on mean_a x_a,

    lambda_t = lam2 reward_bound sqrt((log t + log P) / t) from the sixth reward on. The first `n_uniform` - 1 rounds
    are played evenly; then round t is with probability min(1, lam1 sqrt((log t + log P) / t)), and greedily otherwise.

    `lam2` = 0.5 is the authors' value for arms with correlated contexts. Where contexts of a round's arms are
    independent, their average has 1/K of the variance and such a lambda leaves no coefficient: `lam2="scaled"` is
    0.5 times the root mean square of the average contexts so far. `clip` counts in units of `reward_bound`; without it
    rewards are clipped at reward_bound + 2 noise_std (the released code: at 3, whatever the rewards are). A constant of
    the models is fitted, and like in the released code no part of r_a.

    The doubly robust reward uses the estimate at the time of the ask. External measurements have no pi and are omitted.
    On a fixed set of candidates the average context is always the same: it learns nothing there.

    Needs `reward_bound`, and `noise_std` unless `clip` is given.
    """

    name: ClassVar[str] = "dr-lasso"
    settings: ClassVar[tuple[str, ...]] = ("lam1", "lam2", "n_uniform", "clip", "oracle")
    example: ClassVar[State] = {"lam2": 0.02}  # so that the suite's small contexts leave coefficients

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        lam1: float = 1.0,
        lam2: float | Literal["scaled"] = 0.5,
        n_uniform: float = 10.0,
        clip: float | None = None,
        oracle: GroupLasso | None = None,
        **shared: Unpack[Shared],
    ) -> None:
        self.clip = None if clip is None else positive("clip", clip)  # which `relies_on` asks for
        super().__init__(models, domain, oracle=oracle, **shared)
        self.lam1, self.n_uniform = non_negative("lam1", lam1), non_negative("n_uniform", n_uniform)
        if isinstance(lam2, str) and lam2 != "scaled":
            raise ValueError(f'lam2 must be a positive number or "scaled", got {lam2!r}')
        self.lam2: float | Literal["scaled"] = "scaled" if lam2 == "scaled" else positive("lam2", lam2)
        whole = self.reward_bound + 2.0 * self.noise_std
        self._largest = whole if self.clip is None else self.clip * self.reward_bound
        self._squares = 0.0  # sum over the rows of the mean square of the average context

    @property
    def relies_on(self) -> frozenset[str]:
        """The bound, for lambda and the clipping; the noise for the latter."""
        return frozenset({"reward_bound"} if self.clip is not None else {"reward_bound", "noise_std"})

    def _rate(self, t: int) -> float:
        return decay(t, log(t), log(max(self.models.n_columns, 2)))

    def lambda_t(self, t: int) -> float:
        """Regularisation with t doubly robust rewards."""
        lam2 = _SCALED * sqrt(self._squares / t) if self.lam2 == "scaled" else self.lam2
        return lam2 * self.reward_bound * self._rate(t)

    def _decide(self, round_: Round) -> Decision:
        table, t = round_.choices.table, self.n_told + 1
        predicted = self.fit.at(table) - self.fit.intercept
        play: Play = Even(len(round_))
        if t >= self.n_uniform:
            play = Explore(min(1.0, self.lam1 * self._rate(t)), len(round_), None, Certain(first_best(predicted)))
        return Weighing(play, table.mean(axis=1), predicted)

    def _note(self, decision: Decision, proposal: Proposal) -> FloatArray:
        """The average context, and the doubly robust reward as a line in y: (P + 2,)."""
        assert isinstance(decision, Weighing)
        gain = 1.0 / (decision.predicted.size * proposal.propensity)
        offset = decision.predicted.mean() - gain * decision.predicted[proposal.position]
        return np.concatenate([decision.mean, [offset, gain]])

    def _learn(self, seen: Observation) -> None:
        if seen.note is None:  # external
            return
        note = np.asarray(seen.note)
        reward = float(np.clip(note[-2] + note[-1] * seen.reward, -self._largest, self._largest))
        self._data.append(note[:-2], reward)
        self._squares += float(np.mean(note[:-2] ** 2))

    def _solve(self) -> Estimate:
        t = self._data.n_observations
        if t < FIRST_FIT or self.lambda_t(t) == 0.0:
            return nothing_known(self.models.n_columns)
        return self._data.solve(self.lambda_t(t))

    def _state(self) -> State:
        return {"data": self._data.state(), "squares": self._squares}

    def _restore(self, state: State) -> None:
        known = record("state", state, {"data": anything, "squares": number(low=0.0)})
        self._data.restore(known["data"])
        self._squares = known["squares"]
        if self._data.n_observations > self.n_told:
            raise ValueError(f"n_observations of the regression must be at most {self.n_told}, the number of rewards")
        self._check_notes(floats(self.models.n_columns + 2))
