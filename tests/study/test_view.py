"""One view of a study: complete, JSON-safe, and of one moment, whatever others do meanwhile; and its log to follow."""

import json

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa

import alexp
from alexp.study import (
    StudyNotFoundError,
    create_study,
    delete_study,
    load_study,
    logbook,
    storage as storage_module,
)
from alexp.study.events import MOST_MODELS
from alexp.study.report import render
from alexp.testing import on_tables

from .conftest import DOMAIN, new_study, play, reward


def full_study(storage, **settings):
    study = new_study(storage, **({"noise_std": 0.3, "reward_bound": 2.0} | settings))
    play(study, 6)
    study.add_observations(pd.DataFrame({"index": [3], "reward": [0.5]}))
    waiting = study.ask(4)
    study.abandon(waiting[1])
    study.tell(waiting[2], 0.25)
    return study


def plain(value):
    """Whether a value is made of what JSON has, and of nothing else."""
    if isinstance(value, dict):
        return all(type(key) is str and plain(item) for key, item in value.items())
    if type(value) is list:
        return all(map(plain, value))
    return value is None or type(value) in (bool, int, float, str)


@pytest.mark.parametrize("name", on_tables())
def test_every_algorithm_has_a_view_that_is_json(sqlite, name):
    kind = alexp.Algorithm.registry[name]
    study = new_study(sqlite, algorithm=name, **kind.example)
    for rounds in (0, 1, 5):
        play(study, rounds)
        data = study.view().to_dict()
        assert plain(data)
        assert json.loads(json.dumps(data, allow_nan=False)) == data
        assert (data["standing"] is None) == (not hasattr(kind, "probabilities"))
        assert (data["best"] is None) == (study.counts["told"] == 0)
        if data["standing"] is not None:
            assert data["standing"]["q"] == study.probabilities.tolist()


def test_the_view_says_everything(storage):
    study = full_study(storage)
    view, algorithm = study.view(), study.algorithm
    assert (view.name, view.algorithm, view.direction, view.library) == ("s", "alexp", "maximize", study.library)
    assert (view.n_models, view.n_candidates, view.domain, view.n_events) == (6, 21, "Interval", 19)
    assert view.settings["noise_std"] == 0.3
    assert view.settings["agents"]["kind"] == "UCB"
    assert "noise_std" in [setting.name for setting in view.explained]
    assert view.counts == study.counts == {"trials": 11, "told": 8, "pending": 2, "abandoned": 1}
    assert view.listed.tolist() == list(range(6))
    assert view.names == list(algorithm.models.names)
    frame, trials = study.trials_dataframe(), view.to_dict()["trials"]
    assert list(trials) == [
        "id",
        "index",
        "label",
        "model",
        "explored",
        "propensity",
        "reward",
        "state",
        "note",
        "values",
    ]
    for name in ("id", "index", "explored", "state"):
        assert trials[name] == frame[name].tolist()
    for name in ("model", "propensity", "reward"):
        assert trials[name] == [None if pd.isna(value) else value for value in frame[name]]
    assert trials["label"] == [f"{x:.4g}" for x in frame["x"]]
    events = study.events_dataframe().set_index(["kind", "trial"])
    assert [(trial.id, trial.index) for trial in view.pending] == [(trial.id, trial.index) for trial in study.pending()]
    for trial in view.pending:
        asked = events.loc[("ask", trial.id)]
        assert pd.Timestamp(trial.at, unit="s", tz="UTC") == asked["at"]
        assert trial.worker == asked["worker"]
    best = study.best()
    assert (view.best.index, view.best.x, view.best.value, view.best.model) == (
        best.index, best.x, best.value, best.model,
    )  # fmt: skip
    assert view.best.model_name == algorithm.models.names[best.model]


def test_how_the_models_stand(storage):
    study = full_study(storage)
    view, algorithm = study.view(), study.algorithm
    q, returns, standing = study.probabilities, algorithm.cumulative_returns, view.standing
    np.testing.assert_array_equal(standing.q, q)
    np.testing.assert_array_equal(standing.returns, returns)
    assert [leader.q for leader in standing.leaders] == sorted(q.tolist(), reverse=True)
    stop = algorithm.stop_report()
    assert stop.certified
    for leader in standing.leaders:
        assert leader.name == algorithm.models.names[leader.model]
        assert leader.behind == returns[leader.model] - returns.max()
        assert leader.chosen == sum(trial == leader.model for trial in algorithm.log.model)
        assert leader.plausible == (leader.model in stop.plausible)
    assert view.certificates.epsilon == stop.epsilon
    assert view.certificates.n_plausible == stop.plausible.size
    assert view.certificates.plausible.tolist() == stop.plausible.tolist()
    assert view.certificates.rests_on == stop.rests_on
    tile = stop.epsilon <= 4.0  # a bound above 2 reward_bound says nothing and has none
    assert render(view, now=0.0).count(stop.rests_on) == 3 + tile  # and sentence, models ruled out, band
    history = standing.history
    assert history.told.tolist() == [0, 1, 2, 3, 4, 5, 7, 7, 7, 7, 8]
    for (_, belief), row in zip(study.beliefs(), history.q, strict=False):
        np.testing.assert_array_equal(row, belief["q"][[leader.model for leader in standing.leaders]])
    lower, upper = algorithm.confidence(DOMAIN.points)
    np.testing.assert_array_equal(view.curve.lower, lower)
    np.testing.assert_array_equal(view.curve.upper, upper)
    np.testing.assert_array_equal(view.curve.played, DOMAIN.points[view.trials.index])
    assert view.curve.spread is None
    strict = study.view(delta=0.01)
    assert strict.certificates.delta == 0.01
    assert strict.certificates.epsilon > view.certificates.epsilon


def test_the_curve_of_a_mixture_has_a_spread(sqlite):
    study = new_study(sqlite, algorithm="evidence-mixture", direction="minimize")
    play(study, 5)
    curve = study.view().curve
    mean, spread = study.algorithm.predict(DOMAIN.points)
    np.testing.assert_array_equal(curve.estimate, mean)
    np.testing.assert_array_equal(curve.spread, spread)


def test_estimate_and_direction(sqlite):
    """Minimising means: the curve is in the user's units, not in those the algorithm sees."""
    study = new_study(sqlite, direction="minimize")
    for _ in range(25):
        trial = study.ask()
        study.tell(trial, 1.0 - trial.x**2)
    curve = study.view().curve
    assert np.abs(curve.estimate - (1.0 - DOMAIN.points**2))[[0, -1]].max() < 0.3


def test_parts_can_be_left_out(sqlite, monkeypatch):
    study = full_study(sqlite)
    algorithm = study.algorithm
    for name in ("stop_report", "confidence", "plausible_models"):
        monkeypatch.setattr(type(algorithm), name, property(lambda _: pytest.fail("not asked for")))
    monkeypatch.setattr(logbook, "beliefs", lambda *_: pytest.fail("not asked for"))
    view = study.view(trials=2, leaders=2, history=False, certificates=False, curve=False)
    assert view.trials.id.tolist() == [9, 10]
    assert view.trials.state == ["told", "pending"]
    assert [trial.id for trial in view.pending] == [7, 10]
    assert len(view.standing.leaders) == 2
    assert view.standing.leaders[0].plausible is None
    assert (view.standing.history, view.certificates, view.curve) == (None, None, None)
    assert study.view(trials=0, history=False, certificates=False, curve=False).trials.label == []
    for wrong in ({"trials": -1}, {"leaders": 1.5}, {"delta": 0.0}, {"delta": 1.0}):
        with pytest.raises((ValueError, TypeError)):
            study.view(**wrong)


def test_a_partial_view_still_makes_a_page(sqlite):
    study = full_study(sqlite)
    page = render(study.view(trials=0, history=False, certificates=False, curve=False), now=0.0)
    assert "leads with q =" in page or "share the lead" in page
    page = render(study.view(trials=0, leaders=8), now=0.0)
    assert "still plausible" in page


def test_asking_again_costs_nothing_until_something_happens(storage, monkeypatch):
    study, other = new_study(storage), load_study("s", storage)
    play(study, 3)
    view = study.view()
    with statements(study) as made:
        assert study.view() is view
    assert len([text for text in made if text.startswith("SELECT")]) == 1
    assert study.view(leaders=1) is not view
    trial = other.ask()
    assert study.view().n_events == view.n_events + 1
    assert [waiting.id for waiting in study.view().pending] == [trial.id]
    other.tell(trial, 0.5)
    assert study.view().pending == []
    assert study.view().to_dict() == load_study("s", storage).view().to_dict()


class statements:
    """Statements that a study's connections execute meanwhile."""

    def __init__(self, study):
        self.engine, self.made = study.storage.engine, []

    def note(self, _connection, _cursor, statement, *_):
        self.made.append(statement)

    def __enter__(self):
        sa.event.listen(self.engine, "before_cursor_execute", self.note)
        return self.made

    def __exit__(self, *_):
        sa.event.remove(self.engine, "before_cursor_execute", self.note)


@pytest.mark.parametrize("place", ["head", "verified_events", "beliefs", "asked"])
def test_a_view_is_never_torn(storage, monkeypatch, place):
    """Others act between the statements of the view; it is as if they had acted before all of them, or after all."""
    study, other = full_study(storage), load_study("s", storage)
    study.view()
    play(other, 1)
    original, busy = getattr(logbook, place), [0]

    def interrupted(*arguments, **keywords):
        answer = original(*arguments, **keywords) if place == "head" else None
        if busy[0] == 0:
            busy[0] = 1
            other.tell(other.pending()[0], 0.5)
            play(other, 2)
            busy[0] = 2
        return answer if place == "head" else original(*arguments, **keywords)

    monkeypatch.setattr(logbook, place, interrupted)
    view = study.view()
    monkeypatch.undo()
    assert busy[0] == 2
    counts, states = view.counts, view.trials.state
    assert counts["trials"] == len(states)
    assert counts["pending"] == len(view.pending) == states.count("pending")
    assert counts["abandoned"] == states.count("abandoned")
    assert counts["told"] == np.sum(~np.isnan(view.trials.reward)) == view.standing.history.told[-1]
    assert [trial.id for trial in view.pending] == [i for i, state in enumerate(states) if state == "pending"]
    asks = sum(event["kind"] == "ask" for event in study.events(limit=view.n_events))
    assert view.standing.history.told.size == asks + 1
    assert counts["trials"] == asks + 1  # one was observed
    later = study.view()
    assert later.n_events == view.n_events + (5 if view.n_events == 21 else 0)


def test_reading_sees_one_moment(storage):
    """The promise behind it: two questions in one reading transaction are about the same moment."""
    study, other = new_study(storage), load_study("s", storage)
    with study.storage.reading() as connection:
        first = logbook.head(connection, study._id, lock=False)
        play(other, 1)
        assert logbook.head(connection, study._id, lock=False) == first
    with study.storage.reading() as connection:
        assert logbook.head(connection, study._id, lock=False)[:2] == (2, 0)


def test_very_many_models(sqlite):
    """Of many models the leading ones are listed; numbers of all are counted."""
    models = alexp.ModelClass.legendre(degree=16, size=4)
    assert models.n_models > MOST_MODELS
    stated = {"noise_std": 0.1, "norm_bound": 1.0}
    study = create_study(models, DOMAIN, name="m", storage=sqlite, random_state=1, algorithm="lm-ucb", **stated)
    play(study, 6)
    view, q = study.view(), study.probabilities
    assert view.n_models == q.size == models.n_models
    assert view.listed.size == len(view.names) == view.standing.q.size == MOST_MODELS
    assert set(view.listed.tolist()) == set(np.argsort(-q, kind="stable")[:MOST_MODELS].tolist())
    np.testing.assert_array_equal(view.standing.q, q[view.listed])
    assert view.names == [models.names[int(j)] for j in view.listed]
    assert view.standing.n_ruled_out == np.sum(q < 0.01 / q.size)
    assert len(view.standing.ruled_out) == min(200, view.standing.n_ruled_out)
    assert view.certificates.n_plausible == study.algorithm.plausible_models().size
    assert set(view.certificates.plausible) <= set(view.listed)
    assert len(json.dumps(view.to_dict(), allow_nan=False)) < 500_000
    render(view, now=0.0)
    none = create_study(models, DOMAIN, name="n", storage=sqlite, random_state=1, algorithm="uniform")
    assert len(none.view().names) == MOST_MODELS
    assert none.view().standing is None


def test_users_objects_and_passwords_do_not_leak(tmp_path):
    class Odd:
        def __str__(self):
            return "an odd thing"

    models = alexp.ModelClass.from_matrices({"a": np.eye(3), "b": np.ones((3, 1))})
    study = create_study(models, alexp.FiniteSet([Odd(), Odd(), Odd()]), name="m", storage=tmp_path / "s.db")
    play(study, 2)
    data = study.view().to_dict()
    assert plain(data)
    assert data["best"]["x"] == data["best"]["label"] == "an odd thing"
    study.storage.url = storage_module.parse_url("postgresql://me:secret@host/db")
    assert "secret" not in study.storage.describe()


# -- events ----------------------------------------------------------------------------------------------------


def test_following_the_log(storage):
    study = full_study(storage)
    events = study.events()
    assert plain(events)
    assert json.loads(json.dumps(events, allow_nan=False)) == events
    assert [event["seq"] for event in events] == list(range(19))
    frame = study.events_dataframe()
    assert [event["kind"] for event in events] == frame["kind"].tolist()
    assert [event["trial"] for event in events] == frame["trial"].tolist()
    assert set(events[0]) == {
        "seq", "kind", "trial", "candidate", "model", "explored", "propensity", "reward", "at", "worker",
    }  # fmt: skip
    trials = study.trials_dataframe()
    for event in events:
        if event["kind"] == "ask":
            assert event["candidate"] == trials["index"][event["trial"]]
            assert event["propensity"] == trials["propensity"][event["trial"]]
        if event["kind"] in ("tell", "observe"):
            assert event["reward"] == trials["reward"][event["trial"]]
    seen = []
    while new := study.events(since=len(seen), limit=5):
        assert len(new) <= 5
        seen += new
    assert seen == events
    other = load_study("s", storage)
    trial = other.ask()
    assert [(event["kind"], event["trial"]) for event in study.events(since=19)] == [("ask", trial.id)]
    assert study.events(since=20) == []
    for wrong in ({"since": -1}, {"since": 0.5}, {"limit": 0}):
        with pytest.raises((ValueError, TypeError)):
            study.events(**wrong)
    delete_study("s", storage)
    with pytest.raises(StudyNotFoundError, match="deleted"):
        study.events()


def test_following_is_found_by_the_key(sqlite):
    """A page asks every second: the database must not look through the whole log."""
    study = new_study(sqlite)
    play(study, 1)
    with statements(study) as made:
        study.events(since=1, limit=10)
    query = next(text for text in made if "ORDER BY" in text)
    with study.storage.reading() as connection:
        plan = connection.exec_driver_sql("EXPLAIN QUERY PLAN " + query, (study._id, 1, 10)).all()
    assert len(plan) == 1
    assert "USING PRIMARY KEY" in plan[0][-1] or "USING INDEX" in plan[0][-1]
    assert "seq>?" in plan[0][-1]


def test_trials_and_events_say_the_same(sqlite):
    study = new_study(sqlite)
    trial = study.ask()
    assert trial.to_dict()["index"] == study.events()[0]["candidate"]
    study.tell(trial, reward(trial))
    assert study.events(since=1)[0]["reward"] == reward(trial)


def test_every_setting_of_a_mixture_says_what_it_means(tmp_path):
    models = alexp.ModelClass.legendre(degree=3, size=2)
    study = alexp.create_study(models, alexp.Interval(-1, 1, 20), name="s", storage=f"sqlite:///{tmp_path / 's.db'}")
    assert [line.name for line in study.view().explained if not line.formula] == []
