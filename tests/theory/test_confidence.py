"""The Lasso band of a running ALExp, and the ridge band beside it."""

import numpy as np
import pytest

from alexp import ALExp, Greedy, Interval, ModelClass, Schedules, SyntheticEnvironment, Uniform
from alexp.theory import lasso_confidence


def play(opt, environment, steps):
    for _ in range(steps):
        trial = opt.ask()
        opt.tell(trial, environment.observe(trial.x))


@pytest.mark.parametrize("normalise", [False, True])
def test_band_covers_the_reward_over_whole_runs(normalise):
    domain = Interval(resolution=60)
    models = ModelClass.legendre(degree=4, size=2)
    models = models.normalized(domain) if normalise else models
    delta, lost, widths = 0.2, 0, []
    for seed in range(30):
        environment = SyntheticEnvironment(models, domain, noise_std=0.1, random_state=seed)
        opt = ALExp(
            models,
            domain,
            noise_std=0.1,
            agents=Greedy(0.1),
            exploration=Uniform(),
            random_state=seed,
            schedules=Schedules(gamma=1.0, lam=0.05),
        )
        truth = np.array([environment.reward(x) for x in domain.points])
        missed = False
        for _ in range(8):
            play(opt, environment, 5)
            band = lasso_confidence(opt, domain.points, delta)
            missed |= bool(np.any(truth < band.lower) or np.any(truth > band.upper))
        lost += missed
        widths.append(np.median(band.upper - band.lower))
    print(f"lost {lost} of 30, median width {np.median(widths):.2f}")
    assert lost / 30 <= delta + 3 * np.sqrt(delta * (1 - delta) / 30)
    assert np.isfinite(np.median(widths))


def test_direction_flips_the_band():
    domain, models = Interval(resolution=30), ModelClass.legendre(degree=3, size=2)
    environment = SyntheticEnvironment(models, domain, noise_std=0.05, random_state=3)
    bands = {}
    for direction, sign in (("maximize", 1.0), ("minimize", -1.0)):
        opt = ALExp(models, domain, noise_std=0.05, direction=direction, random_state=0)
        for index in range(0, 30, 2):
            opt.observe(index, sign * environment.reward(domain.points[index]))
        bands[direction] = lasso_confidence(opt, 0.3)
    assert bands["maximize"].lower == pytest.approx(-bands["minimize"].upper)
    assert bands["maximize"].upper == pytest.approx(-bands["minimize"].lower)


def test_before_the_columns_are_seen_nothing_is_promised():
    opt = ALExp(ModelClass.legendre(degree=3, size=2), Interval(resolution=30), random_state=0)
    with pytest.raises(ValueError, match="at least one reward"):
        lasso_confidence(opt, 0.1)
    opt.observe(3, 0.5)
    assert lasso_confidence(opt, 0.1).upper[0] == np.inf


def test_intercepts_are_refused():
    opt = ALExp(ModelClass.legendre(degree=3, size=2, intercept=True), Interval(resolution=30), random_state=0)
    with pytest.raises(ValueError, match="intercept"):
        lasso_confidence(opt, 0.1)
