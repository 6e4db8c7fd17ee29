"""How to act: base agents, exploration designs, weights over agents, schedules."""

from alexp.decision.agents import UCB, Agent, EpsilonGreedy, Greedy, ThompsonSampling, View
from alexp.decision.designs import DOptimal, EOptimal, HOptimal, Uniform
from alexp.decision.omd import log_barrier_omd
from alexp.decision.schedules import Schedules, anytime_lasso_lambda
from alexp.decision.weights import exponential_weights

__all__ = [
    "UCB",
    "Agent",
    "DOptimal",
    "EOptimal",
    "EpsilonGreedy",
    "Greedy",
    "HOptimal",
    "Schedules",
    "ThompsonSampling",
    "Uniform",
    "View",
    "anytime_lasso_lambda",
    "exponential_weights",
    "log_barrier_omd",
]
