import json
from math import comb
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from alexp_experiments.bench import suite
from alexp_experiments.bench.floor import bench_floor, multiply_adds_per_pair
from alexp_experiments.bench.page import COLUMNS, PROSE, TARGETS, draw, grid, markdown, table, verdicts
from alexp_experiments.bench.problems import LegendreProblem, Player
from alexp_experiments.bench.records import FIELDS, record
from alexp_experiments.bench.scale import AXES
from alexp_experiments.bench.startup import bench_startup
from alexp_experiments.bench.step import CASES, PARTS, PartTimer, bench_growth, bench_step, exponent, measure_steps
from alexp_experiments.bench.suite import run_benchmarks
from alexp_experiments.bench.worker import bench_memory, log_mb


def check_shape(records, benchmark):
    assert records
    for row in records:
        assert tuple(row)[: len(FIELDS)] == FIELDS
        assert row["benchmark"] == benchmark
        assert all(value is None or isinstance(value, str | int | float | bool) for value in row.values())
    assert len({(row["instance"], row["subject"]) for row in records}) == len(records)
    assert json.loads(json.dumps(records)) == records


def test_problems_have_the_sizes_they_are_listed_for():
    assert [case.problem.n_models for case in CASES] == [55, 165, 4495, 35990, 1004731]
    assert Player.of(LegendreProblem(5, 3, 50)).algorithm.models.n_models == comb(6, 3)


def test_step_records_split_the_whole_step():
    records = bench_step(quick=True)
    check_shape(records, "step")
    for instance in {row["instance"] for row in records}:
        rows = {row["subject"]: row for row in records if row["instance"] == instance}
        assert set(rows) == {"step", *PARTS, "rest"}
        assert sum(rows[part]["path_s"] for part in (*PARTS, "rest")) == pytest.approx(rows["step"]["path_s"])
        assert all(rows[part]["median_ms"] > 0.0 for part in rows)


def test_timing_the_parts_changes_nothing_and_sees_every_call():
    timed, plain = (Player.of(LegendreProblem(5, 2, 60)) for _ in range(2))
    timer = PartTimer(timed)
    for _ in range(12):
        timed.step()
        plain.step()
        spent = timer.take()
        assert set(spent) == set(PARTS)
        assert spent["sweep"].wall > 0.0
    assert timed.algorithm.log.index == plain.algorithm.log.index
    assert timed.algorithm.log.propensity == plain.algorithm.log.propensity
    assert timer.take()["sweep"].wall == 0.0


def test_observing_gets_to_a_later_round_without_asking():
    player = Player.of(LegendreProblem(4, 2, 40))
    player.observe(30)
    assert player.algorithm.n_told == 30
    laps = measure_steps(player, 4)
    assert {len(own) for own in laps.values()} == {4}
    assert player.algorithm.n_told == 35


def test_growth_records_points_and_exponents():
    records = bench_growth(quick=True)
    check_shape(records, "growth")
    fitted = [row for row in records if "exponent" in row]
    assert {row["axis"] for row in fitted} == {"M", "N", "t", "d"}
    for row in fitted:
        points = [r for r in records if r["axis"] == row["axis"] and r["subject"] == row["subject"] and "value" in r]
        expected = exponent([r["value"] for r in points], [r["median_ms"] for r in points])
        assert row["exponent"] == pytest.approx(expected)
    assert exponent([1, 10, 100], [2.0, 2.0, 2.0]) == pytest.approx(0.0)


def test_floor_ratio_is_time_over_counted_work_at_the_measured_peak():
    records = bench_floor(quick=True)
    check_shape(records, "floor")
    for row in records:
        pairs = 10 * 100
        floor_s = pairs * row["multiply_adds_per_pair"] / (1e9 * row["peak_per_ns"])
        assert row["ratio"] == pytest.approx(1e-3 * row["median_ms"] / floor_s)
    assert [multiply_adds_per_pair(s, "ucb") for s in (1, 2, 3)] == [2, 5, 9]


def test_memory_and_long_study_come_from_fresh_processes():
    ballast = np.ones(60_000_000)  # 480 MB that a child must not be charged for
    records = bench_memory(quick=True)
    assert ballast[-1] == 1.0
    check_shape(records, "memory")
    peak = records[0]
    assert 0.0 < peak["imported_mb"] <= peak["constructed_mb"] <= peak["peak_mb"] < 450.0
    early, late = records[1:]
    assert early["ratio"] == 1.0
    assert late["ratio"] == pytest.approx(late["median_ms"] / early["median_ms"])
    assert late["log_growth_mb"] > 0.0


def test_size_of_the_log_counts_what_trials_add():
    player = Player.of(LegendreProblem(4, 2, 40))
    player.observe(1000)
    before = log_mb(player.algorithm)
    player.observe(10_000)
    assert 10_000 * 33e-6 <= log_mb(player.algorithm) - before + 0.01 <= 10_000 * 40e-6


def test_startup_imports_nothing_heavy():
    records = bench_startup(quick=True)
    check_shape(records, "startup")
    assert {row["heavy_modules"] for row in records} == {""}


def test_unknown_benchmark_names_the_known_ones():
    with pytest.raises(ValueError, match="no benchmark 'speed'.*lasso"):
        run_benchmarks(["speed"])


def test_targets_are_judged_both_ways():
    rows = [
        record("step", "Legendre s=3, p=10, M=165, N=2000", "step", median_ms=2.5),
        record("lasso", "independent d=5, M=100, n=200", "celer", ratio=4.0),
        record("floor", "Legendre s=3, p=30, M=4,495, N=2000", "ucb sweep", ratio=2.9),
    ]
    _, judged = verdicts(rows)
    assert [row[-1] for row in judged] == ["**no**", "yes", "yes"]
    assert all(target.benchmark in COLUMNS for target in TARGETS)


def test_page_and_figure_show_what_was_run(tmp_path):
    records = bench_floor(quick=True) + bench_step(quick=True)
    page = markdown(records, "figures/bench.png")
    steps = {row["subject"]: row for row in records if row["benchmark"] == "step"}
    cells = [f"{value:.3g}" for value in (steps[name]["median_ms"] for name in ("step", "lasso"))]
    assert f"| {steps['step']['instance']} | {cells[0]} | {cells[1]} |" in page, "one row per instance"
    assert "## Distance to what" not in page, "the figure shows it"
    assert grid(*table("floor", records)) in markdown(records), "without a figure the table does"
    assert "## The group Lasso" not in page
    assert "](figures/bench.png)" in page
    draw(records, tmp_path / "new" / "bench.png")
    assert (tmp_path / "new" / "bench.png").stat().st_size > 5000
    with pytest.raises(ValueError, match="nothing to draw"):
        draw([record("startup", "warm cache", "import alexp")], tmp_path / "none.png")


def test_command_writes_records_page_and_plot(tmp_path):
    import typer

    from alexp_experiments.commands.bench import bench

    app = typer.Typer()
    app.command()(bench)
    files = {name: tmp_path / f"out.{name}" for name in ("json", "md", "png")}
    options = ["--json", str(files["json"]), "--markdown", str(files["md"]), "--plot", str(files["png"])]
    result = CliRunner().invoke(app, ["floor", "--quick", *options])
    assert result.exit_code == 0, result.output
    check_shape(json.loads(files["json"].read_text()), "floor")
    assert "](out.png)" in files["md"].read_text()
    assert "ucb sweep" in result.output
    wrong = CliRunner().invoke(app, ["speed"])
    assert wrong.exit_code == 2


def test_the_page_names_machine_and_time_once_and_a_gpu_has_its_own():
    page = markdown(
        [record("study", "one", "ask", median_ms=1.0), record("wide", "w", "step", median_ms=2.0)], None, 150
    )
    assert page.startswith("# Speed and memory\n")
    assert page.count("Measured on") == 1
    assert page.count("NumPy 2") + page.count("NumPy 1") == 1
    assert "All of it took 2.5 minutes." in page
    card = markdown([record("gpu", "a card", "ask + tell", median_ms=1.0)])
    assert card.startswith("# Speed on a GPU\n")
    assert set(COLUMNS) - set(AXES) <= set(PROSE.names)  # those of scale.md have a page of their own
    assert set(suite.NAMES + suite.ALONE) == set(COLUMNS)


DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(("name", "figure"), [("benchmarks", "figures/bench.png"), ("benchmarks-gpu", None)])
def test_the_committed_page_is_made_from_the_committed_records(name, figure):
    kept = suite.stored_benchmarks(DOCS / f"{name}.json")
    records = [row for rows in kept["records"].values() for row in rows]
    page = markdown(records, figure, sum(kept["seconds"].values()) or None, kept["machine"])
    assert page == (DOCS / f"{name}.md").read_text().partition("\n<!-- made by ")[0]
    assert "**" in page.split("\n\n")[1], "it begins with the answer"


def test_stored_records_make_the_page_and_nothing_is_measured(tmp_path, monkeypatch):
    import typer

    from alexp_experiments.commands.bench import bench

    monkeypatch.setattr(suite, "_benchmark", lambda *given: pytest.fail("measured"))
    app = typer.Typer()
    app.command()(bench)
    out = tmp_path / "page.md"
    result = CliRunner().invoke(app, ["--stored", str(DOCS / "benchmarks-gpu.json"), "--markdown", str(out)])
    assert result.exit_code == 0, result.output
    assert "## Decisions" in out.read_text()
    missing = CliRunner().invoke(app, ["--stored", str(tmp_path / "none.json")])
    assert missing.exit_code == 2
    assert "alexp bench --resume" in " ".join(missing.output.split())


def test_what_is_finished_is_not_measured_again(tmp_path, monkeypatch):
    measured = []

    def benchmark(name, quick, python):
        measured.append(name)
        if name == "step" and measured.count("step") == 1:
            raise KeyboardInterrupt
        return [record(name, "one", "two", median_ms=float(len(measured)))]

    monkeypatch.setattr(suite, "_benchmark", benchmark)
    kept = tmp_path / "kept.json"
    with pytest.raises(KeyboardInterrupt):
        run_benchmarks(["floor", "step"], resume=kept)
    found = run_benchmarks(["floor", "step"], resume=kept)
    assert measured == ["floor", "step", "step"]
    assert [row["median_ms"] for rows in found["records"].values() for row in rows] == [1.0, 3.0]
    assert set(found["seconds"]) == {"floor", "step"}
    run_benchmarks(["floor"], quick=True, resume=kept)
    assert len(measured) == 4, "small versions are not taken for whole ones"
    monkeypatch.setattr(suite, "version", lambda name: "another")
    run_benchmarks(["floor"], quick=True, resume=kept)
    assert len(measured) == 5, "another version is measured anew"
