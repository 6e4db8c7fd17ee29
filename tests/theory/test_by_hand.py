"""One value by hand for every public function of the theory: plain arithmetic from docs/theory.md, so that every
constant, every share of delta and every exponent counts."""

from math import e, exp, log, pi, sqrt

import numpy as np
import pytest

from alexp import ALExp, FiniteSet, ModelClass, Schedules, theory
from alexp.decision.schedules import ReleasedSchedules
from alexp.problem import Matrices
from alexp.theory.eigenvalues import certified_lower, descend

K1 = (exp(0.25) + exp(-0.25)) / sqrt(2)  # 1.4588...
K2 = (sqrt(e) + 1) / 2  # 1.3243...


def stitched(v, alpha, c=0.0, m=1.0):
    """Howard et al. (2021), Theorem 1, with s = 2 and eta = e, where zeta(2) = pi^2/6 and log eta = 1."""
    v = max(v, m)
    level = 2 * log(1 + log(v / m)) + log(pi**2 / 6 / alpha)
    return sqrt(K1**2 * v * level + (K2 * c * level) ** 2) + K2 * c * level


def matrices(table, groups, scales):
    """Models on a table of candidates (N, P) that divide their columns by given scales."""
    dictionary = Matrices({"f": np.array(table, dtype=float)})
    return ModelClass(dictionary, groups, scales=scales), FiniteSet(range(len(table)))


def test_every_public_function_is_here():
    functions = [name for name in theory.__all__ if not isinstance(getattr(theory, name), type)]
    tested = [name.removeprefix("test_") for name in globals() if name.startswith("test_")]
    missing = [name for name in functions if not any(t == name or t.startswith(f"{name}__") for t in tested)]
    assert not missing


# -- boundaries ----------------------------------------------------------------------------------------------------


def test_stitched_boundary():
    # v = 10, alpha = 0.05: l = 2 log(1 + log 10) + log(pi^2 / 0.3) = 2 x 1.19471 + 3.49344 = 5.88286
    assert float(theory.stitched_boundary(10.0, 0.05)) == pytest.approx(K1 * sqrt(10 * 5.88286), rel=1e-5)
    assert float(theory.stitched_boundary(10.0, 0.05, c=0.7, m=0.4)) == pytest.approx(stitched(10, 0.05, 0.7, 0.4))
    # s = 4 has zeta(4) = pi^4/90; eta = e^2 has log eta = 2, k1 = (e^.5 + e^-.5)/sqrt 2, k2 = (e + 1)/2
    level = 4 * log(2 + log(7)) + log(pi**4 / 90 / (0.1 * 16))
    k1, k2 = (exp(0.5) + exp(-0.5)) / sqrt(2), (e + 1) / 2
    expected = sqrt(k1**2 * 7 * level + (k2 * 3 * level) ** 2) + k2 * 3 * level
    assert float(theory.stitched_boundary(7.0, 0.1, c=3.0, s=4.0, eta=e**2)) == pytest.approx(expected)


def test_paper_boundary():
    # w = log(1 + log 9) + log(2/0.1)
    w = log(1 + log(9)) + log(20)
    assert float(theory.paper_boundary(9.0, 0.1, c=2.0)) == pytest.approx(2.5 * sqrt(9 * w) + 6 * w)
    assert float(theory.paper_boundary(0.3, 0.1, c=2.0)) == pytest.approx(2.5 * sqrt(log(20)) + 6 * log(20))


def test_simplified_boundary():
    w = log(1 + log(9)) + log(20)
    assert float(theory.simplified_boundary(9.0, 0.1, c=2.0)) == pytest.approx(2.07 * 3 * sqrt(w) + 10.6 * w)
    assert float(theory.simplified_boundary(0.3, 0.1, c=2.0)) == pytest.approx(2.07 * sqrt(log(20)) + 10.6 * log(20))


def test_normal_mixture_rho():
    # alpha = e^-2: 2 log(1/alpha) = 4
    assert theory.normal_mixture_rho(30.0, exp(-2)) == pytest.approx(30 / (4 + log(5)))


def test_normal_mixture_boundary():
    assert float(theory.normal_mixture_boundary(30.0, exp(-2), rho=6.0)) == pytest.approx(sqrt(36 * (log(6) + 4)))


def test_azuma_boundary():
    assert float(theory.azuma_boundary(25, 0.3, 0.1)) == pytest.approx(0.3 * stitched(25, 0.1))


def test_bernoulli_boundary():
    # V = t/4 from t = 1 on, delta/2 on each side
    assert float(theory.bernoulli_boundary(25, 0.1)) == pytest.approx(stitched(25 / 4, 0.05, m=0.25))


def test_bernoulli_bernstein_boundary():
    assert float(theory.bernoulli_bernstein_boundary(4.5, 0.1)) == pytest.approx(stitched(4.5, 0.05, c=1 / 3))


def test_exploration_count_radius():
    w = log(1 + log(16)) + log(8 / 0.1)
    assert float(theory.exploration_count_radius(16.0, 0.1)) == pytest.approx(2.07 * 4 * sqrt(w) + 1.8 * w)
    w = log(8 / 0.1)  # below one expected round the variance counts as one
    assert float(theory.exploration_count_radius(0.2, 0.1)) == pytest.approx(2.07 * sqrt(w) + 1.8 * w)


def test_squared_noise_boundary():
    # weights up to 3 with sum of squares 20: V = 40, c = 6, and the smallest V that matters is 2 x 9
    assert float(theory.squared_noise_boundary(20.0, 3.0, 0.1)) == pytest.approx(stitched(40, 0.1, c=6, m=18))
    w = log(1 + log(80)) + log(20)
    printed = float(theory.squared_noise_boundary(20.0, 3.0, 0.1, "printed"))
    assert printed == pytest.approx(2.5 * sqrt(80 * w) + 3 * 12 * w)


def test_self_normalised_boundary():
    assert float(theory.self_normalised_boundary(5.0, 0.3, exp(-2))) == pytest.approx(0.3 * 3.0)  # sqrt(5 + 4)


# -- the anytime Lasso ---------------------------------------------------------------------------------------------


def test_printed_lambda():
    # M = 20, d = 3, delta = 0.1: w = log 400 + log log 3
    w = log(400) + log(log(3))
    root = sqrt(1 + 12 / sqrt(2) * w + 5 / sqrt(2) * sqrt(3 * w))
    assert float(theory.printed_lambda(25, 0.3, 20, 3, 0.1)) == pytest.approx(0.6 / 5 * root)
    assert float(theory.printed_lambda(25, 0.3, 20, 3, 0.1, feature_bound=2.0)) == pytest.approx(1.2 / 5 * root)


def test_corrected_lambda():
    # log log(4 e d) = log(1 + log 12) for d = 3
    w = log(400) + log(1 + log(12))
    root = sqrt(1 + 5 * sqrt(3 * w) + 12 * w)
    assert float(theory.corrected_lambda(25, 0.3, 20, 3, 0.1)) == pytest.approx(0.6 / 5 * root)
    assert float(theory.corrected_lambda(25, 0.3, 20, 3, 0.1, feature_bound=2.0)) == pytest.approx(1.2 / 5 * root)


def test_self_normalised_lambda():
    # The first model has spectrum (6, 1), the second 4; M = 2, delta = 0.2, so the level is 2 log 10.
    grams = [np.array([[3.5, 2.5], [2.5, 3.5]]), np.array([[4.0]])]
    first = (2 + 6) * (log(1 + 6 / 2) + log(1 + 1 / 2) + 2 * log(10))
    assert theory.self_normalised_lambda(grams, 7, 0.3, 0.2) == pytest.approx(0.6 / 7 * sqrt(first))
    other = (0.5 + 6) * (log(13) + log(3) + 2 * log(10))
    assert theory.self_normalised_lambda(grams, 7, 0.3, 0.2, penalty=0.5) == pytest.approx(0.6 / 7 * sqrt(other))
    # the worst of the models counts, wherever it stands
    assert theory.self_normalised_lambda(grams[::-1], 7, 0.3, 0.2) == pytest.approx(0.6 / 7 * sqrt(first))


def lambda_bound(t, noise, n_models, size, delta, square=1.0, rho=2.0):
    """Largest over the spectra (a, rest equal) with trace t x square, by trying many a."""
    level = 2 * log(n_models / delta)
    if size == 1:
        return 2 * noise / t * sqrt((rho + t * square) * (log(1 + t * square / rho) + level))
    a = np.linspace(t * square / size, t * square, 20_001)
    rest = (size - 1) * np.log1p((t * square - a) / ((size - 1) * rho))
    return 2 * noise / t * sqrt(np.max((rho + a) * (np.log1p(a / rho) + rest + level)))


def test_self_normalised_lambda_bound():
    # one column: V = 2 + 9 and log det(V/2) = log 5.5
    one = 0.6 / 9 * sqrt(11 * (log(5.5) + 2 * log(40)))
    assert float(theory.self_normalised_lambda_bound(9, 0.3, 4, 1, 0.1)) == pytest.approx(one)
    for t in (1, 9, 400):
        for size, square, rho in ((2, 1.0, 2.0), (5, 2.25, 4.5), (5, 2.25, 0.7)):
            penalty = None if rho == 2 * square else rho
            found = theory.self_normalised_lambda_bound(t, 0.3, 4, size, 0.1, sqrt(square), penalty)
            assert float(found) == pytest.approx(lambda_bound(t, 0.3, 4, size, 0.1, square, rho), rel=1e-7)


def test_lasso_radius():
    # 4 sqrt(10) x 0.2 / 0.5
    assert theory.lasso_radius([0.2, 0.2], [0.5, 0.0]) == pytest.approx([5.0596442562694, np.inf])


def test_lasso_band():
    band = theory.lasso_band([1.0, -1.0], [0.5, 2.0], lambda_t=0.03, kappa_squared=0.6)  # 16 x 0.03 / 0.6 = 0.8
    assert band.lower == pytest.approx([0.6, -2.6])
    assert band.upper == pytest.approx([1.4, 0.6])


def test_distinct_columns_band():
    # G = diag(8, 2)/4 = diag(2, 0.5); f = (1, 1): ||f||^2 = 1/2 + 2; (0.3 + 2 x 0.1) sqrt(3 / 0.5)
    half = sqrt(2.5) * 0.5 * sqrt(6)
    band = theory.distinct_columns_band([1.0], np.array([[1.0, 1.0]]), np.diag([8.0, 2.0]), 4, 0.1, 0.3, 3.0)
    assert (float(band.lower[0]), float(band.upper[0])) == pytest.approx((1 - half, 1 + half))
    # both ends of the rank test: an eigenvalue ratio of 1e-11 still counts, one of 1e-13 does not
    for ratio, finite in ((1e-11, True), (1e-13, False)):
        band = theory.distinct_columns_band([0.0], np.array([[1.0, 1.0]]), np.diag([1.0, ratio]), 1, 0.1, 0.3, 1.0)
        assert bool(np.isfinite(band.upper[0])) == finite


def test_column_cover():
    groups = [np.array([0, 1]), np.array([2]), np.array([0, 1, 2])]
    assert theory.column_cover(groups, 4) == 1.0  # the last has all of them; column 3 is in none
    assert theory.column_cover(groups, 3, [2.0, 1.0, 3.0]) == 5.0  # gains 2/4, 1/1, 3/9: the second, then the first


def test_lasso_confidence():
    table = [[1.0, 0.5, 0.2], [0.3, -1.0, 0.4], [0.1, 0.6, 1.5], [0.9, 0.9, -0.3], [0.0, 0.2, 0.7]]
    groups, scales = [[0, 1], [1, 2], [2]], [0.5, 2.0, 1.0]
    models, domain = matrices(table, groups, scales)
    opt = ALExp(models, domain, noise_std=0.2, random_state=0, schedules=Schedules(lam=0.1))
    told = [(0, 0.4), (1, -0.2), (2, 0.9), (3, 0.1)]
    for index, reward in told:
        opt.observe(index, reward)
    features = np.array(table)
    played = features[:4]
    gram = played.T @ played
    # squared norms of the models: max over the table of ||phi_j||^2 / scale^2, the penalty is twice that
    largest = max(max(sum(row[i] ** 2 for i in g) for row in table) / s**2 for g, s in zip(groups, scales, strict=True))
    level = 2 * log(3 / 0.05)
    worst = 0.0
    for g, s in zip(groups, scales, strict=True):
        spectrum = np.linalg.eigvalsh(gram[np.ix_(g, g)] / s**2)
        worst = max(
            worst,
            (2 * largest + spectrum.max()) * (float(np.log1p(spectrum / (2 * largest)).sum()) + level),
        )
    valid = 2 * 0.2 / 4 * sqrt(worst)
    w = log(2 * 3 / 0.1)  # the schedule's own delta; d = 2 has no iterated logarithm
    used = 0.1 * 0.4 / 2 * sqrt(1 + 12 / sqrt(2) * w + 5 / sqrt(2) * sqrt(2 * w))
    inverse = np.linalg.inv(gram / 4)
    lowest = np.linalg.eigvalsh(gram / 4)[0]
    beta = opt.fit.beta
    for index in (2, 4):
        f = features[index]
        # gains per squared scale: 2/0.25, 2/4, 1/1, so the first, then the third: cover 0.25 + 1
        half = sqrt(f @ inverse @ f) * (valid + 2 * used) * sqrt(1.25 / lowest)
        band = theory.lasso_confidence(opt, index, delta=0.05)
        assert (float(band.lower[0]), float(band.upper[0])) == pytest.approx((f @ beta - half, f @ beta + half))


# -- ridge agents --------------------------------------------------------------------------------------------------


def test_ucb_width():
    # 0.3^2 (5 + 2 x 2) + 0.5^2 x 4^2 = 0.81 + 4
    assert float(theory.ucb_width(5.0, 0.5, 0.3, 4.0, exp(-2))) == pytest.approx(sqrt(4.81))


def test_triangle_width():
    assert float(theory.triangle_width(5.0, 0.5, 0.3, 4.0, exp(-2))) == pytest.approx(0.9 + 2.0)


def test_log_determinant_bound():
    # 3 log(1 + 12 x 4 / (0.25 x 3))
    assert float(theory.log_determinant_bound(12, 3, 0.25, feature_bound=2.0)) == pytest.approx(3 * log(65))


def test_ridge_radius_bound():
    expected = sqrt(0.09 * (3 * log(65) + 4) + 0.25 * 16)
    assert float(theory.ridge_radius_bound(12, 3, 0.5, 0.3, 4.0, exp(-2), feature_bound=2.0)) == pytest.approx(expected)


def test_coefficient_radius():
    assert theory.coefficient_radius([3.0, 1.0], [4.0, 0.25]) == pytest.approx([1.5, 2.0])


def test_model_radii():
    # E = (2 + 0.25 x 1, 3 + 0.25 x 2) = (2.25, 3.5); 2 sigma^2 = 0.5
    beta = -0.5 * log((exp(-4.5) + exp(-7.0)) / 2) + 0.5 * log(10)
    found = theory.model_radii([2.0, 3.0], [1.0, 2.0], ridge=0.5, noise_std=0.5, norm_bound=4.0, delta=0.1)
    assert found == pytest.approx([beta + 4 - 2, beta + 4 - 3])


def test_plausible_band():
    means, norms = np.array([[1.0, 0.0], [2.0, -1.0], [50.0, 50.0]]), np.array([[0.5, 1.0], [0.25, 0.1], [1.0, 1.0]])
    band = theory.plausible_band(means, norms, np.array([4.0, 16.0, -1e-9]))
    assert band.lower.tolist() == [0.0, -2.0]  # min(1 - 1, 2 - 1), min(0 - 2, -1 - 0.4)
    assert band.upper.tolist() == [3.0, 2.0]
    alone = theory.plausible_band(means[:1], norms[:1], np.array([0.0]))  # a radius of zero is not a ruled out model
    assert alone.lower.tolist() == alone.upper.tolist() == [1.0, 0.0]
    nobody = theory.plausible_band(means, norms, np.array([-1.0, -1.0, -1.0]))
    assert nobody.lower.tolist() == [-np.inf, -np.inf]
    assert nobody.upper.tolist() == [np.inf, np.inf]


# -- exploration ---------------------------------------------------------------------------------------------------


def test_expected_explorations():
    # 1.5 x 16^-1/4 = 0.75, 1.5 x 81^-1/4 = 0.5
    steps = np.diff(theory.expected_explorations(81, 1.5))
    assert (float(steps[14]), float(steps[79])) == pytest.approx((0.75, 0.5))
    assert theory.expected_explorations(3, 1.5)[0] == 1.0


def test_covariance_entries_radius():
    # 4 x 5 / 2 = 10 entries, two sides: delta / 20 each; entries up to 1.5^2
    expected = 2.25 * stitched(30, 0.1 / 20) / 30
    assert float(theory.covariance_entries_radius(30, 4, 1.5, 0.1)) == pytest.approx(expected)


def test_explored_entries_radius():
    expected = 2.25 * stitched(30, 0.1 / 20, c=2 / 3)
    assert float(theory.explored_entries_radius(30.0, 4, 1.5, 0.1)) == pytest.approx(expected)


def test_kappa_lower_bound():
    # 16 s d = 16 x 3 x 2 = 96
    slack = 96 * 2.25 * stitched(30, 0.1 / 20, c=2 / 3)
    found = theory.kappa_lower_bound(50.0, 30.0, 500.0, 4, 2, 1.5, 0.1, sparsity=3)
    assert float(found) == pytest.approx((15_000 - slack) / 50)
    assert float(theory.kappa_lower_bound(50.0, 30.0, 1.0, 4, 2, 1.5, 0.1)) == 0.0


def test_kappa_lower_bound__with_two_true_models_by_default():
    slack = 64 * 2.25 * stitched(30, 0.1 / 20, c=2 / 3)
    found = theory.kappa_lower_bound(50.0, 30.0, 500.0, 4, 2, 1.5, 0.1)
    assert float(found) == pytest.approx((15_000 - slack) / 50)


def test_explored_lambda_min_slack():
    # variance 1.5^2 x 0.4 per expected round, delta over 4 x 3 tails
    expected = 1.5 * sqrt(0.4) * stitched(30, 0.1 / 12)
    assert float(theory.explored_lambda_min_slack(30.0, 0.4, 4, 1.5, 0.1, n_models=3)) == pytest.approx(expected)


def test_explored_lambda_min_bound():
    slack = 1.5 * sqrt(0.4) * stitched(30, 0.1 / 12)
    found = theory.explored_lambda_min_bound([30.0, 30.0], 2.0, 0.4, 4, 1.5, 0.1, n_models=3)
    assert found == pytest.approx([60 - slack] * 2)
    assert theory.explored_lambda_min_bound(30.0, 0.0, 0.4, 4, 1.5, 0.1) == 0.0


def test_burn_in():
    assert theory.burn_in(np.array([0.0, 0.0, 1e-12, 0.0])) == 3
    assert theory.burn_in(np.zeros(4)) is None


# -- eigenvalues ---------------------------------------------------------------------------------------------------


def test_concatenation():
    models, domain = matrices([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[2, 0], [1]], [2.0, 5.0])
    stacked, groups = theory.concatenation(models, domain)
    assert stacked.tolist() == [[1.5, 0.5, 0.4], [3.0, 2.0, 1.0]]
    assert [group.tolist() for group in groups] == [[0, 1], [2]]


def test_design_lambda_min():
    # columns 1 and x on -1, 0, 1 with weights 1/4, 1/2, 1/4: S = diag(1, 1/2); the second model halves its column
    models, domain = matrices([[1.0, -1.0], [1.0, 0.0], [1.0, 1.0]], [[0], [1]], [1.0, 2.0])
    assert theory.design_lambda_min(models, domain, np.array([0.25, 0.5, 0.25])) == pytest.approx((0.5, 0.125))


def test_c_min():
    # all mass on the ends: S = I on the columns 1 and x, diag(1, 1/4) on 1 and x/2
    table = [[1.0, -1.0], [1.0, 0.0], [1.0, 1.0]]
    found = theory.c_min(*matrices(table, [[0], [1]], [1.0, 2.0]))
    assert (found.concatenated, found.distinct, found.model_wise) == pytest.approx((0.25, 1.0, 0.25), abs=1e-5)
    assert (found.distinct_upper_bound, found.model_wise_upper_bound) == pytest.approx((1.0, 0.25), abs=1e-5)
    assert (found.n_columns, found.rank, found.repeated) == (2, 2, 0)
    shared = theory.c_min(*matrices(table, [[0, 1], [1], [1]], [1.0, 1.0, 1.0]))
    assert (shared.concatenated, shared.repeated) == (0.0, 2)
    assert shared.model_wise == pytest.approx(1.0, abs=1e-5)


def test_restricted_eigenvalue():
    # G = [[1, 0.6], [0.6, 1]], one coordinate inside: 1 + 1.2 b + b^2 is least at b = -0.6, or at the cone's edge
    rows, groups = sqrt(2) * np.array([[1.0, 0.6], [0.0, 0.8]]), [np.array([0]), np.array([1])]
    wide = theory.restricted_eigenvalue(rows, groups, sparsity=1)
    assert (wide.lower, wide.upper) == pytest.approx((0.64, 0.64), abs=1e-6)
    narrow = theory.restricted_eigenvalue(rows, groups, sparsity=1, cone=0.2)
    assert (narrow.lower, narrow.upper) == pytest.approx((0.8, 0.8), abs=1e-6)
    assert abs(narrow.witness[narrow.chosen[0]]) == pytest.approx(1.0)
    assert abs(narrow.witness[1 - narrow.chosen[0]]) == pytest.approx(0.2)
    both = theory.restricted_eigenvalue(rows, groups, sparsity=2)
    assert (both.lower, both.upper) == pytest.approx((0.4, 0.4), abs=1e-6)
    heavy = theory.restricted_eigenvalue(rows, groups, sparsity=2, weights=np.array([1.0, 1.0]))
    assert heavy.upper == pytest.approx(0.8, abs=1e-6)


def test_restricted_eigenvalue__certificate():
    """nu - cone^2 s max|U_outer| - 2 cone s max|U_cross| for a U one can see through; groups of one coordinate."""
    gram, groups = np.array([[1.0, 0.6], [0.6, 1.0]]), [np.array([0]), np.array([1])]
    cross = np.array([[0.0, -0.1], [-0.1, 0.0]])  # nu = 1 - 0.5^2
    assert certified_lower(gram, groups, (0,), 0.2, cross) == pytest.approx(0.75 - 2 * 0.2 * 0.1, abs=1e-7)
    outer = np.diag([0.0, 0.05])  # nu = 1 - 0.36/1.05
    assert certified_lower(gram, groups, (0,), 0.2, outer) == pytest.approx(1 - 0.36 / 1.05 - 0.04 * 0.05, abs=1e-7)
    # s = 2 of three coordinates, the third linked to the first only: nu is the lower of 1 - (0.6 - 0.1)^2 and 1
    gram = np.array([[1.0, 0.0, 0.6], [0.0, 1.0, 0.0], [0.6, 0.0, 1.0]])
    u = np.zeros((3, 3))
    u[0, 2] = u[2, 0] = -0.1
    groups = [np.array([k]) for k in range(3)]
    assert certified_lower(gram, groups, (0, 1), 0.2, u) == pytest.approx(0.75 - 2 * 0.2 * 2 * 0.1, abs=1e-7)


def test_restricted_eigenvalue__descent():
    """1 + 0.8 b + b^2/4 for b_0 = 1 is least at b = -1.6, inside a cone of 3 and beyond one of 1.2."""
    gram, groups = np.array([[1.0, 0.4], [0.4, 0.25]]), [np.array([0]), np.array([1])]
    value, b = descend(gram, groups, (0,), 3.0, np.array([1.0, 0.5]))
    assert (value, abs(b[0]), b[1] / b[0]) == pytest.approx((0.36, 1.0, -1.6), abs=1e-6)
    value, b = descend(gram, groups, (0,), 1.2, np.array([1.0, 0.5]))
    assert (value, b[1] / b[0]) == pytest.approx((1 - 0.96 + 0.36, -1.2), abs=1e-6)


# -- regret --------------------------------------------------------------------------------------------------------


def test_lasso_complexity():
    w = log(200) + log(log(3))
    assert theory.lasso_complexity(20, 3, 0.1, 0.3) == pytest.approx(0.3 * sqrt(1 + sqrt(3 * w) + w))
    assert theory.lasso_complexity(20, 2, 0.1, 0.3) == pytest.approx(0.3 * sqrt(1 + sqrt(2 * log(200)) + log(200)))


def test_exponential_weights_bound():
    # log 8 / 0.25 + 0.5 x 2 + 0.25 x 3
    assert theory.exponential_weights_bound([0.5, 0.25], 8, [2.0, 3.0]) == pytest.approx(4 * log(8) + 1.75)


def test_look_ahead_bound():
    assert theory.look_ahead_bound([0.5, 0.25], 8) == pytest.approx(4 * log(8))


def test_regret_rate():
    n, c_min, bound = 10_000.0, 0.25, 2.0
    w = log(200) + log(log(3))
    complexity = 13 * 0.3 * sqrt(1 + sqrt(3 * w) + w)  # C_6 = 13
    transient = 1 + n**-0.375 / c_min * sqrt(log(600) + log(log(n)))
    found = theory.regret_rate(n, 20, 3, 0.1, 0.3, bound, c_min, constants=(2, 3, 5, 7, 11, 13))
    expected = {
        "exploration": 2 * 2 * 1000,
        "exponential weights": 3 * 100 * complexity * log(20) / 0.25 + 5 * 4 * 0.25 * 100,
        "deviation": 7 * 2 * sqrt(n * (log(log(40_000)) + log(10))),
        "estimation": 11 * transient * (2 * 10 + (1000 + log(n)) * complexity / 0.25),
        "oracle agent": 11 * transient * n**0.625 / 0.5 * sqrt(3 * log(10_001) + log(10) + 4),
    }
    assert set(found.terms) == set(expected)
    for name, value in expected.items():
        assert float(found.terms[name][0]) == pytest.approx(value), name
    assert found.trivial.tolist() == [40_000.0]
    assert found.sum[0] == pytest.approx(sum(expected.values()))
    assert found.total[0] == min(found.sum[0], 40_000.0)


@pytest.mark.parametrize(("n_models", "size", "c_min"), [(3, 1, 60.0), (3, 2, 70.0), (300, 1, 900.0)])
def test_regret_bound(n_models, size, c_min):
    """Every line of the bound with loops; C_min is made huge, so that the minima are not 2 B from the start.

    With three models the matrix bound on kappa^2 is the better one, with three hundred that through the entries.
    """
    horizon, delta, noise, bound, gamma, eta, ridge = 30, 0.1, 0.05, 2.0, 0.9, 3.0, 0.7
    columns = n_models * size
    explored, kappa, lambda_t, own, width, by_entries = 0.0, [], [], [], [], 0
    totals, sums = [], []
    for t in range(1, horizon + 1):
        explored += min(1.0, gamma / t**0.25)
        totals.append(explored)
        share = delta / 8 / (columns * (columns + 1))
        entries = max(explored * c_min - 16 * 2 * size * stitched(explored, share, c=2 / 3), 0) / t
        # ||phi||^2 <= M and lambda_max <= M for the concatenation of M models bounded by one
        matrix = max(explored * c_min - n_models * stitched(explored, delta / 8 / columns), 0) / t
        by_entries += entries > matrix
        kappa.append(max(entries, matrix))
        lambda_t.append(lambda_bound(t, noise, n_models, size, delta / 4))
        own.append(ridge**2 + max(explored * c_min - stitched(explored, delta / 8 / size), 0))
        determinant = size * log(1 + t / (ridge**2 * size))
        width.append(sqrt(noise**2 * (determinant + 2 * log(8 / delta)) + ridge**2 * bound**2))
    estimation = agent = 0.0
    found = theory.regret_bound(horizon, n_models, size, delta, noise, bound, c_min, gamma, eta, ridge)
    capped = 0
    for t in range(1, horizon + 1):
        if t == 1:
            per_round, of_agent = 2 * bound, 2 * bound
        else:
            per_round = 16 * lambda_t[t - 2] / kappa[t - 2] if kappa[t - 2] > 0 else np.inf
            of_agent = 2 * width[t - 2] / sqrt(own[t - 2])
            capped += per_round >= 2 * bound
            per_round, of_agent = min(2 * bound, per_round), min(2 * bound, of_agent)
        estimation += 2 * per_round
        agent += of_agent
        expected = {
            "exploration": 2 * bound * totals[t - 1],
            "deviation": bound * stitched(t, delta / 4),
            "exponential weights": bound * log(n_models) * sqrt(t) / eta,
            "estimation": estimation,
            "oracle agent": agent,
        }
        for name, value in expected.items():
            assert float(found.terms[name][t - 1]) == pytest.approx(value, rel=1e-6), (name, t)
        sums.append(sum(expected.values()))
        assert found.trivial[t - 1] == 2 * bound * t
    assert found.sum == pytest.approx(sums, rel=1e-6)
    assert found.total == pytest.approx(np.minimum(sums, found.trivial), rel=1e-6)
    assert capped < horizon - 5  # the formula is seen, not only its cap
    assert by_entries >= horizon - 5 if n_models == 300 else by_entries == 0


def test_regret_bound__defaults():
    plain = theory.regret_bound(5, 3, 1, 0.1, 0.05, 2.0, 60.0)
    written = theory.regret_bound(5, 3, 1, 0.1, 0.05, 2.0, 60.0, gamma=1.0, eta=1.0, ridge=1.0)
    for name, values in plain.terms.items():
        assert values.tolist() == written.terms[name].tolist()


def rates_by_hand(m):
    n, d = 10_000, 3
    alexp = 100 * sqrt(log(m)) * (10 + log(m))
    return [alexp / 0.2, alexp * m * d, (n * d / 0.2) ** (2 / 3) * log(m) ** (1 / 3), 100 * sqrt(m)]


def test_compare_rates():
    table = theory.compare_rates([8, 64], horizon=10_000, dimension=3, c_min=0.2)
    for position, m in enumerate((8, 64)):
        found = table[table["n_models"] == m]["rate"].tolist()
        assert found == pytest.approx(rates_by_hand(m)), position
    free = theory.compare_rates([8], horizon=10_000, dimension=3)
    assert free["rate"].iloc[0] == pytest.approx(3 * 0.2 * rates_by_hand(8)[0])  # C_min = 1/d unless given
    assert theory.compare_rates()["n_models"].max() == 2**24


def test_plot_rates():
    figure, table = theory.plot_rates([8, 64], horizon=10_000, dimension=3, c_min=0.2)
    (axes,) = figure.axes
    assert len(axes.lines) == 4
    for line, left, right in zip(axes.lines, rates_by_hand(8), rates_by_hand(64), strict=True):
        assert line.get_xdata().tolist() == [8.0, 64.0]
        assert line.get_ydata().tolist() == pytest.approx([left, right])
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert "10000" in axes.get_ylabel()
    assert len(table) == 8


# -- preflight -----------------------------------------------------------------------------------------------------


def test_preflight():
    """Columns 1 and 2x on -1, 0, 1, a model each, divided by 1/2 and 4: S = diag(4, m/4) with m the mass outside 0."""
    models, domain = matrices([[1.0, -2.0], [1.0, 0.0], [1.0, 2.0]], [[0], [1]], [0.5, 4.0])
    schedules = Schedules(gamma=0.5, eta=2.0, lam=0.25, delta=0.2)
    found = theory.preflight(models, domain, noise_std=0.3, reward_bound=2.0, schedules=schedules)
    assert (found.problem["smallest_feature_norm"], found.problem["largest_feature_norm"]) == (0.5, 2.0)
    assert found.problem["median_feature_norm"] == 1.25
    designs = {row["design"]: row for row in found.designs}
    assert designs["Uniform"]["distinct"] == pytest.approx(1.0)  # diag(1, 4 x 2/3)
    assert designs["Uniform"]["model_wise"] == pytest.approx(1 / 6)  # 4 x 2/3 / 16
    assert designs["EOptimal(model_wise=True)"]["model_wise"] == pytest.approx(0.25, abs=1e-5)
    assert found.c_min["model_wise"] == pytest.approx(0.25, abs=1e-5)
    assert found.c_min["concatenation"] == pytest.approx(0.25, abs=1e-5)
    assert found.c_min["distinct"] == pytest.approx(1.0, abs=1e-5)
    lines = {line["quantity"]: line for line in found.constants}
    w = log(2 * 2 / 0.2)
    printed = 0.6 * sqrt(1 + 12 / sqrt(2) * w + 5 / sqrt(2) * sqrt(w))
    w = log(2 * 2 / 0.2) + log(1 + log(4))
    repaired = 0.6 * sqrt(1 + 5 * sqrt(w) + 12 * w)
    complexity = 0.3 * sqrt(1 + sqrt(log(10)) + log(10))
    explored = np.cumsum([min(1, 0.5 / s**0.25) for s in range(1, 1001)])
    for t in (1, 10, 100, 1000):
        expected = {
            "gamma_t (used)": 0.5 / t**0.25,
            "explored rounds, expected": explored[t - 1],
            "eta_t (used)": 2.0 / (2 * sqrt(t)),
            "lambda_t (used)": 0.25 * printed / sqrt(t),
            "lambda_t, printed theorem": 2 * printed / sqrt(t),
            "lambda_t, repaired constants": 2 * repaired / sqrt(t),
            "lambda_t, proved (worst data)": lambda_bound(t, 0.3, 2, 1, 0.2, square=4.0, rho=8.0),
            "eta_t, theorem's shape (constant one)": 0.25 / (2 * sqrt(t) * complexity),
            "lambda_min of every model's data, promised": 0.0,  # 0.25 Gamma is still below the slack
        }
        assert set(expected) == set(lines)
        for name, value in expected.items():
            assert lines[name][f"t={t}"] == pytest.approx(value, rel=1e-4), (name, t)
    # norms up to 2 and lambda_max up to 4: the slack is 4 times the curve, at delta over two models of one column
    everything = np.cumsum(np.minimum(1.0, 0.5 * np.arange(1, 1_000_001) ** -0.25)).tolist()
    start = next(t for t, g in enumerate(everything, 1) if 0.25 * g > 4 * stitched(g, 0.2 / 2))
    assert f"positive from t = {start}" in lines["lambda_min of every model's data, promised"]["formula"]


def test_preflight__of_schedules_with_other_rates():
    """The released code explores at a constant rate, here 4/sqrt(100)."""
    models, domain = matrices([[1.0, -2.0], [1.0, 0.0], [1.0, 2.0]], [[0], [1]], [1.0, 4.0])
    found = theory.preflight(models, domain, schedules=ReleasedSchedules(gamma=4.0, horizon=100, delta=0.2))
    lines = {line["quantity"]: line for line in found.constants}
    assert lines["gamma_t (used)"]["t=1000"] == 0.4
    assert lines["explored rounds, expected"]["t=1000"] == pytest.approx(400.0)
    expected = 0.25 * 400 - stitched(400, 0.2 / 2)
    assert expected > 0
    assert lines["lambda_min of every model's data, promised"]["t=1000"] == pytest.approx(expected, rel=1e-4)
