"""coba and Vowpal Wabbit on the same rounds; those that are not installed say so."""

from importlib.util import find_spec

import numpy as np
import pytest

from alexp_experiments.comparison import peers
from alexp_experiments.contextual import contest
from alexp_experiments.contextual.contest import ContextContest
from alexp_experiments.contextual.playing import CONTEXT_SCENARIOS, Pick, play

PEERS = {"coba": contest.COBA, "vowpalwabbit": contest.VOWPAL}
NEEDS_BOTH = {"coba VW epsilon", "coba VW squarecb", "coba VW cover"}


def playing():
    for module, group in PEERS.items():
        for name in group:
            absent = [m for m in {module, *(PEERS if name in NEEDS_BOTH else ())} if find_spec(m) is None]
            yield pytest.param(name, marks=pytest.mark.skipif(bool(absent), reason=f"{absent} not installed"))


@pytest.mark.parametrize("name", list(playing()))
def test_peers_repeat_under_a_seed_and_meet_the_same_rounds(name):
    entrant = contest.CONTEXT_ENTRANTS[name]
    scenario = CONTEXT_SCENARIOS["wine"].with_(steps=40)
    first, again, other = (entrant.task(scenario, seed).run() for seed in (3, 3, 4))
    assert np.array_equal(first.chosen, again.chosen)
    assert not np.array_equal(first.chosen, other.chosen)
    assert first.regret.size == 40
    assert np.array_equal(
        np.diff(first.regret, prepend=0.0) > 0, scenario.stream(_seed(3)).regrets.argmin(1) != first.chosen
    )


def _seed(seed):
    return contest.CONTEXT_ENTRANTS["uniform"].task(CONTEXT_SCENARIOS["wine"], seed).seeds[0]


@pytest.mark.parametrize("name", list(playing()))
def test_those_who_see_contexts_use_them(name):
    """Two passes over wine: chance is wrong in two of three rounds."""
    blind = {"coba epsilon", "coba UCB", "VW"}
    scenario = CONTEXT_SCENARIOS["wine"].with_(passes=3)
    late = np.mean([contest.CONTEXT_ENTRANTS[name].task(scenario, seed).run().final_gap for seed in range(3)])
    assert late > 0.5 if name in blind else late < 0.45


@pytest.mark.parametrize("name", list(playing()))
def test_propensities_are_probabilities_of_what_was_played(name):
    scenario = CONTEXT_SCENARIOS["routing, three models"].with_(steps=60)
    stream = scenario.stream(0)
    run = play(contest.CONTEXT_ENTRANTS[name].task(scenario, 0).chooser(stream), stream)
    assert np.all((run.propensities > 0.0) & (run.propensities <= 1.001))  # Corral of coba rounds
    assert run.weights.size == 0


@pytest.mark.parametrize("name", ["coba LinUCB", "VW"])
def test_new_candidates(name):
    if find_spec("coba" if name.startswith("coba") else "vowpalwabbit") is None:
        pytest.skip("not installed")
    scenario = CONTEXT_SCENARIOS["new candidates"].with_(steps=300)
    run, chance = (contest.CONTEXT_ENTRANTS[name].task(scenario, seed).run() for seed in (0, 1))
    stream = scenario.stream(contest.CONTEXT_ENTRANTS[name].task(scenario, 0).seeds[0])
    assert run.regret[-1] < 0.6 * stream.regrets.mean(axis=1).sum()
    assert chance.regret.size == 300


def test_vowpal_is_told_costs_and_probabilities():
    pytest.importorskip("vowpalwabbit")
    from alexp_experiments.contextual.peers.vowpal import make

    stream = CONTEXT_SCENARIOS["wine"].with_(steps=2).stream(0)
    said = []

    class Workspace:
        def predict(self, lines):
            return [0.25, 0.25, 0.5]

        def learn(self, lines):
            said.append(lines)

    for arguments, expected in (("--cb_explore_adf -q xa", 4), ("--cb_explore {K}", None)):
        chooser = make(stream, 0, arguments=arguments)
        chooser._workspace = Workspace()
        presented = next(iter(stream))
        chooser.learn(presented, chooser.decide(presented)._replace(action=1, probability=0.25), 0.75)
        lines = said.pop()
        if expected:
            assert len(lines) == expected
            assert lines[0].startswith("shared |x 0:")
            assert [line.startswith("0:-0.75:0.25 |a arm1") for line in lines] == [False, False, True, False]
        else:
            assert lines.startswith("2:-0.75:0.25 |x 0:")


def test_coba_s_corral_gets_rewards_between_zero_and_one():
    from alexp_experiments.contextual.peers.coba import CobaChooser

    told = []

    class Learner:
        def predict(self, context, actions):
            return actions[1], 0.5, {"info": 7}

        def learn(self, context, action, reward, probability, **kwargs):
            told.append((action, reward, probability, kwargs))

    stream = CONTEXT_SCENARIOS["routing, two models"].with_(steps=2).stream(0)
    for squeezed, expected in ((True, 0.5), (False, 0.15)):
        chooser = CobaChooser(Learner(), stream, squeezed)
        presented = next(iter(stream))
        pick = chooser.decide(presented)
        assert pick == Pick(1, 0.5, {"info": 7})
        chooser.learn(presented, pick, 0.15)
        action, reward, probability, kwargs = told.pop()
        assert (action, probability, kwargs) == ((0.0, 1.0), 0.5, {"info": 7})
        assert np.isclose(reward, expected)


def test_what_is_not_installed_is_said(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(peers, "import_module", missing)
    said = []
    assert contest.playing_libraries(said.append) == []
    assert all("alexp-experiments[contextual-peers]" in line for line in said)
    assert len(said) == 2


def test_names_are_checked():
    with pytest.raises(ValueError, match="no stream 'x'; known are digits"):
        ContextContest.of(["x"])
    with pytest.raises(ValueError, match="no entrant 'x'; known are mixture"):
        ContextContest.of(["wine"], ["x"])


def test_who_plays_what():
    def sets(title, *names):
        return [(cell.entrant, cell.scenario.only) for cell in ContextContest.of([title], names).cells]

    # Arms stay the same on wine only; new candidates have another best set under every seed; on digits two are slow.
    wine = [("mixture, one set", name) for name in CONTEXT_SCENARIOS["wine"].sets]
    assert sets("wine", "mixture, one set", "coba UCB") == [*wine, ("coba UCB", None)]
    assert sets("new candidates", "mixture", "mixture, one set", "coba UCB") == [("mixture", None)]
    assert sets("digits", "alexp", "coba LinTS", "lm-ucb") == [("lm-ucb", None)]
