"""Who did what: notes, workers, times and corrections in log, export and report; exported tables can be observed."""

import csv
import io
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import alexp
from alexp.cli import app
from alexp.study import check, create_study, load_study
from alexp.study.events import acting_as
from alexp.study.tables import export

INPUTS = np.random.default_rng(5).uniform(-1.0, 1.0, (12, 2))
NAMES = [f"A{k}" for k in range(12)]


@pytest.fixture
def storage(tmp_path):
    return f"sqlite:///{tmp_path / 'a.db'}"


def new(storage, name="s"):
    models = alexp.ModelClass.from_matrices({"both": INPUTS, "first": INPUTS[:, :1]})
    return create_study(models, alexp.FiniteSet(NAMES), name=name, storage=storage, random_state=1)


def agree(study, storage):
    now = json.dumps(study.algorithm.to_dict())
    assert json.dumps(load_study("s", storage).algorithm.to_dict()) == now
    assert json.dumps(study.replayed().algorithm.to_dict()) == now
    assert check("s", storage).problems == []


def rows(study):
    first, *others = export(study)
    return [dict(zip(first, row, strict=True)) for row in others]


def test_notes_workers_and_corrections_are_kept(storage, tmp_path):
    study = new(storage)
    with acting_as("alice"):
        trials = study.ask(4)
        study.tell(trials[0], 3.0, note="  cloudy <b> ")
        study.fail(trials[1], "tar")
        study.tell(trials[2], 5.0)
    with acting_as("bob"):
        study.tell(trials[2], 6.0, "amend", note="typed wrong")
        study.amend(trials[0], 4.0)
        study.fail(trials[0], "contaminated", "amend")
        study.amend(trials[1], 1.0)
    assert study.algorithm.log.remarks == {0: "contaminated", 2: "typed wrong"}
    agree(study, storage)
    first, second, third, fourth = rows(study)
    assert (first["note"], first["state"], first["asked_by"], first["told_by"]) == (
        "contaminated",
        "failed",
        "alice",
        "bob",
    )
    assert [part.split(" at ")[0] for part in first["entries"].split("; ")] == [
        "3.0 by alice", "4.0 by bob", "failed by bob",
    ]  # fmt: skip
    assert (second["note"], second["reward"], second["told_by"]) == ("", "1.0", "bob")
    assert second["entries"].startswith("failed by alice at 20")
    assert (third["note"], third["reward"]) == ("typed wrong", "6.0")
    assert (fourth["told_by"], fourth["told_at"], fourth["entries"], fourth["asked_by"]) == ("", "", "", "alice")
    page = study.report(tmp_path / "r.html").read_text()
    for text in (
        "Failures, corrections and notes",
        "cloudy &lt;b&gt;",
        "reward 3",
        "amended to 6",
        "typed wrong",
        "bob",
    ):
        assert text in page


def test_a_note_alone_is_an_amendment_and_the_same_note_is_not(storage):
    study = new(storage)
    trial = study.ask()
    study.tell(trial, 3.0, note="a")
    assert study.tell_many([(trial, 3.0, None, "a")], "amend") == (0, 1, 0)
    assert study.tell_many([(trial, 3.0, None, "b")], "amend") == (0, 0, 1)
    study.tell(trial, 3.0, "amend")
    assert study.algorithm.log.remarks == {0: "b"}
    with pytest.raises(TypeError, match="note must be a text"):
        study.tell(trial, 3.0, "amend", note=7)
    agree(study, storage)
    opt = alexp.EvidenceMixture(study.algorithm.models, study.algorithm.domain, random_state=0)
    opt.tell(opt.ask(), 1.0, note="x")
    opt.amend(0, 2.0)
    assert opt.log.remarks == {0: "x"}


def test_files_carry_notes_and_exports_are_observed_again(storage, tmp_path):
    study = new(storage)

    def run(*words, code=0):
        result = CliRunner().invoke(app, ["study", *words, "--storage", storage])
        assert result.exit_code == code, result.output
        return result.output

    trials = study.ask(5)
    lines = [f"{trials[0].id},1.5,clear", f"{trials[1].id},failed,tar", f"{trials[2].id},2.5,"]
    (tmp_path / "r.csv").write_text("trial,reward,note\n" + "\n".join(lines) + "\n")
    run("tell", "s", str(tmp_path / "r.csv"), "--worker", "carol")
    assert "3 already known" in run("tell", "s", str(tmp_path / "r.csv"))
    study.abandon(trials[3])
    table = list(csv.DictReader(io.StringIO(run("export", "s"))))
    assert [row["note"] for row in table] == ["clear", "tar", "", "", ""]
    assert [row["told_by"] for row in table[:3]] == ["carol"] * 3
    (tmp_path / "e.csv").write_text(run("export", "s"))
    new(storage, "t")
    with pytest.warns(UserWarning, match=r"\(1 failed, 1 abandoned, 1 pending\)"):
        assert "added 2 observations; 2 rewards in all" in run("observe", "t", str(tmp_path / "e.csv"))
    assert [trial.index for trial in load_study("t", storage).algorithm.pending()] == []
    third = new(storage, "u")
    assert len(third.add_observations(study.trials_dataframe())) == 2
    (tmp_path / "e.csv").write_text("x,reward,state\nA1,,failed\n")
    assert "holds no rewards" in run("observe", "t", str(tmp_path / "e.csv"), code=1)
    agree(study, storage)
