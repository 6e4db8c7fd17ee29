"""The doubling trick: epochs, what passes over their borders, and the suite over what may be inside."""

import json

import numpy as np
import pytest

import alexp
from alexp import testing
from alexp.study import StudyExistsError
from alexp.testing import contextual

MODELS, DOMAIN = alexp.ModelClass.legendre(degree=4, size=2), alexp.Interval(resolution=40)
STATED = {"noise_std": 0.1, "reward_bound": 1.0, "random_state": 3}
INSIDE = {
    "corral": {"algorithm": "corral", "first": 2},
    "etc, data kept": {
        "algorithm": "etc", "first": 2, "n_explore": "li2022", "sparsity": 1, "keep_data": True,
    },
    "popart": {"algorithm": "popart", "first": 4, "sparsity": 2, "delta": 0.9, "n_explore": 5},
    "smoothed-corral": {"algorithm": "smoothed-corral", "first": 3},
    "alexp, data kept": {"algorithm": "alexp", "first": 3, "keep_data": True},
}  # fmt: skip
TELLING = [check for check in testing.CHECKS if any(
    word in check.__name__ for word in ("save_and_load", "any_order", "amend", "retract", "check_direction")
)]  # fmt: skip


def doubling(**settings):
    return alexp.Doubling(MODELS, DOMAIN, **({"algorithm": "corral", "first": 4} | settings), **STATED)


def play(opt, rounds, reward=0.5):
    for _ in range(rounds):
        opt.tell(opt.ask(), reward)
    return opt


@pytest.mark.parametrize("example", INSIDE.values(), ids=INSIDE)
@pytest.mark.parametrize("check", TELLING, ids=lambda check: check.__name__)
def test_the_suite_over_what_is_inside(monkeypatch, example, check):
    monkeypatch.setattr(alexp.Doubling, "example", example)
    check(alexp.Doubling)


@pytest.mark.filterwarnings("ignore::alexp.AssumptionWarning")
def test_contextual_rounds_with_data_kept(monkeypatch):
    monkeypatch.setattr(alexp.Doubling, "example", INSIDE["etc, data kept"])
    for check, problem in contextual.cases(alexp.Doubling):
        if any(word in check.__name__ for word in ("save_and_load", "observed", "amend")):
            check(alexp.Doubling, problem)
    rows = alexp.ModelClass.from_blocks({"x": 3})
    with pytest.raises(ValueError, match='keep_data=True hands on rows .* log_features="none"'):
        alexp.Doubling(rows, alexp.Candidates(), log_features="none", **INSIDE["etc, data kept"])


def test_epochs_double_and_forget():
    opt, seen = doubling(), []
    for _ in range(4 + 8 + 16 + 1):
        play(opt, 1)
        seen.append((opt.epoch, opt.inner.horizon, opt.inner.n_told))
    wanted = [(k, 4 * 2**k, t) for k in range(3) for t in range(1, 4 * 2**k + 1)]
    assert seen == [*wanted, (3, 32, 1)]


def test_data_kept_are_observed_in_the_order_in_which_they_came():
    opt = play(doubling(keep_data=True), 3)
    late = opt.ask()
    play(opt, 2, 0.25)
    assert (opt.epoch, opt.inner.n_told) == (1, 5)
    opt.tell(late, -0.25)
    assert opt.inner.n_told == 6
    assert np.isnan(opt.inner.log.propensity[0])
    np.testing.assert_array_equal(list(opt.inner.log.reward), [0.5, 0.5, 0.5, 0.25, 0.25, -0.25])


def test_a_late_reward_goes_to_who_asked_and_else_to_who_plays():
    opt = doubling(algorithm="etc", n_explore=9, first=1)
    trials = opt.ask(4)  # one of epoch 0, two of epoch 1, one of epoch 2
    assert (opt.epoch, opt.inner.horizon) == (2, 4)
    opt.tell(trials[1], 0.5)
    assert opt.inner.n_told == 0, "epoch 1 is kept, and it asked"
    opt.tell(trials[0], 0.5)
    assert opt.inner.n_told == 1, "whoever asked in epoch 0 is gone"
    opt.tell(trials[3], 0.5)
    assert (opt.inner.n_told, opt.n_told) == (2, 3)


def test_what_is_given_up_is_no_round():
    opt = play(doubling(), 3)
    for _ in range(5):
        opt.abandon(opt.ask())
    assert (opt.epoch, opt.inner.n_asked) == (0, 8)
    play(opt, 1)
    begun = opt.ask()
    assert opt.epoch == 1
    opt.retract(2)
    assert opt.epoch == 0, "without that reward the first epoch is not over"
    opt.abandon(begun)
    assert play(opt, 2).epoch == 1


def test_what_is_given_up_is_given_up_inside():
    opt = doubling()
    first, second = opt.ask(2)
    opt.abandon(first)
    assert [trial.id for trial in opt.inner.pending()] == [1]
    opt.tell(second, 0.5)
    opt.retract(second)
    assert not opt.inner.pending()
    assert opt.inner.n_told == 0
    opt.amend(second, 0.25)
    assert list(opt.inner.log.reward)[1:] == [0.25]


def test_the_best_informed_epoch_recommends():
    opt = doubling(algorithm="etc", first=8, n_explore=4)
    for _ in range(8):
        trial = opt.ask()
        opt.tell(trial, trial.x)
    before = opt.best()
    trial = opt.ask()
    opt.tell(trial, -trial.x)
    assert opt.epoch == 1
    assert opt.best() == before


def test_epochs_have_luck_of_their_own():
    opt = doubling(algorithm="etc", first=8, n_explore=8)
    play(opt, 8 + 8)
    index = np.array(opt.log.index)
    assert not np.array_equal(index[:8], index[8:]), "the second epoch explores like the first"


def test_regret_costs_a_factor_and_no_more():
    """Uniform exploration for n^(2/3) rounds and then the best: 2.70 times the regret of who knows the horizon."""
    env = [alexp.SyntheticEnvironment(MODELS, DOMAIN, noise_std=0.1, random_state=seed) for seed in range(6)]
    settings = {"algorithm": "etc", "n_explore": "li2022", "sparsity": 1, "noise_std": 0.1}
    told, doubled = [], []
    for seed, one in enumerate(env):
        known = {name: value for name, value in settings.items() if name != "algorithm"}
        opt = alexp.ETC(MODELS, DOMAIN, horizon=496, random_state=seed, **known)
        told.append(alexp.simulate(opt, one, 496).regret[-1])
        opt = alexp.Doubling(MODELS, DOMAIN, first=16, random_state=seed, **settings)
        doubled.append(alexp.simulate(opt, one, 496).regret[-1])
    assert 1.0 < np.mean(doubled) / np.mean(told) < 2.70


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"algorithm": "linucb"}, ValueError, "must take a horizon, as alexp, corral, .*; 'linucb' plays without one"),
        ({"algorithm": "nobody"}, ValueError, "algorithm must be one of alexp"),
        ({"algorithm": 3}, TypeError, "a name or a class of algorithms, got 3"),
        ({"algorithm": "doubling"}, ValueError, "must take a horizon"),
        ({"algorithm": alexp.LinUCB}, ValueError, "must take a horizon"),
        ({"horizon": 100}, ValueError, "horizon is what Doubling does without"),
        ({"first": 0}, ValueError, "first must be"),
        ({"first": 1}, ValueError, "horizon must be"),
        ({"algorithm": "estc"}, TypeError, "sparsity"),
        ({"unknown": 3}, TypeError, "unknown"),
    ],
)
def test_wrong_settings_are_named(settings, error, words):
    with pytest.raises(error, match=words):
        doubling(**settings)


@pytest.mark.parametrize("change", ["epoch", "fewer", "twice", "awaits"])
def test_states_that_cannot_be_are_refused(change):
    opt = play(doubling(), 5)
    opt.ask()
    log, state = opt.log.state(), opt._whole_state()
    wrong = json.loads(json.dumps(opt.state()))
    assert [entry["epoch"] for entry in wrong["epochs"]] == [0, 1]
    epochs = state["epochs"]
    if change == "epoch":
        epochs[1]["epoch"] = 0
    elif change == "fewer":
        state["epochs"] = epochs[1:]
    elif change == "twice":
        state["epochs"] = [epochs[1], epochs[1]]
    else:
        state["notes"] = {"5": [1, 0]}
    with pytest.raises(ValueError, match=r"state\['(epochs|rates)'\]"):
        doubling().resume(log, state)


def test_a_study_names_what_is_inside(tmp_path):
    where = f"sqlite:///{tmp_path}/doubling.db"
    made = {"name": "d", "storage": where, "algorithm": "doubling:etc", "first": 2, "random_state": 5, "repeats": True}
    study = alexp.create_study(MODELS, DOMAIN, n_explore="li2022", sparsity=1, **made)
    alone = alexp.Doubling(MODELS, DOMAIN, algorithm="etc", first=2, n_explore="li2022", sparsity=1, random_state=5)
    for _ in range(9):
        trial, own = study.ask(), alone.ask()
        assert (trial.index, trial.propensity) == (own.index, own.propensity)
        study.tell(trial, 0.5)
        alone.tell(own, 0.5)
    study.amend(3, 0.25)
    alone.amend(3, 0.25)
    again = alexp.load_study("d", where)
    assert again.ask().index == alone.ask().index
    same = alexp.create_study(MODELS, DOMAIN, n_explore="li2022", sparsity=1, load_if_exists=True, **made)
    assert len(same.trials_dataframe()) == 10
    with pytest.raises(StudyExistsError, match="algorithm = etc, not corral"):
        alexp.create_study(MODELS, DOMAIN, load_if_exists=True, **(made | {"algorithm": "doubling:corral"}))
