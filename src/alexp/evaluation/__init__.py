"""What a new policy would have earned, from the log of another one; public as `alexp.ope`."""

from alexp.evaluation.comparing import compare
from alexp.evaluation.estimators import dm, dr, ips, replay, snips
from alexp.evaluation.exchange import feed, from_coba, from_obp, from_vw, to_coba, to_obp, to_vw
from alexp.evaluation.log import Log, LoggedRound, LogWarning, NoOverlapError
from alexp.evaluation.values import PolicyDifference, PolicyValue

__all__ = [
    "Log",
    "LogWarning",
    "LoggedRound",
    "NoOverlapError",
    "PolicyDifference",
    "PolicyValue",
    "compare",
    "dm",
    "dr",
    "feed",
    "from_coba",
    "from_obp",
    "from_vw",
    "ips",
    "replay",
    "snips",
    "to_coba",
    "to_obp",
    "to_vw",
]
