import os
import sys
from pathlib import Path

import numpy as np
import pytest

from alexp_experiments.bench.lasso import rivals as rivals_module, solvers
from alexp_experiments.bench.lasso.lasso import (
    ACCURACY,
    Race,
    _instance_records,
    bench_lasso,
    independent_instance,
    legendre_instance,
)
from alexp_experiments.bench.lasso.rivals import RIVALS, Rival, Worker, installed, rivals_python
from alexp_experiments.bench.page import table
from alexp_experiments.bench.records import FIELDS, Lap, record


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
    """Answers with zero until its tolerance is tight enough, then with the optimum; writes a diary.

    From `sure` on it certifies a gap of zero itself.
    """

    def __init__(self, instance, enough, sure=0.0):
        self.instance, self.enough, self.sure, self.diary = instance, enough, sure, []
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
        own_gap = 0.0 if tol <= self.sure else np.inf
        return (self.optima[t - 1] if tol <= self.enough else np.zeros_like(start)), own_gap


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


def test_a_rival_may_certify_its_answer_itself():
    instance = legendre_instance(5, 2, 6)
    fake = FakeRival(instance, enough=0.0, sure=0.3)
    _, _, heats = Race(instance).run({"fake": Rival("fake", fake.solve, lambda primal, y, lam: 1.0)}, {"fake": {4}})
    assert fake.diary == [(4, 1.0), (4, 0.25)]
    assert heats["fake"][0].gap == 0.0


def test_an_answer_that_is_good_but_not_certified_is_remembered(monkeypatch):
    """The optimum with a nudge: within 1e-6 of the best value, while its own residual certifies much less."""
    instance = legendre_instance(5, 2, 6)
    fake = FakeRival(instance, enough=np.inf)
    exact = fake.optima[3]
    nudged = exact.copy()
    t = 4
    primal, dual = instance.values(exact, t)
    size = 1e-3 * np.abs(exact).max()
    while (instance.values(nudged := exact * (1.0 + size), t)[0] - dual) / primal > 0.5 * ACCURACY:
        size /= 2.0
    assert (instance.values(nudged, t)[0] - instance.values(nudged, t)[1]) / primal > 2.0 * ACCURACY
    monkeypatch.setattr("alexp_experiments.bench.lasso.lasso._MOST_TRIES", 3)
    rival = Rival("fake", lambda *args: (nudged if args[-1] > 0.1 else exact, np.inf), lambda primal, y, lam: 1.0)
    ticks = iter([7.0, 8.0, 9.0])
    monkeypatch.setattr(rivals_module, "timed", lambda call: (call(), Lap(0.0, 0.0, next(ticks))))
    monkeypatch.setattr("alexp_experiments.bench.lasso.lasso._PATIENCE_S", np.inf)
    _, _, heats = Race(instance).run({"fake": rival}, {"fake": {t}})
    assert (heats["fake"][0].told_s, heats["fake"][0].seconds) == (7.0, 9.0)
    assert heats["fake"][0].reached


def test_rival_that_never_gets_there_is_reported_as_such():
    instance = legendre_instance(5, 2, 6)
    fake = FakeRival(instance, enough=0.0)
    race = Race(instance)
    _, _, heats = race.run({"fake": Rival("fake", fake.solve, lambda primal, y, lam: 1.0)}, {"fake": {4}})
    assert not heats["fake"][0].reached
    assert heats["fake"][0].gap > 0.1


def test_ratio_compares_the_steps_that_both_ran(monkeypatch):
    instance = legendre_instance(5, 2, 12)
    fake = FakeRival(instance, enough=np.inf)
    rivals = {"fake": Rival("fake", fake.solve, lambda primal, y, lam: 1.0)}
    monkeypatch.setattr("alexp_experiments.bench.lasso.lasso._OVERDRAWN", np.inf)
    own, other = _instance_records(instance, rivals, budget_s=1e-9)
    assert (own["subject"], own["steps"], own["ratio"]) == ("alexp", 12, 1.0)
    assert (other["steps"], other["of_steps"]) == (3, 12)
    assert [t for t, _ in fake.diary] == [3, 7, 11] * 2  # a pilot, and with no budget the same again
    assert other["ratio"] > 0.0


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system does not tell")
def test_looking_for_rivals_leaves_the_process_its_cores():
    cores = os.sched_getaffinity(0)
    found, _ = installed()
    assert found
    assert os.sched_getaffinity(0) == cores
    for rival in found:
        rival.close()


def test_a_rival_may_live_in_an_environment_of_its_own():
    """celer through a worker with this interpreter: the same solution, on the worker's clock, again and again."""
    pytest.importorskip("celer")
    instance = independent_instance(6, 8, strong=True)
    start = np.zeros(instance.columns.size)
    worker = Worker(Path(sys.executable), "celer")
    remote = Rival("celer", solvers.celer, lambda primal, y, lam: 1.0, version=worker.version, worker=worker)
    try:
        for t in (3, 8):
            expanded, y, lam = instance.expanded(t), instance.y[:t], float(instance.lambdas[t - 1])
            for tol in (1e-3, 1e-9):
                (theta, gap), lap = remote.run(expanded, y, lam, instance.size, start, tol)
                expected, own_gap = solvers.celer(expanded, y, lam, instance.size, start, tol)
                np.testing.assert_allclose(theta, expected, rtol=1e-9, atol=1e-12)
                assert gap == pytest.approx(own_gap, rel=1e-6, abs=1e-15)
                assert lap.thread > 0.0
    finally:
        remote.close()
    assert worker._process.returncode == 0


def test_a_worker_says_what_is_wrong(tmp_path, monkeypatch):
    monkeypatch.setattr(rivals_module, "RIVALS", (Rival("no_such_solver", solvers.celer, lambda *_: 1.0),))
    with monkeypatch.context() as patch:
        patch.setattr(rivals_module, "rivals_python", lambda chosen: None)
        assert installed()[1] == {"no_such_solver": "not installed"}
    _, missing = installed(Path(sys.executable))
    assert missing == {"no_such_solver": "not installed; not installed in the other environment"}
    with pytest.raises(ValueError, match="make rivals"):
        installed(tmp_path / "python")
    broken = Worker(Path(sys.executable), "celer")
    broken._process.kill()
    broken._process.wait()
    with pytest.raises(RuntimeError, match="the process of celer ended with status -9"):
        broken.solve(np.ones((2, 2)), np.ones(2), 1.0, 2, np.zeros(2), 1.0)


def test_where_the_other_environment_is(tmp_path, monkeypatch):
    monkeypatch.delenv("ALEXP_RIVALS_PYTHON", raising=False)
    monkeypatch.chdir(tmp_path)
    python = tmp_path / ".venv-rivals" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    assert rivals_python() == python
    monkeypatch.setenv("ALEXP_RIVALS_PYTHON", sys.executable)
    assert rivals_python() == Path(sys.executable)
    assert rivals_python(python) == python


def test_the_page_says_who_is_not_installed():
    rows = [record("lasso", "some path", "adelie", error="not installed")]
    assert table("lasso", rows)[1][0][:3] == ["some path", "adelie", "not installed"]


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
            assert row["good_steps"] >= 1
            assert row["known_ratio"] <= row["ratio"]
    raced = {row["subject"] for row in records if row.get("error") is None}
    assert "alexp" in raced
    assert raced | {row["subject"] for row in records if row.get("error")} == names | {"alexp"}
