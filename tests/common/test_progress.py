"""Progress of long work reaches whoever listens: from loops, through blocks within blocks."""

import threading

import numpy as np
import pytest

import alexp
from alexp.common import progress
from alexp.common.progress import Progress, listening, steps
from alexp.study import check, create_study


@pytest.fixture
def every_step(monkeypatch):
    monkeypatch.setattr(progress, "_OFTEN", -1.0)


def filled(path, n=12):
    models = alexp.ModelClass.legendre(degree=3, size=2)
    study = create_study(models, alexp.Interval(-1.0, 1.0, resolution=30), name="s", storage=path, random_state=0)
    for trial in study.ask(n):
        study.tell(trial, 1.0 - trial.x**2)
    return study


def test_without_a_listener_the_items_come_as_they_are():
    assert list(steps("counting", "abc", 3)) == ["a", "b", "c"]


def test_all_listeners_around_a_loop_hear_of_it(every_step):
    inner, outer = [], []
    with listening(outer.append):
        with listening(inner.append), listening(None):
            assert list(steps("counting", "abc", 3)) == ["a", "b", "c"]
        list(steps("again", "d", 1))
    assert inner == [Progress("counting", done, 3) for done in (0, 1, 2, 3)]
    assert outer == [*inner, Progress("again", 0, 1), Progress("again", 1, 1)]
    list(steps("unheard", "e", 1))
    assert len(outer) == 6


def test_a_view_a_report_and_a_check_say_how_far_they_are(every_step, tmp_path):
    path = f"sqlite:///{tmp_path / 's.db'}"
    with filled(path) as study:
        heard = []
        study.view(progress=heard.append)
        assert [one for one in heard if one.what == "looking back"][-1] == Progress("looking back", 12, 12)
        heard.clear()
        study.report(tmp_path / "report.html", progress=heard.append)
        assert not [one for one in heard if one.what == "looking back"]  # nothing new
        study.tell(study.ask(), 0.5)
        study.view(progress=heard.append)
        assert [one for one in heard if one.what == "looking back"] == [
            Progress("looking back", 0, 1), Progress("looking back", 1, 1),
        ]  # fmt: skip
    assert check("s", path, progress=heard.append).ok
    assert {one.what for one in heard} >= {"verifying the log", "replaying the log"}


def test_other_threads_see_how_far_a_view_is(every_step, tmp_path, monkeypatch):
    seen, asked, go_on = [], threading.Event(), threading.Event()
    with filled(f"sqlite:///{tmp_path / 's.db'}") as study:

        def wait(now):
            if now.done == 5:
                asked.set()
                assert go_on.wait(30.0)

        thread = threading.Thread(target=study.view, kwargs={"progress": wait})
        assert study.progress is None
        thread.start()
        assert asked.wait(30.0)
        seen.append(study.progress)
        study.tell(study.ask(), 0.25)  # writers do not wait
        go_on.set()
        thread.join()
        assert study.progress is None
    assert seen[0] in (Progress("looking back", 4, 12), Progress("looking back", 5, 12))


def test_a_bar_shows_nothing_where_there_is_no_terminal(every_step, monkeypatch, capsys):
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    with listening(True):
        assert sum(steps("adding", np.arange(4), 4)) == 6
    assert capsys.readouterr().out == ""


def test_a_bar_names_the_work_on_a_terminal(every_step, monkeypatch, capsys):
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with listening(True):
        list(steps("adding up", np.arange(4), 4))
    assert "adding up" in capsys.readouterr().err
