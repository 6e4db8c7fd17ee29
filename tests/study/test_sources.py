"""Results of a file are recognised when it is read again, grown or corrected; equal results of other files are new."""

import random

import pytest
from typer.testing import CliRunner

import alexp
from alexp.cli.study import app
from alexp.study import load_study

NAMES = [f"V{k}" for k in range(12)]


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def lab(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ALEXP_STORAGE", raising=False)
    (tmp_path / "plan.csv").write_text("\n".join(["name,x", *(f"{name},{k}" for k, name in enumerate(NAMES))]) + "\n")
    run("create", "s", "--candidates", "plan.csv", "--seed", 0)
    return tmp_path


def observe(lab, lines, name="results.csv", *options, code=0):
    path = lab / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(["name,reward", *lines]) + "\n")
    return run("observe", "s", path, *options, code=code)


def measured():
    log = load_study("s").algorithm.log
    return sorted(
        (NAMES[index], reward) for index, reward in zip(log.index, log.reward, strict=True) if reward == reward
    )


def test_equal_results_are_replicates_and_a_file_counts_once(lab):
    twice = ["V1,50", "V2,60", "V1,50", "V3,0"]
    assert "added 4 observations; 4 rewards" in observe(lab, twice)
    assert "added 0 observations, 4 already known; 4 rewards" in observe(lab, twice)
    assert "added 3 observations; 7 rewards" in observe(lab, ["V1,50", "V3,0", "V4,1"], "tuesday.csv")
    assert "added 0 observations, 3 already known" in observe(lab, ["V1,50", "V3,0", "V4,1"], "tuesday.csv")
    assert "added 0 observations, 4 already known" in observe(lab, twice, "results (1).csv"), "a copy"
    assert "added 0 observations, 7 already known" in observe(lab, [*twice, "V1,50", "V3,0", "V4,1"], "week.csv"), (
        "both together"
    )
    assert measured() == [("V1", 50), ("V1", 50), ("V1", 50), ("V2", 60), ("V3", 0), ("V3", 0), ("V4", 1)]


def test_one_result_is_known_by_the_name_of_its_file(lab):
    assert "added 1 observations; 1 rewards" in observe(lab, ["V1,50"], "monday.csv")
    assert "added 1 observations; 2 rewards" in observe(lab, ["V1,50"], "tuesday.csv")
    for name in ("monday.csv", "tuesday.csv"):
        assert "added 0 observations, 1 already known" in observe(lab, ["V1,50"], name)
    assert "added 1 observations, 1 already known" in observe(lab, ["V1,50", "V1,50"], "tuesday.csv")


def test_a_file_that_grows_at_its_end_or_in_the_middle(lab):
    rng, lines, n = random.Random(3), ["V0,1", "V1,1", "V2,1"], 3
    observe(lab, lines)
    for _ in range(12):
        new = [f"V{rng.randrange(12)},{rng.choice([0, 1, 1, 2])}" for _ in range(rng.randrange(1, 4))]
        for one in new:
            lines.insert(rng.randrange(len(lines) + 1), one)
        n += len(new)
        assert f"added {len(new)} observations, {n - len(new)} already known; {n} rewards" in observe(lab, lines)
        assert f"added 0 observations, {n} already known" in observe(lab, lines)
    assert measured() == sorted((line.split(",")[0], float(line.split(",")[1])) for line in lines)


def test_files_of_one_name_in_many_folders(lab):
    monday, tuesday = ["V1,50", "V2,60", "V3,0"], ["V3,0", "V4,0", "V5,70"]
    assert "added 3 observations; 3" in observe(lab, monday, "monday/results.csv")
    assert "added 3 observations; 6" in observe(lab, tuesday, "tuesday/results.csv")
    assert "added 0" in observe(lab, monday, "monday/results.csv")
    assert "added 0" in observe(lab, tuesday, "tuesday/results.csv")


def test_again_counts_all_as_new(lab):
    lines = ["V1,50", "V2,60"]
    observe(lab, lines)
    assert "added 2 observations; 4 rewards" in observe(lab, lines, "results.csv", "--again")
    assert "added 2 observations; 6 rewards" in observe(lab, lines, "results.csv", "--again")
    assert "added 0 observations, 2 already known; 6" in observe(lab, lines)
    assert "added 1 observations, 2 already known; 7" in observe(lab, [*lines, "V3,1"])


def test_a_result_that_was_corrected_in_its_file(lab):
    lines = ["V1,50", "V2,60", "V3,72.4"]
    observe(lab, lines)
    before = load_study("s").events()
    said = observe(lab, ["V1,50", "V2,60", "V3,27.4", "V4,1"], code=1)
    assert "line 4: V3, 3 had the result 72.4 (trial 2) when the file was read before, and now has 27.4; " in said
    assert "--amend; if it was measured again, keep both lines" in said
    assert "nothing was written" in said
    assert load_study("s").events() == before
    right = ["V1,50", "V2,60", "V3,27.4", "V4,1"]
    assert "added 1 observations, 2 already known, 1 amended; 4" in observe(lab, right, "results.csv", "--amend")
    assert "added 0 observations, 4 already known; 4" in observe(lab, right)
    assert "added 0 observations, 3 already known; 4" in observe(lab, lines), "the old file, from a backup"
    assert measured() == [("V1", 50), ("V2", 60), ("V3", 27.4), ("V4", 1)]
    assert "added 1 observations, 4 already known; 5" in observe(lab, [*right, "V3,30"]), "measured again"


def test_what_was_amended_or_retracted_in_the_study_stays_so(lab):
    lines = ["V1,50", "V2,60", "V3,72.4"]
    observe(lab, lines)
    run("amend", "s", 2, "27.4")
    run("retract", "s", 0)
    assert "added 0 observations, 3 already known; 2" in observe(lab, lines)
    assert measured() == [("V2", 60), ("V3", 27.4)]


def test_told_results_are_known_in_the_file_that_has_them_all(lab):
    run("ask", "s", "-n", 4, "--out", "plate.csv")
    plate = (lab / "plate.csv").read_text().splitlines()
    (lab / "filled.csv").write_text("\n".join([plate[0], *(f"{line}{k}" for k, line in enumerate(plate[1:]))]) + "\n")
    run("tell", "s", "filled.csv")
    assert "added 0 observations, 4 already known" in run("observe", "s", "filled.csv")
    told = [f"{line.split(',')[1]},{k}" for k, line in enumerate(plate[1:])]
    assert "added 1 observations, 4 already known; 5" in observe(lab, [*told, "V0,33"], "all.csv")
    assert "added 1 observations; 6" in observe(lab, told[:1], "replicates.csv"), "one of four: measured again"


def test_the_same_file_from_two_processes(lab):
    """Both find it new; one of them stores it."""
    lines = [(1, 50.0), (2, 60.0), (1, 50.0)]
    import pandas as pd

    frame = pd.DataFrame({"index": [1, 2, 1], "reward": [50.0, 60.0, 50.0]})
    one, two = load_study("s"), load_study("s")
    found = [study.new_results("results.csv", lines) for study in (one, two)]
    assert found[0] == found[1]
    for study, new in zip((one, two), found, strict=True):
        study.add_observations(frame.iloc[new.positions], key=new.key)
    assert load_study("s").counts["told"] == 3
    assert not one.new_results("results.csv", lines).positions


def test_results_that_were_added_without_a_file(lab):
    """As by the library before 1.1: what came in together is known again, whatever its name."""
    import pandas as pd

    with load_study("s") as study:
        study.add_observations(pd.DataFrame({"index": [1, 2, 1], "reward": [50.0, 60.0, 50.0]}))
        study.observe(4, 5.0)
    assert "added 1 observations, 4 already known; 5" in observe(lab, ["V1,50", "V2,60", "V1,50", "V4,5", "V5,5"])
    assert "added 0 observations, 5 already known" in observe(lab, ["V1,50", "V2,60", "V1,50", "V4,5", "V5,5"])


def test_results_of_the_table_itself(lab):
    """Results that the study began with are known in the file that they came from."""
    (lab / "plan.csv").write_text("name,x,yield\nA,1,5\nB,2,6\nC,3,\nD,4,\n")
    alexp.create_study(alexp.Table.read("plan.csv", reward="yield"), name="t", random_state=0).close()
    (lab / "plan.csv").write_text("name,x,yield\nA,1,5\nB,2,6\nC,3,5\nD,4,\n")
    assert "added 1 observations, 2 already known; 3" in run("observe", "t", "plan.csv", "--partial")
    assert "added 0 observations, 3 already known; 3" in run("observe", "t", "plan.csv", "--partial")
