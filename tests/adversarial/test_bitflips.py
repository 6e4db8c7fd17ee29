"""A short pass of the damaged databases, and that it would notice."""

import pytest

from alexp.study import events

from . import bitflips


@pytest.mark.parametrize("seed", [0])
def test_damaged_databases_are_refused_or_unchanged(seed):
    figures = bitflips.soak(0.05, seed)
    assert figures["violations"] == 0, figures
    assert figures["tails noticed"] == figures["tails"] > 0
    assert figures["refused"] > 10
    assert figures["unchanged"] > 5


def test_other_content_would_be_noticed(tmp_path, monkeypatch):
    """Without checksums, rewards that were edited are taken for what was told."""
    bitflips.make_studies(tmp_path / "whole.db")
    expected = bitflips.content(tmp_path / "whole.db")
    bitflips.make_studies(path := tmp_path / "edited.db")
    bitflips._statement(path, "UPDATE alexp_events SET reward = reward + 1 WHERE kind = 'tell' AND study_id = 1")
    assert bitflips.judge(path, expected) == "refused"
    monkeypatch.setattr(events, "event_checksum", lambda before, event: event.chain)
    assert bitflips.judge(path, expected) not in ("refused", "same")
