"""The seam of the regressions: kinds of estimates, weights of observations, estimates through JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest

import alexp
from alexp.common.codec import pack, unpack
from alexp.estimation.estimate import Estimate, predict
from alexp.estimation.lasso.group_lasso import LassoFit
from alexp.estimation.lasso.post_lasso import PostLasso
from alexp.theory import lasso_confidence

MODELS = alexp.ModelClass.legendre(degree=4, size=2)
ORACLES = {"lasso": alexp.GroupLasso(tol=1e-10), "evidence": alexp.Evidence(), "post-lasso": PostLasso()}


def observations(t=12, seed=0):
    rng = np.random.default_rng(seed)
    rows = MODELS.columns(rng.uniform(-1.0, 1.0, t))
    return rows, rows @ np.array([0.2, 0.0, 1.0, -0.5, 0.0]) + 3.0 + 0.1 * rng.standard_normal(t)


def filled(oracle, models, rows, y, weights=None):
    data = oracle.bind(models)
    for k in range(len(y)):
        data.append(rows[k], y[k], *(() if weights is None else (weights[k],)))
    return data


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("regime", ["gram", "rows"])
def test_a_weight_counts_an_observation_that_often(intercept, regime):
    """(1/t) sum w_k (y_k - x_k'theta)^2: weights (3, 1, 2, ...) on t rows are repeated rows, at a rescaled lambda."""
    models = alexp.ModelClass.legendre(degree=4, size=2, intercept=intercept)
    rows, y = observations()
    times = np.array([3, 1, 2, 1, 1, 4, 1, 2, 1, 1, 1, 2])
    oracle = alexp.GroupLasso(tol=1e-12, regime=regime)
    weighted = filled(oracle, models, rows, y, times.astype(float))
    repeated = filled(oracle, models, np.repeat(rows, times, axis=0), np.repeat(y, times))
    lam, total = 0.05, times.sum()
    one, two = weighted.solve(lam), repeated.solve(lam * len(y) / total)
    np.testing.assert_allclose(one.beta, two.beta, atol=1e-6)
    assert one.intercept == pytest.approx(two.intercept, abs=1e-6)
    again = oracle.bind(models)
    again.restore(unpack(json.loads(json.dumps(pack(weighted.state())))))
    weighted.append(rows[0], 1.0, 0.5)
    again.append(rows[0], 1.0, 0.5)
    np.testing.assert_array_equal(weighted.solve(lam).beta, again.solve(lam).beta)
    unit, plain = filled(oracle, models, rows, y, np.ones(12)), filled(oracle, models, rows, y)
    np.testing.assert_array_equal(unit.solve(lam).beta, plain.solve(lam).beta)


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan"), float("inf")])
def test_weights_are_checked_before_anything_changes(weight):
    rows, y = observations(3)
    data = filled(ORACLES["lasso"], MODELS, rows, y)
    with pytest.raises(ValueError, match="weight must be positive"):
        data.append(rows[0], 1.0, weight)
    assert data.n_observations == 3
    for name in ("evidence", "post-lasso"):
        other = filled(ORACLES[name], MODELS, rows, y)
        with pytest.raises(ValueError, match="weight 1 only"):
            other.append(rows[0], 1.0, 2.0)
        assert other.n_observations == 3


@pytest.mark.parametrize("name", ORACLES)
def test_estimates_survive_json_with_their_kind(name):
    rows, y = observations()
    data = filled(ORACLES[name], MODELS, rows, y)
    fit = data.solve(0.05)
    assert type(fit) is (LassoFit if name == "lasso" else Estimate)
    again = data.read(unpack(json.loads(json.dumps(pack(fit.state())))))
    assert type(again) is type(fit)
    np.testing.assert_array_equal(again.beta, fit.beta)
    np.testing.assert_array_equal(again.groups, fit.groups)
    assert again.groups.dtype == np.int64
    np.testing.assert_allclose(predict(fit, rows.T.copy()), fit.intercept + rows @ fit.beta)


@pytest.mark.parametrize("oracle", [alexp.Evidence(), PostLasso()])
def test_only_a_certified_fit_gets_the_lasso_band(oracle):
    """The theorem speaks of group Lasso solutions; an aggregate or a refit in its place has no band."""
    for chosen, covered in ((alexp.GroupLasso(), True), (oracle, False)):
        opt = alexp.ALExp(MODELS, alexp.Interval(resolution=30), oracle=chosen, random_state=0)
        for index in range(0, 30, 3):
            opt.observe(index, 0.1 * index)
        opt = alexp.ALExp.from_dict(opt.to_dict())
        if covered:
            band = lasso_confidence(opt, 0.3)
            assert band.lower <= band.upper
        else:
            with pytest.raises((TypeError, ValueError), match="GroupLasso oracle"):
                lasso_confidence(opt, 0.3)
