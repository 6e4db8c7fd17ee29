"""Contextual problems for the tests of studies: fixed rounds, so that any two runs can be compared."""

import numpy as np

import alexp
from alexp.study import create_study

BLOCKS = alexp.ModelClass.from_blocks({"user": 2, "item": 3})
PER_ARM = alexp.ModelClass.per_arm({"age": [0], "genes": [1, 2]}, arms=3)
NAMES = ["low", "middle", "high"]
SETTINGS = {"noise_std": 0.3, "norm_bound": 2.0, "random_state": 5}
ALGORITHMS = ["evidence-mixture", "alexp", "linucb", "exp4-ix"]


def features(k, n=4):
    """The features of round k, (n, 5)."""
    return np.random.default_rng([7, k]).standard_normal((n, 5))


def context(k):
    """The context of round k, (3,)."""
    return np.random.default_rng([8, k]).standard_normal(3)


def reward(trial):
    """A fixed reward per trial and position."""
    return float(np.cos(trial.index) + 0.3 * np.sin(37.0 * trial.id))


def blocks_study(storage, name="s", **settings):
    return create_study(BLOCKS, alexp.Candidates(), name=name, storage=storage, **(SETTINGS | settings))


def arms_study(storage, name="s", models=PER_ARM, arms=NAMES, **settings):
    return create_study(models, alexp.Arms(arms), name=name, storage=storage, **(SETTINGS | settings))


def ask(subject, k, **more):
    return subject.ask(features=features(k), ids=[f"item {k}.{i}" for i in range(4)], **more)
