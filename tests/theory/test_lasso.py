"""The anytime Lasso: reference values, the ordering of the three lambda_t, and what event A implies for the fit."""

import itertools

import numpy as np
import pytest

from alexp import GroupLasso
from alexp.decision.schedules import anytime_lasso_lambda
from alexp.theory import lasso

SCENARIOS = [(2, 55), (3, 165), (8, 165), (9, 55), (3, 4495)]  # size and number of models
TIMES = np.unique(np.concatenate([np.arange(1, 3000), np.geomspace(1, 1e6, 4000).astype(int)]))


def test_reference_values():
    assert 10 * float(lasso.printed_lambda(100, 1.0, 55, 2, 0.1)) == pytest.approx(17.2, abs=0.05)
    assert 10 * float(lasso.printed_lambda(100, 1.0, 165, 8, 0.1)) == pytest.approx(20.6, abs=0.05)
    assert 10 * float(lasso.corrected_lambda(100, 1.0, 55, 2, 0.1)) == pytest.approx(21.8, abs=0.05)


def test_printed_is_the_one_formula_of_the_library():
    expected = [3.0 * anytime_lasso_lambda(t, 0.2, 20, 4, 0.1) for t in (1, 7, 1000)]
    assert lasso.printed_lambda([1, 7, 1000], 0.2, 20, 4, 0.1, feature_bound=3.0) == pytest.approx(expected)


@pytest.mark.parametrize("delta", [0.05, 0.1, 0.2])
@pytest.mark.parametrize(("dimension", "n_models"), SCENARIOS)
def test_self_normalised_is_never_larger_than_printed_up_to_a_million(dimension, n_models, delta):
    """The proved lambda_t, at its worst over all data, against the printed one; the repaired constants are larger."""
    printed = lasso.printed_lambda(TIMES, 1.0, n_models, dimension, delta)
    proved = lasso.self_normalised_lambda_bound(TIMES, 1.0, n_models, dimension, delta)
    ratio = proved / printed
    print(f"d={dimension} M={n_models} delta={delta}: at most {ratio.max():.3f}, {ratio[99]:.3f} at t=100")
    assert ratio.max() < 1.0
    assert ratio[99] < 0.5
    assert np.all(lasso.corrected_lambda(TIMES, 1.0, n_models, dimension, delta) > printed)


def test_bound_dominates_every_data_set_and_is_attained():
    rng = np.random.default_rng(0)
    dimension, n_models, t = 4, 7, 200
    top = float(lasso.self_normalised_lambda_bound(t, 0.3, n_models, dimension, 0.1))
    largest = 0.0
    for spread in np.geomspace(1e-2, 1, 40):
        rows = rng.normal(size=(n_models, t, dimension)) * np.array([1.0, spread, spread, spread])
        rows /= np.linalg.norm(rows, axis=2, keepdims=True)
        grams = np.einsum("mtd,mte->mde", rows, rows)
        largest = max(largest, lasso.self_normalised_lambda(grams, t, 0.3, 0.1))
    assert 0.97 * top < largest <= top


def test_self_normalised_by_hand_and_for_unequal_models():
    grams = [np.array([[3.0]]), np.array([[2.0, 1.0], [1.0, 4.0]])]
    values = []
    for gram in grams:
        v = gram + 2.0 * np.eye(len(gram))
        values.append(np.linalg.eigvalsh(v)[-1] * (np.log(np.linalg.det(v / 2.0)) + 2 * np.log(2 / 0.1)))
    assert lasso.self_normalised_lambda(grams, 5, 0.5, 0.1) == pytest.approx(2 * 0.5 / 5 * np.sqrt(max(values)))


def test_scales_with_features_and_noise():
    base = lasso.self_normalised_lambda_bound(TIMES, 1.0, 10, 3, 0.1)
    assert lasso.self_normalised_lambda_bound(TIMES, 0.2, 10, 3, 0.1, feature_bound=5.0) == pytest.approx(base)


def test_cover():
    pairs = [np.array(c) for c in itertools.combinations(range(11), 2)]
    assert lasso.column_cover(pairs, 11) == 6.0
    assert lasso.column_cover([np.array([0]), np.array([1])], 2, scales=[1.0, 3.0]) == 10.0
    assert lasso.column_cover([np.array([0]), np.array([0, 1])], 2, scales=[1.0, 3.0]) == 10.0


def run(features, groups, theta, scale, rng, steps):
    """Greedy play on a group Lasso estimate, half of the rounds at random; yields (t, rows, noise, fit, lambda)."""
    n_columns = features.shape[1]
    flat, offsets = np.concatenate(groups), np.cumsum([0, *map(len, groups)])
    path = GroupLasso(tol=1e-9).bind_groups(n_columns, flat, offsets)
    rows, noise, fit = [], [], None
    for t in range(1, steps + 1):
        greedy = int(np.argmax(features @ (fit.beta if fit is not None else np.zeros(n_columns))))
        row = features[greedy if rng.random() < 0.5 else rng.integers(len(features))]
        error = 0.3 * rng.standard_normal()
        rows.append(row)
        noise.append(error)
        path.append(row, row @ theta + error)
        phi = np.array(rows)
        valid = lasso.self_normalised_lambda([phi[:, g].T @ phi[:, g] for g in groups], t, 0.3, 0.1)
        fit = path.solve(scale * valid, start=fit)
        yield t, phi, np.array(noise), fit, valid


def test_event_a_implies_the_radius_and_the_band():
    rng = np.random.default_rng(1)
    groups = [np.arange(2 * j, 2 * j + 2) for j in range(4)]
    checked = 0
    for _ in range(6):
        features = rng.uniform(-1, 1, size=(40, 8)) / np.sqrt(2)
        theta = np.zeros(8)
        theta[2:4] = [0.8, -0.6]
        norms = np.max([np.linalg.norm(features[:, g], axis=1) for g in groups], axis=0)
        for t, phi, noise, fit, valid in run(features, groups, theta, 1.0, rng, 60):
            event = max(np.linalg.norm(phi[:, g].T @ noise) for g in groups) / t <= valid / 2
            kappa = max(np.linalg.eigvalsh(phi.T @ phi / t)[0], 0.0)  # a lower bound on kappa^2(Phi, 1) and (Phi, 2)
            if event and kappa > 0.0:
                checked += 1
                assert np.linalg.norm(fit.beta - theta) <= lasso.lasso_radius(valid, kappa) + 1e-6
                band = lasso.lasso_band(features @ fit.beta, norms, valid, kappa)
                assert np.all(band.lower - 1e-6 <= features @ theta)
                assert np.all(features @ theta <= band.upper + 1e-6)
    assert checked > 200


@pytest.mark.parametrize("scale", [0.05, 1.0])
def test_shared_columns_have_a_band_at_any_regularisation(scale):
    rng = np.random.default_rng(2)
    groups = [np.array(c) for c in itertools.combinations(range(5), 2)]
    features = np.polynomial.legendre.legvander(np.linspace(-1, 1, 41), 4)
    theta = np.array([0.0, 0.8, 0.0, -0.6, 0.0])
    cover, finite, tight = lasso.column_cover(groups, 5), 0, []
    for _ in range(4):
        for t, phi, noise, fit, valid in run(features, groups, theta, scale, rng, 60):
            if max(np.linalg.norm(phi[:, g].T @ noise) for g in groups) / t > valid / 2:
                continue
            band = lasso.distinct_columns_band(features @ fit.beta, features, phi.T @ phi, t, fit.lam, valid, cover)
            assert np.all(band.lower - 1e-6 <= features @ theta)
            assert np.all(features @ theta <= band.upper + 1e-6)
            finite += np.isfinite(band.upper[0])
            tight.append(np.max(np.abs(features @ (fit.beta - theta)) / (band.upper - band.lower)))
    assert finite > 150
    print(f"largest error over band width: {max(tight):.3f}")


def test_no_information_no_band():
    band = lasso.distinct_columns_band([0.0], np.ones((1, 2)), np.ones((2, 2)), 1, 0.1, 0.1, 1)
    assert band.lower[0] == -np.inf
    assert lasso.lasso_radius(0.1, 0.0) == np.inf
    assert lasso.lasso_band([1.0], [1.0], 0.1, 0.0).upper[0] == np.inf


@pytest.mark.parametrize(("call", "message"), [
    (lambda: lasso.corrected_lambda(0, 1.0, 2, 2, 0.1), "t must"),
    (lambda: lasso.corrected_lambda(1, 1.0, 2, 2, 1.5), "delta"),
    (lambda: lasso.self_normalised_lambda([np.eye(2)], 1, 1.0, 0.1, penalty=0.0), "penalty"),
])  # fmt: skip
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
