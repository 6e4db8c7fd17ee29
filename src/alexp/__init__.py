"""Choose the right model while optimising, with guarantees that hold at every moment."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from alexp import decision, kernels, rules
from alexp.algorithms import (
    LMUCB,
    AbandonedTrialError,
    ALExp,
    Algorithm,
    AlreadyToldError,
    AssumptionWarning,
    EvidenceMixture,
    EvidenceSampling,
    MixtureThompson,
    NotCertified,
    NotToldError,
    Recommendation,
    Trial,
    UnknownTrialError,
)
from alexp.decision import (
    UCB,
    Agent,
    DOptimal,
    EOptimal,
    EpsilonGreedy,
    Greedy,
    HOptimal,
    Schedules,
    ThompsonSampling,
    Uniform,
)
from alexp.estimation.lasso.group_lasso import ConvergenceWarning, GroupLasso
from alexp.estimation.mixture.evidence import Evidence
from alexp.problem import (
    Arms,
    Ball,
    Box,
    Candidates,
    FiniteSet,
    Fourier,
    Interval,
    Legendre,
    ModelClass,
    Polynomial,
    RandomFourier,
)
from alexp.rivals import (
    D3RB,
    ED2RB,
    ESTC,
    ETC,
    ETS,
    EXP4IX,
    EXP4LS,
    FSSCB,
    O2CSEW,
    O2CSSEW,
    SLUCB,
    Balancing,
    Corral,
    Doubling,
    DRLasso,
    LassoBandit,
    LinUCB,
    LinUCBPlusPlus,
    ModCB,
    PopArt,
    SALasso,
    SmoothedCorral,
    SquareCB,
    THLasso,
    UniformRandom,
)
from alexp.simulation import Environment, Run, SyntheticEnvironment, simulate

if TYPE_CHECKING:
    from alexp import datasets, ope, theory
    from alexp.client import Client
    from alexp.study import create_study, load_study
    from alexp.theory import preflight

    __version__: str

__all__ = [
    "D3RB",
    "ED2RB",
    "ESTC",
    "ETC",
    "ETS",
    "EXP4IX",
    "EXP4LS",
    "FSSCB",
    "LMUCB",
    "O2CSEW",
    "O2CSSEW",
    "SLUCB",
    "UCB",
    "ALExp",
    "AbandonedTrialError",
    "Agent",
    "Algorithm",
    "AlreadyToldError",
    "Arms",
    "AssumptionWarning",
    "Balancing",
    "Ball",
    "Box",
    "Candidates",
    "Client",
    "ConvergenceWarning",
    "Corral",
    "DOptimal",
    "DRLasso",
    "Doubling",
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
    "HOptimal",
    "Interval",
    "LassoBandit",
    "Legendre",
    "LinUCB",
    "LinUCBPlusPlus",
    "MixtureThompson",
    "ModCB",
    "ModelClass",
    "NotCertified",
    "NotToldError",
    "Polynomial",
    "PopArt",
    "RandomFourier",
    "Recommendation",
    "Run",
    "SALasso",
    "Schedules",
    "SmoothedCorral",
    "SquareCB",
    "SyntheticEnvironment",
    "THLasso",
    "ThompsonSampling",
    "Trial",
    "Uniform",
    "UniformRandom",
    "UnknownTrialError",
    "create_study",
    "datasets",
    "decision",
    "kernels",
    "load_study",
    "ope",
    "preflight",
    "rules",
    "simulate",
    "theory",
]


# Needed by few runs and slow to load; studies need the extra `study` as well, clients the extra `client`.
_LAZY = {
    "Client": "alexp.client",
    "create_study": "alexp.study",
    "load_study": "alexp.study",
    "preflight": "alexp.theory",
}


def __getattr__(name: str) -> Any:
    """Load what a run does not need when it is first used."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("alexp")
    elif name in ("datasets", "ope", "theory"):
        value = import_module(f"alexp.{name}")
    elif name in _LAZY:
        value = getattr(import_module(_LAZY[name]), name)
    else:
        raise AttributeError(f"module 'alexp' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All names, loaded or not."""
    return sorted({*globals(), *__all__})
