"""Posteriors with fantasies of pending rows, against dense formulas: means stay, variances shrink by rank one."""

from zlib import crc32

import numpy as np
import pytest

from alexp.estimation.mixture.mixture import Mixture, StudentMixture
from alexp.estimation.ridge.bank import RidgeBank, RidgeGrid
from alexp.problem.candidates import Choices, Pending, PendingBlock

COLUMNS, OFFSETS = np.array([0, 1, 2, 1, 3]), np.array([0, 3, 5])
GROUPS = ([0, 1, 2], [1, 3])
RIDGES = np.array([0.5, 2.0])


def data(n, seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 4)), rng.standard_normal(n)


def shrunk(inverse, points, rows):
    """Squared widths at points after rows, one rank-one formula after the other."""
    for row in rows:
        g = inverse @ row
        inverse = inverse - np.outer(g, g) / (1.0 + row @ g)
    return np.einsum("ni,ij,nj->n", points, inverse, points)


def pending(rows, indices=None):
    trials = np.array([crc32(row.tobytes()) for row in rows], dtype=np.int64)  # the same row, the same trial
    return Pending(trials, np.arange(len(rows)) if indices is None else np.array(indices), rows)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("members", [None, [0], [1], [0, 1]])
def test_a_bank_that_believes(intercept, members):
    bank = RidgeBank(COLUMNS, OFFSETS, RIDGES, intercept)
    seen, rewards = data(7, 0)
    for row, y in zip(seen, rewards, strict=True):
        bank.update(row, y)
    rows, points = data(3, 1)[0], data(6, 2)[0]
    before = bank.state()["factor"]
    believer = bank.with_fantasies(rows, None if members is None else np.array(members))
    np.testing.assert_array_equal(bank.state()["factor"], before)  # the bank itself believes nothing
    assert believer.n_observations == 7
    for local, j in enumerate(members or [0, 1]):
        own = [np.hstack([np.ones((len(part), int(intercept))), part[:, GROUPS[j]]]) for part in (seen, rows, points)]
        penalty = np.diag([0.0] * intercept + [RIDGES[j] ** 2] * len(GROUPS[j]))
        expected = shrunk(np.linalg.inv(own[0].T @ own[0] + penalty), own[2], own[1])
        np.testing.assert_allclose(believer.width(local, points) ** 2, expected, rtol=1e-10)
        np.testing.assert_allclose(believer.mean(local, points), bank.mean(j, points), rtol=1e-10, atol=1e-13)
        assert believer.residuals()[local] == pytest.approx(bank.residuals()[j], rel=1e-10)
    again = bank.with_fantasies(rows[:1]).with_fantasies(rows[1:])
    np.testing.assert_array_equal(again.state()["factor"], bank.with_fantasies(rows).state()["factor"])


@pytest.mark.parametrize("n", [2, 400], ids=["by-candidate", "by-coefficients"])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_mixture_shrinks_within_components_only(n, intercept):
    settings = {"noise_std": 0.3, "norm_bound": 1.0, "noise_grid": (1.0, 2.0)}
    mixture = Mixture(4, COLUMNS, OFFSETS, np.array([1.0, 1.5]), intercept, **settings)
    seen, rewards = data(6, 3)
    for row, y in zip(seen, rewards, strict=True):
        mixture.update(row, y)
    rows, points = data(3, 4)[0], data(n, 5)[0]
    table, weights = np.ascontiguousarray(points.T), mixture.weights()
    within, means = np.zeros(n), []
    for g, noise in enumerate(mixture.noise):
        for j, group in enumerate(GROUPS):
            own = [np.hstack([np.ones((len(p), int(intercept))), p[:, group]]) for p in (seen, rows, points)]
            ridge = mixture.ridges[g] * (1.0, 1.5)[j]
            inverse = np.linalg.inv(own[0].T @ own[0] + np.diag([0.0] * intercept + [ridge**2] * len(group)))
            within += weights[g, j] * noise**2 * shrunk(inverse, own[2], own[1])
            means.append(own[2] @ inverse @ own[0].T @ rewards)
    mean = weights.ravel() @ np.array(means)
    between = weights.ravel() @ (np.array(means) - mean) ** 2
    centre, variance = mixture.moments(weights, Choices(None, table), pending(rows))
    np.testing.assert_allclose(centre, mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(variance, within + between, rtol=1e-7)
    assert np.all(variance < mixture.moments(weights, Choices(None, table))[1])


def kinds(intercept):
    known = {"noise_std": 0.3, "norm_bound": 1.0, "noise_grid": (1.0, 2.0)}
    yield lambda: Mixture(4, COLUMNS, OFFSETS, np.array([1.0, 1.5]), intercept, **known)
    yield lambda: StudentMixture(4, COLUMNS, OFFSETS, np.array([1.0, 1.5]), intercept, ratio_grid=(1e-3, 0.1))


@pytest.mark.parametrize("intercept", [False, True])
def test_pending_trials_one_by_one_are_the_same_as_all_at_once(intercept):
    """Fits with fantasies are kept between asks: each question is answered as by a mixture that was never asked."""
    seen, rewards = data(12, 7)
    rows, choices = data(5, 8)[0], Choices(None, np.ascontiguousarray(data(40, 9)[0].T))
    questions = [rows[:0], rows[:1], rows[:2], rows[:4], rows[1:3], rows[:3], rows[:3], rows]
    for make in kinds(intercept):
        asked = make()
        for t, (row, y) in enumerate(zip(seen, rewards, strict=True)):
            asked.update(row, y)
            for question in questions:
                fresh = make()
                fresh.restore(asked.state())
                weights = asked.weights()
                assert weights.tobytes() == fresh.weights().tobytes()
                for one, two in zip(
                    asked.moments(weights, choices, pending(question)),
                    fresh.moments(weights, choices, pending(question)),
                    strict=True,
                ):
                    assert one.tobytes() == two.tobytes(), (t, len(question))


def test_a_question_is_computed_once_between_rewards(monkeypatch):
    mixture = next(iter(list(kinds(True))[1:]))()
    seen, rewards = data(6, 10)
    for row, y in zip(seen, rewards, strict=True):
        mixture.update(row, y)
    counts = {"residuals": 0, "rows": 0}
    whole, absorb = RidgeGrid.residuals, RidgeBank.with_fantasies

    def residuals(self):
        counts["residuals"] += 1
        return whole(self)

    def with_fantasies(self, rows, members=None, older=None):
        counts["rows"] += len(rows)
        return absorb(self, rows, members, older)

    monkeypatch.setattr(RidgeGrid, "residuals", residuals)
    monkeypatch.setattr(RidgeBank, "with_fantasies", with_fantasies)
    weights, rows = mixture.weights(), data(8, 11)[0]
    choices = Choices(None, np.ascontiguousarray(data(40, 12)[0].T))
    for k in range(9):
        mixture.moments(weights, choices, pending(rows[:k]))
    assert counts == {"residuals": 2, "rows": 8 * len(mixture.grid.cells)}


def in_blocks(rows, cuts):
    """The same pending rows, those before the last cut in blocks."""
    trials = np.arange(len(rows))
    parts = [PendingBlock(trials[a:b], trials[a:b], rows[a:b]) for a, b in zip([0, *cuts], cuts, strict=False)]
    return Pending(trials, trials, rows[cuts[-1] :], tuple(parts))


@pytest.mark.parametrize("intercept", [False, True])
def test_blocks_of_pending_rows_leave_what_their_rows_leave(intercept):
    for make in kinds(intercept):
        mixture = make()
        seen, rewards = data(6, 10)
        for row, y in zip(seen, rewards, strict=True):
            mixture.update(row, y)
        rows, weights = data(90, 11)[0], mixture.weights()
        table = np.ascontiguousarray(data(40, 12)[0].T)
        expected = mixture.moments(weights, Choices(None, table), Pending(np.arange(90), np.arange(90), rows))
        one_by_one = mixture.values(weights, Choices(None, table), Pending(np.arange(90), np.arange(90), rows), 1e-12)
        for cuts in ([40], [30, 31, 80], [90]):
            blocks = in_blocks(rows, cuts)
            np.testing.assert_array_equal(blocks.rows, rows)
            found = mixture.moments(weights, Choices(None, table), blocks)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
            found = mixture.values(weights, Choices(None, table), blocks, 1e-12)
            np.testing.assert_allclose(found.variance, one_by_one.variance, rtol=1e-9)
            np.testing.assert_allclose(found.mean, one_by_one.mean, rtol=1e-9, atol=1e-12)


def test_a_block_that_stays_is_condensed_once(monkeypatch):
    mixture, gathered = next(iter(kinds(True)))(), RidgeBank.gathered
    seen, rewards = data(6, 10)
    rows, counts = data(90, 11)[0], []

    def gather(self, rows, members):
        counts.append(len(rows))
        return gathered(self, rows, members)

    monkeypatch.setattr(RidgeBank, "gathered", gather)
    blocks = in_blocks(rows, [40, 80])
    for row, y in zip(seen, rewards, strict=True):
        mixture.update(row, y)
        mixture.moments(mixture.weights(), Choices(None, np.ascontiguousarray(rows.T)), blocks)
    assert sum(counts) == 80


@pytest.mark.parametrize("intercept", [False, True])
def test_the_largest_mean_of_each_component(intercept):
    for make in kinds(intercept):
        mixture = make()
        for row, y in zip(*data(6, 10), strict=True):
            mixture.update(row, y)
        table = np.ascontiguousarray(data(600, 13)[0].T)
        weights, choices = mixture.weights(), Choices(None, table)
        expected = mixture.values(weights, choices, Pending(*np.empty((2, 0), dtype=np.int64), np.empty((0, 4))), 1e-3)
        found = mixture.largest_means(weights, choices, 1e-3)
        np.testing.assert_allclose(found, expected.mean.max(axis=1), rtol=1e-10)
