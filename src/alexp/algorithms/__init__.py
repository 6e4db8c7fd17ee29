"""One file per algorithm, each with the same ask/tell protocol."""

from typing import Any

from alexp.algorithms.alexp import ALExp
from alexp.algorithms.base import Algorithm
from alexp.algorithms.certified import Band, Certified, StopReport
from alexp.algorithms.evidence_mixture import EvidenceMixture, MixtureThompson
from alexp.algorithms.linucb import LinUCB
from alexp.algorithms.trials import AlreadyToldError, Recommendation, Trial, UnknownTrialError
from alexp.algorithms.uniform import UniformRandom

__all__ = [
    "ALExp",
    "Algorithm",
    "AlreadyToldError",
    "Band",
    "Certified",
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
