"""Rules: as objects, by name, of one's own, and their parameters."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

import alexp
from alexp import rules
from alexp.algorithms import load
from alexp.extend import Certain, Rule

MODELS, DOMAIN = alexp.ModelClass.legendre(degree=4, size=2), alexp.Interval(-1.0, 1.0, resolution=30)


@dataclass(frozen=True)
class Optimist(Rule):
    """The rule of docs/extending.md."""

    beta: float = 1.0

    def play(self, belief, round):
        mean, std = belief.moments(round)
        return Certain(int(np.argmax(mean + self.beta * std)))


def played(opt, n=12):
    out = []
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, float(np.sin(3.0 * trial.x)))
        out.append((trial.index, trial.propensity))
    return out


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("ids", rules.IDS()),
        ("ucb", rules.UCB()),
        ("ei", rules.ExpectedImprovement()),
        ("ei+ucb", rules.ExpectedImprovement(alternate=0.7)),
        ("thompson", rules.Thompson()),
        ("matching", rules.Matching()),
    ],
)
def test_a_name_is_an_object(name, rule):
    by_name, by_object = (alexp.EvidenceMixture(MODELS, DOMAIN, rule=r, random_state=3) for r in (name, rule))
    assert by_name.rule == rule
    assert played(by_name) == played(by_object)
    state = json.loads(json.dumps(by_object.to_dict()))
    assert load(state).rule == rule
    assert played(load(state), 4) == played(by_object, 4)


def test_a_rule_of_ones_own_plays_like_any_other():
    mine = alexp.EvidenceMixture(MODELS, DOMAIN, rule=Optimist(0.7), random_state=3)
    theirs = alexp.EvidenceMixture(MODELS, DOMAIN, rule=rules.UCB(0.7), random_state=3)
    theirs._replays.watched = False  # which rewards that repeat exactly are learned once is up to built-in rules
    assert played(mine) == played(theirs)
    plate = mine.ask(5)
    assert len({trial.index for trial in plate}) == 5
    state = json.loads(json.dumps(mine.to_dict()))
    assert state["settings"]["rule"] == {"kind": f"{__name__}.Optimist", "beta": 0.7}
    again = load(state)
    assert again.rule == Optimist(0.7)
    for trial in plate:
        for opt in (mine, again):
            opt.tell(trial.id, 0.1)
    assert played(again, 5) == played(mine, 5)


def test_a_rule_that_cannot_be_stored_or_found_is_passed_again():
    @dataclass(frozen=True)
    class Wrapped(Optimist):
        inner: object = None

    state = alexp.EvidenceMixture(MODELS, DOMAIN, rule=Wrapped(inner=np.ones(2)), random_state=3).to_dict()
    with pytest.raises(ValueError, match="rule was an object of your own \\(ndarray\\); pass rule= again"):
        load(state)
    state = alexp.EvidenceMixture(MODELS, DOMAIN, rule=Optimist(), random_state=3).to_dict()
    del state["digest"]
    state["settings"]["rule"]["kind"] = "elsewhere.Optimist"
    with pytest.raises(ValueError, match="'elsewhere.Optimist'; import the module .*, or pass rule= again"):
        load(state)
    assert alexp.EvidenceMixture.from_dict(state, rule=Optimist()).rule == Optimist()
    state["settings"]["rule"] = {"kind": f"{__name__}.Optimist", "width": 1.0}
    with pytest.raises(ValueError, match="lacks 'beta'"):
        load(state)


def test_a_rule_of_ones_own_plays_contextual_rounds():
    models = alexp.ModelClass.per_arm({"x": lambda context: np.array([context["x"], 1.0])}, arms=2)
    opt = alexp.EvidenceMixture(models, alexp.Arms(["a", "b"]), rule=Optimist(), random_state=0)
    for k in range(10):
        trial = opt.ask(context={"x": k / 10.0})
        opt.tell(trial, float(trial.index == 1))
    assert opt.ask(context={"x": 0.5}).x == "b"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rules.UCB(-1.0), "beta"),
        (lambda: rules.IDS(float("nan")), "beta"),
        (lambda: rules.ExpectedImprovement(-0.5), "width"),
        (lambda: rules.ExpectedImprovement(alternate=-1.0), "alternate"),
        (lambda: rules.Thompson(0), "draws"),
        (lambda: rules.Matching(0.0), "sharpness"),
        (lambda: rules.Matching(share=1.5), "share"),
        (lambda: alexp.EvidenceMixture(MODELS, DOMAIN, rule="usb"), "rule must be one of .*'usb'"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_rule_is_a_name_or_an_object():
    with pytest.raises(ValueError, match="rule must be one of .*, got 3"):
        alexp.EvidenceMixture(MODELS, DOMAIN, rule=3)
