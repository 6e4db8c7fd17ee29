"""C_min, restricted eigenvalues and eigenvalues of explored data: brackets against brute force, rates, arithmetic."""

import itertools

import numpy as np
import pytest

from alexp import FiniteSet, Interval, ModelClass
from alexp.theory import eigenvalues
from alexp.theory.eigenvalues import c_min, certified_lower, concatenation, design_lambda_min, restricted_eigenvalue


def blocks(n_groups, size):
    return [np.arange(j * size, (j + 1) * size) for j in range(n_groups)]


def random_cone_points(rng, groups, sparsity, cone, n):
    """Feasible b with ||b_J|| = 1 and the outer norms anywhere up to the cone's edge."""
    size = sum(map(len, groups))
    for _ in range(n):
        b = rng.normal(size=size)
        chosen = rng.choice(len(groups), sparsity, replace=False)
        inside = np.concatenate([groups[j] for j in chosen])
        outside = np.setdiff1d(np.arange(size), inside)
        b[inside] /= np.linalg.norm(b[inside])
        edge = cone * sum(np.linalg.norm(b[groups[j]]) for j in chosen)
        others = [groups[j] for j in range(len(groups)) if j not in chosen]
        b[outside] *= rng.random() * edge / sum(np.linalg.norm(b[g]) for g in others)
        yield b


class TestRestrictedEigenvalue:
    @pytest.mark.parametrize(("n_groups", "size", "rows", "sparsity", "cone"), [
        (4, 2, 40, 2, 3.0), (5, 1, 12, 1, 3.0), (5, 2, 9, 1, 0.5), (4, 2, 7, 2, 0.3),
    ])  # fmt: skip
    def test_bracket_against_random_search(self, n_groups, size, rows, sparsity, cone):
        rng = np.random.default_rng(7)
        features, groups = rng.normal(size=(rows, n_groups * size)), blocks(n_groups, size)
        found = restricted_eigenvalue(features, groups, sparsity, cone)
        values = [np.mean((features @ b) ** 2) for b in random_cone_points(rng, groups, sparsity, cone, 3000)]
        assert found.lower <= found.upper <= min(values)
        print(f"[{found.lower:.5f}, {found.upper:.5f}], random search {min(values):.5f}")
        assert found.upper - found.lower <= 0.05 * np.mean(features**2)

    def test_witness_is_feasible_and_attains_the_upper_end(self):
        rng = np.random.default_rng(2)
        features, groups = rng.normal(size=(8, 10)), blocks(5, 2)
        found = restricted_eigenvalue(features, groups, sparsity=1, cone=0.7)
        norms = [np.linalg.norm(found.witness[g]) for g in groups]
        inner = sum(norms[j] for j in found.chosen)
        assert sum(norms) - inner <= 0.7 * inner + 1e-9
        assert np.mean((features @ found.witness) ** 2) / inner**2 == pytest.approx(found.upper)

    def test_orthonormal_columns_in_closed_form(self):
        features = np.sqrt(12.0) * np.linalg.qr(np.random.default_rng(0).normal(size=(12, 6)))[0]
        found = restricted_eigenvalue(features, blocks(3, 2))
        assert (found.lower, found.upper) == pytest.approx((1.0, 1.0), abs=1e-6)

    def test_never_below_lambda_min_and_falls_with_sparsity(self):
        features = np.random.default_rng(4).normal(size=(30, 8))
        one, two = (restricted_eigenvalue(features, blocks(4, 2), s) for s in (1, 2))
        lowest = np.linalg.eigvalsh(features.T @ features / 30)[0]
        assert lowest - 1e-9 <= two.lower
        assert two.upper <= one.upper + 1e-9

    def test_shared_columns_give_zero(self):
        stacked, groups = concatenation(ModelClass.legendre(degree=3, size=2), Interval(resolution=41))
        found = restricted_eigenvalue(stacked, groups, sparsity=1)
        assert found.upper == pytest.approx(0.0, abs=1e-12)

    def test_any_proposal_gives_a_valid_lower_bound(self):
        rng = np.random.default_rng(9)
        features, groups = rng.normal(size=(20, 6)), blocks(3, 2)
        gram = features.T @ features / 20
        upper = restricted_eigenvalue(features, groups, 1).upper
        for _ in range(50):
            u = 0.1 * rng.normal(size=(6, 6))
            lower = min(certified_lower(gram, groups, (j,), 3.0, u.copy()) for j in range(3))
            assert lower <= upper + 1e-9

    def test_weights_replace_the_average(self):
        features = np.random.default_rng(5).normal(size=(10, 4))
        weights = np.full(10, 0.1)
        assert restricted_eigenvalue(features, blocks(2, 2), weights=weights).upper == pytest.approx(
            restricted_eigenvalue(features, blocks(2, 2)).upper
        )

    def test_large_instances_and_overlaps_are_refused(self):
        with pytest.raises(ValueError, match="small instances"):
            restricted_eigenvalue(np.ones((3, 80)), blocks(40, 2))
        with pytest.raises(ValueError, match="exactly once"):
            restricted_eigenvalue(np.ones((3, 3)), [np.array([0, 1]), np.array([1, 2])])


class TestCMin:
    def test_the_papers_experiment(self):
        found = c_min(ModelClass.legendre(degree=10, size=2), Interval(resolution=201))
        assert found.concatenated == 0.0
        assert (found.rank, found.n_columns, found.repeated) == (11, 11, 99)
        assert found.distinct == pytest.approx(0.0614, abs=5e-5)
        assert found.model_wise == pytest.approx(0.0654, abs=5e-5)
        assert 0.0 <= found.distinct_upper_bound - found.distinct < 1e-6
        assert "99 columns" in str(found)

    def test_independent_maps_have_a_positive_concatenation(self):
        rng = np.random.default_rng(1)
        models = ModelClass.from_matrices({"a": rng.normal(size=(60, 2)), "b": rng.normal(size=(60, 3))})
        found = c_min(models, FiniteSet(range(60)))
        assert found.repeated == 0
        assert found.concatenated == pytest.approx(found.distinct)
        assert found.model_wise >= found.distinct - 1e-6

    def test_normalised_concatenation_is_scaled_per_model(self):
        rng = np.random.default_rng(1)
        models = ModelClass.from_matrices({"a": 10 * rng.normal(size=(60, 2)), "b": rng.normal(size=(60, 3))})
        domain = FiniteSet(range(60))
        stacked, groups = concatenation(models.normalized(domain), domain)
        assert [np.linalg.norm(stacked[:, g], axis=1).max() for g in groups] == pytest.approx([1.0, 1.0])
        found = c_min(models.normalized(domain), domain)
        assert found.concatenated <= 1.0 / 3.0 + 1e-9  # trace of the largest block is at most one

    def test_proportional_models_across_maps_make_it_zero(self):
        table = np.random.default_rng(1).normal(size=(30, 2))
        found = c_min(ModelClass.from_matrices({"a": table, "b": -2 * table}), FiniteSet(range(30)))
        assert found.concatenated == 0.0
        assert found.repeated == 0
        assert found.rank == 2
        assert found.model_wise > 0.0


def test_design_lambda_min():
    models, domain = ModelClass.legendre(degree=10, size=2), Interval(resolution=201)
    distinct, wise = design_lambda_min(models, domain, np.full(201, 1 / 201))
    assert wise == pytest.approx(0.0508, abs=5e-5)
    features = models.matrix(domain)
    assert distinct == pytest.approx(np.linalg.eigvalsh(features.T @ features / 201)[0])
    pairs = itertools.combinations(range(11), 2)
    assert wise == pytest.approx(min(np.linalg.eigvalsh(features[:, p].T @ features[:, p] / 201)[0] for p in pairs))
    with pytest.raises(ValueError, match="probabilities"):
        design_lambda_min(models, domain, np.ones(201))


def test_expected_explorations():
    assert eigenvalues.expected_explorations(3, 0.5) == pytest.approx(np.cumsum(0.5 * np.array([1, 2, 3]) ** -0.25))
    assert eigenvalues.expected_explorations(2, 1.5) == pytest.approx([1.0, 2.0])


def test_entrywise_closeness_bounds_the_quadratic_form_on_the_cone():
    """|b'(A - B)b| <= 16 s d max|A - B| for b in the cone with unit norm on J, groups of size d."""
    rng = np.random.default_rng(3)
    n_groups, size, sparsity = 5, 3, 2
    worst = 0.0
    for _ in range(2000):
        difference = rng.choice([-1.0, 1.0], size=(15, 15))
        difference = np.triu(difference) + np.triu(difference, 1).T
        b = rng.normal(size=(n_groups, size))
        inside = b[:sparsity]
        b[:sparsity] = inside / np.linalg.norm(inside)
        outside = np.linalg.norm(b[sparsity:], axis=1).sum()
        b[sparsity:] *= 3.0 * np.linalg.norm(b[:sparsity], axis=1).sum() / outside
        worst = max(worst, abs(b.ravel() @ difference @ b.ravel()))
    equal = np.full((n_groups, size), 1.0)
    equal[:sparsity] /= np.sqrt(sparsity * size)
    equal[sparsity:] *= 3 * np.sqrt(sparsity) / (np.sqrt(size) * (n_groups - sparsity))
    assert worst <= 16 * sparsity * size
    assert equal.sum() ** 2 == pytest.approx(16 * sparsity * size)  # and the constant is attained


def test_kappa_bound_has_the_printed_rate_and_a_burn_in():
    t = np.arange(1, 2_000_001, dtype=float)
    gamma = eigenvalues.expected_explorations(2_000_000, 1.0)
    bound = eigenvalues.kappa_lower_bound(t, gamma, 1.0, 20, 1, entry_bound=1.0, delta=0.1, sparsity=1)
    start = eigenvalues.burn_in(bound)
    assert bound[0] == 0.0
    assert 10_000 < start < 2_000_000  # positive at last, but hardly useful
    assert np.all(np.diff((bound * t)[start:]) > 0)
    radius = eigenvalues.explored_entries_radius(gamma, 20, 1.0, 0.1)
    assert np.log(radius[-1] / radius[20_000 - 1]) / np.log(100) == pytest.approx(3 / 8, abs=0.03)
    assert eigenvalues.burn_in(np.zeros(3)) is None


def test_matrix_bound_is_earlier_than_entries_for_one_small_model():
    t = np.arange(1, 200_001, dtype=float)
    gamma = eigenvalues.expected_explorations(200_000, 1.0)
    entries = eigenvalues.kappa_lower_bound(t, gamma, 0.25, 2, 2, 1.0, 0.1, sparsity=1)
    matrix = eigenvalues.explored_lambda_min_bound(gamma, 0.25, 0.5, 2, 1.0, 0.1)
    assert eigenvalues.burn_in(matrix) < 1000
    assert eigenvalues.burn_in(entries) is None or eigenvalues.burn_in(entries) > 10 * eigenvalues.burn_in(matrix)


def test_slack_scales_with_the_features():
    base = eigenvalues.explored_lambda_min_slack([1.0, 50.0], 0.5, 3, 1.0, 0.1, n_models=4)
    assert eigenvalues.explored_lambda_min_slack([1.0, 50.0], 4.5, 3, 3.0, 0.1, n_models=4) == pytest.approx(9 * base)
