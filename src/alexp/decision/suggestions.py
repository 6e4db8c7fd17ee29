"""What M agents want to play next: one distribution over the candidates per agent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.backends import backend
from alexp.decision.weights import draw_index


class Suggestions:
    """Policies p_j of M agents on n candidates: a few atoms each, plus a share spread evenly over all candidates.

    Attributes
    ----------
    offsets : (M + 1,) agent j owns atoms offsets[j]:offsets[j+1].
    atoms : positions of the candidates with extra mass.
    weights : their masses; sum over an agent's atoms + spread[j] = 1.
    spread : (M,) mass that is spread evenly over all n candidates.
    """

    def __init__(
        self, offsets: IntArray, atoms: IntArray, weights: FloatArray, spread: FloatArray, n_candidates: int
    ) -> None:
        self.offsets, self.atoms, self.weights, self.spread = offsets, atoms, weights, spread
        self.n_candidates = n_candidates

    @classmethod
    def certain(cls, positions: IntArray, n_candidates: int, spread: float = 0.0) -> Suggestions:
        """Each agent plays positions[j], except that a share `spread` goes to all candidates alike."""
        if not isinstance(positions, np.ndarray):
            on_device: Suggestions = backend("device_suggestions")(positions, n_candidates, spread)
            return on_device
        m = positions.size
        return cls(np.arange(m + 1), positions, np.full(m, 1.0 - spread), np.full(m, spread), n_candidates)

    @classmethod
    def samples(cls, positions: IntArray, n_candidates: int) -> Suggestions:
        """Each agent plays one of its K sampled candidates, drawn evenly; positions has shape (M, K)."""
        m, k = positions.shape
        return cls(np.arange(m + 1) * k, positions.ravel(), np.full(m * k, 1.0 / k), np.zeros(m), n_candidates)

    @classmethod
    def distributions(cls, rows: Sequence[FloatArray], n_candidates: int) -> Suggestions:
        """One full probability vector over the n candidates per agent."""
        atoms = [np.flatnonzero(row) for row in rows]
        offsets = np.concatenate([[0], np.cumsum([a.size for a in atoms])]).astype(np.int64)
        weights = np.concatenate([row[a] for row, a in zip(rows, atoms, strict=True)])
        return cls(offsets, np.concatenate(atoms), weights, np.zeros(len(rows)), n_candidates)

    @classmethod
    def merged(cls, parts: Sequence[Suggestions], owners: Sequence[IntArray]) -> Suggestions:
        """Suggestions of all agents from those of disjoint crowds; owners[k] are the agents of parts[k]."""
        if len(parts) == 1:
            return parts[0]
        agents = np.concatenate(owners)
        sizes = np.concatenate([np.diff(part.offsets) for part in parts])
        starts = np.concatenate([[0], np.cumsum(sizes)])[:-1]
        by_agent = np.argsort(agents)
        take = np.concatenate([np.arange(starts[i], starts[i] + sizes[i]) for i in by_agent])
        offsets = np.concatenate([[0], np.cumsum(sizes[by_agent])]).astype(np.int64)
        atoms = np.concatenate([part.atoms for part in parts])[take]
        weights = np.concatenate([part.weights for part in parts])[take]
        spread = np.concatenate([part.spread for part in parts])[by_agent]
        return cls(offsets, atoms, weights, spread, parts[0].n_candidates)

    def expectation(self, values: FloatArray) -> FloatArray:
        """E_{x ~ p_j} values(x) for every agent, shape (M,); values has shape (n,)."""
        if self.atoms.size == self.spread.size:  # one atom each, the common case
            expected = self.weights * values[self.atoms]
        else:
            expected = np.add.reduceat(self.weights * values[self.atoms], self.offsets[:-1])
        if self.spread.any():
            expected = expected + self.spread * values.mean()
        return expected

    def expected_features(self, table: FloatArray) -> FloatArray:
        """E_{x ~ p_j} features(x) for every agent, shape (M, P); table is feature-major, shape (P, n)."""
        return np.array([self.expectation(feature) for feature in table]).T

    def mixed(self, weights: FloatArray) -> FloatArray:
        """sum_j q_j p_j(x) of all candidates, for weights q (M,), shape (n,)."""
        of_agent = np.repeat(weights, np.diff(self.offsets))
        own = np.bincount(self.atoms, of_agent * self.weights, minlength=self.n_candidates)
        return np.asarray(own + float(weights @ self.spread) / self.n_candidates)

    def mass(self, position: int) -> FloatArray:
        """p_j(x) of one candidate for every agent, shape (M,)."""
        hits = np.where(self.atoms == position, self.weights, 0.0)
        own = hits if self.atoms.size == self.spread.size else np.add.reduceat(hits, self.offsets[:-1])
        return np.asarray(own + self.spread / self.n_candidates)

    def draw(self, j: int, rng: np.random.Generator) -> int:
        """Position of one candidate drawn from p_j."""
        start, stop = self.offsets[j], self.offsets[j + 1]
        if self.spread[j] > 0.0 and rng.random() < self.spread[j]:
            return int(rng.integers(self.n_candidates))
        if stop - start == 1:
            return int(self.atoms[start])
        return int(self.atoms[start + draw_index(self.weights[start:stop], rng)])
