"""The parts of a preflight, by name."""

from __future__ import annotations

from typing import TypedDict

# One constant of the audit: its name, its formula, and its values under t=1, t=10, ...
Constant = dict[str, str | float]


class ProblemFacts(TypedDict):
    """Sizes and feature norms."""

    models: int
    candidates: int
    columns: int
    smallest_model: int
    largest_model: int
    intercept: bool
    smallest_feature_norm: float
    median_feature_norm: float
    largest_feature_norm: float


class Columns(TypedDict):
    """What the dictionary's columns have in common; models by name."""

    rank: int | None
    repeated_columns: int
    duplicate_models: list[list[str]]
    equal_spans: list[list[str]]
    nested_models: list[list[str]]
    deficient_models: list[str]


class Achieved(TypedDict):
    """lambda_min of a design both ways, and certified bounds of the problem it solves; None where not computed."""

    distinct: float | None
    model_wise: float | None
    distinct_upper_bound: float | None
    model_wise_upper_bound: float | None
    note: str


class DesignRow(Achieved):
    """The same with the design's name."""

    design: str
