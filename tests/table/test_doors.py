"""The same verdict through Python, the command line and HTTP, with the remedy in the words of each."""

import base64
import json
import re
import shlex
from dataclasses import replace

import pandas as pd
import pytest
from typer.testing import CliRunner

import alexp
from alexp.cli.study import app
from alexp.service import create_app
from alexp.study import list_studies
from alexp.table import FileError, Table, remedies
from tests.table.cases import CASES, text, workbook

testclient = pytest.importorskip("starlette.testclient")


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    where = f"sqlite:///{tmp_path_factory.mktemp('doors') / 's.db'}"
    with testclient.TestClient(create_app(where), base_url="http://127.0.0.1") as client:
        client.where = where
        yield client


def in_python(case, path, words=remedies.in_python):
    try:
        return str(Table.read(path, **case.options).understood_in(words))
    except FileError as error:
        return error.worded(words)


def on_the_command_line(case, path):
    words = []
    for name, value in case.options.items():
        if name == "kinds":
            words += [part for column, kind in value.items() for part in ("--kind", f"{column}={kind}")]
        elif name == "replace":
            words += [part for cell, number in value.items() for part in ("--replace", f"{cell}={number}")]
        else:
            values = value if isinstance(value, list) else [value]
            words += [part for one in values for part in (f"--{name}", str(one))]
    command = ["create", "x", "--candidates", str(path), "--preview", *words]
    result = CliRunner().invoke(app, command, env={"COLUMNS": "500"})
    assert isinstance(result.exception, SystemExit | None), result.exception
    assert result.exit_code == bool(case.error)
    return result.output.strip().removeprefix("error: ")


def over_http(case, http):
    file = {"name": case.file, "content": base64.b64encode(case.data).decode()}
    got = http.post("/v1/tables/preview", json={"kind": "table", "file": file, **case.options})
    if case.error:
        assert got.status_code == 422
        return got.json()["detail"]
    assert got.status_code == 200, got.text
    found = got.json()
    columns = tuple(alexp.table.understood.UnderstoodColumn(**column) for column in found["columns"])
    return str(
        alexp.table.understood.Understood(found["file"], found["n_candidates"], columns, tuple(found["remarks"]))
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_doors_say_the_same(case, tmp_path, http, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / case.file).write_bytes(case.data)
    said = in_python(case, case.file)
    assert in_python(case, case.file, remedies.on_the_command_line) == on_the_command_line(case, case.file)
    assert in_python(case, case.file, remedies.in_json) == over_http(case, http)
    assert not (tmp_path / "alexp.db").exists()
    assert list_studies(http.where) == []
    for part in case.error:
        assert part in said


@pytest.mark.parametrize("case", [case for case in CASES if case.error], ids=lambda case: case.name)
def test_every_door_takes_the_remedies_it_names(case, tmp_path, http, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / case.file).write_bytes(case.data)
    with pytest.raises(FileError) as error:
        Table.read(case.file, **case.options)
    file = {"name": case.file, "content": base64.b64encode(case.data).decode()}
    for remedy in [part for part in error.value.args if isinstance(part, remedies.Remedy)]:
        if remedies.OPEN in str(remedy.value):  # what to write there only the user knows
            continue
        same = str(error.value)
        python = eval(f"dict({remedies.in_python(remedy)})")
        assert in_python(replace(case, options=case.options | python), case.file) != same
        words = shlex.split(remedies.on_the_command_line(remedy))
        given = CliRunner().invoke(app, ["create", "x", "--candidates", case.file, "--preview", *words])
        assert given.exit_code < 2, given.output
        assert given.output.strip() != f"error: {error.value.worded(remedies.on_the_command_line)}"
        body = {"kind": "table", "file": file, **case.options, **json.loads("{" + remedies.in_json(remedy) + "}")}
        got = http.post("/v1/tables/preview", json=body)
        assert got.status_code == 200 or got.json()["detail"] != error.value.worded(remedies.in_json)


REACTIONS = text("reaction;solvent;T", *(f"r{k};{'DMF' if k % 2 else 'water'};{60 + k}" for k in range(8)))


def test_a_study_is_made_from_an_uploaded_file(http, tmp_path):
    file = {"name": "reactions.csv", "content": base64.b64encode(REACTIONS).decode()}
    body = {"name": "uploaded", "problem": {"kind": "table", "file": file}, "random_state": 1}
    assert http.post("/v1/studies", json=body).status_code == 201
    made = alexp.load_study("uploaded", http.where).algorithm
    (tmp_path / "reactions.csv").write_bytes(REACTIONS)
    same = alexp.EvidenceMixture(Table.read(tmp_path / "reactions.csv"), random_state=1)
    assert made.models.names == same.models.names
    assert made.to_dict(problem=False)["settings"] == same.to_dict(problem=False)["settings"]
    assert made.ask().index == same.ask().index
    http.delete("/v1/studies/uploaded")
    wrong = {"name": "x", "problem": {"kind": "table", "file": file | {"content": "no base64!"}}}
    got = http.post("/v1/studies", json=wrong)
    assert (got.status_code, got.json()["field"]) == (422, "body.problem.file")
    described = {"name": "f.xlsx", "content": base64.b64encode(
        workbook([["reaction", "f"], *([f"r{k}", k * 1.5] for k in reversed(range(8)))])
    ).decode()}  # fmt: skip
    body["problem"]["models"] = {"f": described}
    assert http.post("/v1/studies", json=body).status_code == 201
    assert "all maps: sum of kernels" in alexp.load_study("uploaded", http.where).algorithm.models.names
    http.delete("/v1/studies/uploaded")


def test_the_client_mirrors_it(tmp_path):
    from tests.service.serving import serving

    path = tmp_path / "reactions.csv"
    path.write_bytes(REACTIONS)
    with serving(f"sqlite:///{tmp_path / 's.db'}") as (address, _), alexp.Client(address) as client:
        own = Table.read(path, ignore=["T"])
        assert client.preview(path, reading={"ignore": ["T"]}).columns == own.understood.columns
        frame = pd.read_csv(path, sep=";")
        assert client.preview(frame).columns == Table.from_frame(frame).understood.columns
        with pytest.raises(ValueError, match=re.escape("has no column 'Q'. It has ")):
            client.preview(path, reading={"ignore": ["Q"]})
        study = client.create(path, name="remote", reading={"ignore": ["T"]}, random_state=0)
        assert study.ask().x["solvent"] in ("DMF", "water")
        for k, given in enumerate(({"reward": "T"}, {"reading": {"reward": "T"}})):
            begun = client.create(path, name=f"begun {k}", random_state=0, **given)
            assert begun.trials_dataframe()["reward"].tolist() == [60.0 + k for k in range(8)]
    stored = alexp.load_study("remote", tmp_path / "s.db").algorithm
    assert stored.models.names == alexp.Table.read(path, ignore=["T"]).models().names
    assert (stored.repeats, stored.goal) == (False, "best")
