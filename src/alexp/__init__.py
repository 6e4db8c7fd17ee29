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
)
from alexp import (
    kernels as kernels,
)
from alexp import (
    rules as rules,
)
from alexp.algorithms import (
    LMUCB as LMUCB,
)
from alexp.algorithms import (
    AbandonedTrialError as AbandonedTrialError,
)
from alexp.algorithms import (
    ALExp as ALExp,
)
from alexp.algorithms import (
    Algorithm as Algorithm,
)
from alexp.algorithms import (
    AlreadyToldError as AlreadyToldError,
)
from alexp.algorithms import (
    AssumptionWarning as AssumptionWarning,
)
from alexp.algorithms import (
    EvidenceMixture as EvidenceMixture,
)
from alexp.algorithms import (
    EvidenceSampling as EvidenceSampling,
)
from alexp.algorithms import (
    MixtureThompson as MixtureThompson,
)
from alexp.algorithms import (
    NotCertified as NotCertified,
)
from alexp.algorithms import (
    NotToldError as NotToldError,
)
from alexp.algorithms import (
    Recommendation as Recommendation,
)
from alexp.algorithms import (
    Trial as Trial,
)
from alexp.algorithms import (
    UnknownTrialError as UnknownTrialError,
)
from alexp.decision import (
    UCB as UCB,
)
from alexp.decision import (
    Agent as Agent,
)
from alexp.decision import (
    DOptimal as DOptimal,
)
from alexp.decision import (
    EOptimal as EOptimal,
)
from alexp.decision import (
    EpsilonGreedy as EpsilonGreedy,
)
from alexp.decision import (
    Greedy as Greedy,
)
from alexp.decision import (
    HOptimal as HOptimal,
)
from alexp.decision import (
    Schedules as Schedules,
)
from alexp.decision import (
    ThompsonSampling as ThompsonSampling,
)
from alexp.decision import (
    Uniform as Uniform,
)
from alexp.estimation.lasso.group_lasso import (
    ConvergenceWarning as ConvergenceWarning,
)
from alexp.estimation.lasso.group_lasso import (
    GroupLasso as GroupLasso,
)
from alexp.estimation.mixture.evidence import (
    Evidence as Evidence,
)
from alexp.problem import (
    Arms as Arms,
)
from alexp.problem import (
    Ball as Ball,
)
from alexp.problem import (
    Box as Box,
)
from alexp.problem import (
    Candidates as Candidates,
)
from alexp.problem import (
    FiniteSet as FiniteSet,
)
from alexp.problem import (
    Fourier as Fourier,
)
from alexp.problem import (
    Interval as Interval,
)
from alexp.problem import (
    Legendre as Legendre,
)
from alexp.problem import (
    ModelClass as ModelClass,
)
from alexp.problem import (
    Polynomial as Polynomial,
)
from alexp.problem import (
    RandomFourier as RandomFourier,
)
from alexp.rivals import (
    D3RB as D3RB,
)
from alexp.rivals import (
    ED2RB as ED2RB,
)
from alexp.rivals import (
    ESTC as ESTC,
)
from alexp.rivals import (
    ETC as ETC,
)
from alexp.rivals import (
    ETS as ETS,
)
from alexp.rivals import (
    EXP4IX as EXP4IX,
)
from alexp.rivals import (
    EXP4LS as EXP4LS,
)
from alexp.rivals import (
    FSSCB as FSSCB,
)
from alexp.rivals import (
    O2CSEW as O2CSEW,
)
from alexp.rivals import (
    O2CSSEW as O2CSSEW,
)
from alexp.rivals import (
    SLUCB as SLUCB,
)
from alexp.rivals import (
    Balancing as Balancing,
)
from alexp.rivals import (
    Corral as Corral,
)
from alexp.rivals import (
    Doubling as Doubling,
)
from alexp.rivals import (
    DRLasso as DRLasso,
)
from alexp.rivals import (
    LassoBandit as LassoBandit,
)
from alexp.rivals import (
    LinUCB as LinUCB,
)
from alexp.rivals import (
    LinUCBPlusPlus as LinUCBPlusPlus,
)
from alexp.rivals import (
    ModCB as ModCB,
)
from alexp.rivals import (
    PopArt as PopArt,
)
from alexp.rivals import (
    SALasso as SALasso,
)
from alexp.rivals import (
    SmoothedCorral as SmoothedCorral,
)
from alexp.rivals import (
    SquareCB as SquareCB,
)
from alexp.rivals import (
    THLasso as THLasso,
)
from alexp.rivals import (
    UniformRandom as UniformRandom,
)
from alexp.simulation import (
    Environment as Environment,
)
from alexp.simulation import (
    Run as Run,
)
from alexp.simulation import (
    SyntheticEnvironment as SyntheticEnvironment,
)
from alexp.simulation import (
    simulate as simulate,
)
from alexp.table import (
    Table as Table,
)

if TYPE_CHECKING:
    from alexp import datasets as datasets
    from alexp import ope as ope
    from alexp import plot as plot
    from alexp import theory as theory
    from alexp.client import Client as Client
    from alexp.study import create_study as create_study
    from alexp.study import load_study as load_study
    from alexp.theory import preflight as preflight

    __version__: str

# Needed by few runs and slow to load; studies need the extra `study` as well, clients the extra `client`.
_MODULES = ("datasets", "decision", "extend", "kernels", "ope", "plot", "rivals", "rules", "theory")
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
