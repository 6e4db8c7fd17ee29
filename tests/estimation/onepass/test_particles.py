"""`ParticleFamily` beside a slow, obvious twin: dense algebra for one particle, and a plain sequential Monte Carlo."""

import numpy as np
import pytest

import alexp
from alexp.estimation.mixture.making import ratio_mixture
from alexp.estimation.mixture.mixture import StudentEvidence
from alexp.estimation.onepass import particles
from alexp.estimation.onepass.particles import PARTICLES, ParticleFamily
from alexp.estimation.onepass.regressions import PointTold
from alexp.problem.candidates import CandidateTable
from alexp.problem.kernels import ARD
from alexp.problem.matrices import Block

N, D = 40, 3
RATIOS = np.array([1e-4, 1e-2, 0.5])


@pytest.fixture
def inputs():
    rng = np.random.default_rng(3)
    return np.column_stack([rng.random(N) * 50.0, rng.random(N) - 7.0, np.full(N, 2.0), rng.random(N)])


@pytest.fixture
def rewards(inputs):
    return np.sin(inputs[:, 0] / 9.0) + 0.3 * inputs[:, 3] + 100.0


def made(inputs, intercept=True):
    return ParticleFamily(Block(inputs), ARD().fitted(inputs), RATIOS, intercept)


def tell(family, inputs, index, y):
    family.update(PointTold(inputs[index], index, lambda: np.empty(0)), y)


class Twin:
    """One particle: every reward is a row, all matrices are dense, and the constant has a variance of 1e10."""

    def __init__(self, inputs, theta, told, values, intercept=True, pending=()):
        varying = np.ptp(inputs, axis=0) > 0.0
        x = inputs[:, varying] / np.ptp(inputs[:, varying], axis=0) * np.exp(-theta[:-1])
        a = np.sqrt(5.0) * np.linalg.norm(x[:, None] - x[None], axis=2)
        self.kernel, self.ratio = (1.0 + a + a**2 / 3.0) * np.exp(-a), np.exp(theta[-1])
        self.told, self.y, self.intercept = [*told, *pending], np.array(values), intercept
        self.n_told = len(told)

    def solved(self, right):
        """(K + r I)^-1 right, and what is left of it beside a constant (generalised least squares)."""
        k = self.kernel[np.ix_(self.told, self.told)][: len(right), : len(right)] + self.ratio * np.eye(len(right))
        inverse, ones = np.linalg.inv(k), np.ones(len(right))
        level = (ones @ inverse @ right) / (ones @ inverse @ ones) if self.intercept else 0.0
        return inverse @ (right - level), level

    def mean(self):
        weights, level = self.solved(self.y)
        return self.kernel[:, self.told[: self.n_told]] @ weights + level

    def variance(self):
        k = self.kernel[np.ix_(self.told, self.told)] + self.ratio * np.eye(len(self.told))
        cross, inverse, ones = self.kernel[:, self.told], np.linalg.inv(k), np.ones(len(self.told))
        out = 1.0 - np.einsum("ni,ij,nj->n", cross, inverse, cross)
        if self.intercept:
            out += (1.0 - cross @ inverse @ ones) ** 2 / (ones @ inverse @ ones)
        return out

    def residual(self):
        weights, level = self.solved(self.y)
        return self.ratio * float((self.y - level) @ weights)

    def determinant(self):
        k = np.eye(self.n_told) + self.kernel[np.ix_(self.told, self.told)] / self.ratio
        out = np.linalg.slogdet(k)[1]
        if self.intercept:
            out += np.log(np.ones(len(k)) @ np.linalg.inv(k) @ np.ones(len(k)) / len(k))
        return out


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("told", [[4, 17, 30, 2, 9], [4, 17, 4, 30, 4, 17], [5]], ids=["new", "repeated", "one"])
def test_every_particle_is_the_regression_that_dense_algebra_gives(inputs, rewards, told, intercept):
    family, noise = made(inputs, intercept), np.random.default_rng(0).normal(size=len(told))
    values = rewards[told] - (100.0 if not intercept else 0.0) + 0.1 * noise
    for index, y in zip(told, values, strict=True):
        tell(family, inputs, index, float(y))
        _ = family.mean  # values are carried on from step to step
    mean, variance = family.at(inputs)
    for p, theta in enumerate(family.theta):
        twin = Twin(inputs, theta, told, values, intercept)
        np.testing.assert_allclose(family.mean[p], twin.mean(), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(family.variance[p], twin.variance(), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(family.residuals[p], twin.residual(), rtol=1e-5, atol=1e-8)
        np.testing.assert_allclose(family.log_determinants()[p], twin.determinant(), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(family.kernel(p)(inputs, inputs), twin.kernel, rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(mean[p], family.mean[p], rtol=1e-9)
        np.testing.assert_allclose(variance[p], family.variance[p], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("pending", [[11, 25, 7], [4, 11]], ids=["new", "a point told"])
def test_pending_trials_shrink_variances_as_rewards_would(inputs, rewards, pending):
    family, told = made(inputs), [4, 17, 30]
    for index in told:
        tell(family, inputs, index, float(rewards[index]))
    before, fantasies = family.mean.copy(), family.without_fantasies()
    for index in pending:
        fantasies.absorb(PointTold(inputs[index], index, lambda: np.empty(0)))
    for p, theta in enumerate(family.theta):
        twin = Twin(inputs, theta, told, rewards[told], pending=pending)
        np.testing.assert_allclose(fantasies.variance[p], twin.variance(), rtol=1e-6, atol=1e-8)
    assert np.array_equal(family.mean, before)


def test_draws_have_the_covariance_of_a_particle(inputs, rewards):
    family, told, some = made(inputs), [4, 17, 30], np.array([1, 4, 8, 33])
    for index in told:
        tell(family, inputs, index, float(rewards[index]))
    root = np.stack([family.draw(5, some, unit, 1.0) - family.mean[5, some] for unit in np.eye(N)[:4]], axis=1)
    scale = 1.0 / family.ratios[5]
    np.testing.assert_allclose(np.diag(root @ root.T), scale * family.variance[5, some], rtol=1e-4, atol=1e-7 * scale)


def student(y):
    """The evidence of a component with given F, log det and ratio in units of the first cell's."""
    formula = StudentEvidence(len(y) - 1, float(np.var(y)) or 1.0)
    return lambda f, det, multiples: formula.log_evidence(multiples * RATIOS[0], f, det)


class Chain:
    """The particles by plain loops over `Twin`, with the random numbers that the module names."""

    def __init__(self, inputs, theta, mean, root):
        self.inputs, self.theta, self.prior = inputs, theta.copy(), (mean, root)
        self.logs, self.total, self.scores = np.full(PARTICLES, -np.log(PARTICLES)), 0.0, np.zeros(PARTICLES)
        self.moved = 0

    def log_prior(self, theta):
        z = np.linalg.solve(self.prior[1], theta - self.prior[0])
        return -0.5 * z @ z

    def score(self, theta, told, y):
        twin = Twin(self.inputs, theta, told, y)
        terms = np.array([[twin.residual()]]), np.array([[twin.determinant()]])
        return float(student(y)(*terms, np.array([[twin.ratio / RATIOS[0]]]))[0, 0])

    def step(self, told, y, power):
        scores = np.array([self.score(theta, told, y) for theta in self.theta])
        logs = self.logs + power * (scores - self.scores)
        self.total += np.log(np.exp(logs).sum())
        self.logs, self.scores = logs - np.log(np.exp(logs).sum()), scores
        weights = np.exp(self.logs)
        if 1.0 / (weights**2).sum() >= 0.6 * PARTICLES:
            return
        self.moved += 1
        rng = np.random.default_rng((particles._KEY, len(y)))
        centre = weights @ self.theta
        covariance = (self.theta - centre).T @ (weights[:, None] * (self.theta - centre))
        marks = (np.arange(PARTICLES) + rng.random()) / PARTICLES
        chosen = [int(np.searchsorted(np.cumsum(weights), mark)) for mark in marks]
        free = [p for p in range(PARTICLES) if p not in chosen]
        for p in range(PARTICLES):
            for _ in range(chosen.count(p) - 1):
                place = free.pop(0)
                self.theta[place], self.scores[place] = self.theta[p], self.scores[p]
        self.logs[:] = -np.log(PARTICLES)
        k = self.theta.shape[1]
        for sweep in range(6):
            normals, coordinate = rng.standard_normal((PARTICLES, k)), rng.integers(k, size=PARTICLES)
            uniforms = rng.random(PARTICLES)
            for p in range(PARTICLES):
                new = self.theta[p].copy()
                if sweep % 2 == 0:
                    step = np.linalg.cholesky(covariance + 1e-6 * np.eye(k)) @ normals[p]
                    new += 0.7 * 2.38 / np.sqrt(k) * step
                else:
                    new[coordinate[p]] += 1.5 * normals[p, 0]
                score = self.score(new, told, y)
                odds = power * (score - self.scores[p]) + self.log_prior(new) - self.log_prior(self.theta[p])
                if np.log(uniforms[p]) < odds:
                    self.theta[p], self.scores[p] = new, score


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_particles_follow_plain_sequential_monte_carlo(inputs, rewards, power):
    family, told = made(inputs), np.random.default_rng(1).permutation(N)[:14].tolist()
    chain = Chain(inputs, family.theta, family._prior_mean, family._prior_root)
    for t in range(1, len(told) + 1):
        tell(family, inputs, told[t - 1], float(rewards[told[t - 1]]))
        family.reweigh(student(rewards[told[:t]]), power)
        chain.step(told[:t], rewards[told[:t]], power)
        np.testing.assert_allclose(family.theta, chain.theta, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(family.evidence(1.0), chain.total + chain.logs + np.log(3.0), rtol=1e-5, atol=1e-4)
    assert chain.moved >= 2


def test_the_evidence_is_the_mean_over_the_prior(inputs, rewards):
    """Of 5,000 draws from the prior, in place of 32 particles that follow the rewards."""
    family, told = made(inputs), np.random.default_rng(2).permutation(N)[:10].tolist()
    for t in range(1, len(told) + 1):
        tell(family, inputs, told[t - 1], float(rewards[told[t - 1]]))
        family.reweigh(student(rewards[told[:t]]), 1.0)
    y, rng = rewards[told], np.random.default_rng(0)
    draws = family._prior_mean + rng.standard_normal((5_000, D + 1)) @ family._prior_root.T
    x = inputs[told][:, [0, 1, 3]] / np.ptp(inputs[:, [0, 1, 3]], axis=0)
    logs = []
    for theta in draws:
        scaled = x * np.exp(-theta[:-1])
        a = np.sqrt(5.0) * np.linalg.norm(scaled[:, None] - scaled[None], axis=2)
        k = (1.0 + a + a**2 / 3.0) * np.exp(-a) + np.exp(theta[-1]) * np.eye(10)
        inverse = np.linalg.inv(k)
        ones = inverse.sum()
        level = (inverse @ y).sum() / ones
        f = np.exp(theta[-1]) * (y - level) @ inverse @ (y - level)
        det = np.linalg.slogdet(k)[1] - 10 * theta[-1] + np.log(np.exp(theta[-1]) * ones / 10)
        logs.append(student(y)(np.array([[f]]), np.array([[det]]), np.array([[np.exp(theta[-1]) / RATIOS[0]]]))[0, 0])
    expected = np.logaddexp.reduce(logs) - np.log(len(logs)) + np.log(3.0)
    assert (
        abs(np.logaddexp.reduce(family.evidence(1.0)) - expected) < 0.7
    )  # over 40 orders of rewards: mean -0.7, deviation 0.7


def test_inputs_that_do_not_matter_get_long_lengthscales():
    rng = np.random.default_rng(5)
    x = rng.random((200, 6))
    models = alexp.ModelClass.from_matrices({"x": x}, kernels={"x": ARD()})
    mixture = ratio_mixture(models, _table(models, 200), RATIOS, None, 1.0)
    for index in range(60):
        mixture.update(x[index], float(np.sin(7.0 * x[index, 2]) + x[index, 4]), index)
    lengths = np.exp(mixture.grid.families[0].theta[:, :-1]).mean(axis=0)
    assert lengths[2] < lengths[4] < lengths[[0, 1, 3, 5]].min()


def _table(models, n):
    opt = alexp.EvidenceMixture(models, alexp.FiniteSet(np.arange(n)))
    assert isinstance(opt._candidates, CandidateTable)
    return opt._candidates


@pytest.mark.parametrize("stated", [{}, {"noise_std": 0.1}, {"noise_std": 0.1, "reward_bound": 2.0}])
def test_runs_continue_bit_for_bit(stated):
    """Saved and loaded after every step, in plates, and with an amended reward."""
    rng = np.random.default_rng(8)
    x = rng.random((60, 3))
    y = np.cos(4.0 * x[:, 0]) + 0.1 * rng.normal(size=60)
    models = alexp.ModelClass.from_matrices({"x": x}, kernels={"x": [ARD(), "linear"]})
    settings = {"random_state": 4, "goal": "sum", "repeats": True, **stated}
    one = alexp.EvidenceMixture(models, alexp.FiniteSet(np.arange(60)), **settings)
    two = alexp.EvidenceMixture(models, alexp.FiniteSet(np.arange(60)), **settings)
    for _ in range(6):
        plates = one.ask(3), two.ask(3)
        assert [t.index for t in plates[0]] == [t.index for t in plates[1]]
        for a, b in zip(*plates, strict=True):
            one.tell(a, y[a.index])
            two.tell(b, y[b.index])
            _ = two.probabilities  # looking changes nothing
        two = alexp.EvidenceMixture.from_dict(two.to_dict(), models=models, domain=alexp.FiniteSet(np.arange(60)))
        assert np.array_equal(one.probabilities, two.probabilities)
        assert [one.predict(i) for i in (0, 7, 59)] == [two.predict(i) for i in (0, 7, 59)]
    one.amend(2, 5.0)
    two.amend(2, 5.0)
    assert np.array_equal(one.probabilities, two.probabilities)
