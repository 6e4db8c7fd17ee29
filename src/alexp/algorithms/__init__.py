"""The ask/tell protocol, and the algorithms of this project; those of others are in `alexp.rivals`."""

from alexp.algorithms.alexp import ALExp
from alexp.algorithms.assumptions import AssumptionWarning, NotCertified
from alexp.algorithms.base import Algorithm
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
from alexp.algorithms.registry import algorithm_named, registered_names
from alexp.algorithms.statements import Band, ModelCheck, StopReport
from alexp.common.codec import State
from alexp.common.extensions import load_installed
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass

__all__ = [
    "LMUCB",
    "ALExp",
    "AbandonedTrialError",
    "Algorithm",
    "AlreadyToldError",
    "AssumptionWarning",
    "Band",
    "Certified",
    "EvidenceMixture",
    "EvidenceSampling",
    "MixtureThompson",
    "ModelCheck",
    "NotCertified",
    "NotToldError",
    "Recommendation",
    "StopReport",
    "Trial",
    "UnknownTrialError",
    "algorithm_named",
    "load",
    "registered_names",
]


def load(data: State, models: ModelClass | None = None, domain: Domain | None = None, **settings: object) -> Algorithm:
    """Continue a saved run of any algorithm; see `Algorithm.from_dict`."""
    load_installed()
    return Algorithm.from_dict(data, models, domain, **settings)
