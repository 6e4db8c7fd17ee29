"""Exploration designs: values the literature and weak duality fix, and certificates recomputed from scratch."""

import builtins
import itertools

import numpy as np
import pytest
from numpy.polynomial.legendre import legvander

from alexp.decision.designs import DOptimal, EOptimal, Uniform
from alexp.decision.first_order import (
    d_optimal,
    dual_value,
    independent_columns,
    lowest_eigenvalues,
    mirror_bounds,
    second_moment,
    smallest_eigenvalue,
)
from alexp.decision.semidefinite import block_eigenvalues, dual_profile, e_optimal
from alexp.problem import FiniteSet, Interval, ModelClass

GRID = legvander(np.linspace(-1.0, 1.0, 401), 10)


def lambda_min(features, weights):
    return np.linalg.eigvalsh(sum(w * np.outer(f, f) for w, f in zip(weights, features, strict=True)))[0]


def is_distribution(weights, n):
    return weights.shape == (n,) and np.all(weights >= 0.0) and abs(weights.sum() - 1.0) < 1e-12


class TestEOptimal:
    def test_legendre_reference_value_is_certified(self):
        found = e_optimal(GRID)
        assert is_distribution(found.weights, 401)
        assert found.value == pytest.approx(0.06142, abs=5e-6)
        assert found.value == pytest.approx(lambda_min(GRID, found.weights), abs=1e-12)
        assert 0.0 <= found.upper_bound - found.value < 1e-6

    def test_model_wise_reference_value(self):
        models, domain = ModelClass.legendre(degree=10, size=2), Interval(resolution=201)
        design = EOptimal(model_wise=True).design(models, domain)
        assert design.value == pytest.approx(0.0654, abs=5e-5)
        assert 0.0 <= design.gap < 1e-6
        features = models.matrix(domain)
        assert design.value == pytest.approx(
            min(lambda_min(features[:, group], design.weights) for group in models.groups), abs=1e-12
        )
        assert Uniform().design(models, domain).weights @ np.ones(201) == pytest.approx(1.0)

    def test_cutting_planes_agree_with_the_full_problem(self):
        rng = np.random.default_rng(3)
        features = rng.normal(size=(900, 5))
        found = e_optimal(features)
        for _ in range(20):  # no design does better than the certified bound
            weights = rng.dirichlet(np.full(900, 0.05))
            assert lambda_min(features, weights) <= found.upper_bound + 1e-12
        assert found.upper_bound - found.value <= 1e-6 * (features**2).sum(axis=1).max() / 5

    def test_two_dimensional_problem_in_closed_form(self):
        # Rows (1, x), x in [-1, 1]: mass 1/2 on each end gives S = I, and no trace-2 matrix does better.
        features = np.stack([np.ones(51), np.linspace(-1, 1, 51)], axis=1)
        found = e_optimal(features)
        assert found.value == pytest.approx(1.0, abs=1e-6)
        assert found.weights[0] == pytest.approx(0.5, abs=1e-4)

    def test_units_do_not_matter(self):
        small, large = e_optimal(1e-6 * GRID), e_optimal(1e6 * GRID)
        assert small.value * 1e12 == pytest.approx(0.06142, abs=1e-5)
        assert large.value / 1e12 == pytest.approx(0.06142, abs=1e-5)

    def test_columns_in_wildly_different_units(self):
        features = np.random.default_rng(6).normal(size=(60, 5)) * 10.0 ** np.array([-6, -3, 0, 3, 6])
        found = e_optimal(features)
        assert found.upper_bound - found.value <= 1e-6 * found.upper_bound
        assert 0.0 < found.value < 1e-11
        wise = e_optimal(features, [np.array([0, 4]), np.array([1, 2])])
        assert wise.upper_bound - wise.value <= 1e-6 * wise.upper_bound
        assert wise.value > found.value

    def test_scaled_models_scale_the_model_wise_value(self):
        models, domain = ModelClass.legendre(degree=4, size=2), Interval(resolution=101)
        plain = EOptimal(model_wise=True).design(models, domain)
        scaled = EOptimal(model_wise=True).design(models.normalized(domain), domain)
        assert scaled.value == pytest.approx(plain.value / 2.0, rel=1e-4)  # every scale is sqrt(2)

    def test_many_blocks_are_generated_on_demand(self):
        features = legvander(np.linspace(-1, 1, 301), 12)
        groups = [np.array(c) for c in itertools.combinations(range(13), 3)]
        found = e_optimal(features, groups)
        values = block_eigenvalues(features, found.weights, groups, np.ones(len(groups)))
        assert found.value == pytest.approx(values.min(), abs=1e-12)
        assert found.upper_bound - found.value <= 1e-6

    def test_dependent_columns_are_named_and_skipped(self):
        table = np.random.default_rng(0).normal(size=(40, 3))
        models = ModelClass.from_matrices({"a": table, "b": np.stack([2 * table[:, 0], table[:, 1] ** 2], axis=1)})
        with pytest.warns(UserWarning, match="rank 4"):
            design = EOptimal().design(models, FiniteSet(range(40)))
        assert not design.full_rank
        assert design.columns.size == 4
        assert design.value > 0.0
        assert EOptimal(model_wise=True).design(models, FiniteSet(range(40))).value > 0.0

    def test_degenerate_model_is_named(self):
        table = np.random.default_rng(1).normal(size=(30, 2))
        models = ModelClass.from_matrices({"good": table, "bad": np.stack([table[:, 0], 3 * table[:, 0]], axis=1)})
        with pytest.warns(UserWarning, match="'bad'"):
            assert EOptimal(model_wise=True).design(models, FiniteSet(range(30))).value == pytest.approx(0.0, abs=1e-9)

    def test_missing_extra_says_what_to_install(self, monkeypatch):
        real = builtins.__import__

        def without(name, *args, **kwargs):
            if name in ("cvxpy", "clarabel"):
                raise ImportError(name)
            return real(name, *args, **kwargs)

        monkeypatch.setattr(builtins, "__import__", without)
        with pytest.raises(ImportError, match=r"pip install alexp\[design\]"):
            e_optimal(GRID)

    def test_oversized_block_is_refused(self):
        with pytest.raises(ValueError, match="model_wise=True"):
            e_optimal(np.ones((2, 301)))

    def test_bad_tolerance(self):
        with pytest.raises(ValueError, match="tol"):
            EOptimal(tol=0.0).design(ModelClass.legendre(degree=2, size=1), Interval(resolution=11))


class TestDOptimal:
    def test_kiefer_wolfowitz(self):
        found = d_optimal(GRID)
        leverage = np.einsum("ij,jk,ik->i", GRID, np.linalg.inv(second_moment(GRID, found.weights)), GRID)
        assert leverage.max() <= 11 * (1 + 1.01e-4)
        assert leverage[found.weights > 1e-3] == pytest.approx(11.0, rel=0.02)
        assert found.log_determinant == pytest.approx(np.linalg.slogdet(second_moment(GRID, found.weights))[1])
        uniform = np.linalg.slogdet(second_moment(GRID, np.full(401, 1 / 401)))[1]
        assert uniform < found.log_determinant
        assert e_optimal(GRID).upper_bound >= smallest_eigenvalue(GRID, found.weights) >= 0.06141 / 11

    def test_keeps_at_least_a_pth_of_c_min(self):
        rng = np.random.default_rng(5)
        for _ in range(5):
            features = rng.normal(size=(60, 4)) * rng.lognormal(size=4)
            best, d_design = e_optimal(features), d_optimal(features)
            assert smallest_eigenvalue(features, d_design.weights) >= best.value / 4 * (1 - 1e-3)

    def test_quadratic_regression_in_closed_form(self):
        # 1, x, x^2 on [-1, 1]: mass 1/3 on -1, 0, 1.
        x = np.linspace(-1, 1, 101)
        weights = d_optimal(np.stack([np.ones(101), x, x**2], axis=1), tol=1e-8).weights
        assert weights[[0, 50, 100]] == pytest.approx([1 / 3] * 3, abs=1e-3)

    def test_single_column(self):
        assert d_optimal(np.array([[1.0], [-3.0], [2.0]])).weights.tolist() == [0.0, 1.0, 0.0]

    def test_design_object(self):
        design = DOptimal().design(ModelClass.legendre(degree=10, size=3), Interval(resolution=401))
        assert is_distribution(design.weights, 401)
        assert 0.0 <= design.log_determinant_gap <= 11 * np.log(1 + 1.01e-4)
        assert design.value <= 0.061418 <= design.upper_bound


class TestUniform:
    def test_value_and_bound(self):
        design = Uniform().design(ModelClass.legendre(degree=10, size=2), Interval(resolution=401))
        assert design.value == pytest.approx(0.0494, abs=5e-5)
        assert 0.0614178 <= design.upper_bound <= 0.0614178 * 1.15
        assert design.full_rank

    def test_looks_at_no_features(self):
        class Untouchable:
            def matrix(self, domain):
                raise AssertionError("features were evaluated")

        weights = Uniform().design(Untouchable(), FiniteSet(range(7))).weights
        assert weights == pytest.approx(np.full(7, 1 / 7))


def test_lowest_eigenvalue_of_graded_matrices():
    rng = np.random.default_rng(4)
    root = rng.normal(size=(20, 3))
    kernel, units = root.T @ root / 20, np.array([1e-6, 1.0, 1e6])
    graded = kernel * np.outer(units, units)
    # For units this far apart lambda_min is the Schur complement of the smallest one, to high accuracy.
    schur = (kernel[0, 0] - kernel[0, 1:] @ np.linalg.solve(kernel[1:, 1:], kernel[1:, 0])) * 1e-12
    assert float(lowest_eigenvalues(graded)) == pytest.approx(schur, rel=1e-9)
    stack = np.stack([kernel, graded, np.diag([1.0, 0.0, 2.0]), np.ones((3, 3))])
    assert lowest_eigenvalues(stack) == pytest.approx([np.linalg.eigvalsh(kernel)[0], schur, 0.0, 0.0])


def test_mirror_bounds_bracket_the_optimum():
    weights, value, bound = mirror_bounds(GRID)
    assert is_distribution(weights, 401)
    assert value <= 0.061418 <= bound
    assert value == pytest.approx(lambda_min(GRID, weights), abs=1e-12)
    assert bound - value < 0.012


def test_any_dual_matrix_bounds_any_design():
    rng = np.random.default_rng(8)
    for _ in range(50):
        features = rng.normal(size=(15, 3))
        root = rng.normal(size=(3, 3))
        z = root @ root.T / np.trace(root @ root.T)
        assert lambda_min(features, rng.dirichlet(np.ones(15))) <= dual_value(features, z) + 1e-12


def test_dual_profile_repairs_infeasible_matrices():
    features = np.random.default_rng(2).normal(size=(9, 2))
    crooked = np.array([[3.0, 0.2], [0.4, -1e-3]])
    z = np.array([[3.0, 0.3], [0.3, -1e-3]])
    values, vectors = np.linalg.eigh(z)
    z = vectors @ np.diag(np.maximum(values, 0)) @ vectors.T
    expected = [f @ z @ f / np.trace(z) / 4.0 for f in features]
    assert dual_profile(features, [crooked], [np.arange(2)], np.array([2.0])) == pytest.approx(expected)


def test_independent_columns_ignore_units():
    x = np.linspace(-1, 1, 30)
    columns = np.stack([1e-9 * x, 1e9 * x**2, x + x**2, 0 * x, x**3], axis=1)
    kept = independent_columns(columns)
    assert kept.size == 3
    assert 3 not in kept
    assert 4 in kept
