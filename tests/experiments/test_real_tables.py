"""Real tables: what they are made of, how they are played, and the page, on tables small enough for a test."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import alexp
from alexp.simulation import simulate
from alexp_experiments.comparison.tables import arylation, contest, report
from alexp_experiments.comparison.tables.data import ARYLATION, RealScenario, far_apart, load_table, table_sources
from alexp_experiments.comparison.tables.sample import write_tables
from alexp_experiments.core import cache
from alexp_experiments.core.runner import sweep
from alexp_experiments.core.tasks import Record, Task, build, run_task

N = 60
QUICK = ["mixture, linear maps", "mixture, kernels", "LinUCB on one map", "random"]


def record(chosen, regret, seconds=1.0):
    nothing = np.empty(0, np.float32)
    return Record(np.asarray(regret), nothing, nothing, nothing, 0, 0, 0.0, seconds, np.asarray(chosen))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two inputs and a hill; bits and descriptors of which the bits matter."""
    out, rng = tmp_path_factory.mktemp("tables"), np.random.default_rng(0)
    x = rng.standard_normal((N, 2))
    np.savez(out / "hill.npz", y=-(x**2).sum(axis=1), m_linear=x.astype(np.float32))
    bits = rng.integers(0, 2, (N, 20)).astype(np.float32)
    y = bits[:, :3].sum(axis=1) + 0.1 * rng.standard_normal(N)
    np.savez(out / "bits.npz", y=y, m_bits=bits, m_descriptors=rng.standard_normal((N, 15)).astype(np.float32))
    return out


@pytest.fixture
def hill(folder):
    return str(folder / "hill.npz")


@pytest.fixture
def bits(folder):
    return str(folder / "bits.npz")


def swept(tasks):
    return sweep(tasks, workers=1, cache=None, progress=False)


# -- tables --------------------------------------------------------------------------------------------------------


def test_a_table_of_inputs_and_one_of_maps(hill, bits):
    continuous, mapped = load_table(hill), load_table(bits)
    assert continuous.inputs.shape == (N, 2)
    assert mapped.inputs is None
    assert list(continuous.maps) == ["inputs", "quadratic", "cubic", "random waves"]
    assert [m.shape[1] for m in continuous.maps.values()] == [2, 5, 9, 100]
    assert list(mapped.maps) == ["bits", "descriptors"]
    for features in (*continuous.maps.values(), *continuous.waves.values()):
        assert np.allclose(features.mean(axis=0), 0.0)
        assert np.mean(np.sum(features**2, axis=1)) == pytest.approx(1.0)
    assert continuous.scores.mean() == pytest.approx(0.0)
    assert continuous.scores.std() == pytest.approx(1.0)
    everything = np.arange(N)
    assert continuous.models("kernels", everything).n_models == 3 * 4
    assert continuous.models("linear and waves", everything).n_models == 5
    assert mapped.models("kernels", everything).kernels is not None
    assert mapped.models("matrices", everything).kernels is None
    with pytest.raises(ValueError, match="levels"):
        mapped.models("levels", everything)


def test_direct_arylation_is_a_table_of_components():
    table = load_table(ARYLATION)
    assert (table.n_rows, table.top, table.levels.shape) == (1728, 18, (1728, 5))
    assert table.levels.max(axis=0).tolist() == [3, 11, 3, 2, 2]
    some = np.arange(0, 1728, 40)
    assert table.models("kernels", some).names == alexp.ModelClass.from_components(table.components).names


def test_what_is_no_table_is_said(tmp_path):
    np.savez(tmp_path / "no-maps.npz", y=np.arange(4.0))
    np.savez(tmp_path / "short.npz", y=np.arange(4.0), m_a=np.ones((3, 2)))
    np.savez(tmp_path / "holes.npz", y=np.array([0.0, np.nan]), m_a=np.ones((2, 2)))
    for name, said in (("no-maps", "m_"), ("short", "one row per reward"), ("holes", "finite")):
        with pytest.raises(ValueError, match=said):
            load_table(str(tmp_path / f"{name}.npz"))
    with pytest.raises(FileNotFoundError, match="no table"):
        load_table(str(tmp_path / "absent.npz"))
    with pytest.raises(FileNotFoundError, match="no tables"):
        table_sources(tmp_path / "nowhere")


def test_results_are_kept_by_content_not_by_place(hill, tmp_path):
    copy = tmp_path / "hill.npz"
    copy.write_bytes(Path(hill).read_bytes())
    here, there = (Task(RealScenario.of(source, steps=6), "uniform") for source in (hill, str(copy)))
    assert here.key == there.key
    assert here.key != Task(RealScenario.of(hill, steps=6, repeats=True), "uniform").key


# -- how they are played -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plate", [1, 4])
def test_everybody_is_told_the_same_first_rows_and_no_row_comes_twice(hill, plate):
    runs = {}
    for name in QUICK:
        entrant = contest.TABLE_ENTRANTS[name]
        scenario = next(entrant.scenarios(RealScenario.of(hill, steps=20, plate=plate)))
        runs[name] = run_task(entrant.task(scenario, "sum", 3))
    firsts = {tuple(run.chosen[:5]) for run in runs.values()}
    assert len(firsts) == 1
    scores = load_table(hill).scores
    for run in runs.values():
        assert np.unique(run.chosen).size == 20
        assert run.regret[-1] == pytest.approx(np.sort(scores)[-20:].sum() - scores[run.chosen].sum())
        assert run.regret.min() >= 0.0
    other = run_task(contest.TABLE_ENTRANTS["random"].task(RealScenario.of(hill, steps=20), "sum", 4))
    assert tuple(other.chosen[:5]) not in firsts


def test_regret_with_repeats_is_against_the_best_row(hill):
    run = run_task(Task(RealScenario.of(hill, steps=30, repeats=True), "evidence-mixture", {"noise_std": None}, 0))
    scores = load_table(hill).scores
    assert run.regret[-1] == pytest.approx(30 * scores.max() - scores[run.chosen].sum())
    assert np.unique(run.chosen).size < 30


def test_an_algorithm_that_repeats_is_offered_what_is_left(bits):
    algorithm, environment = build(Task(RealScenario.of(bits), "evidence-mixture", {"noise_std": None}))
    assert algorithm.repeats
    run = simulate(algorithm, environment, 15, first=environment.first, repeats=False)
    assert len({trial.index for trial in run.trials}) == 15
    assert [trial.index for trial in run.trials][:5] == environment.first
    with pytest.raises(ValueError, match="without repeats"):
        simulate(algorithm, environment, N + 1, repeats=False)


def test_the_mixture_finds_more_than_chance(bits):
    means = {}
    for name in ("mixture, kernels", "random"):
        entrant = contest.TABLE_ENTRANTS[name]
        scenario = next(entrant.scenarios(RealScenario.of(bits, steps=20)))
        means[name] = np.mean([run_task(entrant.task(scenario, "sum", seed)).regret[-1] for seed in range(3)])
    assert means["mixture, kernels"] < 0.6 * means["random"]


def test_designed_rows_are_far_apart():
    rng = np.random.default_rng(0)
    centres = 200.0 * np.arange(4)[:, None] * np.ones(3)
    cloud = np.repeat(centres, 10, axis=0) + rng.standard_normal((40, 3))
    for seed in range(5):
        rows = far_apart([cloud, cloud[:, :1]], 4, np.random.default_rng(seed))
        assert {row // 10 for row in rows} == {0, 1, 2, 3}
    assert sorted(far_apart([np.zeros((3, 1))], 3, rng)) == [0, 1, 2], "equal rows are drawn evenly"


# -- what is read off ----------------------------------------------------------------------------------------------


def test_outcome_by_hand(hill):
    table = load_table(hill)
    order = np.argsort(table.scores)
    got = contest.outcome(table, record([order[-2], order[0]], [1.0, 3.0]))
    assert got["regret"] == 3.0
    assert got["gap"] == pytest.approx(table.scores[order[-1]] - table.scores[order[-2]])
    assert got["top"] == 0.0, "one row is the best hundredth of sixty"
    assert got["best"] == table.rewards[order[-2]]
    assert got["seconds"] == 0.5
    assert contest.outcome(table, record([order[-1]], [0.0]))["top"] == 1.0


REFERENCES = (report.BEST_OF_ONE, contest.BOTORCH)


def by_hand(rows):
    usual = {"rounds": 9, "plate": 1, "repeats": False, "goal": "sum", "gap": 0.0, "top": 0.0, "best": 0.0}
    names = ("table", "entrant", "model", "seed", "regret")
    return pd.DataFrame([usual | {"seconds": 1.0} | dict(zip(names, row, strict=True)) for row in rows])


def test_the_best_model_in_hindsight_and_ratios_by_hand():
    old = "random"
    rows = [("A", old, "", k, 4.0) for k in range(3)] + [("B", old, "", k, 1.0) for k in range(3)]
    rows += [("A", "LinUCB on one map", "poor", k, 9.0) for k in range(3)]
    rows += [("A", "LinUCB on one map", "good", k, 1.0) for k in range(3)]
    rows += [("B", "LinUCB on one map", "poor", k, 1.0) for k in range(3)]
    runs = by_hand([*rows, ("A", "random forest", "", 0, 8.0)])
    own = report.chosen(runs, 9, 1, False, "sum")
    assert report.by_table(own)["LinUCB on one map", "A"].model == "good"
    found = report.regret_ratio(own, "LinUCB on one map", ["A", "B"])
    assert found.mean == pytest.approx(0.5), "geometric mean of 1/4 and 1"
    assert found.low == pytest.approx(found.high)
    assert report.regret_ratio(own, "random forest", ["A", "B"]) is None
    more = report.chosen(by_hand([*rows, ("A", old, "", 3, 400.0)]), 9, 1, False, "sum")
    assert report.regret_ratio(more, "LinUCB on one map", ["A", "B"]).mean == pytest.approx(0.5), "seeds of both"
    assert report.chosen(runs, 9, 1, False, "best").empty


def test_ratios_to_the_best_of_one_and_to_botorch_by_hand():
    rows = [(table, "mixture, kernels", "", k, 6.0) for table in "AB" for k in range(3)]
    rows += [("A", "LinUCB on one map", "m", k, 4.0) for k in range(3)]
    rows += [("A", "Gaussian process, one kernel", "m", k, 5.0) for k in range(3)]
    rows += [("B", "Gaussian process, one kernel", "m", k, 12.0) for k in range(3)]
    rows += [("A", contest.BOTORCH, "m", k, 3.0) for k in range(2)]
    own = report.chosen(by_hand(rows), 9, 1, False, "sum")
    best = report.best_of_one(own)
    assert dict(best.groupby("table")["regret"].mean()) == {"A": 4.0, "B": 12.0}, "of ours, not of peers"
    single, botorch = (report._against(own, ["A", "B"], who) for who in REFERENCES)
    assert single[1]("mixture, kernels").startswith("0.87 "), "geometric mean of 6/4 and 6/12"
    assert single[1]("LinUCB on one map") == "", "it is the reference"
    assert botorch[1]("mixture, kernels") == "", "BoTorch has not played B"
    assert report._against(own, ["A"], contest.BOTORCH)[1]("mixture, kernels").startswith("2.00 ")
    assert report._against(own[own["entrant"] == "mixture, kernels"], ["A"], REFERENCES[0]) is None


def test_rows_of_other_libraries_are_said_to_be_stored():
    rows = [("A", "mixture, linear maps", "", k, 4.0) for k in range(4)]
    rows += [("A", "random forest", "m", k, 5.0) for k in range(3)] + [("B", "random forest", "m", 1, 5.0)]
    runs = by_hand(rows)
    old = report.tables_report(runs, None)
    assert "Rows that were not made anew" in old
    assert "random forest (version not recorded; 1 to 3 seeds a table)." in old
    new = report.tables_report(
        runs.assign(library=["" if who != "random forest" else "scikit-learn 1.9" for who in runs["entrant"]]), None
    )
    assert "random forest (scikit-learn 1.9; 1 to 3 seeds" in new
    assert "EvidenceMixture, linear maps" not in new.partition("not made anew")[2].partition("##")[0]


def test_tables_for_a_quick_look(tmp_path):
    first, second, third = (load_table(source) for source in write_tables(tmp_path))
    assert (first.name, second.name, third.name) == ("diabetes", "digits", "reactions")
    assert first.inputs.shape == (80, 3)
    assert list(second.matrices) == ["rows", "bits"]
    assert list(third.components) == list(load_table(ARYLATION).components)
    assert len(third.models("kernels", np.arange(20)).names) > 10
    np.savez(tmp_path / "short.npz", y=np.arange(4.0), m_a=np.ones((4, 2)), c_b=np.arange(3))
    with pytest.raises(ValueError, match=r"every c_\* must have one row"):
        load_table(str(tmp_path / "short.npz"))


def test_new_runs_replace_those_of_the_same_entrant_and_protocol():
    old = by_hand([("A", "random", "", 0, 8.0), ("A", "random", "", 1, 8.0), ("B", "random", "", 0, 7.0)])
    new = by_hand([("A", "random", "", 0, 6.0)])
    both = cache.merged(old, new, contest.KEY)
    assert sorted(both["regret"]) == [6.0, 7.0]
    assert len(cache.merged(old, new.assign(plate=5), contest.KEY)) == 4


def test_unknown_names_are_listed(hill):
    with pytest.raises(ValueError, match="mixture, kernels"):
        contest.TableContest.of([hill], ["nobody"])
    with pytest.raises(ValueError, match="goal"):
        contest.TableContest.of([hill], goals=["worst"])
    with pytest.raises(ValueError, match="too few"):
        contest.TableContest.of([hill], rounds=N + 1)
    with pytest.raises(ValueError, match="models"):
        RealScenario(models="none")
    with pytest.raises(ValueError, match="start"):
        RealScenario(start="late")


def test_peers_play_one_row_at_a_time_only(hill):
    assert contest.TableContest.of([hill], ["random forest"], plate=5, rounds=20).cells == ()
    assert len(contest.TableContest.of([hill], ["random forest"], ["sum"], rounds=20).cells) == 1


# -- direct arylation ----------------------------------------------------------------------------------------------


@pytest.fixture
def few_reactions(monkeypatch):
    """Twelve experiments among few reactions, and linear models: what matters here is what becomes of the runs."""
    quick = {"quick": ("mixture, linear maps", "random"), "designed": ("mixture, linear maps", "designed")}
    monkeypatch.setattr(arylation, "PLAYERS", quick)
    tasks = arylation.arylation_tasks(2, experiments=12)
    return {
        name: [Task(t.scenario.with_(resolution=80), t.algorithm, t.settings, t.seed) for t in own]
        for name, own in tasks.items()
    }


def test_direct_arylation_in_plates(few_reactions, monkeypatch):
    for own in few_reactions.values():
        assert own[0].settings["goal"] == "best"
        assert own[0].settings["noise_std"] is None
        assert (own[0].scenario.plate, own[0].scenario.first) == (5, 5)
    runs = arylation.run_arylation(few_reactions, swept)
    assert len(runs) == 4
    found = arylation.curves(runs)
    assert list(found) == ["50 chemists", "EDBO", "quick", "designed"]
    assert all(np.all(np.diff(curve, axis=1) >= 0.0) for curve in found.values())
    assert arylation.after(found["50 chemists"], 10).mean == pytest.approx(79.8, abs=0.05)
    assert arylation.after(found["EDBO"], 5).mean == pytest.approx(50.0, abs=0.05)
    assert arylation.after(found["quick"], 25) is None
    assert arylation.reached(np.array([[1.0, 99.0], [2.0, 98.0]]), 2).mean == 0.5


def played(level, runs=40, spread=1.0):
    """Runs of fifty experiments whose best yield after any of them is about `level`."""
    rng = np.random.default_rng(0)
    rows = np.repeat(np.minimum(level + spread * rng.standard_normal((runs, 1)), 100.0), 50, axis=1)
    columns = {str(k + 1): rows[:, k] for k in range(50)}
    return pd.DataFrame({"player": "mixture", "seed": range(runs), **columns})


@pytest.mark.parametrize(
    ("level", "words"), [(96.0, ("level", "behind")), (99.9, ("ahead", "level")), (80.0, ("behind",) * 2)]
)
def test_who_is_ahead_follows_from_the_intervals(level, words):
    lines = report.standing(played(level, spread=0.2)).splitlines()
    assert lines[0].startswith("40 runs beside 50 of EDBO and 50 chemists;")
    beside = {line.partition(" beside ")[2][:4]: line for line in lines[2:]}
    assert [beside["EDBO"].split(": *")[k + 1].partition("*")[0] for k in range(2)] == list(words)
    assert ("*ahead*" in beside["50 c"]) == (level > 90)
    assert report.standing(played(level).drop(columns=[str(k) for k in range(20, 51)])) == ""


# -- the page ------------------------------------------------------------------------------------------------------


def test_command_adds_runs_and_makes_the_page(folder, tmp_path, monkeypatch, few_reactions):
    import typer

    from alexp_experiments.commands.compare import compare as command
    from alexp_experiments.comparison.tables import data, report

    monkeypatch.setattr(data, "ARYLATION", str(folder / "bits.npz"))  # in place of 1,728 reactions
    monkeypatch.setattr(report, "arylation_tasks", lambda seeds, first_seed, experiments: few_reactions)
    app = typer.Typer()
    app.command()(command)
    out = ["--tables", str(folder), "--out", str(tmp_path), "--cache", str(tmp_path / "cache")]
    small = ["--seeds", "2", "--rounds", "8", "--workers", "1", "--algorithms", "mixture, linear maps; random"]
    first = CliRunner().invoke(app, [*out, *small, "--goal", "sum", "--arylation"])
    assert first.exit_code == 0, first.output
    assert (tmp_path / "figures" / "arylation.png").stat().st_size > 10_000
    again = CliRunner().invoke(app, [*out, *small, "--repeats"])
    assert again.exit_code == 0, again.output
    runs = cache.stored_runs(tmp_path / "real-tables.csv", "alexp")
    assert set(runs["repeats"]) == {True, False}
    page = (tmp_path / "real-tables.md").read_text()
    for said in (
        "## Summed reward, n = 8\n",
        "n = 8, with repeats",
        "random play",
        "50 chemists",
        "hill",
    ):
        assert said in page
    assert "Rows that were not made anew" not in page, "all of them were"
    assert page == report.tables_report(runs, cache.stored_runs(tmp_path / "arylation.csv", "alexp"))
    stored = CliRunner().invoke(app, [*out, "--stored"])
    assert stored.exit_code == 0, stored.output
    assert (tmp_path / "real-tables.md").read_text() == page
    assert CliRunner().invoke(app, [*out, *small, "--goal", "worst"]).exit_code != 0
