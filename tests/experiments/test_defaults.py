"""The tables behind the default schedules: the published numbers, from the runner that everything else uses."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp_experiments.core.runner import sweep
from alexp_experiments.core.tasks import Task, build
from alexp_experiments.paper import defaults
from alexp_experiments.paper.defaults import Contender, headline_table, markdown, play

DOCS = Path(__file__).parents[2] / "docs"

# Regret on seeds 80000 to 80002 when docs/headline.csv was made, by a loop of its own around `simulate`.
PUBLISHED = {
    (2, "Oracle UCB"): [1.6814752201580077, 3.007646908617042, 0.9974683247884408],
    (2, "ALExp"): [1.6814752201580077, 7.5288297015191645, 0.0],
    (2, "Naive UCB"): [14.058725911854323, 6.607669665891686, 15.445959808846656],
    (3, "Oracle UCB"): [0.6381741027712564, 2.3492880661013924, 2.234658407652147],
    (3, "ALExp"): [1.3982777961770543, 11.719679937802251, 4.322741936500297],
    (3, "Naive UCB"): [4.456659571506076, 6.812997626292301, 10.398516393681197],
    (9, "Oracle UCB"): [8.011693357073261, 5.823098016115794, 9.109184159277312],
    (9, "ALExp"): [8.724457294001969, 4.958349200052522, 14.180882326805808],
    (9, "Naive UCB"): [9.896433433369046, 6.586291913645732, 12.518473921043533],
}


def locally(tasks):
    return sweep(tasks, workers=1, cache=None, progress=False)


@pytest.mark.parametrize("case", PUBLISHED)
def test_published_runs_come_back(case):
    outcome = play([Contender(*case)], range(80_000, 80_003), locally)[Contender(*case)]
    np.testing.assert_allclose(outcome.regret, PUBLISHED[case], rtol=1e-12)
    assert not outcome.stuck.any()


def test_a_shared_seed_is_the_seed_of_both():
    task = Contender(3, "ALExp").tasks([80_001])[0]
    assert task.seeds == (80_001, 80_001)
    assert task.key != Task(task.scenario, task.algorithm, task.settings, task.seed).key
    algorithm, environment = build(task)
    models, domain = alexp.ModelClass.legendre(10, 3), alexp.Interval(-1.0, 1.0, 2000)
    plain = alexp.SyntheticEnvironment(models, domain, noise_std=0.01, random_state=80_001)
    assert np.array_equal(environment.rewards, plain.rewards)
    opt = alexp.ALExp(models, domain, noise_std=0.01, random_state=80_001)
    for _ in range(5):
        trial, twin = algorithm.ask(), opt.ask()
        assert trial == twin
        algorithm.tell(trial, environment.observe_index(trial.index))
        opt.tell(twin, plain.observe_index(twin.index))


def test_headline_table_has_the_published_shape(monkeypatch):
    tiny = {size: scenario.with_(steps=8, resolution=40) for size, scenario in defaults.SCENARIOS.items()}
    monkeypatch.setattr(defaults, "SCENARIOS", tiny)
    table = headline_table(locally, range(80_000, 80_002))
    with (DOCS / "headline.csv").open() as file:
        published = list(csv.DictReader(file))
    assert list(table.columns) == list(published[0])
    assert [(str(s), str(m), name) for s, m, name in zip(table["s"], table["M"], table["algorithm"], strict=True)] == [
        (row["s"], row["M"], row["algorithm"]) for row in published
    ]
    assert markdown(table).count("\n") == 2 + len(table)


@pytest.fixture
def tiny(monkeypatch):
    small = {size: scenario.with_(steps=6, resolution=30) for size, scenario in defaults.SCENARIOS.items()}
    monkeypatch.setattr(defaults, "SCENARIOS", small)
    default = alexp.Schedules()
    monkeypatch.setattr(defaults, "CHOICES", [alexp.Schedules(gamma=0.1), default])


@pytest.mark.parametrize("what", defaults.PAGES)
def test_every_table_is_written_with_what_it_says(tiny, what, tmp_path):
    table = defaults.write(what, tmp_path, locally, 3)
    name, seeds = defaults.PAGES[what].name, defaults.PAGES[what].seeds
    with (DOCS / f"{name}.csv").open() as file:
        assert list(table.columns) == next(csv.reader(file))
    page = " ".join((tmp_path / f"{name}.md").read_text().split())
    assert f"seeds {seeds[0]} to {seeds[2]}" in page
    assert "nan" not in page
    before = (tmp_path / f"{name}.md").read_text()
    again = defaults.write(what, tmp_path, lambda tasks: pytest.fail("run"), 3, stored=True)
    assert len(again) == len(table)
    assert (tmp_path / f"{name}.md").read_text() == before, "the page follows from its table"
    with pytest.raises(SystemExit, match="leave out --stored"):
        defaults.write(what, tmp_path / "nowhere", stored=True)


def test_the_words_follow_from_the_numbers():
    rates = {3.0: (0.95, 0.9), 4.0: (0.99, 0.8)}
    rows = [
        {"eta": rate, "s": s, "median": 2.0, "naive median": 3.0, "stuck": 1, "ordered": ordered}
        for rate, both in rates.items()
        for s, ordered in zip((2, 9), both, strict=True)
    ]
    said = " ".join(defaults.about_stability(pd.DataFrame(rows)).split())
    assert "eta = 3: the learning rate" in said
    assert "is the largest (0.900)" in said
    assert "is below the naive" in said
    assert "Stuck runs: 2 at eta = 3, 2 at eta = 4. " in said
    rows[0]["median"] = 3.5
    assert "is not always below the naive" in " ".join(defaults.about_stability(pd.DataFrame(rows)).split())
    default = alexp.Schedules()
    grid = [(default.gamma, 5.0, default.lam, 0, 4.0), (default.gamma, default.eta, default.lam, 2, 6.0)]
    table = pd.DataFrame(grid, columns=["gamma", "eta", "lam", "stuck", "gmean"])
    said = " ".join(defaults.about_tuning(table).split())
    assert "The best setting without a stuck run has eta = 5" in said
    assert "are row 2 by mean regret (6), with 2 stuck runs" in said


def test_wrong_names_are_refused():
    with pytest.raises(SystemExit):
        defaults.main(["nothing"])
