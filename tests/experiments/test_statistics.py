import numpy as np

from alexp_experiments.core.statistics import estimate, is_stuck, mean_and_error, ratio


def test_intervals_cover_at_the_stated_rate():
    rng = np.random.default_rng(0)
    hits = sum(found.low < 1.0 < found.high for found in (estimate(rng.normal(1.0, 2.0, 8)) for _ in range(2000)))
    print(f"coverage {hits / 2000:.3f}")
    assert 0.935 < hits / 2000 < 0.965


def test_one_value_has_no_interval():
    found = estimate([3.0])
    assert found.mean == 3.0
    assert np.isnan([found.error, found.low, found.high]).all()


def test_curves():
    mean, error = mean_and_error(np.array([[1.0, 2.0], [3.0, 2.0]]))
    assert mean.tolist() == [2.0, 2.0]
    assert error.tolist() == [1.0, 0.0]
    assert mean_and_error(np.array([[1.0, 2.0]]))[1].tolist() == [0.0, 0.0]


def test_ratio_pairs_seeds_when_told_to():
    rng = np.random.default_rng(1)
    base = rng.uniform(1.0, 10.0, 30)
    paired, loose = ratio(2.0 * base, base), ratio(2.0 * base, base, paired=False)
    assert paired.mean == loose.mean == 2.0
    assert paired.high - paired.low < 1e-9 < loose.high - loose.low


def test_stuck_runs_still_pay_at_the_end():
    learnt = np.minimum(np.arange(100.0), 20.0)
    stuck = 0.2 * np.arange(100.0)
    assert is_stuck(np.array([learnt, stuck, np.zeros(100)])).tolist() == [False, True, False]
