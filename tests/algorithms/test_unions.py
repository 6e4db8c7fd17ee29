"""Sets of features that are joined: none is unheard beside a larger one, and runs can be saved at any moment."""

import numpy as np
import pytest

import alexp
from alexp.estimation.mixture.making import ratio_mixture
from alexp.problem.candidates import Choices

ARMS = alexp.Arms(["small", "large"])
SETS = {"few": [0], "many": list(range(1, 41))}


def run(likelihood="gaussian", **settings):
    models = alexp.ModelClass.per_arm(SETS, ARMS, unions=True)
    return alexp.EvidenceMixture(models, ARMS, likelihood=likelihood, random_state=0, **settings)


def play(opt, rounds, seed=0):
    """The one feature of the first set says which arm is right; those of the other set say a little about both."""
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        context = rng.standard_normal(41)
        trial = opt.ask(context=context)
        logit = 1.5 * context[0] * (1.0 if trial.x == "large" else -1.0) + 0.3 * context[1:5].sum()
        opt.tell(trial, float(rng.random() < 1.0 / (1.0 + np.exp(-logit))))
    return opt


def test_a_union_is_the_same_as_its_sets_in_other_units():
    """Multiplying all features of a set by a number changes nothing."""
    plain, rng = run(), np.random.default_rng(1)
    models = alexp.ModelClass.per_arm(
        {"few": lambda z: 1000.0 * z[:1], "many": lambda z: 0.01 * z[1:]}, ARMS, unions=True
    )
    scaled = alexp.EvidenceMixture(models, ARMS, random_state=0)
    for _ in range(80):
        context = rng.standard_normal(41)
        trials = [opt.ask(context=context) for opt in (plain, scaled)]
        assert trials[0].x == trials[1].x
        for opt, trial in zip((plain, scaled), trials, strict=True):
            opt.tell(trial, context[0] * trial.index)
    np.testing.assert_allclose(plain.probabilities, scaled.probabilities, atol=1e-6)


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
@pytest.mark.parametrize("rounds", [5, 100])
def test_saved_runs_go_on_alike(likelihood, rounds):
    opt = play(run(likelihood), rounds)
    again = alexp.EvidenceMixture.from_dict(opt.to_dict())
    contexts = np.random.default_rng(2).standard_normal((3, 41))
    for context in contexts:
        np.testing.assert_array_equal(opt.policy(context=context), again.policy(context=context))
    play(opt, 5, seed=3)
    play(again, 5, seed=3)
    np.testing.assert_array_equal(opt.probabilities, again.probabilities)


@pytest.mark.parametrize("rule", ["matching", "ucb", "thompson", "ids"])
def test_every_rule_sees_the_same_units(rule):
    opt = play(run(rule=rule), 80)
    assert opt.predict(context=np.zeros(41))[0].shape == (2,)
    trials = [opt.ask(context=context) for context in np.eye(41)[:3]]  # pending ones shrink deviations
    for trial in trials:
        opt.tell(trial, 1.0)


def test_a_mixture_in_units_equals_one_of_divided_rows():
    models = alexp.ModelClass.per_arm(SETS, ARMS, unions=True)
    mixture = ratio_mixture(models, None, (0.1, 1.0), None, 1.0)
    plain = alexp.ModelClass.per_arm(SETS, ARMS, unions=True)
    rng, rows = np.random.default_rng(4), np.zeros((80, 84))
    for t in range(80):
        rows[t, 42 * (t % 2) : 42 * (t % 2) + 42] = np.append(
            1.0, rng.standard_normal(41) * np.append(30.0, np.ones(40))
        )
    rewards = rng.standard_normal(80)
    for row, y in zip(rows, rewards, strict=True):
        mixture.update(row, y)
    divisors, units = mixture.scaling
    other = ratio_mixture(plain, None, (0.1, 1.0), None, 1.0, reference=rows[:64])
    for row, y in zip(rows, rewards, strict=True):
        other.update(row, y)
    np.testing.assert_allclose(other.scaling.divisors, divisors)
    np.testing.assert_allclose(other.scaling.units, units)
    choices = Choices(None, np.ascontiguousarray(rows[:4].T))
    np.testing.assert_allclose(
        mixture.moments(mixture.weights(), choices), other.moments(other.weights(), choices), rtol=1e-8
    )
    assert units[1] == pytest.approx(30.0, rel=0.3)
    assert units[2] == pytest.approx(np.sqrt(40.0), rel=0.1)
    assert units[0] == 1.0
