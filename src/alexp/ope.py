"""Off-policy evaluation: what a new policy would have earned, with intervals that hold at every moment.

>>> from alexp import ope
>>> log = ope.Log(rewards=[1, 0, 1, 1], propensities=[0.5, 0.5, 0.5, 0.5], index=[0, 1, 0, 0], n=2)
>>> ope.ips(log, [[1, 0]] * 4).value
1.5
"""

from alexp.evaluation import *  # noqa: F403
from alexp.evaluation import __all__ as __all__
