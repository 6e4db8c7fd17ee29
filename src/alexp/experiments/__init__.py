"""Environments, simulation, scenarios and figures."""

from alexp.experiments.environments import Environment, SyntheticEnvironment
from alexp.experiments.simulation import Run, simulate

__all__ = ["Environment", "Run", "SyntheticEnvironment", "simulate"]
