"""Failed experiments in studies: stored, replayed bit for bit, shown, corrected; by Python, shell, HTTP and client."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import alexp
from alexp.algorithms.log import AbandonedTrialError, AlreadyToldError
from alexp.cli import app
from alexp.study import check, create_study, list_studies, load_study, replay as replay_module
from alexp.study.tables import export

RNG = np.random.default_rng(3)
INPUTS = RNG.uniform(-1.0, 1.0, (30, 2))
NAMES = [f"c{k}" for k in range(30)]


def new(storage, **settings):
    models = alexp.ModelClass.from_matrices({"both": INPUTS, "first": INPUTS[:, :1]})
    return create_study(models, alexp.FiniteSet(NAMES), name="s", storage=storage, random_state=1, **settings)


def reward(trial):
    return float(50.0 + 10.0 * INPUTS[trial.index, 0])


@pytest.fixture
def storage(tmp_path):
    return f"sqlite:///{tmp_path / 'a.db'}"


def test_failures_are_stored_replayed_and_shown(storage, tmp_path, monkeypatch):
    monkeypatch.setattr(replay_module, "REPLAY_EVENTS", 5)  # snapshots on the way
    study = new(storage)
    for _ in range(3):
        for trial in study.ask(4):
            study.fail(trial, "tar <b>") if INPUTS[trial.index, 1] > 0.3 else study.tell(trial, reward(trial))
    failed = sorted(study.algorithm.log.failed)
    assert failed
    assert study.counts["failed"] == len(failed)
    assert study.counts["told"] + len(failed) == 12
    assert study.trials_dataframe()["state"].tolist().count("failed") == len(failed)
    kinds = [event["kind"] for event in study.events()]
    assert kinds.count("fail") == len(failed)
    again = load_study("s", storage)
    assert json.dumps(again.algorithm.to_dict()) == json.dumps(study.algorithm.to_dict())
    replayed = study.replayed().algorithm
    assert json.dumps(replayed.to_dict()) == json.dumps(study.algorithm.to_dict())
    assert check("s", storage).problems == []
    (line,) = list_studies(storage)
    assert (line.failed, line.told, line.pending, line.abandoned) == (len(failed), 12 - len(failed), 0, 0)
    rows = list(export(study))
    state, note = rows[0].index("state"), rows[0].index("note")
    assert [row[note] for row in rows[1:] if row[state] == "failed"] == ["tar <b>"] * len(failed)
    page = study.report(tmp_path / "r.html").read_text()
    assert "Failures, corrections and notes" in page
    assert "tar &lt;b&gt;" in page
    assert not set(study.algorithm.log.failed_candidates()) & {trial.index for trial in study.ask(5)}


def test_failures_are_corrected_and_counted(storage):
    study = new(storage)
    trials = study.ask(5)
    study.tell(trials[0], 3.0)
    study.fail(trials[1], "a", key="k")
    study.fail(trials[1], "a", key="k")
    with pytest.raises(ValueError, match="key 'k' was used before"):
        study.fail(trials[2], key="k")
    study.fail(trials[0], "later", "amend")
    study.fail(trials[2])
    study.fail(trials[3])
    study.amend(trials[2], 7.0)
    study.retract(trials[3])
    assert study.counts == {"trials": 5, "told": 1, "pending": 1, "abandoned": 1, "failed": 2}
    (line,) = list_studies(storage)
    assert (line.trials, line.told, line.pending, line.abandoned, line.failed) == (5, 1, 1, 1, 2)
    with pytest.raises(AbandonedTrialError, match="trial 1 failed"):
        study.tell(trials[1], 2.0)
    with pytest.raises(TypeError, match="reward must be one real number"):
        study.tell_many([(trials[4], "tar")])
    assert study.tell_many([(trials[4], "failed"), (trials[1], "failed")], "same").told == 1
    for other in (load_study("s", storage).algorithm, study.replayed().algorithm):
        assert json.dumps(other.to_dict()) == json.dumps(study.algorithm.to_dict())
    assert check("s", storage).problems == []


def test_another_process_follows_failures(storage):
    one = new(storage)
    other = load_study("s", storage)
    trials = one.ask(3)
    other.fail(trials[0], "x")
    one.tell(trials[1], 1.0)
    other.fail(trials[1], "y", "amend")
    assert one.algorithm.log.remarks == {0: "x", 1: "y"}
    assert json.dumps(one.algorithm.to_dict()) == json.dumps(other.algorithm.to_dict())


def test_the_command_line(storage, tmp_path):
    new(storage)

    def run(*words, code=0):
        result = CliRunner().invoke(app, ["study", *words, "--storage", storage])
        assert result.exit_code == code, result.output
        return result.output

    plate = tmp_path / "plate.csv"
    run("ask", "s", "-n", "4", "--out", str(plate))
    lines = plate.read_text().splitlines()
    filled = [line + end for line, end in zip(lines, ["", "1.5", "Failed", "failed", "2.5"], strict=True)]
    plate.write_text("\n".join(filled) + "\n")
    assert "told 2 rewards, 2 failed; 2 in all, 0 pending" in run("tell", "s", str(plate))
    assert "told 0 rewards, 4 already known" in run("tell", "s", str(plate))
    filled[1] = filled[1].replace("1.5", "failed")
    plate.write_text("\n".join(filled) + "\n")
    said = run("tell", "s", str(plate), code=1)
    assert "trial 0 has the reward 1.5, the file says failed; to take the one of the file: --amend" in " ".join(
        said.split()
    )
    assert "told 0 rewards, 3 already known, 1 failed" in run("tell", "s", str(plate), "--amend")
    plate.write_text("trial,reward\n3,tar\n")
    said = " ".join(run("tell", "s", str(plate), code=1).split())
    assert "line 2: reward must be a number, or the word \"failed\", got 'tar'" in said
    run("ask", "s")
    assert "trial 4 failed; 4 failed, 0 pending" in run("fail", "s", "4", "--reason", "vial broke")
    assert "0 told, 0 pending, 0 abandoned, 4 failed" not in run("status", "s")
    assert "vial broke" in run("export", "s")
    assert "a failure became 2.0" in run("amend", "s", "4", "2.0")
    assert "retracted the failure of trial 0" in run("retract", "s", "0")
    assert "trial 3 already has the reward" in run("fail", "s", "3", code=1)
    assert "all is well" in run("check", "s")


def test_told_twice_as_failed_is_an_error(storage):
    study = new(storage)
    trial = study.ask()
    study.tell(trial, 1.0)
    with pytest.raises(AlreadyToldError, match="trial 0 already has the reward 1.0"):
        study.fail(trial)
    assert len(study.events()) == 2
