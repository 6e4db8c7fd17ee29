"""A range of rewards: others are refused by name, and predictions, bands and gaps respect it."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import alexp
from alexp.cli import app
from alexp.problem.ranges import RewardRange
from alexp.study import create_study, load_study

INPUTS = np.linspace(-1.0, 1.0, 21)[:, None]


def new(kind=alexp.EvidenceMixture, **settings):
    models = alexp.ModelClass.from_matrices({"line": INPUTS}, intercept=True)
    return kind(models, alexp.FiniteSet(list(range(21))), random_state=0, **{"reward_range": (0, 100)} | settings)


@pytest.mark.parametrize(("direction", "sign"), [("maximize", 1.0), ("minimize", -1.0)])
@pytest.mark.parametrize("stated", [{}, {"noise_std": 1.0, "reward_bound": 300.0}])
def test_statements_respect_the_range(direction, sign, stated):
    free, cut = new(direction=direction, reward_range=None, **stated), new(direction=direction, **stated)
    assert "reward_range" not in free.arguments()
    for opt in (free, cut):
        for index in (8, 9, 10, 11, 12):
            opt.observe(index, 50.0 + 45.0 * 10 * sign * INPUTS[index, 0] / 2)
    assert not 0.0 <= free.predict(0)[0] <= 100.0
    assert 0.0 <= cut.predict(0)[0] <= 100.0
    assert cut.best().value == (100.0 if sign > 0.0 else 0.0)
    assert cut.best().index == free.best().index
    assert cut.stop_report().epsilon <= min(100.0, free.stop_report().epsilon)
    if stated:
        lower, upper = cut.confidence(0)
        assert (lower, upper) == tuple(np.clip(free.confidence(0), 0.0, 100.0))
        assert cut.stop_report().certified
    again = type(cut).from_dict(json.loads(json.dumps(cut.to_dict())))
    assert again.reward_range == (0.0, 100.0)
    assert again.to_dict() == cut.to_dict()


def test_no_candidate_is_said_to_beat_the_end_of_the_range():
    free, cut = new(reward_range=None), new()
    for opt in (free, cut):
        for index, reward in ((8, 3.0), (9, 41.0), (10, 35.0), (11, 88.0), (12, 99.0)):
            opt.observe(index, reward)
    assert free.stop_report().epsilon > 1.0
    assert cut.stop_report().epsilon < 0.5 * free.stop_report().epsilon


def test_rewards_outside_are_refused_by_every_way_in():
    opt = new(alexp.LinUCB, noise_std=1.0, reward_bound=100.0)
    trial, other = opt.ask(2)
    opt.tell(other, 3.0)
    before = opt.to_dict()
    match = "reward must lie within the reward_range of 0 to 100, got 724; correct it"
    for wrong in (
        lambda: opt.tell(trial, 724.0),
        lambda: opt.tell(trial, [72.4, 724.0]),
        lambda: opt.observe(3, 724.0),
        lambda: opt.amend(other, 724.0),
    ):
        with pytest.raises(ValueError, match=match):
            wrong()
    assert opt.to_dict() == before
    opt.tell(trial, [0.0, 100.0])
    for given in (5.0, "01", (1.0,), (3.0, 3.0), (2.0, 1.0), (0.0, np.inf)):
        with pytest.raises((ValueError, TypeError), match="reward_range must be"):
            new(reward_range=given)


def test_the_largest_gap_is_what_the_range_leaves():
    known = RewardRange(0.0, 100.0)
    assert [known.largest_gap(lower, 1.0) for lower in (-5.0, 90.0, 120.0)] == [100.0, 10.0, 0.0]
    assert [known.largest_gap(lower, -1.0) for lower in (-200.0, -90.0, 5.0)] == [100.0, 90.0, 0.0]


def test_studies_keep_the_range(tmp_path):
    storage = f"sqlite:///{tmp_path / 'a.db'}"
    pd.DataFrame({"id": [f"m{k}" for k in range(21)], "x": INPUTS[:, 0]}).to_csv(tmp_path / "c.csv", index=False)

    def run(*words, code=0):
        result = CliRunner().invoke(app, ["study", *words, "--storage", storage])
        assert result.exit_code == code, result.output
        return " ".join(result.output.split())

    files = ["--candidates", str(tmp_path / "c.csv"), "--features", f"x={tmp_path / 'c.csv'}"]
    run("create", "s", *files, "--range", "0", "100", "--seed", "1")
    study = load_study("s", storage)
    assert study.algorithm.reward_range == (0.0, 100.0)
    study.ask(2)
    (tmp_path / "r.csv").write_text("trial,reward\n0,72.4\n1,724\n")
    said = run("tell", "s", str(tmp_path / "r.csv"), code=1)
    assert "r.csv, line 3: reward must lie within the reward_range of 0 to 100, got 724" in said
    with pytest.raises(ValueError, match="reward_range"):
        study.add_observations(pd.DataFrame({"index": [3], "reward": [101.0]}))
    with pytest.raises(ValueError, match="reward_range"):
        study.tell(0, -1.0)
    study.tell(0, 100.0)
    study.tell(1, 99.0)
    assert study.view().best.value <= 100.0
    assert study.counts["told"] == 2
    models = alexp.ModelClass.legendre(degree=3, size=2)
    settings = {"reward_range": (0.0, 1.0), "random_state": 0}
    curved = create_study(models, alexp.Interval(resolution=30), name="i", storage=storage, **settings)
    for trial in curved.ask(6):
        curved.tell(trial, float(trial.x > 0.0))
    assert 0.0 <= curved.view().curve.estimate.min() <= curved.view().curve.estimate.max() <= 1.0
    assert (tmp_path / "r.html") == curved.report(tmp_path / "r.html")
