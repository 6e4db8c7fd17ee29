"""ALExp with the evidence oracle: the whole conformance suite, and that it is the aggregate that scores."""

import numpy as np
import pytest

import alexp
from alexp import testing


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_conformance(check, monkeypatch):
    monkeypatch.setattr(alexp.ALExp, "example", {"oracle": alexp.Evidence()})
    check(alexp.ALExp)


def test_returns_are_scored_by_the_aggregate():
    models, domain = alexp.ModelClass.legendre(degree=4, size=2), alexp.Interval(resolution=30)
    algorithm = alexp.ALExp(models, domain, oracle=alexp.Evidence(), random_state=0)
    path = alexp.Evidence().bind_groups(models.n_columns, models.columns_flat, models.offsets, models.scales)
    trial = algorithm.ask()
    algorithm.tell(trial, 0.7)
    path.append(models.matrix(domain)[trial.index], 0.7)
    np.testing.assert_allclose(algorithm.fit.beta, path.solve(1.0).beta, rtol=1e-12)
