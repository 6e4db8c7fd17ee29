"""Streams of contexts: what is offered, what it gives, and that everybody meets the same."""

import numpy as np
import pytest

from alexp_experiments.contextual import streams
from alexp_experiments.contextual.playing import CONTEXT_SCENARIOS, ContextScenario, Pick, play
from alexp_experiments.contextual.routing import routing_stream
from alexp_experiments.contextual.streams import linear_stream


def test_classification_has_every_row_once_per_pass_and_pays_the_label():
    stream = streams.classification_stream("wine", 2, 0)
    assert stream.contexts.shape == (2 * 178, 13 + 5)
    assert np.array_equal(stream.rewards.sum(axis=1), np.ones(356))
    assert np.array_equal(np.bincount(stream.rewards[:178].argmax(axis=1)), [59, 71, 48])
    first, second = (np.unique(part, axis=0) for part in (stream.contexts[:178], stream.contexts[178:]))
    assert np.array_equal(first, second)
    assert not np.array_equal(stream.contexts[:178], stream.contexts[178:])
    assert np.allclose(stream.contexts[:178].mean(axis=0), 0.0)
    assert np.allclose(stream.contexts[:178, :13].std(axis=0), 1.0)


def test_pixel_blocks_are_what_they_are_called():
    stream = streams.classification_stream("digits", 1, 0, steps=3)
    image = stream.contexts[1, :64].reshape(8, 8)
    own = {name: stream.contexts[1, list(columns)] for name, columns in stream.sets.items()}
    assert np.array_equal(own["top left"], image[:4, :4].ravel())
    assert np.array_equal(own["top right"], image[:4, 4:].ravel())
    assert np.array_equal(own["bottom left"], image[4:, :4].ravel())
    assert np.array_equal(own["bottom right"], image[4:, 4:].ravel())
    assert np.array_equal(own["middle"], image[2:6, 2:6].ravel())
    assert np.allclose(own["rows and columns"], [*image.sum(axis=1), *image.sum(axis=0)])
    assert np.array_equal(own["raw"], image.ravel())
    assert np.array_equal(own["32 components"][:8], own["8 components"])
    assert stream.n_raw == 64
    assert {name: values.size for name, values in own.items()} == {
        "top left": 16, "top right": 16, "bottom left": 16, "bottom right": 16, "middle": 16, "rows and columns": 16,
        "8 components": 8, "16 components": 16, "32 components": 32, "raw": 64,
    }  # fmt: skip


def test_principal_components_are_uncorrelated_and_sorted():
    stream = streams.classification_stream("breast cancer", 1, 3)
    scores = stream.contexts[:, stream.sets["5 components"]]
    spread = np.cov(scores.T)
    assert np.allclose(spread, np.diag(np.diag(spread)), atol=1e-9)
    assert np.all(np.diff(np.diag(spread)) < 0.0)


def test_routing_is_worth_it_and_has_the_shares_it_is_said_to_have():
    found = []
    for seed in range(20):
        stream = routing_stream(2000, seed)
        right = stream.rewards > np.array([0.0, 0.0])  # the dearest answer costs 0.7
        best, fixed = stream.values.max(axis=1).mean(), stream.values.mean(axis=0).max()
        found.append([*right.mean(axis=0), right.any(axis=1).mean(), best - fixed])
        assert stream.rewards.min() >= stream.reward_range[0]
        assert np.abs(stream.rewards - stream.values).mean(axis=0).max() < 0.5
    small, large, either, gain = np.mean(found, axis=0)
    assert 0.62 < small < 0.75
    assert 0.81 < large < 0.88
    assert 0.87 < either < 0.93
    assert gain > 0.04


def test_expected_rewards_are_those_of_many_draws():
    stream = routing_stream(20_000, 5, 3)
    assert np.allclose(stream.rewards.mean(axis=0), stream.values.mean(axis=0), atol=0.012)
    stream = linear_stream(20_000, 5, n_candidates=2, n_sets=2, size=3)
    assert np.allclose((stream.rewards - stream.values).std(), 0.3, rtol=0.02)


def test_linear_rewards_are_linear_in_the_true_block_only():
    stream = linear_stream(400, 2, n_candidates=3, n_sets=4, size=5)
    rows, values = stream.candidates.reshape(-1, 20), stream.values.ravel()
    theta = np.linalg.lstsq(rows, values, rcond=None)[0].reshape(4, 5)
    assert np.allclose(rows @ theta.ravel(), values)
    norms = np.linalg.norm(theta, axis=1)
    assert np.allclose(norms[stream.true_set], 1.0)
    assert np.allclose(np.delete(norms, stream.true_set), 0.0, atol=1e-12)
    alone = stream.with_set(f"block {stream.true_set}")
    assert alone.true_set == 0
    assert np.allclose(alone.candidates @ theta[stream.true_set], stream.values)
    other = next(name for k, name in enumerate(stream.sets) if k != stream.true_set)
    assert stream.with_set(other).true_set is None


@pytest.mark.parametrize("name", CONTEXT_SCENARIOS)
def test_a_seed_says_everything(name):
    scenario = CONTEXT_SCENARIOS[name].with_(steps=40)
    first, again, other = scenario.stream(7), scenario.stream(7), scenario.stream(8)
    assert len(first) == 40
    assert np.array_equal(first.rewards, again.rewards)
    assert np.array_equal(first.contexts, again.contexts)
    assert not np.array_equal(first.rewards, other.rewards)
    assert np.all(first.regrets >= 0.0)
    assert np.all(first.regrets.min(axis=1) == 0.0)
    assert scenario.n_models == len(first.sets)
    only = scenario.with_(only=scenario.sets[1])
    assert list(only.stream(7).sets) == [scenario.sets[1]]
    assert np.array_equal(only.stream(7).rewards, first.rewards)
    assert ContextScenario.from_dict(only.to_dict()) == only


def test_play_hands_on_what_was_decided():
    stream = streams.classification_stream("wine", 1, 0, steps=30)

    class Cyclic:
        def __init__(self):
            self.t, self.told = 0, []

        def decide(self, presented):
            assert np.array_equal(presented.context, stream.contexts[self.t])
            self.t += 1
            return Pick(self.t % 3, 1 / 3, self.t)

        def learn(self, presented, pick, reward):
            self.told.append((pick.note, pick.action, reward))

        def weights(self):
            return np.array([0.25, 0.75])

    chooser = Cyclic()
    run = play(chooser, stream)
    assert [note for note, _, _ in chooser.told] == list(range(1, 31))
    assert all(reward == stream.rewards[note - 1, action] for note, action, reward in chooser.told)
    assert run.regret[-1] == 30 - run.rewards.sum() == np.sum(stream.rewards.argmax(axis=1) != run.actions)
    assert np.array_equal(run.weights, [0.25, 0.75])
    assert np.all(run.propensities == 1 / 3)


def test_wrong_names():
    with pytest.raises(ValueError, match="known are digits, wine"):
        streams.classification_stream("iris", 1, 0)
    with pytest.raises(ValueError, match="family must be one of"):
        ContextScenario(family="iris")
    with pytest.raises(ValueError, match="no feature set 'x'; known are"):
        linear_stream(3, 0).with_set("x")
    with pytest.raises(ValueError, match="n_models must be 2 or 3"):
        routing_stream(3, 0, 4)
    with pytest.raises(TypeError, match="no fixed candidates"):
        ContextScenario().environment(0)
