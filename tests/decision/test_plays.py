"""Plays: probabilities that sum to one, and draws that follow them."""

from __future__ import annotations

import numpy as np
import pytest

import alexp
from alexp.decision.plays import Alone, Among, Certain, Even, Explore, Follow, Weighted, on_choices
from alexp.decision.pool import OwnDataPool
from alexp.decision.suggestions import Suggestions
from alexp.decision.weights import draw_index
from alexp.problem import CandidateTable

N = 5
POLICIES = Suggestions.samples(np.array([[0, 1], [1, 1], [4, 2]]), N)
Q = np.array([0.5, 0.2, 0.3])
DESIGN = np.array([0.1, 0.2, 0.3, 0.4, 0.0])
FOLLOWED = [0.25, 0.45, 0.15, 0.0, 0.15]

PLAYS = {
    "certain": (Certain(3, 7), [0, 0, 0, 1, 0]),
    "even": (Even(N), [0.2] * 5),
    "among": (Among(np.array([1, 1, 4])), [0, 2 / 3, 0, 0, 1 / 3]),
    "weighted": (Weighted(np.array([4, 0]), np.array([0.3, 0.7])), [0.7, 0, 0, 0, 0.3]),
    "alone": (Alone(POLICIES, 2, 9), [0, 0, 0.5, 0, 0.5]),
    "follow": (Follow(Q, POLICIES), FOLLOWED),
    "explore": (Explore(0.4, N, DESIGN, Follow(Q, POLICIES)), 0.4 * DESIGN + 0.6 * np.array(FOLLOWED)),
    "explore evenly": (Explore(0.25, N, None, Certain(2)), [0.05, 0.05, 0.8, 0.05, 0.05]),
}


@pytest.mark.parametrize("name", PLAYS)
def test_draws_follow_the_probabilities(name):
    play, expected = PLAYS[name]
    np.testing.assert_allclose([play.probability(k) for k in range(N)], expected, atol=1e-15)
    rng, n = np.random.default_rng(1), 4000
    drawn = [play.draw(rng) for _ in range(n)]
    counts = np.bincount([proposal.position for proposal in drawn], minlength=N) / n
    error = np.sqrt(np.array(expected) * (1 - np.array(expected)) / n)
    assert np.all(np.abs(counts - expected) <= 4.5 * error + 1e-12), (counts, expected)
    for proposal in drawn[:200]:
        assert proposal.propensity == pytest.approx(expected[proposal.position], abs=1e-15)


def test_proposals_say_where_they_come_from():
    rng = np.random.default_rng(0)
    assert PLAYS["certain"][0].draw(rng).model == 7
    assert PLAYS["alone"][0].draw(rng).model == 9
    drawn = [PLAYS["explore"][0].draw(rng) for _ in range(2000)]
    explored = [proposal for proposal in drawn if proposal.explored]
    assert abs(len(explored) / 2000 - 0.4) < 0.05
    assert all(proposal.model is None for proposal in explored)
    models = np.bincount([proposal.model for proposal in drawn if not proposal.explored], minlength=3)
    np.testing.assert_allclose(models / models.sum(), Q, atol=0.05)
    assert Even(N).draw(rng).explored
    assert Weighted(np.arange(2), np.array([0.5, 0.5]), explored=True).draw(rng).explored


def test_a_distribution_is_restricted_by_candidate_not_by_position():
    np.testing.assert_allclose(on_choices(DESIGN, np.array([3, 0])), [0.8, 0.2])
    np.testing.assert_allclose(on_choices(DESIGN, np.array([4])), [1.0])


def test_an_index_is_drawn_by_weight_and_never_beyond_the_last():
    class Top:
        def random(self):
            return np.nextafter(1.0, 0.0)

    weights = np.full(10, 0.1)
    assert draw_index(weights, Top()) == 9
    assert draw_index(np.array([0.0, 0.0, 5.0, 0.0]), np.random.default_rng(0)) == 2


def test_agents_with_data_of_their_own_that_draw_are_asked_every_time():
    models, domain = alexp.ModelClass.legendre(4, 2), alexp.Interval(resolution=40)
    everything = CandidateTable(models, domain, np.arange(40)).everything
    for agent, repeats in ((alexp.ThompsonSampling(ridge=0.5, scale=2.0, draws=1), False), (alexp.UCB(), True)):
        pool = OwnDataPool(agent, models, 0.1, 1.0)
        one, two = (pool.suggest(everything, np.random.default_rng(seed)) for seed in (0, 1))
        assert np.array_equal(one.atoms, two.atoms) == repeats
