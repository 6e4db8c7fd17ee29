"""The seams that every algorithm shares: one decision per round, notes of trials, names, capabilities."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp.algorithms import Algorithm, algorithm_named, registered_names
from alexp.algorithms.capabilities import Certifies, Estimates, Predicts, SumsReturns, WeighsModels, offers
from alexp.testing import again, make, on_tables

KINDS = on_tables()


def told(name, rounds=6, **settings):
    algorithm = make(Algorithm.registry[name], **settings)
    for trial in algorithm.ask(rounds):
        algorithm.tell(trial, np.cos(trial.index))
    return algorithm


@pytest.mark.parametrize("available", [None, list(range(3, 19))], ids=["full", "restricted"])
@pytest.mark.parametrize("name", KINDS)
def test_a_situation_costs_one_decision(name, available, monkeypatch):
    algorithm = told(name)
    decide, calls = type(algorithm)._decide, []
    monkeypatch.setattr(type(algorithm), "_decide", lambda self, r: calls.append(r.key) or decide(self, r))
    again(algorithm, 20, available)
    assert len(calls) == 1
    algorithm.ask(5, available)  # the first finds the situation that is known already
    assert len(calls) == len(set(calls)) == 5


@pytest.mark.parametrize("name", KINDS)
def test_deciding_changes_nothing(name):
    algorithm = told(name)
    before = json.dumps(algorithm.to_dict())
    algorithm._decide(algorithm._candidates.round(np.array([2, 5, 30])))
    algorithm._decide(algorithm._candidates.round())
    assert json.dumps(algorithm.to_dict()) == before


@pytest.mark.parametrize("name", ["corral", "exp4-ix"])
def test_trials_that_are_told_or_abandoned_leave_no_notes(name):
    algorithm = told(name)
    empty = len(json.dumps(algorithm.state()))
    trials = algorithm.ask(30)
    assert len(json.dumps(algorithm.state())) > empty + 30
    for trial in trials[:15]:
        algorithm.tell(trial, 0.1)
    for trial in trials[15:]:
        algorithm.abandon(trial)
    assert "notes" not in algorithm.state()
    assert algorithm.pending() == []


def test_an_abandoned_trial_takes_no_reward_and_is_stored():
    algorithm = told("alexp")
    trial = algorithm.ask()
    algorithm.abandon(trial)
    again = alexp.ALExp.from_dict(json.loads(json.dumps(algorithm.to_dict())))
    for opt in (algorithm, again):
        with pytest.raises(alexp.AbandonedTrialError, match=f"trial {trial.id} was abandoned"):
            opt.tell(trial, 1.0)
        with pytest.raises(alexp.AbandonedTrialError):
            opt.abandon(trial.id)
        assert opt.pending() == []
        assert opt.trials_dataframe()["reward"].isna().sum() == 1
    with pytest.raises(alexp.AlreadyToldError):
        algorithm.abandon(0)
    with pytest.raises(alexp.UnknownTrialError):
        algorithm.abandon(99)


def test_a_name_belongs_to_one_class():
    with pytest.raises(ValueError, match=r"named 'alexp' already .*ALExp\).*replaces=True"):
        type("Mine", (alexp.ALExp,), {"name": "alexp"})
    assert Algorithm.registry["alexp"] is alexp.ALExp
    try:
        mine = type("Mine", (alexp.ALExp,), {"name": "alexp"}, replaces=True)
        assert algorithm_named("alexp") is mine
        again = type("Mine", (alexp.ALExp,), {"name": "alexp"})  # the same cell, run again
        assert algorithm_named("alexp") is again
    finally:
        Algorithm.registry["alexp"] = alexp.ALExp
    with pytest.raises(ValueError, match="algorithm must be one of alexp, .*uniform, got 'mine'"):
        algorithm_named("mine")


def test_installed_packages_add_algorithms(tmp_path):
    """A real distribution with entry points, one of which is broken, seen by the command line."""
    (tmp_path / "their_module.py").write_text(
        textwrap.dedent("""
            import alexp
            class Theirs(alexp.UniformRandom):
                name = "theirs"
        """)
    )
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    points = "[alexp.algorithms]\ntheirs = their_module:Theirs\nbroken = no_such_module:Nothing\n"
    (info / "entry_points.txt").write_text(points)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    code = "import alexp.algorithms as a; print(a.algorithm_named('theirs').__module__, *a.registered_names())"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    ours = [name for name, kind in Algorithm.registry.items() if kind.__module__.startswith("alexp.")]
    assert done.stdout.split() == ["their_module", *sorted([*ours, "theirs"])]
    assert "algorithm 'broken' of no_such_module:Nothing cannot be loaded" in done.stderr
    command = ["-m", "alexp", "run", "--scenario", "easy", "--algorithms", "theirs,uniform", "--seeds", "1"]
    command += ["--steps", "5", "--workers", "1", "--cache", str(tmp_path / "cache")]
    run = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "theirs" in run.stdout


def test_all_names_are_registered():
    assert {"alexp", "evidence-mixture", "lm-ucb", "uniform"} <= set(registered_names())


def test_capabilities_are_read_off_the_class():
    mixture, uniform, etc = make(alexp.EvidenceMixture), make(alexp.UniformRandom), make(alexp.ETC)
    assert offers(mixture, WeighsModels)
    assert offers(mixture, Predicts)
    assert offers(mixture, Certifies)
    assert not mixture.certifies
    assert make(alexp.EvidenceMixture, noise_std=0.1, reward_bound=1.0).certifies
    assert not offers(uniform, WeighsModels)
    assert not offers(uniform, Certifies)
    assert offers(etc, Estimates)
    assert not offers(mixture, SumsReturns)
    assert offers(make(alexp.ALExp), SumsReturns)


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        (["a", "b"], "a"),
        (np.array([[1.5, 2.0], [3.0, 4.0]]), [1.5, 2.0]),
        (pd.DataFrame({"base": ["KOAc", "CsF"], "T": [90, 120]}), {"base": "KOAc", "T": 90}),
    ],
)
def test_a_trial_is_json(candidates, expected):
    models = alexp.ModelClass.from_matrices({"m": np.eye(2)})
    opt = alexp.UniformRandom(models, alexp.FiniteSet(candidates), random_state=0)
    trial = opt.ask(available=[0])
    data = json.loads(json.dumps(trial.to_dict()))
    assert data == {"id": 0, "x": expected, "index": 0, "model": None, "explored": True, "propensity": 1.0}
    assert opt.observe(1, 0.5).to_dict()["propensity"] is None  # NaN is not JSON


def test_the_table_is_hashed_once(monkeypatch):
    from alexp.algorithms import base

    algorithm, calls = told("alexp"), []
    algorithm.to_dict()
    monkeypatch.setattr(base, "fingerprint", lambda array: calls.append(array) or "hash")
    algorithm.to_dict()
    assert calls == []


def test_what_is_kept_between_rewards_is_bounded():
    algorithm = told("alexp")
    for k in range(60):
        algorithm.ask(available=[k % 40, (k + 1) % 40])
    assert len(algorithm._known) <= 16
