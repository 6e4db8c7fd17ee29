"""A companion for Ax and a node of its strategies, on tables as Ax gives them and in real experiments."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp.integrations import Companion
from alexp.integrations.ax import (
    companion,
    completed,
    domain_of,
    generation_node,
    on_trial_complete,
    stopping_strategy,
)

CHOICES = SimpleNamespace(values=["DMF", "water", "EtOH"])
WHOLE = SimpleNamespace(lower=1, upper=4, parameter_type=SimpleNamespace(name="INT"))
REAL = SimpleNamespace(lower=-1.0, upper=2.0, parameter_type=SimpleNamespace(name="FLOAT"))
FIXED = SimpleNamespace(value=5.0)
SUMMARY = pd.DataFrame(
    {
        "trial_index": range(4),
        "arm_name": ["0_0", "1_0", "2_0", "3_0"],
        "trial_status": ["COMPLETED", "COMPLETED", "RUNNING", "COMPLETED"],
        "loss": [3.0, 1.0, np.nan, 2.0],
        "solvent": ["water", "DMF", "EtOH", "EtOH"],
        "hours": [1, 4, 2, 2],
    }
)
MODELS = alexp.ModelClass.from_maps(
    {
        "kind": lambda t: pd.get_dummies(t["solvent"]).to_numpy(float),
        "hours": lambda t: t[["hours"]].to_numpy(float),
    },
    intercept=True,
)


def space(*constraints, check=None, **parameters):
    return SimpleNamespace(parameters=parameters, parameter_constraints=list(constraints), check_membership=check)


def experiment(table=SUMMARY, minimize=True, names=("loss",)):
    objective = SimpleNamespace(metric_names=list(names), minimize=minimize)
    config = SimpleNamespace(objective=objective) if names else None
    return SimpleNamespace(
        search_space=space(solvent=CHOICES, hours=WHOLE), optimization_config=config, to_df=lambda: table
    )


def test_completed_trials_are_followed():
    own = companion(experiment(), MODELS)
    frame = own.algorithm.trials_dataframe()
    assert frame["reward"].tolist() == [3.0, 1.0, 2.0]
    assert [row["solvent"] for row in frame["x"]] == ["water", "DMF", "EtOH"]
    assert own.best().x["solvent"] == "DMF"
    done = SUMMARY.assign(trial_status="COMPLETED", loss=[3.0, 1.0, 0.5, 2.0])
    assert own.follow(completed(done)) == 1
    assert own.algorithm.trials_dataframe()["reward"].tolist() == [3.0, 1.0, 0.5, 2.0]


def test_clients_of_both_kinds_and_tables():
    service = SimpleNamespace(experiment=experiment(), get_trials_data_frame=lambda: SUMMARY)
    assert len(companion(service, MODELS)) == 3
    client = SimpleNamespace(summarize=lambda: SUMMARY)
    domain = domain_of(space(solvent=CHOICES, hours=WHOLE))
    own = companion(client, MODELS, domain, metric="loss", direction="minimize")
    assert len(own) == 3
    with pytest.raises(ValueError, match="pass domain, metric"):
        companion(client, MODELS, metric="loss")
    nothing = SimpleNamespace(summarize=pd.DataFrame)
    assert len(companion(nothing, MODELS, domain, metric="loss")) == 0
    status = SUMMARY.assign(trial_status=[SimpleNamespace(name=name) for name in SUMMARY["trial_status"]])
    assert completed(status)["trial_index"].tolist() == [0, 1, 3]
    with pytest.raises(TypeError, match="Experiment, an AxClient or a Client"):
        completed(3)


def test_domains():
    listed = domain_of(space(solvent=CHOICES, hours=WHOLE, grams=FIXED))
    assert listed.n_candidates == 12
    assert listed[11].to_dict() == {"solvent": "EtOH", "hours": 4, "grams": 5.0}
    few = domain_of(space("hours <= 2", check=lambda row: row["hours"] <= 2, solvent=CHOICES, hours=WHOLE))
    assert few.n_candidates == 6
    box = domain_of(space(a=REAL, b=REAL))
    assert box.lower.tolist() == [-1.0, -1.0]
    assert box.upper.tolist() == [2.0, 2.0]
    with pytest.raises(ValueError, match="'a' is a range of real numbers"):
        domain_of(space(solvent=CHOICES, a=REAL))
    with pytest.raises(ValueError, match="more than 200000"):
        domain_of(space(**{f"h{k}": WHOLE for k in range(9)}))
    with pytest.raises(ValueError, match="constraints"):
        domain_of(space("a <= b", a=REAL, b=REAL))


def test_one_trial_at_a_time():
    own, all_at_once = companion(experiment(SUMMARY[:0]), MODELS), companion(experiment(), MODELS)
    on_trial_complete(own, {"hours": 1, "solvent": "water"}, {"loss": (3.0, 0.1), "cost": 7.0})
    on_trial_complete(own, {"hours": 4, "solvent": "DMF"}, (1.0, None))
    on_trial_complete(own, {"hours": 2, "solvent": "EtOH"}, 2.0)
    assert np.array_equal(own.posterior(), all_at_once.posterior())
    with pytest.raises(ValueError, match="no 'loss', only 'cost'"):
        on_trial_complete(own, {"hours": 2, "solvent": "EtOH"}, {"cost": 2.0})


def test_objectives():
    assert companion(experiment(minimize=False), MODELS).algorithm.direction == "maximize"
    assert companion(experiment(), MODELS, direction="maximize").algorithm.direction == "maximize"
    with pytest.raises(ValueError, match="must be one metric"):
        companion(experiment(names=("loss", "cost")), MODELS)
    with pytest.raises(ValueError, match="no objective"):
        companion(experiment(names=()), MODELS)


def test_ranges_are_boxes():
    table = pd.DataFrame({"trial_status": ["COMPLETED"] * 2, "b": [0.25, 1.5], "a": [0.5, -0.5], "loss": [1.0, 2.0]})
    ranges = experiment(table)
    ranges.search_space = space(a=REAL, b=REAL)
    own = companion(ranges, alexp.ModelClass.subsets(alexp.Polynomial(1, dim=2), 1, intercept=True))
    assert [x.tolist() for x in own.algorithm.trials_dataframe()["x"]] == [[0.5, 0.25], [-0.5, 1.5]]


def _play(client):
    for _ in range(12):
        parameters, index = client.get_next_trial()
        client.complete_trial(index, raw_data={"loss": (float(parameters["hours"]) - 1.0, 0.0)})


@pytest.mark.filterwarnings("ignore")
def test_a_real_experiment_stops():
    pytest.importorskip("ax")
    from ax.exceptions.core import OptimizationShouldStop
    from ax.service.ax_client import AxClient, ObjectiveProperties

    client = AxClient(random_seed=0, verbose_logging=False)
    hours = {"name": "hours", "type": "choice", "values": [1, 2, 3, 4], "value_type": "int", "is_ordered": True}
    solvents = {"name": "solvent", "type": "choice", "values": CHOICES.values, "value_type": "str", "is_ordered": False}
    client.create_experiment(
        parameters=[hours | {"sort_values": True}, solvents | {"sort_values": False}],
        objectives={"loss": ObjectiveProperties(minimize=True)},
    )
    own = companion(client, MODELS, noise_std=0.05, reward_bound=10.0)
    assert isinstance(own, Companion)
    assert own.algorithm.direction == "minimize"
    client.global_stopping_strategy = stopping_strategy(own, epsilon=2.0, min_trials=3)
    with pytest.raises(OptimizationShouldStop, match="No candidate is better than hours = 1"):
        _play(client)
    assert own.stop_report(epsilon=2.0).can_stop
    assert own.plausible_models()
    assert len(own) == len(completed(client.experiment)) >= 3


def _client(parameters, node):
    from ax.api.client import Client
    from ax.generation_strategy.generation_strategy import GenerationStrategy

    client = Client(random_seed=0)
    client.configure_experiment(parameters=parameters)
    client.configure_optimization(objective="-loss")
    client.set_generation_strategy(GenerationStrategy(nodes=[node]))
    return client


@pytest.mark.filterwarnings("ignore")
def test_the_mixture_chooses_the_trials_of_a_client():
    pytest.importorskip("ax")
    from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

    solvent = ChoiceParameterConfig(name="solvent", values=CHOICES.values, parameter_type="str", is_ordered=False)
    hours = RangeParameterConfig(name="hours", bounds=(1, 4), parameter_type="int")
    node = generation_node(MODELS, random_state=1)
    client, proposed, losses = _client([solvent, hours], node), [], []
    for _ in range(4):
        for index, parameters in client.get_next_trials(max_trials=2).items():
            proposed.append((parameters["solvent"], parameters["hours"]))
            assert type(parameters["hours"]) is int
            if index == 3:
                client.mark_trial_failed(index)
            elif index != 4:  # stays pending
                losses.append(float(parameters["hours"]))
                client.complete_trial(index, raw_data={"loss": losses[-1]})
    assert len(set(proposed)) == len(proposed) == 8  # neither failed nor pending ones come again
    assert losses.count(1.0) == 3
    assert node.companion.algorithm.direction == "minimize"
    assert node.companion.algorithm.trials_dataframe()["reward"].tolist() == losses[: len(node.companion)]
    client = _client([solvent, hours], generation_node(MODELS, random_state=1))
    first = [(one["solvent"], one["hours"]) for one in client.get_next_trials(max_trials=2).values()]
    assert first == proposed[:2]


@pytest.mark.filterwarnings("ignore")
def test_the_mixture_chooses_points_of_real_ranges():
    pytest.importorskip("ax")
    from ax.api.configs import RangeParameterConfig

    box = alexp.Box([-1.0, 0.0], [1.0, 4.0], resolution=256)
    node = generation_node(alexp.ModelClass.from_inputs(box), box, keys=["x", "z"])
    ranges = [("z", (0.0, 4.0)), ("x", (-1.0, 1.0))]  # in another order
    parameters = [RangeParameterConfig(name=name, bounds=ends, parameter_type="float") for name, ends in ranges]
    client, losses = _client(parameters, node), []
    for _ in range(6):
        for index, point in client.get_next_trials(max_trials=2).items():
            assert -1.0 <= point["x"] <= 1.0
            assert 0.0 <= point["z"] <= 4.0
            losses.append((point["x"] - 0.3) ** 2)
            client.complete_trial(index, raw_data={"loss": losses[-1]})
    assert min(losses) < 0.02
    assert node.companion.posterior().index[0].startswith("x0:")
