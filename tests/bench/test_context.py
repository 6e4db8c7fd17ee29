"""The benchmark of contextual rounds: its records, its long runs, and that subjects meet the same contexts."""

from importlib.util import find_spec

import numpy as np

from alexp_experiments.bench import context
from alexp_experiments.bench.page import COLUMNS, PROSE, table
from tests.bench.test_records import check_shape

SMALL = context.ContextCase(3, 2, 2, 5)


def test_sets_have_the_sizes_they_are_listed_for():
    stream = context.ContextCase().stream()
    assert [len(columns) for columns in stream.sets.values()] == [20] * 50 + [100]
    assert stream.rewards.shape == (context.ROUNDS, 10)
    assert np.allclose(np.linalg.norm(stream.contexts[:, stream.sets["set 3"]], axis=1).mean(), 1.0, atol=0.02)


def test_everybody_is_timed_or_said_to_be_missing(monkeypatch):
    records = context._steps(SMALL, 2, 3)
    check_shape(records, "context")
    assert {row["subject"] for row in records} == set(context.SUBJECTS)
    missing = {name for name, library in (("coba", "coba"), ("VW", "vowpalwabbit")) if find_spec(library) is None}
    for row in records:
        assert ("error" in row) == (row["subject"].split()[0] in missing)
        assert "error" in row or (row["median_ms"] > 0.0 and row["ratio"] > 0.0)
    assert len(table("context", records)[1]) == len(records)
    assert "context" in COLUMNS
    assert "context" in PROSE.names


def test_long_runs_compare_their_two_ends():
    found = context.long_contexts(list(context.SUBJECTS).index("LinUCB, one set"), 1, 60, 20)
    assert found["early_ms"] > 0.0
    assert np.isclose(found["slowdown"], found["late_ms"] / found["early_ms"])
    assert found["peak_mb"] > 10.0


def test_all_columns_means_all_columns():
    player = context.ContextPlayer(context.SUBJECTS["LinUCB, all columns"], SMALL.stream())
    assert player.chooser.algorithm.models.n_columns == 2 * (5 + 1)
    player = context.ContextPlayer(context.SUBJECTS["EvidenceMixture"], SMALL.stream())
    assert player.chooser.algorithm.models.n_models == 3
    for _ in range(4):
        player.step()
    assert player.chooser.algorithm.n_told == 4
