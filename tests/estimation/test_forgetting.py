"""Old rewards fade: factors, evidence and moments against weighted regressions fitted anew at every step."""

import numpy as np
import pytest

import alexp
from alexp.common import codec
from alexp.estimation.mixture.mixture import Mixture, StudentMixture
from alexp.estimation.ridge.bank import RidgeBank
from alexp.problem.candidates import Choices

GROUPS = [[0, 1], [1, 2], [0, 2, 3], [3]]
COLUMNS, OFFSETS = np.concatenate(GROUPS), np.array([0, 2, 4, 7, 8])
RIDGE = np.array([0.1, 1.0, 0.5, 2.0])
FORGET = 0.9


def data(t, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((t, 4))
    return rows, rows @ [1.0, -0.5, 0.0, 0.0] + 3.0 + 0.3 * rng.standard_normal(t)


def ages(t):
    return FORGET ** np.arange(t - 1.0, -1.0, -1.0)


class Slow:
    """One weighted ridge regression, from all data: sum w (y - c - phi'theta)^2 + ridge^2 ||theta||^2."""

    def __init__(self, rows, rewards, weights, group, ridge, intercept):
        own = rows[:, group] if not intercept else np.column_stack([np.ones(len(rows)), rows[:, group]])
        penalty = ridge**2 * np.eye(own.shape[1])
        if intercept:
            penalty[0, 0] = 0.0
        self.gram = own.T @ (weights[:, None] * own) + penalty
        self.theta = np.linalg.lstsq(self.gram, own.T @ (weights * rewards), rcond=None)[0]
        rest = rewards - own @ self.theta
        self.residual = weights @ rest**2 + self.theta @ penalty @ self.theta
        inner = self.gram[1:, 1:] - np.outer(self.gram[1:, 0], self.gram[0, 1:]) / self.gram[0, 0]
        inner = inner if intercept else self.gram
        self.determinant = np.linalg.slogdet(inner / ridge**2)[1]
        self.lead = int(intercept)

    def moments(self, points, group):
        own = points[:, group] if not self.lead else np.column_stack([np.ones(len(points)), points[:, group]])
        return own @ self.theta, np.einsum("ni,ni->n", own, np.linalg.solve(self.gram, own.T).T)


@pytest.mark.parametrize("intercept", [False, True])
def test_a_bank_equals_weighted_regressions_at_every_step(intercept):
    rows, rewards = data(60)
    bank = RidgeBank(COLUMNS, OFFSETS, RIDGE, intercept, forget=FORGET)
    points = data(5, seed=1)[0]
    for t in range(1, 61):
        bank.update(rows[t - 1], rewards[t - 1])
        for j, group in enumerate(GROUPS):
            slow = Slow(rows[:t], rewards[:t], ages(t), group, RIDGE[j], intercept)
            mean, variance = slow.moments(points, group)
            assert bank.mean(j, points) == pytest.approx(mean, rel=1e-8, abs=1e-8)
            assert bank.width(j, points) ** 2 == pytest.approx(variance, rel=1e-8)
            assert bank.residuals()[j] == pytest.approx(slow.residual, rel=1e-8, abs=1e-8)
            assert bank.log_determinants()[j] == pytest.approx(slow.determinant, rel=1e-8, abs=1e-8)


def test_the_ridge_stays_when_everything_is_forgotten():
    bank = RidgeBank(COLUMNS, OFFSETS, RIDGE, forget=0.5)
    bank.update(np.ones(4), 5.0)
    for _ in range(3000):
        bank.update(np.zeros(4), 0.0)
    assert bank.log_determinants() == pytest.approx(np.zeros(4), abs=1e-12)
    assert bank.coefficients()[0] == pytest.approx(np.zeros(8), abs=1e-12)
    fresh = RidgeBank(COLUMNS, OFFSETS, RIDGE, forget=0.5)
    fresh.restore(codec.unpack(codec.pack(bank.state())))  # its diagonal has not fallen below the ridge


@pytest.mark.parametrize("intercept", [False, True])
def test_evidence_of_known_noise_is_a_power_likelihood(intercept):
    rows, rewards = data(25)
    settings = {"noise_std": 0.3, "norm_bound": 2.0, "noise_grid": (0.5, 2.0), "scale_grid": (1.0, 4.0)}
    mixture = Mixture(4, COLUMNS, OFFSETS, np.ones(4), intercept, forget=FORGET, **settings)
    for row, y in zip(rows, rewards, strict=True):
        mixture.update(row, y)
    w, scores = ages(25), []
    for a in (0.5, 2.0):
        for b in (1.0, 4.0):
            noise = a * 0.3
            fits = [Slow(rows, rewards, w, g, noise / (2.0 * b), intercept) for g in GROUPS]
            volume = (w.sum() - intercept) * np.log(a)
            scores.append([-f.residual / (2.0 * noise**2) - 0.5 * f.determinant - volume for f in fits])
    scores = np.array(scores)
    assert mixture.weights() == pytest.approx(np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum())


@pytest.mark.parametrize("intercept", [False, True])
def test_evidence_of_unknown_noise(intercept):
    rows, rewards = data(25)
    ratios = (1e-3, 0.1)
    mixture = StudentMixture(4, COLUMNS, OFFSETS, np.ones(4), intercept, ratio_grid=ratios, forget=FORGET)
    for row, y in zip(rows, rewards, strict=True):
        mixture.update(row, y)
    w = ages(25)
    mass = w.sum() - intercept
    unit = w @ (rewards - w @ rewards / w.sum()) ** 2 / w.sum()
    scores, scales = [], []
    for ratio in ratios:
        fits = [Slow(rows, rewards, w, g, ratio**0.5, intercept) for g in GROUPS]
        excess = np.array([unit + f.residual / (2.0 * ratio) for f in fits])
        volume = mass * np.log(ratio) + np.array([f.determinant for f in fits])
        scores.append(-(1.0 + mass / 2.0) * np.log(excess) - 0.5 * volume)
        scales.append(ratio * excess / (1.0 + mass / 2.0))
    scores = np.array(scores)
    expected = np.exp(scores - scores.max())
    assert mixture.weights() == pytest.approx(expected / expected.sum(), rel=1e-8)
    assert mixture.noise_variances == pytest.approx(np.array(scales), rel=1e-8)
    assert mixture.freedom == pytest.approx(2.0 + mass)


def test_states_continue_bit_for_bit():
    rows, rewards = data(40)
    first, second = (StudentMixture(4, COLUMNS, OFFSETS, RIDGE, True, ratio_grid=(0.1,), forget=0.9) for _ in range(2))
    for row, y in zip(rows[:20], rewards[:20], strict=True):
        first.update(row, y)
    second.restore(codec.unpack(codec.pack(first.state())))
    for row, y in zip(rows[20:], rewards[20:], strict=True):
        first.update(row, y)
        second.update(row, y)
    assert first.weights().tobytes() == second.weights().tobytes()
    points = Choices(None, np.ascontiguousarray(rows[:3].T))
    assert first.moments(first.weights(), points)[1].tobytes() == second.moments(second.weights(), points)[1].tobytes()


def test_who_forgets_does_not_sleep(monkeypatch):
    from alexp.estimation.ridge import bank as grid

    monkeypatch.setattr(grid, "_LAZY", 1)
    ridges = [RIDGE]
    assert grid.RidgeGrid(4, COLUMNS, OFFSETS, ridges, False)._lazy
    assert not grid.RidgeGrid(4, COLUMNS, OFFSETS, ridges, False, forget=0.9)._lazy


def test_where_it_cannot_be():
    domain = alexp.FiniteSet(np.arange(30))
    x = np.random.default_rng(0).standard_normal((30, 3))
    kernels = alexp.ModelClass.from_matrices({"x": x}, kernels="auto")
    wide = alexp.ModelClass.from_matrices({"x": np.random.default_rng(0).standard_normal((30, 201))})
    plain = alexp.ModelClass.from_matrices({"x": x})
    with pytest.raises(ValueError, match="forget"):
        alexp.EvidenceMixture(kernels, domain, forget=0.9)
    with pytest.raises(ValueError, match="forget is for models of at most 200 features.*got one with 201"):
        alexp.EvidenceMixture(wide, domain, forget=0.9)
    with pytest.raises(ValueError, match="forget"):
        alexp.LinUCB(kernels, domain, model=0, forget=0.9)
    for wrong in (0.0, 1.0, 1.5, -0.1):
        with pytest.raises(ValueError, match="forget must lie strictly between 0 and 1"):
            alexp.EvidenceMixture(plain, domain, forget=wrong)
