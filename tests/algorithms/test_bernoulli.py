"""EvidenceMixture(likelihood="bernoulli"): the protocol, what is refused, and what is withheld."""

import json

import numpy as np
import pytest

import alexp
from alexp.rules import UCB

ARMS = alexp.Arms(["small", "large"])
SETS = {"one": [0], "two": [1, 2], "both": [0, 1, 2]}
MODELS = alexp.ModelClass.per_arm(SETS, ARMS)
BLOCKS = alexp.ModelClass.from_blocks({"price": 1, "fit": 2}, intercept=True)


def contexts(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3))


def chance(context, arm):
    """Only the first place matters: large answers are better where it is positive."""
    return 1.0 / (1.0 + np.exp(1.0 - (1 if arm else -1) * 1.5 * context[0]))


def played(n=200, seed=0, **options):
    opt = alexp.EvidenceMixture(MODELS, ARMS, likelihood="bernoulli", random_state=seed, **options)
    rng = np.random.default_rng([seed, 1])
    for context in contexts(n, seed):
        trial = opt.ask(context=context)
        opt.tell(trial, float(rng.random() < chance(context, trial.index)))
    return opt


@pytest.fixture(scope="module")
def run():
    return played(400)


def test_it_finds_the_set_and_predicts_probabilities(run):
    assert run.probabilities[0] > 0.5
    for context in contexts(20, 9):
        mean, std = run.predict(context=context)
        low, high = run.credible(context=context, level=0.999)
        truth = [chance(context, arm) for arm in range(2)]
        assert np.all((mean > 0.0) & (mean < 1.0))
        assert np.all((low < mean) & (mean < high) & (low >= 0.0) & (high <= 1.0))
        assert np.all((low < truth) & (truth < high))
        assert np.all(std < 0.5)


def test_propensities_are_those_of_the_policy(run):
    for context in contexts(10, 5):
        policy = run.policy(context=context)
        trial = run.ask(context=context)
        assert trial.propensity == pytest.approx(policy[trial.index], abs=1e-12)
        run.abandon(trial.id)


def test_saved_runs_go_on_as_they_were():
    run = played(90)
    again = alexp.EvidenceMixture.from_dict(json.loads(json.dumps(run.to_dict())))
    assert again.likelihood == "bernoulli"
    assert again.scale_grid == run.scale_grid
    for number, context in enumerate(contexts(10, 3)):
        one, two = run.ask(context=context), again.ask(context=context)
        assert (one.index, one.propensity) == (two.index, two.propensity)
        for opt, trial in ((run, one), (again, two)):
            opt.tell(trial, float(number % 2))
    assert np.array_equal(run.probabilities, again.probabilities)


def test_amended_rewards_are_as_if_told_so():
    one, two = played(60), played(60)
    reward = one.log.reward[10]
    one.amend(10, 1.0 - reward)
    assert not np.array_equal(one.probabilities, two.probabilities)
    one.amend(10, reward)
    assert np.array_equal(one.probabilities, two.probabilities)


def test_order_of_late_rewards():
    opt = alexp.EvidenceMixture(MODELS, ARMS, likelihood="bernoulli", rule="ucb", random_state=0)
    trials = [opt.ask(context=context) for context in contexts(5)]
    for trial in reversed(trials):
        opt.tell(trial, 1.0)
    assert opt.n_told == 5


@pytest.mark.parametrize("rule", ["ucb", "ids", "thompson", "matching", UCB(beta=0.5)])
def test_rules(rule):
    opt = played(60, rule=rule)
    assert opt.best(context=contexts(1)[0]).x in ARMS.names


def test_candidates_and_tables():
    rng = np.random.default_rng(0)
    opt = alexp.EvidenceMixture(BLOCKS, alexp.Candidates(), likelihood="bernoulli", random_state=0)
    for _ in range(300):
        rows = rng.normal(size=(4, 3))
        trial = opt.ask(features=rows)
        opt.tell(trial, float(rng.random() < 1.0 / (1.0 + np.exp(-2.0 * rows[trial.index, 1]))))
    assert opt.probabilities[1] > 0.9
    models = alexp.ModelClass.legendre(degree=4, size=2)
    opt = alexp.EvidenceMixture(
        models, alexp.Interval(-1.0, 1.0, resolution=50), likelihood="bernoulli", random_state=0
    )
    for trial in opt.ask(3):
        opt.tell(trial, 1.0)
    assert 0.5 < opt.best().value < 1.0


def test_coefficients_common_to_arms():
    first = lambda z, names: np.tile(np.asarray(z)[:1], (2, 1))  # noqa: E731
    models = alexp.ModelClass.per_arm(SETS, ARMS, common=first, example=contexts(20))
    opt = alexp.EvidenceMixture(models, ARMS, likelihood="bernoulli", random_state=0)
    for number, context in enumerate(contexts(30)):
        opt.tell(opt.ask(context=context), float(number % 2))
    assert np.all(opt.predict(context=contexts(1)[0])[1] < 0.5)


@pytest.mark.parametrize("reward", [0.5, 2.0, -1.0])
def test_other_rewards_change_nothing(run, reward):
    trial = run.ask(context=contexts(1)[0])
    before = run.n_told
    with pytest.raises(ValueError, match=r'reward must be 0 or 1 with likelihood="bernoulli".*for other rewards'):
        run.tell(trial, reward)
    assert run.n_told == before
    run.tell(trial, 1.0)


def test_nothing_is_certified_and_the_reason_is_said(run):
    assert not run.certifies
    with pytest.raises(alexp.NotCertified, match=r'likelihood="bernoulli" has a logistic one'):
        run.plausible_models()


def test_no_arm_is_better_by_more_than_one():
    opt = alexp.EvidenceMixture(MODELS, ARMS, likelihood="bernoulli", random_state=0)
    opt.tell(opt.ask(context=contexts(1)[0]), 1.0)
    for restored in (opt, alexp.EvidenceMixture.from_dict(opt.to_dict())):
        assert 0.5 < restored.stop_report(context=contexts(2)[1]).epsilon <= 1.0
    assert "reward_range" not in opt.arguments()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"likelihood": "poisson"}, "likelihood must be one of"),
        ({"noise_std": 0.5}, r'noise_std cannot be used with likelihood="bernoulli"'),
        ({"noise_std": 0.5, "reward_bound": 1.0}, "noise_std, reward_bound cannot be used"),
        ({"forget": 0.9}, "forget cannot be used"),
        ({"ratio_grid": (0.1,)}, "ratio_grid cannot be used"),
        ({"noise": "gaussian"}, "noise cannot be used"),
        ({"direction": "minimize"}, 'direction="maximize": tell 1 for what you want'),
        ({"goal": "best"}, 'goal="sum"'),
        ({"scale_grid": (0.0,)}, "scale_grid"),
        ({"reward_range": (-1.0, 2.0)}, "reward_range cannot be used"),
        ({"light": True}, "light cannot be used"),
    ],
)
def test_what_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        alexp.EvidenceMixture(MODELS, ARMS, **({"likelihood": "bernoulli"} | options))


def test_kernels_are_refused():
    models = alexp.ModelClass.from_matrices({"all": contexts(20)}, kernels="auto")
    with pytest.raises(ValueError, match="bernoulli"):
        alexp.EvidenceMixture(models, alexp.FiniteSet(np.arange(20)), likelihood="bernoulli")


def test_studies(tmp_path):
    study = alexp.create_study(MODELS, ARMS, name="clicks", storage=tmp_path / "s.db", likelihood="bernoulli")
    for number, context in enumerate(contexts(20)):
        study.tell(study.ask(context=context), float(number % 2))
    with pytest.raises(ValueError, match="reward must be 0 or 1"):
        study.tell(study.ask(context=contexts(1)[0]), 0.3)
    again = alexp.load_study("clicks", storage=tmp_path / "s.db")
    assert np.array_equal(again.policy(context=contexts(1)[0]), study.policy(context=contexts(1)[0]))
