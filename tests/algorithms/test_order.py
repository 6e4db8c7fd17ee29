"""ALExp's runs depend on the problem only: not on the order of columns, nor on how its groups are given.

Columns within a group keep their order: it decides how sums are rounded, and cos^2 + sin^2 is a tie of all candidates.
The long pass is `python -m tests.algorithms.test_order`: 200 runs of 100 rounds.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest

import alexp


class Reordered:
    """A dictionary with its columns in another order."""

    def __init__(self, inner, order):
        self._inner, self._order = inner, order
        self.n_columns, self.names = inner.n_columns, [inner.names[i] for i in order]

    def __call__(self, x):
        return self._inner(x)[:, self._order]

    def to_dict(self):
        return None


def problem(seed):
    """Models, domain, noiseless rewards and the noise: subsets of polynomials or waves, with constants and scales."""
    rng = np.random.default_rng(seed)
    domain = alexp.Interval(-1.0, 1.0, resolution=int(rng.integers(20, 120)))
    intercept = bool(rng.random() < 0.4)
    kind = seed % 4
    if kind == 0:
        models = alexp.ModelClass.legendre(int(rng.integers(3, 9)), 2, intercept=intercept)
    elif kind == 1:
        models = alexp.ModelClass.legendre(int(rng.integers(3, 6)), 3, intercept=intercept)
    elif kind == 2:
        models = alexp.ModelClass.fourier(2, 2, intercept=intercept)
    else:
        models = alexp.ModelClass.legendre(int(rng.integers(3, 6)), 2, intercept=intercept).normalized(domain)
    group = models.groups[int(rng.integers(models.n_models))]
    rewards = models.matrix(domain)[:, group] @ rng.standard_normal(group.size)
    return models, domain, rewards / np.abs(rewards).max(), 10.0 ** -rng.uniform(0.3, 2.0)


def listed(models, order=None):
    """The same models as explicit groups, on columns in another order if one is given."""
    order = np.arange(models.n_columns) if order is None else order
    back = np.argsort(order)
    dictionary = Reordered(models.dictionary, order)
    groups = [back[group] for group in models.groups]
    return alexp.ModelClass(dictionary, groups, intercept=models.intercept, scales=models.scales)


def decisions(models, domain, rewards, noise, seed, rounds):
    """What is played and by whom, and the probabilities at the end."""
    opt = alexp.ALExp(models, domain, noise_std=noise, norm_bound=1.0, reward_bound=1.0, random_state=seed)
    errors = noise * np.random.default_rng(seed).standard_normal(rounds)
    trials = []
    for error in errors:
        trial = opt.ask()
        opt.tell(trial, rewards[trial.index] + error)
        trials.append((trial.index, trial.model, trial.explored))
    return trials, opt.probabilities


def differing(seeds, rounds):
    """Runs, by their seeds, in which listing the groups or moving the columns changes a decision."""
    out = []
    for seed in seeds:
        models, *rest = problem(seed)
        moved = np.random.default_rng([seed, 1]).permutation(models.n_columns)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", alexp.AssumptionWarning)
            runs = [decisions(own, *rest, seed, rounds) for own in (models, listed(models), listed(models, moved))]
        out += [seed for trials, _ in runs[1:] if trials != runs[0][0]]
        for trials, q in runs[1:]:
            if trials == runs[0][0]:
                np.testing.assert_allclose(q, runs[0][1], atol=1e-6)
    return out


@pytest.mark.parametrize("part", range(4))
def test_neither_the_order_of_columns_nor_listing_the_groups_changes_a_decision(part):
    assert differing(range(part, 200, 4), rounds=12) == []


def test_any_minimiser_would_not_do():
    """What the canonical one is for: without it such runs part within a few rounds."""
    models, *rest = problem(0)
    domain, rewards, noise = rest
    parted = 0
    for seed in range(6):
        played = []
        for own in (models, listed(models)):
            opt = alexp.ALExp(own, domain, noise_std=noise, random_state=seed, oracle=alexp.GroupLasso(canonical=False))
            indices = []
            for _ in range(12):
                trial = opt.ask()
                opt.tell(trial, rewards[trial.index])
                indices.append(trial.index)
            played.append(indices)
        parted += played[0] != played[1]
    assert parted


@pytest.mark.parametrize("seed", range(8))
def test_the_order_of_models_orders_the_probabilities(seed):
    """On the same rewards, whatever the order in which models are listed."""
    models, domain, rewards, noise = problem(seed)
    order = np.random.default_rng(seed).permutation(models.n_models)
    moved = alexp.ModelClass(
        models.dictionary,
        [models.groups[int(j)] for j in order],
        intercept=models.intercept,
        scales=models.scales[order],
    )
    one, two = (alexp.ALExp(own, domain, noise_std=noise, random_state=0) for own in (models, moved))
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", alexp.AssumptionWarning)
        for index in rng.integers(len(rewards), size=6):
            reward = rewards[index] + noise * rng.standard_normal()
            one.observe(int(index), reward)
            two.observe(int(index), reward)
            np.testing.assert_allclose(two.probabilities, one.probabilities[order], atol=1e-7)
            np.testing.assert_allclose(two.fit.beta, one.fit.beta, atol=1e-6)


if __name__ == "__main__":
    parted = differing(range(int(sys.argv[1]) if len(sys.argv) > 1 else 200), rounds=100)
    print(f"runs that differ: {parted or 'none'}")
