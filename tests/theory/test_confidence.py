"""Confidence sets of the anytime Lasso and of ridge fits: reference values, orderings, and bands of runs."""

import itertools

import numpy as np
import pytest

from alexp import ALExp, Greedy, GroupLasso, Interval, ModelClass, Schedules, SyntheticEnvironment, Uniform
from alexp.decision.schedules import anytime_lasso_lambda
from alexp.theory import confidence, lasso_confidence, ucb_width

SCENARIOS = [(2, 55), (3, 165), (8, 165), (9, 55), (3, 4495)]  # size and number of models
TIMES = np.unique(np.concatenate([np.arange(1, 3000), np.geomspace(1, 1e6, 4000).astype(int)]))


def test_reference_values():
    assert 10 * float(confidence.printed_lambda(100, 1.0, 55, 2, 0.1)) == pytest.approx(17.2, abs=0.05)
    assert 10 * float(confidence.printed_lambda(100, 1.0, 165, 8, 0.1)) == pytest.approx(20.6, abs=0.05)
    assert 10 * float(confidence.corrected_lambda(100, 1.0, 55, 2, 0.1)) == pytest.approx(21.8, abs=0.05)


def test_printed_is_the_one_formula_of_the_library():
    expected = [3.0 * anytime_lasso_lambda(t, 0.2, 20, 4, 0.1) for t in (1, 7, 1000)]
    assert confidence.printed_lambda([1, 7, 1000], 0.2, 20, 4, 0.1, feature_bound=3.0) == pytest.approx(expected)


@pytest.mark.parametrize("delta", [0.05, 0.1, 0.2])
@pytest.mark.parametrize(("dimension", "n_models"), SCENARIOS)
def test_self_normalised_is_never_larger_than_printed_up_to_a_million(dimension, n_models, delta):
    """The proved lambda_t, at its worst over all data, against the printed one; the repaired constants are larger."""
    printed = confidence.printed_lambda(TIMES, 1.0, n_models, dimension, delta)
    proved = confidence.self_normalised_lambda_bound(TIMES, 1.0, n_models, dimension, delta)
    ratio = proved / printed
    print(f"d={dimension} M={n_models} delta={delta}: at most {ratio.max():.3f}, {ratio[99]:.3f} at t=100")
    assert ratio.max() < 1.0
    assert ratio[99] < 0.5
    assert np.all(confidence.corrected_lambda(TIMES, 1.0, n_models, dimension, delta) > printed)


def test_bound_dominates_every_data_set_and_is_attained():
    rng = np.random.default_rng(0)
    dimension, n_models, t = 4, 7, 200
    top = float(confidence.self_normalised_lambda_bound(t, 0.3, n_models, dimension, 0.1))
    largest = 0.0
    for spread in np.geomspace(1e-2, 1, 40):
        rows = rng.normal(size=(n_models, t, dimension)) * np.array([1.0, spread, spread, spread])
        rows /= np.linalg.norm(rows, axis=2, keepdims=True)
        grams = np.einsum("mtd,mte->mde", rows, rows)
        largest = max(largest, confidence.self_normalised_lambda(grams, t, 0.3, 0.1))
    assert 0.97 * top < largest <= top


def test_self_normalised_by_hand_and_for_unequal_models():
    grams = [np.array([[3.0]]), np.array([[2.0, 1.0], [1.0, 4.0]])]
    values = []
    for gram in grams:
        v = gram + 2.0 * np.eye(len(gram))
        values.append(np.linalg.eigvalsh(v)[-1] * (np.log(np.linalg.det(v / 2.0)) + 2 * np.log(2 / 0.1)))
    assert confidence.self_normalised_lambda(grams, 5, 0.5, 0.1) == pytest.approx(2 * 0.5 / 5 * np.sqrt(max(values)))


def test_scales_with_features_and_noise():
    base = confidence.self_normalised_lambda_bound(TIMES, 1.0, 10, 3, 0.1)
    assert confidence.self_normalised_lambda_bound(TIMES, 0.2, 10, 3, 0.1, feature_bound=5.0) == pytest.approx(base)


def test_cover():
    pairs = [np.array(c) for c in itertools.combinations(range(11), 2)]
    assert confidence.column_cover(pairs, 11) == 6.0
    assert confidence.column_cover([np.array([0]), np.array([1])], 2, scales=[1.0, 3.0]) == 10.0
    assert confidence.column_cover([np.array([0]), np.array([0, 1])], 2, scales=[1.0, 3.0]) == 10.0


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
        valid = confidence.self_normalised_lambda([phi[:, g].T @ phi[:, g] for g in groups], t, 0.3, 0.1)
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
                assert np.linalg.norm(fit.beta - theta) <= confidence.lasso_radius(valid, kappa) + 1e-6
                band = confidence.lasso_band(features @ fit.beta, norms, valid, kappa)
                assert np.all(band.lower - 1e-6 <= features @ theta)
                assert np.all(features @ theta <= band.upper + 1e-6)
    assert checked > 200


@pytest.mark.parametrize("scale", [0.05, 1.0])
def test_shared_columns_have_a_band_at_any_regularisation(scale):
    rng = np.random.default_rng(2)
    groups = [np.array(c) for c in itertools.combinations(range(5), 2)]
    features = np.polynomial.legendre.legvander(np.linspace(-1, 1, 41), 4)
    theta = np.array([0.0, 0.8, 0.0, -0.6, 0.0])
    cover, finite, tight = confidence.column_cover(groups, 5), 0, []
    for _ in range(4):
        for t, phi, noise, fit, valid in run(features, groups, theta, scale, rng, 60):
            if max(np.linalg.norm(phi[:, g].T @ noise) for g in groups) / t > valid / 2:
                continue
            band = confidence.distinct_columns_band(
                features @ fit.beta, features, phi.T @ phi, t, fit.lam, valid, cover
            )
            assert np.all(band.lower - 1e-6 <= features @ theta)
            assert np.all(features @ theta <= band.upper + 1e-6)
            finite += np.isfinite(band.upper[0])
            tight.append(np.max(np.abs(features @ (fit.beta - theta)) / (band.upper - band.lower)))
    assert finite > 150
    print(f"largest error over band width: {max(tight):.3f}")


def test_no_information_no_band():
    band = confidence.distinct_columns_band([0.0], np.ones((1, 2)), np.ones((2, 2)), 1, 0.1, 0.1, 1)
    assert band.lower[0] == -np.inf
    assert confidence.lasso_radius(0.1, 0.0) == np.inf
    assert confidence.lasso_band([1.0], [1.0], 0.1, 0.0).upper[0] == np.inf


@pytest.mark.parametrize(("call", "message"), [
    (lambda: confidence.corrected_lambda(0, 1.0, 2, 2, 0.1), "t must"),
    (lambda: confidence.corrected_lambda(1, 1.0, 2, 2, 1.5), "delta"),
    (lambda: confidence.self_normalised_lambda([np.eye(2)], 1, 1.0, 0.1, penalty=0.0), "penalty"),
])  # fmt: skip
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_log_determinant_bound_holds_and_is_attained():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 3))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    actual = np.linalg.slogdet(np.eye(3) + rows.T @ rows / 0.5)[1]
    assert actual <= float(confidence.log_determinant_bound(200, 3, 0.5)) <= 1.05 * actual
    cycle = np.tile(np.eye(3), (50, 1))
    exact = np.linalg.slogdet(np.eye(3) + cycle.T @ cycle / 0.5)[1]
    assert float(confidence.log_determinant_bound(150, 3, 0.5)) == pytest.approx(exact)


def test_widths_are_ordered():
    level = np.array([0.0, 1.0, 10.0])
    assert np.all(ucb_width(level, 0.2, 0.3, 1.5, 0.1) < confidence.triangle_width(level, 0.2, 0.3, 1.5, 0.1))
    bound = confidence.ridge_radius_bound(200, 3, 0.7, 0.3, 1.5, 0.1)
    expected = ucb_width(confidence.log_determinant_bound(200, 3, 0.49), 0.7, 0.3, 1.5, 0.1)
    assert float(bound) == pytest.approx(float(expected))


def test_coefficient_radius():
    assert float(confidence.coefficient_radius(2.0, 4.0)) == 1.0
    with pytest.raises(ValueError, match="smallest_eigenvalue"):
        confidence.coefficient_radius(1.0, 0.0)


def test_band_is_the_hull_of_the_plausible_models():
    means, norms = np.array([[0.0, 1.0], [5.0, 5.0], [0.5, 0.0]]), np.full((3, 2), 0.1)
    band = confidence.plausible_band(means, norms, np.array([4.0, -1.0, 1.0]))
    assert band.lower == pytest.approx([-0.2, -0.1])
    assert band.upper == pytest.approx([0.6, 1.2])
    nothing = confidence.plausible_band(means, norms, np.full(3, -1.0))
    assert np.all(np.isinf(nothing.upper))


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
