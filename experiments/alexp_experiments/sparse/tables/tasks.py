"""One run of a row as data, for the runner and its cache, and the lines that the runs of a cell leave in the table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from alexp.algorithms.assumptions import quietly
from alexp.algorithms.base import Algorithm
from alexp.algorithms.components import component_from_dict
from alexp.common.codec import State
from alexp.simulation import ModelEnvironment, RoundEnvironment, simulate
from alexp_experiments.core.scenarios import Settings
from alexp_experiments.core.tasks import RECORD_FORMAT, Record, Task, algorithm_class, code_fingerprint, resolve
from alexp_experiments.sparse.tables.instances import SparseScenario

_CODE_OF_EVERY_RUN = ("alexp.simulation",)


class SparseTask(Task):
    """A sparse scenario, an algorithm and a seed; of the record only the regret counts.

    Settings are as for every task. "$size" stands for the number of columns that matter, which some rows must be told,
    "$reward_bound" for the bound; an algorithm inside another (`Doubling`) is named by the setting `algorithm`.
    """

    @cached_property
    def configuration(self) -> str:
        """Content hash of everything but the seed, and of the code that runs it."""
        kind, settings = resolve(self.algorithm, self.settings)
        inside = [algorithm_class(str(settings["algorithm"])).__module__] if "algorithm" in settings else []
        assert isinstance(self.scenario, SparseScenario)
        own = algorithm_class(kind).__module__
        code = code_fingerprint(own, *inside, *self.scenario.made_by, *_CODE_OF_EVERY_RUN)
        content = [RECORD_FORMAT, "sparse", self.scenario.to_dict(), kind, settings, code]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]

    def play(self) -> tuple[Algorithm, RoundEnvironment | ModelEnvironment]:
        """Who plays, and where, before the first round."""
        scenario = self.scenario
        assert isinstance(scenario, SparseScenario)
        seed, own_seed = self.seeds
        contextual = scenario.family != "vectors"
        environment = scenario.rounds(seed) if contextual else scenario.environment(seed)
        kind, settings = resolve(self.algorithm, self.settings)
        known = {
            "$true_model": getattr(environment, "true_model", -1),
            "$steps": scenario.steps,
            "$size": scenario.size,
            "$reward_bound": scenario.reward_bound,
            "$reward_range": list(scenario.reward_range),
        }
        stated: State = {
            "noise_std": scenario.noise_std,
            "reward_bound": scenario.reward_bound,
            "norm_bound": scenario.norm_bound,
            "random_state": own_seed,
        } | ({"log_features": "none"} if contextual else {})
        filled = {
            name: known[value]
            if isinstance(value, str) and value in known
            else component_from_dict(value, name, whole=False)
            for name, value in settings.items()
        }
        make: Callable[..., Algorithm] = algorithm_class(kind)
        return make(environment.models, environment.domain, **(stated | filled)), environment

    def run(self) -> Record:
        """Play it."""
        with quietly():
            algorithm, environment = self.play()
            played = simulate(algorithm, environment, self.scenario.steps, record_probabilities=False)
        nothing = np.empty(0, np.float32)
        return Record(
            regret=played.regret,
            visited=np.empty(0, np.int32),
            q_true=nothing,
            snapshot=nothing,
            true_model=getattr(environment, "true_model", -1),
            recommended=-1,
            final_gap=0.0,
            seconds=played.seconds,
        )


@dataclass(frozen=True)
class SparseCell:
    """One entrant in one scenario; its regret is kept at `moments`."""

    name: str
    part: str
    scenario: SparseScenario
    moments: tuple[int, ...]
    algorithm: str
    settings: Settings
    seeds: tuple[int, ...]

    @property
    def tasks(self) -> list[Task]:
        """One run per seed."""
        return [SparseTask(self.scenario, self.algorithm, self.settings, seed) for seed in self.seeds]

    def rows(self, records: Sequence[Record]) -> Iterator[dict[str, object]]:
        """One line per seed and moment."""
        for seed, record in zip(self.seeds, records, strict=True):
            for n in self.moments:
                yield {
                    "entrant": self.name,
                    "part": self.part,
                    "p": self.scenario.n_columns,
                    "n": n,
                    "seed": seed,
                    "regret": float(record.regret[n - 1]),
                    "ms": 1e3 * record.seconds / self.scenario.steps,
                }
