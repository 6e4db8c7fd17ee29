import json

import numpy as np
import pytest

import alexp

MODELS, DOMAIN = alexp.ModelClass.legendre(4, 2), alexp.Interval(resolution=60)
TABLE = MODELS.matrix(DOMAIN)


def ucb_scores(rows, y, columns, ridge=0.01, beta=2.0):
    """mean + beta ridge ||phi||_{V^-1} on all candidates, by dense algebra."""
    features, seen = TABLE[:, columns], rows[:, columns]
    inverse = np.linalg.inv(seen.T @ seen + ridge**2 * np.eye(len(columns)))
    width = np.sqrt(np.einsum("ij,jk,ik->i", features, inverse, features))
    return features @ inverse @ seen.T @ y + beta * ridge * width


def test_plays_ucb_on_the_selected_columns_with_all_data():
    environment = alexp.SyntheticEnvironment(MODELS, DOMAIN, noise_std=0.05, random_state=2)
    ets = alexp.ETS(MODELS, DOMAIN, n_explore=8, lam=0.5, noise_std=0.05, random_state=5)
    played, rewards = [], []
    for t in range(25):
        trial = ets.ask()
        if t >= 8:
            union = np.unique(np.concatenate([MODELS.groups[int(j)] for j in ets.fit.groups]))
            assert np.array_equal(ets.selected, union)
            scores = ucb_scores(TABLE[played], np.array(rewards), ets.selected)
            assert scores[trial.index] >= scores.max() - 1e-9
            assert not trial.explored
        played.append(trial.index)
        rewards.append(environment.observe_index(trial.index))
        ets.tell(trial, rewards[-1])
    assert set(environment.models.groups[environment.true_model]) <= set(ets.selected)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_empty_selection_takes_the_group_that_would_enter_first(direction):
    environment = alexp.SyntheticEnvironment(MODELS, DOMAIN, noise_std=0.01, random_state=1)
    ets = alexp.ETS(MODELS, DOMAIN, n_explore=12, lam=1e6, direction=direction, random_state=3)
    played, rewards = [], []
    for _ in range(13):
        trial = ets.ask()
        played.append(trial.index)
        rewards.append(environment.observe_index(trial.index))
        ets.tell(trial, rewards[-1])
    assert ets.fit.groups.size == 0
    correlations = TABLE[played[:12]].T @ np.array(rewards[:12])
    strongest = max(range(MODELS.n_models), key=lambda j: np.linalg.norm(correlations[MODELS.groups[j]]))
    assert np.array_equal(ets.selected, MODELS.groups[strongest])


def test_rewards_that_say_nothing_select_all_columns():
    ets = alexp.ETS(MODELS, DOMAIN, n_explore=3, random_state=0)
    for _ in range(4):
        ets.tell(ets.ask(), 0.0)
    assert np.array_equal(ets.selected, np.arange(5))


def test_equal_columns_count_once():
    rng = np.random.default_rng(0)
    one, two = rng.standard_normal((20, 2)), rng.standard_normal((20, 2))
    models = alexp.ModelClass.from_matrices({"a": one, "twin of a": one.copy(), "b": two})
    ets = alexp.ETS(models, alexp.FiniteSet(list(range(20))), n_explore=10, lam=1e-3, noise_std=0.01, random_state=0)
    for _ in range(11):
        trial = ets.ask()
        ets.tell(trial, float(one[trial.index] @ [1.0, -0.5]))
    assert {tuple(c) for c in models.matrix(ets.domain)[:, ets.selected].T} >= {tuple(one[:, 0]), tuple(one[:, 1])}
    assert len({tuple(c) for c in models.matrix(ets.domain)[:, ets.selected].T}) == ets.selected.size


def test_a_saved_run_goes_on_bit_for_bit_whatever_the_order_of_rewards():
    """States hold what was explored in the order of trials, so the agent must learn it in that order."""
    ets = alexp.ETS(MODELS, DOMAIN, n_explore=8, lam=0.5, noise_std=0.05, random_state=5)
    for trial in reversed(ets.ask(8)):
        ets.tell(trial, float(np.sin(3.0 * trial.x)))
    again = alexp.ETS.from_dict(json.loads(json.dumps(ets.to_dict())))
    assert ets.ask() == again.ask()
    assert json.dumps(ets.to_dict()) == json.dumps(again.to_dict())
