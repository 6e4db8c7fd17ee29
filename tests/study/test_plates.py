"""Plates of durable studies: workers never get the same candidate."""

from itertools import count

import numpy as np
import pytest

import alexp
from alexp.study.errors import StudyExistsError

MODELS = alexp.ModelClass.from_matrices({"a": np.eye(12)[:, :3], "b": np.linspace(0.0, 1.0, 12)[:, None]})
TABLE = alexp.Table.from_columns({"name": [f"m{i}" for i in range(12)]})
DOMAIN = alexp.FiniteSet([f"m{i}" for i in range(12)])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "studies.db"


def test_two_workers_never_get_the_same_candidate(path):
    one = alexp.create_study(MODELS, TABLE, name="s", storage=path, algorithm="lm-ucb", noise_std=0.1, random_state=0)
    two = alexp.load_study("s", path)
    waiting = [one.ask(), two.ask(), *one.ask(3), *two.ask(2)]
    assert len({trial.index for trial in waiting}) == 7
    two.abandon(waiting[0])
    one.tell(waiting[1], 0.5)
    late = alexp.load_study("s", path)  # replays the log
    assert set(late.algorithm.choosable()) == set(range(12)) - {trial.index for trial in waiting[1:]}
    assert late.ask(available=[waiting[0].index]).index == waiting[0].index
    for study in (one, two, late):
        study.close()


def test_a_table_is_measured_once_unless_told_otherwise(path):
    with alexp.create_study(MODELS, TABLE, name="once", storage=path, algorithm="linucb", random_state=0) as study:
        assert not study.algorithm.repeats
        with pytest.raises(ValueError, match="n must be at most 12"):
            study.ask(13)
        assert study.counts["trials"] == 0
        for trial in study.ask(12):
            study.tell(trial, 0.1)
        with pytest.raises(ValueError, match="every candidate has been measured"):
            study.ask()
    assert alexp.load_study("once", path).algorithm.repeats is False
    agreed = {"name": "once", "storage": path, "algorithm": "linucb", "load_if_exists": True}
    alexp.create_study(MODELS, TABLE, **agreed).close()
    with pytest.raises(StudyExistsError, match="repeats = False, not True"):
        alexp.create_study(MODELS, TABLE, repeats=True, **agreed)
    line = alexp.create_study(alexp.ModelClass.legendre(3, 1), alexp.Interval(resolution=9), name="line", storage=path)
    assert line.algorithm.repeats


def test_a_mixture_looks_for_the_best_row_of_a_table(path):
    own = {"name": "t", "storage": path}
    with alexp.create_study(MODELS, TABLE, random_state=0, **own) as study:
        assert (study.algorithm.goal, study.algorithm.rule) == ("best", alexp.rules.ExpectedImprovement(2.0, 0.7))
    again = alexp.create_study(MODELS, TABLE, load_if_exists=True, **own)  # nothing said: as it is
    assert again.algorithm.goal == "best"
    with pytest.raises(StudyExistsError, match="goal = best, not sum"):
        alexp.create_study(MODELS, TABLE, goal="sum", load_if_exists=True, **own)
    summed = {"name": "sum", "storage": path, "goal": "sum"}
    assert alexp.create_study(MODELS, TABLE, **summed).algorithm.rule == alexp.rules.UCB(0.7)
    del summed["goal"]
    assert alexp.create_study(MODELS, TABLE, load_if_exists=True, **summed).algorithm.goal == "sum"
    ruled = alexp.create_study(MODELS, TABLE, name="rule", storage=path, rule="ids")
    assert (ruled.algorithm.goal, ruled.algorithm.rule) == ("best", alexp.rules.IDS(2.0))
    line = alexp.create_study(alexp.ModelClass.legendre(3, 1), alexp.Interval(resolution=9), name="line", storage=path)
    assert line.algorithm.goal == "sum"


@pytest.mark.parametrize("storage", [None, "s.db"])
def test_defaults_belong_to_the_problem_not_to_the_door(tmp_path, storage):
    numbers = count()

    def made(*problem, **more):
        if storage is None:
            return alexp.EvidenceMixture(*problem, random_state=0, **more)
        return alexp.create_study(
            *problem, name=f"{next(numbers)}", storage=tmp_path / storage, random_state=0, **more
        ).algorithm

    frame = {"name": [f"m{i}" for i in range(12)], "x": [i * i for i in range(12)]}
    own = made(alexp.Table.from_columns(frame))
    assert (own.repeats, own.goal) == (False, "best")
    assert own.models.names[1] == "table: Matern 5/2, 0.5"
    given = made(MODELS, alexp.Table.from_columns(frame))
    assert (given.repeats, given.goal, given.models) == (False, "best", MODELS)
    bandit = made(MODELS, DOMAIN)
    assert (bandit.repeats, bandit.goal) == (True, "sum")
    stated = made(alexp.Table.from_columns(frame), repeats=True, goal="sum")
    assert (stated.repeats, stated.goal) == (True, "sum")
    with pytest.raises((TypeError, ValueError), match="domain is missing"):
        made(MODELS)
    with pytest.raises(TypeError, match="a Table has its own candidates: leave domain out"):
        made(alexp.Table.from_columns(frame), DOMAIN)


def test_features_that_nobody_has_counted_make_no_study(path):
    models = alexp.ModelClass.per_arm({"all": lambda context: context}, arms=2)
    with pytest.raises(ValueError, match="models must have a known number of features; create them with example="):
        alexp.create_study(models, alexp.Arms(["a", "b"]), name="s", storage=path)
    assert not path.exists()


def test_distinct_holds_where_everything_is_pending(path):
    settings = {"algorithm": "uniform", "repeats": True, "random_state": 0}
    with alexp.create_study(MODELS, TABLE, name="s", storage=path, **settings) as study:
        study.ask(9)
        plate = study.ask(11, distinct=True)
        assert len({trial.index for trial in plate}) == 11
        with pytest.raises(ValueError, match="at most the 12 candidates"):
            study.ask(13, distinct=True)
        assert len(study.ask(13)) == 13
    again = alexp.load_study("s", path)
    assert [trial.index for trial in again.pending()] == again.trials_dataframe()["index"].tolist()
