"""Several objectives, cost and budget: told by name, improved together, kept; wrong input changes nothing."""

import json
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp.algorithms.several import SeveralObjectivesError
from alexp.decision.hypervolume import hypervolume
from alexp.rules import HypervolumeImprovement

PRICES = {"XPhos": 1.5, "SPhos": 4.0, "dppf": 9.0, "none": 0.5}
FRAME = pd.DataFrame(
    [
        (f"{ligand}-{celsius}", ligand, celsius, price)
        for ligand, price in PRICES.items()
        for celsius in range(60, 130, 10)
    ],
    columns=["id", "ligand", "celsius", "price"],
)
TABLE = alexp.Table.from_frame(FRAME)
BOTH = {"yield": "maximize", "waste": "minimize"}


def measured(trial):
    return value_at(trial.index)


def value_at(index):
    row = FRAME.iloc[index]
    best = {"XPhos": 20.0, "SPhos": 45.0, "dppf": 80.0, "none": 2.0}[row.ligand]
    return {"yield": best - 0.3 * abs(row.celsius - 100), "waste": row.price + 0.05 * row.celsius}


def new(*problem, **settings):
    return alexp.EvidenceMixture(*(problem or (TABLE,)), **{"objectives": BOTH, "random_state": 0} | settings)


def played(n=3, size=4, problem=(), **settings):
    opt = new(*problem, **settings)
    for _ in range(n):
        for trial in opt.ask(size):
            opt.tell(trial, measured(trial))
    return opt


def beats(one, other):
    return one["yield"] >= other["yield"] and one["waste"] <= other["waste"] and one != other


def test_the_compromises_are_the_measured_candidates_that_no_other_beats():
    opt = played()
    front, frame = opt.pareto(), opt.trials_dataframe()
    assert list(front.columns) == ["id", "x", "index", "yield", "waste"]
    assert "reward" not in frame
    rows = frame[["yield", "waste"]].to_dict("records")
    right = {k for k, one in enumerate(rows) if not any(beats(other, one) for other in rows)}
    assert set(front["id"]) == right
    assert front["yield"].is_monotonic_decreasing
    for row in front.to_dict("records"):
        assert value_at(row["index"]) == {"yield": row["yield"], "waste": row["waste"]}


def test_it_reaches_more_hypervolume_than_chance():
    values = np.array([list(value_at(k).values()) for k in range(28)])
    values[:, 1] *= -1.0
    whole = hypervolume(values, values.min(axis=0))
    shares = []
    for seed in range(6):
        opt = played(random_state=seed)
        own = hypervolume(values[opt.trials_dataframe()["index"]], values.min(axis=0)) / whole
        rng = np.random.default_rng(seed)
        chance = [hypervolume(values[rng.permutation(28)[:12]], values.min(axis=0)) / whole for _ in range(50)]
        shares.append(own - np.mean(chance))
    assert np.mean(shares) > 0.05, shares


def test_a_plate_is_what_single_asks_make_and_nothing_is_drawn():
    plates, singles = played(2), new()
    for _ in range(2):
        trials = [singles.ask() for _ in range(4)]
        for trial in trials:
            singles.tell(trial, measured(trial))
    assert singles.to_dict() == plates.to_dict()
    assert {trial.propensity for trial in plates.ask(3)} == {1.0}


def test_amending_gives_the_run_that_was_told_right_at_once():
    right, wrong = played(1), new()
    for trial in wrong.ask(4):
        wrong.tell(trial, measured(trial) | ({"waste": 77.0} if trial.id == 1 else {}))
    assert wrong.to_dict() != right.to_dict()
    wrong.amend(1, value_at(wrong.log.index[1]))
    assert wrong.to_dict() == right.to_dict()


def test_a_saved_run_continues_bit_for_bit_with_failures_and_retractions():
    opt = played()
    opt.ask(4)
    opt.fail(12, "tar")
    opt.abandon(13)
    opt.retract(0)
    again = alexp.EvidenceMixture.from_dict(json.loads(json.dumps(opt.to_dict())))
    assert again.to_dict() == opt.to_dict()
    assert [trial.index for trial in again.ask(3)] == [trial.index for trial in opt.ask(3)]
    assert opt.trials_dataframe().loc[[0, 12, 13], ["yield", "waste"]].isna().all().all()
    assert opt.log.index[12] not in opt.choosable()


def test_wrong_rewards_are_refused_by_name_and_change_nothing():
    opt = new(reward_range={"yield": (0, 100)})
    trial, other = opt.ask(2)
    opt.tell(other, {"yield": 50.0, "waste": 3.0})
    before = opt.to_dict()
    for wrong, match in [
        (81, "reward must name the objectives"),
        ({"yield": 81}, "reward lacks 'waste'"),
        ({"yield": 81, "wast": 3}, "'wast' is no objective; did you mean 'waste'"),
        ({"yield": 81, "waste": float("nan")}, "waste must be finite"),
        ({"yield": 810, "waste": 3}, "yield: reward must lie within the reward_range of 0 to 100, got 810"),
        ({"yield": [81, 82], "waste": [3]}, "as many numbers of every objective"),
        ({"yield": "81", "waste": 3}, "yield"),
        ([{"yield": 81, "waste": 3}, {"yield": 81}], "reward lacks 'waste'"),
    ]:
        for way in (lambda w=wrong: opt.tell(trial, w), lambda w=wrong: opt.amend(other, w)):
            with pytest.raises((ValueError, TypeError), match=match):
                way()
    with pytest.raises(ValueError, match="reward lacks 'waste'"):
        opt.observe(3, {"yield": 3.0})
    assert opt.to_dict() == before


def test_replicates_come_as_lists_of_either_kind():
    one, other = new(), new()
    for opt, reward in (
        (one, [{"yield": 71.0, "waste": 3.0}, {"yield": 73.0, "waste": 3.5}]),
        (other, {"yield": [71.0, 73.0], "waste": [3.0, 3.5]}),
    ):
        opt.tell(opt.ask(), reward)
        assert opt.n_told == 2
        assert opt.pareto()[["yield", "waste"]].to_numpy().tolist() == [[72.0, 3.25]]
    assert one.to_dict() == other.to_dict()
    with pytest.raises(ValueError, match="already has the reward .*'yield': 71.0, 'waste': 3.0.*now got"):
        one.tell(0, {"yield": 71.0, "waste": 2.0}, if_told="same")
    one.tell(0, [{"yield": 71.0, "waste": 3.0}, {"yield": 73.0, "waste": 3.5}], if_told="same")


def test_there_is_no_single_best_and_each_objective_answers_for_itself():
    linear = TABLE.models("linear"), TABLE
    opt = played(problem=linear, noise_std={"yield": 10.0}, reward_bound={"yield": 200.0})
    for call in (opt.best, opt.stop_report):
        with pytest.raises(SeveralObjectivesError, match=r"pareto\(\) lists the best compromises"):
            call()
    for call in (opt.plausible_models, opt.check_models, lambda: opt.confidence(FRAME.iloc[3])):
        with pytest.raises(SeveralObjectivesError, match=r"about one objective; objective\('yield'\) answers"):
            call()
    again = alexp.EvidenceMixture.from_dict(json.loads(json.dumps(opt.to_dict())))
    assert again.to_dict() == opt.to_dict(), "each objective has grids of its own"
    own, other = opt.objective("yield"), opt.objective("waste")
    assert own.direction == "maximize"
    assert other.direction == "minimize"
    assert own.certifies
    assert not other.certifies
    assert own.stop_report().certified
    alone = alexp.EvidenceMixture(*linear, direction="minimize", power=opt.power, rule="ei", random_state=0)
    for k in range(opt.n_asked):
        alone.observe(opt.log.index[k], measured(opt.trial(k))["waste"])
    assert other.best().index == alone.best().index
    assert other.predict(FRAME.iloc[3])[0] == pytest.approx(alone.predict(FRAME.iloc[3])[0], rel=1e-9)
    with pytest.raises(ValueError, match="objective must be one of 'yield', 'waste', got 'cost'"):
        opt.objective("cost")


def test_a_column_of_the_table_is_known_and_needs_no_telling():
    opt = new(objectives={"yield": "maximize", "price": "minimize"})
    for _ in range(3):
        for k, trial in enumerate(opt.ask(4)):
            value = measured(trial)["yield"]
            opt.tell(trial, value if k % 2 else {"yield": value})
    assert opt.pareto()["price"].tolist() == [FRAME.price[k] for k in opt.pareto()["index"]]
    assert opt.trials_dataframe()["price"].tolist() == [FRAME.price[k] for k in opt.log.index]
    with pytest.raises(ValueError, match="'price' is a column of the candidates and known; leave it out"):
        opt.tell(opt.ask(), {"yield": 3.0, "price": 1.0})
    again = alexp.EvidenceMixture.from_dict(json.loads(json.dumps(opt.to_dict())))
    assert again.to_dict() == opt.to_dict()


@pytest.mark.parametrize("n_objectives", [2, 3])
def test_units_of_objectives_do_not_matter(n_objectives):
    names = dict(list({"yield": "maximize", "waste": "minimize", "hours": "minimize"}.items())[:n_objectives])
    plain, scaled = new(objectives=names), new(objectives=names)
    for _ in range(3):
        for one, other in zip(plain.ask(3), scaled.ask(3), strict=True):
            assert one.index == other.index
            value = measured(one) | {"hours": float(one.index % 5)}
            value = {name: value[name] for name in names}
            plain.tell(one, value)
            scaled.tell(other, {name: own * (1024.0 if name == "yield" else 0.25) for name, own in value.items()})


def test_what_objectives_cannot_be_is_said():
    for wrong, match in [
        ({"yield": "maximize"}, "must name two or three"),
        ({"yield": "maximize", "waste": "smaller"}, r"objectives\['waste'\] must be"),
        ({"price": "minimize", "celsius": "minimize"}, "name one that is measured"),
        ({"ligand": "minimize", "yield": "maximize"}, "column 'ligand' must hold numbers"),
        ({"yield": "maximize", "reward": "minimize"}, "'reward' is a column of exported trials"),
    ]:
        with pytest.raises(ValueError, match=match):
            new(objectives=wrong)
    with pytest.raises(ValueError, match="noise_std must be given by objective"):
        new(noise_std=1.0)
    with pytest.raises(ValueError, match=r"reward_range\['cost'\] is none of the measured objectives"):
        new(reward_range={"cost": (0, 1)})
    with pytest.raises(ValueError, match="ratio_grid and light are for one measured objective"):
        new(ratio_grid=(0.1, 0.2))
    with pytest.raises(ValueError, match='needs goal="best"'):
        new(goal="sum")
    with pytest.raises(ValueError, match="decides on one objective"):
        new(rule="ucb")
    with pytest.raises(ValueError, match="is for several objectives"):
        alexp.EvidenceMixture(TABLE, rule=HypervolumeImprovement())
    with pytest.raises(ValueError, match="leave direction out"):
        new(direction="minimize")
    with pytest.raises(ValueError, match=r"pareto\(\) is for several objectives"):
        alexp.EvidenceMixture(TABLE).pareto()


def test_zero_has_no_sign_in_rewards_by_name():
    opt = new()
    (first, second) = opt.objectives.measured
    assert str(opt.check_reward({first: 81.0, second: -0.0})[second]) == "0.0"


# -- cost and budget ----------------------------------------------------------------------------------------------


def test_a_budget_is_never_exceeded_and_plates_are_whole():
    for seed, size in combinations(range(1, 5), 2):
        opt = alexp.EvidenceMixture(TABLE, cost="price", budget=20.0 + seed, random_state=seed)
        total = 0.0
        while True:
            left = np.sort(np.delete(FRAME.price.to_numpy(), list(opt.log.index)))
            if left.size < size or left[:size].sum() > opt.budget_left + 1e-9:
                with pytest.raises(ValueError, match="what is left of the budget"):
                    opt.ask(size)
                break
            plate = opt.ask(size)
            assert len({trial.index for trial in plate}) == size
            total += sum(FRAME.price[trial.index] for trial in plate)
            assert total <= 20.0 + seed + 1e-9
            assert opt.spent == pytest.approx(total)
            for trial in plate:
                opt.tell(trial, measured(trial)["yield"])


def test_plates_with_limits_and_a_budget_are_whole():
    rng = np.random.default_rng(0)
    for seed in range(8):
        opt = alexp.EvidenceMixture(TABLE, cost=rng.uniform(0.5, 6.0, 28), budget=25.0, random_state=seed)
        costs = np.array(opt.cost)
        trials = []
        while True:
            try:
                plate = opt.ask(
                    3, at_most={"ligand": 1} if seed % 2 else None, together="celsius" if seed % 3 else None
                )
            except ValueError:
                break
            if seed % 2:
                assert len({FRAME.ligand[trial.index] for trial in plate}) == 3
            if seed % 3:
                assert len({FRAME.celsius[trial.index] for trial in plate}) == 1
            trials += plate
        assert trials
        assert sum(costs[trial.index] for trial in trials) <= 25.0 + 1e-9


def test_improvement_is_per_cost_and_failed_trials_cost_while_abandoned_ones_do_not():
    free = alexp.EvidenceMixture(TABLE, rule="ei", random_state=0)
    dear = alexp.EvidenceMixture(TABLE, cost="price", budget=100.0, random_state=0)
    costs = FRAME.price.to_numpy()
    for opt in (free, dear):
        for index in (0, 8, 15, 22):
            opt.observe(index, value_at(index)["yield"])
    round_ = free._open(None)
    gains = free.belief.expected_improvement(round_, 2.0)
    wanted = int(round_.indices[np.argmax(gains / costs[round_.indices])])
    assert dear.spent == 0.0, "what was measured elsewhere was not paid for here"
    first, second, third = dear.ask(3)
    assert first.index == wanted
    paid = costs[[first.index, second.index, third.index]]
    dear.fail(first)
    dear.abandon(second)
    dear.tell(third, 4.0)
    dear.retract(third)
    assert dear.spent == pytest.approx(paid[0] + paid[2])
    assert dear.budget_left == pytest.approx(100.0 - paid[0] - paid[2])
    again = alexp.EvidenceMixture.from_dict(json.loads(json.dumps(dear.to_dict())))
    assert again.budget_left == dear.budget_left


def test_objectives_and_cost_go_together():
    opt = new(cost="price", budget=12.0)
    seen = 0
    while seen < 20:
        try:
            trial = opt.ask()
        except ValueError:
            break
        opt.tell(trial, measured(trial))
        seen += 1
    assert 0 < opt.spent <= 12.0
    assert opt.budget_left < FRAME.price.drop(list(opt.log.index)).min()


def test_what_cost_and_budget_cannot_be_is_said():
    for settings, match in [
        ({"cost": "prize"}, "did you mean 'price'"),
        ({"cost": "ligand"}, "column 'ligand' must hold numbers"),
        ({"cost": [1.0, 2.0]}, "for each of the 28 candidates, got 2"),
        ({"cost": [0.0] * 28}, "cost of candidate 0 must be positive"),
        ({"budget": 3.0}, "budget= needs cost="),
        ({"cost": "price", "budget": -1.0}, "budget must not be negative"),
        ({"cost": "price", "rule": "ucb"}, "weighs none"),
        ({"cost": "price", "goal": "sum"}, "weighs none"),
    ]:
        with pytest.raises((ValueError, TypeError), match=match):
            alexp.EvidenceMixture(TABLE, **settings)


def test_the_summary_speaks_of_compromises_and_money():
    opt = played(cost="price", budget=100.0)
    text = opt.summary()
    assert "beaten by no other in all of yield, waste" in text
    assert f"Spent: {opt.spent:.6g} of a budget of 100" in text


def test_added_candidates_bring_their_costs_and_known_objectives():
    opt = new(objectives=BOTH | {"price": "minimize"}, cost="price", budget=100.0)
    for trial in opt.ask(4):
        opt.tell(trial, measured(trial))
    before = opt.to_dict()
    row = {"id": "cheap-100", "ligand": "XPhos", "celsius": 100, "price": 0.25}
    for wrong, match in [(-1.0, "has no logarithm")]:
        with pytest.raises(ValueError, match=match):
            opt.add_candidates(alexp.Table.from_frame(pd.DataFrame([row | {"price": wrong}, row | {"id": "b"}])))
    assert opt.to_dict() == before
    (number,) = opt.add_candidates(alexp.Table.from_frame(pd.DataFrame([row])))
    opt.observe(number, {"yield": 90.0, "waste": 0.1})
    assert opt.pareto()["price"].tolist() == [0.25]
    assert opt.costs[number] == 0.25
    again = alexp.EvidenceMixture.from_dict(json.loads(json.dumps(opt.to_dict())))
    assert again.to_dict() == opt.to_dict()
    listed = alexp.EvidenceMixture(TABLE, cost=[1.0] * 28, random_state=0)
    with pytest.raises(ValueError, match="make the run with the name of a column"):
        listed.add_candidates(alexp.Table.from_frame(pd.DataFrame([row])))


def test_candidates_are_dicts_in_tables_of_trials_and_the_budget_is_told_before_the_first_reward():
    opt = alexp.EvidenceMixture(TABLE, cost="price", budget=30.0, random_state=0)
    trial = opt.ask()
    assert opt.trials_dataframe()["x"].tolist() == [trial.x.to_dict()]
    assert f"Spent: {trial.x['price']:.6g} of a budget of 30;" in str(opt.summary())
