"""Rivals of the board beyond `peers`: other surrogates on the same maps, and methods that choose features."""

from __future__ import annotations

import warnings
from functools import cached_property
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp_experiments.comparison.peers import TPE, BotorchGP, Peer, acquisition, library


class TanimotoGP(BotorchGP):
    """GAUCHE's model (Griffiths et al., NeurIPS 2023), k(x, z) = s <x, z> / (|x|^2 + |z|^2 - <x, z>).

    For fingerprints and counts. Size, noise and mean are fitted before every round.
    """

    def model(self, x: Any, y: Any) -> Any:
        """SingleTaskGP with that kernel."""
        botorch, kernels = library("botorch", "botorch"), library("gpytorch.kernels", "botorch")

        class Tanimoto(kernels.Kernel):  # type: ignore[misc, name-defined]
            def forward(self, a: Any, b: Any, diag: bool = False, **_: Any) -> Any:
                if diag:
                    return a.new_ones(a.shape[:-1])
                shared = a @ b.transpose(-1, -2)
                both = (a**2).sum(-1, keepdim=True) + (b**2).sum(-1)[..., None, :] - shared
                return (shared + 1e-12) / (both + 1e-12)

        return botorch.models.SingleTaskGP(x, y, covar_module=kernels.ScaleKernel(Tanimoto()))


class SAASBO(Peer):
    """Sparse axis-aligned subspaces (Eriksson and Jankowiak 2021): inverse lengthscales shrink, sampled by NUTS.

    Hyper-parameters are sampled anew at every tenth reward, from all rewards before it, and kept in between.
    """

    package: ClassVar[str] = "botorch"
    every, warm_up, samples, thinning = 10, 128, 64, 8

    @classmethod
    def installed(cls) -> str:
        """The installed version of BoTorch, whose sampler needs NumPyro."""
        if find_spec("numpyro") is None:
            raise ImportError("SAASBO needs numpyro, which is not installed: pip install 'alexp-experiments[peers]'")
        return super().installed()

    def score(
        self, rows: FloatArray, rewards: FloatArray, candidates: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """The acquisition function at each candidate, from moments of the mixture over samples."""
        torch, fit = library("torch", "botorch"), library("botorch.fit", "botorch")
        fully = library("botorch.models.fully_bayesian", "botorch")
        used = max(len(rows) // self.every * self.every, min(len(rows), 5))
        x, y = torch.from_numpy(rows), torch.from_numpy(rewards)[:, None]
        known: tuple[int, dict[str, Any]] | None = getattr(self, "_sampled", None)
        if known is None or known[0] != used:
            part, seed = rewards[:used], int(rng.integers(2**31))
            scaled = torch.from_numpy((part - part.mean()) / (float(part.std()) or 1.0))[:, None]
            fitted = fully.SaasFullyBayesianSingleTaskGP(x[:used], scaled)
            sizes = {"warmup_steps": self.warm_up, "num_samples": self.samples, "thinning": self.thinning}
            fit.fit_fully_bayesian_model_nuts(fitted, **sizes, disable_progbar=True, jit_compile=True, seed=seed)
            known = self._sampled = used, fitted.state_dict()
        model = fully.SaasFullyBayesianSingleTaskGP(x, y)
        model.load_state_dict(known[1])
        with torch.no_grad():
            posterior = model.posterior(torch.from_numpy(candidates))
            mean, variance = posterior.mixture_mean[:, 0].numpy(), posterior.mixture_variance[:, 0].numpy()
        return acquisition(self.rule, mean, np.sqrt(variance), self.width, float(rewards.max()))


class FABO(BotorchGP):
    """Feature adaptive optimisation (Rajabi-Kochi et al. 2025): mRMR before every round, then a Gaussian process.

    Of all maps side by side it keeps `kept` features: one by one that with the largest ratio of relevance, the F
    statistic of its correlation with the rewards, to redundancy, its mean absolute correlation with those kept.
    """

    kept: ClassVar[int] = 20

    def score(
        self, rows: FloatArray, rewards: FloatArray, candidates: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """The acquisition function at each candidate, on the features kept."""
        own = self.chosen(rows, rewards)
        return super().score(rows[:, own].copy(), rewards, candidates[:, own].copy(), rng)

    def chosen(self, rows: FloatArray, rewards: FloatArray) -> IntArray:
        """The features kept, by number."""
        varied = np.flatnonzero(rows.std(axis=0) > 0.0)
        if varied.size <= self.kept:
            return varied if varied.size else np.arange(rows.shape[1])
        scaled = (rows[:, varied] - rows[:, varied].mean(axis=0)) / rows[:, varied].std(axis=0)
        r = np.minimum(np.abs(scaled.T @ rewards) / len(rows) / (float(rewards.std()) or 1.0), 1.0 - 1e-9)
        relevance = r**2 / (1.0 - r**2)
        out, redundancy = [int(np.argmax(relevance))], np.zeros(varied.size)
        while len(out) < self.kept:
            redundancy += np.abs(scaled.T @ scaled[:, out[-1]]) / len(rows)
            ratio = relevance / np.maximum(redundancy / len(out), 1e-3)
            ratio[out] = -np.inf
            out.append(int(np.argmax(ratio)))
        return np.asarray(varied[np.sort(out)])


class MolDAIS(FABO):
    """Sorourifar, Peng and Paulson (2024), in its fast form: mutual information screens descriptors every round.

    Of all maps side by side the `kept` features with the largest estimated mutual information with the rewards stay.
    """

    kept: ClassVar[int] = 20

    def chosen(self, rows: FloatArray, rewards: FloatArray) -> IntArray:
        """The features kept, by number."""
        selection = library("sklearn.feature_selection", "scikit-learn")
        varied = np.flatnonzero(rows.std(axis=0) > 0.0)
        if varied.size <= self.kept or len(rows) < 5:
            return varied if varied.size else np.arange(rows.shape[1])
        information = selection.mutual_info_regression(rows[:, varied], rewards, random_state=0)
        return np.asarray(np.sort(varied[np.argsort(-information, kind="stable")[: self.kept]]))


class BayBE(Peer):
    """BayBE's Gaussian process with a preset; the map is the only parameter, with BayBE's default decorrelation."""

    package: ClassVar[str] = "baybe"
    settings: ClassVar[tuple[str, ...]] = (*Peer.settings, "preset")

    def __init__(self, *arguments: Any, preset: str = "BAYBE", **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.preset = preset

    @cached_property
    def _space(self) -> tuple[dict[bytes, str], Any]:
        """Names of the different rows, and the search space of these names, described by the map."""
        import pandas as pd

        parameters, spaces = library("baybe.parameters", "baybe"), library("baybe.searchspace", "baybe")
        different = np.unique(self._scaled, axis=0)
        names = {row.tobytes(): f"r{k}" for k, row in enumerate(different)}
        parameter = parameters.CustomDiscreteParameter("row", pd.DataFrame(different, index=list(names.values())))
        return names, spaces.SearchSpace.from_product([parameter])

    def score(
        self, rows: FloatArray, rewards: FloatArray, candidates: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """The acquisition function at each candidate."""
        import pandas as pd

        surrogates, targets = library("baybe.surrogates", "baybe"), library("baybe.targets", "baybe")
        library("torch", "baybe").manual_seed(int(rng.integers(2**31)))
        names, space = self._space
        measured, free = (pd.DataFrame({"row": [names[row.tobytes()] for row in own]}) for own in (rows, candidates))
        surrogate = surrogates.GaussianProcessSurrogate.from_preset(self.preset)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            surrogate.fit(space, targets.NumericalTarget("y").to_objective(), measured.assign(y=rewards))
            stats = surrogate.posterior_stats(free)
        mean, std = stats["y_mean"].to_numpy(), stats["y_std"].to_numpy()
        return acquisition(self.rule, mean, std, self.width, float(rewards.max()))


class OptunaGP(TPE):
    """Optuna's Gaussian process sampler, on ranges or categories as `TPE`."""

    def sampler(self, optuna: Any, seed: int) -> Any:
        """The sampler that suggests."""
        return optuna.samplers.GPSampler(seed=seed, n_startup_trials=1)
