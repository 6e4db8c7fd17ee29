"""Logs of this library's own algorithms on contextual rounds whose true rewards are known.

A round is one of 200 sets of 3 to 6 candidates, drawn with replacement, so that values of policies are exact. Features
have two blocks, of which the first matters; rewards are 0 or 1.
"""

import numpy as np

import alexp

SIZES = (3, 7)
COEFFICIENTS = np.array([0.25, -0.2, 0.1, 0.0, 0.0])
BLOCKS = {"first": 3, "second": 2}


def problem(seed=0):
    """Rows (n_t, 5) and chances of reward (n_t,) of 200 rounds."""
    rng = np.random.default_rng(seed)
    rows = [rng.uniform(-1.0, 1.0, size=(int(rng.integers(*SIZES)), 5)) for _ in range(200)]
    return rows, [0.5 + block @ COEFFICIENTS for block in rows]


def policy(chances, sharpness=8.0):
    """Probabilities that rise with the chance of a reward, and are no logger's."""
    weights = [np.exp(sharpness * one) for one in chances]
    return [one / one.sum() for one in weights]


def value(policy, chances):
    """True value."""
    return float(np.mean([pi @ one for pi, one in zip(policy, chances, strict=True)]))


def algorithm(name, seed, **options):
    made = {
        "matching": lambda models, domain: alexp.EvidenceMixture(models, domain, random_state=seed, **options),
        "exploring": lambda models, domain: alexp.EvidenceMixture(
            models, domain, random_state=seed, rule="ucb", gamma=0.5, **options
        ),
        "alexp": lambda models, domain: alexp.ALExp(
            models, domain, random_state=seed, noise_std=0.5, reward_bound=1.0, **options
        ),
        "linucb": lambda models, domain: alexp.LinUCB(
            models, domain, random_state=seed, noise_std=0.5, reward_bound=1.0, **options
        ),
    }[name]
    return made(alexp.ModelClass.from_blocks(BLOCKS, intercept=True), alexp.Candidates())


def play(name, rounds, seed, **options):
    """A run of an algorithm, and which of the 200 rounds it saw."""
    rows, chances = problem()
    rng = np.random.default_rng([seed, 1])
    opt = algorithm(name, seed, **options)
    seen = rng.integers(len(rows), size=rounds)
    for k in seen:
        trial = opt.ask(features=rows[k])
        opt.tell(trial, float(rng.random() < chances[k][trial.index]))
    return opt, seen
