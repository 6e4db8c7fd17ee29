"""Nothing stated: the right model is found in any units."""

from dataclasses import dataclass, field
from math import sqrt

import numpy as np
import pytest

import alexp


@dataclass(frozen=True)
class Units:
    """What the same problem is written in: rewards level + factor r, |r| <= 1, noise 0.1 factor, features x scale."""

    factor: float = 1.0
    level: float = 0.0
    scale: float = 1.0
    stated: dict = field(default_factory=dict)


SETTINGS = {
    "units right": Units(),
    "rewards x100": Units(factor=100.0),
    "rewards x100, noise stated": Units(factor=100.0, stated={"noise_std": 10.0}),
    "yield 50 ± 30": Units(factor=30.0, level=50.0),
    "yield 50 ± 30, noise and bound stated": Units(
        factor=30.0, level=50.0, stated={"noise_std": 3.0, "reward_bound": 80.0}
    ),
    "rewards x.001": Units(factor=0.001),
    "features x.001": Units(scale=0.001),
    "features x1000": Units(scale=1000.0),
}


def finds_the_model(units, seed, steps=30, n=300):
    """Whether model b of three, the true one, is the most probable after a run with all defaults."""
    rng = np.random.default_rng(seed)
    features = {name: rng.standard_normal((n, size)) / sqrt(size) for name, size in (("a", 4), ("b", 5), ("c", 6))}
    reward = features["b"] @ rng.standard_normal(5)
    reward = units.level + units.factor * reward / np.abs(reward).max()
    models = alexp.ModelClass.from_matrices({name: units.scale * block for name, block in features.items()})
    domain = alexp.FiniteSet(np.arange(n))
    environment = alexp.Environment(domain, reward, noise_std=0.1 * units.factor, random_state=seed)
    opt = alexp.EvidenceMixture(models, domain, random_state=seed, **units.stated)
    for _ in range(steps):
        trial = opt.ask()
        opt.tell(trial, environment.observe_index(trial.index))
    return int(np.argmax(opt.probabilities)) == 1


@pytest.mark.parametrize("name", SETTINGS)
def test_the_right_model_in_any_units(name):
    found = [finds_the_model(SETTINGS[name], seed) for seed in range(10)]
    assert sum(found) >= 9
