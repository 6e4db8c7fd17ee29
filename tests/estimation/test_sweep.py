"""The fused argmax sweep against slow NumPy twins that it must equal bit for bit."""

from __future__ import annotations

import multiprocessing
import pickle
from itertools import pairwise

import numpy as np
import pytest

from alexp.common.ties import tie_of
from alexp.estimation.ridge import bank as ridge_module
from alexp.estimation.ridge.bank import RidgeBank
from tests.common import ties_twin


def random_bank(rng, sizes, n_columns, observations=20, intercept=False, ridge=None, threads=1, scale=1.0):
    groups = [rng.choice(n_columns, size, replace=False) for size in sizes]
    columns = np.concatenate(groups).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    ridges = rng.uniform(0.1, 2.0, len(sizes)) if ridge is None else np.full(len(sizes), ridge)
    bank = RidgeBank(columns, offsets, ridges, intercept=intercept, threads=threads)
    for _ in range(observations):
        bank.update(rng.normal(size=n_columns), scale * rng.normal())
    return bank, groups


def unpacked_factor(bank, size, start):
    """Dense R (n, n) of one model from the packed rows, and where the next model starts."""
    n = int(bank.intercept) + size + 1
    packed = bank.state()["factor"]
    dense = np.zeros((n, n))
    for k in range(n):
        dense[k, k:] = packed[start : start + n - k]
        start += n - k
    return dense, start


def twin_coefficients(factor, lead):
    size = len(factor) - 1 - lead
    theta = np.zeros(size)
    for k in range(size - 1, -1, -1):
        total = factor[lead + k, -1]
        for i in range(k + 1, size):
            total = total - factor[lead + k, lead + i] * theta[i]
        theta[k] = total / factor[lead + k, lead + k]
    return theta


def twin_mean(theta, phi):
    mean = np.zeros(phi.shape[1])
    for k in range(len(theta)):
        mean = mean + theta[k] * phi[k]
    return mean


def twin_quadratic(factor, lead, phi):
    constant = 1.0 / factor[0, 0] if lead and factor[0, 0] > 0 else 0.0
    quadratic = np.full(phi.shape[1], constant * constant)
    coordinates = []
    for k in range(len(phi)):
        u = phi[k] - (factor[0, 1 + k] * constant if lead else 0.0)
        for i in range(k):
            u = u - factor[lead + i, lead + k] * coordinates[i]
        u = u * (1.0 / factor[lead + k, lead + k])
        coordinates.append(u)
        quadratic = quadratic + u * u
    return quadratic


def twin_scores(bank, groups, table, width):
    start, lead = 0, int(bank.intercept)
    scores = []
    for j, group in enumerate(groups):
        factor, start = unpacked_factor(bank, len(group), start)
        phi = table[group]
        score = twin_mean(twin_coefficients(factor, lead), phi)
        if width[j] > 0:
            score = score + width[j] * np.sqrt(twin_quadratic(factor, lead, phi))
        scores.append(score)
    return np.array(scores)


def twin_winners(scores):
    """The first score of every row that ties with the largest; their size is their scale."""
    top = scores.max(axis=1, keepdims=True)
    return (scores >= top - ties_twin.tolerance(top, -np.inf)).argmax(axis=1)


def assert_equals_twin(bank, groups, table, width):
    """With ties, and to the last bit as version 1.0.0 had it."""
    scores = twin_scores(bank, groups, table, width)
    np.testing.assert_array_equal(bank.argmax_ucb(table, width), twin_winners(scores))
    with tie_of(0.0):
        np.testing.assert_array_equal(bank.argmax_ucb(table, width), scores.argmax(axis=1))
    return scores


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("candidates", [1, 2, 15, 16, 17, 255, 256, 257, 1000])
def test_argmax_equals_the_twin_for_every_size_and_block_remainder(candidates, intercept):
    rng = np.random.default_rng(candidates)
    sizes = [*range(14), 3, 3, 3, 4, 50]
    bank, groups = random_bank(rng, sizes, 50, intercept=intercept)
    table = rng.normal(size=(50, candidates))
    for width in (0.0, 1e-3, 0.3, 5.0, 1e9):
        assert_equals_twin(bank, groups, table, np.full(len(sizes), width))
    assert_equals_twin(bank, groups, table, np.where(np.arange(len(sizes)) % 2, 1.0, 0.0))


@pytest.mark.parametrize("intercept", [False, True])
def test_coefficients_mean_and_width_equal_the_twin_bit_for_bit(intercept):
    rng = np.random.default_rng(5)
    sizes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 23]
    bank, groups = random_bank(rng, sizes, 30, intercept=intercept)
    points = rng.normal(size=(601, 30))
    theta, intercepts = bank.coefficients()
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    start = 0
    for j, group in enumerate(groups):
        factor, start = unpacked_factor(bank, len(group), start)
        own = theta[offsets[j] : offsets[j + 1]]
        np.testing.assert_array_equal(own, twin_coefficients(factor, int(intercept)))
        phi = points[:, group].T
        mean = twin_mean(own, phi)
        np.testing.assert_array_equal(bank.mean(j, points), mean + intercepts[j] if intercept else mean)
        np.testing.assert_array_equal(bank.width(j, points), np.sqrt(twin_quadratic(factor, int(intercept), phi)))


def test_every_order_of_close_scores_survives_the_screen():
    """Candidates a few rounding errors apart: a screen without enough margin would drop a winner."""
    rng = np.random.default_rng(0)
    separated = 0
    for trial in range(60):
        sizes = [1, 2, 3, 4, 5, 9]
        bank, groups = random_bank(rng, sizes, 9, intercept=bool(trial % 2))
        base = rng.normal(size=(9, 1)) * 10.0 ** rng.integers(-3, 4)
        table = base * (1.0 + rng.integers(-4, 5, size=(9, 400)) * 2.0**-52)
        scores = assert_equals_twin(bank, groups, table, 10.0 ** rng.uniform(-3, 3, len(sizes)))
        separated += int(np.sum(scores.max(axis=1) > scores.min(axis=1)))
    assert separated > 300  # the near-ties are real: nearly all rows hold different scores


def test_scores_that_cancel_to_zero_are_ranked_exactly():
    """mean + width * s near 0 from large opposite parts: the margin must be relative to both parts."""
    bank = RidgeBank(np.array([0]), np.array([0, 1]), 1.0)
    bank.update(np.array([3.0]), -1000.0)
    theta = bank.coefficients()[0][0]
    factor, _ = unpacked_factor(bank, 1, 0)
    width = -theta * factor[0, 0]  # for positive features theta * x + width * x / R is zero up to rounding
    table = np.random.default_rng(1).uniform(1e-3, 1e3, size=(1, 3000))
    scores = assert_equals_twin(bank, [np.array([0])], table, np.array([width]))
    assert np.abs(scores).max() < 1e-9


@pytest.mark.parametrize("magnitude", [1e-200, 1e-158, 1e-139, 1.0, 1e139, 1e158, 1e200])
@pytest.mark.parametrize("size", [1e-170, 1e-161, 1e-160, 1.0, 1e15, 1e60])
def test_squares_that_leave_the_float_range(magnitude, size):
    """Widths and features whose squares under- or overflow, on candidates that are nearly tied."""
    rng = np.random.default_rng(3)
    sizes = [1, 2, 3, 4, 7] * 4
    bank, groups = random_bank(rng, sizes, 8, scale=magnitude)
    width = magnitude * rng.uniform(0.5, 2.0, len(sizes))
    for spread in (1.0, 1e-6, 1e-12):
        table = size * (rng.normal(size=(8, 1)) + spread * rng.normal(size=(8, 500)))
        assert np.all(np.isfinite(assert_equals_twin(bank, groups, table, width)))


def test_a_width_with_infinite_square_still_finds_the_candidate_without_width():
    bank = RidgeBank(np.array([0]), np.array([0, 1]), 1.0)
    bank.update(np.array([1.0]), -1e162)
    table = np.random.default_rng(0).uniform(0.1, 1.0, size=(1, 600))
    table[0, 300] = 0.0
    assert bank.argmax_ucb(table, 1e158).tolist() == [300]


@pytest.mark.parametrize("threads", [1, 3])
def test_the_first_of_scores_that_creep_up_within_the_tolerance(monkeypatch, threads):
    """Neighbours tie and the ends do not: what ties with the best so far may be worse than what ties with the best."""
    monkeypatch.setattr(ridge_module, "_THREADED_SWEEP", 0)
    rng, met = np.random.default_rng(5), set()
    for _ in range(200):
        bank, groups = random_bank(rng, [2], 2, threads=threads)
        steps = rng.integers(0, 40, 700) * 0.1 * ties_twin.TIE
        table = np.ascontiguousarray(np.ones((2, 1)) * (1.0 + steps))
        bank._winners = rng.integers(0, 700, 1)
        scores = assert_equals_twin(bank, groups, table, np.array([3.0]))
        met.add(int(twin_winners(scores)[0]) == int(scores[0].argmax()))
    assert met == {False, True}


def test_first_of_duplicated_candidates_wins():
    rng = np.random.default_rng(2)
    sizes = [1, 2, 3, 4, 6, 11]
    bank, groups = random_bank(rng, sizes, 12, intercept=True)
    block = rng.normal(size=(12, 130))
    table = np.ascontiguousarray(np.hstack([block, block[:, ::-1], block, block]))
    for width in (0.0, 0.7):
        winners = bank.argmax_ucb(table, np.full(len(sizes), width))
        assert np.all(winners < 260)
        assert_equals_twin(bank, groups, table, np.full(len(sizes), width))
    constant = np.ascontiguousarray(np.repeat(block[:, :1], 999, axis=1))
    assert np.all(bank.argmax_ucb(constant, 1.0) == 0)
    assert np.all(bank.argmax_linear(constant, *bank.coefficients()) == 0)


def test_even_features_cannot_tell_x_from_minus_x_so_the_first_of_the_two_wins():
    rng = np.random.default_rng(4)
    x = np.linspace(-1.0, 1.0, 1001)
    rng.shuffle(x)
    table = np.ascontiguousarray(np.array([x**2, x**4, x**6, np.abs(x)]))
    bank = RidgeBank(np.arange(4), np.array([0, 4]), 0.5)
    for i in rng.integers(0, len(x), 12):
        bank.update(table[:, i], float(np.sin(3 * x[i])))
    for width in (0.0, 0.1, 3.0):
        winner = int(bank.argmax_ucb(table, width)[0])
        twin = int(np.flatnonzero(x == -x[winner])[0])
        assert winner <= twin


@pytest.mark.parametrize("intercept", [False, True])
def test_scaling_rewards_and_widths_by_1024_changes_no_argmax(intercept):
    rng = np.random.default_rng(6)
    sizes = [1, 2, 3, 4, 5, 10] * 5
    plain, groups = random_bank(rng, sizes, 12, observations=0, intercept=intercept, ridge=0.3)
    scaled = RidgeBank(np.concatenate(groups), np.r_[0, np.cumsum(sizes)], 0.3, intercept=intercept)
    table = rng.normal(size=(12, 513))
    width = rng.uniform(0, 2, len(sizes))
    for _ in range(15):
        row, y = rng.normal(size=12), rng.normal()
        plain.update(row, y)
        scaled.update(row, 1024 * y)
        np.testing.assert_array_equal(plain.argmax_ucb(table, width), scaled.argmax_ucb(table, 1024 * width))
    np.testing.assert_array_equal(1024 * plain.coefficients()[0], scaled.coefficients()[0])


def test_argmax_linear_equals_the_twin_and_the_greedy_case_of_ucb():
    rng = np.random.default_rng(7)
    sizes = [0, 1, 2, 3, 4, 5, 8, 13]
    bank, groups = random_bank(rng, sizes, 20)
    table = rng.normal(size=(20, 777))
    theta = rng.normal(size=sum(sizes))
    cuts = np.cumsum(sizes)[:-1]
    means = [twin_mean(part, table[g]) for part, g in zip(np.split(theta, cuts), groups, strict=True)]
    expected = twin_winners(np.array(means))
    np.testing.assert_array_equal(bank.argmax_linear(table, theta, np.zeros(len(sizes))), expected)
    np.testing.assert_array_equal(
        bank.argmax_linear(table, *bank.coefficients()), bank.argmax_ucb(table, np.zeros(len(sizes)))
    )


def test_before_any_observation_the_intercept_is_left_out():
    rng = np.random.default_rng(8)
    bank, groups = random_bank(rng, [1, 2, 3, 5], 6, observations=0, intercept=True, ridge=0.5)
    table = rng.normal(size=(6, 300))
    for j, group in enumerate(groups):
        norms = np.linalg.norm(table[group], axis=0)
        np.testing.assert_allclose(bank.width(j, table.T), norms / 0.5, rtol=1e-14)
        np.testing.assert_array_equal(bank.mean(j, table.T), 0.0)
        assert bank.argmax_ucb(table, 1.0)[j] == norms.argmax()


@pytest.mark.parametrize("sizes", [[3] * 40, [1, 50, 2, 3, 1, 1, 1, 20, 7, 4, 4, 4], [30], [2, 3]])
def test_results_do_not_depend_on_the_number_of_threads(monkeypatch, sizes):
    monkeypatch.setattr(ridge_module, "_THREADED_FACTOR", 0)
    monkeypatch.setattr(ridge_module, "_THREADED_SWEEP", 0)
    table = np.random.default_rng(1).normal(size=(50, 600))
    table[:, 300:] = table[:, :300]  # ties across the split between threads
    table = np.ascontiguousarray(table)
    results = []
    for threads in (1, 2, 3):
        rng = np.random.default_rng(9)
        bank, _ = random_bank(rng, sizes, 50, threads=threads)
        normals = rng.normal(size=sum(sizes))
        results.append(
            [
                bank.state()["factor"],
                bank.argmax_ucb(table, 1.0),
                bank.argmax_linear(table, *bank.coefficients()),
                bank.argmax_ucb(table[:, :2].copy(), 1.0),
                bank.coefficients()[0],
                bank.sample(normals, 0.5),
            ]
        )
    for one, other in pairwise(results):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
    assert results[0][1].max() < 300


def _argmax_in_child(payload, queue):
    bank, table = pickle.loads(payload)
    queue.put(bank.argmax_ucb(table, 1.0))


def test_a_forked_child_makes_its_own_threads(monkeypatch):
    monkeypatch.setattr(ridge_module, "_THREADED_SWEEP", 0)
    rng = np.random.default_rng(10)
    bank, _ = random_bank(rng, [3] * 20, 10, threads=2)
    table = rng.normal(size=(10, 100))
    expected = bank.argmax_ucb(table, 1.0)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_argmax_in_child, args=(pickle.dumps((bank, table)), queue))
    child.start()
    np.testing.assert_array_equal(queue.get(timeout=60), expected)
    child.join(60)


def test_bad_tables_and_widths_are_refused():
    bank = RidgeBank(np.array([0, 2]), np.array([0, 1, 2]), 1.0)
    table = np.ones((3, 5))
    with pytest.raises(ValueError, match="C-contiguous"):
        bank.argmax_ucb(np.asfortranarray(table), 1.0)
    with pytest.raises(ValueError, match="C-contiguous float64"):
        bank.argmax_ucb(table.astype(np.float32), 1.0)
    with pytest.raises(ValueError, match=r"P >= 3"):
        bank.argmax_ucb(table[:2], 1.0)
    with pytest.raises(ValueError, match="N >= 1"):
        bank.argmax_ucb(table[:, :0].copy(), 1.0)
    with pytest.raises(ValueError, match="width must not be negative"):
        bank.argmax_ucb(table, np.array([1.0, -1.0]))
    with pytest.raises(ValueError, match="width must hold finite"):
        bank.argmax_ucb(table, np.array([1.0, np.nan]))
    with pytest.raises(ValueError, match=r"width must have shape \(2,\)"):
        bank.argmax_ucb(table, np.ones(3))
    with pytest.raises(ValueError, match=r"coefficients must have shape \(2,\)"):
        bank.argmax_linear(table, np.ones(3), np.ones(2))
    with pytest.raises(ValueError, match=r"intercepts must have shape \(2,\)"):
        bank.argmax_linear(table, np.ones(2), np.ones(1))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("candidates", [40, 2047, 2048, 2049, 5000])
def test_no_guess_changes_the_result(candidates, intercept):
    rng = np.random.default_rng(candidates)
    bank, groups = random_bank(rng, [1, 2, 3, 4, 5] * 6, 12, intercept=intercept)
    table = np.round(rng.normal(size=(12, candidates)), 1)  # many equal candidates
    table[:, candidates // 2 :] = table[:, : candidates - candidates // 2]  # each of them again, further on
    for width in (1e-3, 0.3, 5.0):
        scores = assert_equals_twin(bank, groups, table, np.full(30, width))
        ranked = np.argsort(-scores, axis=1, kind="stable")
        for guesses in (*ranked.T[:6], rng.integers(-1, candidates + 9, 30), np.full(30, candidates)):
            bank._winners = guesses.astype(np.int64)
            assert_equals_twin(bank, groups, table, np.full(30, width))
