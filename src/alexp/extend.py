"""What extensions import: algorithms, rules, kernels, domains and commands of other packages.

Everything here is documented and stable; docs/extending.md has an example of each. The rivals of this package
(`alexp.rivals`) import nothing else of the library.

An algorithm is a subclass of `Algorithm` (or of `Certified`, `AgentBased`) with a `name`, `settings`, `_decide`,
`_learn`, `_recommend`, `_state` and `_restore`. A rule is a subclass of `Rule` with `play`, a kernel one of `Kernel`
with `block`, a domain one of `Domain` with `points`, an agent one of `Agent` with `policy`. Other packages announce
algorithms and commands by entry points:

    [project.entry-points."alexp.algorithms"]
    mine = "my_package.my_module:MyAlgorithm"

    [project.entry-points."alexp.commands"]
    mine = "my_package.my_module:my_command"

`alexp.testing` checks them: `CHECKS` for algorithms, `check_rule` for rules, `check_kernel` for kernels.
"""

from alexp.algorithms.agent_based import AgentBased
from alexp.algorithms.assumptions import Stated, quietly
from alexp.algorithms.base import AGENTS, ASK, Algorithm, CheckedTell, Decision, Observation, Shared, Streams
from alexp.algorithms.certified import Certified
from alexp.algorithms.log import Trial
from alexp.algorithms.registry import algorithm_named
from alexp.algorithms.saving import read_notes
from alexp.common.arguments import FullSignature, constructor
from alexp.common.arrays import BoolArray, FloatArray, IntArray
from alexp.common.codec import Packable, State
from alexp.common.schema import (
    SQUARE,
    a_dict,
    anything,
    booleans,
    floats,
    integers,
    maybe,
    number,
    record,
    same,
    sequence,
    whole,
)
from alexp.common.ties import first_best, first_best_in_rows
from alexp.common.validation import count, fraction, limited, non_negative, offering, one_of, positive, share
from alexp.decision.agents import UCB, Agent, Greedy, View
from alexp.decision.designs import EOptimal, Exploration, HOptimal, Uniform, design_features, design_weights
from alexp.decision.first_order import independent_columns, second_moment, smallest_eigenvalue
from alexp.decision.omd import log_barrier_omd
from alexp.decision.plays import (
    Alone,
    Among,
    Certain,
    Even,
    Explore,
    Follow,
    Play,
    Proposal,
    Weighted,
    on_choices,
)
from alexp.decision.pool import AgentPool, Agents, OwnDataPool
from alexp.decision.schedules import Schedules
from alexp.decision.suggestions import Suggestions
from alexp.decision.weights import exponential_weights
from alexp.decision.widths import ucb_width
from alexp.estimation.credible import CrediblePrediction
from alexp.estimation.estimate import Estimate, predict
from alexp.estimation.factory import linear_posteriors
from alexp.estimation.lasso.group_lasso import GroupLasso, GroupLassoPath
from alexp.estimation.posteriors import LinearPosteriors, Posteriors
from alexp.estimation.ridge.bank import RidgeBank
from alexp.problem.candidates import Choices, Pending, Round
from alexp.problem.domains import Ball, Domain
from alexp.problem.kernels import Kernel, Stationary
from alexp.problem.models import ModelClass
from alexp.problem.offers import Offer
from alexp.problem.rows import Rows, dense
from alexp.rules import Belief, Rule

__all__ = [
    "AGENTS",
    "ASK",
    "SQUARE",
    "UCB",
    "Agent",
    "AgentBased",
    "AgentPool",
    "Agents",
    "Algorithm",
    "Alone",
    "Among",
    "Ball",
    "Belief",
    "BoolArray",
    "Certain",
    "Certified",
    "CheckedTell",
    "Choices",
    "CrediblePrediction",
    "Decision",
    "Domain",
    "EOptimal",
    "Estimate",
    "Even",
    "Exploration",
    "Explore",
    "FloatArray",
    "Follow",
    "FullSignature",
    "Greedy",
    "GroupLasso",
    "GroupLassoPath",
    "HOptimal",
    "IntArray",
    "Kernel",
    "LinearPosteriors",
    "ModelClass",
    "Observation",
    "Offer",
    "OwnDataPool",
    "Packable",
    "Pending",
    "Play",
    "Posteriors",
    "Proposal",
    "RidgeBank",
    "Round",
    "Rows",
    "Rule",
    "Schedules",
    "Shared",
    "State",
    "Stated",
    "Stationary",
    "Streams",
    "Suggestions",
    "Trial",
    "Uniform",
    "View",
    "Weighted",
    "a_dict",
    "algorithm_named",
    "anything",
    "booleans",
    "constructor",
    "count",
    "dense",
    "design_features",
    "design_weights",
    "exponential_weights",
    "first_best",
    "first_best_in_rows",
    "floats",
    "fraction",
    "independent_columns",
    "integers",
    "limited",
    "linear_posteriors",
    "log_barrier_omd",
    "maybe",
    "non_negative",
    "number",
    "offering",
    "on_choices",
    "one_of",
    "positive",
    "predict",
    "quietly",
    "read_notes",
    "record",
    "same",
    "second_moment",
    "sequence",
    "share",
    "smallest_eigenvalue",
    "ucb_width",
    "whole",
]
