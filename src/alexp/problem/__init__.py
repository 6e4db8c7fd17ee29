"""What is to be optimised: domains, dictionaries of features, and classes of models."""

from alexp.problem.candidates import CandidateTable
from alexp.problem.dictionaries import (
    Dictionary,
    Fourier,
    Legendre,
    Maps,
    Polynomial,
    RandomFourier,
)
from alexp.problem.domains import Arms, Ball, Box, Candidates, Domain, FiniteSet, Interval
from alexp.problem.matrices import Matrices
from alexp.problem.models import ModelClass

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
