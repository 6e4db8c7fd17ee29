"""LinUCB++: lengths and models of its iterations, virtual arms, and what is refused."""

import numpy as np
import pytest

import alexp


def vectors(rng, n=40, p=16):
    rows = rng.standard_normal((n, p))
    models = alexp.ModelClass.from_matrices({"x": rows}, intercept=False)
    nested = alexp.ModelClass(models.dictionary, [list(range(k)) for k in (1, 2, 4, 8, 16)])
    return rows, nested, alexp.FiniteSet(list(range(n)))


def linucb(models, domain, **settings):
    stated = {"noise_std": 0.1, "reward_bound": 1.0, "norm_bound": 1.0, "random_state": 0}
    return alexp.LinUCBPlusPlus(models, domain, **({"horizon": 50} | settings), **stated)


def test_iterations_double_and_models_shrink():
    _, models, domain = vectors(np.random.default_rng(0))
    opt, seen = linucb(models, domain), []  # p = ceil(log2 sqrt 50) = 3
    for _ in range(60):
        opt.tell(opt.ask(), 0.1)
        seen.append(opt.iteration)
    assert seen == [1] * 16 + [2] * 32 + [3] * 12
    assert [opt._sizes[opt._rank(i)] for i in (1, 2, 3)] == [16, 8, 4]
    assert [opt.length(i) for i in (1, 2, 3)] == [16, 32, 64]


def test_the_past_is_an_arm_that_is_played_where_small_models_err():
    """The reward needs 16 columns, the last iterations have fewer: they go back to what the first has found."""
    rng = np.random.default_rng(1)
    rows, models, domain = vectors(rng, n=60)
    theta = np.zeros(16)
    theta[8:] = 1.0 / np.sqrt(8.0)
    values = rows @ theta
    opt = linucb(models, domain, horizon=200, width=0.2, alpha=0.45)  # 32 + 64 rounds with 16 columns, 128 with 8, ...
    env = alexp.Environment(domain, values, noise_std=0.1, random_state=0)
    late = alexp.simulate(opt, env, 400)
    assert opt.iteration == 4
    virtual = [opt._gains[arm, 0] for arm in range(len(opt._past))]
    assert sum(virtual) > 30, "small models are wrong, and nobody goes back to the past"
    quarters = np.diff(late.regret[[223, 399]]) / 176.0
    assert quarters[0] < 0.5 * np.mean(values.max() - values), "what the past has found is lost"


def test_propensities_of_virtual_arms_are_frequencies_of_the_past():
    _, models, domain = vectors(np.random.default_rng(0))
    opt = linucb(models, domain)
    for _ in range(16):
        opt.tell(opt.ask(), -1.0)
    drawn = opt.policy()  # of the second iteration, which tries the past first
    counts = np.bincount(np.array(opt.log.index), minlength=40) / 16.0
    np.testing.assert_allclose(drawn, counts)
    only = np.array([k for k in range(40) if counts[k] == 0.0])
    assert opt.policy(available=only).max() == 1.0, "no candidate of the past is there"


def test_given_up_asks_are_no_rounds_and_late_rewards_are_for_best():
    _, models, domain = vectors(np.random.default_rng(0))
    opt = linucb(models, domain)
    late = opt.ask()
    for _ in range(20):
        opt.abandon(opt.ask())
    for _ in range(16):
        opt.tell(opt.ask(), 0.1)
    assert opt.iteration == 2
    before = opt.state()["fits"]
    opt.tell(late, 50.0)
    assert opt.state()["fits"] == before
    assert opt.best().index == late.index


def test_what_is_refused():
    rng = np.random.default_rng(0)
    maps = alexp.ModelClass.from_matrices({"a": rng.standard_normal((9, 2)), "b": rng.standard_normal((9, 2))})
    domain = alexp.FiniteSet(list(range(9)))
    with pytest.raises(ValueError, match="nested"):
        linucb(maps, domain)
    with pytest.raises(TypeError, match="horizon"):
        alexp.LinUCBPlusPlus(maps, domain)
    assert linucb(maps, domain, cumulative=True).iterations == 3
    with pytest.raises(ValueError, match="alpha"):
        linucb(maps, domain, cumulative=True, alpha=1.5)
