"""Random numbers that depend only on the seed and on what they are for."""

from __future__ import annotations

import numpy as np

RandomState = int | np.random.Generator | None

ORDER, ASK, AGENTS = 0, 1, 2  # purposes


class Streams:
    """Independent generators keyed by purpose and counter.

    The randomness of ask k is a function of the seed and k alone. That makes runs repeatable whatever else was
    looked at in between, and lets a log of asks and tells be replayed by another process bit for bit.

    >>> a, b = Streams(7), Streams(7)
    >>> bool(a.generator(ASK, 3).random() == b.generator(ASK, 3).random())
    True
    """

    def __init__(self, random_state: RandomState | object = None) -> None:
        if isinstance(random_state, np.random.Generator):
            words = random_state.integers(0, 2**32, size=4, dtype=np.uint64)
            self.entropy = sum(int(word) << (32 * i) for i, word in enumerate(words))
        elif random_state is None:
            entropy = np.random.SeedSequence().entropy
            assert isinstance(entropy, int)
            self.entropy = entropy
        elif isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
            if random_state < 0:
                raise ValueError(f"random_state must not be negative, got {random_state}")
            self.entropy = int(random_state)
        else:
            raise TypeError(f"random_state must be an int, a numpy.random.Generator or None, got {random_state!r}")

    def generator(self, *key: int) -> np.random.Generator:
        """The generator for one purpose, e.g. `generator(ASK, 12)`."""
        return np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=key))
