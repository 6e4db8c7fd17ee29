"""The goal "best" where nothing is measured twice: improvement, and every second round a large reward at once."""

import numpy as np
import pytest

import alexp
from alexp.algorithms.log import EventLog


@pytest.fixture
def table():
    rng = np.random.default_rng(3)
    features = rng.standard_normal((40, 3))
    rewards = features @ [1.0, -0.5, 0.2] + 0.6 * rng.standard_normal(40)
    models = alexp.ModelClass.from_matrices({"all": features, "first": features[:, :1]})
    return models, alexp.FiniteSet(np.arange(40)), rewards


def looking(opt, width=0.7):
    mean, std = np.array([opt.predict(x) for x in opt.domain]).T
    free = np.setdiff1d(np.arange(40), opt.trials_dataframe()["index"])
    return int(free[np.argmax((mean + width * std)[free])])


def test_every_second_round_of_single_trials_wants_a_large_reward(table):
    models, domain, rewards = table
    opt = alexp.EvidenceMixture(models, domain, goal="best", repeats=False, random_state=0)
    rule = alexp.rules.ExpectedImprovement(2.0)
    pure = alexp.EvidenceMixture(models, domain, rule=rule, power=0.25, repeats=False, random_state=0)
    for other in (opt, pure):
        for index in range(5):
            other.observe(index, rewards[index])
    differed = 0
    for _ in range(20):
        expected = looking(opt) if opt.n_told % 2 == 0 else None
        trial, improving = opt.ask(), pure.ask()
        assert trial.index == (improving.index if expected is None else expected)
        differed += trial.index != improving.index
        pure.abandon(improving)
        pure.observe(trial.index, rewards[trial.index])
        opt.tell(trial, rewards[trial.index])
    assert differed >= 3


def test_plates_are_all_improvement(table):
    models, domain, rewards = table
    opt = alexp.EvidenceMixture(models, domain, goal="best", repeats=False, random_state=0)
    rule = alexp.rules.ExpectedImprovement(2.0)
    pure = alexp.EvidenceMixture(models, domain, rule=rule, power=0.25, repeats=False, random_state=0)
    for _ in range(5):
        plates = [other.ask(n=4) for other in (opt, pure)]
        assert [trial.index for trial in plates[0]] == [trial.index for trial in plates[1]]
        for other, plate in zip((opt, pure), plates, strict=True):
            for trial in plate:
                other.tell(trial, rewards[trial.index])


def test_a_trial_given_up_changes_nothing_about_the_next(table):
    models, domain, rewards = table
    opt = alexp.EvidenceMixture(models, domain, goal="best", repeats=False, random_state=0)
    for _ in range(6):
        trial = opt.ask()
        opt.tell(trial, rewards[trial.index])
    given_up = opt.ask()
    opt.abandon(given_up)
    again = alexp.EvidenceMixture.from_dict(opt.to_dict(), models=models)
    assert opt.ask().index == again.ask().index == given_up.index


def test_a_lucky_measurement_stands_where_nothing_is_measured_twice(table):
    models, domain, rewards = table
    lucky = rewards.copy()
    lucky[7] = 9.0
    incumbents = {}
    for repeats in (False, True):
        opt = alexp.EvidenceMixture(models, domain, goal="best", repeats=repeats, random_state=0)
        for index in range(15):
            opt.observe(index, lucky[index])
        incumbents[repeats] = opt.belief.incumbent
    assert incumbents[False] == 9.0
    assert incumbents[True] < 7.0


@pytest.mark.parametrize(
    ("letters", "alone"),
    [("", False), ("at", True), ("aatt", False), ("ata", True), ("atax", True), ("oo", False), ("ato", False),
     ("aatxat", True), ("t", False)],
)  # fmt: skip
def test_one_by_one_looks_at_the_newest_reward(letters, alone):
    events = EventLog()
    for letter in letters:
        {"a": events.asked, "o": events.observed, "t": lambda: events.told(0), "x": lambda: events.abandoned(0)}[
            letter
        ]()
        events.commit()
    assert events.one_by_one is alone
