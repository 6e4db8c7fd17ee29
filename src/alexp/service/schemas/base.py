"""What all bodies have in common."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from alexp.algorithms.base import RoundArguments
from alexp.common.arrays import Action
from alexp.common.validation import LARGEST

Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Whole = Annotated[int, Field(ge=0, lt=2**63)]
TrialNumber = Annotated[int, Field(ge=0, lt=2**63, description="Number of a trial.", examples=[0])]
Lease = Annotated[
    float | None,
    Field(gt=0.0, le=315_360_000.0, description="Seconds for which no other worker gets the trials.", examples=[600]),
]
Worker = Annotated[
    str | None,
    Field(max_length=200, description="Name of whoever acts; the caller's address if absent.", examples=["robot-1"]),
]
Key = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=100,
        description="A name of your choice for this call: repeated with the same key, it returns what happened "
        "the first time, and nothing happens twice. The header Idempotency-Key does the same.",
        examples=["plate-of-monday"],
    ),
]
Delta = Annotated[float, Field(gt=0.0, lt=1.0, description="Certified statements hold with probability 1 - delta.")]


class Body(BaseModel):
    """A request: fields that are not known are refused, numbers are finite, and nothing is guessed."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class RoundBody(Body):
    """The contextual round that a request is about, where the study has such rounds."""

    context: JsonValue = Field(
        default=None,
        description="The context: a list of numbers or an object. With n, a list of n objects or lists is n contexts.",
    )
    candidates: list[JsonValue] | None = Field(
        default=None, description="Candidates of the round, for models that compute features of candidates."
    )
    features: JsonValue = Field(
        default=None, description="One row of numbers per candidate, or an object of such blocks by name."
    )
    available: list[bool] | list[Whole] | list[str] | None = Field(
        default=None, description="Which candidates may be chosen: numbers, true or false for each, or names."
    )

    def presented(self) -> RoundArguments:
        """As keywords of the library."""
        return {"context": _context(self.context), "candidates": self.candidates, "features": self.features}


class NamedRoundBody(RoundBody):
    """A round whose candidates may have names."""

    ids: list[str | int | float] | None = Field(default=None, description="One name per candidate, all distinct.")

    def presented(self) -> RoundArguments:
        """As keywords of the library."""
        return {**super().presented(), "ids": self.ids}


def _context(value: JsonValue) -> Action:
    """A list of plain numbers is one context, whatever n is."""
    if isinstance(value, list) and value and all(isinstance(one, int | float) for one in value):
        try:
            return np.array(value, dtype=np.float64)
        except OverflowError:
            raise ValueError("context holds a number that is too large") from None
    return value
