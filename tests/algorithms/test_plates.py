"""Pending trials: what deterministic rules believe about them, and what an ask may choose from."""

import numpy as np
import pytest

import alexp
from alexp.testing import again

from .plain import Ridge, best_of, problem

NOISE, BOUND = 0.1, 1.0


def played(kind, rounds=5, **settings):
    models, domain, table = problem()
    opt = kind(models, domain, noise_std=NOISE, reward_bound=BOUND, random_state=1, **settings)
    data = [(int(index), float(np.cos(index))) for index in range(rounds)]
    for index, reward in data:
        opt.observe(index, reward)
    return opt, table, data


def test_ucb_plays_the_bound_that_pending_rewards_will_leave():
    opt, table, data = played(alexp.LinUCB, agent=alexp.UCB(1.5, 0.3))
    free = list(range(12))
    believed, columns = list(data), range(table.shape[1])
    for _ in range(6):
        mean = Ridge(table, columns, 1.0, 0.3, data).mean
        norm = Ridge(table, columns, 1.0, 0.3, believed).norm
        expected = best_of(mean + 1.5 * BOUND * 0.3 * norm, np.array(free))
        assert opt.ask().index == expected
        free.remove(expected)
        believed.append((expected, 0.0))


def test_a_plate_differs_from_the_top_of_the_index():
    """Believing is more than leaving out what was chosen: neighbours of a pending candidate lose as well."""
    models, line = alexp.ModelClass.legendre(4, 2), alexp.Interval(-1.0, 1.0, resolution=400)
    opt = alexp.LMUCB(models, line, noise_std=0.1, reward_bound=1.0, random_state=0)
    plate = np.array([trial.x for trial in opt.ask(5)])
    assert np.min(np.abs(np.subtract.outer(plate, plate))[~np.eye(5, dtype=bool)]) > 0.3


def test_abandoning_brings_back_the_decision_of_before():
    opt, _, _ = played(alexp.LMUCB)
    first, second = opt.ask(2)
    assert again(opt, 1)[0].index not in (first.index, second.index)
    opt.abandon(second)
    assert again(opt, 1)[0].index == second.index
    opt.abandon(first)
    assert opt.ask().index == first.index


@pytest.mark.parametrize("kind", [alexp.ALExp, alexp.EvidenceMixture, alexp.LMUCB, alexp.EXP4IX])
def test_weights_stay_until_rewards_come(kind):
    opt, _, _ = played(kind)
    opt.ask()
    before = opt.probabilities
    opt.ask(5)
    np.testing.assert_array_equal(opt.probabilities, before)


def test_names_masks_and_indices_are_the_same_choice():
    models = alexp.ModelClass.from_matrices({"a": np.eye(5), "b": np.ones((5, 1))})
    domain, mask = alexp.FiniteSet([f"m{i}" for i in range(5)]), np.array([False, True, False, True, False])
    for available in (["m1", "m3"], [3, 1], mask, mask.tolist(), np.array(["m3", "m1"])):
        opt = alexp.LinUCB(models, domain, random_state=0)
        assert {trial.x for trial in opt.ask(2, available=available)} == {"m1", "m3"}
    with pytest.raises(ValueError, match="'m7'"):
        opt.ask(available=["m7"])
    assert opt.n_asked == 2


def test_repeats_only_where_there_is_nothing_else():
    models, domain = alexp.ModelClass.legendre(2, 1), alexp.FiniteSet(np.array([0.0, 0.5, 1.0]))
    opt = alexp.UniformRandom(models, domain, random_state=0)
    plate = [trial.index for trial in opt.ask(7)]
    assert sorted(plate[:3]) == sorted(plate[3:6]) == [0, 1, 2]
    without = alexp.UniformRandom(models, domain, repeats=False, random_state=0)
    with pytest.raises(ValueError, match="n must be at most 3"):
        without.ask(4)
    with pytest.raises(ValueError, match="n must be at most 2.*available"):
        without.ask(3, available=[0, 2])
    trials = without.ask(3)
    with pytest.raises(ValueError, match="every candidate has been measured or is pending"):
        without.ask()
    without.tell(trials[0], 1.0)
    without.abandon(trials[1])
    assert without.choosable().tolist() == [trials[1].index]
    with pytest.raises(ValueError, match="every available candidate"):
        without.ask(available=[trials[0].index])
    assert without.n_asked == 3


@pytest.mark.parametrize("kind", [alexp.EvidenceMixture, alexp.LMUCB, alexp.UniformRandom])
def test_most_of_the_candidates_need_no_copy(kind):
    opt, _, _ = played(kind, repeats=False)
    round_ = opt._open(np.arange(1, 12))
    assert sorted(round_.indices) == list(range(5, 12))
    opt._decide(round_)
    assert "choices" not in vars(round_)
