"""One file per algorithm, each with the same ask/tell protocol."""

from typing import Any

from alexp.algorithms.alexp import ALExp
from alexp.algorithms.assumptions import AssumptionWarning, NotCertified
from alexp.algorithms.base import Algorithm
from alexp.algorithms.baselines.etc import ETC
from alexp.algorithms.baselines.ets import ETS
from alexp.algorithms.baselines.fs_scb import FSSCB
from alexp.algorithms.baselines.linucb import LinUCB
from alexp.algorithms.baselines.o2cs import O2CSEW
from alexp.algorithms.baselines.o2cs_sew import O2CSSEW
from alexp.algorithms.baselines.squarecb import SquareCB
from alexp.algorithms.baselines.uniform import UniformRandom
from alexp.algorithms.certificates.reports import Band, ModelCheck, StopReport
from alexp.algorithms.certified import Certified
from alexp.algorithms.evidence_mixture import EvidenceMixture, MixtureThompson
from alexp.algorithms.evidence_sampling import EvidenceSampling
from alexp.algorithms.lmucb import LMUCB
from alexp.algorithms.log import (
    AbandonedTrialError,
    AlreadyToldError,
    NotToldError,
    Recommendation,
    Trial,
    UnknownTrialError,
)
from alexp.algorithms.masters.balancing import Balancing
from alexp.algorithms.masters.corral import Corral
from alexp.algorithms.masters.d3rb import D3RB, ED2RB
from alexp.algorithms.masters.doubling import Doubling
from alexp.algorithms.masters.exp4ix import EXP4IX
from alexp.algorithms.masters.exp4ls import EXP4LS
from alexp.algorithms.masters.linucb_plus import LinUCBPlusPlus
from alexp.algorithms.masters.smoothed_corral import SmoothedCorral
from alexp.algorithms.registry import algorithm_named, load_installed, registered_names
from alexp.algorithms.sparse.dr_lasso import DRLasso
from alexp.algorithms.sparse.estc import ESTC
from alexp.algorithms.sparse.lasso_bandit import LassoBandit
from alexp.algorithms.sparse.modcb import ModCB
from alexp.algorithms.sparse.popart import PopArt
from alexp.algorithms.sparse.sa_lasso import SALasso
from alexp.algorithms.sparse.sl_ucb import SLUCB
from alexp.algorithms.sparse.th_lasso import THLasso
from alexp.common.codec import State

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
    "ALExp",
    "AbandonedTrialError",
    "Algorithm",
    "AlreadyToldError",
    "AssumptionWarning",
    "Balancing",
    "Band",
    "Certified",
    "Corral",
    "DRLasso",
    "Doubling",
    "EvidenceMixture",
    "EvidenceSampling",
    "LassoBandit",
    "LinUCB",
    "LinUCBPlusPlus",
    "MixtureThompson",
    "ModCB",
    "ModelCheck",
    "NotCertified",
    "NotToldError",
    "PopArt",
    "Recommendation",
    "SALasso",
    "SmoothedCorral",
    "SquareCB",
    "StopReport",
    "THLasso",
    "Trial",
    "UniformRandom",
    "UnknownTrialError",
    "algorithm_named",
    "load",
    "registered_names",
]


def load(data: State, **objects: Any) -> Algorithm:
    """Continue a saved run of any algorithm; see `Algorithm.from_dict`."""
    load_installed()
    return Algorithm.from_dict(data, **objects)
