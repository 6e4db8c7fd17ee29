"""Candidates that differ in their noise: a quiet one does not make two bad rewards of a noisy one look certain."""

import json

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import alexp
from alexp.estimation.mixture.own_noise import Scatter, judge, own_noise

ARMS = ("control", "A", "B")
MEANS = np.array([0.0, 0.5, 0.5])
ONE_HOT = alexp.ModelClass.from_matrices({"arm": np.eye(3)})
WITH_ANOTHER = alexp.ModelClass.from_matrices({"arm": np.eye(3), "other": np.array([[0.3], [-1.2], [0.8]])})
PER_ARM = alexp.ModelClass.per_arm({"one": lambda context: np.ones(1)}, arms=3, example=0)


def bandit(models=ONE_HOT, seed=0, **settings):
    domain = alexp.Arms(list(ARMS)) if models is PER_ARM else alexp.FiniteSet(ARMS)
    return alexp.EvidenceMixture(models, domain, random_state=seed, **settings)


def context_of(opt):
    return {"context": 0} if opt.is_contextual else {}


def observe(opt, arm, reward):
    opt.observe(ARMS[arm] if opt.is_contextual else arm, float(reward), **context_of(opt))


def unlucky(opt):
    """Old observations: the control twice zero, each other arm one reward below it."""
    for arm, reward in ((0, 0.0), (0, 0.0), (1, -1.0), (2, -1.2)):
        observe(opt, arm, reward)
    return opt


def play(opt, control, seed, rounds, unit=1.0):
    """Arms played, where the control has this noise and the others have a noise of one."""
    rng, noise, out = np.random.default_rng([seed, 77]), np.array([control, 1.0, 1.0]), []
    for _ in range(rounds):
        trial = opt.ask(**context_of(opt))
        out.append(trial.index)
        opt.tell(trial, unit * (MEANS[trial.index] + noise[trial.index] * rng.standard_normal()))
    return np.array(out)


def locked(plays):
    """Whether the control alone was played in the second half, but for a round in twenty."""
    return bool(np.mean(plays[plays.size // 2 :] != 0) < 0.05)


@pytest.mark.parametrize("models", [ONE_HOT, WITH_ANOTHER, PER_ARM], ids=["one-hot", "two models", "arms"])
@pytest.mark.parametrize("control", [0.0, 0.05])
def test_no_run_stays_with_the_control_for_ever(models, control):
    seeds = range(6)
    assert not any(locked(play(unlucky(bandit(models, seed)), control, seed, 100)) for seed in seeds)


def test_with_one_noise_of_all_they_do():
    seeds = range(6)
    assert all(locked(play(unlucky(bandit(seed=seed, unequal_noise=False)), 0.05, seed, 100)) for seed in seeds)


@pytest.mark.parametrize("control", [0.0, 0.05, 0.3, 1.0])
@pytest.mark.parametrize("history", [0, 20, None], ids=["none", "control", "unlucky"])
def test_at_most_one_in_forty_stays(control, history):
    n = 0
    for seed in range(40):
        opt = bandit(seed=seed) if history is not None else unlucky(bandit(seed=seed))
        rng = np.random.default_rng([seed, 5])
        for _ in range(history or 0):
            observe(opt, 0, control * rng.standard_normal())
        n += locked(play(opt, control, seed, 300))
    assert n <= 1


def test_the_kernel_is_its_formula():
    rng = np.random.default_rng(0)
    freedom, squares, d = rng.uniform(0.0, 4.0, 9), rng.gamma(1.0, 3.0, 9), 20.0
    odds = np.exp(0.5 * ((1.0 - 1.0 / d) * squares - freedom * np.log(d)))
    shares, parts = odds / (1.0 + odds), np.minimum(freedom, 1.0)
    own, judged = shares @ parts, parts.sum()
    prior = (own + 1.2) / max(judged - own - 1.0, 0.2)
    chance = odds * prior / (1.0 + odds * prior)
    z = -ndtri(np.minimum(ndtr(-2.0) / chance, 0.5))
    out = np.empty(9)
    judge(d, freedom, squares, 0, out)
    assert out.max() > 2.0 > out.min()
    np.testing.assert_allclose(out, np.maximum(1.0, 0.25 * d * z**2), rtol=3e-3)
    judge(d, freedom, squares, 3, out)  # three candidates without noise: another one has some with probability 1 / 5
    np.testing.assert_allclose(out, 0.25 * d * ndtri(5.0 * ndtr(-2.0)) ** 2, rtol=3e-3)


def test_only_own_rewards_have_own_noise():
    own = Scatter([(0, 0.0), (0, 0.001), (0, -0.001), (1, -1.0), (2, -1.2)])
    alone = own_noise(own, 1e-6, lambda: (own.means, 1e-6 / own.counts), 1.0)
    # Models that learn a candidate's mean from others judge its noise by one reward: here it agrees.
    assert own_noise(own, 1e-6, lambda: (own.means, 1e-8 / own.counts), 1.0) is None
    choices = bandit()._everything.choices
    order = choices.indices
    before = np.array([1e-6 / 3.0, 1e-6, 1e-6])
    after = alone.widened(before[order], choices)[np.argsort(order)]
    assert after[0] == before[0]
    assert (after[1:] > 1e5 * before[1:]).all()  # as large as rewards differ


@pytest.mark.parametrize("models", [ONE_HOT, PER_ARM], ids=["one-hot", "arms"])
def test_units_change_nothing(models):
    plain = play(bandit(models, 3), 0.05, 3, 60)
    np.testing.assert_array_equal(play(bandit(models, 3), 0.05, 3, 60, unit=2.0**30), plain)


@pytest.mark.parametrize("kind", ["ids", "ucb", "thompson", "arms"])
def test_a_saved_run_goes_on_and_an_amended_one_is_what_it_would_have_been(kind):
    models = PER_ARM if kind == "arms" else ONE_HOT
    opt = unlucky(bandit(models, 2, **({} if kind == "arms" else {"rule": kind})))
    play(opt, 0.05, 1, 12)
    again = type(opt).from_dict(json.loads(json.dumps(opt.to_dict())), models, opt.domain)
    np.testing.assert_array_equal(play(again, 0.05, 4, 20), play(opt, 0.05, 4, 20))
    opt.amend(3, 0.4)
    opt.amend(3, -1.2)
    np.testing.assert_array_equal(play(again, 0.05, 6, 20), play(opt, 0.05, 6, 20))


def test_looking_changes_no_decision():
    looked, plain = unlucky(bandit()), unlucky(bandit())
    for _ in range(8):
        looked.policy(available=[1, 2])
        looked.predict("A")
        one, other = looked.ask(2), plain.ask(2)
        assert [trial.index for trial in one] == [trial.index for trial in other]
        for a, b in zip(one, other, strict=True):
            looked.tell(a, 0.3 * a.index - a.id % 3)
            plain.tell(b, 0.3 * b.index - b.id % 3)


def test_runs_stored_before_have_one_noise_of_all():
    data = unlucky(bandit(unequal_noise=False)).to_dict()
    del data["settings"]["unequal_noise"], data["digest"]
    opt = alexp.EvidenceMixture.from_dict(data)
    assert opt.unequal_noise is False
    assert locked(play(opt, 0.05, 0, 60))
    assert unlucky(bandit()).to_dict()["settings"]["unequal_noise"] is True


def test_studies_stored_before_go_on_as_they_were(tmp_path, monkeypatch):
    arguments = alexp.EvidenceMixture.arguments
    with monkeypatch.context() as before:
        before.setattr(
            alexp.EvidenceMixture,
            "arguments",
            lambda self: {key: value for key, value in arguments(self).items() if key != "unequal_noise"},
        )
        study = alexp.create_study(
            ONE_HOT, alexp.FiniteSet(ARMS), name="old", storage=f"sqlite:///{tmp_path / 'old.db'}", random_state=0,
            unequal_noise=False,
        )  # fmt: skip
        for arm, reward in ((0, 0.0), (0, 0.0), (1, -1.0), (2, -1.2)):
            study.observe(arm, reward)
        assert [study.ask().index for _ in range(3)] == [0, 1, 2]
        study.close()
    study = alexp.load_study("old", f"sqlite:///{tmp_path / 'old.db'}")
    assert study.algorithm.unequal_noise is False
    assert study.algorithm._scatter is None
    study.ask()
    study.close()


@pytest.mark.parametrize(
    "settings", [{"noise_std": 0.5}, {"repeats": False}, {"goal": "best"}, {"reward_bound": 2.0}], ids=str
)
def test_nothing_is_kept_where_it_cannot_matter(settings):
    assert bandit(**settings)._scatter is None
    wide = alexp.ModelClass.from_matrices({"a": np.random.default_rng(0).standard_normal((60, 3))})
    assert alexp.EvidenceMixture(wide, alexp.FiniteSet(range(60)))._scatter is None
    assert "unequal_noise" not in bandit(**settings).arguments()


def test_before_a_candidate_has_two_rewards_nothing_changes():
    one, other = bandit(seed=1), bandit(seed=1, unequal_noise=False)
    for opt in (one, other):
        for arm, reward in ((0, 0.0), (1, -1.0), (2, 3.0)):
            observe(opt, arm, reward)
    for a, b in zip(*(opt.belief.moments(opt._everything) for opt in (one, other)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_it_is_true_or_false():
    with pytest.raises(TypeError, match="unequal_noise must be True or False, got 1"):
        bandit(unequal_noise=1)
