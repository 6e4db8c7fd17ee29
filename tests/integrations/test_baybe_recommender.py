"""The mixture as recommender of real BayBE campaigns; skipped without BayBE, which brings PyTorch."""

import pandas as pd
import pytest

import alexp
from alexp.integrations.companion import next_candidates

pytest.importorskip("baybe")
pytest.importorskip("skfp")  # BayBE's extra `chem`

from baybe import Campaign
from baybe.exceptions import NotEnoughPointsLeftError
from baybe.objectives import DesirabilityObjective, ParetoObjective
from baybe.parameters import (
    CategoricalParameter,
    NumericalContinuousParameter,
    NumericalDiscreteParameter,
    SubstanceParameter,
)
from baybe.recommenders import RandomRecommender, TwoPhaseMetaRecommender
from baybe.searchspace import SearchSpace
from baybe.targets import NumericalTarget

from alexp.integrations import baybe as beside
from alexp.integrations.baybe_recommender import MixtureRecommender, encodings

pytestmark = pytest.mark.filterwarnings("ignore")
SOLVENTS = {"DMF": "CN(C)C=O", "water": "O", "EtOH": "CCO", "THF": "C1CCOC1", "DMSO": "CS(C)=O", "MeCN": "CC#N"}
LOGP = {"DMF": -1.0, "water": -1.4, "EtOH": -0.3, "THF": 0.5, "DMSO": -1.35, "MeCN": -0.3}
CELSIUS = NumericalDiscreteParameter("celsius", [80, 90, 100, 110, 120], tolerance=2)
SPACE = SearchSpace.from_product([SubstanceParameter("solvent", SOLVENTS, encoding="ECFP"), CELSIUS])
NAMES = ["ECFP", "RDKIT2DDESCRIPTORS", "OHE"]
EXPERIMENTS = SPACE.discrete.exp_rep
COLUMNS = ["solvent", "celsius"]


def outcome(plate):
    return 60.0 + 8.0 * plate["solvent"].map(LOGP) - (plate["celsius"] - 100.0) ** 2 / 50.0


def campaign(recommender, minimize=False, **settings):
    return Campaign(SPACE, NumericalTarget("yield", minimize=minimize).to_objective(), recommender, **settings)


def play(loop, turns, sign=1.0, size=3):
    plates = []
    for _ in range(turns):
        plate = loop.recommend(size)
        plates.append(plate[COLUMNS].to_numpy().tolist())
        loop.add_measurements(plate.assign(**{"yield": sign * outcome(plate)}))
    return plates


def test_batches_of_a_campaign_find_the_best():
    loop = campaign(MixtureRecommender(encodings(SPACE, NAMES)))
    plates = play(loop, 4)
    everything = [tuple(row) for plate in plates for row in plate]
    assert len(everything) == len(set(everything)) == 12
    assert loop.measurements["yield"].max() == outcome(EXPERIMENTS).max()
    own = beside.companion(loop, loop.recommender.models(SPACE))
    assert len(own) == 12
    assert {name.split(":")[0] for name in own.models.names} <= {*NAMES, "all maps"}


def test_minimising_is_maximising_the_negative():
    loops = [campaign(MixtureRecommender(encodings(SPACE, NAMES)), minimize) for minimize in (False, True)]
    assert play(loops[0], 3) == play(loops[1], 3, sign=-1.0)


def test_pending_experiments_are_counted_on():
    recommender = MixtureRecommender(encodings(SPACE, NAMES), random_state=3)
    loop = campaign(recommender)
    play(loop, 2)
    pending = loop.recommend(2)
    plate = loop.recommend(2, pending_experiments=pending[COLUMNS])
    both = pd.concat([pending, plate])[COLUMNS]
    assert not both.duplicated().any()
    told = [
        (int(EXPERIMENTS.index[(EXPERIMENTS[COLUMNS] == row[COLUMNS]).all(axis=1)][0]), row["yield"])
        for _, row in loop.measurements.iterrows()
    ]
    used = {index for index, _ in told} | set(pending.index)
    free = [k for k in range(len(EXPERIMENTS)) if k not in used]
    models, domain = recommender.models(SPACE), alexp.FiniteSet(EXPERIMENTS)
    expected = next_candidates(models, domain, told, 2, pending=list(pending.index), available=free, random_state=3)
    assert list(plate.index) == expected


def test_the_campaign_says_what_may_be_measured_again():
    loop = campaign(
        MixtureRecommender(encodings(SPACE, NAMES)),
        allow_recommending_already_measured=True,
        allow_recommending_already_recommended=True,
    )
    for _ in range(12):
        plate = loop.recommend(2)
        loop.add_measurements(plate.assign(**{"yield": outcome(plate)}))
    assert loop.measurements[COLUMNS].duplicated().any()
    once = campaign(MixtureRecommender(encodings(SPACE, NAMES)))
    play(once, 10)
    with pytest.raises(NotEnoughPointsLeftError):
        once.recommend(1)


def test_saved_campaigns_go_on_alike():
    loop = campaign(MixtureRecommender(encodings(SPACE, NAMES), random_state=5))
    play(loop, 2)
    again = Campaign.from_json(loop.to_json())
    assert isinstance(again.recommender, MixtureRecommender)
    assert again.recommender.random_state == 5
    assert play(loop, 2) == play(again, 2)


def test_after_a_first_phase_of_another_recommender():
    recommender = MixtureRecommender(encodings(SPACE, ["ECFP", "OHE"]))
    loop = campaign(TwoPhaseMetaRecommender(RandomRecommender(), recommender))
    play(loop, 3)
    assert len(loop.measurements) == 9


def test_the_order_of_experiments_does_not_matter():
    turned = {name: SearchSpace.from_dataframe(EXPERIMENTS[::-1], space.parameters)
              for name, space in encodings(SPACE, NAMES).items()}  # fmt: skip
    assert play(campaign(MixtureRecommender(turned)), 3) == play(
        campaign(MixtureRecommender(encodings(SPACE, NAMES))), 3
    )


def test_objectives():
    wanted = NumericalTarget.match_absolute("yield", 55.0).to_objective()
    loop, plain = Campaign(SPACE, wanted, MixtureRecommender()), campaign(MixtureRecommender())
    for _ in range(4):
        plates = [one.recommend(3) for one in (loop, plain)]
        assert plates[0][COLUMNS].equals(plates[1][COLUMNS])
        loop.add_measurements(plates[0].assign(**{"yield": outcome(plates[0])}))
        plain.add_measurements(plates[1].assign(**{"yield": -(outcome(plates[1]) - 55.0).abs()}))
    targets = [NumericalTarget.normalized_ramp("yield", (0, 100)), NumericalTarget.normalized_ramp("cost", (0, 1))]
    both = Campaign(SPACE, DesirabilityObjective(targets), MixtureRecommender())
    plate = both.recommend(2)
    both.add_measurements(plate.assign(**{"yield": outcome(plate), "cost": 0.5}))
    assert len(both.recommend(2)) == 2
    pareto = Campaign(SPACE, ParetoObjective([NumericalTarget("yield"), NumericalTarget("cost")]), MixtureRecommender())
    plate = pareto.recommend(2)
    pareto.add_measurements(plate.assign(**{"yield": outcome(plate), "cost": 1.0}))
    with pytest.raises(ValueError, match="must be one number, got a ParetoObjective of 2 targets"):
        pareto.recommend(2)


def test_measurements_within_the_tolerance_and_outside_the_space():
    few = EXPERIMENTS[EXPERIMENTS["solvent"] != "water"]
    space = SearchSpace.from_dataframe(few, SPACE.parameters)
    measured = pd.DataFrame(
        {"solvent": ["DMF", "water", "THF"], "celsius": [101.5, 90.0, 80.0], "yield": [50.0, 90.0, 40.0]}
    )
    objective = NumericalTarget("yield").to_objective()
    with pytest.warns(UserWarning, match="1 of 3 experiments are not in the search space.*'water'"):
        got = MixtureRecommender().recommend(1, space, objective, measured)
    assert got.equals(
        MixtureRecommender().recommend(1, space, objective, measured.assign(celsius=[100, 0, 80]).iloc[[0, 2]])
    )
    open_ = measured.iloc[[0, 2]].assign(**{"yield": [50.0, None]})
    assert len(MixtureRecommender().recommend(1, space, objective, open_)) == 1
    with pytest.raises(ValueError, match="need an objective"):
        MixtureRecommender().recommend(1, space, None, measured)


def test_spaces_that_cannot_be_played():
    words = SearchSpace.from_product([CategoricalParameter("solvent", list(SOLVENTS)), CELSIUS])
    with pytest.raises(ValueError, match="no SubstanceParameter"):
        encodings(words, NAMES)
    hybrid = SearchSpace.from_product([CELSIUS, NumericalContinuousParameter("hours", (1, 4))])
    with pytest.raises(ValueError, match="continuous parameters"):
        Campaign(hybrid, NumericalTarget("yield").to_objective(), MixtureRecommender()).recommend(1)
    other = SearchSpace.from_product(
        [SubstanceParameter("solvent", SOLVENTS), NumericalDiscreteParameter("celsius", [1, 2])]
    )
    with pytest.raises(ValueError, match="'a' lists 12 experiments, not 30"):
        campaign(MixtureRecommender({"a": other})).recommend(1)
