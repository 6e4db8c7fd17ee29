"""A companion for BayBE campaigns, on the tables of a campaign, and on a real one where BayBE is installed."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp.integrations import Companion
from alexp.integrations.baybe import companion, models_from_searchspaces

EXPERIMENTS = pd.DataFrame(
    [(solvent, celsius) for solvent in ("DMF", "EtOH", "water") for celsius in (90.0, 105.0, 120.0)],
    columns=["solvent", "celsius"],
)
SOLVENTS = {"DMF": (0.9, 3.8), "EtOH": (0.2, 1.7), "water": (-1.4, 1.9)}
YIELDS = 60.0 + 10.0 * EXPERIMENTS["solvent"].map(lambda name: SOLVENTS[name][0]) + 0.2 * EXPERIMENTS["celsius"]


def space(comp_rep, experiments=EXPERIMENTS):
    return SimpleNamespace(
        discrete=SimpleNamespace(exp_rep=experiments, comp_rep=comp_rep), continuous=SimpleNamespace(is_empty=True)
    )


def one_hot():
    return pd.concat([EXPERIMENTS[["celsius"]], pd.get_dummies(EXPERIMENTS["solvent"]).astype(float)], axis=1)


def described():
    columns = pd.DataFrame([SOLVENTS[name] for name in EXPERIMENTS["solvent"]], columns=["logp", "dipole"])
    return pd.concat([EXPERIMENTS[["celsius"]], columns], axis=1)


def campaign(target, measurements=None):
    return SimpleNamespace(searchspace=space(one_hot()), targets=(target,), measurements=measurements)


def target(**more):
    return SimpleNamespace(**{"name": "yield", "minimize": False, "transformation": None} | more)


MEASURED = EXPERIMENTS.iloc[[4, 1, 3, 8]].assign(**{"yield": YIELDS.iloc[[4, 1, 3, 8]], "BatchNr": 1, "FitNr": np.nan})


def test_measurements_of_a_campaign_are_followed():
    own = companion(campaign(target(), MEASURED), kernels="linear")
    plain = Companion(own.models, alexp.FiniteSet(EXPERIMENTS), reward="yield")
    plain.tell_frame(MEASURED)
    assert np.array_equal(own.posterior(), plain.posterior())
    assert own.algorithm.direction == "maximize"
    later = pd.concat([MEASURED, EXPERIMENTS.iloc[[2]].assign(**{"yield": YIELDS.iloc[[2]]})], ignore_index=True)
    assert own.follow(later) == 1
    assert own.stop_report().epsilon > 0.0


def test_representations_are_models():
    reversed_ = space(described().iloc[::-1], EXPERIMENTS.iloc[::-1])
    models = models_from_searchspaces({"one-hot": space(one_hot()), "descriptors": reversed_}, kernels="linear")
    assert list(models.names) == ["one-hot", "descriptors"]
    assert np.array_equal(models.features(0, np.arange(9)), one_hot())
    assert np.array_equal(models.features(1, np.arange(9)), described())
    for k, other in enumerate([EXPERIMENTS.iloc[:8], EXPERIMENTS.assign(solvent="THF")]):
        with pytest.raises(ValueError, match=["lists 8 experiments", "'b' lists other experiments"][k]):
            models_from_searchspaces({"a": space(one_hot()), "b": space(one_hot(), other)})
    with pytest.raises(ValueError, match="must not be empty"):
        models_from_searchspaces({})


@pytest.mark.parametrize(
    ("given", "direction"),
    [
        (target(minimize=True), "minimize"),
        (target(), "maximize"),
        (SimpleNamespace(name="yield", mode=SimpleNamespace(name="MIN")), "minimize"),
        (SimpleNamespace(name="yield", mode=SimpleNamespace(name="MAX")), "maximize"),
    ],
)
def test_the_direction_is_the_targets(given, direction):
    assert companion(campaign(given, MEASURED[:0])).algorithm.direction == direction


def test_what_has_no_companion():
    with pytest.raises(ValueError, match="no plain maximum"):
        companion(campaign(target(transformation=SimpleNamespace()), MEASURED))
    with pytest.raises(ValueError, match="no plain maximum"):
        companion(campaign(SimpleNamespace(name="yield", mode=SimpleNamespace(name="MATCH")), MEASURED))
    two = campaign(target(), MEASURED)
    two.targets = (target(), target(name="cost"))
    with pytest.raises(ValueError, match="one target, got 2"):
        companion(two)
    hybrid = campaign(target(), MEASURED)
    hybrid.searchspace.continuous.is_empty = False
    with pytest.raises(ValueError, match="continuous parameters"):
        companion(hybrid)


def test_a_real_campaign():
    baybe = pytest.importorskip("baybe")
    from baybe.parameters import CategoricalParameter, CustomDiscreteParameter, NumericalDiscreteParameter
    from baybe.recommenders import RandomRecommender
    from baybe.searchspace import SearchSpace
    from baybe.targets import NumericalTarget

    heat = NumericalDiscreteParameter("celsius", [90, 105, 120])
    properties = pd.DataFrame.from_dict(SOLVENTS, orient="index", columns=["logp", "dipole"])
    spaces = {
        "one-hot": SearchSpace.from_product([CategoricalParameter("solvent", list(SOLVENTS)), heat]),
        "descriptors": SearchSpace.from_product([CustomDiscreteParameter("solvent", properties), heat]),
    }
    loop = baybe.Campaign(spaces["one-hot"], NumericalTarget("yield").to_objective(), RandomRecommender())
    own = companion(loop, models_from_searchspaces(spaces))
    outcome = {(row.solvent, row.celsius): y for row, y in zip(EXPERIMENTS.itertuples(), YIELDS, strict=True)}
    for turn in range(3):
        plate = loop.recommend(2)
        plate["yield"] = [outcome[row.solvent, row.celsius] for row in plate.itertuples()]
        loop.add_measurements(plate)
        assert own.follow(loop.measurements) == 2
        assert len(own) == 2 * (turn + 1)
    assert own.posterior().sum() == pytest.approx(1.0)
    assert "within" in str(own.stop_report())
    loop.update_measurements(loop.measurements.assign(**{"yield": 1.0}))
    own.follow(loop.measurements)
    assert set(own.algorithm.trials_dataframe()["reward"]) == {1.0}
    with pytest.raises(ValueError, match="no plain maximum"):
        companion(baybe.Campaign(spaces["one-hot"], NumericalTarget.match_absolute("yield", 80.0).to_objective()))
