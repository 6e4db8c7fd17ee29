"""The kernels on a GPU against their twin, and the same answer twice; skipped where there is none."""

from math import comb

import numpy as np
import pytest

import alexp
from alexp.common.backends import NoDeviceError
from alexp.gpu.cupy_backend import cupy
from alexp.gpu.subsets import KnownNoise, SubsetMixture, UnknownNoise, engine_for
from alexp.problem.candidates import NOTHING, Choices, Pending
from alexp.problem.dictionaries import Legendre

P, PAIRS = 13, tuple((a, b) for a in (1 / 3, 1.0, 3.0) for b in (1.0, 4.0))


def why_not():
    try:
        cupy()
    except NoDeviceError as error:
        return str(error)
    return ""


pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())
LAWS = [KnownNoise(0.1, 1.0, PAIRS, np.ones(P), 1.0), UnknownNoise((1e-4, 1e-2, 0.5), np.linspace(0.5, 2.0, P), 0.5)]


def told(device, size, law, intercept):
    rng = np.random.default_rng(0)
    table = rng.standard_normal((30, P))
    mixture = SubsetMixture(engine_for(device, P, size), law, P, intercept)
    for row in table[:20]:
        mixture.update(row, float(row[1] - row[3] + 0.1 * rng.standard_normal()))
    return mixture, table


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
def test_the_card_computes_what_its_twin_does(size, intercept, law):
    (card, table), (twin, _) = told("cuda", size, law, intercept), told("cpu", size, law, intercept)
    for key, value in twin.sums.state().items():
        np.testing.assert_array_equal(card.sums.state()[key], value)
    choices, pending = (
        Choices(None, np.ascontiguousarray(table.T)),
        Pending(np.array([1, 2]), np.array([1, 2]), table[[1, 2]]),
    )
    one, two = card.weights(), twin.weights()
    np.testing.assert_allclose(card.probabilities(one), twin.probabilities(two), atol=1e-12)
    assert card.likeliest(one, 4)[0].tolist() == twin.likeliest(two, 4)[0].tolist()
    for out in (NOTHING, pending):
        (mean, variance), (own, spread) = card.moments(one, choices, out), twin.moments(two, choices, out)
        np.testing.assert_allclose(mean, own, atol=1e-11)
        np.testing.assert_allclose(variance, spread, rtol=1e-8)
        again = card.moments(card.weights(), choices, out)
        np.testing.assert_array_equal(mean, again[0])
        np.testing.assert_array_equal(variance, again[1])


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_sweep_is_that_of_its_twin(size, intercept):
    (card, table), (twin, _) = told("cuda", size, LAWS[0], intercept), told("cpu", size, LAWS[0], intercept)
    m = comb(P, size)
    for width in (0.0, 0.05, 2.0):
        for k in (0, 2):
            later = [one.sums.with_fantasies(table[:k]) if k else one.sums for one in (card, twin)]
            points = [one.engine.xp.asarray(table) - after.mean for one, after in zip((card, twin), later, strict=True)]
            ours, other = (
                one.engine.host(one.engine.sweep(one.sums, after, 0.01, width, at, 0, m))
                for one, after, at in zip((card, twin), later, points, strict=True)
            )
            np.testing.assert_array_equal(ours, other)


@pytest.mark.parametrize("kind", [alexp.EvidenceMixture, alexp.ALExp])
def test_runs_on_the_card_go_on_without_it(kind):
    domain = alexp.Interval(-1.0, 1.0, resolution=40)
    known = {"noise_std": 0.1, "reward_bound": 1.0, "random_state": 0}
    runs = [kind(alexp.ModelClass.subsets(Legendre(9), 3, device=d), domain, **known) for d in ("cuda", "cuda", "cpu")]
    rng, seen = np.random.default_rng(1), [[] for _ in runs]
    for _ in range(25):
        noise = 0.1 * rng.standard_normal()
        for run, actions in zip(runs, seen, strict=True):
            trial = run.ask()
            actions.append((trial.index, trial.propensity))
            run.tell(trial, np.sin(3.0 * trial.x) + noise)
    assert seen[0] == seen[1]
    assert [index for index, _ in seen[0]] == [index for index, _ in seen[2]]
    np.testing.assert_allclose([q for _, q in seen[0]], [q for _, q in seen[2]], rtol=1e-9)
    saved = runs[0].to_dict()
    saved["problem"]["models"]["enumerated"] = True
    elsewhere = kind.from_dict(saved, models=alexp.ModelClass.subsets(Legendre(9), 3, device="cpu"))
    assert elsewhere.ask().index == runs[0].ask().index
