"""Several objectives, cost and budget: what an algorithm with a mixture per objective has beyond one with a reward."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from math import fsum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypedDict, cast

import numpy as np

from alexp.algorithms.assumptions import quietly
from alexp.algorithms.base import CheckedTell, Direction, Noise, RandomState, RoundArguments, Shared
from alexp.algorithms.certified import Certified
from alexp.algorithms.certifier import Certifier
from alexp.algorithms.log import TrialLog
from alexp.algorithms.offer_log import LogFeatures
from alexp.common.arrays import FloatArray, IntArray
from alexp.common.codec import State
from alexp.common.validation import non_negative, positive
from alexp.estimation.mixture.success import SuccessMixture
from alexp.problem.budgets import RoundPurse, check_round_cost, cost_column
from alexp.problem.candidates import Choices, Round
from alexp.problem.domains import Available, ContextualDomain, Domain
from alexp.problem.objectives import (
    Objectives,
    Value,
    check_cost,
    column_names,
    costs_of,
    known_column,
    numbers_in,
    numbers_of,
)
from alexp.problem.offers import Offer
from alexp.problem.plates import Purse
from alexp.problem.ranges import RewardRange
from alexp.rules import Rule, rule_named
from alexp.table.encoding import Arrivals
from alexp.table.table import Table

if TYPE_CHECKING:
    import pandas as pd

    from alexp.algorithms.evidence_mixture import MixtureBelief

# Keywords that are stated for every measured objective, by its name.
PER_OBJECTIVE: tuple[Literal["noise_std", "reward_bound", "norm_bound", "reward_range"], ...] = (
    "noise_std", "reward_bound", "norm_bound", "reward_range",
)  # fmt: skip


Cost = str | Sequence[float] | Mapping[str, float]  # a column or feature, or a number per candidate or arm
GRIDS = ("noise_grid", "scale_grid", "ratio_grid")


class Tally(NamedTuple):
    """Rounds and costs of a contextual log after so many events, which made so many trials."""

    log: TrialLog
    n_events: int = 0
    n_trials: int = 0
    rounds: int = 0
    spent: float = 0.0


class SeveralObjectivesError(ValueError):
    """What was asked for has a single answer for one objective only."""


class SharedByObjective(TypedDict, total=False):
    """Constructor keywords of all algorithms, some of them by the names of objectives."""

    noise_std: float | Mapping[str, float] | None
    reward_bound: float | Mapping[str, float] | None
    norm_bound: float | Mapping[str, float] | None
    repeats: bool
    direction: Direction
    random_state: RandomState
    log_features: LogFeatures | None
    reward_range: Sequence[float] | Mapping[str, Sequence[float]] | None
    noise: Noise | None


def by_objective(key: str, value: Any, names: Sequence[str]) -> dict[str, Any]:
    """What was stated for each of the measured objectives; raises unless it is stated by their names."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        if len(names) > 1:
            raise ValueError(f"{key} must be given by objective, such as {{{names[0]!r}: ...}}, got {value!r:.80}")
        return dict.fromkeys(names, value)
    for name in value:
        if name not in names:
            raise ValueError(f"{key}[{name!r}] is none of the measured objectives, {', '.join(map(repr, names))}")
    return dict(value)


class ObjectivesBelief:
    """The `SeveralBeliefs` of a run: K objectives to be maximised, which are independent given the rewards.

    Parameters
    ----------
    parts : for every objective the belief of its mixture, or its known values (N,).
    measured : (m,) candidates that have been measured.
    costs : (N,) of all candidates; None where experiments have none.
    """

    def __init__(
        self, parts: Sequence[MixtureBelief | FloatArray], measured: IntArray, costs: FloatArray | None
    ) -> None:
        self._parts, self._measured, self._costs = parts, measured, costs
        self._first = next(part for part in parts if not isinstance(part, np.ndarray))

    @cached_property
    def values(self) -> FloatArray:
        """Values of the measured candidates, (m, K): means of their measurements, or of the posterior under noise."""
        if not self._measured.size:
            return np.empty((0, len(self._parts)))
        own = [
            part[self._measured] if isinstance(part, np.ndarray) else part.values_at(self._measured)
            for part in self._parts
        ]
        return np.stack(own, axis=1)

    @cached_property
    def reference(self) -> FloatArray:
        """`reference_point` of the measured values; of a known objective, of all candidates.

        Before the first reward, one deviation below what is expected.
        """
        from alexp.decision.hypervolume import reference_point

        ends = [
            reference_point(part[:, None])[0]
            if isinstance(part, np.ndarray)
            else reference_point(self.values[:, [k]])[0]
            if self._measured.size
            else -1.0
            for k, part in enumerate(self._parts)
        ]
        return np.array(ends)

    def front(self, round: Round) -> FloatArray:
        if not round.pending:
            return self.values
        waiting = Choices(round.pending.indices, np.ascontiguousarray(round.pending.rows.T))
        expected = [
            part[round.pending.indices] if isinstance(part, np.ndarray) else part.moments_at(waiting)[0]
            for part in self._parts
        ]
        return np.vstack([self.values, np.stack(expected, axis=1)])

    def excess(self, objective: int, round: Round, levels: FloatArray, width: float) -> FloatArray:
        part = self._parts[objective]
        if isinstance(part, np.ndarray):
            return np.maximum(part[round.indices] - levels[:, None], 0.0)
        return part.excess(round, levels, width)

    def uncertainty(self, round: Round) -> FloatArray:
        """Standard deviations in units of the reach of the measured values above the reference, summed, (n,)."""
        reach = np.ones(len(self._parts))
        if self._measured.size:
            reach = self.values.max(axis=0) - self.reference
        total = np.zeros(len(round))
        for part, unit in zip(self._parts, reach.tolist(), strict=True):
            if not isinstance(part, np.ndarray):
                total += part.plain_moments(round).std / unit
        return total

    def worth(self, round: Round, gains: FloatArray) -> FloatArray:
        likely = gains * self._first.success_probabilities(round)
        return likely if self._costs is None else likely / self._costs[round.indices]


class SeveralObjectives(Certified):
    """A run that may improve several objectives at once, and whose experiments may cost something.

    The log is one, with a number for every measured objective. The run itself has the mixture of the first; each
    further one is a run beside it, of which only the mixture is used. `objective(name)` shows either with its rewards.
    """

    goal: str
    rule: Rule
    power: float
    cost: str | tuple[float, ...] | None
    _tally: Tally
    _others: list[Any]  # runs of the further objectives
    _success: SuccessMixture | None
    _stated_by_name: dict[str, Any]

    @property
    @abstractmethod
    def belief(self) -> MixtureBelief:
        """What is believed about rewards now; of the first measured objective."""

    def _take_objectives(
        self, given: Mapping[str, Direction] | None, domain: Domain, shared: SharedByObjective
    ) -> list[Shared]:
        """Sets `objectives`; what was stated for each measured one, or as it is where a reward is a number."""
        if given is None:
            return [cast(Shared, shared)]
        if self.goal != "best":
            raise ValueError('objectives= needs goal="best": sums of rewards have one objective')
        if isinstance(domain, ContextualDomain):
            raise ValueError("objectives= needs a fixed set of candidates, and here they are new in every round")
        names = [str(name) for name in given if name not in column_names(domain)] if isinstance(given, Mapping) else []
        split = {key: by_objective(key, shared.get(key), names) for key in PER_OBJECTIVE}
        ranges = {name: RewardRange.checked(value) for name, value in split["reward_range"].items()}
        self.objectives = checked = Objectives.checked(given, domain, ranges)
        self._stated_by_name = {key: value for key in PER_OBJECTIVE if (value := shared.get(key)) is not None}
        if shared.get("direction", "maximize") not in ("maximize", checked.directions[checked.measured[0]]):
            raise ValueError("objectives= says which way is better; leave direction out")
        self._measured = checked.measured
        out = []
        for name in checked.measured:
            own = dict(shared) | {key: split[key].get(name) for key in PER_OBJECTIVE}
            out.append(cast(Shared, own | {"direction": checked.directions[name]}))
        return out

    def _beside(self, shared: Shared) -> Self:
        """The run of a further objective: the same problem and settings, its own mixture, and the log of this run."""
        shared = shared | {"random_state": self._streams.entropy, "repeats": self.repeats}
        settings: dict[str, Any] = {"goal": self.goal, "rule": "ei", "power": self.power, "forget": self.forget}
        with quietly():  # what there is to say about the problem was said
            part = type(self)(self.models, self.domain, **settings, **shared)
        part._candidates, part._lock = self._candidates, self._lock
        return part

    def _check_weighs(self, cost: Cost | None, budget: float | None) -> None:
        """Sets `cost` and `budget`; raises where the rule has no use for them or for the objectives."""
        if self.rule.weighs_objectives != (self.objectives is not None):
            raise ValueError(
                f"rule={self.rule!r} decides on one objective; leave rule out, or take rules.HypervolumeImprovement"
                if self.objectives is not None
                else f"rule={self.rule!r} is for several objectives; state objectives="
            )
        if self.is_contextual:
            self._check_round_budget(cost, budget)
            return
        self.cost = None if cost is None else check_cost(cost, self.domain)
        if self.cost is not None and not self.rule.weighs_cost:
            raise ValueError(
                f'cost= is for improvement per cost, and rule={self.rule!r} with goal="{self.goal}" weighs none; leave '
                'rule and goal out, or take rule="ei"'
            )
        if budget is not None and self.cost is None:
            raise ValueError("budget= needs cost=: a column of the candidates, or a number for each")
        self.budget = None if budget is None else non_negative("budget", budget)

    def _check_round_budget(self, cost: Cost | None, budget: float | None) -> None:
        """The same where candidates are new in every round: costs are weighed, and the budget is one per round."""
        if cost is None and budget is not None:
            raise ValueError("budget= needs cost=: a number for each arm, or the name of a feature that holds it")
        self._tally = Tally(self._log)
        self.cost, self.budget = None, None
        if cost is None:
            return
        self.cost = check_round_cost(cost, self.domain, self.models)
        self.budget = None if budget is None else positive("budget", budget)
        if self.goal != "sum":
            raise ValueError('cost= of contextual rounds is for goal="sum": leave goal out')
        if isinstance(self.cost, str) and self.log_features == "none":
            raise ValueError(f'cost={self.cost!r} is read off the log, and log_features="none" keeps no features')
        if isinstance(self.cost, tuple) and self.budget is not None and min(self.cost) > self.budget:
            raise ValueError(
                f"budget must be at least the cost of the cheapest arm, {min(self.cost):g}; got {budget:g}"
            )

    def _costs_of(self, choices: Choices) -> FloatArray:
        """Costs of the candidates of a contextual round, (n,)."""
        if isinstance(self.cost, tuple):
            return np.array(self.cost)[choices.indices]
        assert self.cost is not None
        return np.asarray(choices.table[cost_column(self.cost, self.models)])

    def _round_purse(self) -> RoundPurse:
        """What the next contextual round may cost."""
        assert self.budget is not None
        tally = self._tallied()
        return RoundPurse(self.budget, tally.rounds + 1, tally.spent)

    def _tallied(self) -> Tally:
        """Rounds and costs so far; trials that the last call has counted are not counted again."""
        tally = self._tally if self._tally.log is self._log else Tally(self._log)
        n_events, n_trials, asked = self._log.events.asks_since(tally.n_events, tally.n_trials)
        spent = tally.spent
        for trial in asked:  # not `sum`, which rounds by how many are counted at once, from Python 3.12 on
            spent += self._cost_of(trial)
        self._tally = Tally(self._log, n_events, n_trials, tally.rounds + len(asked), spent)
        return self._tally

    def _cost_of(self, trial: int) -> float:
        if isinstance(self.cost, tuple):
            return self.cost[self._log.index[trial]]
        assert self.cost is not None
        return float(self._row(trial)[cost_column(self.cost, self.models)])

    def _price(self, round_: Round) -> FloatArray:
        """What the choices of a contextual round cost in units of the reward, (n,)."""
        if self.budget is None:
            return self._costs_of(round_.choices)
        seen = self._log.seen
        spread = seen.high - seen.low if seen.n else 0.0
        return self._round_purse().price(self._costs_of(round_.offered), spread) * self._costs_of(round_.choices)

    def fresh(self, offers: Sequence[Offer]) -> list[Offer]:
        """What may be chosen of some offers; raises where a round could not be paid, whatever is played before it."""
        left = super().fresh(offers)
        if self.budget is not None and self.is_contextual:
            times = Counter(map(id, left))
            for one in left:
                self._check_payable(one, times[id(one)], alone=len(left) == 1)
        return left

    def _check_payable(self, offer: Offer, times: int, alone: bool) -> None:
        assert self.budget is not None
        costs = self._offer_costs(offer)
        if (costs < 0.0).any():
            raise ValueError(f"cost={self.cost!r} must not be negative, got {costs.min():g} in this round")
        needed = float(np.sort(costs[offer.choosable])[min(times, offer.choosable.size) - 1])
        sure = self._round_purse().left if alone else self.budget
        if not RoundPurse(sure, 1, 0.0).allows(np.array([needed]))[0]:
            raise ValueError(
                f"this round costs {needed:g} at least, and {sure:g} can be paid with budget={self.budget:g} a round; "
                "allow a cheaper candidate, or construct the algorithm with a larger budget"
            )

    def _offer_costs(self, offer: Offer) -> FloatArray:
        return self._costs_of(Choices(np.arange(len(offer)), offer.rows.T))

    def narrowed(self, offer: Offer) -> Offer:
        """What the next ask chooses from: what can be paid, where there is a budget."""
        offer = super().narrowed(offer)
        if self.budget is None or not self.is_contextual:
            return offer
        paid = self._round_purse().allows(self._offer_costs(offer))
        return offer.only(offer.choosable[paid[offer.choosable]])

    def check_arm(self, name: str) -> str:
        """The name of an arm that can be added, which none can where each has a cost that was stated."""
        self._check_costs(self.domain.n_candidates + 1)
        return super().check_arm(name)

    def _keep_up(self) -> None:
        self._check_costs(self.domain.n_candidates)
        super()._keep_up()

    def _check_costs(self, n_arms: int) -> None:
        if self.is_contextual and isinstance(self.cost, tuple) and len(self.cost) != n_arms:
            raise ValueError("cost= is a number per arm, and an added arm has none; make a new run with all costs")

    @property
    def costs(self) -> FloatArray | None:
        """Cost of every candidate, (N,); None where none was stated, or where candidates are new in every round."""
        if self.cost is None or self.is_contextual:
            return None
        return self._cached(("costs", self.domain.n_candidates), partial(costs_of, self.cost, self.domain))

    @property
    def spent(self) -> float:
        """Cost of all trials that were asked for; failed ones cost as much as others.

        Abandoned ones cost nothing on a table; in contextual rounds, whose candidates are played at once, they do.
        """
        if self.is_contextual:
            return 0.0 if self.cost is None else self._tallied().spent
        if (costs := self.costs) is None:
            return 0.0
        free = self._log.abandoned - self._log.failed - self._log.retracted
        return fsum(costs[self._log.index[trial]] for trial in self._log.proposed().tolist() if trial not in free)

    @property
    def total_budget(self) -> float | None:
        """What all trials may cost together, those of contextual rounds so far; None without a budget."""
        if self.budget is None or not self.is_contextual:
            return self.budget
        return self.budget * (self._round_purse().rounds - 1)

    @property
    def budget_left(self) -> float | None:
        """What is left of the total budget; None without one."""
        return None if self.total_budget is None else max(self.total_budget - self.spent, 0.0)

    def _purse(self) -> Purse | None:
        costs, left = self.costs, self.budget_left
        return None if costs is None or left is None else Purse(costs, left)

    def check_candidates(self, table: Table) -> Arrivals:
        """What `add_candidates` would add: costs and known objectives come with it in their columns."""
        arrivals = super().check_candidates(table)
        if isinstance(self.cost, tuple):
            raise ValueError(
                "cost= is a number per candidate, and added ones bring none; make the run with the name of a column"
            )
        for name in () if self.objectives is None else self.objectives.known:
            numbers_in(f"objectives[{name!r}]", name, arrivals["cells"][name])
        if self.cost is not None:
            for number in numbers_in("cost", self.cost, arrivals["cells"][self.cost]).tolist():
                positive(f"cost of an added candidate in column {self.cost!r}", number)
        return arrivals

    def objective(self, name: str) -> Self:
        """The run as far as one measured objective is concerned, for reading: `best`, `predict`, certificates.

        What it is asked and told is not recorded.
        """
        if self.objectives is None:
            raise ValueError("objective() is for a run with objectives=; this one has a single reward")
        if name not in self._measured:
            known = f"{name!r} is a column of the candidates and known; " if name in self.objectives.known else ""
            raise ValueError(f"{known}objective must be one of {', '.join(map(repr, self._measured))}, got {name!r}")
        k = self._measured.index(name)
        return self._cached(("objective", k, len(self._log.events)), partial(self._part, k))

    def _part(self, k: int) -> Self:
        part = object.__new__(type(self))
        vars(part).update(vars(self._others[k - 1] if k else self), _log=self._log.about(k), _known={}, _measured=())
        part._success, part.objectives, part.cost, part.budget = self._success, None, None, None
        if not k:
            part._others, part.rule = [], rule_named("ei")
        return part

    def of_first_objective(self) -> Self:
        """The run of the first measured objective; itself without objectives, cost and budget."""
        return self if self.objectives is None and (self.cost is None or self.is_contextual) else self._part(0)

    def _several(self) -> ObjectivesBelief:
        assert self.objectives is not None
        parts: list[MixtureBelief | FloatArray] = []
        for name in self.objectives.directions:
            if name in self._measured:
                parts.append(self._part(self._measured.index(name)).belief)
            else:
                parts.append(self.objectives.sign(name) * known_column("objectives", self.domain, name))
        return ObjectivesBelief(parts, self._log.measured(), self.costs)

    def pareto(self) -> pd.DataFrame:
        """Measured candidates that no other measured one beats in every objective: the best compromises.

        Columns `id` (the first trial of the candidate), `x`, `index`, and one per objective with the mean of the
        candidate's measurements; sorted by the first objective, the best one first.
        """
        from alexp.decision.hypervolume import non_dominated

        measured = self.measured_values()
        assert self.objectives is not None
        names = list(self.objectives.directions)
        signed = measured[names].to_numpy(dtype=np.float64) * [self.objectives.sign(name) for name in names]
        best = np.flatnonzero(non_dominated(signed))
        return measured.iloc[best[np.argsort(-signed[best, 0], kind="stable")]].reset_index(drop=True)

    def measured_values(self) -> pd.DataFrame:
        """The same columns for all measured candidates, in the order of their first trials."""
        if self.objectives is None:
            raise ValueError(
                "pareto() is for several objectives: construct the run with objectives=; best() is for one"
            )
        frame, names = self.trials_dataframe(), list(self.objectives.directions)
        told = frame[frame[self._measured[0]].notna()]
        first = told.drop_duplicates("index")[["id", "x", "index"]].reset_index(drop=True)
        return first.join(told.groupby("index")[names].mean(), on="index")

    def trials_dataframe(self) -> pd.DataFrame:
        """One row per trial: id, x, index, model, explored, propensity, and the reward, or a column per objective."""
        frame = super().trials_dataframe()
        for name in () if self.objectives is None else self.objectives.known:
            frame[name] = known_column("objectives", self.domain, name)[frame["index"]]
        return frame

    def suspects(self, tells: Sequence[CheckedTell]) -> dict[int, str]:
        """Which of some rewards look like typing errors, in any objective, by trial, and why."""
        found = super().suspects(tells)
        for k, name in enumerate(self._measured[1:], 1):
            own = [
                told._replace(reward=numbers_of(told.reward)[k], more=tuple(numbers_of(one)[k] for one in told.more))
                for told in tells
            ]
            found |= {trial: f"{why} ({name})" for trial, why in self._part(k).suspects(own).items()}
        return found

    def suspect_observations(self, rewards: Sequence[Value]) -> list[str | None]:
        """For each of some measurements, why it looks like a typing error in any objective."""
        found = super().suspect_observations(rewards)
        for k in range(1, len(self._measured)):
            own = self._part(k).suspect_observations([numbers_of(reward)[k] for reward in rewards])
            found = [first or second for first, second in zip(found, own, strict=True)]
        return found

    def _recommended_on(self, available: Available, presented: RoundArguments) -> tuple[Round, Offer | None]:
        if self.objectives is not None:
            raise SeveralObjectivesError(
                "several objectives have no single best candidate: pareto() lists the best compromises, and "
                f"objective({self._measured[0]!r}) answers for one of them alone"
            )
        return super()._recommended_on(available, presented)

    def _certify(self) -> Certifier:
        if self.objectives is not None:
            raise SeveralObjectivesError(
                f"certificates are about one objective; objective({self._measured[0]!r}) answers for one of them alone"
            )
        return super()._certify()

    def arguments(self) -> State:
        out = super().arguments()
        if self.objectives is not None:
            stated = dict.fromkeys(("noise_std", "reward_bound", "norm_bound")) | self._stated_by_name
            out |= stated | {"objectives": dict(self.objectives.directions), "direction": "maximize"}
        if self._others:  # each has the grids that what was stated about it makes usual
            out |= dict.fromkeys(GRIDS)
        costs = {"cost": self.cost, "budget": self.budget}
        return out | {name: value for name, value in costs.items() if value is not None}
