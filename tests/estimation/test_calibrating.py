"""Prior scales from the first rows told: made anew after 1, 2, 4, ..., 64 rewards, from then on fixed."""

import numpy as np
import pytest

from alexp.common import codec
from alexp.estimation.mixture.calibrating import row_divisors, set_units
from alexp.estimation.mixture.making import level_mixture, ratio_mixture
from alexp.problem.candidates import Choices
from alexp.problem.dictionaries import Legendre
from alexp.problem.models import ModelClass

RATIOS = (1e-3, 0.1)
GROUPS, SIZES = [[0, 1], [2], [1, 3]], np.array([1.0, 1.0, 1e4, 1.0])
MODELS, RAISED = (ModelClass(Legendre(3), GROUPS, intercept=constant) for constant in (False, True))


def rows_and_rewards(t, seed=0):
    rng = np.random.default_rng(seed)
    rows = SIZES * rng.standard_normal((t, 4))
    return rows, rows[:, 0] - 0.5 * rows[:, 1] + 0.1 * rng.standard_normal(t)


def new(noise_std=None, models=MODELS, reference=None):
    return ratio_mixture(models, None, RATIOS, noise_std, 1.0, reference)


def feed(mixture, rows, rewards):
    for row, y in zip(rows, rewards, strict=True):
        mixture.update(row, float(y))
    return mixture


def last_time(t):
    """Rewards when the divisors of t rewards were measured."""
    return min(2 ** int(np.log2(t)), 64)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("noise_std", [None, 0.1])
@pytest.mark.parametrize("t", [1, 2, 3, 7, 8, 63, 64, 65, 100])
def test_equals_a_mixture_made_from_the_rows_of_the_last_power_of_two(t, noise_std, intercept):
    models = RAISED if intercept else MODELS
    rows, rewards = rows_and_rewards(t)
    found = feed(new(noise_std, models), rows, rewards)
    slow = feed(new(noise_std, models, reference=rows[: last_time(t)]), rows, rewards)
    assert found.weights().tobytes() == slow.weights().tobytes()
    points = Choices(None, np.ascontiguousarray(rows[:5].T))
    for one, other in zip(found.moments(found.weights(), points), slow.moments(slow.weights(), points), strict=True):
        assert one.tobytes() == other.tobytes()
    assert found.noise_variance(found.weights()) == slow.noise_variance(slow.weights())


def test_the_unit_of_a_feature_does_not_matter():
    rows, rewards = rows_and_rewards(70)
    plain = feed(new(), rows, rewards)
    scaled = feed(new(), rows * [1.0, 1.0, 2.0**20, 1.0], rewards)
    assert plain.weights() == pytest.approx(scaled.weights(), rel=1e-9)


@pytest.mark.parametrize("t", [0, 1, 5, 64, 90])
def test_states_go_through_storage(t):
    rows, rewards = rows_and_rewards(t + 80)
    first = feed(new(), rows[:t], rewards[:t])
    second = new()
    second.restore(codec.unpack(codec.pack(first.state())))
    for mixture in (first, second):
        feed(mixture, rows[t:], rewards[t:])
    assert first.weights().tobytes() == second.weights().tobytes()


def test_rows_are_kept_no_longer_than_needed():
    rows, rewards = rows_and_rewards(64)
    mixture = feed(new(), rows[:63], rewards[:63])
    assert len(mixture.state()["grid"]["rows"]) == 63
    feed(mixture, rows[63:], rewards[63:])
    assert mixture.state()["grid"]["rows"].size == mixture.state()["grid"]["rewards"].size == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"divisors": np.zeros(3)}, "divisors"),
        ({"rows": np.zeros((2, 4))}, "number of grid"),
        ({"rewards": np.zeros(9)}, "number of grid"),
        ({"rows": np.zeros((5, 1))}, "shape"),
    ],
)
def test_a_damaged_state_is_refused_and_changes_nothing(change, message):
    rows, rewards = rows_and_rewards(5)
    state = feed(new(), rows, rewards).state()
    fresh = new()
    with pytest.raises(ValueError, match=message):
        fresh.restore(state | {"grid": state["grid"] | change})
    assert fresh.n_observations == 0


def test_divisors_of_rows():
    columns, offsets = np.array([0, 1, 1]), np.array([0, 2, 3])
    rows = np.array([[1.0, 10.0], [3.0, 10.0]])
    assert row_divisors(rows, columns, offsets, False) ** 2 == pytest.approx([5.0 + 100.0, 100.0])
    # Around its mean the second column is zero; where a model has nothing else, its size counts.
    assert row_divisors(rows, columns, offsets, True) ** 2 == pytest.approx([1.0, 100.0])
    assert row_divisors(np.zeros((2, 2)), columns, offsets, False).tolist() == [1.0, 1.0]


def test_arms_share_their_features():
    features = np.array([[1.0, 5.0], [3.0, 7.0], [5.0, 9.0]])
    rows = np.zeros((3, 6))
    for t, arm in enumerate([0, 2, 0]):
        rows[t, 2 * arm : 2 * arm + 2] = features[t]
    columns, offsets = np.array([0, 2, 4, 0, 1, 2, 3, 4, 5]), np.array([0, 3, 9])
    for centred in (False, True):
        plain = row_divisors(features, np.array([0, 0, 1]), np.array([0, 1, 3]), centred)
        assert row_divisors(rows, columns, offsets, centred, (3, 2)) == pytest.approx(plain)


def test_a_grid_of_stated_sizes_needs_no_rows():
    assert level_mixture(MODELS, None, 0.1, 1.0, (1.0,), (1.0,), 1.0)._calibration is None


def test_free_columns_do_not_count():
    rows = np.random.default_rng(5).normal(size=(20, 3))
    columns, offsets = np.array([0, 1, 0, 2]), np.array([0, 2, 4])
    plain = row_divisors(rows[:, 1:], np.array([0, 1]), np.array([0, 1, 2]), False)
    rows[:, 0] *= 100.0
    np.testing.assert_allclose(row_divisors(rows, columns, offsets, False, None, np.array([0])), plain)


def test_sets_of_a_union_have_the_same_size():
    rng, sets = np.random.default_rng(6), np.array([-1, 0, 0, 0, 1, -1])
    rows = rng.normal(3.0, [0.0, 1.0, 2.0, 5.0, 0.01, 9.0], size=(50, 6))
    for centred in (False, True):
        parts = [rows[:, sets == k] - (rows[:, sets == k].mean(axis=0) if centred else 0.0) for k in (0, 1)]
        sizes = [np.sqrt(np.mean(np.square(part).sum(axis=1))) for part in parts]
        expected = [1.0, sizes[0], sizes[0], sizes[0], sizes[1], 1.0]
        np.testing.assert_allclose(set_units(rows, sets, centred), expected)
    in_arms = np.zeros((50, 18))
    for t in range(50):
        in_arms[t, 6 * (t % 3) : 6 * (t % 3) + 6] = rows[t]
    np.testing.assert_allclose(set_units(in_arms, np.tile(sets, 3), True, (3, 6)), np.tile(expected, 3))
    assert set_units(np.zeros((2, 6)), sets, False).tolist() == [1.0] * 6
