"""The memory protocol of `alexp board`: does an old campaign help, and what does a useless one cost?

A scenario has candidates of one task (an aryl halide, a temperature) and results of others, of which a share is known
before the first experiment. Thirty experiments in plates of five, no row twice and none given: R(30) is the sum of the
30 best rewards less the sum of those collected, in standard deviations. A past is *real*; *shuffled*, its
rewards permuted; or *negated*. Each is played with the seeds of the runs without a past.

BayBE plays with its `TaskParameter` (a Gaussian process with a kernel over tasks), and without, on the same results.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from alexp.algorithms.evidence_mixture import EvidenceMixture
from alexp.common.arrays import FloatArray
from alexp.common.extras import require
from alexp.table.memory import worth
from alexp.table.table import Table
from alexp_experiments.board.tables import Role
from alexp_experiments.core.cache import keep_runs, stored_runs
from alexp_experiments.core.prose import Prose
from alexp_experiments.core.runner import spread
from alexp_experiments.core.statistics import ratio

if TYPE_CHECKING:
    import pandas as pd

COMMAND, RUNS = "alexp board --protocols memory", "board-memory.csv"
PROSE = Prose("alexp_experiments.board", "memory.md")
KEY = ["scenario", "player", "past", "share", "seed", "rounds"]
ROUNDS, PLATE, FIRST_SEED, TUNING_SEED = 30, 5, 95_000, 96_000
SLOW_SEEDS = 3
SHARES, SLOW_SHARES = (0.01, 0.05, 0.1, 0.2), (0.05, 0.2)  # BayBE plays two of them
HALIDES = "aryl_halide"
OURS, BAYBE = "mixture", "BayBE"
LOCKED = 2.0
Past = Literal["none", "real", "shuffled", "negated"]
NONE: Past = "none"
REAL: Past = "real"
SHUFFLED: Past = "shuffled"
NEGATED: Past = "negated"
USELESS: list[tuple[Past, float]] = [(SHUFFLED, 0.05), (SHUFFLED, 0.2), (NEGATED, 0.2)]


@dataclass(frozen=True)
class Transfer:
    """Candidates of the task `target`, and results of the tasks `sources`."""

    name: str
    role: Role
    table: str
    sources: tuple[str, ...]
    target: str


def _halides(role: Role, sources: Sequence[str], target: str) -> Transfer:
    return Transfer(f"{', '.join(sources)} → {target}", role, HALIDES, tuple(sources), target)


CT, BT, IT = (f"1-{x}-4-(trifluoromethyl)benzene" for x in ("chloro", "bromo", "iodo"))
CM, BM, IM = (f"1-{x}-4-methoxybenzene" for x in ("chloro", "bromo", "iodo"))
CE, BE, IE = "1-chloro-4-ethylbenzene", "1-bromo-4-ethylbenzene", "1-ethyl-4-iodobenzene"
# Fixed before the first run. CT -> IM and temperatures -> 105 are BayBE's own; so is CT -> BM, but for a second source
# that the file does not have.
SCENARIOS = (
    _halides("tune", [CT], BT),
    _halides("tune", [IT], BE),
    _halides("tune", [CM], CE),
    _halides("tune", [IM], IE),
    Transfer("arylation, 105 → 90 °C", "tune", "direct arylation", ("105",), "90"),
    _halides("report", [CT], IM),
    _halides("report", [CT], BM),
    _halides("report", [BE], IT),
    _halides("report", [IE], CM),
    _halides("report", [IT, BE], CT),
    Transfer("arylation, 90 and 120 → 105 °C", "report", "direct arylation", ("90", "120"), "105"),
)


@lru_cache(maxsize=2)
def load(table: str, folder: str) -> pd.DataFrame:
    """All tasks: columns of the candidates, `task` and `reward`."""
    import pandas as pd

    if table != HALIDES:
        from alexp.datasets import direct_arylation

        data = direct_arylation()
        frame = pd.DataFrame(data.candidates)
        task = next(name for name in frame.columns if name.lower().startswith("temp"))
        return frame.drop(columns=task).assign(task=frame[task].astype(int).astype(str), reward=data.rewards)
    stored = np.load(Path(folder) / f"{HALIDES}.npz")
    levels = json.loads(str(stored["levels"]))
    columns = {name: np.array(words)[stored["cats"][:, k]] for k, (name, words) in enumerate(levels.items())}
    return pd.DataFrame(columns).assign(task=stored["task_names"][stored["task"]], reward=stored["y"])


class MemoryRun(NamedTuple):
    """One run, as data."""

    scenario: Transfer
    player: str
    past: Past
    share: float
    seed: int
    rounds: int
    folder: str


def known(run: MemoryRun) -> dict[str, pd.DataFrame]:
    """The results of each source that are known at the start; the same for all players."""
    whole, out = load(run.scenario.table, run.folder), {}
    for k, source in enumerate(run.scenario.sources if run.past != NONE else ()):
        rng = np.random.default_rng([run.seed, k])
        rows = whole[whole["task"] == source].drop(columns="task")
        rows = rows.iloc[rng.permutation(len(rows))[: max(1, round(run.share * len(rows)))]]
        if run.past == SHUFFLED:
            rows = rows.assign(reward=rng.permutation(rows["reward"].to_numpy()))
        out[source] = rows.assign(reward=-rows["reward"]) if run.past == NEGATED else rows
    return out


def play(run: MemoryRun) -> dict[str, object]:
    """A run as a row of the table of runs."""
    whole = load(run.scenario.table, run.folder)
    own = whole[whole["task"] == run.scenario.target].drop(columns="task").reset_index(drop=True)
    start, rewards = time.process_time(), own["reward"].to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one result tells nothing
        played, posterior = (_ours if run.player == OURS else _baybe)(run, own.drop(columns="reward"), rewards)
    best = np.sort(rewards)[::-1][: run.rounds]
    gaps = np.maximum.accumulate(rewards[played])
    return {
        "scenario": run.scenario.name, "player": run.player, "past": run.past, "share": run.share, "seed": run.seed,
        "rounds": run.rounds, "regret": float(best.sum() - rewards[played].sum()) / float(rewards.std()),
        "best": float(gaps[-1]), "weight": posterior, "seconds": (time.process_time() - start) / run.rounds,
        "library": f"baybe {version('baybe')}" if run.player == BAYBE else "",
    }  # fmt: skip


def runs_of(role: Role, player: str, seeds: int, folder: str, rounds: int = ROUNDS) -> Iterator[list[MemoryRun]]:
    """All runs of a player, seed by seed."""
    first = FIRST_SEED if role == "report" else TUNING_SEED
    pasts: list[tuple[Past, float]] = [(NONE, 0.0), *((REAL, share) for share in SHARES)]
    if player == OURS:
        pasts += USELESS
    else:
        pasts = [pasts[0], *((REAL, share) for share in SLOW_SHARES)]
    there = (Path(folder) / f"{HALIDES}.npz").exists()
    own = [one for one in SCENARIOS if one.role == role and (there or one.table != HALIDES)]
    for seed in range(first, first + seeds):
        yield [MemoryRun(one, player, past, share, seed, rounds, folder) for one in own for past, share in pasts]


def contest(
    role: Role, player: str, seeds: int, folder: str, out: Path, rounds: int = ROUNDS, workers: int | None = None
) -> None:
    """Play what is missing, and add it to the runs in `out` after every seed."""
    import pandas as pd

    for todo in runs_of(role, player, seeds, folder, rounds):
        done = set()
        if (out / RUNS).exists():
            done = set(stored_runs(out / RUNS, COMMAND)[KEY].astype(str).itertuples(index=False, name=None))
        left = [run for run in todo if _key(run) not in done]
        if left:
            keep_runs(pd.DataFrame(spread(play, left, workers)), out / RUNS, COMMAND, KEY)


def play_all(
    role: Role,
    folders: Sequence[Path],
    players: Sequence[str],
    seeds: int,
    out: Path,
    rounds: int | None = None,
    workers: int | None = None,
) -> None:
    """Play the scenarios whose file is there: ours, and BayBE on few seeds where it is among the players."""
    folder = next((one for one in folders if (one / f"{HALIDES}.npz").exists()), Path())
    for player, n in ((OURS, seeds), *([(BAYBE, min(seeds, SLOW_SEEDS))] if BAYBE in players else [])):
        contest(role, player, n, str(folder), out, rounds or ROUNDS, workers)


def _key(run: MemoryRun) -> tuple[str, ...]:
    return tuple(map(str, (run.scenario.name, run.player, run.past, run.share, run.seed, run.rounds)))


def _ours(run: MemoryRun, candidates: pd.DataFrame, rewards: FloatArray) -> tuple[list[int], float]:
    table, past = Table.from_frame(candidates), known(run)
    opt = EvidenceMixture(table.with_memory(past) if past else table, goal="sum", random_state=run.seed)
    played = []
    for first in range(0, run.rounds, PLATE):
        for trial in opt.ask(min(PLATE, run.rounds - first)):
            opt.tell(trial, float(rewards[trial.index]))
            played.append(trial.index)
    return played, sum(after for _, after in worth(opt.models, opt.probabilities).values())


def _baybe(run: MemoryRun, candidates: pd.DataFrame, rewards: FloatArray) -> tuple[list[int], float]:
    import pandas as pd

    require("baybe")
    from baybe import Campaign
    from baybe.parameters import CategoricalParameter, NumericalDiscreteParameter, TaskParameter
    from baybe.searchspace import SearchSpace
    from baybe.settings import active_settings
    from baybe.targets import NumericalTarget

    past = known(run)
    parameters: list[Any] = []
    for name in candidates.columns:
        values = sorted(candidates[name].unique())
        numeric = pd.api.types.is_numeric_dtype(candidates[name])
        parameters.append((NumericalDiscreteParameter if numeric else CategoricalParameter)(name, values))
    offered = candidates
    if past:
        parameters.append(TaskParameter("task", [*past, run.scenario.target], active_values=[run.scenario.target]))
        offered = candidates.assign(task=run.scenario.target)
    active_settings.random_seed = run.seed
    space = SearchSpace.from_dataframe(offered, parameters)
    campaign = Campaign(space, NumericalTarget("reward").to_objective())
    if past:
        campaign.add_measurements(pd.concat([rows.assign(task=name) for name, rows in past.items()]))
    place = {tuple(row): k for k, row in enumerate(candidates.itertuples(index=False, name=None))}
    played = []
    for first in range(0, run.rounds, PLATE):
        chosen = campaign.recommend(min(PLATE, run.rounds - first))
        indices = [place[row] for row in chosen[list(candidates.columns)].itertuples(index=False, name=None)]
        campaign.add_measurements(chosen.assign(reward=rewards[indices]))
        played += indices
    return played, float("nan")


# -- the section of the page -------------------------------------------------------------------------------------------


def section(out: Path) -> str:
    """The section of the board's page, from the runs in `out`; empty where there are none."""
    if not (out / RUNS).exists():
        return ""
    runs = stored_runs(out / RUNS, COMMAND)
    names = [one.name for one in SCENARIOS if one.role == "report" and one.name in set(runs["scenario"])]
    ours, slow = ((runs[(runs["player"] == player) & runs["scenario"].isin(names)]) for player in (OURS, BAYBE))
    numbers = ours.groupby(["scenario", "past", "share"])["seed"].nunique()
    return "\n" + PROSE.line(
        "section",
        number=" to ".join(map(str, sorted({numbers.min(), numbers.max()}))),
        seeds=f"{int(ours['seed'].min())} to {int(ours['seed'].max())}",
        bars=_bars(ours, slow, names),
        table=_table(ours, names),
        useless=_useless(ours, names),
        baybe=_rival(ours, slow, names),
        library=", ".join(sorted(set(slow["library"]))) or "BayBE did not play",
        seconds=f"{ours[ours['past'] == REAL]['seconds'].median():.2g} s",
    ) + "\n"  # fmt: skip


def paired(runs: pd.DataFrame, name: str, past: Past, share: float) -> tuple[FloatArray, FloatArray]:
    """Regrets with a past and without, of the seeds that have both, in order."""
    of = runs[runs["scenario"] == name]
    with_past = of[(of["past"] == past) & np.isclose(of["share"], share)].set_index("seed")["regret"]
    without = of[of["past"] == NONE].set_index("seed")["regret"]
    seeds = [seed for seed in without.index if seed in with_past.index]
    return with_past.loc[seeds].to_numpy(), without.loc[seeds].to_numpy()


def gain(runs: pd.DataFrame, names: Sequence[str], past: Past, share: float) -> float:
    """Geometric mean over scenarios of mean regret with a past over that without; NaN where one was not played."""
    both = [paired(runs, name, past, share) for name in names]
    if any(not len(with_past) for with_past, _ in both):
        return float("nan")
    return float(np.exp(np.mean([np.log(with_past.mean() / without.mean()) for with_past, without in both])))


def _locked(runs: pd.DataFrame) -> str:
    medians = runs.groupby(["scenario", "past", "share"])["regret"].transform("median")
    return f"{int((runs['regret'] > LOCKED * medians).sum())} of {len(runs)}"


def _bars(ours: pd.DataFrame, slow: pd.DataFrame, names: Sequence[str]) -> str:
    pasts = [*((REAL, share) for share in SHARES), *USELESS]
    means = {one: gain(ours, names, *one) for one in pasts}
    single = {(name, *one): ratio(*paired(ours, name, *one)) for name in names for one in pasts}
    lines = ["| aim | measured |", "|---|---|"]
    for kind in (REAL, SHUFFLED, NEGATED):
        at = max((one for one in pasts if one[0] == kind), key=lambda one: means[one])
        worst = max((one for one in single if one[1] == kind), key=lambda one: single[one].mean)
        lines.append(
            f"| a past that is {kind} costs at most 3% of regret | at worst {means[at]:.2f} on average, {at[1]:.0%} "
            f"of it known; in one scenario {single[worst]}: {worst[0]}, {worst[2]:.0%} |"
        )
    played = [name for name in names if all(len(paired(slow, name, REAL, share)[0]) for share in SLOW_SHARES)]
    for share in SLOW_SHARES if played else ():
        other, own = gain(slow, played, REAL, share), gain(ours, played, REAL, share)
        lines.append(
            f"| gain at least that of BayBE's, {share:.0%} of it known | {own:.2f} of its regret without; BayBE "
            f"{other:.2f} of its own, {len(played)} scenarios |"
        )
    return "\n".join([*lines, f"| locked runs | {_locked(ours)} |"])


def _table(runs: pd.DataFrame, names: Sequence[str]) -> str:
    lines = ["| scenario | without | " + " | ".join(f"{share:.0%}" for share in SHARES) + " |", "|---" * 6 + "|"]
    for name in names:
        without = runs[(runs["scenario"] == name) & (runs["past"] == NONE)]["regret"]
        cells = [f"{without.mean():.1f} ({without.median():.1f})"]
        for share in SHARES:
            own = paired(runs, name, REAL, share)
            medians = np.median(own[0]) / np.median(own[1])
            cells.append(f"{ratio(*own)} ({medians:.2f})")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(
        [*lines, "| geometric mean | | " + " | ".join(f"{gain(runs, names, REAL, s):.2f}" for s in SHARES) + " |"]
    )


def _useless(runs: pd.DataFrame, names: Sequence[str]) -> str:
    lines = ["| past | share | × without, by scenario | geometric mean |", "|---" * 4 + "|"]
    for past, share in USELESS:
        each = ", ".join(f"{ratio(*paired(runs, name, past, share)).mean:.2f}" for name in names)
        lines.append(f"| {past} | {share:.0%} | {each} | {gain(runs, names, past, share):.2f} |")
    return "\n".join(lines)


def _rival(ours: pd.DataFrame, slow: pd.DataFrame, names: Sequence[str]) -> str:
    lines = [
        "| scenario | seeds | BayBE without | "
        + " | ".join(f"BayBE {s:.0%} | ours {s:.0%}" for s in SLOW_SHARES)
        + " |"
    ]
    lines.append("|---" * (3 + 2 * len(SLOW_SHARES)) + "|")
    for name in names:
        own = slow[(slow["scenario"] == name) & (slow["past"] == NONE)]
        if not len(own):
            continue
        cells = []
        for share in SLOW_SHARES:
            for runs in (slow, ours):
                with_past, without = paired(runs, name, REAL, share)
                cells.append(f"{with_past.mean() / without.mean():.2f}" if len(with_past) else "")
        lines.append(f"| {name} | {len(own)} | {own['regret'].mean():.1f} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":  # one seed of the temperatures, which come with the library: a sample for `tools/pages.py`
    contest("report", OURS, 1, "", Path(sys.argv[1]), 2 * PLATE, workers=1)
