"""Feature maps of contextual rounds: code that sees the context and the candidates of a round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from alexp.common.arrays import Action, FloatArray
from alexp.common.validation import matrix
from alexp.problem.contextual.sources import Given
from alexp.problem.dictionaries import EvaluatedMaps, Transformer

ContextualMap = Callable[[Given, Given], Given] | Transformer  # (context, candidates) to (n, d)


class ContextMaps(EvaluatedMaps):
    """Maps side by side, each a callable (context, candidates) -> (n, d_j) or a fitted scikit-learn transformer.

    A transformer sees the candidates alone: one row each, texts and numbers as one column. `example` is a round
    (context, candidates) or a list of such rounds: it tells how many features the maps return.

    >>> maps = ContextMaps({"product": lambda c, x: c * np.asarray(x)[:, None]}, example=(2.0, [1.0]))
    >>> maps.offered(3.0, [1.0, 2.0]).tolist()
    [[3.0], [6.0]]
    """

    _missing = "pass example=(context, candidates) to from_maps"

    def __init__(self, maps: Mapping[str, ContextualMap], example: object = None) -> None:
        self.maps = {str(name): one for name, one in maps.items()}
        for name, one in self.maps.items():
            if not (callable(one) or hasattr(one, "transform")):
                raise TypeError(f"map {name!r} must be callable or have .transform, got {type(one).__name__}")
        self.example_rows: FloatArray | None = None
        if example is not None:
            self.example_rows = np.vstack([self.offered(*one) for one in _rounds(example)])

    @property
    def needs_context(self) -> bool:
        """Whether a round must have a context: callables get what there is, be it None."""
        return False

    @property
    def awaits_round(self) -> bool:
        """Whether the maps have not been evaluated yet, so that their sizes are unknown."""
        return self._sizes is None

    def offered(self, context: object, candidates: Action) -> FloatArray:
        """Features of the n candidates of a round, shape (n, P)."""
        return self._joined([self._apply(name, context, candidates) for name in self.maps])

    def _apply(self, name: str, context: object, candidates: Action) -> FloatArray:
        one = self.maps[name]
        if hasattr(one, "transform"):
            values = one.transform(_as_rows(candidates))
            values = values.toarray() if hasattr(values, "toarray") else values
        else:
            values = one(context, candidates)
        return matrix(f"output of map {name!r}", values, len(candidates))

    def __call__(self, x: Action) -> FloatArray:
        """There are no features of an action alone."""
        raise TypeError("these maps are contextual: features are those of a round, offered(context, candidates)")


def _rounds(example: Given) -> Sequence[tuple[object, Action]]:
    rounds = example if isinstance(example, list) else [example]
    if not rounds or not all(isinstance(one, tuple) and len(one) == 2 for one in rounds):
        raise TypeError(f"example must be a pair (context, candidates) or a list of such pairs, got {example!r:.80}")
    return rounds


def _as_rows(candidates: Action) -> Given:
    """Candidates as a table, as transformers take them."""
    if hasattr(candidates, "iloc"):
        return candidates
    if len(candidates) and isinstance(candidates[0], Mapping):
        import pandas as pd

        return pd.DataFrame(list(candidates))
    array = np.asarray(candidates, dtype=object if isinstance(candidates[0], str) else None)
    return array[:, None] if array.ndim == 1 else array
