"""Environments, simulation, scenarios and figures."""

from alexp.experiments.core.environments import Environment, SyntheticEnvironment
from alexp.experiments.core.rounds import RoundEnvironment
from alexp.experiments.core.simulation import Run, simulate
from alexp.experiments.sparse.environments import EllipticalContexts, GaussianContexts, HardInstance, UniformContexts

__all__ = [
    "EllipticalContexts",
    "Environment",
    "GaussianContexts",
    "HardInstance",
    "RoundEnvironment",
    "Run",
    "SyntheticEnvironment",
    "UniformContexts",
    "simulate",
]
