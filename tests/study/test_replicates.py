"""Results by name and replicates in studies: files, keys, corrections, replays."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import alexp
from alexp.cli import app
from alexp.study import check, create_study, load_study
from alexp.study.study import TrialResult

INPUTS = np.random.default_rng(5).uniform(-1.0, 1.0, (12, 2))
FRAME = pd.DataFrame({"compound": [f"A{k}" for k in range(12)], "mass": np.arange(12) / 4})


@pytest.fixture
def storage(tmp_path):
    return f"sqlite:///{tmp_path / 'a.db'}"


@pytest.fixture
def study(storage):
    models = alexp.ModelClass.from_matrices({"both": INPUTS, "first": INPUTS[:, :1]})
    return create_study(models, alexp.FiniteSet(FRAME), name="s", storage=storage, random_state=1)


def agree(study, storage):
    now = json.dumps(study.algorithm.to_dict())
    assert json.dumps(load_study("s", storage).algorithm.to_dict()) == now
    assert json.dumps(study.replayed().algorithm.to_dict()) == now
    assert check("s", storage).problems == []


def test_names_and_replicates_are_stored_once_and_replayed(study, storage):
    trials = study.ask(4)
    names = [trial.x["compound"] for trial in trials]
    for _ in range(2):
        study.tell(names[0], [71.2, 72.9, 70.8], key="one")
    study.tell_many([TrialResult(None, 5.0, names[1]), TrialResult(trials[2], [6.0, 6.5], names[2])])
    assert [event["kind"] for event in study.events()[4:]] == ["tell", "observe", "observe", "tell", "tell", "observe"]
    assert study.counts["told"] == 6
    assert study.tell_many([(names[0], [71.2, 72.9, 70.8]), (names[1], 5.0)], "same") == (0, 2, 0)
    with pytest.raises(ValueError, match="key 'one' was used before"):
        study.tell(names[0], [71.2, 72.0], key="one")
    with pytest.raises(ValueError, match=r"trial 3 is candidate '\w+', not 'A"):
        study.tell(trials[3], 1.0, candidate=names[0])
    agree(study, storage)


def test_replicates_are_corrected_as_a_whole(study, storage):
    trials = study.ask(3)
    study.tell(trials[0], [1.0, 2.0, 3.0])
    study.tell(trials[1], 4.0)
    assert study.tell_many([(trials[0], [1.0, 2.0]), (trials[1], [4.0, 4.5])], "amend") == (0, 0, 2)
    assert study.algorithm.log.measurements(0) == (1.0, 2.0)
    assert study.algorithm.log.measurements(1) == (4.0, 4.5)
    agree(study, storage)
    study.amend(trials[0], [1.0, 2.0, 9.0])
    study.retract(trials[1])
    assert study.algorithm.log.measurements(0) == (1.0, 2.0, 9.0)
    assert study.algorithm.log.measurements(1) == ()
    study.fail(trials[0], "contaminated", "amend")
    assert study.counts["told"] == 0
    agree(study, storage)


def test_files_by_name_with_replicates(study, storage, tmp_path):
    def tell(text, *options, code=0):
        (tmp_path / "r.csv").write_text(text)
        words = ["study", "tell", "s", str(tmp_path / "r.csv"), "--storage", storage, *options]
        result = CliRunner().invoke(app, words)
        assert result.exit_code == code, result.output
        return " ".join(result.output.split())

    a, b, c, d = [trial.x["compound"] for trial in study.ask(4)]
    text = f"compound,reward\n{a},71.2; 72.9; 70.8\n{b},5\n{b},5.5\n{c},failed\n"
    assert "told 2 rewards, 1 failed; 5 in all, 1 pending" in tell(text)
    assert "told 0 rewards, 3 already known; 5 in all" in tell(text)
    assert "has the reward 5.0; 5.5, the file says 5.0; to take the one" in tell(f"compound,reward\n{b},5\n", code=1)
    assert "told 0 rewards, 1 amended; 4 in all" in tell(f"compound,reward\n{b},5\n", "--amend")
    assert "line 2: no candidate has the name 'Z9'" in tell("compound,reward\nZ9,5\n", code=1)
    assert "line 2: this trial has compound" in tell(f"trial,compound,reward\n3,{a},5\n", code=1)
    assert "line 2: reward must be a number" in tell(f"compound,reward\n{d},5; x\n", code=1)
    amended = CliRunner().invoke(app, ["study", "amend", "s", "0", "70.8", "--storage", storage])
    assert "trial 0: 71.2; 72.9; 70.8 became 70.8" in amended.output
    wrong = CliRunner().invoke(app, ["study", "amend", "s", "0", "70,8", "--storage", storage], env={"COLUMNS": "300"})
    assert "reward must be a number with a decimal point" in wrong.output
    exported = CliRunner().invoke(app, ["study", "export", "s", "--storage", storage]).output.splitlines()
    at = exported[0].split(",").index("replicate_of")
    assert [line.split(",")[at] for line in exported[1:]].count("0") == 2
    agree(load_study("s", storage), storage)
