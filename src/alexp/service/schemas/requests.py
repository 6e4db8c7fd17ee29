"""Bodies of requests."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue
from pydantic.config import JsonDict

from alexp.service.schemas.base import Body, Delta, Key, Lease, NamedRoundBody, Number, RoundBody, TrialNumber, Worker
from alexp.service.schemas.problem import ArmsProblem, BoxProblem, CandidatesProblem, IntervalProblem, TableProblem

MOST_TRIALS = 2000  # of one request
_EXAMPLE_PROBLEM: JsonDict = {
    "kind": "table",
    "csv": "solvent,celsius\nwater,20\nwater,60\nethanol,20\nethanol,60\n",
    "models": {"solvent": ["solvent"], "both": ["solvent", "celsius"]},
}


def _examples(*examples: JsonDict) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": list(examples)})


class Create(Body):
    """A new study."""

    model_config = _examples(
        {"name": "solvents", "random_state": 0, "problem": _EXAMPLE_PROBLEM},
        {
            "name": "polymer",
            "settings": {"noise_std": 0.05},
            "problem": {
                "kind": "interval",
                "lower": -1.0,
                "upper": 1.0,
                "resolution": 200,
                "models": {"family": "legendre", "degree": 4, "size": 2},
            },
        },
    )

    name: str = Field(min_length=1, max_length=200, description="Distinct among all studies; printable characters.")
    problem: TableProblem | IntervalProblem | BoxProblem | ArmsProblem | CandidatesProblem = Field(discriminator="kind")
    algorithm: str | None = Field(default=None, max_length=100, examples=["evidence-mixture"])
    direction: Literal["maximize", "minimize"] = "maximize"
    repeats: bool | None = Field(default=None, description="Whether a measured candidate may be proposed again.")
    expired: Literal["offer", "abandon"] | None = Field(
        default=None, description="What becomes of trials whose lease has expired: handed out again, or given up."
    )
    random_state: int | None = Field(default=None, ge=0, lt=2**128, description="Seed; a random one if absent.")
    settings: dict[str, JsonValue] = Field(
        default_factory=dict, description="Further arguments of the algorithm.", examples=[{"noise_std": 0.05}]
    )
    load_if_exists: bool = Field(default=False, description="Open the study if it is there already, and the same.")
    key: Key = None


class Ask(NamedRoundBody):
    """Trials that are wanted."""

    model_config = _examples({"n": 8, "lease": 3600, "worker": "robot-1", "key": "plate-of-monday"}, {})

    n: int | None = Field(default=None, ge=1, le=MOST_TRIALS, description="How many; one if absent.")
    distinct: bool = Field(default=False, description="An error if one list would need a candidate twice.")
    lease: Lease = None
    worker: Worker = None
    key: Key = None


class Result(Body):
    """The reward of one trial."""

    trial: TrialNumber
    reward: Number = Field(examples=[0.3])


class Sure(Body):
    """Rewards far outside what was seen so far are refused (409), unless somebody is sure."""

    sure: bool = Field(default=False, description="Take in rewards that look like typing errors.")
    worker: Worker = None
    key: Key = None


class Tell(Sure):
    """Rewards: all of them are taken in, or, if any is wrong, none."""

    model_config = _examples({"results": [{"trial": 0, "reward": 0.3}], "key": "well-A1"})

    results: list[Result] = Field(min_length=1, max_length=100_000)
    if_told: Literal["raise", "same", "amend"] = Field(
        default="raise",
        description="Where a trial has a reward already: an error, an error unless it is the same, or a correction.",
    )


class Amend(Sure):
    """The right reward of a trial, in place of the one it has."""

    model_config = _examples({"trial": 0, "reward": 0.35})

    trial: TrialNumber
    reward: Number


class Retract(Body):
    """A trial whose reward is withdrawn."""

    model_config = _examples({"trial": 0})

    trial: TrialNumber
    worker: Worker = None
    key: Key = None


class Abandon(Body):
    """Pending trials that are given up, all or none."""

    model_config = _examples({"trials": [3, 4]})

    trials: list[TrialNumber] = Field(min_length=1, max_length=100_000)
    worker: Worker = None
    key: Key = None


class Observe(Sure):
    """Measurements that nobody asked for: all are taken in, or, if any is wrong, none."""

    model_config = _examples({"observations": [{"index": 3, "reward": 0.2}]})

    observations: list[dict[str, JsonValue]] = Field(
        min_length=1,
        max_length=100_000,
        description="Each has a reward and names its candidate: by index, x, x0 and x1 and so on, or columns of the "
        "candidates' table. In contextual studies index, and some of context, candidates, features, ids, "
        "available and propensity.",
    )
    nearest: bool = Field(default=False, description="Count points off the grid for the nearest candidate.")


class Heartbeat(Body):
    """Trials that a worker still measures."""

    model_config = _examples({"trials": [3, 4], "worker": "robot-1"})

    trials: list[TrialNumber] = Field(min_length=1, max_length=100_000)
    lease: Lease = None
    worker: Worker = None


class TakeOver(Body):
    """Trials of other workers: those named, or those whose lease has expired."""

    model_config = _examples({"n": 4, "lease": 600, "worker": "robot-2"})

    trials: list[TrialNumber] | None = Field(default=None, min_length=1, max_length=100_000)
    n: Annotated[int | None, Field(ge=1, le=MOST_TRIALS)] = None
    lease: Lease = None
    worker: Worker = None


class NewArm(Body):
    """An arm to add to a study of arms."""

    model_config = _examples({"name": "local-model"})

    name: str = Field(min_length=1, max_length=200)
    worker: Worker = None
    key: Key = None


class Policy(NamedRoundBody):
    """The round whose probabilities are wanted."""

    model_config = _examples({}, {"context": [0.2, 0.7]})


class Recommend(NamedRoundBody):
    """The round for which a recommendation is wanted."""

    model_config = _examples({}, {"context": [0.2, 0.7]})


class Stop(RoundBody):
    """When to stop: the round it is about, in contextual studies, and what would be good enough."""

    model_config = _examples({"epsilon": 0.1})

    delta: Delta = 0.05
    epsilon: Annotated[float | None, Field(gt=0.0, description="How far from the best is good enough.")] = None
