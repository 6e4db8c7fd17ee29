"""Contexts chosen by an adversary who knows the truth and has seen everything: is the true model ever ruled out?

Certificates rest on Ville's inequality, which allows any sets of candidates that are fixed before the round's noise is
drawn. So the adversary knows the true model, its coefficients and all noise so far, and presents what he likes:

- "gambler": the same set again and again while luck goes one way, so that the path stops where it is most extreme;
- "impostor": nothing but noise for the true model to explain, and features for its rivals that lie along past noise;
- "blind spot": the direction in which the true model's estimate errs most;
- "indifferent": whatever comes.

At delta = 0.1 the true model may be lost, at any moment, in a tenth of the sequences.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

import alexp
from alexp.algorithms import Algorithm

SEQUENCES, ROUNDS, DELTA = 1000, 30, 0.1  # what scale 1 means
N_SETS, SIZE, N = 5, 2, 3  # feature sets, columns of each, candidates in a round
NOISE, BOUND = 0.3, 1.0
TRUE = 0


class Adversary:
    """What he knows, and what he presents next."""

    def __init__(self, strategy: str, rng: np.random.Generator) -> None:
        self._present: Callable[[], np.ndarray] = getattr(self, f"_{strategy.replace(' ', '_')}")
        self._rng = rng
        self.theta = rng.standard_normal(SIZE)
        self.theta *= BOUND / np.linalg.norm(self.theta)
        self._rows, self._noise, self._last = [], [], None

    def present(self) -> np.ndarray:
        """(N, P) features of the round's candidates."""
        self._last = self._present()
        return self._last

    def reward(self, index: int) -> float:
        """Of the candidate that was chosen; the noise is drawn only now."""
        row = self._last[index]
        noise = NOISE * float(self._rng.standard_normal())
        self._rows.append(row)
        self._noise.append(noise)
        return float(row[TRUE * SIZE : (TRUE + 1) * SIZE] @ self.theta) + noise

    def _indifferent(self) -> np.ndarray:
        return self._rng.standard_normal((N, N_SETS * SIZE)) / np.sqrt(SIZE)

    def _gambler(self) -> np.ndarray:
        lucky = len(self._noise) > 1 and self._noise[-1] * self._noise[-2] > 0.0
        return self._last if lucky else self._indifferent()

    def _impostor(self) -> np.ndarray:
        rows = self._indifferent()
        rows[:, TRUE * SIZE : (TRUE + 1) * SIZE] *= 0.01
        if self._noise:
            pulls = np.array(self._noise) @ np.array(self._rows)
            rows = rows + np.sign(self._rng.standard_normal((N, 1))) * pulls / max(np.linalg.norm(pulls), 1e-9)
            rows[:, TRUE * SIZE : (TRUE + 1) * SIZE] *= 0.01
        return rows

    def _blind_spot(self) -> np.ndarray:
        if not self._noise:
            return self._indifferent()
        own = np.array(self._rows)[:, TRUE * SIZE : (TRUE + 1) * SIZE]
        spread = own.T @ own + (NOISE / BOUND) ** 2 * np.eye(SIZE)
        error = np.linalg.solve(spread, own.T @ np.array(self._noise) - (NOISE / BOUND) ** 2 * self.theta)
        rows = self._indifferent()
        rows[:, TRUE * SIZE : (TRUE + 1) * SIZE] = error / max(np.linalg.norm(error), 1e-9)
        return rows


STRATEGIES = ("gambler", "impostor", "blind spot", "indifferent")
KINDS = (alexp.LMUCB, alexp.EvidenceMixture)


def loses_the_truth(
    kind: type[Algorithm], strategy: str, seed: int, rounds: int = ROUNDS, delta: float = DELTA, stated: float = NOISE
) -> bool:
    """Whether the true model is ever ruled out in one sequence, with `stated` as the noise that was stated."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(131,)))
    adversary = Adversary(strategy, rng)
    models = alexp.ModelClass.from_blocks({f"set {k}": SIZE for k in range(N_SETS)})
    opt = kind(models, alexp.Candidates(), noise_std=stated, norm_bound=BOUND, random_state=seed)
    for _ in range(rounds):
        trial = opt.ask(features=adversary.present())
        opt.tell(trial, adversary.reward(trial.index))
        try:
            left = opt.plausible_models(delta)
        except alexp.NotCertified:  # noise, bound and all models contradict the data: the truth is among them
            return True
        if TRUE not in left:
            return True
    return False


def lost(sequences: int, seed: int, **changes: float) -> dict[str, int]:
    """How often, by strategy; algorithms take turns."""
    out = dict.fromkeys(STRATEGIES, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(sequences):
            strategy, kind = STRATEGIES[k % len(STRATEGIES)], KINDS[k // len(STRATEGIES) % len(KINDS)]
            out[strategy] += loses_the_truth(kind, strategy, 1000 * seed + k, **changes)
    return out


def soak(scale: float = 1.0, seed: int = 0) -> dict[str, int | float | str]:
    """1,000 sequences of 30 rounds at scale 1. More than a tenth lost is a violation."""
    sequences = max(8, round(SEQUENCES * scale))
    found = lost(sequences, seed)
    total = sum(found.values())
    return {"tried": sequences, "violations": max(0, total - int(DELTA * sequences)), "true model lost": total} | {
        f"to the {name}" if name != "blind spot" else "to its blind spot": number for name, number in found.items()
    }
