import json

import pytest

from alexp.experiments.core.runner import sweep
from alexp.experiments.core.scenarios import SCENARIOS
from alexp.experiments.core.statistics import estimate
from alexp.experiments.paper.tuning import (
    CORRAL_RATES,
    CORRALS,
    EXPLORATIONS,
    LAMBDAS,
    RATES,
    TUNED_SCENARIOS,
    TUNING_SEEDS,
    Attempt,
    Grid,
    Tuned,
    choose,
    choose_lambda,
    load_tuned,
    tune,
)


def locally(tasks, title):
    return sweep(tasks, workers=1, cache=None, progress=False)


def test_grids_are_those_of_the_appendix():
    assert (len(LAMBDAS), min(LAMBDAS), max(LAMBDAS)) == (20, pytest.approx(1e-5), 1.0)
    assert (len(EXPLORATIONS), min(EXPLORATIONS), max(EXPLORATIONS)) == (10, 2, 80)
    assert (len(RATES), len(CORRAL_RATES)) == (20, 10)
    assert all(1e-4 <= gamma <= 1e-1 and 1.0 <= eta <= 100.0 for gamma, eta in RATES + CORRAL_RATES)


def test_tuning_seeds_are_never_reported():
    assert not set(TUNING_SEEDS) & set(range(1000))


def attempt(scenario, regret, method="alexp", **values):
    return Attempt(scenario, method, values, {"made of": values}, estimate([regret, regret]))


def test_lambda_minimises_the_geometric_mean():
    attempts = [attempt("easy", 1.0, **{"lambda": 0.1}), attempt("large", 100.0, **{"lambda": 0.1})]
    attempts += [attempt("easy", 3.0, **{"lambda": 0.2}), attempt("large", 30.0, **{"lambda": 0.2})]
    assert choose_lambda(attempts) == 0.2


def test_choice_is_per_scenario_and_method():
    attempts = [attempt("easy", 5.0, n0=2.0, method="etc"), attempt("easy", 4.0, n0=20.0, method="etc")]
    attempts += [attempt("large", 1.0, n0=2.0, method="etc"), attempt("easy", 9.0, n0=2.0, method="ets")]
    chosen = choose(attempts)
    assert chosen["easy"]["etc"]["values"] == {"n0": 20.0}
    assert chosen["large"]["etc"]["values"] == {"n0": 2.0}
    assert chosen["easy"]["ets"]["mean regret"] == 9.0


def test_tuning_end_to_end_and_round_trip(tmp_path):
    grid = Grid(
        LAMBDAS[:2], RATES[:2], (2, 6), CORRAL_RATES[:2], (10_000, 10_001), ("easy", "scaling-9"),
        shrink={"steps": 10, "resolution": 40},
    )  # fmt: skip
    tuned, attempts = tune(grid, locally)
    assert tuned.lam in LAMBDAS[:2]
    assert set(tuned.chosen) == {"easy", "scaling-9"}
    assert {t.method for t in attempts} == {"alexp", "alexp-released", "etc", "ets", *CORRALS}
    best = min((t for t in attempts if (t.scenario, t.method) == ("easy", "etc")), key=lambda t: t.regret.mean)
    assert tuned.settings("etc", "easy") == best.settings
    tuned.save(tmp_path / "tuned.json")
    assert json.loads((tmp_path / "tuned.json").read_text())["lambda_0"] == tuned.lam


def test_the_committed_choice_covers_every_scenario():
    tuned = load_tuned()
    assert set(tuned.chosen) == set(TUNED_SCENARIOS)
    for name in SCENARIOS:
        assert set(tuned.settings("alexp", name)["schedules"]) == {"kind", "gamma", "eta", "lam"}
        assert tuned.settings("etc", name)["lam"] == tuned.lam
        assert tuned.settings("oracle", name) == {}


def test_untuned_sizes_take_the_nearest_and_restate_rates():
    values = {"gamma": 0.01, "eta": 2.0}
    entry = {"corral": {"settings": {"gamma": 1e-4, "eta": 1.9}, "values": values}}
    tuned = Tuned(0.1, {"scaling-13": entry, "large": entry}, (1,))
    assert tuned.settings("corral", "scaling-141") == {"gamma": 1e-4, "eta": pytest.approx(2.0 * (10011 / 100) ** 0.5)}
    assert tuned.settings("corral", "scaling-13") == entry["corral"]["settings"]
