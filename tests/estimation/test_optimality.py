"""How likely each choice is the best: the compiled lines against slow twins, against draws, and where it is exact."""

import math
from itertools import pairwise

import numpy as np
import pytest
from numba import njit
from scipy.stats import norm

from alexp.common.ties import TIE
from alexp.estimation.mixture import optimality
from alexp.estimation.mixture.mixture import Mixture, StudentMixture
from alexp.problem.candidates import Choices

GROUPS = [[0, 1], [1, 2], [0, 2, 3], [3]]
COLUMNS, OFFSETS = np.concatenate(GROUPS), np.array([0, 2, 4, 7, 8])
THETA = np.array([1.0, -0.5, 0.0, 0.0])


@njit
def envelope(base, slope, out):
    optimality.add_envelope(base, slope, 1.0, out)


@njit
def between(low, high):
    return optimality.between(low, high)


def student(t, seed=0, intercept=False):
    return feed(StudentMixture(4, COLUMNS, OFFSETS, np.ones(4), intercept, ratio_grid=(1e-2, 0.5)), t, seed)


def gaussian(t, seed=0, intercept=False, columns=COLUMNS, offsets=OFFSETS):
    settings = {"noise_std": 0.5, "norm_bound": 1.0, "noise_grid": (0.5, 1.0)}
    return feed(Mixture(4, columns, offsets, np.ones(len(offsets) - 1), intercept, **settings), t, seed)


def feed(mixture, t, seed):
    rng = np.random.default_rng(seed)
    for row in rng.standard_normal((t, 4)):
        mixture.update(row, float(row @ THETA) + 0.5 * rng.standard_normal())
    return mixture


def points(n, seed=5):
    return Choices(None, np.random.default_rng(seed).standard_normal((4, n)))


def shares_of_draws(mixture, choices, n, seed=7):
    """The same by brute force: n joint draws from the mixture."""
    rng, weights = np.random.default_rng(seed), mixture.weights()
    out = np.zeros(len(choices))
    for component in rng.choice(weights.size, n, p=weights.ravel()):
        cell, model = divmod(int(component), weights.shape[1])
        out[np.argmax(mixture.draw(cell, model, rng, choices))] += 1.0 / n
    return out


@pytest.mark.parametrize("intercept", [False, True])
def test_roots_give_the_posterior(intercept):
    mixture, choices = gaussian(9, intercept=intercept), points(6)
    for cell in range(2):
        means, roots = mixture.grid.roots(cell, np.arange(4), choices)
        for j in range(4):
            bank = mixture.grid.cells[cell]
            own = bank.triangle(j)[int(intercept) :, int(intercept) :]
            phi = choices.table[GROUPS[j]].T
            assert roots[j] @ roots[j].T == pytest.approx(phi @ np.linalg.inv(own.T @ own) @ phi.T, abs=1e-12)
            theta = bank.coefficients()[0][OFFSETS[j] : OFFSETS[j + 1]]
            assert means[j] == pytest.approx(phi @ theta, abs=1e-12)


def slow_envelope(base, slope):
    """Cut the line at all crossings; whoever is highest in the middle of a piece owns it."""
    pairs = [(i, j) for i in range(len(base)) for j in range(i) if slope[i] != slope[j]]
    cuts = sorted((base[j] - base[i]) / (slope[i] - slope[j]) for i, j in pairs)
    out, ends = np.zeros(len(base)), [-np.inf, *cuts, np.inf]
    for low, high in pairwise(ends):
        middle = np.clip(0.5 * (max(low, -1e6) + min(high, 1e6)), -1e6, 1e6)
        out[np.argmax(base + middle * slope)] += norm.cdf(high) - norm.cdf(low)
    return out


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_envelopes_against_their_twin(n):
    rng = np.random.default_rng(n)
    for _ in range(50):
        base, slope, out = rng.standard_normal(n), rng.integers(-3, 4, n) / 2.0, np.zeros(n)
        envelope(base, slope, out)
        assert out == pytest.approx(slow_envelope(base, slope), abs=1e-12)


def test_of_equal_lines_the_first_is_meant():
    out = np.zeros(3)
    envelope(np.array([0.0, 0.0, -1.0]), np.array([1.0, 1.0, 1.0]), out)
    assert out.tolist() == [1.0, 0.0, 0.0]


def test_tails_keep_their_digits():
    for low in (-40.0, -9.0, 9.0, 30.0):
        assert between(low, low + 1.0) == pytest.approx(
            norm.sf(abs(low)) - norm.sf(abs(low) + 1.0) if low > 0 else norm.cdf(low + 1.0) - norm.cdf(low), rel=1e-9
        )


def slow_chances(means, roots, scales, counts, first, normals, stretches, n):
    """`add_chances` in plain words, without its choice of rivals: lines for each rival, weighted as chosen."""
    out, draw = np.zeros(n), first
    for c, number in enumerate(counts):
        lead = int(np.argmax(means[c]))
        apart = roots[c] - roots[c][lead]
        far = np.sum(apart**2, axis=1)
        z = (means[c][lead] - means[c]) ** 2 / np.where(far > 0.0, scales[c] ** 2 * far, 1.0)
        ends = np.cumsum(np.where(far > 0.0, (1.0 + z) ** -2.0, 0.0))
        for _ in range(number):
            point = ends[-1] * (draw * (math.sqrt(5.0) - 1.0) / 2.0 % 1.0)
            rival = min(int(np.searchsorted(ends, point, side="right")), n - 1)
            way = apart[rival] / np.sqrt(far[rival])
            rest = normals[draw] - way * (way @ normals[draw])
            scale = scales[c] * stretches[draw]
            out += slow_envelope(means[c] + scale * roots[c] @ rest, scale * roots[c] @ way)
            draw += 1
    return out


def test_chances_against_their_twin():
    rng = np.random.default_rng(0)
    means, roots = rng.standard_normal((3, 5)), rng.standard_normal((3, 5, 4))
    scales, counts = np.array([0.5, 1.0, 2.0]), np.array([4, 0, 7])
    normals, stretches = rng.standard_normal((20, 4)), rng.uniform(0.5, 2.0, 20)
    out = np.zeros(5)
    optimality.add_chances(means, roots, scales, counts, 3, normals, stretches, 1.0, TIE, out)
    assert out == pytest.approx(slow_chances(means, roots, scales, counts, 3, normals, stretches, 5), abs=1e-10)


@pytest.mark.parametrize("make", [gaussian, student])
@pytest.mark.parametrize(("t", "intercept"), [(0, False), (3, True), (25, False)])
def test_agrees_with_many_draws(make, t, intercept):
    mixture, choices = make(t, intercept=intercept), points(5)
    truth = shares_of_draws(mixture, choices, 20_000)
    found = [mixture.chances(mixture.weights(), choices, np.random.default_rng(seed)) for seed in range(40)]
    assert np.allclose([one.sum() for one in found], 1.0)
    error = np.sqrt(truth * (1.0 - truth) / 20_000) + np.std(found, axis=0) / np.sqrt(40) + 1e-4
    assert np.all(np.abs(np.mean(found, axis=0) - truth) < 4.0 * error)
    assert 0.5 * np.abs(np.array(found) - truth).sum(axis=1).mean() < 0.04  # total variation of a single answer


def test_two_choices_under_one_component_are_exact():
    mixture, choices = gaussian(6, columns=np.array([0, 1]), offsets=np.array([0, 2])), points(2)
    weights = np.array([[1.0], [0.0]])
    found = mixture.chances(weights, choices, np.random.default_rng(1))
    (means,), (roots,) = mixture.grid.roots(0, np.array([0]), choices)
    z = (means[0] - means[1]) / (mixture.noise[0] * np.linalg.norm(roots[0] - roots[1]))
    assert found == pytest.approx([norm.cdf(z), norm.sf(z)], rel=1e-12)


def test_the_hopeless_have_small_chances_and_not_none():
    mixture = gaussian(400, columns=np.array([0, 1]), offsets=np.array([0, 2]))
    choices = Choices(None, np.array([[1.0, 0.8, 1.1], [0.0, 0.0, 0.4], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))
    found = mixture.chances(mixture.weights(), choices, np.random.default_rng(1))
    assert 0.0 < found.min() < 1e-6


def test_a_function_of_the_random_numbers_alone():
    mixture, choices = student(12), points(7)
    one, other = (mixture.chances(mixture.weights(), choices, np.random.default_rng(3)) for _ in range(2))
    assert one.tobytes() == other.tobytes()


def test_evenly_spaced_points():
    weights = np.array([0.0, 0.5, 0.25, 0.0, 0.25])
    for offset in (0.0, 0.5, 0.999):
        assert optimality.evenly(weights, 8, offset).tolist() == [0, 4, 2, 0, 2]
    assert optimality.evenly(np.array([0.3, 0.7]), 1000, 0.2).sum() == 1000


def test_large_tables_are_cut_to_the_promising(monkeypatch):
    monkeypatch.setattr(optimality, "MOST", 10)
    mixture, choices = student(10), points(60)
    found = mixture.chances(mixture.weights(), choices, np.random.default_rng(0))
    mean, variance = mixture.moments(mixture.weights(), choices)
    best = np.argsort(-(mean + 2.0 * np.sqrt(variance)))[:10]
    assert set(np.flatnonzero(found)) <= set(best.tolist())
    assert found.sum() == pytest.approx(1.0)


def test_chunks_do_not_matter(monkeypatch):
    mixture, choices = student(10), points(6)
    whole = mixture.chances(mixture.weights(), choices, np.random.default_rng(0))
    monkeypatch.setattr(optimality, "_CHUNK", 1)
    assert mixture.chances(mixture.weights(), choices, np.random.default_rng(0)) == pytest.approx(whole, abs=1e-14)
