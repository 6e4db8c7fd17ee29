"""What is to be optimised: domains, dictionaries of features, and classes of models."""

from alexp.problem.candidates import CandidateTable
from alexp.problem.contextual.balls import Ball
from alexp.problem.contextual.domains import Arms, Candidates
from alexp.problem.dictionaries import (
    Dictionary,
    Fourier,
    Legendre,
    Maps,
    Polynomial,
    RandomFourier,
)
from alexp.problem.domains import Box, Domain, FiniteSet, Interval
from alexp.problem.models import ModelClass
from alexp.problem.tables.matrices import Matrices

__all__ = [
    "Arms",
    "Ball",
    "Box",
    "CandidateTable",
    "Candidates",
    "Dictionary",
    "Domain",
    "FiniteSet",
    "Fourier",
    "Interval",
    "Legendre",
    "Maps",
    "Matrices",
    "ModelClass",
    "Polynomial",
    "RandomFourier",
]
