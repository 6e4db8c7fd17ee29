"""What contextual studies store: noticed when damaged, recognised when opened, limited in size, shown to people."""

import json

import numpy as np
import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

import alexp
from alexp.cli import app
from alexp.study import (
    ProblemMismatchError,
    ReplayError,
    Storage,
    StorageError,
    check,
    create_study,
    load_study,
    replay,
    salvage,
)
from alexp.study.events import compress, decompress
from alexp.study.storage import events

from .conftest import resealed
from .contextual import BLOCKS, NAMES, SETTINGS, arms_study, ask, blocks_study, context, features, reward

run = CliRunner().invoke
pytestmark = pytest.mark.filterwarnings("ignore::alexp.algorithms.assumptions.AssumptionWarning")


def play(study, rounds, first=0):
    for k in range(first, first + rounds):
        trial = ask(study, k)
        study.tell(trial, reward(trial))


def details(storage):
    """What the asks have stored, by their numbers."""
    with Storage(storage).reading() as connection:
        rows = connection.execute(sa.select(events.c.seq, events.c.detail).where(events.c.kind == "ask"))
        return {seq: decompress(data) for seq, data in rows}


def rewrite(storage, seq, detail):
    with Storage(storage).writing() as connection:
        connection.execute(events.update().where(events.c.seq == seq).values(detail=compress(detail)))


# -- what is stored ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log_features", "algorithm", "rows", "words"),
    [
        ("chosen", "linucb", 1, True),
        ("chosen", "alexp", 4, True),
        ("all", "linucb", 4, True),
        ("none", "linucb", 1, False),
        ("none", "alexp", 4, False),
    ],
)
def test_asks_store_what_replay_needs(sqlite, log_features, algorithm, rows, words):
    study = blocks_study(sqlite, algorithm=algorithm, log_features=log_features)
    play(study, 2)
    for k, (seq, detail) in enumerate(details(sqlite).items()):
        stored = detail["offer"]
        assert (stored["n"], "ids" in stored, "rows" in stored) == (4, words, rows == 4)
        index = study.trial(seq // 2).index
        made = replay.offer_from(detail, index, 5)
        wanted = features(k)
        assert np.array_equal(made.rows[index], wanted[index])
        assert np.array_equal(made.rows, wanted) is (rows == 4)
    kept = study.log_frame()["features"]
    assert all(
        (one is None) is (log_features != "all" and (algorithm, log_features) != ("alexp", "chosen")) for one in kept
    )
    assert (study.trial(0).x == f"item 0.{study.trial(0).index}") is True
    assert json.dumps(load_study("s", sqlite).algorithm.to_dict()) == json.dumps(study.replayed().algorithm.to_dict())


def test_without_features_neither_contexts_nor_ids_reach_the_database(sqlite, tmp_path):
    study = arms_study(sqlite, models=alexp.ModelClass.per_arm({"age": ["age"]}, arms=3), log_features="none")
    trial = study.ask(context={"age": 3.0, "name": "secretive patient"})
    assert trial.context["name"] == "secretive patient"  # who asked knows it anyway
    assert study.trial(0).context is None
    load_study("s", sqlite).tell(0, 0.5)
    assert "context" not in details(sqlite)[0]["offer"]
    with pytest.raises(ValueError, match="keeps too little to repeat the run"):
        study.amend(0, 0.25)
    with pytest.raises(ValueError, match="nor arms added"):
        study.add_arm("extreme")
    with pytest.raises(ValueError, match="forgets it"):
        blocks_study(sqlite, "other", log_features="none", repeats=False)


def test_rounds_that_are_too_large_are_refused_before_anything_changes(sqlite, monkeypatch):
    large = {"context": {"age": 1.0, "scan": "x" * (2**20)}}
    models = alexp.ModelClass.per_arm({"age": ["age"]}, arms=3)
    study = arms_study(sqlite, models=models)
    with pytest.raises(ValueError, match=r"context and ids of this round: 1 MB as JSON.*log_features=\"none\""):
        study.ask(**large)
    with pytest.raises(ValueError, match="context and ids of this round"):
        study.observe(0, 1.0, **large)
    assert study.counts["trials"] == 0
    assert arms_study(sqlite, "none", models, log_features="none").ask(**large).id == 0
    monkeypatch.setattr(replay, "MOST_FEATURES", 200)
    for name, more, why in (
        ("all", {"log_features": "all"}, r'6 candidates x 5 columns.*log_features="all" stores all'),
        ("alexp", {"algorithm": "alexp"}, "a replay of ALExp needs all of them"),
    ):
        study = blocks_study(sqlite, name, **more)
        with pytest.raises(ValueError, match=why):
            study.ask(features=features(0, 6))
        assert study.ask(features=features(0, 5)).id == 0
    assert blocks_study(sqlite, "chosen").ask(features=features(0, 6)).id == 0


def test_a_candidate_that_is_too_large_leaves_the_study_as_it_was(sqlite):
    maps = {"length": lambda context, texts: np.array([[len(text) / 1e6] for text in texts])}
    models = alexp.ModelClass.from_maps(maps, contextual=True, example=(None, ["a"]))
    study = create_study(models, alexp.Candidates(), name="s", storage=sqlite, **SETTINGS)
    with pytest.raises(ValueError, match="the candidate of this round"):
        study.ask(candidates=["x" * 2**20])
    assert study.ask(candidates=["short"]).x == "short"
    assert study.counts["trials"] == 1
    own = {}
    own["self"] = own
    with pytest.raises(ValueError, match="cannot be stored as JSON"):
        study.ask(context=own, candidates=["short"])


# -- damage ------------------------------------------------------------------------------------------------------


def test_a_changed_row_is_noticed_by_check_and_by_whoever_follows(storage):
    study, other = blocks_study(storage), load_study("s", storage)
    play(study, 4)
    other.refresh()
    play(study, 4, 4)
    detail = details(storage)[10]
    row = detail["offer"]["row"].copy()
    row[-3] ^= 1  # one bit of one feature of trial 5
    rewrite(storage, 10, detail | {"offer": detail["offer"] | {"row": row}})
    with pytest.raises(StorageError, match="event 10 is damaged: its checksum is wrong"):
        other.refresh()
    report = check("s", storage)
    assert (report.ok, report.intact) == (False, 10)
    assert "event 10 is damaged" in str(report)


def test_salvage_keeps_the_rounds_before_the_damage(sqlite, tmp_path):
    study = blocks_study(sqlite, algorithm="alexp")
    play(study, 4)
    study.storage.close()
    rewrite(sqlite, 6, {})
    (saved,) = salvage(sqlite, f"sqlite:///{tmp_path / 'saved.db'}")
    assert (saved.saved, saved.events) == (6, 8)
    found = load_study("s", f"sqlite:///{tmp_path / 'saved.db'}")
    play(found, 1, 3)
    assert json.dumps(found.algorithm.to_dict()) == json.dumps(study.algorithm.to_dict())


@pytest.mark.parametrize(
    ("algorithm", "change", "error"),
    [
        ("linucb", lambda offer: {"n": 1}, "none of the 1 of its round|must hold"),
        ("linucb", lambda offer: {"row": offer["row"][:-8]}, "must hold 1 rows of at most 5 columns"),
        ("alexp", lambda offer: {"rows": np.zeros_like(offer["rows"])}, "must hold 4 rows"),
        ("alexp", lambda offer: {"rows": replay._bytes(features(99))}, "but replaying gives trial"),
    ],
)
def test_a_log_that_was_rewritten_whole_contradicts_itself(sqlite, algorithm, change, error):
    study = blocks_study(sqlite, algorithm=algorithm)
    play(study, 8)
    study.storage.close()
    last = max(seq for seq in details(sqlite) if study.trial(seq // 2).index > 0)
    detail = details(sqlite)[last]
    rewrite(sqlite, last, detail | {"offer": detail["offer"] | change(detail["offer"])})
    resealed(sqlite)
    with pytest.raises(ReplayError, match=error):
        load_study("s", sqlite).refresh()


# -- recognising -------------------------------------------------------------------------------------------------


def test_storable_models_come_back_by_themselves(sqlite):
    rng = np.random.default_rng(0)
    for name, models, domain, first in (
        (
            "blocks",
            alexp.ModelClass.from_blocks({"a": 2, "b": 3}, example=features(1)),
            None,
            {"features": features(0)},
        ),
        (
            "arms",
            alexp.ModelClass.per_arm({"a": [0], "b": [1]}, NAMES, shared=[2], example=rng.standard_normal((12, 3))),
            alexp.Arms(NAMES),
            {"context": context(0)},
        ),
        (
            "crossed",
            alexp.ModelClass.crossed(context=["age"], action=["dose"]),
            None,
            {"context": {"age": 0.5}, "candidates": [{"dose": 0.1}, {"dose": 0.7}]},
        ),
    ):
        domain = domain or alexp.Candidates()
        study = create_study(models, domain, name=name, storage=sqlite, **SETTINGS)
        trial = study.ask(**first)
        study.tell(trial, 0.5)
        again = load_study(name, sqlite)
        assert again.trial(0).x == trial.x
        assert again.ask(**first) == create_again(models, domain, first)
        joined = create_study(models, domain, name=name, storage=sqlite, load_if_exists=True, **SETTINGS)
        assert joined.counts["trials"] == 2
        assert again.algorithm.repeats


def create_again(models, domain, first):
    alone = alexp.EvidenceMixture(models, domain, **SETTINGS)
    alone.tell(alone.ask(**first), 0.5)
    return alone.ask(**first)


def scaled(factor):
    return {"dose": lambda age, doses: factor * age * np.asarray(doses)[:, None]}


def test_code_is_recognised_by_its_example(sqlite):
    def models(factor, example):
        return alexp.ModelClass.from_maps(scaled(factor), contextual=True, example=example)

    rounds = (2.0, [0.5, 1.0])
    create_study(models(1.0, rounds), alexp.Candidates(), name="s", storage=sqlite, **SETTINGS)
    assert load_study("s", sqlite, models(1.0 + 1e-12, rounds)).counts["trials"] == 0
    with pytest.raises(
        ProblemMismatchError, match="features of 'dose' have other values, first at row of the example 0"
    ):
        load_study("s", sqlite, models(1.5, rounds))
    with pytest.raises(ProblemMismatchError, match="their example has 3 rows, not 2"):
        load_study("s", sqlite, models(1.0, (2.0, [0.5, 1.0, 2.0])))
    with pytest.raises(ProblemMismatchError, match="the candidates differ|the arms differ"):
        load_study("s", sqlite, models(1.0, rounds), domain=alexp.Arms(["a", "b"]))


def test_code_per_arm_is_recognised_by_few_contexts(sqlite):
    def models(power):
        return alexp.ModelClass.per_arm({"age": lambda age: [age**power]}, arms=3, example=3.0)

    arms_study(sqlite, models=models(1))
    assert load_study("s", sqlite, models(1)).ask(context=2.0).n_candidates == 3
    with pytest.raises(ProblemMismatchError, match="features of 'age' have other values"):
        load_study("s", sqlite, models(2))


def test_blocks_of_other_names_or_sizes_are_others(sqlite):
    blocks_study(sqlite)
    for blocks, why in (({"user": 3, "item": 2}, "other"), ({"user": 2, "thing": 3}, "other names")):
        with pytest.raises(ProblemMismatchError, match=why):
            load_study("s", sqlite, alexp.ModelClass.from_blocks(blocks))
    assert load_study("s", sqlite, BLOCKS).algorithm.models.names == ["user", "item"]


# -- people ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["evidence-mixture", "alexp", "linucb", "uniform"])
@pytest.mark.parametrize("log_features", ["chosen", "all", "none"])
def test_views_and_reports_show_what_there_is(sqlite, algorithm, log_features, tmp_path):
    study = arms_study(sqlite, algorithm=algorithm, log_features=log_features)
    assert study.view().best is None
    study.report(tmp_path / "empty.html")
    study.observe("low", 0.5, context=context(9), propensity=0.5)
    for k in range(5):
        trial = study.ask(context=context(k))
        study.tell(trial, reward(trial))
    last = study.ask(context=context(5))
    view = study.view()
    assert (view.best, view.curve, view.domain, view.n_candidates) == (None, None, "Arms", 3)
    assert "best(context=...)" in view.stopping
    assert view.trials.label == ["low", *(study.trial(k).x for k in range(1, 7))]
    assert view.trials.state == ["observed", *(5 * ["told"]), "pending"]
    assert [held.label for held in view.pending] == [last.x]
    json.dumps(view.to_dict(), allow_nan=False)
    if algorithm != "uniform":
        assert (view.certificates is None) is (log_features == "none")
    page = study.report(tmp_path / "report.html").read_text()
    assert "3 arms; created" in page
    assert "There is no table of candidates" in page
    assert 'id="figure-propensities"' in page
    assert "<td>low</td>" in page


def test_reports_of_fresh_candidates(sqlite, tmp_path):
    study = blocks_study(sqlite)
    play(study, 3)
    page = study.report(tmp_path / "report.html").read_text()
    assert "candidates differ by round; created" in page
    assert "mean so far" in page
    assert study.view().explanation.label == [study.trial(k).x for k in range(3)]


def test_the_command_line(sqlite, tmp_path):
    study = arms_study(sqlite)
    for k in range(3):
        trial = study.ask(context=context(k))
        study.tell(trial, reward(trial))
    study.ask(context=context(3))

    def said(*words, code=0):
        result = run(app, ["study", *words, "--storage", sqlite])
        assert result.exit_code == code, result.output
        return result.output

    assert "rounds of study 's' are contextual: ask in Python" in said("ask", "s", code=1)
    status = said("status", "s")
    assert "4 trials, 3 told, 1 pending" in status
    assert "best(context=...)" in status
    plate, table = tmp_path / "plate.csv", tmp_path / "trials.csv"
    said("pending", "s", "--out", str(plate))
    header, line = plate.read_text().splitlines()
    assert header == "trial,x,context,reward"
    assert "lease" in said("pending", "s", "--workers")
    plate.write_text(f"{header}\n{line}0.5\n")
    assert "told 1 rewards" in said("tell", "s", str(plate))
    plate.write_text("trial,x,reward\n3,nobody,0.5\n")
    assert "this trial has x =" in said("tell", "s", str(plate), code=1)
    said("export", "s", "--out", str(table))
    assert table.read_text().splitlines()[0].startswith("trial,candidate,x,context,model,")
    measured = tmp_path / "measured.csv"
    measured.write_text("index,reward\n0,0.5\n")
    assert "need their rounds" in said("observe", "s", str(measured), code=1)
    said("amend", "s", "0", "0.25")
    said("report", "s", "--out", str(tmp_path / "report.html"))
    assert "all is well" in said("check", "s")
