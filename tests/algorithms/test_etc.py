import numpy as np
import pytest

import alexp
from alexp.testing import again

MODELS, DOMAIN = alexp.ModelClass.legendre(4, 2), alexp.Interval(resolution=60)


def slow_group_lasso(models, rows, y, lam, steps=60_000):
    """Fitted coefficients of the P columns, by proximal gradient on the duplicated design of the paper."""
    design = np.hstack([rows[:, group] for group in models.groups])
    sizes = [len(group) for group in models.groups]
    blocks = np.split(np.arange(design.shape[1]), np.cumsum(sizes)[:-1])
    t = len(y)
    step = t / np.linalg.norm(design, 2) ** 2
    theta = np.zeros(design.shape[1])
    for _ in range(steps):
        moved = theta + step / t * design.T @ (y - design @ theta)
        for block in blocks:
            norm = np.linalg.norm(moved[block])
            theta[block] = moved[block] * max(0.0, 1.0 - step * lam / norm) if norm > 0.0 else 0.0
    beta = np.zeros(models.n_columns)
    for group, block in zip(models.groups, blocks, strict=True):
        beta[group] += theta[block]
    return beta


def play(algorithm, environment, rounds):
    trials, rewards = [], []
    for _ in range(rounds):
        trial = algorithm.ask()
        rewards.append(environment.observe_index(trial.index))
        algorithm.tell(trial, rewards[-1])
        trials.append(trial)
    return trials, np.array(rewards)


def test_explores_then_plays_the_argmax_of_one_lasso():
    environment = alexp.SyntheticEnvironment(MODELS, DOMAIN, noise_std=0.1, random_state=4)
    etc = alexp.ETC(MODELS, DOMAIN, n_explore=9, lam=0.8, noise_std=0.1, random_state=1)
    trials, rewards = play(etc, environment, 25)
    assert [trial.explored for trial in trials] == [True] * 9 + [False] * 16
    assert {trial.propensity for trial in trials[:9]} == {1.0 / 60.0}
    assert len({trial.index for trial in trials[9:]}) == 1
    assert {trial.propensity for trial in trials[9:]} == {1.0}
    assert etc.lambda_1 == pytest.approx(0.8 * 4 * 0.1 * np.sqrt(np.log(10) / 9))
    table = MODELS.matrix(DOMAIN)
    beta = slow_group_lasso(MODELS, table[[trial.index for trial in trials[:9]]], rewards[:9], etc.lambda_1)
    np.testing.assert_allclose(table @ etc.fit.beta, table @ beta, atol=2e-3)
    values = table @ beta
    assert values[trials[-1].index] > values.max() - 4e-3


def test_asks_without_rewards_go_on_exploring():
    etc = alexp.ETC(MODELS, DOMAIN, n_explore=3, random_state=0)
    early = etc.ask(6)
    assert all(trial.explored for trial in early)
    for trial in early[:4]:
        etc.tell(trial, trial.x)
    assert etc.fit is None
    committed = etc.ask()
    assert not committed.explored
    etc.abandon(committed)
    fit = etc.fit
    reference = alexp.GroupLasso().bind_groups(5, MODELS.columns_flat, MODELS.offsets)
    for trial in early[:4]:  # all rewards that were known when exploration ended
        reference.append(MODELS.columns(np.array([trial.x]))[0], trial.x)
    np.testing.assert_allclose(fit.beta, reference.solve(etc.lambda_1).beta, atol=1e-4)
    etc.tell(early[5], -3.0)
    etc.tell(early[4], -3.0)
    assert etc.ask().index == committed.index
    assert np.array_equal(etc.fit.beta, fit.beta)


def test_exploration_design_is_used():
    etc = alexp.ETC(MODELS, DOMAIN, n_explore=50, exploration=alexp.DOptimal(), random_state=0)
    weights = alexp.DOptimal().design(MODELS, DOMAIN).weights
    for trial in again(etc, 30):
        assert trial.propensity == pytest.approx(weights[trial.index])


@pytest.mark.parametrize("setting", [{"n_explore": 0}, {"lam": 0.0}, {"lam": float("nan")}])
def test_bad_settings(setting):
    with pytest.raises(ValueError, match=next(iter(setting))):
        alexp.ETC(MODELS, DOMAIN, **setting)
