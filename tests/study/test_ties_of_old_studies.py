"""Studies and states of version 1.0.0 took the largest score to the last bit, and go on like that."""

from __future__ import annotations

import json

import numpy as np
import pytest
import sqlalchemy as sa

import alexp
from alexp.algorithms import load
from alexp.common.ties import TIE, rules, tie_of
from alexp.study import check
from alexp.study.storage import Storage, studies

N = 12
SETTINGS = {"noise_std": 0.1, "random_state": 0}


def problem():
    """Two columns that are equal up to rounding for the first candidates: all of these tie."""
    rng = np.random.default_rng(0)
    column = np.ones((N, 1)) * (1.0 + rng.permutation(N)[:, None] * 1e-14)
    column[-3:] = 0.1
    return alexp.ModelClass.from_matrices({"a": column, "b": -column}, intercept=False), alexp.FiniteSet(range(N))


def played(one, n=8):
    """Actions, with rewards that keep the first candidates the best."""
    out = []
    for _ in range(n):
        trial = one.ask()
        out.append(trial.index)
        one.tell(trial, 1.0 if trial.index < N - 3 else 0.0)
    return out


def as_of_1_0_0(settings):
    """Settings as version 1.0.0 stored them."""
    return {key: value for key, value in settings.items() if key != "ties"}


def run(tie, kind=alexp.LinUCB, **settings):
    with tie_of(tie):
        return kind(*problem(), noise_std=0.1, random_state=0, **settings)


@pytest.mark.parametrize("kind", [alexp.LinUCB, alexp.ALExp, alexp.EvidenceMixture])
def test_states(kind):
    new, old = run(TIE, kind), run(0.0, kind)
    assert new.to_dict()["settings"]["ties"] == "first"
    assert "ties" not in old.to_dict()["settings"]
    for one in (new, old):
        played(one, 4)
        again = load(json.loads(json.dumps(one.to_dict())))
        assert again.to_dict()["settings"] == one.to_dict()["settings"]
        assert played(again) == played(one)
    assert rules.tie == TIE


def test_an_old_run_is_another_one():
    """Otherwise this file tests nothing."""
    new, old = played(run(TIE)), played(run(0.0))
    assert new != old
    first = run(TIE)._listed.order[:]
    assert new[0] == next(int(i) for i in first if i < N - 3)


def test_a_state_with_other_ties_is_refused():
    data = run(TIE).to_dict()
    del data["digest"]
    data["settings"]["ties"] = "last"
    with pytest.raises(ValueError, match=r"settings\['ties'\] must be 'first', got 'last'"):
        load(data)


def test_studies(tmp_path):
    path = tmp_path / "old.db"
    with tie_of(0.0), alexp.create_study(*problem(), name="s", storage=path, algorithm="linucb", **SETTINGS) as study:
        before = played(study)
    with Storage(path).reading() as connection:
        assert "ties" not in json.loads(connection.execute(sa.select(studies.c.settings)).scalar_one())
    assert check("s", path).ok
    with alexp.load_study("s", path) as study:
        assert before + played(study, 4) == played(run(0.0), 12)
    with alexp.create_study(
        *problem(), name="s", storage=path, algorithm="linucb", load_if_exists=True, **SETTINGS
    ) as one:
        assert one.ask().index == played(run(0.0), 13)[-1]
    assert check("s", path).ok
    new = tmp_path / "new.db"
    with alexp.create_study(*problem(), name="s", storage=new, algorithm="linucb", **SETTINGS) as study:
        assert played(study) == played(run(TIE)) != before
    assert check("s", new).ok
