"""One file per algorithm, each with the same ask/tell protocol."""

from typing import Any

from alexp.algorithms.alexp import ALExp
from alexp.algorithms.base import Algorithm
from alexp.algorithms.certified import Band, Certified, StopReport
from alexp.algorithms.corral import Corral
from alexp.algorithms.etc import ETC
from alexp.algorithms.ets import ETS
from alexp.algorithms.evidence_mixture import EvidenceMixture, MixtureThompson
from alexp.algorithms.exp4ix import EXP4IX
from alexp.algorithms.linucb import LinUCB
from alexp.algorithms.trials import AlreadyToldError, Recommendation, Trial, UnknownTrialError
from alexp.algorithms.uniform import UniformRandom

__all__ = [
    "ETC",
    "ETS",
    "EXP4IX",
    "ALExp",
    "Algorithm",
    "AlreadyToldError",
    "Band",
    "Certified",
    "Corral",
    "EvidenceMixture",
    "LinUCB",
    "MixtureThompson",
    "Recommendation",
    "StopReport",
    "Trial",
    "UniformRandom",
    "UnknownTrialError",
    "load",
]


def load(data: dict[str, Any], **objects: Any) -> Algorithm:
    """Continue a saved run of any algorithm; see `Algorithm.from_dict`."""
    return Algorithm.from_dict(data, **objects)
