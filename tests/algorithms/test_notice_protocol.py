"""The shared protocol where it can go wrong silently: directions, scales and states of another problem."""

import json

import numpy as np
import pytest

import alexp
from alexp.algorithms.base import ASK, Streams
from alexp.algorithms.saving import read_log
from alexp.common.codec import unpack
from alexp.testing import on_tables

from .plain import Ridge, problem, reward

EVERYBODY = on_tables()


def make(name, models, domain, **settings):
    kind = alexp.Algorithm.registry[name]
    return kind(models, domain, **({"noise_std": 0.2, "random_state": 1} | kind.example | settings))


def learned(opt):
    """What was learned, as text; settings and log aside."""
    return json.dumps(opt.to_dict()["state"])


@pytest.mark.parametrize("name", EVERYBODY)
def test_observed_rewards_to_be_minimised_are_turned_around(name):
    models, domain, _ = problem()
    up, down = make(name, models, domain), make(name, models, domain, direction="minimize")
    for index in (3, 8, 3, 5, 0):
        up.observe(index, reward(index))
        down.observe(index, -reward(index))
    assert learned(up) == learned(down)
    assert up.best().index == down.best().index
    for _ in range(3):
        a, b = up.ask(), down.ask()
        assert a == b
        up.tell(a, reward(a.index))
        down.tell(b, -reward(b.index))
    assert learned(up) == learned(down)


@pytest.mark.parametrize("name", EVERYBODY)
def test_a_state_of_another_problem_is_refused(name):
    models, domain, table = problem()
    opt = make(name, models, domain)
    opt.observe(2, 0.5)
    saved = json.loads(json.dumps(opt.to_dict(problem=False)))
    kind = type(opt)
    assert kind.from_dict(saved, models, domain).n_told == 1
    other_features, _, _ = problem(seed=9)
    other_scales, _, _ = problem(scales=(1.0, 2.0, 0.25))
    other_groups, _, _ = problem(groups=((0, 1), (2, 3, 4), (1, 3)))
    for wrong in (other_features, other_scales, other_groups):
        with pytest.raises(ValueError, match="other features"):
            kind.from_dict(saved, wrong, domain)
    assert table.shape == (12, 5)


def test_a_state_knows_about_the_intercept():
    models, domain, _ = problem()
    with_constant, _, _ = problem(intercept=True)
    saved = alexp.LinUCB(models, domain, random_state=1).to_dict(problem=False)
    with pytest.raises(ValueError, match="other features"):
        alexp.LinUCB.from_dict(saved, with_constant, domain)


@pytest.mark.parametrize("model", [0, 1, 2])
@pytest.mark.parametrize("intercept", [False, True], ids=["", "intercept"])
def test_scales_of_models_reach_the_agent(model, intercept):
    """A model divided by its scale has a ridge of scale x ridge on the undivided columns."""
    models, domain, table = problem(intercept=intercept)
    data = [(3, 0.5), (7, -1.0), (3, 0.7), (10, 0.2)]
    opt = alexp.LinUCB(models, domain, model=model, agent=alexp.UCB(1.5, 0.3), reward_bound=2.0, random_state=0)
    for index, value in data:
        opt.observe(index, value)
    fit = Ridge(table, models.groups[model], models.scales[model], 0.3, data, intercept)
    assert opt.best().index == int(np.argmax(fit.mean))
    assert opt.best().value == pytest.approx(fit.mean.max())
    assert opt.ask().index == int(np.argmax(fit.mean + 1.5 * 2.0 * 0.3 * fit.norm))


def test_an_abandoned_trial_stays_abandoned():
    models, domain, _ = problem()
    opt = alexp.LinUCB(models, domain, random_state=0)
    first, second = opt.ask(2)
    opt.abandon(first)
    again = alexp.LinUCB.from_dict(json.loads(json.dumps(opt.to_dict(problem=False))), models, domain)
    assert [trial.id for trial in again.pending()] == [second.id]
    with pytest.raises(ValueError, match="abandoned"):
        again.tell(first.id, 1.0)


@pytest.mark.parametrize("name", EVERYBODY)
def test_an_abandoned_trial_leaves_nothing_behind(name):
    models, domain, _ = problem()
    opt = make(name, models, domain)
    opt.observe(2, 0.5)
    opt.abandon(opt.ask())
    own = getattr(opt, "inner", opt)  # whose trials are part of the state of the one around it
    before = learned(own)
    for _ in range(3):
        opt.abandon(opt.ask())
    assert learned(own) == before


def test_all_words_of_a_seed_count():
    """A Generator gives 128 bits of entropy, 32 at a time; none of them, and none of a long int, is lost."""
    words = [int(word) for word in np.random.default_rng(5).integers(0, 2**32, size=4, dtype=np.uint64)]
    drawn = Streams(np.random.default_rng(5))
    assert drawn.entropy == words[0] + words[1] * 2**32 + words[2] * 2**64 + words[3] * 2**96
    seeds = [drawn.entropy, *(drawn.entropy ^ 2**bit for bit in (0, 31, 32, 63, 64, 95, 96, 127))]
    assert len({Streams(seed).generator(ASK, 3).random() for seed in seeds}) == len(seeds)


def test_a_stored_reward_has_the_limit_of_one_that_is_told():
    models, domain, _ = problem()
    opt = make("lm-ucb", models, domain)
    opt.observe(0, 1e100)
    stored, sizes = unpack(opt.to_dict()["log"]), (domain.n_candidates, models.n_models)
    assert read_log(stored, *sizes).reward[0] == 1e100
    with pytest.raises(ValueError, match="reward"):
        read_log(stored | {"reward": np.array([-1e101])}, *sizes)
