"""Choose the right model while optimising, with guarantees that hold at every moment.

A table of candidates, several descriptions of them, and no idea which one explains the reward:

    models = alexp.ModelClass.from_matrices({"fingerprints": F, "descriptors": D})
    opt = alexp.EvidenceMixture(models, alexp.FiniteSet(names), goal="best")
    trial = opt.ask()                     # trial.x is the candidate to try
    opt.tell(trial, reward)
    opt.best(), opt.probabilities         # what to stop with; how likely each description is

What there is, by task (`help(alexp.EvidenceMixture)` and so on say more):

    models        ModelClass, kernels, Legendre, Fourier, Polynomial, RandomFourier
    tables        Table: candidates and models from a file or data frame
    candidates    FiniteSet, Interval, Box; Arms, Candidates for contextual rounds; Ball
    many          Parquet, on the workers of a Dask cluster; Combinations, enumerated and never stored
    algorithms    EvidenceMixture; ALExp, of the paper; LMUCB, EvidenceSampling
    rules         alexp.rules: IDS, UCB, ExpectedImprovement, HypervolumeImprovement, Thompson, Matching, or your own
    rivals        LinUCB, Corral, ETC, EXP4IX and others: alexp.rivals
    studies       create_study, load_study: runs in a database; Client: runs behind `alexp serve`
    simulation    simulate, SyntheticEnvironment
    evaluation    alexp.ope: what another policy would have earned, from a log
    theory        alexp.theory: confidence sequences, bounds; preflight: what to expect before a run
    extensions    alexp.extend: all that a kernel, a rule, an algorithm or a command of your own needs
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from alexp import (
    decision as decision,
    kernels as kernels,
    rules as rules,
)
from alexp.algorithms import (
    LMUCB as LMUCB,
    AbandonedTrialError as AbandonedTrialError,
    ALExp as ALExp,
    Algorithm as Algorithm,
    AlreadyToldError as AlreadyToldError,
    AssumptionWarning as AssumptionWarning,
    EvidenceMixture as EvidenceMixture,
    EvidenceSampling as EvidenceSampling,
    MixtureThompson as MixtureThompson,
    NotCertified as NotCertified,
    NotToldError as NotToldError,
    Recommendation as Recommendation,
    Trial as Trial,
    UnknownTrialError as UnknownTrialError,
)
from alexp.decision import (
    UCB as UCB,
    Agent as Agent,
    DOptimal as DOptimal,
    EOptimal as EOptimal,
    EpsilonGreedy as EpsilonGreedy,
    Greedy as Greedy,
    HOptimal as HOptimal,
    Schedules as Schedules,
    ThompsonSampling as ThompsonSampling,
    Uniform as Uniform,
)
from alexp.estimation.lasso.group_lasso import (
    ConvergenceWarning as ConvergenceWarning,
    GroupLasso as GroupLasso,
)
from alexp.estimation.mixture.evidence import (
    Evidence as Evidence,
)
from alexp.problem import (
    Arms as Arms,
    Ball as Ball,
    Box as Box,
    Candidates as Candidates,
    FiniteSet as FiniteSet,
    Fourier as Fourier,
    Interval as Interval,
    Legendre as Legendre,
    ModelClass as ModelClass,
    Polynomial as Polynomial,
    RandomFourier as RandomFourier,
)
from alexp.simulation import (
    Environment as Environment,
    Run as Run,
    SyntheticEnvironment as SyntheticEnvironment,
    simulate as simulate,
)
from alexp.table import (
    Table as Table,
)

if TYPE_CHECKING:
    from alexp import datasets as datasets, ope as ope, plot as plot, theory as theory
    from alexp.client import Client as Client
    from alexp.parts import Combinations as Combinations, Parquet as Parquet
    from alexp.rivals import (
        D3RB as D3RB,
        ED2RB as ED2RB,
        ESTC as ESTC,
        ETC as ETC,
        ETS as ETS,
        EXP4IX as EXP4IX,
        EXP4LS as EXP4LS,
        FSSCB as FSSCB,
        O2CSEW as O2CSEW,
        O2CSSEW as O2CSSEW,
        SLUCB as SLUCB,
        Balancing as Balancing,
        Corral as Corral,
        Doubling as Doubling,
        DRLasso as DRLasso,
        LassoBandit as LassoBandit,
        LinUCB as LinUCB,
        LinUCBPlusPlus as LinUCBPlusPlus,
        ModCB as ModCB,
        PopArt as PopArt,
        SALasso as SALasso,
        SmoothedCorral as SmoothedCorral,
        SquareCB as SquareCB,
        THLasso as THLasso,
        UniformRandom as UniformRandom,
    )
    from alexp.study import create_study as create_study, load_study as load_study
    from alexp.theory import preflight as preflight

    __version__: str

# Needed by few runs and slow to load; studies need the extra `study` as well, clients the extra `client`.
_MODULES = ("datasets", "decision", "extend", "kernels", "ope", "plot", "rivals", "rules", "theory")
_LAZY = {
    "Client": "alexp.client",
    "Combinations": "alexp.parts",
    "Parquet": "alexp.parts",
    "create_study": "alexp.study",
    "load_study": "alexp.study",
    "preflight": "alexp.theory",
    **dict.fromkeys(
        (
            *("D3RB", "ED2RB", "ESTC", "ETC", "ETS", "EXP4IX", "EXP4LS", "FSSCB", "O2CSEW", "O2CSSEW", "SLUCB"),
            *("Balancing", "Corral", "DRLasso", "Doubling", "LassoBandit", "LinUCB", "LinUCBPlusPlus", "ModCB"),
            *("PopArt", "SALasso", "SmoothedCorral", "SquareCB", "THLasso", "UniformRandom"),
        ),
        "alexp.rivals",
    ),
}
Algorithm.registry.providers.append("alexp.rivals")


def __getattr__(name: str) -> Any:
    """Load what a run does not need when it is first used."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("alexp")
    elif name in _MODULES:
        value = import_module(f"alexp.{name}")
    elif name in _LAZY:
        value = getattr(import_module(_LAZY[name]), name)
    else:
        raise AttributeError(f"module 'alexp' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All public names, loaded or not."""
    loaded = {name for name, value in globals().items() if getattr(value, "__module__", "").startswith("alexp.")}
    return sorted({*loaded, *_LAZY, *_MODULES, "__version__"})
