"""A mixture of per-arm models on one bank per arm against the same mixture on dense factors."""

import numpy as np
import pytest

from alexp.common.codec import pack, unpack
from alexp.estimation.arms import ArmGrid, block_of
from alexp.estimation.mixture.mixture import Mixture, StudentMixture
from alexp.estimation.ridge.bank import RidgeGrid
from alexp.problem.candidates import Pending
from tests.estimation.test_arm_banks import ARMS, LOCAL, SIZE, choices, groups, row

RATIOS = (1e-3, 1e-2, 0.3)
CLOSE = {"rtol": 1e-10, "atol": 1e-11}


def pending_of(rows):
    return Pending(np.arange(len(rows)), np.arange(len(rows)), rows)


def mixtures(kind, **settings):
    columns, offsets = groups()
    divisors = np.array([1.0, 0.5, 2.0, 1.5])
    common = (ARMS * SIZE, columns, offsets, divisors, False)
    return [kind(*common, **settings, arm_blocks=blocks) for blocks in ((ARMS, SIZE), None)]


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (StudentMixture, {"ratio_grid": RATIOS}),
        (StudentMixture, {"ratio_grid": RATIOS, "forget": 0.95}),
        (Mixture, {"noise_std": 0.3, "norm_bound": 2.0, "noise_grid": (0.5, 1.0), "scale_grid": (1.0, 4.0)}),
    ],
)
def test_a_mixture_on_blocks_is_the_dense_mixture_at_every_step(kind, settings):
    rng = np.random.default_rng(0)
    blocks, dense = mixtures(kind, **settings)
    assert isinstance(blocks.grid, ArmGrid)
    assert isinstance(dense.grid, RidgeGrid)
    theta = rng.standard_normal(ARMS * SIZE)
    pending = np.empty((0, ARMS * SIZE))
    for t in range(50):
        offer = choices(rng)
        weights = blocks.weights()
        np.testing.assert_allclose(weights, dense.weights(), **CLOSE)
        np.testing.assert_allclose(blocks.noise_variances, dense.noise_variances, **CLOSE)
        for out in (pending_of(pending), pending_of(pending[:0])):
            moments = blocks.moments(weights, offer, out), dense.moments(weights, offer, out)
            np.testing.assert_allclose(*moments, rtol=1e-9, atol=1e-10)
            parts = zip(blocks.components(weights, offer, out), dense.components(weights, offer, out), strict=True)
            for one, other in parts:
                assert one[1:3] == other[1:3]
                np.testing.assert_allclose(one.share, other.share, **CLOSE)
                np.testing.assert_allclose(one[3:], other[3:], **CLOSE)
        for cell, model in ((0, 0), (2, 2), (1, 3)):
            draws = [one.draw(cell, model, np.random.default_rng(t), offer) for one in (blocks, dense)]
            np.testing.assert_allclose(*draws, **CLOSE)
        features = row(rng)
        y = float(features @ theta + 0.1 * rng.normal())
        for one in (blocks, dense):
            one.update(features, y)
        pending = np.vstack([pending[t % 7 == 0 :], row(rng)])[: 1 + t % 5]
    assert blocks.n_observations == dense.n_observations == 50


def test_believed_banks_are_kept_without_a_trace():
    """Whatever came before, what is believed depends on fits and pending rows alone, to the bit."""
    rng = np.random.default_rng(1)
    columns, offsets = groups()
    ridges = [np.full(len(LOCAL), ridge) for ridge in (0.1, 1.0)]
    grid, offer = ArmGrid((ARMS, SIZE), columns, offsets, ridges, False), choices(rng)
    weights, variances = np.full((2, 4), 0.125), np.ones((2, 4))
    pending = np.empty((0, ARMS * SIZE))
    for step in range(60):
        if step % 3 == 0 and len(pending):
            grid.update(pending[0], float(rng.normal()))
            pending = pending[1:]
        if step % 7 == 0:
            grid.update(row(rng), float(rng.normal()))  # which was not pending
        pending = pending[::-1] if step % 11 == 0 else np.vstack([pending, row(rng)])
        fresh = ArmGrid((ARMS, SIZE), columns, offsets, ridges, False)
        fresh.restore(unpack(pack(grid.state())))
        got, want = (one.moments(weights, variances, offer, pending_of(pending)) for one in (grid, fresh))
        np.testing.assert_array_equal(got, want)
        if step % 13 == 0:
            got, want = (one.moments(weights, variances, offer) for one in (grid, fresh))
            np.testing.assert_array_equal(got, want)


def test_roots_are_those_of_the_joint_covariance():
    rng = np.random.default_rng(2)
    columns, offsets = groups()
    ridges = [np.full(len(LOCAL), ridge) for ridge in (0.1, 1.0)]
    blocks = ArmGrid((ARMS, SIZE), columns, offsets, ridges, False)
    dense = RidgeGrid(ARMS * SIZE, columns, offsets, ridges, False)
    for _ in range(20):
        features, y = row(rng), float(rng.normal())
        blocks.update(features, y)
        dense.update(features, y)
    offer = choices(rng, 12)
    assert blocks.root_width(12) == 12
    members = np.array([0, 1, 3])
    means, roots = blocks.roots(1, members, offer)
    for k, j in enumerate(members):
        np.testing.assert_allclose(means[k], dense.cells[1].mean(int(j), offer), **CLOSE)
        v = dense.cells[1].triangle(int(j))
        phi = offer.table[columns[offsets[j] : offsets[j + 1]]].T
        np.testing.assert_allclose(roots[k] @ roots[k].T, phi @ np.linalg.inv(v.T @ v) @ phi.T, **CLOSE)


def test_constants_of_arms_take_a_degree_of_freedom_each():
    rng = np.random.default_rng(3)
    columns, offsets = groups([[0, 1], [0, 2]], ARMS, 3)
    plain = (9, columns, offsets, np.ones(2), True)
    shifts = np.zeros(ARMS), np.array([1e3, -1e3, 5e2])
    runs = [StudentMixture(*plain, ratio_grid=RATIOS, arm_blocks=(ARMS, 3)) for _ in shifts]
    units = []
    for t in range(30):
        arm = t % ARMS
        features = row(rng, arm, 3)
        features[3 * arm] = 1.0
        y = features[3 * arm + 1] + 0.1 * rng.normal()
        for run, shift in zip(runs, shifts, strict=True):
            run.update(features, float(y + shift[arm]))
        if t < ARMS:  # the first reward of an arm tells its level and nothing else
            assert runs[0].freedom == 2.0
            np.testing.assert_allclose(runs[0].weights(), np.full((3, 2), 1 / 6))
    assert runs[0].freedom == 2.0 + 30 - ARMS
    for run in runs:  # b0 is the variance of all rewards, levels included; evidence beyond it does not see the levels
        run._mean, run._squares = 0.0, 30.0
        run._forget_computed()
        units.append(run.weights())
    np.testing.assert_allclose(*units, rtol=1e-6)


def test_the_block_of_a_row():
    rng = np.random.default_rng(4)
    rows = np.array([row(rng) for _ in range(20)] + [np.zeros(ARMS * SIZE)])
    rows[::2, ::SIZE] = 0.0
    rows[::3, 1::SIZE] = 0.0
    for given in (rows, np.asfortranarray(rows)):
        out = np.empty(21, dtype=np.int64)
        block_of(given, SIZE, out)
        filled = (rows != 0.0).reshape(21, ARMS, SIZE).any(axis=2)
        assert out.tolist() == np.argmax(filled, axis=1).tolist()
