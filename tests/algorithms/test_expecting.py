"""Algorithms on maps that nobody has evaluated yet begin with their first round, and are then like any other."""

import threading

import numpy as np
import pytest

import alexp

ARMS = ["low", "mid", "high"]


def sets():
    return {"clinical": lambda z: z[:3], "genes": lambda z: z[3:]}


def waiting(kind=alexp.EvidenceMixture, **settings):
    return kind(alexp.ModelClass.per_arm(sets(), arms=3), alexp.Arms(ARMS), random_state=0, **settings)


@pytest.mark.parametrize("kind", [alexp.EvidenceMixture, alexp.LinUCB, alexp.ALExp, alexp.LMUCB])
def test_the_run_is_that_of_models_with_an_example(kind):
    known = alexp.ModelClass.per_arm(sets(), arms=3, example=np.zeros(5))
    one, other = waiting(kind), kind(known, alexp.Arms(ARMS), random_state=0)
    assert not isinstance(one, kind)
    assert "waiting for the first round" in repr(one)
    rng = np.random.default_rng(0)
    for _ in range(12):
        context = rng.standard_normal(5)
        trials = [opt.ask(context=context) for opt in (one, other)]
        assert trials[0].x == trials[1].x
        assert trials[0].propensity == trials[1].propensity
        for opt, trial in zip((one, other), trials, strict=True):
            opt.tell(trial, context[0] * trial.index)
    assert isinstance(one, kind)
    assert one.to_dict(problem=False)["log"] == other.to_dict(problem=False)["log"]


def test_what_a_first_round_may_be():
    context = np.arange(5.0)
    assert waiting().policy(context=context).sum() == pytest.approx(1.0)
    assert waiting().observe(context=context, index=1, reward=0.5).x == "mid"
    assert len(waiting().ask(4, context=np.ones((4, 5)))) == 4
    assert len(waiting().ask(n=2, context=context)) == 2
    maps = alexp.ModelClass.from_maps({"a": lambda c, x: c * np.asarray(x)[:, None]}, contextual=True)
    assert alexp.LinUCB(maps, alexp.Candidates()).ask(context=2.0, candidates=[1.0, 2.0]).n_candidates == 2


def test_a_round_that_is_refused_tells_nothing():
    opt = waiting()
    for wrong, message in (
        ({}, "context= is missing"),
        ({"context": "text"}, "must be a vector of numbers"),
        ({"context": np.zeros(2)}, "'genes' must have some features"),
        ({"context": [1.0, 2.0, 3.0, 4.0, np.nan]}, "must be finite"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            opt.ask(**wrong)
        assert "waiting" in repr(opt)
    assert opt.ask(context=np.zeros(7)).id == 0  # five features of genes in two, as nothing was known of them


def test_before_the_first_round_it_says_what_is_missing():
    with pytest.raises(AttributeError, match="no 'probabilities' before its first round.*example="):
        _ = waiting().probabilities
    with pytest.raises(ValueError, match="for 3 arms, and the domain has 2"):
        alexp.LinUCB(alexp.ModelClass.per_arm(sets(), arms=3), alexp.Arms(ARMS[:2]))
    wrong = waiting(rule="none of them")
    with pytest.raises(ValueError, match="rule must be"):
        wrong.ask(context=np.zeros(5))


def test_two_may_begin_at_once():
    opt, rounds = waiting(), np.random.default_rng(0).standard_normal((16, 5))
    threads = [threading.Thread(target=opt.ask, kwargs={"context": context}) for context in rounds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(trial.id for trial in opt.pending()) == list(range(16))
