"""A table with results becomes a study with observations, through every door; what is filled in is not asked for."""

import base64
import csv
import io
import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import alexp
from alexp.cli.study import app
from alexp.study import check, create_study, load_study
from alexp.study.storage import Storage
from alexp.table import Table
from alexp.table.files import Dialect

COLUMN = "Ausbeute (%)"
LINES = ["Nr;Ligand;T (°C);Loading;Ausbeute (%)",
         *(f"{k};{('XPhos', 'PPh3', 'SPhos')[k % 3]};{90 + 5 * (k % 4)};{'' if k in (5, 9) else f'{k % 7},5'};"
           f"{ {3: '57,1', 8: '61; 63,5'}.get(k, '')}" for k in range(1, 31))]  # fmt: skip
DATA = "\n".join([*LINES, ""]).replace("61; 63,5", '"61; 63,5"').encode("cp1252")
READING = {"reward": COLUMN, "missing": {"Loading": "median"}}


@pytest.fixture
def lab(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ALEXP_STORAGE", raising=False)
    (tmp_path / "reactions.csv").write_bytes(DATA)
    return tmp_path


def observed(study):
    log = study.algorithm.log
    return [(study.algorithm.domain[k]["Nr"], y) for k, y in zip(log.index, log.reward, strict=True)]


RESULTS = [("3", 57.1), ("8", 61.0), ("8", 63.5)]


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_a_study_takes_results_in_and_remembers_their_column(lab, storage):
    table = Table.read("reactions.csv", **READING)
    with create_study(table, name="s", storage=storage, random_state=0) as study:
        assert observed(study) == RESULTS
        asked = {study.ask().x["Nr"] for _ in range(5)}
        assert asked.isdisjoint({"3", "8", "5", "9"})
    with load_study("s", storage) as again:
        assert again.result_column == COLUMN
        assert again.dialect == Dialect("text", ";", ",", "cp1252")
        assert COLUMN not in again.domain.candidates
        assert again.domain.withheld.tolist() == [4, 8]
        assert json.dumps(again.replayed().algorithm.to_dict()) == json.dumps(again.algorithm.to_dict())
    assert check("s", storage).ok


def test_the_command_line_takes_results_in_one_step(lab):
    said = run("create", "s", "--candidates", "reactions.csv", "--reward", COLUMN, "--missing", "Loading=median")
    assert "added 3 results that the table has" in said
    assert "Ausbeute (%)  result  57,1     3 results, taken in as measured" in said
    with load_study("s") as study:
        assert (observed(study), study.result_column) == (RESULTS, COLUMN)
    asked = [row["Nr"] for row in csv.DictReader(io.StringIO(run("ask", "s", "-n", 26)), delimiter=";")]
    assert set(asked).isdisjoint({"3", "8", "5", "9"})
    assert "has a number that was filled in" in run("ask", "s", code=1)
    assert "has a number that was filled in" in run("ask", "s", "--where", "Nr != '1'", code=1)
    assert "\n29;5;SPhos;95;;" in run("ask", "s", "--available", "5")
    assert "no candidate has the name '99'" in run("ask", "s", "--available", "99", code=1)


def test_without_saying_so_the_column_is_refused_on_the_command_line(lab):
    said = run("create", "s", "--candidates", "reactions.csv", "--missing", "median", code=1)
    assert "column 'Ausbeute (%)': 28 of 30 cells are blank; if it has the results, say --reward 'Ausbeute (%)'" in said
    assert "--ignore 'Ausbeute (%)'" in said
    assert "--missing 'Ausbeute (%)=median'" in said


def test_the_service_takes_results_in_one_step(lab, sqlite):
    testclient = pytest.importorskip("starlette.testclient")
    from alexp.service import create_app

    file = {"name": "reactions.csv", "content": base64.b64encode(DATA).decode()}
    with testclient.TestClient(create_app(sqlite), base_url="http://127.0.0.1") as client:
        got = client.post("/v1/tables/preview", json={"kind": "table", "file": file})
        assert got.status_code == 422
        assert '"reward": "Ausbeute (%)"' in got.json()["detail"]
        body = {"name": "s", "random_state": 0, "problem": {"kind": "table", "file": file, **READING}}
        assert client.post("/v1/studies", json=body).status_code == 201
        asked = client.post("/v1/studies/s/ask", json={"n": 26}).json()["trials"]
        assert {trial["x"]["Nr"] for trial in asked}.isdisjoint({"3", "8", "5", "9"})
        named = client.post("/v1/studies/s/ask", json={"available": [4]}).json()["trials"]
        assert named[0]["x"]["Nr"] == "5"
        more = "\n".join([LINES[0], "31;XPhos;90;2,5;44", "32;PPh3;95;3,5;", ""]).encode("cp1252")
        added = {"file": {"name": "more.csv", "content": base64.b64encode(more).decode()}}
        assert client.post("/v1/studies/s/candidates", json=added).json()["candidates"] == [30, 31]
    with load_study("s", sqlite) as study:
        assert observed(study)[:3] == RESULTS
        assert observed(study)[-1] == ("31", 44.0)
        assert study.result_column == COLUMN


def test_later_candidates_bring_their_results(lab):
    run("create", "s", "--candidates", "reactions.csv", "--reward", COLUMN, "--missing", "Loading=median")
    (lab / "more.csv").write_text("\n".join([LINES[0], "31;XPhos;90;2,5;44", "32;PPh3;95;;", ""]), encoding="cp1252")
    assert "added candidates 30 to 31; 32 in all" in run("add", "s", "more.csv", "--missing", "Loading=median")
    with load_study("s") as study:
        assert observed(study)[-1] == ("31", 44.0)
        assert study.domain.withheld.tolist() == [4, 8, 31]
        assert json.dumps(study.replayed().algorithm.to_dict()) == json.dumps(study.algorithm.to_dict())


def test_a_wrong_result_makes_no_study(lab, sqlite):
    with pytest.raises(ValueError, match=r"'3', column 'Ausbeute \(%\)': reward"):
        create_study(Table.read("reactions.csv", **READING), name="s", storage=sqlite, reward_range=(0, 50))
    assert alexp.study.list_studies(sqlite) == []


def test_a_study_whose_creation_was_interrupted_gets_its_results(lab, sqlite, monkeypatch):
    table = Table.read("reactions.csv", **READING)
    with monkeypatch.context() as patched:
        patched.setattr(alexp.study.Study, "take_results", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            create_study(table, name="s", storage=sqlite, random_state=0)
    for _ in range(2):  # the second time there is nothing to do
        with create_study(table, name="s", storage=sqlite, load_if_exists=True) as study:
            assert observed(study) == RESULTS


def test_old_campaigns_have_their_results_in_a_column_of_the_same_name(lab):
    (lab / "old.csv").write_text("\n".join(LINES).replace(";\n", ";40\n").replace("61; 63,5", "61"), encoding="cp1252")
    reading = ("--reward", COLUMN, "--missing", "Loading=median", "--memory", "old=old.csv", "--preview")
    assert "memory 'old': " in run("create", "s", "--candidates", "reactions.csv", *reading)
    pd.read_csv("reactions.csv", sep=";", encoding="cp1252").drop(columns=COLUMN).to_csv("bare.csv", index=False)
    assert "result" not in run("create", "s", "--candidates", "bare.csv", *reading).split("memory")[0]


# -- studies of 1.0.0 ------------------------------------------------------------------------------------------


def as_at_first(table):
    """A table as 1.0.0 read it: no logarithms, and nobody withheld."""
    plain = {one.name: "number" for one in table._columns if one.kind == "log"}
    frame = pd.DataFrame({one.name: [None if cell == "" else cell for cell in one.cells] for one in table._columns})
    first = Table.from_frame(frame, id=table.id.name, missing="median", kinds=plain)
    first.withheld = []
    return first


def test_a_study_keeps_its_reading(sqlite):
    frame = pd.DataFrame({"id": range(30), "alpha": np.geomspace(1e-6, 1, 10).tolist() * 3, "t": [None, *range(29)]})
    now = Table.from_frame(frame, id="id", missing="median")
    assert (now.understood["alpha"].kind, now.withheld) == ("log", [0])
    with create_study(as_at_first(now), name="old", storage=sqlite, random_state=0) as old:
        first = [old.ask().index for _ in range(3)]
    with create_study(now, name="old", storage=sqlite, load_if_exists=True) as same:  # the script of every morning
        assert same.algorithm.log.index[:3].tolist() == first
        assert same.domain.withheld.size == 0
        assert same.algorithm.models.encoding["columns"][1]["kind"] == "number"
    with create_study(now.models(), as_at_first(now), name="own", storage=sqlite, random_state=0):
        pass
    with load_study("old", sqlite) as study:
        assert (study.result_column, study.dialect.kind) == ("reward", "data")


def test_a_study_without_a_table_has_the_usual_column_of_results(storage):
    models = alexp.ModelClass.legendre(degree=3, size=2)
    with create_study(models, alexp.Interval(resolution=20), name="s", storage=Storage(storage)) as study:
        assert (study.result_column, study.dialect) == ("reward", Dialect())
