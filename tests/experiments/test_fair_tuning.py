"""Everybody's constants are chosen the same way, from a sweep that is the one of the present grids."""

import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from alexp_experiments.comparison import tuning
from alexp_experiments.comparison.contest import FIRST_SEED, SEEDS
from alexp_experiments.comparison.entries import ENTRANTS, N_TRIED, SCENARIOS, TUNABLE
from alexp_experiments.core.tasks import Record


def test_the_same_number_of_settings_for_everybody():
    assert {len(ENTRANTS[name].grid) for name in TUNABLE} == {N_TRIED}
    for name in TUNABLE:
        grid = [tuning.written(constants) for constants in ENTRANTS[name].grid]
        assert grid[0] == "{}", "the defaults are one of them"
        assert len(set(grid)) == N_TRIED, name
        tasks = {ENTRANTS[name].with_constants(c).task(SCENARIOS["s=3 σ=.1"], 0).key for c in ENTRANTS[name].grid}
        assert len(tasks) == N_TRIED, f"{name}: two settings are the same run"
    untuned = {name.split(",")[0] for name in ENTRANTS} - set(TUNABLE)  # variants are settings of what is tuned
    assert untuned == {"informed ids", "informed ucb", "informed Thompson", "uniform"}


def test_the_stored_sweep_is_that_of_the_grids():
    sweep = tuning.stored_sweep()
    expected = [(a.entrant, tuning.written(a.constants), a.scenario) for a in tuning.attempts()]
    assert list(sweep[["algorithm", "constants", "scenario"]].itertuples(index=False, name=None)) == expected
    assert set(sweep["first seed"]) == {tuning.TUNING_SEEDS[0]}
    assert set(sweep["seeds"]) == {len(tuning.TUNING_SEEDS)}
    assert max(tuning.TUNING_SEEDS) < FIRST_SEED or min(tuning.TUNING_SEEDS) >= FIRST_SEED + SEEDS
    assert set(Counter(sweep["algorithm"]).values()) == {N_TRIED * len(tuning.TUNING)}


def test_what_is_played_is_the_least_of_the_stored_sweep():
    sweep = tuning.stored_sweep()
    for name, entrant in tuning.everybody().items():
        if not entrant.tuned:
            continue
        wide = sweep[sweep["algorithm"] == name.removesuffix(tuning.TUNED)].pivot_table(
            index="constants", columns="scenario", values="mean"
        )
        least = np.exp(np.log(wide).mean(axis=1))
        assert least[tuning.written(entrant.constants)] == pytest.approx(least.min())


def test_what_the_audit_measured():
    """SquareCB on s = 2: about half the regret with a gain of 100, but for single seeds that lock and carry the mean.

    O2CS-EW becomes a method with a small scale.
    """
    sweep = tuning.stored_sweep().set_index(["algorithm", "constants", "scenario"])["median"]
    assert sweep["squarecb", '{"gain": 100.0}', "s=2 σ=.01"] < 0.7 * sweep["squarecb", "{}", "s=2 σ=.01"]
    chosen = tuning.chosen(tuning.stored_sweep())
    assert chosen["squarecb"]["gain"] >= 100.0
    assert 0.01 <= chosen["o2cs-ew"]["scale"] <= 0.1


def flat(tasks):
    """Records whose regret is the gain of SquareCB, or ten."""
    none = np.empty(0, np.float32)
    return [
        Record(np.array([task.settings.get("gain", 10.0)]), np.ones(1, np.int32), none, none, 0, 0, 0.0, 0.1)
        for task in tasks
    ]


def test_a_sweep_is_added_to_what_is_there(tmp_path):
    path = tmp_path / "sweep.csv"
    both = tuning.tune(flat, ["fs-scb", "squarecb"], seeds=(1, 2))
    tuning.add_sweep(both, path)
    assert tuning.chosen(both) == {"fs-scb": {"gain": 1.0}, "squarecb": {"gain": 1.0}}
    again = tuning.tune(flat, ["squarecb"], seeds=(1, 2)).assign(mean=lambda t: 1.0 / t["mean"])
    tuning.add_sweep(again, path)
    kept = pd.read_csv(path)
    assert len(kept) == 2 * N_TRIED * len(tuning.TUNING)
    assert list(dict.fromkeys(kept["algorithm"])) == ["squarecb", "fs-scb"], "in the order of the entrants"
    assert tuning.chosen(kept)["squarecb"] == {"gain": 1000.0}
    assert tuning.chosen(kept)["fs-scb"] == {"gain": 1.0}


def test_defaults_win_ties():
    rows = [("a", json.dumps(c), "s", 2.0) for c in ({}, {"x": 1})]
    assert tuning.chosen(pd.DataFrame(rows, columns=["algorithm", "constants", "scenario", "mean"])) == {"a": {}}


def test_who_has_no_constants_cannot_be_swept():
    with pytest.raises(ValueError, match="no constants to try for 'uniform'"):
        tuning.attempts(["uniform"])
