"""Algorithms on feature maps that were not evaluated yet: the first round shows how many features there are."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn, cast

from alexp.common.codec import State
from alexp.problem.offers import contexts_of, make_offer

if TYPE_CHECKING:
    from alexp.algorithms.base import Algorithm
    from alexp.problem.domains import Domain
    from alexp.problem.models import ModelClass

_becoming = threading.RLock()
_ROUND = ("context", "candidates", "features", "ids")  # arguments that say what a round offers


class AwaitingFirstRound:
    """Waits for its first round, and then is an algorithm of the kind that was asked for.

    Nothing can be computed before: not even how many coefficients there are. With `example=` in the constructor of the
    models it is an algorithm at once.
    """

    def __init__(self, kind: type[Algorithm], models: ModelClass, domain: Domain, arguments: State) -> None:
        self._expected = kind, models, domain, arguments

    def ask(self, *args: object, **kwargs: object) -> object:
        """The first round."""
        return _begun(self, kwargs, args[0] if args else kwargs.get("n")).ask(*args, **kwargs)

    def policy(self, *args: object, **kwargs: object) -> object:
        """The probabilities of the first round."""
        return _begun(self, kwargs).policy(*args, **kwargs)

    def observe(self, *args: object, **kwargs: object) -> object:
        """A reward that was measured elsewhere."""
        return _begun(self, kwargs).observe(*args, **kwargs)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"{self._expected[0].__name__} has no {name!r} before its first round, because how many features the maps "
            "have is not known: ask first, or pass example= to the constructor of the models"
        )

    def __repr__(self) -> str:
        return f"{self._expected[0].__name__}({self._expected[1].n_models} models, waiting for the first round)"


def _begun(one: AwaitingFirstRound, presented: Mapping[str, object], n: object = None) -> Any:
    """The algorithm, once its maps have seen a round. Two may call at once: then it has become one for the second."""
    with _becoming:
        if type(one) is AwaitingFirstRound:
            kind, models, domain, arguments = one._expected
            several = contexts_of(presented.get("context"), cast("int | None", n))
            first = {} if several is None else {"context": next(iter(several))}
            round_: State = {name: presented.get(name) for name in _ROUND} | first
            make_offer(models, domain, **round_)
            born = kind(models, domain, **arguments)
            one.__dict__ = vars(born)
            kind._enrol(one)  # type: ignore[arg-type]  # with a lock of its own, known to forks
            one.__class__ = kind  # type: ignore[assignment]  # last: from here on others see a whole algorithm
    return one
