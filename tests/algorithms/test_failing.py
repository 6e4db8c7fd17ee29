"""Failed experiments: kept, never proposed again, learned from, and taken back."""

import json

import numpy as np
import pytest

import alexp
from alexp.algorithms.log import AbandonedTrialError, AlreadyToldError
from alexp.estimation.mixture.success import FLOOR, SuccessMixture, weighed
from alexp.problem.candidates import Choices

N, SEEDS, EXPERIMENTS = 100, 40, 24


def table(seed, n=N):
    """Candidates with two features, their rewards, and a region of 30% that fails."""
    rng = np.random.default_rng(seed)
    inputs = rng.uniform(-1.0, 1.0, (n, 2))
    along, across = (inputs @ [np.cos(angle), np.sin(angle)] for angle in rng.uniform(0.0, 2.0 * np.pi, 2))
    fails = across > np.quantile(across, 0.7)
    rewards = 50.0 + 20.0 * along + 10.0 * np.sin(3.0 * inputs[:, 0]) + rng.normal(0.0, 1.0, n)
    return inputs, rewards, fails


def mixture(inputs, seed=0, kind=alexp.EvidenceMixture, **settings):
    models = alexp.ModelClass.from_matrices({"both": inputs, "first": inputs[:, :1]}, kernels="auto")
    settings = {"goal": "best", "repeats": False} | settings
    return kind(models, alexp.FiniteSet(list(range(len(inputs)))), random_state=seed, **settings)


class OnlyExcludes(alexp.EvidenceMixture):
    """Leaves out candidates that failed, and learns nothing from that."""

    name = "only-excludes"

    def _learn_failure(self, row, index):
        pass


def play(opt, rewards, fails, steps, plate=1):
    """Number of failures."""
    failed = 0
    for _ in range(steps // plate):
        for trial in opt.ask(plate):
            if fails[trial.index]:
                opt.fail(trial, "tar")
                failed += 1
            else:
                opt.tell(trial, rewards[trial.index])
    return failed


@pytest.mark.parametrize("plate", [1, 8])
def test_learning_where_failures_lie_at_least_halves_wasted_experiments(plate):
    counts = []
    for seed in range(SEEDS):
        inputs, rewards, fails = table(seed)
        opts = mixture(inputs, seed), mixture(inputs, seed, OnlyExcludes)
        counts.append([play(opt, rewards, fails, EXPERIMENTS, plate) for opt in opts])
    learned, excluded = np.array(counts, dtype=float).T
    picks = np.random.default_rng(0).integers(0, SEEDS, (2000, SEEDS))
    low, high = np.quantile(learned[picks].sum(axis=1) / excluded[picks].sum(axis=1), [0.025, 0.975])
    print(
        f"plates of {plate}: {learned.mean():.1f} of {EXPERIMENTS} fail with learning, {excluded.mean():.1f} without; "
        f"ratio {learned.sum() / excluded.sum():.2f}, 95% interval {low:.2f} to {high:.2f}"
    )
    assert high <= 0.5


def test_a_failed_candidate_is_never_proposed_again_by_any_algorithm():
    models, domain = alexp.ModelClass.legendre(degree=3, size=2), alexp.Interval(-1.0, 1.0, resolution=7)
    for name in ("alexp", "corral", "evidence-mixture", "linucb", "ets"):
        kind = alexp.algorithms.Algorithm.registry[name]
        opt = kind(models, domain, random_state=3, **kind.example)
        dead = set()
        for step in range(30):
            trial = opt.ask()
            assert trial.index not in dead
            if step % 6 == 2 and len(dead) < 4:
                opt.fail(trial, "broken")
                dead.add(trial.index)
            else:
                opt.tell(trial, float(np.cos(trial.x)))
        assert opt.best().index not in dead
        again = type(opt).from_dict(json.loads(json.dumps(opt.to_dict())))
        assert [again.ask().index for _ in range(3)] == [opt.ask().index for _ in range(3)]
        assert again.to_dict() == opt.to_dict()


def test_nothing_is_left_when_all_have_failed():
    opt = mixture(np.arange(6.0).reshape(3, 2), repeats=True)
    for trial in opt.ask(3):
        opt.fail(trial)
    with pytest.raises(ValueError, match="every candidate has failed; allow others, or amend or retract"):
        opt.ask()
    opt.retract(1)
    assert opt.ask().index == opt.trial(1).index
    opt.amend(0, 4.0)
    with pytest.raises(ValueError, match="every candidate that is available has failed"):
        opt.best(available=[opt.trial(2).index])


def test_wrong_failures_change_nothing():
    opt = mixture(table(0, 20)[0])
    first, second = opt.ask(2)
    opt.tell(first, 3.0)
    opt.observe(5, 1.0)
    before = opt.to_dict()
    for arguments, error, match in (
        ((7,), KeyError, "no trial 7"),
        ((first,), AlreadyToldError, "trial 0 already has the reward 3.0"),
        ((first, "", "same"), AlreadyToldError, 'fail\\(0, if_told="amend"\\)'),
        ((2, "", "amend"), ValueError, "trial 2 was observed, not asked for; retract\\(2\\) withdraws it"),
        ((second, 3), TypeError, "reason must be a text, got int"),
        ((second, "x" * 2001), ValueError, "reason must be a text of at most 2000 characters, got 2001"),
        ((second, "", "perhaps"), ValueError, "if_told must be one of"),
    ):
        with pytest.raises(error, match=match):
            opt.fail(*arguments)
    assert opt.to_dict() == before
    opt.fail(second, " tar ")
    assert opt.log.remarks == {1: "tar"}
    with pytest.raises(AbandonedTrialError, match=r"trial 1 failed; amend\(1, reward\) gives it a reward after all"):
        opt.tell(second, 2.0)
    opt.fail(second, "again", "same")
    assert opt.log.remarks == {1: "tar"}
    arms = alexp.EvidenceMixture(alexp.ModelClass.per_arm({"a": [0]}, arms=2), alexp.Arms(["u", "v"]))
    trial = arms.ask(context=np.ones(1))
    with pytest.raises(ValueError, match="fail is for candidates of a fixed domain"):
        arms.fail(trial)


@pytest.mark.parametrize("kernels", ["linear", "auto"])
def test_corrections_of_failures_leave_nothing_behind(kernels):
    inputs, _, _ = table(1, 30)
    models = alexp.ModelClass.from_matrices({"both": inputs, "first": inputs[:, :1]}, kernels=kernels)

    def run(entries):
        opt = alexp.EvidenceMixture(models, alexp.FiniteSet(list(range(30))), random_state=2, repeats=False)
        for entry in entries:
            trial = opt.ask(available=[len(opt.log)])
            opt.fail(trial) if entry == "failed" else opt.tell(trial, entry)
        return opt

    told = run([1.0, 2.0, "failed", 0.5, 3.0, "failed", 2.5])
    wrong = run([1.0, 2.0, 9.0, 0.5, "failed", "failed", 2.5])
    wrong.fail(2, if_told="amend")
    wrong.amend(4, 3.0)
    assert wrong.to_dict() == told.to_dict()
    assert wrong.ask() == told.ask()
    told.retract(5)
    told.tell(2, 4.0, "amend")
    assert not told.log.failed
    assert "success" not in told.state()
    assert told.log.told_in_order() == [0, 1, 2, 3, 4, 6]


def test_before_the_first_failure_nothing_differs_and_after_its_removal_neither():
    inputs, rewards, _ = table(4, 40)
    plain, mended = mixture(inputs, 5), mixture(inputs, 5)
    for opt in (plain, mended):
        for trial in opt.ask(6):
            opt.tell(trial, rewards[trial.index])
    trial = mended.ask()
    assert plain.ask() == trial
    mended.fail(trial)
    assert mended.belief.success_probabilities(mended._everything).min() < 1.0
    assert plain.belief.success_probabilities(plain._everything).min() == 1.0
    for opt in (plain, mended):
        (opt.amend if opt is mended else opt.tell)(trial, 50.0)
    assert plain.to_dict() == mended.to_dict()


@pytest.mark.parametrize("rule", ["ids", "ucb", "ei", "ei+ucb", "thompson", "matching"])
def test_every_rule_weighs_success_and_propensities_are_those_of_the_policy(rule):
    inputs, rewards, fails = table(6, 60)
    opt = mixture(inputs, 1, rule=rule)
    for trial in opt.ask(20, available=np.arange(40)):
        opt.fail(trial) if fails[trial.index] else opt.tell(trial, rewards[trial.index])
    policy = opt.policy()
    assert policy.sum() == pytest.approx(1.0)
    assert policy[list(opt.log.failed_candidates())].max() == 0.0
    careless = mixture(inputs, 1, OnlyExcludes, rule=rule)
    careless.resume(opt.log.state(), {"mixture": opt._state()["mixture"]} | {"success": opt._state()["success"]})
    careless._success = None
    assert policy[fails].sum() <= careless.policy()[fails].sum()
    trial = opt.ask()
    assert trial.propensity == pytest.approx(policy[trial.index])


def test_the_probability_of_success_has_a_floor_and_a_ceiling():
    inputs, _, _ = table(7, 40)
    models = alexp.ModelClass.from_matrices({"both": inputs}, intercept=False)
    success = SuccessMixture(models, None, 1.0)
    for k in range(20):
        success.update(inputs[k], inputs[k, 0] < 0.0, k)
    chances = success.probabilities(Choices(None, np.ascontiguousarray(3.0 * inputs.T)))
    assert chances.min() == FLOOR
    assert chances.max() == 1.0
    assert chances[inputs[:, 0] < -0.5].min() > chances[inputs[:, 0] > 0.5].max()
    assert weighed(np.array([3.0, 1.0]), np.array([0.5, 1.0]), 1.0).tolist() == [2.0, 1.0]


def test_loading_refuses_failures_that_cannot_be():
    inputs, rewards, _ = table(8, 20)
    opt = mixture(inputs)
    for k, trial in enumerate(opt.ask(6)):
        opt.fail(trial, "why") if k % 3 == 0 else opt.tell(trial, rewards[trial.index])
    again = alexp.EvidenceMixture.from_dict(opt.to_dict())
    assert again.ask(3) == opt.ask(3)
    log, state = opt.log.state(), opt._state()
    for wrong, match in (
        (log | {"failed": np.array([1])}, "log\\['failed'\\] must be trials in log\\['abandoned'\\]"),
        (log | {"remarks": {"99": "x"}}, "log\\['remarks'\\] must be texts by the numbers of trials"),
    ):
        with pytest.raises(ValueError, match=match):
            mixture(inputs).resume(wrong, state)
    with pytest.raises(ValueError, match="state lacks 'success'"):
        mixture(inputs).resume(log, {"mixture": state["mixture"]})
