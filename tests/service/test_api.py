"""Every route as its users have it: against a real server, its good days and its bad ones."""

import csv
import io
import math
import time
from base64 import b64encode

import pytest
from pydantic import TypeAdapter

import alexp
from alexp.estimation.mixture.either import ENOUGH
from alexp.service import answers
from alexp.study import create_study, load_study
from alexp.table.files import lines_of
from tests.service.serving import ARMS, BLOCKS, CROSSED, INTERVAL, TABLE, Caller, client, create, serving


@pytest.fixture(scope="module")
def where(tmp_path_factory):
    return f"sqlite:///{tmp_path_factory.mktemp('service') / 'studies.db'}"


@pytest.fixture(scope="module")
def http(where):
    with serving(where) as (address, _), client(address) as http:
        http.where = where
        yield http


@pytest.fixture
def study(http, request):
    return create(http, request.node.name)


def checked(kind, answer):
    """An answer that is as the OpenAPI description says."""
    TypeAdapter(kind).validate_python(answer, strict=True)
    return answer


# -- studies ---------------------------------------------------------------------------------------------------


def test_a_study_is_created_listed_looked_at_and_deleted(http):
    study = create(http, "polymer", settings={"noise_std": 0.1}, direction="minimize", expired="abandon")
    found = checked(answers.Summary, study.get())
    assert (found["name"], found["algorithm"], found["direction"]) == ("polymer", "evidence-mixture", "minimize")
    assert found["columns"] == ["solvent", "celsius"]
    assert found["models"] == ["solvent", "both"]
    assert (found["domain"], found["n_candidates"], found["contextual"]) == ("FiniteSet", 9, False)
    assert (found["expired"], found["settings"]["noise_std"]) == ("abandon", 0.1)
    assert {"name": "noise_std", "formula": "σ, standard deviation of the noise", "value": "0.1"} in found["explained"]
    listed = checked(answers.Studies, http.get("/v1/studies").json())["studies"]
    assert [one["counts"]["trials"] for one in listed if one["name"] == "polymer"] == [0]
    assert http.delete("/v1/studies/polymer").json() == {"deleted": "polymer"}
    assert study.get("", 404)["type"] == "urn:alexp:study-not-found"
    assert http.delete("/v1/studies/polymer").status_code == 404


@pytest.mark.parametrize("name", ["a/b", "50%", "a%2Fb", "ask", "zwei Wörter", "x?y#z", "...", "a\\b", "🧪"])
def test_any_printable_name_can_be_used(http, name):
    from urllib.parse import quote

    assert create(http, name)
    study = Caller(http, quote(name, safe=""))
    assert study.get()["name"] == name
    trial = study.post("ask")["trials"][0]
    study.post("tell", results=[{"trial": trial["id"], "reward": 1.0}])
    assert study.get("pending") == {"pending": [], "warnings": []}
    assert study.get("progress") == {"progress": None, "warnings": []}
    assert http.delete(f"/v1/studies/{quote(name, safe='')}").json() == {"deleted": name}


@pytest.mark.parametrize("name", ["", "   ", "a\nb", "x" * 201, ".", ".."])
def test_other_names_are_refused(http, name):
    got = create(http, name, status=422)
    assert got["field"] == "body.name"


def test_a_study_that_exists_is_a_conflict_unless_it_may_be_opened(http):
    create(http, "twice")
    assert create(http, "twice", status=409)["type"] == "urn:alexp:study-exists"
    create(http, "twice", status=200, load_if_exists=True)
    assert create(http, "twice", status=409, load_if_exists=True, direction="minimize")["status"] == 409
    assert create(http, "twice", status=409, load_if_exists=True, problem=INTERVAL)["type"].startswith("urn:alexp:")


def test_creating_with_a_key_can_be_repeated(http):
    body = {"name": "keyed", "problem": TABLE, "key": "first"}
    first = http.post("/v1/studies", json=body)
    again = http.post("/v1/studies", json=body)
    other = http.post("/v1/studies", json=body | {"key": "second"})
    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
    assert again.json() == first.json()


PROBLEMS = {
    "columns": {"kind": "table", "columns": {"x": [1, 2, 3]}, "models": {"line": [[1.0], [2.0], [3.0]]}},
    "csv features": {"kind": "table", "csv": "name\na\nb\n", "models": {"m": "name,f\nb,1\na,2\n"}},
    "kernels": TABLE | {"kernels": "auto"},
    "kernels by name": TABLE | {"kernels": {"solvent": "tanimoto", "both": "linear+matern:0.5"}},
    "normalized": TABLE | {"normalize": True},
    "interval": INTERVAL,
    "fourier": INTERVAL | {"models": {"family": "fourier", "frequencies": 2, "size": 2}},
    "polynomial": INTERVAL | {"models": {"family": "polynomial", "degree": 3, "size": 2}},
    "kernel": INTERVAL | {"models": {"family": "kernel", "kernel": "rbf"}},
    "box": {
        "kind": "box",
        "lower": [0, 0],
        "upper": [1, 2],
        "resolution": 16,
        "models": {"family": "polynomial", "degree": 2, "size": 2},
    },
    "random features": {
        "kind": "box",
        "lower": [0],
        "upper": [1],
        "resolution": 16,
        "models": {"family": "random-fourier", "features": 5, "size": 4},
    },
    "arms": ARMS,
    "arms by key": ARMS | {"features": {"age": ["age"], "vector": 3}, "shared": ["age"]},
    "blocks": BLOCKS,
    "crossed": CROSSED | {"crossed": {"context": ["age"], "action": ["dose"], "units": {"age": [50, 15], "dose": 2}}},
}


@pytest.mark.parametrize("kind", PROBLEMS)
def test_every_kind_of_problem_can_be_declared(http, where, kind):
    study = create(http, f"problem {kind}", PROBLEMS[kind])
    checked(answers.Summary, study.get())
    assert load_study(f"problem {kind}", where).algorithm.name == "evidence-mixture"  # all of it is stored


def test_a_table_means_what_it_says(http, where):
    create(http, "meaning")
    models = load_study("meaning", where).algorithm.models
    assert models.features(1, 4).tolist() == [[0.0, 1.0, 0.0, 40.0]]  # of dmf, ethanol, water; the temperature
    assert models.features(0, 0).tolist() == [[0.0, 0.0, 1.0]]


@pytest.mark.parametrize(
    ("problem", "field"),
    [
        ({"kind": "nothing"}, "body.problem"),
        (TABLE | {"csv": None}, "body.problem.csv"),
        (TABLE | {"csv": "a,b\n1\n"}, "body.problem.csv"),
        (TABLE | {"csv": "reward\n1\n"}, "body.problem.csv"),
        (TABLE | {"models": {"m": ["nothing"]}}, "body.problem.models"),
        (TABLE | {"models": {"m": [[1.0], [2.0]]}}, "body.problem.models"),
        (TABLE | {"models": {"m": [[1.0], [2.0, 3.0]]}}, "body.problem.models"),
        (TABLE | {"models": {"m": [[1.0], ["much"]]}}, "body.problem.models.m[1][0]"),
        (TABLE | {"kernels": "nonsense"}, "body.problem.kernels"),
        (INTERVAL | {"models": {"family": "kernel", "kernel": "nonsense"}}, "body.problem.models.kernel"),
        (TABLE | {"typo": 1}, "body.problem.typo"),
        (INTERVAL | {"lower": 2.0}, "body.problem.lower"),
        (INTERVAL | {"resolution": 10**9}, "body.problem.resolution"),
        (INTERVAL | {"models": {"family": "legendre", "degree": 3, "size": 9}}, "body.problem.models.size"),
        (INTERVAL | {"models": {"family": "legendre", "degree": 100, "size": 50}}, "body.problem"),
        ({"kind": "box", "lower": [0], "upper": [1, 2], "models": {"family": "kernel"}}, "body.problem.lower"),
        (ARMS | {"arms": ["a", "a"]}, "body.problem.arms"),
        (ARMS | {"arms": ["a", 3]}, "body.problem.arms[1]"),
        (ARMS | {"correlation": 1.0}, "body.problem.correlation"),
        (BLOCKS | {"crossed": CROSSED["crossed"]}, "body.problem"),
        ({"kind": "candidates"}, "body.problem"),
    ],
)
def test_problems_that_are_wrong_are_refused(http, problem, field):
    got = create(http, "wrong", problem, status=422)
    assert got["type"] == "urn:alexp:invalid"
    assert got.get("field") == field
    assert "wrong" not in [one["name"] for one in http.get("/v1/studies").json()["studies"]]


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"algorithm": "nothing"}, "body.algorithm"),
        ({"direction": "up"}, "body.direction"),
        ({"settings": {"nothing": 1}}, "body.settings"),
        ({"settings": {"storage": "sqlite:///other.db"}}, "body.settings"),
        ({"settings": {"name": "other"}}, "body.settings"),
        ({"settings": {"noise_std": -1}}, "body.settings.noise_std"),
        ({"settings": {"noise_std": "much"}}, "body.settings.noise_std"),
        ({"random_state": -1}, "body.random_state"),
        ({"repeats": "yes"}, "body.repeats"),
    ],
)
def test_settings_that_are_wrong_are_refused(http, more, field):
    assert create(http, "wrong", status=422, **more)["field"] == field


def test_fields_of_their_own_are_no_settings(http):
    got = create(http, "wrong", ARMS, status=422, settings={"cost": [1.0, 2.0]})
    assert got["detail"] == "settings: 'cost' is a field of its own, beside settings"


def test_settings_that_are_objects_are_given_by_kind(http, where):
    schedules = {"kind": "Schedules", "gamma": 0.25}
    create(http, "objects", INTERVAL, algorithm="alexp", settings={"noise_std": 0.1, "schedules": schedules})
    assert load_study("objects", where).algorithm.schedules.gamma == 0.25


def test_what_is_doubtful_about_a_problem_is_said(http):
    twice = {"kind": "table", "columns": {"x": ["a", "a"]}, "models": {"m": [[1.0], [2.0]]}}
    got = http.post("/v1/studies", json={"name": "doubtful", "problem": twice}).json()
    assert "candidates 0 and 1 are equal" in got["warnings"][0]


# -- asking and telling ----------------------------------------------------------------------------------------


def test_ask_and_tell(study):
    asked = checked(answers.Asked, study.post("ask", n=3, lease=600, worker="robot", distinct=True))
    assert [trial["id"] for trial in asked["trials"]] == [0, 1, 2]
    assert len({trial["index"] for trial in asked["trials"]}) == 3
    assert asked["trials"][0]["x"].keys() == {"solvent", "celsius"}
    assert {trial["lease"] for trial in asked["trials"]} == {600}
    held = checked(answers.PendingTrials, study.get("pending"))["pending"]
    assert [(one["worker"], one["expired"], one["lease"] > 590.0) for one in held] == [("robot", False, True)] * 3
    told = study.post("tell", results=[{"trial": 2, "reward": 0.5}, {"trial": 0, "reward": -1}])
    assert checked(answers.Done, told) == {
        "told": 2,
        "skipped": 0,
        "amended": 0,
        "counts": {"trials": 3, "told": 2, "pending": 1, "abandoned": 0},
        "warnings": [],
    }
    rows = checked(answers.Trials, study.get("trials"))["trials"]
    assert [(row["state"], row["reward"]) for row in rows] == [("told", -1.0), ("pending", None), ("told", 0.5)]
    assert rows[0]["label"] == asked["trials"][0]["label"]


def test_the_same_as_without_a_server(http, tmp_path):
    study = create(http, "same", INTERVAL, settings={"noise_std": 0.1}, random_state=3)
    models, domain = alexp.ModelClass.legendre(degree=3, size=2), alexp.Interval(-1.0, 1.0, 21)
    here = create_study(models, domain, name="same", storage=tmp_path / "x.db", noise_std=0.1, random_state=3)
    for _ in range(6):
        trial, other = here.ask(), study.post("ask")["trials"][0]
        assert trial.to_dict() == {key: other[key] for key in trial.to_dict()}
        here.tell(trial, math.cos(trial.x))
        study.post("tell", results=[{"trial": other["id"], "reward": math.cos(other["x"])}])
    assert study.get("probabilities")["probabilities"] == here.probabilities.tolist()


def test_only_what_is_available_is_proposed(study):
    assert study.post("ask", available=[4])["trials"][0]["index"] == 4
    mask = [k in (5, 6) for k in range(9)]
    assert {trial["index"] for trial in study.post("ask", n=2, available=mask)["trials"]} == {5, 6}
    assert study.post("ask", 422, available=[99])["field"] == "body.available"
    assert study.post("ask", 422, available=[])["field"] == "body.available"
    assert study.post("ask", 422, available=["water"])["field"] == "body.available"


def test_calls_with_a_key_happen_once(study):
    first = study.post("ask", n=2, key="plate")
    assert study.post("ask", n=2, key="plate") == first
    assert study.post("ask", headers={"Idempotency-Key": "plate"}, n=2) == first
    assert study.post("ask", 422, n=3, key="plate")["field"] == "body.key"
    assert study.post("ask", 422, headers={"Idempotency-Key": "other"}, key="plate")["field"] == "body.key"
    assert study.post("ask", 422, key="")["field"] == "body.key"
    result = {"results": [{"trial": 0, "reward": 1.0}], "key": "well"}
    assert study.post("tell", **result) == study.post("tell", **result)
    assert study.post("tell", 422, key="well", results=[{"trial": 0, "reward": 2.0}])["field"] == "body.key"
    assert study.post("amend", trial=0, reward=2.0, key="mend") == study.post("amend", trial=0, reward=2.0, key="mend")
    assert study.post("retract", trial=0, key="back") == study.post("retract", trial=0, key="back")
    assert study.post("abandon", trials=[1], key="up") == study.post("abandon", trials=[1], key="up")
    assert study.post("abandon", 422, trials=[0], key="up")["field"] == "body.key"
    seen = {"observations": [{"index": 3, "reward": 0.5}], "key": "seen"}
    assert study.post("observe", **seen) == study.post("observe", **seen)
    assert study.get()["counts"] == {"trials": 3, "told": 1, "pending": 0, "abandoned": 2}


def test_all_rewards_of_a_call_or_none(study):
    study.post("ask", n=3)
    got = study.post("tell", 404, results=[{"trial": 0, "reward": 1.0}, {"trial": 77, "reward": 1.0}])
    assert got["type"] == "urn:alexp:trial-not-found"
    assert study.get()["counts"]["told"] == 0
    twice = study.post("tell", 409, results=[{"trial": 0, "reward": 1.0}, {"trial": 0, "reward": 1.0}])
    assert twice["type"] == "urn:alexp:already-told"
    assert study.get()["counts"]["told"] == 0


def test_told_twice_is_a_conflict(study):
    study.post("ask")
    one = [{"trial": 0, "reward": 1.0}]
    study.post("tell", results=one)
    assert study.post("tell", 409, results=one)["type"] == "urn:alexp:already-told"
    assert study.post("tell", results=one, if_told="same")["skipped"] == 1
    assert study.post("tell", 409, results=[{"trial": 0, "reward": 2.0}], if_told="same")["status"] == 409
    assert study.post("tell", results=[{"trial": 0, "reward": 2.0}], if_told="amend")["amended"] == 1


def test_rewards_that_look_like_slips_are_questioned(study):
    study.post("ask", n=7)
    study.post("tell", results=[{"trial": k, "reward": 0.1 * k} for k in range(6)])
    slip = {"results": [{"trial": 6, "reward": 7240.0}]}
    got = study.post("tell", 409, **slip)
    assert got["type"] == "urn:alexp:suspicious-reward"
    assert "trial 6" in got["detail"]
    assert study.get()["counts"]["pending"] == 1
    assert "far outside" in study.post("tell", **slip, sure=True)["warnings"][0]
    assert study.post("amend", 409, trial=0, reward=1e6)["type"] == "urn:alexp:suspicious-reward"
    assert study.get("trials")["trials"][0]["reward"] == 0.0
    study.post("amend", trial=6, reward=0.7)
    assert study.post("observe", 409, observations=[{"index": 8, "reward": -1e6}])["type"].endswith("suspicious-reward")
    assert study.post("observe", observations=[{"index": 8, "reward": -1e6}], sure=True)["warnings"]


def test_rewards_are_amended_and_retracted(study):
    study.post("ask", n=2)
    study.post("tell", results=[{"trial": 0, "reward": 1.0}])
    assert study.post("amend", trial=0, reward=2.0)["counts"]["told"] == 1
    assert study.post("amend", 409, trial=1, reward=2.0)["type"] == "urn:alexp:not-told"
    assert study.post("retract", trial=0)["counts"] == {"trials": 2, "told": 0, "pending": 1, "abandoned": 1}
    assert study.post("tell", 409, results=[{"trial": 0, "reward": 2.0}])["type"] == "urn:alexp:abandoned"
    assert study.post("retract", 404, trial=9)["type"] == "urn:alexp:trial-not-found"
    study.post("amend", trial=0, reward=3.0)
    assert study.get("trials")["trials"][0]["reward"] == 3.0


def test_failed_experiments(study):
    study.post("ask", n=3)
    assert study.post("fail", trial=0, reason="vial broke", key="k")["counts"]["failed"] == 1
    assert study.post("fail", trial=0, reason="vial broke", key="k")["counts"]["failed"] == 1
    assert study.post("fail", 409, trial=0)["type"] == "urn:alexp:abandoned"
    assert study.post("fail", 404, trial=9)["type"] == "urn:alexp:trial-not-found"
    assert study.post("fail", 422, trial=1, reason=3)["field"] == "body.reason"
    got = study.post("tell", results=[{"trial": 1, "reward": "failed"}, {"trial": 2, "reward": 1.0, "note": "clear"}])
    assert (got["told"], got["counts"]["failed"], got["counts"]["told"]) == (2, 2, 1)
    assert study.post("tell", 422, results=[{"trial": 1, "reward": "tar"}])["status"] == 422
    lines = checked(answers.Trials, study.get("trials"))["trials"]
    assert [(one["state"], one["note"]) for one in lines] == [
        ("failed", "vial broke"),
        ("failed", ""),
        ("told", "clear"),
    ]
    assert study.post("fail", trial=2, if_told="amend")["counts"] == {
        "trials": 3, "told": 0, "pending": 0, "abandoned": 0, "failed": 3,
    }  # fmt: skip
    assert study.post("retract", trial=2)["counts"]["abandoned"] == 1
    assert "failed" not in study.post("amend", trial=0, reward=1.0)["counts"] or study.get()["counts"]["failed"] == 1


def test_a_plate_in_the_dialect_of_its_file(http):
    text = "Nr;Stoff;Konz.;Ausbeute (%)\n" + "".join(f"R{k};Öl {k % 3};{k},25;\n" for k in range(9))
    file = {"name": "plan.csv", "content": b64encode(text.encode("cp1252")).decode()}
    study = create(http, "german", {"kind": "table", "file": file, "reward": "Ausbeute (%)"})
    trials = study.post("ask", n=2)["trials"]
    plate = http.get("/v1/studies/german/plate")
    assert plate.headers["content-type"] == "text/csv; charset=cp1252"
    titles, *lines = plate.content.decode("cp1252").splitlines()
    assert titles == "trial;Nr;Stoff;Konz.;Ausbeute (%)"
    assert lines == [f"{k};{one['x']['Nr']};{one['x']['Stoff']};{one['x']['Konz.']};".replace(".", ",")
                     for k, one in enumerate(trials)]  # fmt: skip
    filled = f"{titles}\n{lines[0]}57,1\n{lines[1]}n.d.\n".encode("cp1252")
    sent = {"name": "filled.csv", "content": b64encode(filled).decode()}
    said = study.post("results/preview", 422, file=sent)["detail"]
    assert "filled.csv, line 3: Ausbeute (%) must be a number, or the word \"failed\", got 'n.d.'" in said
    assert 'such as \'failed\': "replace": {"n.d.": "failed"}' in said
    read = study.post("results/preview", file=sent, replace={"n.d.": "failed"})["results"]
    assert [one["reward"] for one in read] == [57.1, "failed"]
    other = {"name": "filled.csv", "content": b64encode(filled.replace(b"Ausbeute (%)", b"Yield")).decode()}
    assert '"reward": "..."' in study.post("results/preview", 422, file=other)["detail"]
    read = study.post("results/preview", file=other, reward="Yield", replace={"n.d.": 3})["results"]
    assert [one["reward"] for one in read] == [57.1, 3.0]


def test_results_by_name_and_replicates(http):
    problem = {"kind": "table", "csv": "id,mass\nA,1\nB,2\nC,3\n", "models": {"mass": ["mass"]}}
    http.post("/v1/studies", json={"name": "named", "problem": problem}).raise_for_status()

    def tell(*results):
        return http.post("/v1/studies/named/tell", json={"results": list(results), "key": None})

    asked = http.post("/v1/studies/named/ask", json={"n": 3}).json()["trials"]
    names = {one["x"]["id"]: one["id"] for one in asked}
    assert tell({"candidate": "A", "reward": [71.2, 72.9]}).json()["counts"]["told"] == 2
    assert tell({"candidate": "B", "trial": names["A"], "reward": 1}).json()["type"] == "urn:alexp:trial-not-found"
    assert tell({"candidate": "D", "reward": 1}).json()["detail"].startswith("no candidate has the name 'D'")
    assert tell({"reward": 1}).status_code == 422
    assert tell({"candidate": "B", "trial": names["B"], "reward": 3.0}).json()["counts"]["told"] == 3
    failed = http.post("/v1/studies/named/fail", json={"candidate": "C", "reason": "tar"}).json()
    assert failed["counts"] == {"trials": 4, "told": 3, "pending": 0, "abandoned": 0, "failed": 1}


def test_a_plate_goes_out_as_a_file_and_results_are_read_before_they_are_told(http):
    table = {"kind": "table", "csv": "name,x\n" + "".join(f"c{k},{k * k % 7}\n" for k in range(9))}
    study = create(http, "sheet", table)
    names = [trial["x"]["name"] for trial in study.post("ask", n=4)["trials"]]
    text = http.get("/v1/studies/sheet/plate")
    assert text.headers["content-type"].startswith("text/csv")
    assert text.text.splitlines()[:2] == ["trial,name,x,reward", f"0,{names[0]},{int(names[0][1]) ** 2 % 7},"]
    book = http.get("/v1/studies/sheet/plate?form=xlsx")
    assert 'filename="sheet_plate.xlsx"' in book.headers["content-disposition"]
    assert [row[1] for _, row in lines_of(book.content, "plate.xlsx").rows] == names

    read = checked(
        answers.ReadResults,
        study.post("results/preview", csv=f"{names[1]}\t1.071,2; 72,9\n{names[0]}\tfailed\n{names[2]}\t", partial=True),
    )["results"]
    assert [(one["trial"], one["reward"], one["action"]) for one in read] == [
        (1, [1071.2, 72.9], "tell"),
        (0, "failed", "fail"),
    ]
    assert study.get()["counts"]["told"] == 0  # nothing is stored
    results = [{name: one[name] for name in ("trial", "reward", "note")} for one in read]
    assert study.post("tell", results=results, sure=True)["told"] == 2

    def refused(text, **more):
        return study.post("results/preview", 422, csv=text, **more)["detail"]

    assert "text, line 2: no candidate has the name 'c9'" in refused(f"{names[2]},1\nc9,2")
    assert "line 1: reward must be a number" in refused(f"{names[2]};many")
    assert "line 1: reward is empty" in refused(f"{names[2]}\t")
    assert "write name and reward, with a tab" in refused(f"{names[2]} 3")
    assert "line 2: 3 cells, but the header has 2" in refused(f"{names[2]}\t3\n{names[3]}\t4\t5")
    assert "amend" in refused(f"{names[0]}\t5")
    assert study.post("results/preview", csv=f"{names[0]}\t5", amend=True)["results"][0]["action"] == "amend"
    assert "decimal" in refused(f"{names[2]}\t1,234")
    assert study.post("results/preview", csv=f"{names[2]}\t1,234", decimal=",")["results"][0]["reward"] == 1.234
    assert "only one of them" in study.post("results/preview", 422)["detail"]


def test_a_range_of_rewards(http):
    problem = {"kind": "table", "csv": "id,mass\nA,1\nB,2\nC,3\n", "models": {"mass": ["mass"]}}
    body = {"name": "ranged", "problem": problem, "settings": {"reward_range": [0, 100]}}
    assert http.post("/v1/studies", json=body).json()["settings"]["reward_range"] == [0, 100]
    http.post("/v1/studies/ranged/ask", json={}).raise_for_status()
    wrong = http.post("/v1/studies/ranged/tell", json={"results": [{"trial": 0, "reward": 724}]})
    assert wrong.status_code == 422
    assert "reward must lie within the reward_range of 0 to 100, got 724" in wrong.json()["detail"]
    again = http.post("/v1/studies", json=body | {"name": "wrong", "settings": {"reward_range": [5, 5]}})
    assert again.json()["field"] == "body.settings.reward_range"


def test_rewards_that_are_right_or_wrong(http):
    body = {"name": "right", "problem": ARMS, "settings": {"likelihood": "bernoulli"}}
    assert http.post("/v1/studies", json=body).json()["settings"]["likelihood"] == "bernoulli"
    http.post("/v1/studies/right/ask", json={"context": [0.5, 1.0]}).raise_for_status()
    wrong = http.post("/v1/studies/right/tell", json={"results": [{"trial": 0, "reward": 0.5}]})
    assert wrong.status_code == 422
    assert "reward must be 0 or 1" in wrong.json()["detail"]
    http.post("/v1/studies/right/tell", json={"results": [{"trial": 0, "reward": 1}]}).raise_for_status()
    assert 0.0 < http.post("/v1/studies/right/best", json={"context": [0.5, 1.0]}).json()["value"] < 1.0
    again = http.post("/v1/studies", json=body | {"name": "wrong", "settings": {"likelihood": "poisson"}})
    assert again.json()["field"] == "body.settings.likelihood"


def test_rewards_that_choose_their_likelihood(http):
    made = http.post("/v1/studies", json={"name": "clicks", "problem": ARMS, "random_state": 0}).json()
    assert made["settings"]["likelihood"] == "auto"
    seen = [{"index": k % 2, "reward": float(k % 3 == 0), "context": [0.1 * k, 1.0]} for k in range(1, ENOUGH)]
    http.post("/v1/studies/clicks/ask", json={"context": [0.5, 1.0]}).raise_for_status()
    http.post("/v1/studies/clicks/tell", json={"results": [{"trial": 0, "reward": 1}]}).raise_for_status()
    http.post("/v1/studies/clicks/observe", json={"observations": seen}).raise_for_status()
    said = http.get("/v1/studies/clicks/figures").json()["summary"]
    assert said["rewards"].startswith("All rewards are 0 or 1, so models are logistic regressions")
    other = {"observations": [{"index": 0, "reward": 0.5, "context": [0.5, 1.0]}]}
    http.post("/v1/studies/clicks/observe", json=other).raise_for_status()
    assert "rewards" not in http.get("/v1/studies/clicks/figures").json()["summary"]


def test_several_objectives_cost_and_budget(http):
    csv = "id,mass,price\nA,1,2\nB,2,3\nC,3,4\nD,4,5\nE,5,6\n"
    body = {"name": "several", "problem": {"kind": "table", "csv": csv}, "random_state": 1}
    aims = {"objectives": {"yield": "maximize", "waste": "minimize"}, "cost": "price", "budget": 12.5}
    made = http.post("/v1/studies", json=body | aims | {"settings": {"reward_range": {"yield": [0, 100]}}})
    found = checked(answers.Summary, made.json())
    assert found["objectives"] == aims["objectives"]
    assert found["money"] == {"spent": 0.0, "budget": 12.5, "left": 12.5}
    path = "/v1/studies/several"
    asked = http.post(f"{path}/ask", json={"n": 3}).json()["trials"]

    def tell(trial, reward):
        return http.post(f"{path}/tell", json={"results": [{"trial": trial, "reward": reward}]})

    assert tell(0, 81).json()["detail"].startswith("reward must name the objectives")
    assert tell(0, {"yield": 81}).json()["detail"].startswith("reward lacks 'waste'")
    assert "reward_range of 0 to 100, got 810" in tell(0, {"yield": 810, "waste": 1}).json()["detail"]
    assert tell(0, {"yield": 81, "waste": 3}).json()["told"] == 1
    assert tell(1, [{"yield": 60, "waste": 2}, {"yield": 62, "waste": 2}]).json()["counts"]["told"] == 3
    assert tell(2, {"yield": [50], "waste": [9]}).json()["told"] == 1
    amended = http.post(f"{path}/amend", json={"trial": 2, "reward": {"yield": 51, "waste": 9}})
    assert amended.status_code == 200
    got = checked(answers.ParetoAnswer, http.get(f"{path}/pareto").json())
    assert [one["values"] for one in got["pareto"]] == [{"yield": 81.0, "waste": 3.0}, {"yield": 61.0, "waste": 2.0}]
    assert [one["trial"] for one in got["pareto"]] == [0, 1]
    lines = checked(answers.Trials, http.get(f"{path}/trials").json())["trials"]
    assert lines[2]["reward"] == {"yield": 51.0, "waste": 9.0}
    for route in ("best", "check-models", "plausible-models"):
        assert http.get(f"{path}/{route}").json()["type"] == "urn:alexp:several-objectives"
    assert http.get(f"{path}/view").json()["check"] is None
    spent = sum(one["x"]["price"] for one in asked)
    left = http.get(path).json()["money"]["left"]
    assert left == 12.5 - spent
    assert "what is left of the budget" in http.post(f"{path}/ask", json={"n": 2}).json()["detail"]
    assert http.get(f"{path}/view").json()["pareto"]["trial"] == [0, 1]
    wrong = http.post("/v1/studies", json=body | {"name": "wrong", "objectives": {"yield": "maximize"}})
    assert wrong.json()["field"] == "body.objectives"
    http.post("/v1/studies", json=body | {"name": "single"}).raise_for_status()
    assert http.get("/v1/studies/single/pareto").status_code in (409, 422)


def test_trials_are_given_up_all_or_none(study):
    study.post("ask", n=3)
    assert study.post("abandon", 404, trials=[0, 9])["status"] == 404
    assert study.get()["counts"]["pending"] == 3
    assert study.post("abandon", trials=[0, 2, 2])["counts"]["abandoned"] == 2
    assert study.post("abandon", 409, trials=[1, 0])["type"] == "urn:alexp:abandoned"
    assert study.post("tell", 409, results=[{"trial": 0, "reward": 1.0}])["type"] == "urn:alexp:abandoned"


def test_measurements_from_elsewhere_are_added(study):
    rows = [{"index": 3, "reward": 0.5}, {"index": 4, "reward": 1}]
    got = checked(answers.Observed, study.post("observe", observations=rows))
    assert [(one["index"], one["propensity"]) for one in got["trials"]] == [(3, None), (4, None)]
    by_columns = {"solvent": "water", "celsius": 20, "reward": 0.1}
    assert study.post("observe", observations=[by_columns])["trials"][0]["index"] == 0
    wrong = study.post("observe", 422, observations=[rows[0], {"index": 99, "reward": 1.0}])
    assert "observation 1" in wrong["detail"]
    assert study.post("observe", 422, observations=[{"index": 1}])["status"] == 422
    assert study.post("observe", 422, observations=[{"reward": 1.0}])["status"] == 422
    assert study.get()["counts"]["told"] == 3
    assert [row["state"] for row in study.get("trials")["trials"]] == ["observed"] * 3


def test_misspelt_columns_of_measurements_are_named(study, http):
    row = {"solvent": "water", "celcius": 20, "reward": 0.1}
    wrong = study.post("observe", 422, observations=[{"index": 0, "reward": 1.0}, row])
    assert "column 'celcius' of the observations is not known; did you mean 'celsius'?" in wrong["detail"]
    rounds = create(http, "misspelt arms", ARMS)
    wrong = rounds.post("observe", 422, observations=[{"index": "low", "reward": 0.5, "contxt": [0.1, 0.2]}])
    assert "'contxt' of the observations is not known; did you mean 'context'?" in wrong["detail"]
    blocks = create(http, "misspelt blocks", BLOCKS)
    wrong = blocks.post("ask", 422, features={"user": [[0.1, 0.2]], "itme": [[0.3]]})
    assert "['user', 'item'], got ['user', 'itme']" in wrong["detail"]
    crossed = create(http, "misspelt crossed", CROSSED)
    wrong = crossed.post("ask", 422, context={"aeg": 3.0}, candidates=[{"dose": 1.0}, {"dose": 2.0}])
    assert "'age' is missing; is 'aeg' misspelt?" in wrong["detail"]
    wrong = crossed.post("ask", 422, context={"age": 3.0}, candidates=[{"dose": 1.0}, {"dos": 2.0}])
    assert "'dose' is missing; is 'dos' misspelt?" in wrong["detail"]
    assert [one.get()["counts"]["trials"] for one in (study, rounds, blocks, crossed)] == [0] * 4


def test_measurements_with_many_names_are_refused_at_once(study):
    """A table with a column for each of them would take gigabytes."""
    rows = [{f"name {k}": 1, "reward": 0.5} for k in range(16_000)]
    start = time.perf_counter()
    assert "'name 0'" in study.post("observe", 422, observations=rows)["detail"]
    assert time.perf_counter() - start < 10.0


def test_points_off_the_grid_need_permission(http):
    study = create(http, "grid", INTERVAL)
    assert "not a candidate" in study.post("observe", 422, observations=[{"x": 0.123, "reward": 1.0}])["detail"]
    assert study.post("observe", observations=[{"x": 0.123, "reward": 1.0}], nearest=True)["trials"][0]["x"] == 0.1


def test_leases_pass_from_worker_to_worker(study):
    trial = study.post("ask", lease=0.05, worker="first")["trials"][0]["id"]
    other = study.post("ask", lease=600, worker="first")["trials"][0]["id"]
    held = study.post("take-over", 409, trials=[other], worker="second")
    assert held["type"] == "urn:alexp:held-by-another"
    assert "'first'" in held["detail"]
    while not study.get("pending")["pending"][0]["expired"]:
        pass
    taken = checked(answers.Asked, study.post("take-over", worker="second", lease=600, n=5))["trials"]
    assert [one["id"] for one in taken] == [trial]
    assert study.post("heartbeat", 409, trials=[trial], worker="first")["type"] == "urn:alexp:held-by-another"
    beat = study.post("heartbeat", trials=[trial], worker="second", lease=1200)
    assert checked(answers.Prolonged, beat)["trials"] == [trial]
    assert study.get("pending")["pending"][0]["lease"] > 1000
    assert study.post("heartbeat", 404, trials=[99], worker="second")["status"] == 404


def test_workers_without_a_name_go_by_their_address(study):
    study.post("ask", lease=600)
    assert study.get("pending")["pending"][0]["worker"] == "127.0.0.1"
    study.post("heartbeat", trials=[0])
    study.post("ask", worker="   ")
    assert study.get("pending")["pending"][1]["worker"] == "127.0.0.1"


def test_long_lists_of_trials_come_in_parts(study):
    study.post("ask", n=5)
    first = study.get("trials", limit=2)
    assert ([row["id"] for row in first["trials"]], first["next"], first["total"]) == ([0, 1], 2, 5)
    last = study.get("trials", since=4, limit=2)
    assert ([row["id"] for row in last["trials"]], last["next"]) == ([4], None)
    assert study.get("trials", since=99) == {"trials": [], "total": 5, "next": None, "warnings": []}
    assert study.get("trials", 422, limit=0)["field"] == "query.limit"
    assert study.get("trials", 422, since="x")["field"] == "query.since"


# -- contextual rounds -----------------------------------------------------------------------------------------


def test_a_budget_per_round(http):
    body = {"name": "budget", "problem": ARMS, "budget": 0.5, "random_state": 0}
    wrong = http.post("/v1/studies", json=body | {"cost": [0.0, 1.0]}).json()
    assert "a number for each of the 3 arms" in wrong["detail"]
    names = ARMS["arms"]
    made = http.post("/v1/studies", json=body | {"cost": dict(zip(names, [0.0, 1.0, 2.0], strict=True))})
    assert made.status_code == 201
    for k in range(20):
        trial = http.post("/v1/studies/budget/ask", json={"context": [0.1 * k, 1.0]}).json()["trials"][0]
        http.post("/v1/studies/budget/tell", json={"results": [{"trial": trial["id"], "reward": 0.1 * k}]})
    money = checked(answers.Summary, http.get("/v1/studies/budget").json())["money"]
    assert money["budget"] == 10.0
    assert 0.0 <= money["spent"] == 10.0 - money["left"] <= 10.0


def test_rounds_of_arms(http):
    study = create(http, "arms", ARMS)
    first = study.post("ask", context=[0.5, 1.0])["trials"][0]
    assert first["x"] in ARMS["arms"]
    assert (first["context"], first["n_candidates"]) == ([0.5, 1.0], 3)
    several = study.post("ask", n=2, context=[[0.1, 0.2], [0.3, 0.4]])["trials"]
    assert [one["context"] for one in several] == [[0.1, 0.2], [0.3, 0.4]]
    assert len(study.post("ask", n=2, context=[0.1, 0.2])["trials"]) == 2  # one context: two arms
    study.post("tell", results=[{"trial": first["id"], "reward": 1.0}])
    policy = checked(answers.PolicyAnswer, study.post("policy", context=[0.5, 1.0]))["policy"]
    assert sum(policy) == pytest.approx(1.0)
    assert checked(answers.BestAnswer, study.post("best", context=[0.5, 1.0]))["x"] in ARMS["arms"]
    checked(answers.StopAnswer, study.post("stop-report", context=[0.5, 1.0], epsilon=0.5))
    assert study.post("ask", 422)["field"] == "body.context"
    assert study.post("ask", 422, context=[1.0])["status"] == 422
    assert study.post("ask", 422, context={"a": "b"})["status"] == 422
    assert study.get("best", 422)["status"] == 422
    added = checked(answers.ArmAdded, study.post("arms", name="local", key="new arm"))
    assert added == {"arm": 3, "arms": [*ARMS["arms"], "local"], "warnings": []}
    assert study.post("arms", name="local", key="new arm") == added
    assert study.post("arms", 422, name="local")["status"] == 422
    assert study.post("ask", context=[0.5, 1.0], available=["local"])["trials"][0]["x"] == "local"
    observed = {"index": "low", "reward": 0.5, "context": [0.1, 0.2], "propensity": 0.25}
    assert study.post("observe", observations=[observed])["trials"][0]["propensity"] == 0.25


def test_rounds_with_features_and_ids(http):
    study = create(http, "blocks", BLOCKS)
    rows = [[1.0, 2.0, 3.0], [0.0, 1.0, 0.5]]
    got = study.post("ask", features=rows, ids=["a", "b"])["trials"][0]
    assert got["x"] in ("a", "b")
    blocks = {"user": [[1.0, 2.0], [0.0, 1.0]], "item": [[3.0], [0.5]]}
    assert study.post("ask", features=blocks)["trials"][0]["x"] in (0, 1)
    assert study.post("ask", features=rows, ids=["a", "b"], available=["b"])["trials"][0]["x"] == "b"
    assert study.post("ask", 422)["field"] == "body.features"
    assert study.post("ask", 422, features=[[1.0], [2.0]])["field"] == "body.features"
    assert study.post("ask", 422, features=rows, ids=["a", "a"])["field"] == "body.ids"
    assert study.post("ask", 422, features=[["x", 1, 2]])["field"] == "body.features"


def test_rounds_of_candidates_by_name(http):
    study = create(http, "crossed", CROSSED)
    got = study.post("ask", context={"age": 40}, candidates=[{"dose": 1}, {"dose": 2}])["trials"][0]
    assert got["x"] in ({"dose": 1}, {"dose": 2})
    assert study.post("ask", 422, context={"age": 40}, candidates=[{"dosis": 1}])["status"] == 422
    assert study.post("ask", 422, context={"age": 40}, candidates=[])["field"] == "body.candidates"


def test_candidates_are_added_to_a_table(http, study):
    more = "solvent,celsius\nmethanol,20\nwater,30\n"
    added = checked(answers.CandidatesAdded, study.post("candidates", csv=more, key="monday"))
    assert (added["candidates"], added["n_candidates"]) == ([9, 10], 11)
    (warning,) = added["warnings"]
    assert "column 'solvent': new here: 'methanol'" in warning
    assert study.post("candidates", csv=more, key="monday") == added | {"warnings": []}
    assert study.get()["n_candidates"] == 11
    asked = study.post("ask", available=[9], lease=60)["trials"][0]
    assert asked["label"] == "methanol, 20"
    assert (
        "csv, line 2: a candidate with these values is candidate 9 already"
        in study.post("candidates", 422, kind="table", csv=more)["detail"]
    )
    for wrong, said in (
        ({"csv": "solvent\nwater\n"}, "csv has no column 'celsius'"),
        ({"csv": "solvent,celsius,x\nwater,1,2\n"}, "has the column 'x', which the first table does not have"),
        ({"columns": {"solvent": ["water"], "celsius": ["hot"]}}, "'hot' is not a number"),
        ({"csv": "solvent,celsius\nwater,1\n", "kinds": {"celsius": "words"}}, "is said to be 'words'"),
        ({}, "csv, columns or file must be given"),
    ):
        assert said in study.post("candidates", 422, **wrong)["detail"]
    line = create(http, "line", INTERVAL)
    assert "models that an alexp.Table made" in line.post("candidates", 422, csv=more)["detail"]
    kinds = [event["kind"] for event in load_study(study.get()["name"], http.where).events()]
    assert kinds == ["add", "ask"]


def test_arms_are_for_studies_of_arms(study):
    assert study.post("arms", 422, name="x")["status"] == 422
    assert study.post("ask", 422, context=[1.0])["field"] == "body.context"


# -- statements ------------------------------------------------------------------------------------------------


def test_what_a_study_says(http):
    study = create(http, "sayings", INTERVAL, settings={"noise_std": 0.1, "reward_bound": 2.0})
    before = study.get("best", 409)
    assert before["type"] == "urn:alexp:no-reward-yet"
    for k in range(8):
        trial = study.post("ask")["trials"][0]
        study.post("tell", results=[{"trial": trial["id"], "reward": math.cos(trial["x"])}])
        if k == 0:
            assert study.post("stop-report", epsilon=1e-9)["can_stop"] is False
    q = checked(answers.Probabilities, study.get("probabilities"))
    assert (len(q["names"]), sum(q["probabilities"])) == (6, pytest.approx(1.0))
    top = study.get("probabilities", top=2)
    assert sorted(top["probabilities"]) == sorted(q["probabilities"])[-2:]
    assert [q["names"][j] for j in top["models"]] == top["names"]
    assert sum(checked(answers.PolicyAnswer, study.post("policy"))["policy"]) == pytest.approx(1.0)
    best = checked(answers.BestAnswer, study.get("best"))
    assert study.post("best", available=[0, 1])["index"] in (0, 1)
    stop = checked(answers.StopAnswer, study.get("stop-report", epsilon=10.0))
    assert (stop["certified"], stop["can_stop"], stop["x"]) == (True, True, best["x"])
    check = checked(answers.CheckAnswer, study.get("check-models", delta=0.1))
    assert (check["delta"], check["contradicted"]) == (0.1, False)
    plausible = checked(answers.Plausible, study.get("plausible-models"))
    assert plausible["rests_on"] == stop["rests_on"]
    assert stop["rests_on"].startswith("if one of the 6 models is true, the noise is at most noise_std = ")
    assert stop["rests_on"] in stop["text"]
    assert plausible["names"] == [q["names"][j] for j in plausible["models"]]
    for wrong in (0, 1, -3, "x", "nan"):
        assert study.get("check-models", 422, delta=wrong)["field"] == "query.delta"


def test_what_was_not_stated_is_not_certified(study):
    study.post("ask")
    study.post("tell", results=[{"trial": 0, "reward": 1.0}])
    assert study.get("plausible-models", 409)["type"] == "urn:alexp:not-certified"
    assert study.get("check-models", 409)["type"] == "urn:alexp:not-certified"
    assert study.get("stop-report")["certified"] is False
    assert study.get("stop-report")["rests_on"] is None


def test_what_an_algorithm_does_not_have_is_said(http):
    study = create(http, "plain", INTERVAL, algorithm="uniform")
    assert study.get("probabilities", 409)["type"] == "urn:alexp:not-offered"
    assert study.get("check-models", 409)["type"] == "urn:alexp:not-offered"
    assert study.get()["offers"] == []


def test_assumptions_that_break_are_told_to_the_caller(http):
    study = create(http, "assumed", INTERVAL, settings={"noise_std": 0.01, "reward_bound": 1.0})
    study.post("ask")
    got = study.post("tell", results=[{"trial": 0, "reward": 50.0}], sure=True)
    assert "reward_bound" in got["warnings"][0]
    study.post("ask")
    assert study.post("tell", results=[{"trial": 1, "reward": 0.5}])["warnings"] == []


# -- files -----------------------------------------------------------------------------------------------------


def test_all_trials_as_csv_and_a_report(http, where):
    study = create(http, "fi/les%")  # encoded below
    base = "/v1/studies/fi%2Fles%25"
    study = Caller(http, "fi%2Fles%25")
    study.post("ask", n=3)
    study.post("tell", results=[{"trial": 1, "reward": 0.5}])
    got = http.get(f"{base}/export")
    assert got.headers["content-type"].startswith("text/csv")
    assert got.headers["content-disposition"].endswith("filename*=UTF-8''fi%2Fles%25.csv")
    rows = list(csv.DictReader(io.StringIO(got.text)))
    assert [(row["trial"], row["reward"], row["state"]) for row in rows][1] == ("1", "0.5", "told")
    page = http.get(f"{base}/report")
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["content-disposition"].startswith('attachment; filename="fi_les_.html"')
    assert "fi/les%" in page.text
    assert http.get("/v1/studies/nothing/export").status_code == 404
    assert http.get("/v1/studies/nothing/report").status_code == 404
