"""Plates are computed step by step: as by a run that starts with all trials pending, and by a look at every choice."""

import numpy as np
import pytest

import alexp
from alexp.problem.candidates import Pending, PendingList

N = 400


class Numbers:
    """Candidates whose features are their numbers."""

    def rows(self, indices):
        return np.repeat(np.asarray(indices, dtype=float)[:, None], 2, axis=1)


def problem(kernels):
    rng = np.random.default_rng(5)
    inputs = rng.standard_normal((N, 4))
    inputs[N // 2 :] = inputs[: N // 2]  # every candidate has a twin: exact ties
    models = {"all": inputs, "some": inputs[:, :2]}
    rewards = np.sin(2.0 * inputs[:, 0]) + 0.3 * rng.standard_normal(N)
    made = alexp.ModelClass.from_matrices(models, kernels="auto") if kernels else alexp.ModelClass.from_matrices(models)
    return made, alexp.FiniteSet(np.arange(N)), rewards


@pytest.mark.parametrize("rule", ["ei", "ucb", "ids"])
@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("told", [0, 12])
def test_a_run_that_starts_with_trials_pending_asks_for_the_same(rule, kernels, told):
    models, domain, rewards = problem(kernels)
    opt = alexp.EvidenceMixture(models, domain, rule=rule, random_state=2)
    for index in range(told):
        opt.observe(index, rewards[index])
    for _ in range(24):
        fresh = alexp.EvidenceMixture.from_dict(opt.to_dict())
        assert opt.ask().index == fresh.ask().index


@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_the_largest_improvement_is_that_of_all_choices(kernels, fails):
    models, domain, rewards = problem(kernels)
    opt = alexp.EvidenceMixture(models, domain, goal="best", repeats=False, random_state=1)
    for index in range(10):
        opt.observe(index, rewards[index])
    if fails:
        opt.fail(opt.ask())
    for k in range(100):
        round_ = opt._open(np.arange(50, N) if k % 3 else None)
        position, gain = opt.belief.most_improving(round_, 2.0)
        gains = opt.belief.expected_improvement(round_, 2.0)
        assert gain == pytest.approx(gains[position], rel=1e-9)
        assert gain == pytest.approx(gains.max(), rel=1e-9)
        opt.ask(available=np.arange(20, N))


@pytest.mark.parametrize("rule", ["ucb", "ids"])
@pytest.mark.parametrize("kernels", [False, True])
@pytest.mark.parametrize("told", [0, 10])
@pytest.mark.parametrize("fails", [False, True])
def test_upper_ends_and_information_are_those_of_all_choices(rule, kernels, told, fails, monkeypatch):
    monkeypatch.setattr("alexp.estimation.ridge.bank._MANY_VALUES", 0)
    models, domain, rewards = problem(kernels)
    opt = alexp.EvidenceMixture(models, domain, rule=rule, repeats=False, random_state=1)
    for index in range(told):
        opt.observe(index, rewards[index])
    if fails:
        opt.fail(opt.ask())
    for k in range(40):
        round_ = opt._open(np.arange(50, N) if k % 3 else None)
        mean, std = opt.belief.moments(round_)
        width = opt.rule.width(told + 1)
        highest, score = (mean + width * std).max(), mean + width * std
        if rule == "ids":
            score = -((highest - mean) ** 2) / np.log1p(std**2 / opt.belief.noise_variance)
        chosen = opt.rule.play(opt.belief, round_).position
        assert score[chosen] == pytest.approx(score.max(), rel=1e-9, abs=1e-12)
        opt.ask(available=np.arange(20, N))


@pytest.mark.parametrize("kernels", [False, True, "wide"])
def test_the_largest_improvement_of_a_first_plate_is_that_of_all_choices(kernels):
    models, domain, _ = problem(kernels is True)
    if kernels == "wide":  # the second trial is among candidates that were not the least certain before the first
        inputs = np.random.default_rng(3).standard_normal((3000, 6)) * np.geomspace(1.0, 10.0, 6)
        models, domain = alexp.ModelClass.from_matrices({"a": inputs, "b": inputs[:, :2]}), alexp.FiniteSet(range(3000))
    opt = alexp.EvidenceMixture(models, domain, goal="best", random_state=3)
    for _ in range(5):
        round_ = opt._open(None)
        position, gain = opt.belief.most_improving(round_, 1.0)
        gains = opt.belief.expected_improvement(round_, 1.0)
        assert gain == pytest.approx(gains[position], rel=1e-9)
        assert gain == pytest.approx(gains.max(), rel=1e-9)
        opt.ask()


def test_most_choices_are_not_looked_at_again(monkeypatch):
    models, domain, rewards = problem(False)
    opt = alexp.EvidenceMixture(models, domain, goal="best", repeats=False, random_state=1)
    for index in range(10):
        opt.observe(index, rewards[index])
    looked, whole = [], type(opt._mixture).values

    def values(self, weights, choices, pending, least):
        looked.append(len(choices) if len(pending) else 0)
        return whole(self, weights, choices, pending, least)

    monkeypatch.setattr(type(opt._mixture), "values", values)
    opt.ask(48)
    assert 0 < sum(looked) < 0.5 * 47 * N


def test_trials_that_are_added_later_do_not_change_those_before():
    some, kept = PendingList(Numbers()), []
    for k in range(700):
        some.extend(np.array([k]), np.array([2 * k]))
        kept.append(some.now)
    for k, one in enumerate(kept):
        assert one.trials.tolist() == list(range(k + 1))
        assert one.indices.tolist() == list(range(0, 2 * k + 1, 2))
        assert one.rows[:, 1].tolist() == list(map(float, range(0, 2 * k + 1, 2)))
        assert kept[-1].begins_with(one)
        assert one.begins_with(kept[-1]) == (k == 699)
        assert one.n_older == sum(len(block) for block in one.older) == (k // 256 * 256)
    other = Pending(kept[3].trials, kept[3].indices[::-1], kept[3].rows)
    assert not kept[5].begins_with(other)


def test_pending_trials_are_followed_through_tells_and_abandonments():
    models, domain, rewards = problem(False)
    opt = alexp.EvidenceMixture(models, domain, random_state=1)
    rng = np.random.default_rng(0)
    for _ in range(60):
        out = opt.pending()
        what = rng.integers(4)
        if what < 2 or not out:
            opt.ask(int(rng.integers(1, 4)))
        elif what == 2:
            trial = out[int(rng.integers(len(out)))]
            opt.tell(trial, rewards[trial.index])
        else:
            opt.abandon(out[0])
        now = opt._pending_now()
        assert now.trials.tolist() == [trial.id for trial in opt.pending()]
        assert now.indices.tolist() == [trial.index for trial in opt.pending()]
        if out := opt.pending():
            np.testing.assert_array_equal(now.rows, opt._listed.rows(np.array([trial.index for trial in out])))


def test_a_reward_changes_one_block_and_the_trials_decide_on_all_of_them():
    some, rng, trials = PendingList(Numbers()), np.random.default_rng(3), np.arange(2000)
    some.extend(trials, trials)
    before = some.now.older
    assert len(before) == 7
    for _ in range(50):
        trials = np.delete(trials, rng.integers(trials.size))
        some.replace(trials, trials)
        assert sum(one is not other for one, other in zip(some.now.older, before, strict=True)) <= 1
        before, fresh = some.now.older, PendingList(Numbers())
        fresh.extend(trials, trials)
        assert [len(block) for block in fresh.now.older] == [len(block) for block in before]
        np.testing.assert_array_equal(some.now.rows, fresh.now.rows)
        np.testing.assert_array_equal(some.now.rows[:, 0], trials)


@pytest.mark.parametrize("rule", ["ei", "ids"])
def test_a_run_that_starts_with_many_trials_pending_asks_for_the_same(rule):
    models, domain, rewards = problem(False)
    opt = alexp.EvidenceMixture(models, domain, rule=rule, random_state=2)
    for index in range(12):
        opt.observe(index, rewards[index])
    plate = opt.ask(360)
    assert not opt._pending_now().older
    opt.ask(200)
    for k in range(30):
        assert opt._pending_now().older
        fresh = alexp.EvidenceMixture.from_dict(opt.to_dict())
        assert opt.ask().index == fresh.ask().index
        if k % 3 == 0:
            opt.tell(plate[7 * k], rewards[plate[7 * k].index])
