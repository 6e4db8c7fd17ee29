"""Environments, simulation, scenarios and figures."""

from alexp.experiments.core.environments import Environment, SyntheticEnvironment
from alexp.experiments.core.simulation import Run, simulate

__all__ = ["Environment", "Run", "SyntheticEnvironment", "simulate"]
