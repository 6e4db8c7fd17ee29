"""What a new policy would have earned, from the log of another one; public as `alexp.ope`."""

from alexp.evaluation.comparing import compare
from alexp.evaluation.estimators import dm, dr, ips, replay, snips
from alexp.evaluation.log import Log, LogWarning, NoOverlapError, Presented
from alexp.evaluation.values import PolicyDifference, PolicyValue

__all__ = [
    "Log",
    "LogWarning",
    "NoOverlapError",
    "PolicyDifference",
    "PolicyValue",
    "Presented",
    "compare",
    "dm",
    "dr",
    "ips",
    "replay",
    "snips",
]
