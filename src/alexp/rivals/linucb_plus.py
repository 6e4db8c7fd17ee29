"""LinUCB++: smaller and smaller models, and the past as arms of their own (Zhu and Nowak 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log, log2, sqrt
from typing import ClassVar, Unpack

import numpy as np

from alexp.extend import (
    Algorithm,
    Among,
    Certain,
    Decision,
    Domain,
    FloatArray,
    IntArray,
    ModelClass,
    Observation,
    Packable,
    Play,
    Posteriors,
    Proposal,
    Round,
    Shared,
    State,
    anything,
    count,
    first_best,
    floats,
    fraction,
    integers,
    linear_posteriors,
    positive,
    record,
    sequence,
    whole,
)
from alexp.rivals.modcb import cumulative_order, nested_order

_REAL = -1  # the arm of candidates; 0, 1, ... are those of past iterations


@dataclass(frozen=True)
class Armed(Decision):
    """A decision, its iteration, and which arm it plays."""

    iteration: int
    arm: int


class LinUCBPlusPlus(Algorithm):
    """Iterations i = 1, ..., p of doubling length: LinUCB on a model of at most d_i columns, and on what went before.

    With p = ceil(log2 n^alpha), iteration i lasts 2^(p + i) rounds and has d_i = 2^(p + 2 - i): it starts anew with the
    largest of the nested models that has at most d_i columns. For every earlier iteration j there is a virtual arm: to
    play it is to draw one of the candidates played in j, each as often as it was. Should the model be too small by now,
    the arm of an iteration in which it was large enough keeps the regret at what it was then. That is Pareto optimal:
    no method is better for all sizes of the true model.

    Widths are `width` sigma sqrt(2 log(2 K T^1.5)) ||phi||_{V^-1}, K the arms and T the length of the iteration, and
    for virtual arms, whose rewards vary by what they draw, with sqrt(sigma^2 + reward_bound^2) in place of sigma; V has
    ridge^2 on its diagonal. (The released code lacks the root over phi' V^-1 phi.)

    Rounds are asks that were not abandoned. Rewards that come after their iteration count for `best` alone, which is by
    the largest model on all rewards. External measurements are known to the current iteration.

    Needs `horizon` n, nested models (or `cumulative`, see `ModCB`), `noise_std`, `reward_bound` and `norm_bound`.
    """

    name: ClassVar[str] = "linucb++"
    needs_columns: ClassVar[str] = "it plays regressions on nested sets of columns"
    needs_table: ClassVar[str] = "candidates of earlier iterations are played again"
    settings: ClassVar[tuple[str, ...]] = ("horizon", "alpha", "width", "ridge", "cumulative")
    example: ClassVar[State] = {"horizon": 9, "cumulative": True}

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        horizon: int,
        alpha: float = 0.5,
        width: float = 1.0,
        ridge: float | None = None,
        cumulative: bool = False,
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(models, domain, **shared)
        self.horizon, self.alpha, self.width = (
            count("horizon", horizon),
            fraction("alpha", alpha),
            positive("width", width),
        )
        self.ridge = self.noise_std / self.norm_bound if ridge is None else positive("ridge", ridge)
        self.cumulative = bool(cumulative)
        chain, self._columns, self._sizes = (cumulative_order if self.cumulative else nested_order)(models)
        self._names = [models.names[int(j)] for j in chain]
        self.iterations = max(1, ceil(self.alpha * log2(max(self.horizon, 2))))
        self._everything_known = self._fresh_fits(len(chain) - 1)
        self._past: list[list[int]] = []  # candidates played in every earlier iteration
        self._begin_iteration()

    def _begin_iteration(self) -> None:
        self._fits, self._rounds = self._fresh_fits(self._rank(len(self._past) + 1)), 0
        self._played: list[int] = []
        self._gains = np.zeros((len(self._past), 2))  # rounds and summed rewards of the virtual arms

    def _rank(self, i: int) -> int:
        """Place in the chain of the model of iteration i."""
        most = 2 ** (self.iterations + 2 - i)
        return max(int(np.searchsorted(self._sizes, most, side="right")) - 1, 0)

    def _fresh_fits(self, rank: int) -> Posteriors:
        columns, name = np.sort(self._columns[: self._sizes[rank]]), self._names[rank]
        one = ModelClass(self.models.dictionary, [columns], [name], intercept=self.models.intercept)
        return linear_posteriors(one, self.ridge)

    def length(self, i: int) -> int:
        """Rounds of iteration i; the last one does not end."""
        return 1 << (self.iterations + i)

    @property
    def iteration(self) -> int:
        """i of the last ask."""
        return len(self._past) + 1

    def _decide(self, round_: Round) -> Decision:
        i = self.iteration
        over = i < self.iterations and self._rounds >= self.length(i)
        past = [*self._past, self._played] if over else self._past
        fits = self._fresh_fits(self._rank(i + 1)) if over else self._fits
        gains = np.zeros((len(past), 2)) if over else self._gains
        radius = self.width * sqrt(2.0 * log(2.0 * self.length(i + over) ** 1.5 * (len(round_) + len(past))))
        if round_.pending:
            fits = fits.with_fantasies(round_.pending.rows)
        values = fits.mean(0, round_.choices) + radius * self.noise_std * fits.width(0, round_.choices)
        best = first_best(values)
        play: Play = Certain(best)
        arm, value = _REAL, float(values[best])
        for j, own in enumerate(self._virtual(gains, radius)):
            if own > value and (positions := _positions(past[j], round_.indices)).size:
                play, arm, value = Among(positions), j, float(own)
        return Armed(play, i + over, arm)

    def _virtual(self, gains: FloatArray, radius: float) -> FloatArray:
        """Upper bounds of the virtual arms, (i - 1,)."""
        weight = gains[:, 0] + self.ridge**2
        spread = radius * sqrt(self.noise_std**2 + self.reward_bound**2)
        return np.asarray(gains[:, 1] / weight + spread / np.sqrt(weight))

    def _commit(self, round_: Round, decision: Decision) -> None:
        assert isinstance(decision, Armed)
        if decision.iteration > self.iteration:
            self._past.append(self._played)
            self._begin_iteration()
        self._rounds += 1

    def _note(self, decision: Decision, proposal: Proposal) -> list[Packable]:
        """The iteration, the arm, and what it was counted as."""
        assert isinstance(decision, Armed)
        return [decision.iteration, decision.arm]

    def _learn(self, seen: Observation) -> None:
        self._everything_known.update(seen.row, seen.reward)
        iteration, arm = (self.iteration, _REAL) if seen.note is None else seen.note
        if iteration != self.iteration:
            return
        if seen.note is not None and seen.index is not None:
            self._played.append(seen.index)
        if arm == _REAL:
            self._fits.update(seen.row, seen.reward)
        else:
            self._gains[arm] += 1.0, seen.reward

    def _given_up(self, trial: int) -> None:
        self._rounds -= self._notes[trial][0] == self.iteration

    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        values = self._everything_known.mean(0, round_.choices)
        position = first_best(values)
        return position, float(values[position]), None

    # -- saved -------------------------------------------------------------------------------------------------

    def _state(self) -> State:
        return {
            "past": [np.array(own, dtype=np.int64) for own in self._past],
            "played": np.array(self._played, dtype=np.int64),
            "rounds": self._rounds,
            "gains": self._gains,
            "fits": self._fits.state(),
            "all": self._everything_known.state(),
        }

    def _restore(self, state: State) -> None:
        listed = integers(None, low=0, high=self.domain.n_candidates - 1)
        checks = {"past": anything, "played": listed, "rounds": whole(), "fits": anything, "all": anything}
        known = record("state", state, checks)
        past = sequence("state['past']", known["past"])
        if len(past) >= self.iterations:
            raise ValueError(f"state['past'] must have fewer than {self.iterations} iterations, got {len(past)}")
        self._past = [listed("state['past']", own).tolist() for own in past]
        self._begin_iteration()
        self._played, self._rounds = known["played"].tolist(), known["rounds"]
        self._gains = record("state", state, {"gains": floats(len(past), 2)})["gains"]
        self._fits.restore(known["fits"])
        self._everything_known.restore(known["all"])
        self._check_notes(self._check_place)

    def _check_place(self, name: str, note: Packable) -> list[Packable]:
        iteration, arm = sequence(name, note, 2)
        i = whole(1, self.iteration)(name, iteration)
        return [i, whole(_REAL, i - 2)(name, arm)]


def _positions(played: list[int], indices: IntArray) -> IntArray:
    """Where the candidates that were played are in a round, each as often as it was; those that are not there, not."""
    order = np.argsort(indices)
    places = np.searchsorted(indices, played, sorter=order)
    places[places == indices.size] = 0
    found = order[places]
    return np.asarray(found[indices[found] == np.asarray(played, dtype=np.int64)], dtype=np.int64)
