"""Compiling what an algorithm needs before it matters how long that takes."""

from __future__ import annotations

from alexp.algorithms.base import Algorithm

_ROUNDS = 2
_done: set[tuple[object, ...]] = set()


def warm_up(algorithm: Algorithm) -> None:
    """Compile, on a copy that is thrown away, what asks and tells of the algorithm need; cheap when done already."""
    settings = {key: getattr(algorithm, key) for key in algorithm.settings}
    shared = {key: getattr(algorithm, key) for key in ("noise_std", "reward_bound", "direction")}
    key = (type(algorithm), algorithm.models.intercept, repr(settings))
    if key in _done:
        return
    copy = type(algorithm)(algorithm.models, algorithm.domain, random_state=0, **shared, **settings)
    everything = range(algorithm.domain.n_candidates)
    for available in (None, everything[: max(1, len(everything) // 2)]) * _ROUNDS:
        copy.tell(copy.ask(available=available), algorithm.reward_bound / 2.0)
    _done.add(key)
