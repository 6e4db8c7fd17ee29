"""Probability matching: what is logged is what was drawn from, everything has a propensity, and IPS is unbiased."""

import numpy as np
import pytest

import alexp

DOMAIN = alexp.Interval(-1.0, 1.0, resolution=9)
MODELS = alexp.ModelClass.legendre(degree=3, size=2)


def value(x):
    return 1.0 - (x - 0.5) ** 2


def run(steps=0, seed=0, **settings):
    opt = alexp.EvidenceMixture(MODELS, DOMAIN, random_state=seed, **{"rule": "matching"} | settings)
    noise = np.random.default_rng([seed, 1])
    for _ in range(steps):
        trial = opt.ask()
        opt.tell(trial, value(trial.x) + 0.3 * noise.standard_normal())
    return opt


def distribution(opt):
    """Probability of every candidate in the next round, by candidate."""
    play = opt._decision(opt._open(None)).play
    return np.array([play.probability(int(opt._candidates.position[i])) for i in range(9)])


def test_the_propensity_is_the_probability_it_was_drawn_with():
    opt = run(6)
    q = distribution(opt)
    assert q.sum() == pytest.approx(1.0)
    assert q.min() >= 0.01 / 9
    trial = opt.ask()
    assert trial.propensity == pytest.approx(q[trial.index], rel=1e-12)


def test_actions_come_as_often_as_is_said():
    opt = run(4)
    q = distribution(opt)
    draws = [opt._decision(opt._everything).play.draw(np.random.default_rng(k)).position for k in range(4000)]
    found = np.bincount(opt._candidates.order[draws], minlength=9) / 4000
    assert np.abs(found - q).max() < 4.0 * np.sqrt(0.25 / 4000)


def test_the_decision_is_a_function_of_seed_and_history():
    opt = run(7)
    again = alexp.EvidenceMixture.from_dict(opt.to_dict(), models=MODELS)
    assert distribution(opt).tobytes() == distribution(again).tobytes() == distribution(run(7)).tobytes()
    assert opt.ask() == again.ask()


def test_sharpness_is_a_power():
    plain, sharp = (distribution(run(0, rule=alexp.rules.Matching(power), floor=0.0)) for power in (1.0, 3.0))
    assert sharp == pytest.approx(plain**3 / np.sum(plain**3))


@pytest.mark.parametrize("floor", [0.0, 0.2, 1.0])
def test_floor(floor):
    assert distribution(run(12, floor=floor)).min() >= floor / 9
    assert run(floor=floor).floor == floor


@pytest.mark.parametrize("rule", ["ucb", "ids", "ei", "thompson"])
def test_other_rules_have_a_floor_if_they_are_told_to(rule):
    q = distribution(_other(rule, 0.1))
    assert q.min() == pytest.approx(0.1 / 9)
    assert distribution(_other(rule, None)).min() == 0.0


def _other(rule, floor):
    opt = alexp.EvidenceMixture(MODELS, DOMAIN, rule=rule, floor=floor, random_state=0)
    for _ in range(3):
        trial = opt.ask()
        opt.tell(trial, value(trial.x))
    return opt


@pytest.mark.parametrize("floor", [-0.1, 1.5, float("nan")])
def test_wrong_floors_are_refused(floor):
    with pytest.raises(ValueError, match="floor"):
        run(floor=floor)


def test_importance_weights_are_unbiased():
    """The value of uniform play from logs of matching, over 150 logs; eight draws cannot do it."""
    truth = float(np.mean([value(x) for x in np.linspace(-1.0, 1.0, 9)]))

    def estimate(seed, **settings):
        opt = alexp.EvidenceMixture(MODELS, DOMAIN, random_state=seed, **settings)
        noise, terms = np.random.default_rng([seed, 1]), []
        for _ in range(12):
            trial = opt.ask()
            reward = value(trial.x) + 0.3 * noise.standard_normal()
            opt.tell(trial, reward)
            terms.append(reward / 9.0 / trial.propensity)
        return np.mean(terms)

    found = [estimate(seed, rule="matching", floor=0.2) for seed in range(150)]
    assert abs(np.mean(found) - truth) < 3.0 * np.std(found) / np.sqrt(150)
    few = [estimate(seed, rule="thompson") for seed in range(150)]
    assert abs(np.mean(few) - truth) > 6.0 * np.std(few) / np.sqrt(150)


def test_kernels_have_a_floor_as_well():
    models = alexp.ModelClass.from_matrices({"x": np.linspace(-1.0, 1.0, 9)[:, None]}, kernels="auto")
    opt = alexp.EvidenceMixture(models, alexp.FiniteSet(np.arange(9)), rule="matching", random_state=0)
    for _ in range(3):
        trial = opt.ask()
        opt.tell(trial, float(trial.x))
    q = distribution(opt)
    assert q.min() >= 0.01 / 9
    assert np.all(np.abs((q - 0.01 / 9) / 0.99 * 64 % 1.0 - 0.5) > 0.49)  # shares of 64 draws


# -- candidates that are new in every round --------------------------------------------------------------------

BLOCKS = alexp.ModelClass.from_blocks({"user": 3, "item": 2})
THETA = np.array([1.0, -1.0, 0.5, 0.0, 0.0])


def contextual(steps=0, seed=0, **settings):
    opt = alexp.EvidenceMixture(BLOCKS, alexp.Candidates(), random_state=seed, **settings)
    rng = np.random.default_rng([seed, 2])
    for _ in range(steps):
        features = rng.standard_normal((4, 5))
        trial = opt.ask(features=features)
        opt.tell(trial, float(features[trial.index] @ THETA) + 0.3 * rng.standard_normal())
    return opt


def test_a_share_of_the_rounds_is_matched_and_the_rest_is_ucb():
    features = np.random.default_rng(8).standard_normal((4, 5))
    policies = []
    for rule in (alexp.rules.Matching(), alexp.rules.UCB(), alexp.rules.Matching(share=0.25)):
        opt = contextual(rule=rule, floor=0.0)
        policies.append(opt.policy(features=features))
    matched, ucb, both = policies
    assert both == pytest.approx(0.25 * matched + 0.75 * ucb)
    assert ucb.max() == 1.0


def test_new_candidates_are_matched_by_default():
    opt = contextual(30)
    assert (opt.rule, opt.floor) == (alexp.rules.Matching(share=0.25), 0.01)
    features = np.random.default_rng(7).standard_normal((4, 5))
    q = opt.policy(features=features)
    assert q.sum() == pytest.approx(1.0)
    assert q.min() >= 0.01 / 4
    assert int(np.argmax(q)) == int(np.argmax(features @ THETA))
    trial = opt.ask(features=features)
    assert trial.propensity == pytest.approx(q[trial.index], rel=1e-12)
    assert opt.probabilities[0] > 0.9


def test_contextual_runs_calibrate_and_continue_bit_for_bit():
    opt = contextual(40)
    again = alexp.EvidenceMixture.from_dict(opt.to_dict(), models=BLOCKS)
    rng = np.random.default_rng(1)
    for _ in range(30):  # beyond the last time that prior scales are measured
        features = rng.standard_normal((4, 5))
        one, other = opt.ask(features=features), again.ask(features=features)
        assert (one.index, one.propensity) == (other.index, other.propensity)
        reward = float(features[one.index] @ THETA)
        opt.tell(one, reward)
        again.tell(other, reward)
    assert opt.to_dict(problem=False)["state"] == again.to_dict(problem=False)["state"]


def test_forgetting_goes_with_new_candidates():
    opt = contextual(30, forget=0.95)
    assert opt.belief.mixture.mass == pytest.approx((1 - 0.95**30) / 0.05)
    assert opt.probabilities[0] > 0.8
