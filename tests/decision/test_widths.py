"""Widths of ridge confidence sets: formulas by hand, and coverage of the model-free version by simulation."""

import numpy as np
import pytest

from alexp.decision.widths import model_radii, ucb_width


def test_width_by_hand():
    expected = np.sqrt(0.3**2 * (1.7 + 2 * np.log(20)) + 0.1**2 * 2.0**2)
    assert float(ucb_width(1.7, ridge=0.1, noise_std=0.3, norm_bound=2.0, delta=0.05)) == pytest.approx(expected)


def test_width_is_vectorised_and_grows():
    widths = ucb_width(np.array([0.0, 1.0, 5.0]), 0.1, 0.3, 2.0, 0.05)
    assert np.all(np.diff(widths) > 0)


def test_never_wider_than_the_triangle_inequality():
    wide = 0.3 * np.sqrt(1.7 + 2 * np.log(20)) + 0.1 * 2.0
    assert float(ucb_width(1.7, 0.1, 0.3, 2.0, 0.05)) < wide


def test_one_model_reduces_to_the_plain_width():
    radii = model_radii([4.0], [1.7], ridge=0.1, noise_std=0.3, norm_bound=2.0, delta=0.05)
    assert radii[0] == pytest.approx(float(ucb_width(1.7, 0.1, 0.3, 2.0, 0.05)) ** 2)


def test_radii_survive_extreme_evidence():
    radii = model_radii([1.0, 1e9], [2.0, 2.0], ridge=0.1, noise_std=1e-3, norm_bound=1.0, delta=0.1)
    assert np.all(np.isfinite(radii))
    assert radii[0] > 0 > radii[1]


@pytest.mark.parametrize(("name", "value"), [("ridge", 0.0), ("delta", 1.0), ("delta", 0.0), ("noise_std", -1.0)])
def test_bad_arguments_are_named(name, value):
    arguments = {"ridge": 0.1, "noise_std": 0.3, "norm_bound": 2.0, "delta": 0.05, name: value}
    with pytest.raises(ValueError, match=name):
        ucb_width(1.0, **arguments)


@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_radii_cover_the_true_model_under_adaptive_play(delta):
    """1,000 runs of 60 greedy-ish rounds over three models; the true one must keep its coefficients in its set."""
    rng = np.random.default_rng(11)
    runs, ridge, sigma = 1000, 0.5, 0.4
    maps = rng.normal(size=(3, 25, 2))
    maps /= np.linalg.norm(maps, axis=2).max()
    theta = np.array([0.8, -0.6])
    gram = np.tile(ridge**2 * np.eye(2), (runs, 3, 1, 1))
    moment, squares, lost = np.zeros((runs, 3, 2)), np.zeros(runs), np.zeros(runs, bool)
    for _ in range(60):
        fits = np.linalg.solve(gram, moment[..., None])[..., 0]
        picked = np.argmax(
            np.einsum("mnd,rmd->rmn", maps, fits)[np.arange(runs), rng.integers(3, size=runs)]
            + 0.1 * rng.normal(size=(runs, 25)),
            axis=1,
        )
        rows = maps[:, picked].transpose(1, 0, 2)
        rewards = rows[:, 0] @ theta + sigma * rng.normal(size=runs)
        gram += rows[..., :, None] * rows[..., None, :]
        moment += rewards[:, None, None] * rows
        squares += rewards**2
        fits = np.linalg.solve(gram, moment[..., None])[..., 0]
        losses = squares[:, None] - np.einsum("rmd,rmd->rm", fits, moment)
        logdets = np.linalg.slogdet(gram / ridge**2)[1]
        error = fits[:, 0] - theta
        distance = np.einsum("rd,rde,re->r", error, gram[:, 0], error)
        lost |= distance > model_radii(losses, logdets, ridge, sigma, 1.0, delta)[:, 0]
    rate, error = lost.mean(), np.sqrt(delta * (1 - delta) / runs)
    print(f"delta {delta}: lost {rate:.4f} +- {error:.4f}")
    assert rate <= delta + 3 * error
