"""Old campaigns as memory of a study: durable without the old file, and the same through every door."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import alexp
from alexp.cli import app
from alexp.study import check, create_study, load_study, replay as replay_module
from alexp.study.viewing import memory_sentence
from alexp.table import FileError, Table
from alexp.table.memory import worth

testclient = pytest.importorskip("starlette.testclient")
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"id": [f"c{k}" for k in range(24)], "u": RNG.uniform(size=24), "v": RNG.uniform(size=24)})
OLD = FRAME.assign(reward=30.0 * FRAME["u"] - 10.0 * FRAME["v"] ** 2).iloc[::2]
OLDER = OLD.assign(reward=20.0 * OLD["v"] - 10.0 * OLD["u"])


def reward(trial):
    return 3.0 * trial.x["u"] - trial.x["v"] ** 2 + 5.0


def play(study, n):
    for _ in range(n):
        trial = study.ask()
        study.tell(trial, reward(trial))


def trials(study):
    frame = study.trials_dataframe()
    return frame[["index", "model", "propensity", "reward"]].astype(float).fillna(-1.0).to_numpy()


@pytest.fixture
def where(tmp_path):
    return f"sqlite:///{tmp_path / 's.db'}"


def learned(where, name="s", **settings):
    """A study with a memory at first, one that came later, new candidates and a correction."""
    table = Table.from_frame(FRAME.iloc[:18]).with_memory({"2023": OLD})
    study = create_study(table, name=name, storage=where, random_state=1, **settings)
    play(study, 3)
    study.learn_from({"2022": OLDER})
    play(study, 3)
    study.add_candidates(Table.from_frame(FRAME.iloc[18:]))
    study.fail(study.ask(), "tar")
    play(study, 2)
    study.amend(1, 9.0)
    return study


@pytest.mark.parametrize("snapshots", [False, True])
def test_a_study_replays_without_the_old_results(where, monkeypatch, snapshots):
    if snapshots:
        monkeypatch.setattr(replay_module, "REPLAY_SECONDS", 0.0)
    study = learned(where)
    monkeypatch.setattr("alexp.table.memory.read_campaign", None)  # nothing is read again
    monkeypatch.setattr("alexp.table.memory.expected", None)  # nor learned
    again = load_study("s", where)
    assert np.array_equal(trials(study), trials(again))
    assert np.array_equal(study.algorithm.probabilities, again.algorithm.probabilities)
    assert again.algorithm.models.names == study.algorithm.models.names
    assert check("s", where).ok


def test_the_models_of_later_memories_come_last_and_the_others_keep_their_numbers(where):
    study = learned(where)
    names = study.algorithm.models.names
    own = Table.from_frame(FRAME.iloc[:18]).models().n_models
    assert names[own] == f"2023 + {names[0]}"
    assert names[2 * own] == f"2022 + {names[0]}"
    assert len(names) == 3 * own
    assert list(worth(study.algorithm.models, study.algorithm.probabilities)) == ["2023", "2022"]
    history = study.view().standing.history
    assert history.q.shape[0] == len(history.told)  # rounds before there were as many models


def test_new_candidates_have_a_memory_too(where):
    study = learned(where)
    whole = Table.from_frame(FRAME).with_memory({"2023": OLD}).models().dictionary.table[:, -1]
    own = study.algorithm.models.dictionary
    edges = np.cumsum([0, *own.sizes])
    assert np.corrcoef(own.table[18:, edges[-3]], whole[18:])[0, 1] > 0.9


def test_a_run_that_learned_is_saved_and_goes_on():
    opt = alexp.EvidenceMixture(Table.from_frame(FRAME), random_state=2)
    play(opt, 2)
    opt.learn_from({"2023": OLD})
    play(opt, 2)
    again = alexp.EvidenceMixture.from_dict(opt.to_dict())
    assert np.array_equal(again.probabilities, opt.probabilities)
    assert again.ask().index == opt.ask().index


def test_a_call_with_a_key_learns_once(where):
    study = create_study(Table.from_frame(FRAME), name="s", storage=where, random_state=1)
    for _ in range(2):
        study.learn_from({"2023": OLD}, key="k")
    n = study.algorithm.models.n_models
    with pytest.raises(ValueError, match="was used before, for other campaigns"):
        study.learn_from({"2022": OLD}, key="k")
    with pytest.raises(ValueError, match="there is a memory or description '2023' already"):
        study.learn_from({"2023": OLD})
    assert load_study("s", where).algorithm.models.n_models == n


@pytest.mark.filterwarnings("ignore:memory:UserWarning")
def test_what_cannot_be_learned_changes_nothing(where):
    study = create_study(Table.from_frame(FRAME), name="s", storage=where, random_state=1)
    play(study, 1)
    before = study.algorithm.models.n_models
    with pytest.raises(FileError, match="lacks the column 'u'"):
        study.learn_from({"a": OLD.drop(columns=["id", "u"])})
    with pytest.raises(ValueError, match="there is nothing to learn from 'a'"):
        study.learn_from({"a": OLD.assign(reward=1.0)})
    own = create_study(
        alexp.ModelClass.from_matrices({"a": np.eye(3)}), alexp.FiniteSet(range(3)), name="o", storage=where
    )
    with pytest.raises(TypeError, match="candidates and old campaigns can be added to models that an alexp.Table made"):
        own.learn_from({"a": OLD})
    table = Table.from_frame(FRAME)
    scaled = create_study(table.models().normalized(table.domain), table, name="n", storage=where)
    with pytest.raises(ValueError, match="create them with the memory"):
        scaled.learn_from({"a": OLD})
    assert load_study("s", where).algorithm.models.n_models == before


def test_minimised_and_several_objectives_learn_as_well(where):
    for name, aims in {
        "least": {"direction": "minimize"},
        "two": {"objectives": {"y": "maximize", "z": "minimize"}},
    }.items():
        study = create_study(Table.from_frame(FRAME), name=name, storage=where, random_state=1, **aims)
        for trial in study.ask(5):
            study.tell(trial, {"y": reward(trial), "z": -reward(trial)} if name == "two" else reward(trial))
        study.learn_from({"2023": OLD})
        ((prior, now),) = worth(study.algorithm.models, study.algorithm.probabilities).values()
        assert now > prior


# -- words -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prior", "now", "told", "start", "end"),
    [
        (0.4, 0.9, 5, "The past helps: rewards speak for '2023', 14 to 1. Its models had 40%", "and have 90% now."),
        (0.4, 0.05, 5, "The past is of little use here: rewards speak against '2023', 13 to 1.", "and have 5% now."),
        (0.4, 0.5, 5, "Whether the past helps is open: the models of '2023' had 40%", "and have 50% now."),
        (0.4, 0.4, 0, "The models of '2023' have 40% of the weight", "what the past is worth."),
        (0.4, 1.0, 5, "The past helps: rewards speak for '2023', 1e+06 to 1.", "and have 100% now."),
        (0.4, 0.0, 5, "The past is of little use here: rewards speak against '2023', 1e+06 to 1.", "and have 0% now."),
    ],
)
def test_a_sentence_says_what_the_past_was_worth(prior, now, told, start, end):
    sentence = memory_sentence("2023", prior, now, told)
    assert sentence.startswith(start)
    assert sentence.endswith(end)


def test_the_report_says_what_the_past_was_worth(where, tmp_path):
    study = create_study(
        Table.from_frame(FRAME).with_memory({"2023 & co": OLD}), name="s", storage=where, random_state=1
    )
    play(study, 8)
    study.report(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    (memory,) = study.view().standing.memories
    assert memory.q > memory.prior
    assert re.search(
        "<p>The past helps: rewards speak for &#x27;2023 &amp; co&#x27;, .* to 1. Its models had ..%", text
    )


# -- doors -------------------------------------------------------------------------------------------------------


def run(*words):
    result = CliRunner().invoke(app, list(words), env={"COLUMNS": "500"})
    assert result.exit_code == 0, result.output
    return result.output


def test_the_same_through_python_command_line_http_and_client(where, tmp_path):
    from alexp.service import create_app

    FRAME.to_csv(tmp_path / "table.csv", index=False)
    old, older = tmp_path / "old.csv", tmp_path / "older.csv"
    OLD.rename(columns={"reward": "yield"}).to_csv(old, index=False)
    OLDER.rename(columns={"reward": "yield"}).to_csv(older, index=False)
    study = create_study(
        Table.read(tmp_path / "table.csv").with_memory({"2023": old}, "yield"), name="a", storage=where, random_state=3
    )
    study.learn_from({"2022": older}, "yield")
    table = ("--candidates", str(tmp_path / "table.csv"), "--memory", f"2023={old}", "--reward", "yield", "--seed", "3")
    out = run("study", "create", "b", *table, "--storage", where)
    assert "memory '2023': 12 results; 12 of them of candidates" in out
    assert "learned from 2022=" in run("study", "learn", "b", f"2022={older}", "--reward", "yield", "--storage", where)
    with testclient.TestClient(create_app(where), base_url="http://127.0.0.1") as http:
        problem = {"kind": "table", "csv": (tmp_path / "table.csv").read_text(), "memory": {"2023": old.read_text()}}
        body = {"name": "c", "problem": problem | {"reward": "yield"}, "random_state": 3}
        assert http.post("/v1/studies", json=body).status_code == 201
        bad = http.post("/v1/studies", json=body | {"problem": problem})
        assert bad.status_code == 422
        assert "has no column 'reward'" in bad.json()["detail"]
        columns = json.loads(pd.read_csv(older).to_json(orient="columns"))
        memory = {"2022": {name: list(cells.values()) for name, cells in columns.items()}}
        told = http.post("/v1/studies/c/learn", json={"memory": memory, "reward": "yield"})
        assert told.json()["n_models"] == study.algorithm.models.n_models
        view = http.get("/v1/studies/c/view").json()
        assert [one["name"] for one in view["standing"]["memories"]] == ["2023", "2022"]
    names = study.algorithm.models.names
    asked = [study.ask(3)] + [load_study(name, where).ask(3) for name in "bc"]
    assert all(load_study(name, where).algorithm.models.names == names for name in "bc")
    assert [[trial.index for trial in one] for one in asked[1:]] == [[trial.index for trial in asked[0]]] * 2
    assert "rewards will tell what the past is worth" in run("study", "status", "b", "--storage", where)
