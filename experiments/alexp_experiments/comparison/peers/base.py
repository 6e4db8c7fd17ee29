"""What peers share: they look at rows of features, score all candidates, and the best score is played."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar, Unpack

import numpy as np

from alexp.algorithms.base import Algorithm, Decision, Observation, Shared
from alexp.algorithms.streams import AGENTS
from alexp.common.arrays import FloatArray
from alexp.common.codec import State
from alexp.common.validation import non_negative, one_of
from alexp.decision.plays import Certain, Even
from alexp.problem.candidates import Round
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass
from alexp_experiments.core.fingerprint import read_module
from alexp_experiments.core.tasks import RECORD_FORMAT, Task, algorithm_class

_PLAYED_BY = (__name__, "alexp.simulation", "alexp_experiments.comparison.tables.data")
_TITLES = {"sklearn": "scikit-learn", "botorch": "BoTorch", "optuna": "Optuna", "vowpalwabbit": "Vowpal Wabbit"}


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
        sources = [read_module(name)[0].decode() for name in (kind.__module__, *_PLAYED_BY)]
        settings: Mapping[str, object] = self.settings
        content = [RECORD_FORMAT, self.scenario.to_dict(), self.kind, dict(settings), sources]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:24]
