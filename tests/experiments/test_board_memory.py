"""The memory protocol of `alexp board`, on tasks small enough for a test."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from alexp_experiments.board import memory
from alexp_experiments.board.memory import NEGATED, NONE, OURS, REAL, SHUFFLED, MemoryRun, Transfer

CELLS = pd.DataFrame(list(product("abcd", "xyz", [1.0, 2.0])), columns=["base", "ligand", "amount"])
EFFECTS = {"a": 0.0, "b": 4.0, "c": 8.0, "d": 1.0, "x": 0.0, "y": 5.0, "z": 2.0}


@pytest.fixture
def small(monkeypatch):
    """Two tasks in other units; in the old one the ligand does less."""
    base, ligand = CELLS["base"].map(EFFECTS), CELLS["ligand"].map(EFFECTS)
    rewards = {"old": 100.0 + 3.0 * base + ligand - CELLS["amount"], "new": base + ligand + CELLS["amount"]}
    tasks = [CELLS.assign(task=task, reward=own) for task, own in rewards.items()]
    monkeypatch.setattr(memory, "load", lambda table, folder: pd.concat(tasks, ignore_index=True))
    scenario = Transfer("old to new", "report", "small", ("old",), "new")
    monkeypatch.setattr(memory, "SCENARIOS", (scenario,))
    monkeypatch.setattr(memory, "SHARES", (0.2, 0.5))
    monkeypatch.setattr(memory, "SLOW_SHARES", (0.5,))
    monkeypatch.setattr(memory, "USELESS", [(SHUFFLED, 0.5), (NEGATED, 0.5)])
    return scenario


def test_targets_for_tuning_and_for_reporting_differ():
    tuned, reported = (
        {one.target for one in memory.SCENARIOS if one.role == role and one.table == memory.HALIDES}
        for role in ("tune", "report")
    )
    assert not tuned & reported
    assert all(one.target not in one.sources for one in memory.SCENARIOS)
    assert len({one.name for one in memory.SCENARIOS}) == len(memory.SCENARIOS)


def test_a_past_is_a_share_of_the_results_real_shuffled_or_negated(small):
    def past(kind, share=0.5, seed=1):
        return memory.known(MemoryRun(small, OURS, kind, share, seed, 6, ""))

    real, shuffled, negated = (past(kind)["old"] for kind in (REAL, SHUFFLED, NEGATED))
    assert past(NONE) == {}
    assert len(real) == 12
    assert len(past(REAL, 0.001)["old"]) == 1
    assert real.index.equals(shuffled.index)
    assert real.index.equals(negated.index)
    assert not past(REAL, seed=2)["old"].index.equals(real.index)
    assert sorted(real["reward"]) == sorted(shuffled["reward"])
    assert not real["reward"].equals(shuffled["reward"])
    assert real["reward"].equals(-negated["reward"])


def test_runs_are_kept_and_continued_and_make_the_section(small, tmp_path, monkeypatch):
    assert memory.section(tmp_path) == ""
    memory.play_all("report", [], [OURS], 2, tmp_path, rounds=6, workers=1)
    runs = pd.read_csv(tmp_path / memory.RUNS, keep_default_na=False)
    assert len(runs) == 2 * (1 + 2 + 2)
    means = runs.groupby(["past", "share"])["regret"].mean()
    assert means[REAL, 0.5] < means[NONE, 0.0]
    text = memory.section(tmp_path)
    assert "## Memory" in text
    assert f"| geometric mean | | {means[REAL, 0.2] / means[NONE, 0.0]:.2f} |" in text
    assert "BayBE did not play" in text
    played = []
    monkeypatch.setattr(memory, "play", lambda run: played.append(run))
    memory.play_all("report", [], [OURS], 2, tmp_path, rounds=6, workers=1)
    assert played == []


def test_baybe_plays_with_and_without_a_past(small, tmp_path):
    pytest.importorskip("baybe")
    memory.play_all("report", [], [memory.BAYBE], 1, tmp_path, rounds=6, workers=1)
    runs = pd.read_csv(tmp_path / memory.RUNS, keep_default_na=False)
    assert set(runs[runs["player"] == memory.BAYBE]["past"]) == {NONE, REAL}
    assert "| old to new | 1 |" in memory.section(tmp_path)
    assert np.isfinite(runs["regret"]).all()
