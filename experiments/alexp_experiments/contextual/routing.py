"""Prompts are routed to one of several language models: the reward is 1 for a right answer, minus what it cost.

Nothing is downloaded; prompts are made up, with the structure that public tables of answers have. A prompt has a
subject, a length and a difficulty. What a router sees of it are

- counts: logarithm of the length, its square, number of digits, whether there is code,
- the subject, as twelve zeros and ones,
- an embedding of 24 numbers: subject and difficulty, mixed by a random matrix and blurred,
- eight numbers that have nothing to do with anything (time of day, number of the user and the like).

Model k answers rightly with probability 1 / (1 + exp(-(skill_k + knack_k,subject - slope_k difficulty))). The larger
the model, the larger its skill and the smaller its slope, so that difficulty decides which one is worth its price. The
constants are set so that over many prompts the small model is right in about 69%, the large one in about 85% and at
least one of both in about 90%; for Mixtral-8x7B and GPT-4 on MMLU these are 68%, 81% and 86%.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import count
from alexp_experiments.contextual.streams import ContextStream

N_SUBJECTS, N_EMBEDDED, N_OTHER = 12, 24, 8
BLOCKS = {"counts": 4, "subject": N_SUBJECTS, "embedding": N_EMBEDDED, "other": N_OTHER}


@dataclass(frozen=True)
class LanguageModel:
    """How good a model is, and what it costs: `base` a prompt and `rate` more for every thousand tokens."""

    name: str
    skill: float
    slope: float
    knack: float
    base: float
    rate: float


MODELS = (
    LanguageModel("small", 1.4, 2.2, 1.2, 0.01, 0.02),
    LanguageModel("large", 1.9, 0.7, 0.5, 0.10, 0.30),
    LanguageModel("local", 0.6, 2.0, 2.0, 0.0, 0.0),
)


def routing_stream(steps: int, seed: int, n_models: int = 2) -> ContextStream:
    """`steps` prompts for the first two or three of `MODELS`."""
    count("n_models", n_models, 2)
    if n_models > len(MODELS):
        raise ValueError(f"n_models must be 2 or 3, got {n_models}")
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(122,)))
    subjects = rng.choice(N_SUBJECTS, steps, p=_shares())
    easy_or_hard = rng.normal(0.0, 0.8, N_SUBJECTS)
    tokens = np.exp(rng.normal(4.6, 0.9, steps) + 0.3 * easy_or_hard[subjects])
    difficulty = easy_or_hard[subjects] + rng.normal(0.0, 0.7, steps) + 0.25 * (np.log(tokens) - 4.6)
    contexts = _seen(subjects, difficulty, tokens, rng)
    values, rewards = np.empty((steps, n_models)), np.empty((steps, n_models))
    luck = _luck(steps, n_models, rng)
    for k, model in enumerate(MODELS[:n_models]):
        knack = model.knack * rng.standard_normal(N_SUBJECTS)
        right = 1.0 / (1.0 + np.exp(-(model.skill + knack[subjects] - model.slope * difficulty)))
        price = model.base + model.rate * np.minimum(tokens, 2000.0) / 1000.0
        values[:, k], rewards[:, k] = right - price, (luck[:, k] < right) - price
    names = tuple(model.name for model in MODELS[:n_models])
    return ContextStream(contexts, values, rewards, _sets(), contexts.shape[1], names, reward_range=(-0.7, 1.0))


def _luck(n: int, n_models: int, rng: np.random.Generator) -> FloatArray:
    """(n, K) numbers that are uniform on [0, 1]; what one model gets wrong the others tend to get wrong, too."""
    from scipy.special import ndtr

    shared, own = rng.standard_normal((n, 1)), rng.standard_normal((n, n_models))
    return np.asarray(ndtr(np.sqrt(0.6) * shared + np.sqrt(0.4) * own))


def _shares() -> FloatArray:
    """Few subjects are common, most are rare."""
    weights = 1.0 / np.arange(1, N_SUBJECTS + 1)
    return np.asarray(weights / weights.sum())


def _seen(subjects: IntArray, difficulty: FloatArray, tokens: FloatArray, rng: np.random.Generator) -> FloatArray:
    """(n, D) what a router sees, each column with a standard deviation of about one."""
    n, logs = subjects.size, (np.log(tokens) - 4.6) / 0.9
    digits = np.log1p(rng.poisson(np.exp(0.5 + 0.8 * np.isin(subjects, [1, 4, 7])), n))
    code = (rng.random(n) < np.where(np.isin(subjects, [2, 4]), 0.6, 0.05)).astype(np.float64)
    one_hot = np.eye(N_SUBJECTS)[subjects]
    meaning = np.column_stack([2.0 * one_hot, 1.5 * difficulty])
    mix = rng.standard_normal((meaning.shape[1], N_EMBEDDED)) / np.sqrt(meaning.shape[1])
    embedding = np.asarray(meaning @ mix * 2.0 + 0.5 * rng.standard_normal((n, N_EMBEDDED)))
    return np.column_stack([logs, logs**2 - 1.0, digits, code, one_hot, embedding, rng.standard_normal((n, N_OTHER))])


def _sets() -> dict[str, list[int]]:
    """Every block alone, subject and counts together, and everything."""
    start, out = 0, dict[str, list[int]]()
    for name, size in BLOCKS.items():
        out[name] = list(range(start, start + size))
        start += size
    out["subject and counts"] = out["subject"] + out["counts"]
    out["everything"] = list(range(start))
    return out
