"""`alexp study` from files to files; what is wrong is said with its line, and then nothing is written."""

import csv

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from alexp.commands.study import app
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
    assert "24 candidates; models fp (6 features), desc (2 features)" in run(*CREATE)
    desc = pd.read_csv("desc.csv", float_precision="round_trip").sort_values("name")[["logp", "tpsa"]].to_numpy()
    np.testing.assert_array_equal(load_study("screen").algorithm.features()[:, 6:], desc)
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
    assert "models: " in status
    pd.DataFrame({"name": ["mol-03"], "reward": [0.25]}).to_csv("old.csv", index=False)
    assert "added 1 observations; 10 rewards in all" in run("observe", "screen", "old.csv")
    assert "12 trials written" in run("export", "screen", "--out", "all.csv")
    exported = pd.read_csv("all.csv")
    assert exported["state"].value_counts().to_dict() == {"told": 9, "pending": 1, "abandoned": 1, "observed": 1}
    assert exported["reward"].notna().sum() == 10
    assert exported["told_at"].notna().sum() == 10
    assert exported["name"].tolist()[-1] == "mol-03"
    run("report", "screen", "--out", "report.html")
    assert "mol-" in (lab / "report.html").read_text()
    assert "screen\talexp" in run("list")
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
            says=["bad.csv, line 4: reward must be a number, got 'n/a'", "line 5: reward must be finite",
                  "nothing was written"])  # fmt: skip
    refused(*good, good[2], says=["bad.csv, line 8: trial 1 was on line 3 already"])
    refused(*good[:-1], changed(6, 0, "77"), says=["line 7: there is no trial 77"])
    refused(*good[:-1], changed(6, 0, "x"), says=["line 7: trial must be a whole number"])
    refused(*good[:-1], changed(6, 4, ""), says=["line 7: reward is empty", "--partial"])
    refused(*good[:-1], changed(6, 1, "mol-99"), says=["line 7: this trial has name =", "but the line says 'mol-99'"])
    refused(*good[:-1], changed(6, 2, "1.5"), says=["line 7: this trial has mass ="])
    refused(*good[:-1], good[-1] + ",extra", says=["line 7: 6 cells, but the header has 5"])
    refused("a,b", "1,2", says=["needs a column 'trial'"])
    refused("trial,reward", says=["header and at least one line"])
    refused("trial,reward", "0,", says=["holds no rewards"], options=["--partial"])
    assert "told 6" in run("tell", "screen", "plate.csv")
    assert "line 2: trial 0 already has the reward" in run("tell", "screen", "plate.csv", code=1)


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
        (("--features", "short=short.csv"), "short.csv has 1 lines, but there are 24 candidates"),
        (("--features", "text=text.csv"), "text.csv, line 2: 'logp' must be a finite number, got 'high'"),
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
    run(*CREATE, "--setting", "repeats=true")
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
    assert "reward in old.csv, line 2" in _observed(lab, "code,reward\n001,high\n")
    assert load_study("screen").counts["trials"] == 0


def _observed(lab, text):
    (lab / "old.csv").write_text(text)
    return run("observe", "screen", "old.csv", code=1)
