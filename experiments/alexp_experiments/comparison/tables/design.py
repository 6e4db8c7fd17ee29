"""First rows by design: spread out in all feature maps at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from alexp.common.arrays import FloatArray


def far_apart(maps: Sequence[FloatArray], size: int, rng: np.random.Generator) -> list[int]:
    """k-means++ (Arthur and Vassilvitskii 2007) on all maps: squared distances are averaged over maps.

    Each map, shape (N, d), counts alike: its features have a squared norm of one on average. The first row is drawn
    evenly, every further one in proportion to its squared distance from those that are in.
    """
    n = maps[0].shape[0]
    chosen: list[int] = []
    nearest = np.ones(n)
    for _ in range(min(size, n)):
        chosen.append(int(rng.choice(n, p=nearest / nearest.sum())))
        distance = np.mean([np.sum((features - features[chosen[-1]]) ** 2, axis=1) for features in maps], axis=0)
        nearest = distance if len(chosen) == 1 else np.minimum(nearest, distance)
        nearest[chosen] = 0.0
        if not nearest.any():
            nearest = np.ones(n)
            nearest[chosen] = 0.0
    return chosen
