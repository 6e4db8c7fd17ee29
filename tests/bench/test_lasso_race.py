import numpy as np
import pytest

from alexp.bench.instances import independent_instance, legendre_instance
from alexp.bench.lasso import ACCURACY, Race, _instance_records, bench_lasso
from alexp.bench.records import FIELDS
from alexp.bench.rivals import RIVALS, Rival


def explicit_gap(instance, theta, t):
    """P and D from the expanded matrix, group by group."""
    phi, y, mu = instance.expanded(t), instance.y[:t], instance.lambdas[t - 1] * t
    blocks = [slice(k, k + instance.size) for k in range(0, theta.size, instance.size)]
    r = y - phi @ theta
    primal = 0.5 * np.sum(r**2) + mu * sum(np.linalg.norm(theta[b]) for b in blocks)
    steepest = max(np.linalg.norm(phi[:, b].T @ r) for b in blocks)
    scale = np.clip((y @ r) / (r @ r), -mu / steepest, mu / steepest)
    return primal, scale * (y @ r) - 0.5 * scale**2 * (r @ r)


@pytest.mark.parametrize("instance", [legendre_instance(5, 3, 8), independent_instance(7, 8)], ids=["shared", "own"])
def test_values_agree_with_the_expanded_problem(instance):
    rng = np.random.default_rng(3)
    for t in (1, 4, 8):
        theta = 0.1 * rng.standard_normal(instance.columns.size)
        assert instance.values(theta, t) == pytest.approx(explicit_gap(instance, theta, t), rel=1e-12)


class FakeRival:
    """Answers with the start until its tolerance is tight enough, then with the optimum; writes a diary."""

    def __init__(self, instance, enough):
        self.instance, self.enough, self.diary = instance, enough, []
        race = Race(instance)
        path, fit = race._bind(), None
        self.optima = []
        for t in range(1, instance.n_steps + 1):
            fit = race._advance(path, t, fit)
            self.optima.append(race._coefficients(path, fit))

    def solve(self, expanded, y, lam, size, start, tol):
        t = y.size
        assert expanded.shape == (t, self.instance.columns.size)
        before = np.zeros_like(start) if t == 1 else self.optima[t - 2]
        np.testing.assert_array_equal(start, before)  # warm: the certified solution of the step before
        self.diary.append((t, tol))
        return self.optima[t - 1] if tol <= self.enough else np.zeros_like(start)


def test_rival_runs_beside_us_with_the_loosest_tolerance_that_suffices():
    instance = legendre_instance(5, 2, 6)
    fake = FakeRival(instance, enough=0.1)
    rival = Rival("fake", fake.solve, lambda primal, y, lam: 1.0)
    race = Race(instance)
    seconds, gaps, heats = race.run({"fake": rival}, {"fake": {2, 5}})
    assert len(seconds) == len(gaps) == 6
    assert max(gaps) <= ACCURACY
    # Every step starts from the loosest tolerance: one that an earlier step needed may be too tight for a later one.
    assert fake.diary == [(2, 1.0), (2, 0.25), (2, 0.0625), (5, 1.0), (5, 0.25), (5, 0.0625)]
    assert [heat.t for heat in heats["fake"]] == [2, 5]
    assert all(heat.reached and heat.gap <= ACCURACY and heat.seconds <= heat.spent_s for heat in heats["fake"])


def test_rival_that_never_gets_there_is_reported_as_such():
    instance = legendre_instance(5, 2, 6)
    fake = FakeRival(instance, enough=0.0)
    race = Race(instance)
    _, _, heats = race.run({"fake": Rival("fake", fake.solve, lambda primal, y, lam: 1.0)}, {"fake": {4}})
    assert not heats["fake"][0].reached
    assert heats["fake"][0].gap > 0.1


def test_ratio_compares_the_steps_that_both_ran(monkeypatch):
    monkeypatch.setattr("alexp.bench.lasso.version_of", lambda name: "0")
    instance = legendre_instance(5, 2, 12)
    fake = FakeRival(instance, enough=np.inf)
    rivals = {"fake": Rival("fake", fake.solve, lambda primal, y, lam: 1.0)}
    monkeypatch.setattr("alexp.bench.lasso._OVERDRAWN", np.inf)
    own, other = _instance_records(instance, rivals, budget_s=1e-9)
    assert (own["subject"], own["steps"], own["ratio"]) == ("alexp", 12, 1.0)
    assert (other["steps"], other["of_steps"]) == (3, 12)
    assert [t for t, _ in fake.diary] == [3, 7, 11] * 2  # a pilot, and with no budget the same again
    assert other["ratio"] > 0.0


def test_every_installed_rival_solves_the_same_problem():
    records = bench_lasso(quick=True, budget_s=0.5)
    names = {rival.name for rival in RIVALS}
    for row in records:
        assert tuple(row)[: len(FIELDS)] == FIELDS
        if row["subject"] == "alexp":
            assert row["reached"]
            assert row["max_gap"] <= ACCURACY
        elif row.get("error") is None:  # steps that a rival cannot do are its own affair, a whole path is not
            assert row["reached"] == (row["reached_steps"] == row["steps"]) == (row["max_gap"] <= ACCURACY)
            assert row["reached_steps"] >= 1
    raced = {row["subject"] for row in records if row.get("error") is None}
    assert "alexp" in raced
    assert raced | {row["subject"] for row in records if row.get("error")} == names | {"alexp"}
