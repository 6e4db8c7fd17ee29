"""What one ask + tell costs, and where the time goes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from alexp_experiments.bench.problems import LegendreProblem, Player
from alexp_experiments.bench.records import Lap, Measurement, median_ms, record, timed

PARTS = ("lasso", "posterior", "sweep")
ROUND = 100  # steps are timed from about this round on


@dataclass(frozen=True)
class StepCase:
    """A problem, how many steps of it are timed, and whether the rounds before were played or observed."""

    problem: LegendreProblem
    timed: int
    played: bool = True


CASES = (
    StepCase(LegendreProblem(10, 2), 100),
    StepCase(LegendreProblem(10, 3), 100),
    StepCase(LegendreProblem(30, 3), 30),
    StepCase(LegendreProblem(60, 3), 10, played=False),
    StepCase(LegendreProblem(182, 3), 5, played=False),
)
QUICK = (StepCase(LegendreProblem(4, 2, 100), 5), StepCase(LegendreProblem(4, 3, 100), 5, played=False))


class PartTimer:
    """Times the three parts of ALExp's step from outside, by standing in for the methods that do the work.

    "lasso" takes in a row and solves, "posterior" updates all ridge posteriors, "sweep" finds every agent's best
    candidate; the rest is drawing, weighting and bookkeeping.
    """

    def __init__(self, player: Player) -> None:
        self._laps: dict[str, list[Lap]] = defaultdict(list)
        pool, data = player.algorithm._pool, player.algorithm._data
        self._stand_in(pool, "suggest", "sweep")
        self._stand_in(pool, "update", "posterior")
        self._stand_in(data, "append", "lasso")
        self._stand_in(data, "solve", "lasso")

    def _stand_in(self, owner: object, method: str, part: str) -> None:
        original: Callable[..., object] = getattr(owner, method)

        def measured(*args: object, **kwargs: object) -> object:
            result, lap = timed(lambda: original(*args, **kwargs))
            self._laps[part].append(lap)
            return result

        setattr(owner, method, measured)

    def take(self) -> dict[str, Lap]:
        """Time of each part since the last call."""
        laps = {part: _total(self._laps[part]) for part in PARTS}
        self._laps.clear()
        return laps


def _total(laps: list[Lap]) -> Lap:
    return Lap(sum(x.wall for x in laps), sum(x.cpu for x in laps), sum(x.thread for x in laps))


def measure_steps(player: Player, steps: int) -> dict[str, list[Lap]]:
    """Laps of `steps` whole steps ("step") and of their parts ("lasso", "posterior", "sweep", "rest")."""
    timer = PartTimer(player)
    player.step()  # compiles, or loads what was compiled
    timer.take()
    laps: dict[str, list[Lap]] = defaultdict(list)
    for _ in range(steps):
        _, whole = timed(player.step)
        parts = timer.take()
        done = _total(list(parts.values()))
        rest = Lap(whole.wall - done.wall, whole.cpu - done.cpu, whole.thread - done.thread)
        for subject, lap in (("step", whole), *parts.items(), ("rest", rest)):
            laps[subject].append(lap)
    return laps


def bench_step(quick: bool = False) -> list[Measurement]:
    """Whole ask + tell around round 100 on one problem after the other; `share` is a part's share of the step."""
    out: list[Measurement] = []
    for case in QUICK if quick else CASES:
        player = Player.of(case.problem)
        warm_up = 10 if quick else ROUND - 2
        if case.played:
            for _ in range(warm_up):
                player.step()
        else:
            player.observe(warm_up)
        out += _records(case, measure_steps(player, case.timed))
    return out


def _records(case: StepCase, laps: dict[str, list[Lap]]) -> list[Measurement]:
    whole = sum(lap.wall for lap in laps["step"])
    rows = []
    for subject, own in laps.items():
        rows.append(
            record(
                "step", case.problem.label, subject,
                median_ms=median_ms([lap.wall for lap in own]),
                path_s=sum(lap.wall for lap in own),
                cpu_ms=median_ms([lap.cpu for lap in own]),
                fastest_ms=1e3 * min(lap.wall for lap in own),
                share=sum(lap.wall for lap in own) / whole,
                history="played" if case.played else "observed",
                steps=len(own),
                n_models=case.problem.n_models,
            )
        )  # fmt: skip
    return rows
