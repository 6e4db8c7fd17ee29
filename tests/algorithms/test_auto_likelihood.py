"""EvidenceMixture(likelihood="auto"), the default: rewards that are all 0 or 1 choose the Bernoulli likelihood."""

import json
from dataclasses import replace

import numpy as np
import pytest

import alexp
from alexp.algorithms.evidence_mixture import RATIOS, WEAK_SIGNALS
from alexp.estimation.mixture.either import ANY_SCALES, ENOUGH
from alexp.rules import UCB, Matching
from alexp.study import StudyExistsError, check
from alexp.study.records import find_study, row_checksum
from alexp.study.storage import Storage, studies

ARMS = alexp.Arms(["small", "large"])
MODELS = alexp.ModelClass.per_arm({"one": [0], "two": [1, 2], "both": [0, 1, 2]}, ARMS)
POINT = np.array([0.5, -1.0, 0.2])


def contexts(n, seed=0):
    return np.random.default_rng([seed, 8]).normal(size=(n, 3))


def run(**settings):
    return alexp.EvidenceMixture(MODELS, ARMS, random_state=0, **settings)


def told(n, *others, every=2, **settings):
    """A run with n rewards that are 0 or 1, for the second arm in one of `every` rounds, and then some others."""
    opt, rng = run(**settings), np.random.default_rng(5)
    for number, context in enumerate(contexts(n)):
        opt.observe(
            int(number % every == 1),
            float(rng.random() < 0.5 + 0.2 * context[0] * (-1) ** number > 0.4),
            context=context,
        )
    for reward in others:
        opt.observe(0, reward, context=POINT)
    return opt


def played(n, **settings):
    opt, rng = run(**settings), np.random.default_rng(6)
    for context in contexts(n):
        trial = opt.ask(context=context)
        opt.tell(trial, float(rng.random() < (0.7 if (trial.index == 1) == (context[0] > 0) else 0.3)))
    return opt


def saved(opt):
    return alexp.EvidenceMixture.from_dict(json.loads(json.dumps(opt.to_dict())))


def assert_alike(one, two, exact=True):
    """Beliefs, and what is played next: bit for bit."""
    assert one.believed_likelihood == two.believed_likelihood
    np.testing.assert_array_equal(one.probabilities, two.probabilities)
    np.testing.assert_array_equal(one.predict(context=POINT), two.predict(context=POINT))
    np.testing.assert_array_equal(one.credible(context=POINT), two.credible(context=POINT))
    if exact:
        np.testing.assert_array_equal(one.policy(context=POINT), two.policy(context=POINT))


def test_it_believes_the_gaussian_mixture_first_and_the_bernoulli_one_from_enough_rewards_on():
    early, late = told(ENOUGH - 1), told(ENOUGH)
    assert (early.likelihood, early.believed_likelihood, late.believed_likelihood) == ("auto", "gaussian", "bernoulli")
    assert_alike(early, told(ENOUGH - 1, likelihood="gaussian"))
    # The default explores less by probabilities that it has chosen itself than by those that were stated.
    assert_alike(late, told(ENOUGH, likelihood="bernoulli", scale_grid=ANY_SCALES), exact=False)
    assert late.ratio_grid == (*RATIOS, *WEAK_SIGNALS)


@pytest.mark.parametrize("n", [ENOUGH - 1, ENOUGH + 3])
def test_another_reward_makes_it_gaussian_for_good(n):
    opt = told(n, 0.5, 1.0)
    assert opt.believed_likelihood == "gaussian"
    assert_alike(opt, told(n, 0.5, 1.0, likelihood="gaussian"))
    assert_alike(opt, saved(opt))
    assert "bernoulli" not in json.dumps(opt.to_dict()["state"])  # nothing is kept of it


@pytest.mark.parametrize("n", [0, 1, 64, ENOUGH - 1, ENOUGH, ENOUGH + 1])
def test_saved_runs_go_on_bit_for_bit_across_the_choice(n):
    one = played(n)
    two = saved(one)
    for context in contexts(4, 3):
        a, b = one.ask(context=context), two.ask(context=context)
        assert (a.index, a.propensity) == (b.index, b.propensity)
        for opt, trial in ((one, a), (two, b)):
            opt.tell(trial, 1.0)
    assert_alike(one, two)


def test_amended_and_retracted_rewards_choose_anew():
    one, two = told(ENOUGH), told(ENOUGH)
    one.amend(7, 0.5)
    assert one.believed_likelihood == "gaussian"
    one.amend(7, two.log.reward[7])
    assert_alike(one, two)
    one.retract(7)
    assert one.believed_likelihood == "gaussian"  # there are not enough any more
    typo = told(ENOUGH, 0.5)
    typo.retract(ENOUGH)
    assert_alike(typo, two, exact=False)  # random numbers go by how many trials there are


def test_looking_back_expects_what_was_believed_then():
    seen = told(ENOUGH + 20).hindsight([0, 1, 2])
    before = told(ENOUGH + 20, likelihood="gaussian").hindsight([0, 1, 2])
    after = told(ENOUGH + 20, likelihood="bernoulli", scale_grid=ANY_SCALES).hindsight([0, 1, 2])
    np.testing.assert_array_equal(seen.mean[:ENOUGH], before.mean[:ENOUGH])
    np.testing.assert_array_equal(seen.mean[ENOUGH:], after.mean[ENOUGH:])


def test_the_summary_says_so():
    sentence = 'models are logistic regressions (likelihood="bernoulli", chosen by itself)'
    assert sentence not in told(ENOUGH - 1).summary()
    assert f"All rewards are 0 or 1, so {sentence}." in told(ENOUGH).summary()
    assert sentence not in told(ENOUGH, 0.5).summary()
    assert sentence not in told(ENOUGH, likelihood="bernoulli").summary()


def test_less_is_explored_where_deviations_are_honest():
    """Width 1 and sharpness 2, in three of four rounds and in one."""
    opt, ucb = told(ENOUGH, every=10, floor=0.0), told(ENOUGH, every=10, rule="ucb")
    stated = told(ENOUGH, every=10, likelihood="bernoulli", scale_grid=ANY_SCALES, rule="matching", floor=0.0)
    assert ucb.believed_likelihood == "bernoulli"
    would_differ = 0
    for context in contexts(60, 4):
        chances = stated.policy(context=context) ** 2
        mean, std = opt.predict(context=context)
        best = np.argmax(mean + std)
        expected = 0.25 * chances / chances.sum()
        expected[best] += 0.75
        np.testing.assert_allclose(opt.policy(context=context), expected, atol=1e-12)
        assert ucb.policy(context=context)[best] == 1.0
        would_differ += best != np.argmax(mean + UCB().width(ENOUGH + 1) * std)
    assert would_differ > 3


@pytest.mark.parametrize(
    "settings",
    [
        {"likelihood": "gaussian"},
        {"noise_std": 0.5},
        {"reward_bound": 1.0},
        {"noise": "gaussian"},
        {"forget": 0.99},
        {"direction": "minimize"},
        {"reward_range": (0, 10)},
        {"rule": "thompson"},
        {"rule": "matching"},
        {"rule": "ids"},
        {"rule": UCB(0.7)},
    ],
)
def test_it_stays_gaussian_where_something_else_was_stated(settings):
    opt = told(ENOUGH, **settings)
    assert (opt.likelihood, opt.believed_likelihood) == ("gaussian", "gaussian")
    assert saved(opt).likelihood == "gaussian"


def test_it_stays_gaussian_on_lists_and_tables():
    listed = alexp.EvidenceMixture(alexp.ModelClass.legendre(3, 2), alexp.Interval(resolution=20), random_state=0)
    ucb = alexp.EvidenceMixture(listed.models, listed.domain, rule="ucb")
    best = run(goal="best")
    assert [one.likelihood for one in (listed, ucb, best)] == ["gaussian"] * 3
    assert "likelihood" not in listed.arguments() | best.arguments()
    assert listed.ratio_grid == RATIOS


def test_without_features_in_the_log_it_goes_back_all_the_same():
    opt = told(ENOUGH, log_features="none")
    assert opt.believed_likelihood == "bernoulli"
    opt.tell(opt.ask(context=POINT), 0.5)
    assert opt.believed_likelihood == "gaussian"
    assert_alike(opt, saved(opt))


def test_runs_stored_by_1_0_0_stay_gaussian():
    """Their settings have no likelihood, the old ratios, and a mixture without a second one."""
    old = told(ENOUGH, likelihood="gaussian", ratio_grid=RATIOS)
    state = json.loads(json.dumps(old.to_dict()))
    assert state["settings"].pop("likelihood") == "gaussian"
    del state["digest"]
    again = alexp.EvidenceMixture.from_dict(state)
    assert (again.likelihood, again.ratio_grid) == ("gaussian", RATIOS)
    assert_alike(old, again)
    again.amend(3, 0.5)  # makes the run anew from its arguments
    assert again.likelihood == "gaussian"


def test_studies(tmp_path):
    where = tmp_path / "s.db"
    with alexp.create_study(MODELS, ARMS, name="new", storage=where, random_state=0) as study:
        for number, trial in enumerate(study.ask(context=contexts(ENOUGH), n=ENOUGH)):
            study.tell(trial, float(number % 3 == 0))
        assert "chosen by itself" in study.summary()
    assert check("new", where).problems == []
    with alexp.load_study("new", where) as study:
        assert study.algorithm.believed_likelihood == "bernoulli"
        study.tell(study.ask(context=POINT), 0.5)
        assert "chosen by itself" not in study.summary()
    assert check("new", where).problems == []


def test_a_study_of_1_0_0_keeps_what_was_usual_then(tmp_path):
    where = tmp_path / "s.db"
    settings = {"likelihood": "gaussian", "ratio_grid": RATIOS, "random_state": 0}
    alexp.create_study(MODELS, ARMS, name="old", storage=where, **settings).close()
    with Storage(where).writing() as connection:
        row = find_study(connection, "old")
        stored = json.loads(row.settings)
        del stored["likelihood"]
        row = replace(row, settings=json.dumps(stored))
        checksum = row_checksum(row)
        connection.execute(studies.update().values(settings=row.settings, checksum=checksum, chain=checksum))
    for known in ({}, {"models": MODELS, "domain": ARMS}):
        study = alexp.create_study(name="old", storage=where, load_if_exists=True, **known)
        assert (study.algorithm.likelihood, study.algorithm.ratio_grid) == ("gaussian", RATIOS)
        study.close()
    with pytest.raises(StudyExistsError, match="ratio_grid"):
        alexp.create_study(MODELS, ARMS, name="old", storage=where, load_if_exists=True, ratio_grid=(0.1, 1.0))


def test_the_usual_rule_of_rounds_is_still_the_usual_rule():
    assert run().rule == Matching(share=0.25)
