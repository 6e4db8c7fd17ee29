"""Choose the right model while optimising, with guarantees that hold at every moment."""

from importlib.metadata import version as _version
from typing import Any

from alexp import decision, theory
from alexp.algorithms import (
    D3RB,
    ED2RB,
    ETC,
    ETS,
    EXP4IX,
    FSSCB,
    LMUCB,
    O2CSEW,
    AbandonedTrialError,
    ALExp,
    Algorithm,
    AlreadyToldError,
    Corral,
    EvidenceMixture,
    EvidenceSampling,
    LinUCB,
    MixtureThompson,
    Recommendation,
    SquareCB,
    Trial,
    UniformRandom,
    UnknownTrialError,
)
from alexp.decision import (
    UCB,
    Agent,
    DOptimal,
    EOptimal,
    EpsilonGreedy,
    Greedy,
    Schedules,
    ThompsonSampling,
    Uniform,
)
from alexp.estimation.lasso.group_lasso import GroupLasso
from alexp.estimation.mixture.evidence import Evidence
from alexp.experiments import Environment, Run, SyntheticEnvironment, simulate
from alexp.problem import (
    Box,
    FiniteSet,
    Fourier,
    Interval,
    Legendre,
    ModelClass,
    Polynomial,
    RandomFourier,
)
from alexp.theory import preflight

__version__ = _version("alexp")

__all__ = [
    "D3RB",
    "ED2RB",
    "ETC",
    "ETS",
    "EXP4IX",
    "FSSCB",
    "LMUCB",
    "O2CSEW",
    "UCB",
    "ALExp",
    "AbandonedTrialError",
    "Agent",
    "Algorithm",
    "AlreadyToldError",
    "Box",
    "Corral",
    "DOptimal",
    "EOptimal",
    "Environment",
    "EpsilonGreedy",
    "Evidence",
    "EvidenceMixture",
    "EvidenceSampling",
    "FiniteSet",
    "Fourier",
    "Greedy",
    "GroupLasso",
    "Interval",
    "Legendre",
    "LinUCB",
    "MixtureThompson",
    "ModelClass",
    "Polynomial",
    "RandomFourier",
    "Recommendation",
    "Run",
    "Schedules",
    "SquareCB",
    "SyntheticEnvironment",
    "ThompsonSampling",
    "Trial",
    "Uniform",
    "UniformRandom",
    "UnknownTrialError",
    "create_study",
    "decision",
    "load_study",
    "preflight",
    "simulate",
    "theory",
]


def __getattr__(name: str) -> Any:
    """Durable studies need the extra `study`; they are loaded when first used."""
    if name in ("create_study", "load_study"):
        from alexp import study

        return getattr(study, name)
    raise AttributeError(f"module 'alexp' has no attribute {name!r}")
