"""`alexp study` from files to files; what is wrong is said with its line, and then nothing is written."""

import csv
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from alexp.cli.study import app
from alexp.study import load_study

N = 24


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A folder with candidates and features, as a laboratory would have it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ALEXP_STORAGE", raising=False)
    rng = np.random.default_rng(3)
    names = [f"mol-{i:02d}" for i in range(N)]
    pd.DataFrame({"name": names, "mass": rng.uniform(50, 300, N), "id": np.arange(N) + 100}).to_csv(
        "mols.csv", index=False
    )
    np.save("fp.npy", rng.integers(0, 2, (N, 6)).astype(float))
    desc = pd.DataFrame(rng.standard_normal((N, 2)), columns=["logp", "tpsa"])
    desc.insert(0, "name", names)
    desc.sample(frac=1.0, random_state=1).to_csv("desc.csv", index=False)  # matched by name
    return tmp_path


def run(*arguments, code=0, **options):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], **options)
    assert result.exit_code == code, result.output
    return result.output


CREATE = ("create", "screen", "--candidates", "mols.csv", "--features", "fp=fp.npy", "--features", "desc=desc.csv",
          "--noise-std", "0.2", "--seed", "1")  # fmt: skip


def fill(path, value=lambda row: float(row["mass"]) / 300.0, order=slice(None, None, -1), only=None):
    """Write rewards into a plate, and leave the lines in another order, as labs do."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    for k, row in enumerate(rows):
        row["reward"] = repr(value(row)) if only is None or k in only else ""
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows[order])
    return rows


def test_a_study_from_files_to_files(lab):
    said = run(*CREATE)
    assert "24 candidates; 13 models of table (2 features), fp (6 features), desc (2 features)" in said
    assert "mass        number" in said
    desc = pd.read_csv("desc.csv", float_precision="round_trip").sort_values("name")[["logp", "tpsa"]].to_numpy()
    np.testing.assert_array_equal(load_study("screen").algorithm.features()[:, 8:], desc)
    assert "8 trials written to plate.csv" in run("ask", "screen", "-n", 8, "--out", "plate.csv")
    rows = fill("plate.csv")
    assert list(rows[0]) == ["trial", "name", "mass", "id", "reward"]
    assert len({row["name"] for row in rows}) == 8
    assert "told 8 rewards; 8 in all, 0 pending" in run("tell", "screen", "plate.csv")
    run("ask", "screen", "-n", 3, "--new", "--out", "second.csv")
    seen = {row["name"] for row in rows}
    assert not seen & {row["name"] for row in fill("second.csv", only=[1])}
    assert "told 1 rewards; 9 in all, 2 pending" in run("tell", "screen", "second.csv", "--partial")
    assert run("pending", "screen").splitlines()[0] == "trial,name,mass,id,reward"
    assert len(run("pending", "screen").splitlines()) == 3
    waiting = run("pending", "screen").splitlines()[1].split(",")[0]
    assert "1 pending" in run("abandon", "screen", waiting)
    status = run("status", "screen")
    assert "11 trials, 9 told, 1 pending, 1 abandoned" in status
    assert "best: mol-" in status
    assert re.search(r"^models: \w+.*: 0\.\d{3}; \w+.*: 0\.\d{3}", status, re.MULTILINE)
    pd.DataFrame({"name": ["mol-03"], "reward": [0.25]}).to_csv("old.csv", index=False)
    assert "added 1 observations; 10 rewards in all" in run("observe", "screen", "old.csv")
    assert "12 trials written" in run("export", "screen", "--out", "all.csv")
    exported = pd.read_csv("all.csv")
    assert exported["state"].value_counts().to_dict() == {"told": 9, "pending": 1, "abandoned": 1, "observed": 1}
    assert exported["reward"].notna().sum() == 10
    assert pd.to_datetime(exported["told_at"].dropna()).size == 10
    assert exported["name"].tolist()[-1] == "mol-03"
    run("report", "screen", "--out", "report.html")
    assert "mol-" in (lab / "report.html").read_text()
    assert "screen\tevidence-mixture" in run("list")
    assert "Delete study 'screen' with 12 trials" in run("delete", "screen", input="n\n", code=1)
    assert "screen" in run("list")
    assert "deleted" in run("delete", "screen", input="y\n")
    assert "no studies" in run("list")


def test_wrong_results_are_named_by_line_and_nothing_is_written(lab):
    run(*CREATE)
    run("ask", "screen", "-n", 6, "--out", "plate.csv")
    fill("plate.csv", order=slice(None))
    good = (lab / "plate.csv").read_text().splitlines()
    cells = [line.split(",") for line in good]

    def refused(*lines, says, options=()):
        (lab / "bad.csv").write_text("\n".join(lines) + "\n")
        output = run("tell", "screen", "bad.csv", *options, code=1)
        for text in says:
            assert text in output, output
        assert load_study("screen").counts["told"] == 0

    def changed(line, column, value):
        row = list(cells[line])
        row[column] = value
        return ",".join(row)

    refused(*good[:3], changed(3, 4, "n/a"), changed(4, 4, "nan"), *good[5:],
            says=["bad.csv, line 4: reward must be a number, or the word", "line 5: reward must be a number,",
                  "nothing was written"])  # fmt: skip
    refused(*good, changed(2, 4, "failed"), says=["line 3: trial 1 has rewards and the word 'failed' on lines 3, 8"])
    refused(*good[:-1], changed(6, 0, "77"), says=["line 7: there is no trial 77"])
    refused(*good[:-1], changed(6, 0, "x"), says=["line 7: trial must be a whole number"])
    refused(*good[:-1], changed(6, 4, ""), says=["line 7: reward is empty", "--partial"])
    refused(*good[:-1], changed(6, 1, "mol-99"), says=["line 7: this trial has name =", "but the line says 'mol-99'"])
    refused(*good[:-1], changed(6, 2, "1.5"), says=["line 7: this trial has mass ="])
    refused(*good[:-1], good[-1] + ",extra", says=["line 7: 6 cells, but the header has 5"])
    refused("a,b,reward", "1,2,3", says=["needs a column 'trial'"])
    refused("trial,reward", says=["header and at least one line"])
    refused("trial,reward", "0,", says=["holds no rewards"], options=["--partial"])
    assert "told 6" in run("tell", "screen", "plate.csv")
    assert "told 0 rewards, 6 already known; 6 in all" in run("tell", "screen", "plate.csv")


def test_spreadsheets_may_change_the_form(lab):
    """Semicolons, a byte order mark, CRLF, other columns, rounded numbers: what Excel makes of a file."""
    run(*CREATE)
    run("ask", "screen", "-n", 2, "--out", "plate.csv")
    rows = fill("plate.csv")
    text = "Trial;comment;mass;REWARD\r\n" + "".join(
        f"{row['trial']};fine, really;{float(row['mass']):.9g};0.5\r\n" for row in rows
    )
    (lab / "excel.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert "told 2" in run("tell", "screen", "excel.csv")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("--features", "other=missing.npy"), "missing.npy"),
        (("--features", "fp"), "--features must look like NAME=VALUE"),
        (("--features", "fp=desc.csv"), "distinct names"),
        (("--features", "short=short.csv"), "short.csv has 1 lines, and the table 24"),
        (("--features", "text=text.csv"), "text.csv has no column that tells candidates apart: 'logp' is left out"),
        (("--features", "objects=objects.npy"), "objects.npy"),
        (("--noise-std", "-1"), "noise_std must be positive"),
        (("--algorithm", "magic"), "algorithm must be one of"),
        (("--candidates", "reserved.csv"), "must not have a column 'reward'"),
        (("--setting", "speed=3"), "speed"),
    ],
)
def test_wrong_problems(lab, change, says):
    (lab / "short.csv").write_text("a\n1\n")
    (lab / "text.csv").write_text("logp\n" + "high\n" * N)
    (lab / "reserved.csv").write_text("name,reward\n" + "x,1\n" * N)
    np.save("objects.npy", np.array([{}] * N), allow_pickle=True)
    assert says in run(*CREATE, *change, code=1)
    assert "no studies" in run("list")


def test_files_are_not_overwritten_and_folders_must_exist(lab):
    run(*CREATE, "--repeats")
    (lab / "plate.csv").write_text("precious")
    assert "--force" in run("ask", "screen", "--out", "plate.csv", code=1)
    assert "does not exist" in run("ask", "screen", "--out", "nowhere/plate.csv", code=1)
    assert load_study("screen").counts["trials"] == 0
    run("ask", "screen", "--out", "plate.csv", "--force")
    assert "at most the 24 candidates" in run("ask", "screen", "-n", "25", code=1)
    assert run("ask", "screen", "-n", "25", "--repeats").count("\n") == 26


def test_unknown_study_and_labels_that_look_like_numbers(lab):
    assert "there is no study 'nobody'" in run("status", "nobody", code=1)
    (lab / "mols.csv").write_text("code\n" + "".join(f"{i:03d}\n" for i in range(N)))
    (lab / "desc.csv").write_text("code,v\n" + "".join(f"{i:03d},{i}\n" for i in reversed(range(N))))
    run(*CREATE)
    assert load_study("screen").algorithm.domain[7]["code"] == "007"
    assert load_study("screen").algorithm.features()[7, 6] == 7.0
    assert "old.csv, line 3: no candidate has {'code': '1'}" in _observed(lab, "code,reward\n001,1.0\n1,2.0\n")
    assert "old.csv, line 2: reward must be a number, got 'high'; correct it, or say what to read" in _observed(
        lab, "code,reward\n001,high\n"
    )
    assert load_study("screen").counts["trials"] == 0


def test_misspelt_columns_are_named(lab):
    run(*CREATE)
    assert "column 'nmae' of the observations is not known; did you mean 'name'?" in _observed(
        lab, "nmae,reward\na,1.0\n"
    )
    assert "needs a column 'reward'; did you mean 'rewards'?" in _observed(lab, "name,rewards\nmol-03,1.0\n")
    run("ask", "screen", "-n", 2, "--out", "plate.csv")
    fill("plate.csv")
    plate = (lab / "plate.csv").read_text()
    (lab / "plate.csv").write_text(plate.replace("mass", "mas", 1))
    assert "column 'mas' is not known; did you mean 'mass'? Nothing was written" in run(
        "tell", "screen", "plate.csv", code=1
    )
    noted = "\n".join(f"{line},{'note' if not k else 'cloudy'}" for k, line in enumerate(plate.splitlines()))
    (lab / "plate.csv").write_text(noted + "\n")
    assert "told 2 rewards" in run("tell", "screen", "plate.csv")


def _observed(lab, text):
    (lab / "old.csv").write_text(text)
    return run("observe", "screen", "old.csv", code=1)


def cells(path):
    with open(path, newline="") as file:
        return {row["trial"]: row for row in csv.DictReader(file)}


def write(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, next(iter(rows.values())))
        writer.writeheader()
        writer.writerows(rows.values())


def test_a_plate_that_comes_back_in_two_parts(lab):
    """What was told before is skipped and counted; what contradicts it is listed and needs --amend."""
    run(*CREATE)
    run("ask", "screen", "-n", 8, "--out", "plate.csv")
    fill("plate.csv", only=range(5))
    assert "told 5 rewards; 5 in all, 3 pending" in run("tell", "screen", "plate.csv", "--partial")
    rows = cells("plate.csv")
    for row in rows.values():
        row["reward"] = row["reward"] or "0.25"
    write("plate.csv", rows)
    assert "told 3 rewards, 5 already known; 8 in all, 0 pending" in run("tell", "screen", "plate.csv")
    stored = {trial: rows[trial]["reward"] for trial in ("1", "4")}
    rows["1"]["reward"], rows["4"]["reward"] = "0.125", "0.375"
    write("plate.csv", rows)
    output = run("tell", "screen", "plate.csv", code=1)
    for trial, now in (("1", "0.125"), ("4", "0.375")):
        says = (
            f"trial {trial} has the reward {stored[trial]}, the file says {now}; to take the one of the file: --amend"
        )
        assert says in output
    assert output.count("plate.csv, line") == 2
    assert "nothing was written" in output
    assert len(load_study("screen").events()) == 16
    assert "told 0 rewards, 6 already known, 2 amended; 8 in all" in run("tell", "screen", "plate.csv", "--amend")
    assert load_study("screen").algorithm.log.reward[1] == 0.125
    assert "told 0 rewards, 8 already known; 8 in all" in run("tell", "screen", "plate.csv", "--partial")


def test_amend_and_retract(lab):
    run(*CREATE)
    run("ask", "screen", "-n", 6, "--out", "plate.csv")
    fill("plate.csv", only=range(5))
    run("tell", "screen", "plate.csv", "--partial")
    before = load_study("screen").algorithm.log.reward[2]
    assert f"trial 2: {before} became -0.5" in run("amend", "screen", "#2", "-0.5")
    assert "retracted the reward of trial 2; 4 rewards are left" in run("retract", "screen", "2")
    assert "6 trials, 4 told, 1 pending, 1 abandoned" in run("status", "screen")
    run("export", "screen", "--out", "all.csv")
    exported = pd.read_csv("all.csv")
    assert exported["state"].tolist()[2] == "retracted"
    assert exported["told_at"].notna().sum() == exported["reward"].notna().sum() == 4
    assert "trial 2: no reward became 0.75" in run("amend", "screen", "2", "0.75")
    assert "trial 5 awaits its first reward" in run("amend", "screen", "5", "0.5", code=1)
    assert "there is no trial 9" in run("retract", "screen", "9", code=1)
    assert "a Trial or its id" in run("retract", "screen", "two", code=1)
    assert [event["kind"] for event in load_study("screen").events()][-3:] == ["amend", "retract", "amend"]


def test_the_story_of_7240_on_the_command_line(lab):
    """A typing error is asked about; told nevertheless and amended, the study stands as if it had been told right."""
    for name in ("screen", "right"):
        run("create", name, *CREATE[2:-4], "--seed", "1", "--intercept")  # nobody knows the noise
        run("ask", name, "-n", 8, "--out", f"{name}.csv")
        fill(f"{name}.csv", lambda row: round(0.2 * float(row["mass"]) + 20.0, 1))
    rows = cells("screen.csv")
    meant, rows["3"]["reward"] = rows["3"]["reward"], "7240"
    write("screen.csv", rows)
    output = run("tell", "screen", "screen.csv", code=1)
    assert "error: trial 3: a reward of 7240 is far outside the 7 seen so far" in output
    assert "nothing was written; if this is right, pass --yes" in output
    assert load_study("screen").counts["told"] == 0
    assert "told 8 rewards" in run("tell", "screen", "screen.csv", "--yes")
    run("tell", "right", "right.csv")
    wrong, right = load_study("screen"), load_study("right")
    assert wrong.best().value > 3.0 * right.best().value
    assert "trial 3: a reward of 8000 is far outside the 7" in run("amend", "screen", 3, 8000, code=1)
    assert "became 8000.0" in run("amend", "screen", 3, 8000, "--yes")
    assert f"trial 3: 8000.0 became {float(meant)}" in run("amend", "screen", 3, meant)
    assert np.array_equal(wrong.probabilities, right.probabilities)
    assert wrong.best().index == right.best().index
    assert wrong.best().value == right.best().value
    assert [trial.index for trial in wrong.ask(4)] == [trial.index for trial in right.ask(4)]


def test_strange_measurements_from_elsewhere_are_asked_about(lab):
    run(*CREATE)
    lines = [f"mol-{k:02d},{value}" for k, value in enumerate([40.5, 50, 60, 7240, 70, 80])]
    (lab / "old.csv").write_text("name,reward\n" + "\n".join(lines) + "\n")
    assert "old.csv, line 5: a reward of 7240 is far outside the 5" in run("observe", "screen", "old.csv", code=1)
    assert load_study("screen").counts["trials"] == 0
    assert "added 6 observations" in run("observe", "screen", "old.csv", "--yes")


def test_the_status_says_what_is_certified(lab):
    run(*CREATE, "--reward-bound", "1")
    assert "stopping" not in run("status", "screen")
    run("ask", "screen", "-n", 6, "--out", "plate.csv")
    fill("plate.csv")
    run("tell", "screen", "plate.csv")
    report = load_study("screen").stop_report()
    assert f"stopping: {report}" in run("status", "screen")


def test_a_study_without_rewards_is_exported(lab):
    run(*CREATE)
    run("export", "screen", "--out", "none.csv")
    assert len(pd.read_csv("none.csv")) == 0
    run("ask", "screen", "-n", "2")
    run("export", "screen", "--out", "asked.csv")
    assert pd.read_csv("asked.csv")["told_at"].isna().tolist() == [True, True]


STRANGE = [
    "=1+2",
    "+1",
    "-1+2",
    "@x",
    "\t=1",
    "'=1",
    "''=1",
    "'tis",
    "-5",
    " padded ",
    "a,b",
    "a;b",
    'a"b',
    "a\nb",
    "\r1",
]


def test_names_that_a_spreadsheet_would_run(tmp_path, monkeypatch):
    """A file of trials goes out with every name as text, and comes back with the names as they were."""
    import alexp
    from alexp.study.tables import export, plate, read_results, write_csv
    from alexp.table.files import lines_of

    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame({"=name": STRANGE, "@kind": STRANGE[::-1], "n": range(len(STRANGE))})
    models = alexp.ModelClass.from_matrices({"=m": np.eye(len(table)), "-m": np.ones((len(table), 1))})
    study = alexp.create_study(models, alexp.FiniteSet(table), name="s", random_state=0)
    write_csv(tmp_path / "plate.csv", plate(study, study.ask(len(table))))
    with open("plate.csv", newline="") as file:
        cells = [cell for line in csv.reader(file) for cell in line]
    assert all(cell[:1] not in tuple("=+-@\t\r") or cell in ("+1", "-5") for cell in cells)

    def frame(name):
        lines = lines_of((tmp_path / name).read_bytes(), name)
        found = pd.DataFrame([row for _, row in lines.rows], columns=lines.header)
        return found.set_index(found["n"].astype(int)).sort_index()

    again = frame("plate.csv")
    assert again["=name"].tolist() == STRANGE
    assert again["@kind"].tolist() == STRANGE[::-1]
    text = (tmp_path / "plate.csv").read_bytes().decode()
    with (tmp_path / "results.csv").open("w", newline="") as file:
        file.write(text.replace(",\n", ",1.0\n"))
    assert len(read_results(tmp_path / "results.csv", study)) == len(table)
    write_csv(tmp_path / "export.csv", export(study))
    assert frame("export.csv")["=name"].tolist() == STRANGE


def test_results_in_the_table_of_the_candidates(tmp_path, monkeypatch):
    """A file of its own kind: a title, decimal commas, results of some lines; read again when there are more."""
    monkeypatch.chdir(tmp_path)
    rows = ["Kampagne 3;;", "Probe;Konz.;Ausbeute", *(f"V{k};0,{k};" for k in range(1, 9))]
    rows[2], rows[3], rows[4] = "V1;0,1;42,5", "V2;0,2;17,25", "V2;0,2;17,25"
    path = tmp_path / "plan.csv"
    path.write_text("\n".join([*rows[:4], *rows[5:]]) + "\n")
    run("create", "k", "--candidates", "plan.csv", "--header", 2, "--ignore", "Ausbeute", "--direction", "minimize")
    observe = ("observe", "k", "plan.csv", "--header", 2, "--reward", "Ausbeute")
    assert "line 5: Ausbeute is empty" in (said := run(*observe, code=1))
    assert "--partial" in said
    assert "needs a column 'Yield'" in run(*observe[:-1], "Yield", code=1)
    assert "added 2 observations; 2 rewards in all" in run(*observe, "--partial")
    path.write_text("\n".join([*rows[:-1], "V8;0,8;60"]) + "\n")  # V2 has been measured twice
    assert "added 2 observations, 2 already known; 4 rewards in all" in run(*observe, "--partial")
    assert "added 0 observations, 4 already known; 4 rewards in all" in run(*observe, "--partial")
    log = load_study("k").algorithm.log
    assert sorted(zip(log.index, log.reward, strict=True)) == [(0, 42.5), (1, 17.25), (1, 17.25), (6, 60.0)]
    path.write_text("Probe;reward;Ausbeute\nV1;1;2\n")
    assert "has columns 'reward' and 'Ausbeute'" in run("observe", "k", "plan.csv", "--reward", "Ausbeute", code=1)


def test_leases_on_the_command_line(lab):
    run(*CREATE, "--expired", "offer")
    env = {"ALEXP_WORKER": "bench-1"}
    run("ask", "screen", "-n", "2", "--lease", "8h", "--out", "a.csv", env=env)
    said = run("pending", "screen", "--workers")
    assert [line.split("  ")[0] for line in said.splitlines()] == ["0", "1"]
    assert said.count("bench-1") == said.count("lease has 8.0 h left") == 2
    assert "prolonged 2 leases" in run("heartbeat", "screen", "0", "1", "--lease", "3d", "--worker", "bench-1")
    assert "lease has 3.0 d left" in run("pending", "screen", "--workers")
    assert "is held by worker 'bench-1', and this is 'other'" in run(
        "heartbeat", "screen", "0", "--worker", "other", code=1
    )
    assert run("take-over", "screen") == "trial,name,mass,id,reward\n"
    assert "held by worker 'bench-1' for another" in run("take-over", "screen", "1", code=1)
    run("ask", "screen", "--lease", "0.01", "--worker", "gone")
    assert len(run("take-over", "screen", "--worker", "bench-2", "--lease", "90s").splitlines()) == 2
    assert "bench-2" in run("pending", "screen", "--workers")
    assert len(run("pending", "screen").splitlines()) == 4
    for wrong in ("0", "-1", "1w", "x", "1e9d"):
        assert "seconds" in run("ask", "screen", "--lease", wrong, code=2)
    assert "expired" in run(*CREATE[:1], "other", *CREATE[2:], "--expired", "forget", code=2)


# -- files as laboratories write them --------------------------------------------------------------------------


def test_a_study_needs_candidates_only_and_says_what_it_understood(lab):
    lines = [
        "Nr;Lösungsmittel;T (°C);Anteil",
        *(f"r{k};{'DMF' if k % 2 else 'Wasser'};{60 + k};{k},5 %" for k in range(8)),
    ]
    (lab / "reactions.csv").write_text("\n".join(lines), encoding="latin-1")
    said = run("create", "first", "--candidates", "reactions.csv", "--preview")
    assert "reactions.csv, text in Windows-1252, separated by semicolons: 8 candidates" in said
    assert "Anteil         number  0,5 %    a number from 0.5 to 7.5 %; decimal commas" in said
    assert "no studies" in run("list")
    assert "created 'first'" in run("create", "first", "--candidates", "reactions.csv", "--seed", "1")
    algorithm = load_study("first").algorithm
    assert (algorithm.repeats, algorithm.goal) == (False, "best")
    assert algorithm.models.names[0].startswith("product")
    assert algorithm.domain[3]["Anteil"] == 3.5
    run("create", "second", "--candidates", "reactions.csv", "--kind", "Lösungsmittel=label", "--ignore", "Anteil")
    assert load_study("second").algorithm.models.names[0] == "table: linear"


def test_rewards_with_decimal_commas_and_from_workbooks(lab):
    import openpyxl

    run(*CREATE)
    run("ask", "screen", "-n", 6, "--out", "plate.csv")
    rows = list(cells("plate.csv").values())
    lines = ["trial;reward", *(f"{row['trial']};{k},25 %" for k, row in enumerate(rows[:3]))]
    (lab / "results.csv").write_text("\n".join(lines))
    assert "told 3 rewards" in run("tell", "screen", "results.csv", "--yes")
    assert load_study("screen").algorithm.log.reward[2] == 2.25
    book = openpyxl.Workbook()
    book.active.append(["trial", "name", "reward"])
    for row in rows[3:]:
        book.active.append([int(row["trial"]), row["name"], 1.125])
    book.save("results.xlsx")
    assert "told 3 rewards; 6 in all" in run("tell", "screen", "results.xlsx")
    (lab / "doubt.csv").write_text("trial;reward\n0;1,234\n")
    assert "doubt.csv, line 2, column 'reward': '1,234' may be 1.234 or 1234.0" in run(
        "tell", "screen", "doubt.csv", code=1
    )
    assert "the file says 1.234" in run("tell", "screen", "doubt.csv", "--decimal", ",", code=1)


def test_observe_names_the_line_and_takes_what_export_wrote(lab):
    run(*CREATE)
    assert "old.csv, line 3: reward is empty" in _observed(lab, "name,reward\nmol-01,12.9\nmol-02,\nmol-03,1.0\n")
    assert "old.csv, line 4: reward must be a number, got 'tar'" in _observed(
        lab, "name,reward\nmol-01,12.9\n\nmol-02,tar\n"
    )
    run("ask", "screen", "-n", 4, "--out", "plate.csv")
    fill("plate.csv", only=[0, 1])
    run("tell", "screen", "plate.csv", "--partial")
    run("abandon", "screen", "2")
    run("export", "screen", "--out", "all.csv")
    again = ("create", "again", *CREATE[2:])
    run(*again)
    with pytest.warns(UserWarning, match=r"all.csv: .* without a reward are left out \(1 abandoned, 1 pending\)"):
        assert "added 2 observations; 2 rewards in all" in run("observe", "again", "all.csv")
    rewards = load_study("screen").algorithm.log.reward
    assert sorted(load_study("again").algorithm.log.reward) == sorted(r for r in rewards if r == r)
