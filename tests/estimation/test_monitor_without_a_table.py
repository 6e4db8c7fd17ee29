"""The alternative of a contextual run is in the units of the rows so far, and remains one density of all rewards."""

import numpy as np

import alexp
from alexp.estimation.checking import Alternative, Monitor, Rewards

NOISE, SIZE = 0.3, 0.7


def slow_log_density(rows, rewards):
    """Every prediction by an alternative made from nothing; densities of one component multiply over time."""
    total = None
    for t in range(1, len(rows) + 1):
        known = min(2 ** int(np.log2(t)), 64)
        rival = Alternative(rows[:known].T, SIZE, NOISE, False)
        for k in range(t - 1):
            rival.absorb(rows[k], -1 - k, rewards[k], counted=False)
        before = rival._evidence.copy()
        rival.absorb(rows[t - 1], -t, rewards[t - 1])
        total = before if total is None else total
        total = total + (rival._evidence - before)
    return float(np.logaddexp.reduce(total))


def test_units_change_and_the_density_goes_on():
    models = alexp.ModelClass.from_blocks({"a": 2, "b": 2})
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(70, 4)) * np.geomspace(0.1, 10.0, 70)[:, None]
    rewards = rows @ np.array([0.5, 0.0, 0.2, 0.0]) + NOISE * rng.normal(size=70)
    monitor = Monitor(models, None, NOISE, np.ones(2), lambda known: SIZE)
    for n in (1, 2, 9, 64, 70):
        monitor.catch_up(Rewards(-1 - np.arange(n), rewards[:n], rows[:n]))
        assert monitor._history[-1][0] == n
        np.testing.assert_allclose(monitor._history[-1][1], slow_log_density(rows[:n], rewards[:n]), rtol=1e-9)
