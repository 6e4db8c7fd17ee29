"""scikit-learn: a Gaussian process with one lengthscale, and a random forest."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np

from alexp.common.arrays import FloatArray
from alexp_experiments.comparison.peers.acquisition import acquisition
from alexp_experiments.comparison.peers.base import Peer, library

_TREES = 100


class SklearnGP(Peer):
    """Matern 5/2 plus noise, lengthscale, size and noise fitted by marginal likelihood before every round."""

    package: ClassVar[str] = "scikit-learn"

    def score(
        self, rows: FloatArray, rewards: FloatArray, candidates: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """The acquisition function at each candidate."""
        processes = library("sklearn.gaussian_process", "sklearn")
        kernels = library("sklearn.gaussian_process.kernels", "sklearn")
        typical = float(np.sqrt(rows.shape[1]))
        shape = kernels.Matern(typical, (1e-2 * typical, 1e2 * typical), nu=2.5)
        kernel = kernels.ConstantKernel(1.0, (1e-2, 1e2)) * shape + kernels.WhiteKernel(1e-2, (1e-5, 1.0))
        process = processes.GaussianProcessRegressor(kernel, alpha=1e-8)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # parameters at the end of their range
            mean, std = process.fit(rows, rewards).predict(candidates, return_std=True)
        noise = process.kernel_.k2.noise_level
        std = np.sqrt(np.maximum(std**2 - noise, 0.0))  # of the function, without the noise
        return acquisition(self.rule, mean, std, self.width, float(rewards.max()))


class Forest(Peer):
    """A random forest; the standard deviation is that of its trees."""

    package: ClassVar[str] = "scikit-learn"

    def score(
        self, rows: FloatArray, rewards: FloatArray, candidates: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """The acquisition function at each candidate."""
        ensembles = library("sklearn.ensemble", "sklearn")
        forest = ensembles.RandomForestRegressor(_TREES, random_state=int(rng.integers(2**31)))
        trees = np.array([tree.predict(candidates) for tree in forest.fit(rows, rewards).estimators_])
        return acquisition(self.rule, trees.mean(axis=0), trees.std(axis=0), self.width, float(rewards.max()))
