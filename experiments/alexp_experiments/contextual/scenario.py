"""A stream of contexts as a scenario: plain data that names it."""

from __future__ import annotations

from dataclasses import dataclass

from alexp.common.validation import count
from alexp.simulation import ModelEnvironment
from alexp_experiments.contextual import classification
from alexp_experiments.contextual.linear import linear_stream
from alexp_experiments.contextual.routing import routing_stream
from alexp_experiments.contextual.streams import ContextStream
from alexp_experiments.core.scenarios import Scenario

FAMILIES = (*classification.TABLES, "routing", "linear")


@dataclass(frozen=True)
class ContextScenario(Scenario):
    """Rounds with contexts or with candidates that change.

    Attributes
    ----------
    family : "digits", "wine" or "breast cancer", see `classification`; "routing"; "linear", whose candidates are new
        in every round.
    passes : over the rows of a table.
    steps : rounds; a table's are at most its rows times `passes`.
    n_maps : language models to route to, or blocks of features.
    only : the feature set that is kept, if not all of them are.
    """

    family: str = "digits"
    steps: int = 10**9
    passes: int = 1
    n_maps: int = 2
    noise_std: float = 0.3
    only: str | None = None

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise ValueError(f"family must be one of {', '.join(FAMILIES)}, got {self.family!r}")
        count("steps", self.steps)
        count("passes", self.passes)

    @property
    def sets(self) -> tuple[str, ...]:
        """Names of all feature sets."""
        return tuple(self.with_(steps=2, only=None).stream(0).sets)

    @property
    def n_models(self) -> int:
        """M."""
        return len(self.sets) if self.only is None else 1

    def stream(self, seed: int) -> ContextStream:
        """The rounds of a seed."""
        if self.family == "routing":
            whole = routing_stream(self.steps, seed, self.n_maps)
        elif self.family == "linear":
            whole = linear_stream(self.steps, seed, n_sets=self.n_maps, noise_std=self.noise_std)
        else:
            whole = classification.classification_stream(self.family, self.passes, seed, self.steps)
        return whole if self.only is None else whole.with_set(self.only)

    def environment(self, seed: int) -> ModelEnvironment:
        """There is none with a fixed set of candidates."""
        raise TypeError("a stream of contexts has no fixed candidates; use stream(seed)")


CONTEXT_SCENARIOS: dict[str, ContextScenario] = {
    "digits": ContextScenario(),
    "wine": ContextScenario(family="wine"),
    "wine, five passes": ContextScenario(family="wine", passes=5),
    "breast cancer": ContextScenario(family="breast cancer"),
    "routing, two models": ContextScenario(family="routing", steps=3000),
    "routing, three models": ContextScenario(family="routing", steps=3000, n_maps=3),
    "new candidates": ContextScenario(family="linear", steps=500, n_maps=8),
}
