"""Corrected and withdrawn rewards: what the conformance suite does not say, random runs, and the story of 7240."""

import json
import warnings
from math import nan

import numpy as np
import pytest

import alexp
from alexp.algorithms.base import CheckedTell
from alexp.algorithms.log import EventLog, looks_like_a_typo, pack_restriction, typos_among, unpack_restriction
from alexp.testing import SETTINGS, on_tables
from alexp.testing.amending import force, release, text_of
from alexp.testing.settings import make, reward

RESTRICTED = next(setting for setting in SETTINGS if setting.name == "scaled models, restricted rounds")


# -- the story ---------------------------------------------------------------------------------------------------


def chemist():
    """Forty candidates, two ways to describe them, and yields in percent that follow the first one."""
    rng = np.random.default_rng(4)
    right, other = rng.standard_normal((40, 3)), rng.standard_normal((40, 3))
    models = alexp.ModelClass.from_matrices({"right": right, "other": other}, intercept=True)
    yields = 60.0 + right @ np.array([6.0, -4.0, 3.0]) + 0.5 * rng.standard_normal(40)
    return models, alexp.FiniteSet([f"mol-{i}" for i in range(40)]), yields.round(1)


@pytest.mark.parametrize("kind", [alexp.EvidenceMixture, alexp.ALExp])
def test_the_chemist_who_typed_7240(kind):
    models, domain, yields = chemist()
    settings = {"noise_std": 0.5, "reward_bound": 100.0, "random_state": 2}
    opt, right = kind(models, domain, **settings), kind(models, domain, **settings)
    for trial in opt.ask(8):
        opt.tell(trial, yields[trial.index])
    for trial in right.ask(8):
        right.tell(trial, yields[trial.index])
    typed, meant = opt.ask(), right.ask()
    with pytest.warns(
        alexp.AssumptionWarning, match=r"trial 8: a reward of 7240 is far outside the 8 seen so far"
    ) as said:
        opt.tell(typed, 7240.0)
    assert said[0].filename == __file__
    right.tell(meant, 72.4)
    if kind is alexp.EvidenceMixture:
        assert not np.allclose(opt.probabilities, right.probabilities, atol=0.1)  # it does harm
    assert opt.best().value > 150.0
    opt.amend(typed, 72.4)
    assert np.array_equal(opt.probabilities, right.probabilities)
    assert opt.best() == right.best()
    assert text_of(opt) == text_of(right)
    assert opt.ask(3) == right.ask(3)


# -- random runs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", on_tables())
@pytest.mark.parametrize("seed", [1, 2])
def test_random_runs_equal_those_that_were_told_right_at_once(name, seed):
    """Asks, tells, observations, corrections in any order; then the same actions with the right rewards."""
    kind, rng = alexp.Algorithm.registry[name], np.random.default_rng(seed)
    opt, again = make(kind, RESTRICTED), make(kind, RESTRICTED)
    done, final = [], {}
    for _ in range(40):
        waiting, what = [trial.id for trial in opt.pending()], rng.random()
        told = [k for k in range(opt.n_asked) if opt.log.reward[k] == opt.log.reward[k]]
        value = float(rng.normal())
        if what < 0.3 or not waiting:
            some = np.sort(rng.choice(40, size=7, replace=False)) if rng.random() < 0.4 else None
            done.append(("ask", opt.ask(available=some).id, some))
        elif what < 0.65:
            trial = int(rng.choice(waiting))
            opt.tell(trial, value)
            final[trial] = value
            done.append(("tell", trial, None))
        elif what < 0.7:
            trial = opt.observe(int(rng.integers(40)), value).id
            final[trial] = value
            done.append(("observe", trial, None))
        elif what < 0.75:
            trial = int(rng.choice(waiting))
            opt.abandon(trial)
            done.append(("abandon", trial, None))
        elif told and what < 0.9:
            trial = int(rng.choice(told))
            opt.amend(trial, value)
            final[trial] = value
        elif (plain := [k for k in told if opt.log.propensity[k] == opt.log.propensity[k]]) and len(told) > 3:
            trial = int(rng.choice(plain))
            opt.retract(trial)
            final[trial] = nan
        if what > 0.97:
            opt = kind.from_dict(json.loads(json.dumps(opt.to_dict())))
    assert len(opt.log.retracted) >= 1
    force(again, [opt.trial(k) for k in range(opt.n_asked)])
    for what, trial, some in done:
        if what == "ask":
            again.ask(available=some)
        elif what == "observe":
            again.observe(opt.log.index[trial], final[trial])
        elif what == "abandon" or np.isnan(final[trial]):
            again.abandon(trial)
        else:
            again.tell(trial, final[trial])
    release(again)
    assert text_of(opt, "state") == text_of(again, "state")
    assert np.array_equal(opt.log.reward, again.log.reward, equal_nan=True)
    assert opt.log.told_in_order() == again.log.told_in_order()
    opt.observe(3, 0.5)
    again.observe(3, 0.5)
    assert opt.ask(3) == again.ask(3)


# -- tell ----------------------------------------------------------------------------------------------------------


def small(kind=alexp.EvidenceMixture, rounds=0, **settings):
    models, domain = alexp.ModelClass.legendre(degree=3, size=2), alexp.Interval(-1.0, 1.0, resolution=21)
    opt = kind(models, domain, **({"noise_std": 0.1, "random_state": 0} | settings))
    for _ in range(rounds):
        trial = opt.ask()
        opt.tell(trial, reward(trial.index))
    return opt


def test_a_reward_told_again():
    opt = small(rounds=4)
    known, before = opt.log.reward[2], text_of(opt)
    for if_told in ("same", "amend"):
        opt.tell(2, known, if_told=if_told)
        assert text_of(opt) == before
    for wrong, if_told in ((known, "raise"), (known + 1.0, "raise"), (known + 1.0, "same")):
        with pytest.raises(alexp.AlreadyToldError, match="trial 2 already has the reward"):
            opt.tell(2, wrong, if_told=if_told)
    with pytest.raises(ValueError, match="if_told must be one of 'raise', 'same', 'amend', got 'skip'"):
        opt.tell(2, known, if_told="skip")
    assert text_of(opt) == before
    opt.tell(2, known + 1.0, if_told="amend")
    assert opt.log.reward[2] == known + 1.0
    opt.tell(2, known, if_told="amend")
    assert text_of(opt) == before


def test_ids_as_text():
    opt = small()
    opt.ask(4)
    opt.tell("0", 0.5)
    opt.tell("#1", 0.25)
    opt.abandon("2")
    opt.amend("#0", 0.75)
    opt.retract("1")
    assert opt.log.reward.tolist()[:1] == [0.75]
    assert [t.id for t in opt.pending()] == [3]
    for wrong in ("", "#", "-1", "1.0", "one", "١"):
        with pytest.raises(TypeError, match="a Trial or its id"):
            opt.tell(wrong, 1.0)
    with pytest.raises(alexp.UnknownTrialError, match="no trial 9"):
        opt.tell("9", 1.0)


def test_a_trial_of_another_run_is_noticed_by_any_of_its_parts():
    opt = small(alexp.ALExp, rounds=2)
    trial = opt.ask()
    parts = vars(trial)
    changes = {
        "proposed candidate": {"index": trial.index + 1},
        "was proposed by": {"model": 0 if trial.model is None else None},
        "explored": {"explored": not trial.explored},
        "had the propensity": {"propensity": trial.propensity * 0.999},
    }
    for says, change in changes.items():
        with pytest.raises(alexp.UnknownTrialError, match=f"{says}.*belongs to another run"):
            opt.tell(alexp.Trial(**(parts | change)), 1.0)
    with pytest.raises(alexp.UnknownTrialError, match="had the propensity"):
        opt.tell(alexp.Trial(**(parts | {"propensity": nan})), 1.0)
    opt.tell(alexp.Trial(**json.loads(json.dumps(trial.to_dict()))), 1.0)
    opt.amend(opt.observe(3, 0.5), 0.25)  # whose propensity is missing


# -- amend and retract -------------------------------------------------------------------------------------------


def test_what_cannot_be_amended_or_retracted():
    opt = small(rounds=2)
    pending, given_up = opt.ask(2)
    opt.abandon(given_up)
    before = text_of(opt)
    with pytest.raises(alexp.NotToldError, match="trial 2 awaits its first reward"):
        opt.amend(pending, 1.0)
    for trial, says in ((pending, "trial 2 awaits its first reward"), (given_up, "trial 3 was abandoned")):
        with pytest.raises(alexp.NotToldError, match=says):
            opt.retract(trial)
    with pytest.raises(ValueError, match="reward must be finite"):
        opt.amend(0, nan)
    with pytest.raises(alexp.UnknownTrialError):
        opt.retract(4)
    assert text_of(opt) == before
    opt.retract(0)
    with pytest.raises(ValueError, match="trial 0 was retracted already"):
        opt.retract(0)
    with pytest.raises(alexp.AbandonedTrialError, match=r"retracted.*amend\(0, reward\) gives it one again"):
        opt.tell(0, 1.0, if_told="amend")
    assert (opt.n_told, opt.log.retracted, opt.log.abandoned) == (1, {0}, {0, 3})


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, MemoryError])
@pytest.mark.parametrize("kind", [alexp.ALExp, alexp.EXP4IX, alexp.EvidenceMixture])
def test_an_interrupted_correction_changes_nothing(kind, error, monkeypatch):
    opt = small(kind, rounds=5)
    opt.ask()
    before, table, learn, left = text_of(opt), opt._candidates, kind._learn, [3]

    def interrupted(self, seen):
        left[0] -= 1
        if left[0] == 0:
            raise error
        learn(self, seen)

    monkeypatch.setattr(kind, "_learn", interrupted)
    with pytest.raises(error):
        opt.amend(1, 0.125)
    assert text_of(opt) == before
    opt.amend(1, 0.125)
    assert opt.log.reward[1] == 0.125
    assert opt._candidates is table  # not a second one in memory


def test_told_trials_in_the_order_of_tells():
    opt = small()
    opt.ask(3)
    opt.tell(2, 0.5)
    opt.observe(4, 0.25)
    opt.tell(0, 0.125)
    assert opt.log.told_in_order() == [2, 3, 0]
    opt.amend(2, 0.75)
    assert opt.log.told_in_order() == [2, 3, 0]
    opt.retract(3)
    assert opt.log.told_in_order() == [2, 0]
    opt.amend(3, 0.75)
    assert opt.log.told_in_order() == [2, 3, 0]


def test_asks_are_repeated_only_where_they_leave_something_behind():
    matter = {name for name, kind in alexp.Algorithm.registry.items() if kind.asks_matter()}
    assert matter == {
        "alexp", "corral", "doubling", "dr-lasso", "estc", "etc", "ets", "exp4-ix", "exp4-ls", "linucb++", "modcb",
        "popart",
        "smoothed-corral",
    }  # fmt: skip
    for kind, kept in ((alexp.EvidenceMixture, 0), (alexp.ALExp, 2)):
        opt = small(kind)
        for some in ([1, 2, 3], [3, 2, 1], [4, 5]):
            opt.ask(available=some)
        assert len(opt.log.events.state()["sizes"]) == kept


def test_a_mending_takes_up_what_happened_meanwhile_and_is_about_one_run():
    opt, twin = small(alexp.ALExp, rounds=4), small(alexp.ALExp, rounds=4)
    prepared = opt.amended({1: 0.5})
    for algorithm in (opt, twin):
        algorithm.tell(algorithm.ask(), 0.25)
    assert prepared.fits(opt, {1: 0.5})
    assert not prepared.fits(opt, {1: 0.25})
    opt.adopt(prepared)
    twin.amend(1, 0.5)
    assert text_of(opt) == text_of(twin)
    stale = opt.amended({1: 0.5})
    opt.amend(0, 0.5)
    assert not stale.fits(opt, {1: 0.5})
    with pytest.raises(RuntimeError, match="another correction"):
        opt.adopt(stale)


# -- the events ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 7, 8, 9, 400])
def test_restrictions_are_packed_shortly_and_come_back(n):
    rng = np.random.default_rng(n)
    for size in {1, n // 2 or 1, n}:
        some = rng.choice(n, size=size, replace=False)
        packed = pack_restriction(some, n)
        assert np.array_equal(unpack_restriction(packed, n), np.sort(some))
        assert len(packed) <= 1 + min(4 * size, 4 * (n - size), -(-n // 8))


def test_equal_restrictions_are_kept_once_and_saved():
    events, some, others = EventLog(), pack_restriction(np.array([5]), 9), pack_restriction(np.arange(1, 9, 2), 9)
    for restriction in (None, some, others, some):
        events.asked(restriction)
    events.observed()
    events.told(2)
    events.abandoned(0)
    events.commit()
    again = EventLog.read(events.state(), [9])
    steps = [("ask", 0, None), ("ask", 1, some), ("ask", 2, others), ("ask", 3, some), ("observe", 4, None),
             ("tell", 2, None), ("abandon", 0, None)]  # fmt: skip
    assert list(again.since()) == list(events.since()) == steps
    assert list(again.since(3, 3)) == steps[3:]
    assert len(events.state()["sizes"]) == 2
    again.asked(others)
    assert len(again.state()["sizes"]) == 2


# -- typing errors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "value", "strange"),
    [
        ([40.0, 50.0, 60.0, 70.0, 90.0], 7240.0, True),
        ([40.0, 50.0, 60.0, 70.0, 90.0], 724.0, True),
        ([40.0, 50.0, 60.0, 70.0, 90.0], 589.0, False),
        ([40.0, 50.0, 60.0, 70.0, 90.0], 591.0, True),
        ([40.0, 50.0, 60.0, 70.0, 90.0], -459.0, False),
        ([40.0, 50.0, 60.0, 70.0, 90.0], -461.0, True),
        ([40.0, 50.0, 60.0, 90.0], 7240.0, False),  # too few
        ([40.0, 50.0, nan, 60.0, 90.0], 7240.0, False),
        ([1.28, 1.29, 1.3, 1.31, 1.29], 0.0, False),  # a narrow range: not farther away than they are large
        ([1.28, 1.29, 1.3, 1.31, 1.29], 2.6, False),
        ([1.28, 1.29, 1.3, 1.31, 1.29], 2.7, True),
        ([1.0] * 5, 0.0, False),  # all equal: their size decides
        ([1.0] * 5, 12.0, True),
        ([0.0] * 5, 1.0, False),
        ([], 1.0, False),
    ],
)
def test_what_looks_like_a_typo(seen, value, strange):
    assert (looks_like_a_typo(seen, value) is not None) == strange
    assert (looks_like_a_typo(-np.array(seen), -value) is not None) == strange
    assert (typos_among(np.array([r for r in seen if r == r]), np.array([value]))[0] is not None) == strange


def test_a_typo_in_a_first_plate_is_seen_beside_the_others():
    plate = np.array([7240.0, 40.0, 50.0, 60.0, 70.0, 90.0])
    assert [reason is not None for reason in typos_among(np.array([]), plate)] == [True] + [False] * 5
    opt = small()
    opt.ask(7)
    tells = [CheckedTell(k, value, "tell") for k, value in enumerate(plate)]
    assert list(opt.suspects([*tells, CheckedTell(6, 1e9, "skip")])) == [0]


def test_the_wrong_reward_itself_does_not_make_the_right_one_look_strange():
    opt = small(rounds=6)
    with pytest.warns(alexp.AssumptionWarning, match="trial 6: a reward of 1000"):
        opt.tell(opt.ask(), 1000.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opt.amend(6, 0.5)
        opt.tell(opt.ask(), 0.5)
    with pytest.warns(alexp.AssumptionWarning, match="trial 6: a reward of 500 is far outside the 7 seen"):
        opt.amend(6, 500.0)
    opt.ask()
    before = text_of(opt)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(alexp.AssumptionWarning):
            opt.tell(8, 1e6)
        with pytest.raises(alexp.AssumptionWarning):
            opt.observe(3, 1e6)
    assert text_of(opt) == before  # a warning that was made an error comes before any change
