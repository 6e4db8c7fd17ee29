"""The comparison on streams: our algorithms, its page, and what is kept of runs."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from alexp.cli import app
from alexp_experiments.contextual import contest, report
from alexp_experiments.contextual.contest import (
    KEY,
    ContextContest,
    against,
    moments,
    summaries,
)
from alexp_experiments.contextual.playing import CONTEXT_SCENARIOS, models_of
from alexp_experiments.core.cache import merged
from alexp_experiments.core.tasks import run_task

WINE = CONTEXT_SCENARIOS["wine"]


@pytest.mark.parametrize("name", [name for name in contest.OWN if name != "alexp"])
@pytest.mark.parametrize("title", ["wine", "new candidates"])
def test_ours_repeat_under_a_seed(name, title):
    entrant = contest.OWN[name]
    scenario = next(entrant.scenarios(CONTEXT_SCENARIOS[title].with_(steps=12)))
    first, again = (entrant.task(scenario, 3).run() for _ in range(2))
    assert np.array_equal(first.chosen, again.chosen)
    assert first.regret.size == 12


def test_the_mixture_learns_which_arm_and_which_set():
    task = contest.OWN["mixture"].task(CONTEXT_SCENARIOS["new candidates"].with_(steps=120), 1)
    record = task.run()
    assert record.recommended == record.true_model
    assert record.q_true[0] > 0.99
    chance = CONTEXT_SCENARIOS["new candidates"].with_(steps=120).stream(task.seeds[0]).regrets.mean(axis=1).sum()
    assert record.regret[-1] < 0.25 * chance
    wine = contest.OWN["mixture"].task(WINE, 1).run()
    assert wine.regret[-1] < 35  # of 178; chance is wrong 119 times
    assert wine.final_gap < 0.1


def test_models_are_the_feature_sets():
    models = models_of(WINE.with_(steps=2).stream(0))
    assert list(models.names) == list(WINE.sets)
    assert models.arm_blocks == (3, 13 + 5 + 1)
    models = models_of(CONTEXT_SCENARIOS["new candidates"].with_(steps=2).stream(0))
    assert (models.n_models, models.n_columns) == (8, 40)


def test_what_results_are_kept_under():
    task = contest.OWN["mixture"].task(WINE, 0)
    assert task.key == contest.OWN["mixture"].task(WINE, 0).key
    others = [
        contest.OWN["lm-ucb"].task(WINE, 0),
        contest.OWN["mixture"].task(WINE, 1),
        contest.OWN["mixture"].task(WINE.with_(passes=2), 0),
        contest.OWN["mixture"].task(WINE.with_(only="raw"), 0),
    ]
    assert len({task.key, *(other.key for other in others)}) == 5
    assert run_task(contest.OWN["uniform"].task(WINE.with_(steps=3), 0)).regret.size == 3


def rows(entrant, chosen, regrets, seeds=range(5)):
    return [
        {"scenario": "wine", "entrant": entrant, "set": chosen, "seed": seed, "rounds": 10, "regret": regret,
         "late": 0.1, "favourite": 0, "right": -1, "ms": 1.0, "curve": f"0 {regret}"}
        for seed, regret in zip(seeds, regrets, strict=True)
    ]  # fmt: skip


def test_the_best_set_in_hindsight_is_that_of_the_smallest_mean():
    runs = pd.DataFrame(
        rows("mixture", "", [11.0] * 5)
        + rows("mixture, one set", "a", [5.0, 5.0, 5.0, 5.0, 90.0])
        + rows("mixture, one set", "b", [10.0] * 5)
        + rows("coba LinUCB", "", [22.0] * 5)
        + rows("VW", "", [44.0] * 5)
        + rows("VW -q xa", "", [33.0] * 5)
    )
    found = summaries(runs)
    assert found["wine", "mixture, one set"].chosen == "b"
    assert np.isclose(against(found, "wine", "mixture", "mixture, one set").mean, 1.1)
    page = report.context_report(runs, "x.png")
    assert "| wine | 1.10 [1.10, 1.10] |  | 2.00 [2.00, 2.00] |  | 3.00 [3.00, 3.00] |  |" in page
    assert "| EvidenceMixture, best set in hindsight | 10 |" in page
    words = page.split("\n\n")[2]
    assert "costs at most 15% against the best set in hindsight on 1 of 1 streams (most on wine, 1.10)" in words
    for who in ("coba", "Vowpal Wabbit"):
        assert f"beside {who}'s best learner it is ahead on 1 of 1 streams" in words
    dear = merged(runs, pd.DataFrame(rows("mixture", "", [12.0] * 5)), KEY)
    assert len(dear) == len(runs)
    assert "| wine | 1.20 [1.20, 1.20] |" in report.context_report(dear, "x.png")
    assert "on 0 of 1 streams, more on wine (1.20)" in report.context_report(dear, "x.png")
    level = merged(runs, pd.DataFrame(rows("coba LinUCB", "", [9.0, 10.0, 11.0, 12.0, 13.0])), KEY)
    assert "beside coba's best learner it is level on 1 of 1 streams" in report.context_report(level, "x.png")
    cheap = merged(runs, pd.DataFrame(rows("VW", "", [5.0] * 5)), KEY)
    assert "beside Vowpal Wabbit's best learner it is behind on 1 of 1 streams (wine)" in report.context_report(
        cheap, "x.png"
    )


def test_moments_end_with_the_last_round():
    assert moments(1).tolist() == [1]
    assert moments(7).tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert moments(1797)[[0, -1]].tolist() == [1, 1797]


def test_every_entrant_has_cells_of_its_own():
    contest = ContextContest.of(["wine"], ["mixture", "mixture, one set"], seeds=2, first_seed=5)
    assert [cell.scenario.only for cell in contest.cells] == [None, *WINE.sets]
    assert {task.seed for task in contest.tasks} == {5, 6}


def test_command_writes_runs_page_and_figure(tmp_path):
    options = ["--quick", "--workers", "1", "--out", str(tmp_path), "--cache", str(tmp_path / "cache")]
    command = ["compare", "--contextual", "wine", "--algorithms", "mixture;uniform", *options]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "figures" / "contextual.png").stat().st_size > 5000
    page = (tmp_path / "contextual-results.md").read_text()
    assert "| random play |" in page
    assert "wine (60)" in page
    assert "seeds 97000 to 97001" in page
    again = CliRunner().invoke(app, ["compare", "--contextual", "--stored", "--out", str(tmp_path)])
    assert again.exit_code == 0
    assert (tmp_path / "contextual-results.md").read_text() == page
    wrong = CliRunner().invoke(app, ["compare", "--contextual", "iris", "--out", str(tmp_path)])
    assert wrong.exit_code == 2
