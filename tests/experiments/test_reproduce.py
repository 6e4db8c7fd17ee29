import csv
import re
import sys
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from alexp.cli import app
from alexp_experiments.core import runner
from alexp_experiments.core.cache import ResultCache
from alexp_experiments.core.runner import sweep
from alexp_experiments.paper.pages import stem, write_beyond
from alexp_experiments.paper.reproduce import DRAW, check_figures, reproduce
from alexp_experiments.paper.results import FIGURES, Scope, collect, needed_runs
from alexp_experiments.paper.tuning import (
    LENGTHENED,
    LONGER,
    MAIN_SCENARIOS,
    MIXTURES,
    PAPER,
    Grid,
    load_tuned,
    stored_rows,
    task_of,
)

TINY = Scope(
    seeds=(0, 1),
    far=(31,),
    grid=Grid(2, 2, (10_000, 10_001), MAIN_SCENARIOS, shrink={"steps": 12, "resolution": 40}),
)
BEYOND = replace(TINY, beyond=True)
STEMS = {name: stem(name) for name in FIGURES}


class Counting:
    """A sweep that counts the tasks it is given and runs them in this process."""

    def __init__(self, folder):
        self.folder, self.missing = folder, 0

    def __call__(self, tasks, title):
        store = ResultCache(self.folder)
        self.missing += len({task.key for task in tasks if store.get(task) is None})
        return sweep(tasks, workers=1, cache=store, progress=False)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduction")
    runs = Counting(out / "cache")
    return out, runs, reproduce([], TINY, out, runs, out / "sweep.csv")


def rows_of(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def test_every_figure_has_its_picture_its_drawing_and_its_data(made):
    out, _, written = made
    expected = {out / "figures" / f"{stem}.{kind}" for stem in STEMS.values() for kind in ("png", "svg", "csv")}
    pages = ("reproduction.md", "reproduction-claims.csv", "reproduction-regret.csv")
    assert set(written) == expected | {out / name for name in pages}
    assert all(path.stat().st_size > 200 for path in written)
    rows = rows_of(out / "figures" / f"{STEMS['2']}.csv")
    assert {row["method"] for row in rows} == set(PAPER)
    assert len(rows) == 6 * 12


def test_the_report_has_a_verdict_for_every_claim_and_shows_every_figure(made):
    out, _, _ = made
    text = (out / "reproduction.md").read_text()
    rows = [line for line in text.splitlines() if re.match(r"\| \d+ \|", line)]
    assert len(rows) == 15
    verdicts = ("holds", "holds partly", "not shown", "does not hold")
    assert all(any(f"**{v}**" in row for v in verdicts) for row in rows)
    assert all(row.split("|")[4].strip() in verdicts for row in rows[:7])  # with widths chosen as well
    assert all(f"figures/{stem}.png" in text for stem in STEMS.values())
    assert all((out / "figures" / f"{stem}.csv").exists() for stem in STEMS.values())
    assert "on 2 new seeds" in text
    assert "Seeds 0 to 1," in text
    assert "Seeds 10000 to 10001:" in text
    told = rows_of(out / "reproduction-claims.csv")
    assert {row["claim"] for row in told} == {str(k) for k in range(1, 16)}
    assert all(row["rule"] and row["evidence"] for row in told)
    assert {row["width"] for row in told if row["claim"] == "4"} == {"as printed", "tuned"}
    assert "nan" not in text


def test_what_is_chosen_is_what_is_used_and_what_is_said(made):
    """Figures, the table of regrets and the claim on transfers come from one sweep."""
    out, _, _ = made
    rows = rows_of(out / "reproduction-regret.csv")
    printed = [row for row in rows if (row["method"], row["width"]) == ("ALExp", "as printed")]
    used = {row["problem"]: row["constants"] for row in printed}
    evidence = " ".join(row["evidence"] for row in rows_of(out / "reproduction-claims.csv"))
    for row in rows_of(out / "sweep.csv"):
        if (row["method"], row["stage"]) == ("alexp", "grid"):
            gamma, eta = float(row["gamma"]), float(row["eta"])
            said = used[row["scenario"]] == f"gamma_0 = {gamma:.3g}, eta_0 = {eta:.3g}"
            best = f"best on {row['scenario']} (gamma_0 = {gamma:.2g}, eta_0 = {eta:.2g})" in evidence
            assert said == best == (row["chosen"] == "1")


def test_the_stored_sweep_saves_the_tuning(tmp_path):
    runs = Counting(tmp_path)
    results = collect(("2", "7"), Scope(seeds=(0,), grid=TINY.grid), runs, stored=True)
    assert runs.missing == len(needed_runs(["2"], TINY)), "the six methods on the large class, nothing else"
    assert len(results.attempts) == len(stored_rows())
    one, row = results.attempts[0], stored_rows()[0]
    assert one.regret.mean == float(row["mean"])
    assert one.regret.high == pytest.approx(one.regret.mean + 2.0930 * one.regret.error, rel=1e-4), (
        "Student's t, 20 seeds"
    )
    assert results.tuned == load_tuned()


def test_longer_runs_begin_as_the_short_ones_and_use_their_constants():
    scope = TINY
    name = f"large{LONGER}"
    assert scope.scenario(name).steps == LENGTHENED * scope.scenario("large").steps
    tuned = load_tuned()
    assert tuned.values("alexp", name) == tuned.values("alexp", "large") != {}
    short, long = (
        runner.run_task(task_of("alexp", tuned.values("alexp", one), scope.scenario(one), 3)) for one in ("large", name)
    )
    assert (long.regret[: short.regret.size] == short.regret).all()


def test_a_second_call_runs_and_draws_nothing(made):
    out, runs, written = made
    assert runs.missing > 100
    before = {path: path.stat().st_mtime_ns for path in written if path.parent.name == "figures"}
    runs.missing = 0
    assert reproduce([], TINY, out, runs) == written
    assert runs.missing == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_beyond_the_paper_the_mixture_is_in_every_figure(made):
    out, runs, _ = made
    runs.missing = 0
    results = collect(FIGURES, BEYOND, runs)
    wanted = [pair for pair in needed_runs(FIGURES, BEYOND) if pair[1] in MIXTURES and pair[0] != "scaling-10"]
    tuning = len(MAIN_SCENARIOS) * len(MIXTURES)
    assert runs.missing == 2 * (len(wanted) + tuning)  # scaling-10 is the easy problem; the first set is not run again
    wide = task_of("naive", results.tuned.values("naive", "large", wide=True), BEYOND.scenario("large"), 1)
    assert (results.wide_runs["large", "naive"][1].regret == runner.run_task(wide).regret).all()
    for name in FIGURES:
        _, data = DRAW[name](results)
        who = " ".join(str(value) for key in ("method", "what") if key in data for value in data[key].unique())
        assert "mixture" in who, name
        assert "alexp" in who, name
    text = write_beyond(results, out)[0].read_text()
    assert "nan" not in text
    assert text.count("| EvidenceMixture (noise not given) |") == 3, "regret, larger M, longer runs"
    assert "| ALExp, tuned |" in text
    assert "seeds (0 to 1)" in text
    assert all(f"figures/{stem(name, beyond=True)}." in text for name in FIGURES)


def test_the_second_set_has_names_of_its_own(made):
    out, runs, first = made
    written = reproduce(["2"], BEYOND, out, runs)
    assert [path.name for path in written] == [f"{stem('2', beyond=True)}.{kind}" for kind in ("png", "svg", "csv")]
    assert not set(written) & set(first)


def test_one_figure_needs_its_own_runs_only(tmp_path):
    runs = Counting(tmp_path / "cache")
    written = reproduce(["5"], TINY, tmp_path, runs)
    assert [path.name for path in written] == [f"{STEMS['5']}.{kind}" for kind in ("png", "svg", "csv")]
    assert runs.missing == 0
    assert needed_runs(["4"], TINY) == [("large", "alexp"), ("large", "corral")]
    assert len(needed_runs(FIGURES, TINY)) == len(set(needed_runs(FIGURES, TINY)))


def test_what_was_interrupted_goes_on(tmp_path, monkeypatch):
    """Stopped at the fifth of twelve runs, and then again: only what was missing is run, to the same figure."""
    played, real = [], runner.run_task

    def play(task):
        if len(played) == 5:
            raise KeyboardInterrupt
        played.append(task.key)
        return real(task)

    monkeypatch.setattr(runner, "run_task", play)
    with pytest.raises(KeyboardInterrupt):
        reproduce(["2"], TINY, tmp_path, Counting(tmp_path / "cache"))
    assert not (tmp_path / "figures").exists()
    monkeypatch.setattr(runner, "run_task", real)
    again = Counting(tmp_path / "cache")
    reproduce(["2"], TINY, tmp_path, again)
    assert again.missing == 12 - 5
    reproduce(["2"], TINY, tmp_path / "whole", Counting(tmp_path / "other"))
    name = f"figures/{STEMS['2']}.csv"
    assert (tmp_path / name).read_text() == (tmp_path / "whole" / name).read_text()


def test_figure_names():
    assert check_figures([]) == FIGURES
    with pytest.raises(ValueError, match="no figure '9'; the figures are 1, 2, 3, 4, 5, 6, 7, 8"):
        check_figures(["1", "9"])


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], terminal_width=200)


def test_run_prints_a_table_and_draws(tmp_path):
    what = ["--scenario", "easy", "--algorithms", "oracle,naive", "--seeds", 2, "--steps", 8, "--workers", 1]
    result = invoke("run", *what, "--cache", tmp_path / "cache", "--plot", tmp_path / "out.png")
    assert result.exit_code == 0, result.output
    assert "oracle" in result.output
    assert "naive" in result.output
    assert (tmp_path / "out.png").stat().st_size > 1000


def test_an_algorithm_of_ones_own_is_found_in_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "mine_here.py").write_text(
        "from alexp import UniformRandom\n\n\nclass Mine(UniformRandom):\n    pass\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [entry for entry in sys.path if entry])
    what = ["--scenario", "easy", "--seeds", 2, "--steps", 5, "--workers", 1, "--cache", tmp_path / "cache"]
    result = invoke("run", "--algorithms", "mine_here:Mine", *what)
    assert result.exit_code == 0, result.output
    assert "mine" in result.output
    missing = invoke("run", "--algorithms", "not_here:Mine", *what)
    assert missing.exit_code == 2
    assert "run this in the folder of not_here.py, or install it" in " ".join(missing.output.replace("│", " ").split())
    wrong = invoke("run", "--algorithms", "mine_here:Other", *what)
    assert wrong.exit_code == 2
    assert "must have a subclass of alexp.Algorithm called Other" in " ".join(wrong.output.replace("│", " ").split())


def test_reproduce_on_the_command_line(tmp_path):
    result = invoke("reproduce", "5", "--quick", "--out", tmp_path, "--cache", tmp_path / "cache")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "figures" / f"{STEMS['5']}.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "--scenario", "esay"), ("no scenario 'esay'", "hard-meant")),
        (("run", "--algorithms", "alexp,corall"), ("no algorithm 'corall'", "corral-own")),
        (("run", "--algorithms", ","), ("at least one",)),
        (("reproduce", "0"), ("no figure '0'", "1, 2, 3")),
    ],
)
def test_wrong_names_are_explained(arguments, words):
    result = invoke(*arguments)
    assert result.exit_code == 2
    shown = " ".join(result.output.replace("│", " ").split())
    assert all(word in shown for word in words)
