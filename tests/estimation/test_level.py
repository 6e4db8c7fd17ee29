"""A constant that the models lack: the evidence by dense algebra, and certificates that are withheld."""

import numpy as np
import pytest

import alexp
from alexp.algorithms.certifier import ToldSoFar
from alexp.estimation.credible import log_odds_of_a_constant, typical_norms

RATIOS, LEVEL = (1e-3, 1e-2, 0.1), 3.0


def problem(seed=0, level=0.0, **arguments):
    rng = np.random.default_rng(seed)
    maps = {name: rng.normal(size=(60, d)) * scale for name, d, scale in (("a", 3, 1.0), ("b", 4, 20.0))}
    models = alexp.ModelClass.from_matrices(maps, intercept=False)
    domain = alexp.FiniteSet([f"x{i}" for i in range(60)])
    rewards = level + maps["b"] @ rng.normal(size=4) / 20.0
    opt = alexp.UniformRandom(models, domain, random_state=seed)
    for _ in range(20):
        trial = opt.ask()
        opt.tell(trial, float(rewards[trial.index] + 0.1 * rng.normal()))
    return models, opt, maps


def dense(maps, opt, level):
    index, y = np.array(opt.log.index), np.array(opt.log.reward)
    t, unit, scores = y.size, np.mean(y**2), []
    for features in maps.values():
        phi = features[index]
        for ratio in RATIOS:
            size = np.mean(np.sum(features**2, axis=1))
            covariance = phi @ phi.T / size + level + ratio * np.eye(t)
            scores.append(
                -(1 + t / 2) * np.log1p(y @ np.linalg.solve(covariance, y) / (2 * unit))
                - np.linalg.slogdet(covariance)[1] / 2
            )
    return np.logaddexp.reduce(scores)


@pytest.mark.parametrize("level", [0.0, 5.0])
def test_odds_by_dense_algebra(level):
    models, opt, maps = problem(level=level)
    expected = dense(maps, opt, LEVEL) - dense(maps, opt, 0.0)
    told = ToldSoFar(opt.log, opt._candidates, 1.0).rewards()
    found = log_odds_of_a_constant(models, typical_norms(models, opt._candidates), told)
    assert found == pytest.approx(expected, abs=1e-8)
    assert (found > 10.0) == (level > 0.0)


def test_nothing_is_certified_while_a_constant_is_missing():
    maps = {"a": np.random.default_rng(1).normal(size=(80, 4)), "b": np.random.default_rng(2).normal(size=(80, 5))}
    rewards = 50.0 + 10.0 * maps["b"] @ np.array([1.0, -0.5, 0.2, 0.0, 0.3])
    stated = {"noise_std": 30.0, "reward_bound": 100.0, "random_state": 0}  # nothing contradicts
    domain = alexp.FiniteSet([f"x{i}" for i in range(80)])
    for intercept in (False, True):
        models = alexp.ModelClass.from_matrices(maps, intercept=intercept)
        opt = alexp.EvidenceMixture(models, domain, **stated)
        for index in range(12):
            opt.observe(index, float(rewards[index]))
        report = opt.stop_report()
        assert report.certified is intercept
        if not intercept:
            assert not opt.check_models().contradicted
            with pytest.raises(alexp.NotCertified, match=r"speak for a constant .* intercept=True"):
                opt.plausible_models()
