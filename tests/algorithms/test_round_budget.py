"""A budget per round: never exceeded at any moment, prices that follow it, exact propensities, saved and replayed."""

from math import exp, sqrt

import numpy as np
import pytest

import alexp
from alexp.problem.budgets import RoundPurse

pytestmark = pytest.mark.filterwarnings("ignore::alexp.AssumptionWarning")

ARMS = ("small", "large")


def routing(budget=0.3, cost=(0.0, 1.0), **settings):
    arms = alexp.Arms(ARMS)
    models = alexp.ModelClass.per_arm({"a": [0, 1], "b": [2, 3]}, arms)
    return alexp.EvidenceMixture(models, arms, **({"cost": cost, "budget": budget, "random_state": 0} | settings))


def play(opt, rounds, seed=0, binary=False):
    """Contexts of four numbers; the large arm gains 0.2 + 0.6 x. Asserts the budget after every ask."""
    rng, spent, earned = np.random.default_rng([seed, 1]), 0.0, 0.0
    costs = dict(zip(ARMS, opt.cost, strict=True))
    for t in range(opt.n_asked, opt.n_asked + rounds):
        context = rng.standard_normal(4)
        trial = opt.ask(context=context)
        spent += costs[trial.x]
        assert opt.spent <= opt.budget * (t + 1) + 1e-9
        gain = (0.2 + 0.6 * context[0]) * (trial.x == "large")
        earned += gain
        reward = gain + 0.3 * rng.standard_normal()
        opt.tell(trial, float(reward > 0.0) if binary else reward)
    assert opt.spent == pytest.approx(spent)
    return earned


@pytest.mark.parametrize(
    ("settings", "binary"),
    [({}, False), ({"rule": "ucb"}, False), ({"rule": "thompson"}, False), ({"likelihood": "bernoulli"}, True)],
)
@pytest.mark.parametrize("budget", [0.04, 0.3])
def test_never_exceeded(settings, binary, budget):
    play(routing(budget, **settings), 120, binary=binary)


@pytest.mark.parametrize("seed", range(100))
def test_never_exceeded_in_a_hundred_runs(seed):
    rng = np.random.default_rng([seed, 2])
    cost = np.sort(rng.exponential(size=2))
    budget = float(cost[0] + rng.random() * (cost[1] - cost[0]))
    opt = routing(budget, cost=cost.tolist(), random_state=seed)
    play(opt, 300, seed)
    assert opt.budget_left == pytest.approx(budget * 300 - opt.spent)


def test_the_budget_goes_where_it_gains_most():
    even, priced = 0.0, 0.0
    for seed in range(3):
        opt = routing(0.3, random_state=seed)
        priced += play(opt, 300, seed)
        even += 0.2 * opt.spent  # what the same costs gain on average over contexts
        assert opt.spent > 0.24 * 300
    assert priced > 2.0 * even


def test_price_by_the_formula():
    purse = RoundPurse(budget=0.5, rounds=8, spent=1.0)
    unit = 4.0 + sqrt(0.5 * 4.0 * 8)
    assert purse.left == 3.0
    assert purse.price(np.array([0.25, 1.0, 4.0]), spread=2.0) == pytest.approx(2.0 / 0.75 * exp(-3.0 * 3.0 / unit))
    assert purse.price(np.array([0.25, 0.5]), spread=2.0) == 0.0
    assert purse.price(np.array([1.0, 4.0]), spread=2.0) == pytest.approx(2.0 / 3.0 * exp(-3.0 * 3.0 / unit))
    assert purse.price(np.array([1.0, 1.0]), spread=2.0) == 0.0
    assert purse.allows(np.array([3.0, 3.1])).tolist() == [True, False]


@pytest.mark.parametrize("rule", ["ucb", "thompson", "matching"])
def test_every_rule_weighs_rewards_less_the_price(rule):
    opt = routing(0.3, rule=rule)
    play(opt, 60)
    context = np.array([0.5, 0.0, 0.0, 0.0])
    tight = opt.policy(context=context)
    opt._price = lambda round_: np.array([0.0, 1e6])[round_.indices]
    opt._known.clear()
    assert opt.policy(context=context)[1] <= 0.01
    opt._price = lambda round_: np.zeros(len(round_))
    opt._known.clear()
    assert opt.policy(context=context)[1] >= tight[1]


def test_propensities_are_the_frequencies_and_zero_for_what_cannot_be_paid():
    opt = routing(0.3)
    play(opt, 40)
    context = np.array([0.4, 0.0, 0.0, 0.0])
    state, expected = opt.to_dict(), opt.policy(context=context)
    drawn = []
    for seed in range(60):
        again = alexp.EvidenceMixture.from_dict(state)
        again._streams = type(again._streams)(seed)
        again._agent_rng = opt._agent_rng
        trial = again.ask(context=context)
        assert trial.propensity == pytest.approx(expected[trial.index], abs=1e-12)
        drawn.append(trial.index)
    assert abs(np.mean(drawn) - expected[1]) < 4.0 * sqrt(expected[1] * expected[0] / 60) + 1e-9
    first = routing(0.3)
    assert first.policy(context=context).tolist() == [1.0, 0.0]
    trial = first.ask(context=context)
    assert (trial.x, trial.propensity) == ("small", 1.0)


def test_saved_amended_and_told_late_are_the_same_run():
    opt, rng = routing(0.3), np.random.default_rng(5)
    play(opt, 30)
    again = alexp.EvidenceMixture.from_dict(opt.to_dict())
    assert again.cost == opt.cost
    contexts = rng.standard_normal((6, 4))
    for one in (opt, again):
        trials = one.ask(6, context=contexts)
        for trial in trials[::-1]:
            one.tell(trial, 0.1 * trial.id)
        one.amend(3, 0.7)
    assert opt.to_dict() == again.to_dict()
    assert opt.spent == again.spent
    assert [opt.ask(context=one).propensity for one in contexts] == [
        again.ask(context=one).propensity for one in contexts
    ]


def test_a_plate_of_rounds_keeps_the_budget_within():
    opt, rng = routing(0.3), np.random.default_rng(6)
    for _ in range(20):
        for trial in opt.ask(7, context=rng.standard_normal((7, 4))):
            opt.tell(trial, float(trial.index))
        assert opt.spent <= 0.3 * opt.n_asked + 1e-9
    assert opt.spent > 0.2 * opt.n_asked


def test_abandoned_rounds_were_played_and_observed_ones_were_not():
    opt = routing(0.5)
    play(opt, 20)
    opt.ask(context=np.zeros(4))
    before = opt.spent, opt.total_budget, opt.budget_left
    opt.abandon(20)
    assert (opt.spent, opt.total_budget, opt.budget_left) == before
    opt.observe("large", 1.0, context=np.zeros(4))
    assert (opt.spent, opt.total_budget, opt.budget_left) == before


def test_costs_of_new_candidates_are_a_feature():
    models, rng = alexp.ModelClass.from_blocks({"quality": 3, "price": 1}), np.random.default_rng(0)
    opt = alexp.EvidenceMixture(models, alexp.Candidates(), cost="price", budget=1.0, random_state=1)
    spent = 0.0
    for t in range(100):
        n = int(rng.integers(1, 6))
        features = np.hstack([rng.standard_normal((n, 3)), rng.uniform(0.0, 4.0, (n, 1))])
        features[0, 3] = rng.random()
        trial = opt.ask(features=features)
        spent += features[trial.index, 3]
        assert opt.spent == pytest.approx(spent)
        assert spent <= t + 1 + 1e-9
        opt.tell(trial, float(features[trial.index, 0]))
    with pytest.raises(ValueError, match="this round costs 500 at least, and .* can be paid with budget=1 a round"):
        opt.ask(features=np.array([[0.0, 0.0, 0.0, 500.0]]))
    with pytest.raises(ValueError, match="must not be negative, got -1 in this round"):
        opt.ask(features=np.array([[0.0, 0.0, 0.0, -1.0]]))
    with pytest.raises(ValueError, match="this round costs 3 at least, and 1 can be paid"):
        opt.ask(2, features=np.array([[0.0, 0.0, 0.0, 0.5], [0.0, 0.0, 0.0, 3.0]]))
    assert opt.n_asked == 100


def test_what_was_saved_pays_for_rounds_in_which_all_is_dear():
    models = alexp.ModelClass.from_blocks({"quality": 3, "price": 1})
    opt = alexp.EvidenceMixture(models, alexp.Candidates(), cost="price", budget=1.0, random_state=1)
    for price in (0.1, 0.1, 0.1, 1.5):
        opt.tell(opt.ask(features=np.array([[1.0, 0.0, 0.0, price], [0.0, 1.0, 0.0, price]])), price)
    assert opt.spent == pytest.approx(1.8)
    assert np.isfinite(opt.policy(features=np.array([[1.0, 0.0, 0.0, 1.2], [0.0, 1.0, 0.0, 1.6]]))).all()


def test_a_budget_that_never_binds_changes_nothing():
    free, rich, rng = routing(5.0), routing(None, cost=None), np.random.default_rng(3)
    for _ in range(30):
        context, reward = rng.standard_normal(4), float(rng.random())
        trials = [one.ask(context=context) for one in (free, rich)]
        assert trials[0].propensity == trials[1].propensity
        for one, trial in zip((free, rich), trials, strict=True):
            one.tell(trial, reward)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cost": None}, "budget= needs cost=: a number for each arm"),
        ({"cost": (0.5, 1.0)}, r"budget must be at least the cost of the cheapest arm, 0\.5; got 0\.3"),
        ({"cost": (0.0,)}, "a number for each of the 2 arms"),
        ({"cost": {"small": 0.0, "huge": 1.0}}, "a number for each arm, small, large"),
        ({"cost": (0.0, -1.0)}, "cost of arm 'large' must not be negative"),
        ({"cost": "price"}, "cost='price' must name a block or map of one column"),
        ({"budget": 0.0}, "budget must be"),
        ({"goal": "best"}, 'for goal="sum"'),
    ],
)
def test_wrong_budgets_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        routing(**settings)


def test_costs_by_name_and_arms_that_have_none():
    opt = routing(cost={"large": 1.0, "small": 0.0})
    assert opt.cost == (0.0, 1.0)
    play(opt, 3)
    with pytest.raises(ValueError, match="an added arm has none"):
        opt.check_arm("huge")
    opt.domain.add("huge")
    with pytest.raises(ValueError, match="an added arm has none"):
        opt.ask(context=np.zeros(4))
    blocks = alexp.ModelClass.from_blocks({"price": 1, "other": 2})
    with pytest.raises(ValueError, match="must name the feature that holds it"):
        alexp.EvidenceMixture(blocks, alexp.Candidates(), cost=[1.0], budget=1.0)
    with pytest.raises(ValueError, match='log_features="none" keeps no features'):
        alexp.EvidenceMixture(blocks, alexp.Candidates(), cost="price", budget=1.0, log_features="none")


# -- cost without a budget ---------------------------------------------------------------------------------------


def test_a_cost_without_a_budget_is_taken_off_the_rewards():
    opt, rng = routing(None, cost=[0.0, 0.3], rule=alexp.rules.UCB(beta=0.5)), np.random.default_rng(5)
    for _ in range(40):
        context = rng.standard_normal(4)
        mean, std = opt.predict(context=context)  # of what is told
        trial = opt.ask(context=context)
        assert trial.index == np.argmax(mean + 0.5 * std - [0.0, 0.3])
        opt.tell(trial, 0.4 * context[0] * (trial.x == "large") + 0.1 * rng.standard_normal())
    played = [opt.trial(t).x for t in range(40)]
    assert 3 < played.count("large") < 37
    assert opt.spent == pytest.approx(0.3 * played.count("large"))
    assert opt.total_budget is None
    assert opt.budget_left is None


@pytest.mark.parametrize("rule", ["matching", "ucb", "thompson"])
def test_what_is_right_as_often_and_costs_more_is_hardly_played(rule):
    opt, rng = (
        routing(None, cost={"large": 0.3, "small": 0.0}, likelihood="bernoulli", rule=rule),
        np.random.default_rng(6),
    )
    for _ in range(150):
        opt.tell(opt.ask(context=rng.standard_normal(4)), float(rng.random() < 0.6))
    assert np.mean([opt.trial(t).x == "small" for t in range(75, 150)]) > 0.8
    again = alexp.EvidenceMixture.from_dict(opt.to_dict())
    np.testing.assert_array_equal(again.policy(context=np.ones(4)), opt.policy(context=np.ones(4)))


def test_probabilities_less_a_price_are_compared_not_logits():
    """At even odds a difference of the logits is worth more than where both are nearly sure: so is what it may cost."""
    opt, rng = routing(None, cost=[0.0, 0.15], likelihood="bernoulli"), np.random.default_rng(7)
    for _ in range(600):
        context = rng.standard_normal(4)
        trial = opt.ask(context=context)
        logit = 2.0 * context[0] + (trial.x == "large")
        opt.tell(trial, float(rng.random() < 1.0 / (1.0 + np.exp(-logit))))
    hard, even, easy = (opt.policy(context=[level, 0.0, 0.0, 0.0])[1] for level in (-2.5, -0.25, 2.5))
    assert even > 0.7
    assert hard < 0.4
    assert easy < 0.4
