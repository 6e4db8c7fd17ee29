"""Constraints of a plate through studies, the command line, the service and its client: stored and replayed."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import alexp
from alexp.cli.study import app
from alexp.study import check, create_study, load_study
from tests.adversarial.fleet import Server

LEVELS = {"ligand": list("abcdef"), "base": ["KOAc", "CsOAc"], "celsius": [90, 105, 120]}
FRAME = pd.DataFrame(itertools.product(*LEVELS.values()), columns=list(LEVELS))
SETS = {"all": ["ligand", "base", "celsius"], "celsius": ["celsius"]}
ASKED = {"where": "celsius <= 105 and not base = 'CsOAc'", "at_most": {"ligand": 1}, "together": ("celsius",)}


def models():
    one_hot = pd.get_dummies(FRAME.astype(str)).to_numpy(float)
    return alexp.ModelClass.from_matrices({"all": one_hot, "celsius": FRAME[["celsius"]].to_numpy(float)})


def check_rows(indices):
    rows = FRAME.iloc[list(indices)]
    assert rows["celsius"].nunique() == 1
    assert rows["celsius"].max() <= 105
    assert rows["ligand"].is_unique
    assert (rows["base"] == "KOAc").all()


@pytest.mark.parametrize("algorithm", ["evidence-mixture", "alexp", "uniform"])
def test_plates_are_stored_and_replayed_bit_for_bit(storage, algorithm):
    with create_study(
        models(), alexp.FiniteSet(FRAME), name="s", storage=storage, algorithm=algorithm, random_state=0
    ) as study:
        for _ in range(2):
            plate = study.ask(3, **ASKED)
            check_rows(trial.index for trial in plate)
            study.tell_many([(trial, float(np.sin(trial.index))) for trial in plate])
        study.amend(plate[0], 0.5)
        waiting = study.ask(2, where="celsius = 120", at_most={"base": 1})
        before = study.algorithm.to_dict()
        assert study.replayed().algorithm.to_dict() == before
        for asked, n, why in (
            ({"at_most": {"base": 1}}, 3, r"n must be at most 2: at_most=\{'base': 1\}"),
            ({"where": "celsius = 91"}, 1, "holds for none"),
            ({"where": "celsus = 90"}, 1, "did you mean 'celsius'"),
            ({"together": "ligand"}, 7, r"n must be at most \d: together"),
        ):
            with pytest.raises(ValueError, match=why):
                study.ask(n, **asked)
        assert study.algorithm.to_dict() == before
    again = load_study("s", storage)
    assert again.algorithm.to_dict() == before
    assert {trial.id for trial in again.pending()} == {trial.id for trial in waiting}
    assert check("s", storage).ok
    again.close()


def test_expired_trials_are_not_part_of_a_plate_with_limits(sqlite):
    """Handed out again they would count towards limits that they were not asked with."""
    with create_study(models(), alexp.FiniteSet(FRAME), name="s", storage=sqlite, random_state=0) as study:
        old = study.ask(2, lease=1e-6)
        new = study.ask(2, lease=60.0, at_most={"ligand": 1})
        assert not {trial.id for trial in old} & {trial.id for trial in new}
        assert {trial.id for trial in study.ask(2, lease=60.0, where="celsius > 0")} == {trial.id for trial in old}


def test_a_key_gives_the_same_plate_again(sqlite):
    with create_study(models(), alexp.FiniteSet(FRAME), name="s", storage=sqlite, random_state=0) as study:
        first = study.ask(3, key="monday", **ASKED)
        assert [t.id for t in study.ask(3, key="monday", **ASKED)] == [t.id for t in first]
        assert study.counts["trials"] == 3


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("reactions.csv", index=False)
    np.save("all.npy", pd.get_dummies(FRAME.astype(str)).to_numpy(float))
    run("create", "s", "--candidates", "reactions.csv", "--features", "all=all.npy", "--seed", 0)
    asked = ["--where", ASKED["where"], "--at-most", "ligand=1", "--together", "celsius"]
    run("ask", "s", "-n", 4, *asked, "--out", "plate.csv")
    plate = pd.read_csv("plate.csv")
    check_rows(load_study("s").algorithm.log.index)
    assert (plate["base"] == "KOAc").all()
    for wrong, why in (
        (["--at-most", "ligand"], "--at-most must look like NAME=VALUE"),
        (["--at-most", "ligand=two"], "COLUMN=NUMBER with a whole number"),
        (["--at-most", "ligand=0"], "at_most['ligand'] must be"),
        (["--at-most", "ligant=2"], "did you mean 'ligand'"),
        (["--together", "temp"], "together: 'temp' is no column"),
        (["--where", "celsius <="], "a number or a word in quotes was expected here"),
        (["--where", "celsius > 200"], "holds for none of the 36 candidates"),
    ):
        assert why in run("ask", "s", "-n", 2, *wrong, code=1)
    assert load_study("s").counts["trials"] == 4


def test_over_http_and_with_the_client(sqlite):
    server = Server(sqlite).wait()
    with alexp.Client(server.url) as client:
        table = {"kind": "table", "columns": FRAME.to_dict("list"), "models": SETS}
        study = client.create(name="s", problem=table, random_state=0)
        plate = study.ask(3, **ASKED)
        check_rows(trial.index for trial in plate)
        study.tell_many([(trial, float(trial.index)) for trial in plate])
        assert study.ask(where="celsius = 120", together="ligand").x["celsius"] == 120
        for asked, why in (
            (
                {"where": "celsius <= 105 and solvant = 'x'"},
                r"where, 'solvant' at character 20: 'solvant' is no column",
            ),
            ({"at_most": {"base": 1}}, "n must be at most 2: at_most="),
            ({"at_most": {"base": 0}}, "at_most"),
            ({"together": ["temp"]}, "together: 'temp' is no column"),
        ):
            with pytest.raises(ValueError, match=why):
                study.ask(3, **asked)
        assert study.counts["trials"] == 4
    server.stop()
    with load_study("s", sqlite) as stored:
        assert json.dumps(stored.replayed().algorithm.to_dict()) == json.dumps(stored.algorithm.to_dict())
