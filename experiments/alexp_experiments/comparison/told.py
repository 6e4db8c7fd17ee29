"""Problems of which the true model is told: the class of models that an algorithm gets holds nothing else.

What an algorithm pays there, with the same prior and the same rule, is what it would pay if choosing a model was free:
the yardstick for everybody who has to choose.
"""

from __future__ import annotations

from dataclasses import dataclass

from alexp.simulation import ModelEnvironment
from alexp_experiments.core.scenarios import Scenario
from alexp_experiments.core.tables import TableScenario


@dataclass(frozen=True)
class ToldScenario(Scenario):
    """A scenario of which only the true model is shown."""

    def environment(self, seed: int) -> ModelEnvironment:
        """The environment of a seed, rewards and noise as ever."""
        return _with_one_model(super().environment(seed))


@dataclass(frozen=True)
class ToldTable(TableScenario):
    """A table of which only the model with the largest adjusted R^2 is shown."""

    def environment(self, seed: int) -> ModelEnvironment:
        """The environment of a seed, rewards and noise as ever."""
        return _with_one_model(super().environment(seed))


def _with_one_model(environment: ModelEnvironment) -> ModelEnvironment:
    environment.models = environment.models.only(environment.true_model)
    environment.true_model = 0
    return environment


def told(scenario: Scenario) -> Scenario:
    """The same problem with the true model told.

    >>> told(Scenario()).environment(0).models.n_models
    1
    """
    kind = ToldTable if isinstance(scenario, TableScenario) else ToldScenario
    return kind.from_dict(scenario.to_dict())
