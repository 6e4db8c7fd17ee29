"""BoTorch's Gaussian process with its defaults: a lengthscale per feature, fitted by marginal likelihood."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from alexp.common.arrays import FloatArray
from alexp_experiments.comparison.peers.acquisition import acquisition
from alexp_experiments.comparison.peers.base import Peer, library


class BotorchGP(Peer):
    """SingleTaskGP, refitted before every round; UCB or LogEI over the candidates."""

    package: ClassVar[str] = "botorch"

    def score(
        self, rows: FloatArray, rewards: FloatArray, candidates: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """The acquisition function at each candidate."""
        botorch, torch = library("botorch", "botorch"), library("torch", "botorch")
        likelihoods, errors = library("gpytorch.mlls", "botorch"), library("botorch.exceptions.errors", "botorch")
        torch.manual_seed(int(rng.integers(2**31)))
        x, y = torch.from_numpy(rows), torch.from_numpy(rewards)[:, None]
        model = botorch.models.SingleTaskGP(x, y)
        try:
            botorch.fit_gpytorch_mll(likelihoods.ExactMarginalLogLikelihood(model.likelihood, model))
        except errors.ModelFittingError:  # then with what it starts from
            model.eval()
        with torch.no_grad():
            posterior = model.posterior(torch.from_numpy(candidates))
            mean, variance = posterior.mean[:, 0].numpy(), posterior.variance[:, 0].numpy()
        return acquisition(self.rule, mean, np.sqrt(variance), self.width, float(rewards.max()))
