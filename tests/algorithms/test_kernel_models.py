"""Algorithms on kernels: a kernel that is linear gives the run of the linear model, and others play as they should."""

import numpy as np
import pytest

import alexp
from alexp.estimation.estimate import predict
from alexp.estimation.factory import linear_posteriors, posteriors
from alexp.problem.candidates import CandidateTable
from alexp.problem.kernels import Linear, Matern

N = 40
STATED = {"noise_std": 0.1, "norm_bound": 2.0, "random_state": 3}
ALGORITHMS = {
    "lm-ucb": (alexp.LMUCB, STATED),
    "linucb": (alexp.LinUCB, STATED | {"model": 0}),
    "evidence-sampling": (alexp.EvidenceSampling, STATED),
    "mixture": (alexp.EvidenceMixture, {"random_state": 3}),
    "best": (alexp.EvidenceMixture, {"random_state": 3, "goal": "best", "repeats": False}),
    "stated": (alexp.EvidenceMixture, STATED),
    "thompson": (alexp.MixtureThompson, {"random_state": 3}),
}


def maps():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((N, 3)), rng.standard_normal((N, 2))
    return {"a": a, "b": b}, a @ np.array([1.0, -0.5, 0.3]) + 0.4


def play(opt, rewards, rounds, plate=1):
    for _ in range(rounds):
        for trial in opt.ask(plate):
            opt.tell(trial, float(rewards[trial.index]))
    return [opt.trial(k).index for k in range(opt.n_asked)]


class Inner(Linear):
    """<x, z>, but not known to be."""

    @property
    def is_plain(self):
        return False


@pytest.mark.parametrize("intercept", [False, True])
def test_processes_equal_the_packed_factors_of_the_same_model(intercept):
    matrices, rewards = maps()
    linear = alexp.ModelClass.from_matrices(matrices, intercept=intercept)
    kernel = alexp.ModelClass.from_matrices(matrices, intercept=intercept, kernels={"a": Matern(), "b": Inner()})
    table = CandidateTable(linear, alexp.FiniteSet(np.arange(N)), np.random.default_rng(1).permutation(N))
    one, two = posteriors(kernel, 0.3), linear_posteriors(linear, 0.3)
    rng, choices, j = np.random.default_rng(2), table.everything.choices, np.array([1])
    for t in range(12):
        pending = table.rows(rng.integers(N, size=2))
        for first, second in ((one, two), (one.with_fantasies(pending), two.with_fantasies(pending))):
            np.testing.assert_allclose(first.mean(1, choices), second.mean(1, choices), rtol=0, atol=1e-9)
            np.testing.assert_allclose(first.width(1, choices), second.width(1, choices), rtol=1e-7, atol=1e-8)
            radii = np.array([1.5])
            for a, b in zip(first.envelope(j, radii, choices), second.envelope(j, radii, choices), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-7)
            for a, b in zip(
                first.largest_gaps(j, radii, choices, 5), second.largest_gaps(j, radii, choices, 5), strict=True
            ):
                np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(one.evidence(0.2)[1], two.evidence(0.2)[1], rtol=1e-8, atol=1e-9)
        assert one.argmax_ucb(choices, 0.7)[1] == two.argmax_ucb(choices, 0.7)[1] or t == 0
        assert one.argmax_mean(choices)[1] == two.argmax_mean(choices)[1] or t == 0
        index = int(rng.integers(N))
        for fits in (one, two):
            fits.update(table.row(index), float(rewards[index]))
    again = posteriors(kernel, 0.3)
    again.restore(one.state())
    assert np.array_equal(again.mean(0, choices), one.mean(0, choices))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_runs_on_kernels_and_continues_bit_for_bit(name):
    kind, settings = ALGORITHMS[name]
    matrices, rewards = maps()
    models = alexp.ModelClass.from_matrices(matrices, kernels="auto")
    domain = alexp.FiniteSet(np.arange(N))
    opt = kind(models, domain, **settings)
    played = play(opt, rewards, 6, plate=3)
    assert len(set(played[:3])) == 3
    again = kind.from_dict(opt.to_dict())
    assert play(opt, rewards, 4) == play(again, rewards, 4)
    assert rewards[opt.best().index] > np.quantile(rewards, 0.8)


@pytest.mark.parametrize("name", ["lm-ucb", "stated"])
def test_certificates_hold_with_a_bound_on_the_norm(name):
    """A function of a Matern kernel, with its norm stated: bands hold, at every candidate."""
    kind, settings = ALGORITHMS[name]
    x = np.linspace(0.0, 1.0, N)[:, None]
    kernel = Matern(2.5, lengthscale=0.3, relative=False)
    weights = np.array([1.0, -0.7, 0.5])
    centres = x[[5, 17, 33]]
    gram = kernel(centres, centres)
    rewards = weights @ kernel(centres, x)
    norm = float(np.sqrt(weights @ gram @ weights))
    models = alexp.ModelClass.from_matrices({"x": x}, kernels=kernel, intercept=False)
    opt = kind(models, alexp.FiniteSet(np.arange(N)), **(settings | {"norm_bound": norm}))
    rng = np.random.default_rng(4)
    for _ in range(30):
        trial = opt.ask()
        opt.tell(trial, float(rewards[trial.index] + 0.1 * rng.standard_normal()))
        for index in range(0, N, 5):
            band = opt.confidence(index)
            assert band.lower <= rewards[index] <= band.upper
    report = opt.stop_report()
    assert report.certified
    assert rewards.max() - rewards[report.index] <= report.epsilon


def test_a_bound_on_rewards_certifies_nothing_about_kernels():
    matrices, rewards = maps()
    models = alexp.ModelClass.from_matrices(matrices, kernels="auto")
    opt = alexp.EvidenceMixture(models, alexp.FiniteSet(np.arange(N)), noise_std=0.1, reward_bound=3.0, random_state=0)
    play(opt, rewards, 3)
    with pytest.raises(alexp.NotCertified, match="says nothing about a function's norm"):
        opt.confidence(0)


@pytest.mark.parametrize("intercept", [False, True])
def test_alexp_estimates_with_kernels_as_it_does_with_columns(intercept):
    """The evidence oracle on linear kernels gives the estimate that it gives on columns."""
    matrices, rewards = maps()
    linear = alexp.ModelClass.from_matrices(matrices, intercept=intercept)
    kernel = alexp.ModelClass.from_matrices(matrices, intercept=intercept, kernels={"a": Inner(), "b": Inner()})
    one, two = alexp.Evidence().bind(kernel), alexp.Evidence().bind(linear)
    table = linear.matrix(alexp.FiniteSet(np.arange(N)))
    for index in (3, 9, 9, 20, 31, 7):
        for data in (one, two):
            data.append(table[index], float(rewards[index]))
        first, second = one.solve(1.0), two.solve(1.0)
        np.testing.assert_allclose(predict(first, table.T), predict(second, table.T), rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(first.magnitudes, second.magnitudes, rtol=1e-6)
    again = one.read(first.state())
    assert np.array_equal(predict(again, table.T), predict(first, table.T))


def test_alexp_runs_on_kernels_and_continues_bit_for_bit():
    matrices, rewards = maps()
    models, domain = alexp.ModelClass.from_matrices(matrices, kernels="auto"), alexp.FiniteSet(np.arange(N))
    opt = alexp.ALExp(models, domain, oracle=alexp.Evidence(), random_state=0)
    play(opt, rewards, 8)
    again = alexp.ALExp.from_dict(opt.to_dict())
    assert play(opt, rewards, 6) == play(again, rewards, 6)
    with pytest.raises(ValueError, match="mean features of every policy"):
        alexp.ALExp(models, domain, oracle=alexp.Evidence(), returns="retrospective")
