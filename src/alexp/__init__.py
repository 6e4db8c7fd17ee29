"""Choose the right model while optimising, with guarantees that hold at every moment."""

from importlib.metadata import version as _version

from alexp import decision, theory
from alexp.algorithms import (
    ETC,
    ETS,
    EXP4IX,
    ALExp,
    Algorithm,
    AlreadyToldError,
    Corral,
    EvidenceMixture,
    LinUCB,
    MixtureThompson,
    Recommendation,
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
from alexp.estimation.evidence import Evidence
from alexp.estimation.group_lasso import GroupLasso
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

__version__ = _version("alexp")

__all__ = [
    "ETC",
    "ETS",
    "EXP4IX",
    "UCB",
    "ALExp",
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
    "SyntheticEnvironment",
    "ThompsonSampling",
    "Trial",
    "Uniform",
    "UniformRandom",
    "UnknownTrialError",
    "decision",
    "simulate",
    "theory",
]
