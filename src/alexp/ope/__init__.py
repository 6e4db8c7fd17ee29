"""Off-policy evaluation: what a new policy would have earned, with intervals that hold at every moment.

>>> from alexp import ope
>>> log = ope.Log(rewards=[1, 0, 1, 1], propensities=[0.5, 0.5, 0.5, 0.5], index=[0, 1, 0, 0], n=2)
>>> ope.ips(log, [[1, 0]] * 4).value
1.5
"""

from alexp.ope.estimators import PolicyDifference, PolicyValue, compare, dm, dr, ips, replay, snips, verdict
from alexp.ope.formats import from_coba, from_obp, from_vw, to_coba, to_obp, to_vw
from alexp.ope.log import Log, LoggedRound, LogWarning, NoOverlapError, feed

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
    "verdict",
]
