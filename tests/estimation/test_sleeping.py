"""Sleeping components: the same weights, predictions and factors as if nobody had ever slept."""

import numpy as np
import pytest

import alexp
from alexp import testing
from alexp.estimation.mixture.mixture import Mixture
from alexp.estimation.ridge import bank as module
from alexp.problem.candidates import Choices

MODELS = alexp.ModelClass.legendre(degree=8, size=2)
GRIDS = {"noise_grid": (1 / 3, 1.0, 3.0), "scale_grid": (1.0, 4.0)}


def pair(monkeypatch, intercept=False):
    """A mixture that lets components sleep, and one that does not."""
    groups = (MODELS.n_columns, MODELS.columns_flat, MODELS.offsets, MODELS.scales, intercept)
    settings = {"noise_std": 0.05, "norm_bound": 1.0, **GRIDS}
    eager = Mixture(*groups, **settings)
    monkeypatch.setattr(module, "_LAZY", 0)
    return Mixture(*groups, **settings), eager


@pytest.mark.parametrize("intercept", [False, True])
def test_nothing_but_time_depends_on_sleep(monkeypatch, intercept):
    lazy, eager = pair(monkeypatch, intercept)
    rng = np.random.default_rng(0)
    points = Choices(None, np.ascontiguousarray(MODELS.columns(np.linspace(-1, 1, 50)).T))
    most_asleep, woken, before = 0, 0, 0
    for t in range(60):
        x = rng.uniform(-1, 1)
        row = MODELS.columns(np.array([x]))[0]
        # After 30 rounds the world changes: models long asleep have to come back.
        y = (row[1] - row[4] if t < 30 else row[6] + row[7]) + 0.05 * rng.standard_normal()
        for one in (lazy, eager):
            one.update(row, y)
        weights = lazy.weights()
        np.testing.assert_allclose(weights, eager.weights(), rtol=1e-9, atol=1e-13)
        for one, two in zip(lazy.moments(weights, points), eager.moments(eager.weights(), points), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-7, atol=1e-12)
        asleep = sum(bank.n_models - bank.awake.size for bank in lazy.grid.cells)
        most_asleep, woken, before = max(most_asleep, asleep), woken + max(before - asleep, 0), asleep
    print(f"{most_asleep} of {6 * MODELS.n_models} components asleep at most, {woken} woken")
    assert most_asleep > 3 * MODELS.n_models
    assert woken > 0
    for one, two in zip(lazy.state(), eager.state(), strict=True):
        np.testing.assert_array_equal(one["factor"], two["factor"])
        assert one["n_observations"] == two["n_observations"] == 60


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_conformance(check, monkeypatch):
    monkeypatch.setattr(module, "_LAZY", 0)
    check(alexp.EvidenceMixture)


def test_who_sleeps_does_not_matter_to_certificates(monkeypatch):
    domain, reports = alexp.Interval(resolution=40), []
    for threshold in (0, 10**9):
        monkeypatch.setattr(module, "_LAZY", threshold)
        environment = alexp.SyntheticEnvironment(MODELS, domain, noise_std=0.02, random_state=1)
        algorithm = alexp.EvidenceMixture(MODELS, domain, noise_std=0.02, norm_bound=1.0, random_state=1)
        alexp.simulate(algorithm, environment, 40)
        assert algorithm.belief.mixture.grid._lazy == (threshold == 0)
        reports.append((algorithm.plausible_models(0.1).tolist(), algorithm.confidence(0.3, 0.1)))
    assert reports[0] == reports[1]


def test_bad_input_changes_nothing(monkeypatch):
    lazy, _ = pair(monkeypatch)
    bank = lazy.grid.cells[0]
    bank.sleep(np.array([0, 3]))
    for row, y in ((np.full(9, np.nan), 0.0), (np.zeros(9), np.inf)):
        with pytest.raises(ValueError, match="finite"):
            bank.update(row, y)
    assert bank.n_observations == 0
