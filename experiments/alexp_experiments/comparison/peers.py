"""Methods of other libraries, as algorithms: they look at rows of features and score all candidates."""

from __future__ import annotations

import hashlib
import json
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from math import log, pi, sqrt
from typing import Any, ClassVar, Unpack

import numpy as np

from alexp.algorithms.base import AGENTS, Algorithm, Decision, Observation, Shared
from alexp.common.arrays import FloatArray
from alexp.common.codec import State
from alexp.common.validation import non_negative, one_of
from alexp.decision.plays import Certain, Even
from alexp.problem.candidates import Round
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass
from alexp_experiments.core.tasks import RECORD_FORMAT, Task, algorithm_class, read_module

_PLAYED_BY = (__name__, "alexp.simulation", "alexp_experiments.comparison.tables.data")
_TITLES = {
    "sklearn": "scikit-learn",
    "botorch": "BoTorch",
    "optuna": "Optuna",
    "baybe": "BayBE",
    "vowpalwabbit": "Vowpal Wabbit",
}


def library(module: str, package: str, extra: str = "peers") -> Any:
    """A module of a package that is not among the dependencies, or a sentence that says how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        title = _TITLES.get(package, package)
        raise ImportError(
            f"this peer needs {title}, which is not installed: pip install 'alexp-experiments[{extra}]'"
        ) from error


class Peer(Algorithm):
    """A method of another library on the features of the only model.

    It fits everything anew for every ask: its state is the log of rewards. Subclasses give `package`, the distribution
    that must be installed, and `score`.

    Parameters
    ----------
    rule : "ucb", mean plus `width` standard deviations, or "ei", expected improvement on the best reward.
    library_version : the version of the package that results are kept under; "" for the installed one.
    """

    package: ClassVar[str]
    needs_columns: ClassVar[str] = "it looks at rows of features"
    needs_table: ClassVar[str] = "it scales features over all candidates"
    settings: ClassVar[tuple[str, ...]] = ("rule", "width", "library_version")

    def __init__(
        self,
        models: ModelClass,
        domain: Domain,
        *,
        rule: str = "ucb",
        width: float = 1.0,
        library_version: str = "",
        **shared: Unpack[Shared],
    ) -> None:
        super().__init__(models, domain, **shared)
        if models.n_models != 1:
            raise ValueError(f"a peer looks at one model, got {models.n_models}; use models.only(j)")
        found = self.installed()
        if library_version not in ("", found):
            raise ImportError(f"these runs are made with {self.package} {library_version}, installed is {found}")
        self.rule, self.width = one_of("rule", rule, ("ucb", "ei")), non_negative("width", width)
        self.library_version = found

    @classmethod
    def installed(cls) -> str:
        """The installed version of the package, or a sentence that says how to get it."""
        try:
            return version(cls.package)
        except PackageNotFoundError as error:
            raise ImportError(
                f"{cls.__name__} needs {cls.package}, which is not installed: pip install 'alexp-experiments[peers]'"
            ) from error

    @property
    def relies_on(self) -> frozenset[str]:
        """Nothing that could be stated."""
        return frozenset()

    @abstractmethod
    def score(
        self, rows: FloatArray, rewards: FloatArray, candidates: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """A number for each of n candidates (n, d), the larger the better, from t rewards at rows (t, d)."""

    def _decide(self, round_: Round) -> Decision:
        ids = self._log.told_in_order()
        if not ids:
            return Decision(Even(len(round_)))
        indices = np.array(self._log.index, dtype=np.int64)[ids]
        rewards = self._sign * np.array(self._log.reward, dtype=np.float64)[ids]
        spread = float(rewards.std()) or 1.0
        rng = self._streams.generator(AGENTS, self.n_told)
        choices = np.ascontiguousarray(self._scaled[round_.indices])
        scores = self.score(self._scaled[indices], (rewards - rewards.mean()) / spread, choices, rng)
        return Decision(Certain(int(np.argmax(scores))))

    @cached_property
    def _scaled(self) -> FloatArray:
        """(N, d) features in [0, 1] over the candidates, as these libraries like them; constant ones are left out."""
        features = self.models.matrix(self.domain)[:, self.models.groups[0]]  # others' columns may lie beside them
        low, width = features.min(axis=0), np.ptp(features, axis=0)
        return np.asarray((features[:, width > 0.0] - low[width > 0.0]) / width[width > 0.0])

    def _learn(self, seen: Observation) -> None:
        pass

    def _recommend(self, round_: Round) -> tuple[int, float, int | None]:
        index = self._log.index
        ids = [trial for trial in self._log.told_in_order() if index[trial] in round_.indices]
        best = max(ids, key=lambda trial: self._sign * self._log.reward[trial])
        return int(np.flatnonzero(round_.indices == index[best])[0]), self._sign * self._log.reward[best], 0

    def _state(self) -> State:
        return {}

    def _restore(self, state: State) -> None:
        pass


class PeerTask(Task):
    """A run of a peer. It is kept under its own code and its library's version: ours has no say in its choices."""

    @cached_property
    def configuration(self) -> str:
        """Content hash of scenario, settings, adapter and library."""
        kind = algorithm_class(self.kind)
        sources = [read_module(name)[0].decode() for name in dict.fromkeys((kind.__module__, *_PLAYED_BY))]
        settings: Mapping[str, object] = self.settings
        content = [RECORD_FORMAT, self.scenario.to_dict(), self.kind, dict(settings), sources]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]


def acquisition(rule: str, mean: FloatArray, std: FloatArray, width: float, best: float) -> FloatArray:
    """mean + width std for "ucb"; the logarithm of the expected improvement on `best` for "ei"."""
    return mean + width * std if rule == "ucb" else log_improvement(mean, std, best)


def log_improvement(mean: FloatArray, std: FloatArray, best: float) -> FloatArray:
    """log E[max(f - best, 0)] for f ~ N(mean, std^2), accurate far below `best` (Ament et al. 2023).

    >>> log_improvement(np.array([0.0, -40.0]), np.ones(2), 0.0).round(2).tolist()
    [-0.92, -808.3]
    """
    from scipy.special import erfcx, ndtr

    scale = np.maximum(std, 1e-12)
    z = (mean - best) / scale
    near, far = np.maximum(z, -1.0), np.minimum(z, -1.0)
    density = np.exp(-0.5 * near**2) / sqrt(2.0 * pi)
    above = np.log(density + near * ndtr(near))
    log_density = -0.5 * far**2 - 0.5 * log(2.0 * pi)
    share = sqrt(0.5 * pi) * -far * erfcx(-far / sqrt(2.0))  # one minus it is about far^-2, and round-off beyond -1e4
    below = log_density + np.where(far > -1e4, np.log1p(-np.minimum(share, 1.0 - 1e-16)), -2.0 * np.log(-far))
    return np.asarray(np.log(scale) + np.where(z > -1.0, above, below))


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
        model = self.model(x, y)
        try:
            botorch.fit_gpytorch_mll(likelihoods.ExactMarginalLogLikelihood(model.likelihood, model))
        except errors.ModelFittingError:  # then with what it starts from
            model.eval()
        with torch.no_grad():
            posterior = model.posterior(torch.from_numpy(candidates))
            mean, variance = posterior.mean[:, 0].numpy(), posterior.variance[:, 0].numpy()
        return acquisition(self.rule, mean, np.sqrt(variance), self.width, float(rewards.max()))

    def model(self, x: Any, y: Any) -> Any:
        """The surrogate on rows (t, d) and rewards (t, 1)."""
        return library("botorch", "botorch").models.SingleTaskGP(x, y)


class TPE(Peer):
    """One parameter per column: a range, or categories where `categories=True`.

    Rows of a fingerprint are no parameters, and a category per row says nothing about the others: it plays tables of
    inputs and of components only.
    """

    package: ClassVar[str] = "optuna"
    settings: ClassVar[tuple[str, ...]] = (*Peer.settings, "categories")

    def __init__(self, *arguments: Any, categories: bool = False, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.categories = bool(categories)

    def score(
        self, rows: FloatArray, rewards: FloatArray, candidates: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Minus the distance to the suggestion: squared for ranges, the number of different values for categories."""
        optuna = library("optuna", "optuna")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        kinds, names = optuna.distributions, [f"x{k}" for k in range(rows.shape[1])]
        ranges = {
            name: kinds.CategoricalDistribution(np.unique(self._scaled[:, k]).tolist())
            if self.categories
            else kinds.FloatDistribution(0.0, 1.0)
            for k, name in enumerate(names)
        }
        sampler = self.sampler(optuna, int(rng.integers(2**31)))
        study = optuna.create_study(direction="maximize", sampler=sampler)
        for row, reward in zip(rows.tolist(), rewards.tolist(), strict=True):
            told = {"params": dict(zip(names, row, strict=True)), "distributions": ranges, "value": reward}
            study.add_trial(optuna.trial.create_trial(**told))
        asked = study.ask(ranges).params
        suggested = np.array([asked[name] for name in names])
        far = candidates != suggested if self.categories else (candidates - suggested) ** 2
        return np.asarray(-np.sum(far, axis=1, dtype=np.float64))

    def sampler(self, optuna: Any, seed: int) -> Any:
        """The sampler that suggests."""
        return optuna.samplers.TPESampler(seed=seed, n_startup_trials=1)


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
