"""What agents suggest and how they are weighed, in arrays that are not NumPy's."""

import numpy as np
import pytest
from numpy.lib.mixins import NDArrayOperatorsMixin

from alexp.decision.plays import Follow
from alexp.decision.suggestions import Suggestions
from alexp.decision.weights import draw_index, exponential_weights, in_memory


class Elsewhere(NDArrayOperatorsMixin):
    """An array that NumPy computes with only when it is asked to, and that is fetched by `get`, as CuPy's are."""

    def __init__(self, values):
        self.values = np.asarray(values)

    size = property(lambda self: self.values.size)

    def get(self):
        return self.values

    def __array__(self, *args, **kwargs):
        raise TypeError("fetched unawares")

    def __float__(self):
        return float(self.values)

    def __int__(self):
        return int(self.values)

    def __getitem__(self, key):
        return Elsewhere(self.values[key.values if isinstance(key, Elsewhere) else key])

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return Elsewhere(getattr(ufunc, method)(*(getattr(x, "values", x) for x in inputs), **kwargs))

    def __array_function__(self, function, types, args, kwargs):
        return Elsewhere(function(*(getattr(x, "values", x) for x in args), **kwargs))

    def reshape(self, *shape):
        return Elsewhere(self.values.reshape(*shape))

    def sum(self, **kwargs):
        return Elsewhere(self.values.sum(**kwargs))

    def max(self):
        return Elsewhere(self.values.max())


@pytest.mark.parametrize("spread", [0.0, 0.2])
def test_what_agents_suggest_stays_where_it_is(spread):
    rng = np.random.default_rng(0)
    positions, values, n = rng.integers(7, size=20_000), rng.standard_normal(7), 7
    plain, ours = Suggestions.certain(positions, n, spread), Suggestions.certain(Elsewhere(positions), n, spread)
    np.testing.assert_allclose(in_memory(ours.expectation(values)), plain.expectation(values), rtol=1e-13)
    np.testing.assert_allclose(in_memory(ours.mass(3)), plain.mass(3), rtol=1e-13)
    scores = rng.standard_normal(20_000)
    weights, elsewhere = exponential_weights(scores, 2.0), exponential_weights(Elsewhere(scores), 2.0)
    np.testing.assert_allclose(in_memory(elsewhere), weights, rtol=1e-13)
    probability = Follow(elsewhere, ours).probability(3)
    assert probability == pytest.approx(Follow(weights, plain).probability(3), rel=1e-12)
    for seed in range(20):
        drawn = draw_index(elsewhere, np.random.default_rng(seed))
        assert drawn == draw_index(weights, np.random.default_rng(seed))
    assert ours.draw(11, np.random.default_rng(5)) == plain.draw(11, np.random.default_rng(5))


def test_draws_from_blocks_have_the_right_chances():
    weights = np.zeros(20_000)
    weights[[3, 9_000, 19_999]] = 0.5, 0.3, 0.2  # in the first, the second and the last, incomplete, block
    rng = np.random.default_rng(0)
    drawn = [draw_index(Elsewhere(weights), rng) for _ in range(2_000)]
    counts = [drawn.count(j) / 2_000 for j in (3, 9_000, 19_999)]
    np.testing.assert_allclose(counts, [0.5, 0.3, 0.2], atol=0.05)
