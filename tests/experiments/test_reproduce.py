import csv

import pytest
from typer.testing import CliRunner

from alexp.cli import app
from alexp.experiments.core.cache import ResultCache
from alexp.experiments.core.runner import sweep
from alexp.experiments.paper.reproduce import STEMS, check_figures, reproduce
from alexp.experiments.paper.results import FIGURES, Scope, needed_runs
from alexp.experiments.paper.tuning import CORRAL_RATES, LAMBDAS, RATES, Grid

TINY = Scope(
    seeds=(0, 1),
    beyond=(31,),
    grid=Grid(
        LAMBDAS[::10], RATES[:2], (2, 6), CORRAL_RATES[:1], (10_000, 10_001), ("easy", "hard-meant", "large"),
        shrink={"steps": 12, "resolution": 40},
    ),
)  # fmt: skip


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
    return out, runs, reproduce([], TINY, out, runs)


def test_every_figure_has_its_picture_its_drawing_and_its_data(made):
    out, _, written = made
    expected = {out / "figures" / f"{stem}.{kind}" for stem in STEMS.values() for kind in ("png", "svg", "csv")}
    assert set(written) == expected | {out / "reproduction.md"}
    assert all(path.stat().st_size > 200 for path in written)
    with open(out / "figures" / f"{STEMS['2']}.csv") as file:
        rows = list(csv.DictReader(file))
    assert {row["method"] for row in rows} == {"alexp", "oracle", "naive", "etc", "ets", "corral"}
    assert len(rows) == 6 * 12


def test_the_report_has_a_verdict_for_every_claim_and_shows_every_figure(made):
    out, _, _ = made
    text = (out / "reproduction.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ") and "**" in line]
    assert len(rows) == 15
    assert all(any(f"**{v}**" in row for v in ("holds", "holds partly", "does not hold")) for row in rows)
    assert all(f"figures/{stem}.png" in text and f"figures/{stem}.csv" in text for stem in STEMS.values())
    assert "nan" not in text


def test_a_second_call_runs_and_draws_nothing(made):
    out, runs, written = made
    assert runs.missing > 100
    before = {path: path.stat().st_mtime_ns for path in written if path.suffix != ".md"}
    runs.missing = 0
    assert reproduce([], TINY, out, runs) == written
    assert runs.missing == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_one_figure_needs_its_own_runs_only(tmp_path):
    runs = Counting(tmp_path / "cache")
    written = reproduce(["5"], TINY, tmp_path, runs)
    assert [path.name for path in written] == [f"{STEMS['5']}.{kind}" for kind in ("png", "svg", "csv")]
    assert runs.missing == 0
    assert needed_runs(["4"], TINY) == [("large", "alexp"), ("large", "corral")]
    assert len(needed_runs(FIGURES, TINY)) == len(set(needed_runs(FIGURES, TINY)))


def test_retuning_stores_its_choice(tmp_path):
    runs = Counting(tmp_path / "cache")
    reproduce(["2"], TINY, tmp_path, runs, retune=tmp_path / "tuned.json")
    assert '"lambda_0"' in (tmp_path / "tuned.json").read_text()


def test_figure_names():
    assert check_figures([]) == FIGURES
    with pytest.raises(ValueError, match="no figure '8'; the figures are 1, 2, 3, 4, 5, 6, 7"):
        check_figures(["1", "8"])


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], terminal_width=200)


def test_run_prints_a_table_and_draws(tmp_path):
    what = ["--scenario", "easy", "--algorithms", "oracle,naive", "--seeds", 2, "--steps", 8, "--workers", 1]
    result = invoke("run", *what, "--cache", tmp_path / "cache", "--plot", tmp_path / "out.png")
    assert result.exit_code == 0, result.output
    assert "oracle" in result.output
    assert "naive" in result.output
    assert (tmp_path / "out.png").stat().st_size > 1000


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
