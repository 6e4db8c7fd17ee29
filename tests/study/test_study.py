"""The life of a study, on both storages."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp.study import (
    AbandonedTrialError,
    ProblemMismatchError,
    Storage,
    StorageWarning,
    StudyExistsError,
    StudyNotFoundError,
    create_study,
    delete_study,
    list_studies,
    load_study,
    replay as replay_module,
)
from alexp.study.records import find_study, row_checksum
from alexp.study.storage import studies
from alexp.testing import on_tables

from .conftest import DOMAIN, MODELS, in_memory, new_study, play, reward


def same(study, algorithm):
    """Equal to the last bit: log, state, settings."""
    return json.dumps(study.algorithm.to_dict()) == json.dumps(algorithm.to_dict())


@pytest.mark.parametrize("name", on_tables())
def test_a_study_is_its_algorithm_bit_for_bit(storage, name):
    kind = alexp.Algorithm.registry[name]
    study = new_study(storage, algorithm=name, **kind.example)
    plain = in_memory(kind=kind, **kind.example)
    for step in range(8):
        ours, theirs = study.ask(), plain.ask()
        assert ours == theirs
        if step == 4:
            study = load_study("s", storage)
        if step != 3:
            study.tell(ours.id, reward(ours))
            plain.tell(theirs, reward(theirs))
    assert same(load_study("s", storage), plain)
    assert study.best() == plain.best()


def test_two_holders_of_a_study_see_each_other(storage):
    one, plain = new_study(storage), in_memory()
    other = load_study("s", storage)
    for step in range(20):
        actor, teller = (one, other) if step % 2 else (other, one)
        trial = actor.ask()
        assert trial == plain.ask()
        teller.tell(trial, reward(trial))
        plain.tell(trial, reward(trial))
    assert np.array_equal(one.probabilities, plain.probabilities)
    assert np.array_equal(other.probabilities, plain.probabilities)
    assert same(one, plain)
    assert same(other, plain)


def test_opening_continues_from_a_snapshot_as_from_the_whole_log(storage, monkeypatch):
    monkeypatch.setattr(replay_module, "REPLAY_EVENTS", 7)
    study, plain = new_study(storage), in_memory(20)
    play(study, 20)
    study.abandon(study.ask())
    plain.abandon(plain.ask())
    with study.storage.reading() as connection:
        kept = connection.exec_driver_sql("SELECT n_events FROM alexp_snapshots ORDER BY n_events").scalars().all()
    assert len(kept) == 2
    assert 42 - kept[-1] < 7
    again = load_study("s", storage)
    assert again.refresh().snapshot_at == kept[-1]
    assert same(again, plain)
    assert again.pending() == []
    with study.storage.writing() as connection:  # an unreadable snapshot costs time only
        connection.exec_driver_sql("UPDATE alexp_snapshots SET data = alexp_arrays.data FROM alexp_arrays")
    again = load_study("s", storage)
    with pytest.warns(StorageWarning, match="the snapshot after 42 events is damaged"):
        assert same(again, plain)
    again.close()  # writes another
    with warnings.catch_warnings():
        warnings.simplefilter("error", StorageWarning)
        assert same(load_study("s", storage), plain)
    with study.storage.writing() as connection:
        connection.exec_driver_sql("DELETE FROM alexp_snapshots")
    whole = load_study("s", storage)
    assert same(whole, plain)
    assert whole.counts == {"trials": 21, "told": 20, "pending": 0, "abandoned": 1}


def test_late_and_unordered_rewards(storage):
    study, plain = new_study(storage), in_memory()
    plate, same_plate = study.ask(6), plain.ask(6)
    assert plate == same_plate
    for trial in (plate[4], plate[0], plate[5]):
        load_study("s", storage).tell(trial.id, reward(trial))
        plain.tell(trial.id, reward(trial))
    assert [trial.id for trial in study.pending()] == [1, 2, 3]
    study.tell_many({3: 0.5, 1: 0.25})
    plain.tell(3, 0.5)
    plain.tell(1, 0.25)
    assert same(study, plain)


def test_wrong_tells_change_nothing(storage):
    study = new_study(storage)
    first, second, third = study.ask(3)
    study.tell(first, 1.0)
    study.abandon(second.id)
    before = study.events_dataframe()
    foreign = alexp.Trial(third.id, 0.0, (third.index + 1) % 21, None, False, 1.0)
    for error, trial, value in [
        (alexp.AlreadyToldError, first, 1.0),
        (alexp.UnknownTrialError, 99, 1.0),
        (alexp.UnknownTrialError, foreign, 1.0),
        (AbandonedTrialError, second, 1.0),
        (ValueError, third, float("nan")),
        (ValueError, third, float("inf")),
        (TypeError, third, "1.0"),
        (alexp.AlreadyToldError, "0", 1.0),
        (TypeError, "zero", 1.0),
    ]:
        with pytest.raises(error):
            study.tell(trial, value)
        with pytest.raises(error):  # a good one beside it is not written either
            study.tell_many([(third, 0.5), (trial, value)])
    with pytest.raises(alexp.AlreadyToldError, match="twice in one call"):
        study.tell_many([(third, 0.5), (third.id, 0.5)])
    for error, trial in [(alexp.AlreadyToldError, first), (AbandonedTrialError, second), (alexp.UnknownTrialError, 7)]:
        with pytest.raises(error):
            study.abandon(trial)
    for arguments in ({"n": 0}, {"n": 1.5}, {"available": [21]}, {"n": 3, "available": [1, 2], "distinct": True}):
        with pytest.raises((ValueError, TypeError)):
            study.ask(**arguments)
    pd.testing.assert_frame_equal(study.events_dataframe(), before)
    study.tell(third, 0.5)
    assert load_study("s", storage).counts == {"trials": 3, "told": 2, "pending": 0, "abandoned": 1}


def test_restricted_rounds_and_distinct_plates_replay(storage):
    study = new_study(storage)
    play(study, 3)
    plate = study.ask(8, distinct=True)
    assert len({trial.index for trial in plate}) == 8
    few = study.ask(3, available=[4, 9, 2], distinct=True)
    assert {trial.index for trial in few} == {2, 4, 9}
    mask = np.ones(21, dtype=bool)
    mask[[trial.index for trial in plate]] = False
    assert not mask[study.ask(available=~mask).index]
    study.tell_many((trial, reward(trial)) for trial in reversed(plate))
    play(study, 3)
    assert same(load_study("s", storage), study.algorithm)


def test_observations_from_elsewhere(storage):
    study = new_study(storage)
    play(study, 3)
    added = study.add_observations(pd.DataFrame({"x": [DOMAIN[4], DOMAIN[0]], "reward": [0.5, -0.25]}))
    assert [(t.id, t.index, t.model, t.explored) for t in added] == [(3, 4, None, False), (4, 0, None, False)]
    play(study, 3)
    frame = load_study("s", storage).trials_dataframe()
    assert frame["state"].tolist() == ["told"] * 3 + ["observed"] * 2 + ["told"] * 3
    assert frame["propensity"].isna().tolist() == [False] * 3 + [True] * 2 + [False] * 3
    assert frame["reward"].tolist()[3:5] == [0.5, -0.25]
    plain = in_memory(3)
    plain.observe(4, 0.5)
    plain.observe(0, -0.25)
    play(plain, 3)
    assert same(study, plain)
    assert same(load_study("s", storage), plain)


def test_problems_come_back_or_are_asked_for(storage):
    rng = np.random.default_rng(0)
    matrices = {"fp": rng.standard_normal((12, 5)), "desc": rng.standard_normal((12, 2))}
    table = pd.DataFrame({"smiles": [f"C{i}" for i in range(12)], "mass": rng.uniform(size=12)})
    stored = create_study(
        alexp.ModelClass.from_matrices(matrices), alexp.FiniteSet(table), name="m", storage=storage, random_state=1
    )
    play(stored, 4)
    back = load_study("m", storage)
    assert list(back.algorithm.models.names) == ["fp", "desc"]
    pd.testing.assert_frame_equal(back.algorithm.domain.candidates, table)
    assert back.ask().x["smiles"].startswith("C")
    with pytest.raises(ProblemMismatchError, match="candidates differ"):
        load_study("m", storage, domain=alexp.FiniteSet(table[::-1].reset_index(drop=True)))
    other = alexp.ModelClass.from_matrices(matrices | {"desc": matrices["desc"][::-1]})
    with pytest.raises(ProblemMismatchError, match="'desc' have other values, first at candidate 0"):
        load_study("m", storage, models=other)

    maps = {"line": lambda x: x[:, None], "wave": lambda x: np.stack([np.sin(x), 0.3 * x**3 + 1.0], axis=1)}
    create_study(alexp.ModelClass.from_maps(maps), DOMAIN, name="code", storage=storage, random_state=1)
    with pytest.raises(ProblemMismatchError, match="code of your own"):
        load_study("code", storage)
    play(load_study("code", storage, alexp.ModelClass.from_maps(maps)), 3)
    noisy = maps | {"wave": lambda x: maps["wave"](x) * (1.0 + 1e-13)}  # rounding of another machine
    play(load_study("code", storage, alexp.ModelClass.from_maps(noisy)), 1)
    changed = maps | {"wave": lambda x: maps["wave"](x) + 1e-3 * (x == x[7])[:, None]}
    with pytest.raises(ProblemMismatchError, match="'wave' have other values, first at candidate 7"):
        load_study("code", storage, alexp.ModelClass.from_maps(changed))
    with pytest.raises(ProblemMismatchError, match="columns"):
        load_study("code", storage, alexp.ModelClass.from_maps({"line": maps["line"]}))
    with pytest.raises(ProblemMismatchError, match="candidates differ"):
        load_study("code", storage, alexp.ModelClass.from_maps(maps), alexp.Interval(resolution=20))


@pytest.mark.parametrize("axis", [0, 1])
def test_changed_features_are_noticed_by_candidates_or_by_columns(storage, axis):
    """The two sketches of the features are each blind to some changes; what one does not see, the other does."""
    base = np.random.default_rng(0).standard_normal((21, 4))
    k = np.arange(1, base.shape[1 - axis] + 1)
    weights = np.stack([np.cos(0.7 * k) + 1.5, np.sin(1.3 * k + 0.2) - 1.5])  # as a sketch weighs columns or candidates
    blind = np.linalg.svd(weights)[2][-1]
    np.testing.assert_allclose(weights @ blind, 0.0, atol=1e-12)
    changed = base.copy()
    changed[(2, slice(None)) if axis == 0 else (slice(None), 2)] += blind
    create_study(alexp.ModelClass.from_maps({"m": lambda x: base}), DOMAIN, name="b", storage=storage)
    load_study("b", storage, alexp.ModelClass.from_maps({"m": lambda x: base * (1.0 + 1e-14)}))
    with pytest.raises(ProblemMismatchError, match="have other values"):
        load_study("b", storage, alexp.ModelClass.from_maps({"m": lambda x: changed}))


def test_agents_of_ones_own_are_passed_again(storage):
    class Middle(alexp.Agent):
        ridge = 1.0

        def policy(self, view):
            return view.mean.size // 2

    new_study(storage, agents=Middle())
    with pytest.raises(ProblemMismatchError, match="pass agents= again to load_study"):
        load_study("s", storage)
    play(load_study("s", storage, agents=Middle()), 2)


def test_names_and_agreement(storage):
    study = new_study(storage)
    play(study, 2)
    with pytest.raises(StudyExistsError, match="load_if_exists"):
        new_study(storage)
    assert new_study(storage, load_if_exists=True).counts["told"] == 2
    assert create_study(name="s", storage=storage, load_if_exists=True).counts["told"] == 2
    for settings in ({"noise_std": 0.3}, {"direction": "minimize"}, {"algorithm": "uniform"}, {"random_state": 6}):
        with pytest.raises(StudyExistsError, match="exists already with"):
            new_study(storage, load_if_exists=True, **settings)
    small = alexp.Interval(resolution=5)
    with pytest.raises(ProblemMismatchError):
        create_study(MODELS, small, name="s", storage=storage, noise_std=0.1, load_if_exists=True)
    with pytest.raises(StudyNotFoundError, match="it has 's'"):
        load_study("t", storage)
    for wrong in ({"algorithm": "magic"}, {"name": ""}, {"noise_std": -1.0}):
        with pytest.raises(ValueError, match="must be"):
            new_study(storage, **({"name": "new"} | wrong))
    with pytest.raises(ValueError, match="domain is missing"):
        create_study(MODELS, name="new", storage=storage)
    assert [(s.name, s.trials, s.told, s.pending) for s in list_studies(storage)] == [("s", 2, 2, 0)]


def test_a_study_agrees_that_an_older_version_wrote_with_fewer_settings(sqlite):
    matching = {"algorithm": "evidence-mixture", "rule": alexp.rules.Matching()}
    new_study(sqlite, **matching)
    with Storage(sqlite).writing() as connection:
        row = find_study(connection, "s")
        settings = json.loads(row.settings)
        assert settings["rule"].pop("share") == alexp.rules.Matching().share
        row = replace(row, settings=json.dumps(settings))
        checksum = row_checksum(row)
        connection.execute(studies.update().values(settings=row.settings, checksum=checksum, chain=checksum))
    assert new_study(sqlite, load_if_exists=True, **matching).counts["told"] == 0
    with pytest.raises(StudyExistsError, match="exists already with rule"):
        new_study(sqlite, load_if_exists=True, **matching | {"rule": alexp.rules.UCB()})


def test_delete(storage):
    study = new_study(storage)
    play(study, 3)
    new_study(storage, "other")
    delete_study("s", storage)
    assert [summary.name for summary in list_studies(storage)] == ["other"]
    with pytest.raises(StudyNotFoundError, match="deleted"):
        study.ask()
    fresh = new_study(storage)
    assert fresh.counts["trials"] == 0
    with pytest.raises(StudyNotFoundError, match="deleted"):  # the new one of that name is another study
        study.ask()
    with study.storage.reading() as connection:
        for table in ("alexp_events", "alexp_snapshots"):
            assert connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() == 0


def test_minimising(storage):
    study = new_study(storage, direction="minimize")
    plain = in_memory(direction="minimize")
    for _ in range(6):
        trial = study.ask()
        assert trial == plain.ask()
        study.tell(trial, -reward(trial))
        plain.tell(trial, -reward(trial))
    assert load_study("s", storage).best() == plain.best()
    assert same(study, plain)


def test_zero_keeps_its_meaning_but_not_its_sign(storage):
    study = new_study(storage)
    study.tell(study.ask(), -0.0)
    assert same(load_study("s", storage), study.algorithm)
