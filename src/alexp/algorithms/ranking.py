"""Which models and columns a mixture believes in: all of them, or the likeliest where they are too many to list."""

from __future__ import annotations

from abc import abstractmethod

from alexp.common.arrays import FloatArray
from alexp.common.validation import count
from alexp.estimation.mixture.mixture import Mixture
from alexp.problem.models import ModelClass

ON_DEVICES = ("ids", "ucb")  # rules that need nothing but mean and variance of the mixture


class RanksModels:
    """An algorithm that weighs models by a mixture."""

    models: ModelClass
    _mixture: Mixture

    @abstractmethod
    def _weights(self) -> FloatArray:
        """Posterior of the components, as `Mixture.weights` has it."""

    @property
    def probabilities(self) -> FloatArray:
        """Posterior probability of each model, shape (M,)."""
        self.models.require_list("probabilities")
        return self._mixture.probabilities(self._weights())

    def likeliest(self, n: int = 10) -> list[tuple[str, float]]:
        """Names of the n most probable models, and their posterior probabilities."""
        numbers, shares = self._mixture.likeliest(self._weights(), count("n", n))
        names = self.models.names
        return [(names[int(j)], float(q)) for j, q in zip(numbers, shares, strict=True)]

    def column_probabilities(self) -> FloatArray:
        """Posterior probability that each column of the dictionary is in the model, shape (P,)."""
        return self._mixture.column_probabilities(self._weights())


def check_enumerable(models: ModelClass, rule: str) -> None:
    """Raise if subsets that are enumerated cannot be played by a rule."""
    if models.enumerated_on is not None and rule not in ON_DEVICES:
        raise ValueError(
            f'rule={rule!r} looks at models one by one, and these are enumerated, never listed: take rule="ids" or '
            '"ucb", or leave device out of ModelClass.subsets'
        )
