"""Several objectives, cost and budget in studies: stored, replayed bit for bit, by Python, shell and files."""

import json
import re

import pandas as pd
import pytest
from typer.testing import CliRunner

import alexp
from alexp.cli import app
from alexp.study import SuspiciousRewardError, check, create_study, load_study, replay as replay_module
from alexp.study.tables import export
from tests.algorithms.test_objectives import BOTH, FRAME, TABLE, measured, value_at


@pytest.fixture
def storage(tmp_path):
    return f"sqlite:///{tmp_path / 'a.db'}"


def new(storage, **settings):
    return create_study(TABLE, name="s", storage=storage, random_state=1, **{"objectives": BOTH} | settings)


def text_of(algorithm):
    return json.dumps(algorithm.to_dict())


def test_a_study_is_stored_replayed_and_shown(storage, tmp_path, monkeypatch):
    monkeypatch.setattr(replay_module, "REPLAY_EVENTS", 5)  # snapshots on the way
    study = new(storage, cost="price", budget=200.0)
    memory = alexp.EvidenceMixture(TABLE, objectives=BOTH, cost="price", budget=200.0, random_state=1)
    for k in range(3):
        for one, other in zip(study.ask(4), memory.ask(4), strict=True):
            assert one.index == other.index
            if k == 2 and one.id % 4 == 0:
                study.fail(one, "tar")
                memory.fail(other, "tar")
            else:
                study.tell(one, measured(one))
                memory.tell(other, measured(other))
    study.tell(study.ask(), {"yield": [3.0, 4.0], "waste": [1.0, 2.0]}, note="cloudy")
    memory.tell(memory.ask(), {"yield": [3.0, 4.0], "waste": [1.0, 2.0]}, note="cloudy")
    study.amend(2, {"yield": 33.0, "waste": 4.0})
    memory.amend(2, {"yield": 33.0, "waste": 4.0})
    study.retract(3)
    memory.retract(3)
    study.observe(27, {"yield": 1.0, "waste": 50.0})
    memory.observe(27, {"yield": 1.0, "waste": 50.0})
    assert text_of(study.algorithm) == text_of(memory)
    assert text_of(load_study("s", storage).algorithm) == text_of(study.algorithm)
    assert text_of(study.replayed().algorithm) == text_of(study.algorithm)
    assert check("s", storage).problems == []
    pd.testing.assert_frame_equal(study.pareto().drop(columns="x"), memory.pareto().drop(columns="x"))
    entries = [event["reward"] for event in study.events() if event["kind"] == "amend"]
    assert entries == [{"yield": 33.0, "waste": 4.0}]
    page = study.report(tmp_path / "r.html").read_text()
    assert "Best compromises" in page
    assert "left of a budget of 200" in page
    with pytest.raises(ValueError, match="no single best candidate"):
        study.best()


def test_calls_with_keys_are_done_once_and_others_are_refused(storage):
    study = new(storage)
    trial, other = study.ask(2, key="ask")
    assert [one.id for one in study.ask(2, key="ask")] == [trial.id, other.id]
    for _ in range(2):
        study.tell(trial, measured(trial), key="tell")
    with pytest.raises(ValueError, match="key 'tell' was used before"):
        study.tell(trial, measured(trial) | {"waste": 1.0}, key="tell")
    before = study.refresh().n_events
    for wrong in (81.0, {"yield": 81.0}, {"yield": 81.0, "wast": 1.0}, {"yield": float("nan"), "waste": 1.0}):
        with pytest.raises(ValueError, match=r"reward|yield"):
            study.tell(other, wrong)
    assert study.refresh().n_events == before


def test_typing_errors_are_noticed_in_every_objective(storage):
    study = new(storage)
    for trial in study.ask(8):
        study.tell(trial, measured(trial))
    trial = study.ask()
    with pytest.raises(SuspiciousRewardError, match=r"a reward of 9000 .*waste"):
        study.tell_many([(trial, measured(trial) | {"waste": 9000.0})], sure=False)


def test_what_was_exported_can_be_observed(storage, tmp_path):
    study = new(storage)
    for trial in study.ask(5):
        study.tell(trial, measured(trial))
    rows = list(export(study))
    frame = pd.DataFrame(rows[1:], columns=rows[0])
    assert frame[["yield", "waste"]].astype(float).to_dict("records") == [
        value_at(int(index)) for index in frame["candidate"]
    ]
    frame.to_csv(tmp_path / "old.csv", index=False)
    other = create_study(TABLE, name="t", storage=storage, random_state=2, objectives=BOTH)
    run = CliRunner().invoke(app, ["study", "observe", "t", str(tmp_path / "old.csv"), "--storage", storage])
    assert run.exit_code == 0, run.output
    assert other.pareto()["index"].tolist() == study.pareto()["index"].tolist()


def test_the_shell_knows_objectives_cost_and_budget(storage, tmp_path):
    FRAME.to_csv(tmp_path / "c.csv", index=False)
    runner = CliRunner()

    def shell(*words, code=0):
        found = runner.invoke(app, ["study", *map(str, words), "--storage", storage])
        assert found.exit_code == code, found.output
        return found.output

    aims = ["--objective", "yield=maximize", "--objective", "waste=minimize", "--cost", "price", "--budget", 40]
    shell("create", "s", "--candidates", tmp_path / "c.csv", "--seed", 1, *aims)
    shell("ask", "s", "-n", 4, "--out", tmp_path / "p.csv")
    plate = pd.read_csv(tmp_path / "p.csv")
    assert list(plate.columns) == ["trial", "id", "ligand", "celsius", "price", "yield", "waste"]
    names = FRAME["id"].tolist()
    for name in ("yield", "waste"):
        plate[name] = [value_at(names.index(own))[name] for own in plate["id"]]
    plate = plate.astype({"yield": object, "waste": object})
    plate.loc[2, ["yield", "waste"]] = ["failed", ""]
    half = plate.copy()
    half.loc[1, "waste"] = ""
    half.to_csv(tmp_path / "half.csv", index=False)
    assert "line 3: waste is empty" in shell("tell", "s", tmp_path / "half.csv", code=1)
    plate.loc[3, ["yield", "waste"]] = ["3; 5", "1; 2"]
    plate.to_csv(tmp_path / "p.csv", index=False)
    assert "told 3 rewards, 1 failed" in shell("tell", "s", tmp_path / "p.csv")
    shell("ask", "s")
    assert "reward lacks 'waste'" in shell("tell", "s", 5, "yield=81", code=1)
    shell("tell", "s", 5, "yield=81", "waste=2", "--yes")
    assert "became {'yield': 71.0, 'waste': 2.0}" in shell("amend", "s", 5, "yield=71", "waste=2")
    lines = shell("pareto", "s").splitlines()
    assert lines[0] == "trial,id,ligand,celsius,price,yield,waste"
    study = load_study("s", storage)
    assert len(lines) == 1 + len(study.pareto())
    status = shell("status", "s")
    assert "maximize yield, minimize waste" in status
    assert re.search(r"of a budget of 40; [\d.]+ are left", status)
    assert "n must be at most" in shell("ask", "s", "-n", 20, code=1)
    assert study.algorithm.spent <= 40.0


def test_a_sheet_of_a_plate_has_a_column_per_objective(storage, tmp_path):
    pytest.importorskip("openpyxl")
    study = new(storage)
    from alexp.study.tables import read_results, write_plate

    trials = study.ask(3)
    write_plate(tmp_path / "p.xlsx", study, trials)
    sheet = pd.read_excel(tmp_path / "p.xlsx")
    for name in ("yield", "waste"):
        sheet[name] = [measured(trial)[name] for trial in trials]
    sheet.to_excel(tmp_path / "q.xlsx", index=False)
    found = read_results(tmp_path / "q.xlsx", study)
    assert [one.reward for one in found] == [measured(trial) for trial in trials]
