"""Confidence sets of models with an unpenalised constant for every arm, along adversarial sequences."""

import numpy as np

from alexp.decision.widths import model_radii, model_radii_with_constant
from alexp.estimation.factory import posteriors
from alexp.problem.candidates import Choices
from alexp.problem.models import ModelClass

ARMS, DELTA, NOISE = 4, 0.1, 0.5


def test_one_constant_is_the_case_of_one_arm():
    losses, levels = np.array([1.0, 2.0]), np.array([0.5, 3.0])
    got = model_radii_with_constant(losses, levels, 7, 1.0, NOISE, 1.0, DELTA)
    want = model_radii(losses, levels + np.log(7), 1.0, NOISE, 1.0, DELTA / 2) + 2 * NOISE**2 * np.log(4 / DELTA)
    np.testing.assert_allclose(got, want)


def test_arms_without_rewards_say_nothing():
    """An arm that was played once tells its constant alone: the radius grows by what its noise may have been."""
    losses, levels, numbers = np.array([1.0]), np.array([0.5]), (1.0, NOISE, 1.0, DELTA)
    once = [model_radii_with_constant(losses, levels, counts, *numbers)[0] for counts in ([5, 0, 0], [5, 1, 0])]
    np.testing.assert_allclose(once[1] - once[0], 2 * NOISE**2 * np.log(4 * 3 / DELTA))


def test_the_truth_is_lost_in_fewer_runs_than_stated_whatever_is_played():
    """Arms are chosen to be played where the truth looks worst; levels of the arms are far apart."""
    models = ModelClass.per_arm({"true": [0, 1], "other": [2]}, arms=ARMS)
    lost, runs = 0, 50
    for run in range(runs):
        rng = np.random.default_rng(run)
        theta = rng.normal(size=(ARMS, 2))
        theta /= np.linalg.norm(theta)  # of all arms together, as norm_bound has it
        levels, ridge = 100.0 * rng.normal(size=ARMS), NOISE / 1.0
        fits = posteriors(models, ridge)
        for _ in range(25):
            z = rng.normal(size=3) * rng.choice([0.1, 3.0])
            rows = models.offered(z, None)
            truth = levels + theta @ z[:2]
            errors = np.abs(fits.mean(0, rows) - truth)
            arm = int(np.argmax(np.where(fits.counts > 0, errors, 1e9 * rng.random(ARMS))))
            fits.update(rows[arm], float(truth[arm] + NOISE * rng.choice([-1.0, 1.0])))
            squares = model_radii_with_constant(
                fits.residuals(), fits.log_determinants(), fits.counts, ridge, NOISE, 1.0, DELTA
            )
            offer = Choices(None, np.ascontiguousarray(rows.T))
            band = fits.envelope(np.array([0]), np.sqrt(np.maximum(squares[:1], 0.0)), offer)
            inside = np.all((band.lower <= truth + 1e-9) & (truth <= band.upper + 1e-9))
            assert np.all(np.isinf(band.upper) == (fits.counts == 0))
            if squares[0] < 0.0 or not inside:
                lost += 1
                break
    assert lost <= DELTA * runs


def test_the_set_allows_for_the_noise_of_every_first_reward():
    """After one reward of each of 30 arms all constants are off by their noise: together far more than one may be."""
    arms = 30
    models = ModelClass.per_arm({"true": [0]}, arms=arms)
    fits, rows = posteriors(models, NOISE), models.offered([1.0], None)
    for row in rows:
        fits.update(row, NOISE)  # the truth is zero
    numbers = (NOISE, NOISE, 1.0, DELTA)
    square = model_radii_with_constant(fits.residuals(), fits.log_determinants(), fits.counts, *numbers)[0]
    distance = np.sum((fits.mean(0, rows) / fits.width(0, rows)) ** 2)
    np.testing.assert_allclose(distance, arms * NOISE**2)
    assert model_radii(fits.residuals(), fits.log_determinants(), *numbers)[0] < distance < square
