"""One bank per arm against the dense bank on the same K p columns, and against plain linear algebra."""

import numpy as np
import pytest

from alexp.common.codec import pack, unpack
from alexp.estimation.arms import ArmBanks, ArmColumns
from alexp.estimation.posteriors import CandidateMoments
from alexp.estimation.ridge.bank import RidgeBank
from alexp.problem.candidates import Choices

ARMS, SIZE = 3, 5
LOCAL = [[0, 1, 2, 3, 4], [1], [4, 2, 0], [0, 3]]
RIDGE = np.array([0.3, 1.0, 2.0, 0.01])


def groups(local=LOCAL, arms=ARMS, size=SIZE):
    dense = [np.concatenate([a * size + np.array(own) for a in range(arms)]) for own in local]
    return np.concatenate(dense), np.concatenate([[0], np.cumsum([own.size for own in dense])])


def both(forget=None):
    columns, offsets = groups()
    blocks = ArmBanks(ArmColumns((ARMS, SIZE), columns, offsets, False), RIDGE, forget)
    return blocks, RidgeBank(columns, offsets, RIDGE, threads=1, forget=forget)


def row(rng, arm=None, size=SIZE, arms=ARMS):
    out = np.zeros(arms * size)
    arm = rng.integers(arms) if arm is None else arm
    out[arm * size : (arm + 1) * size] = rng.standard_normal(size)
    return out


def choices(rng, n=9):
    rows = np.array([row(rng) for _ in range(n)])
    table = np.ascontiguousarray(rows.T)
    table.flags.writeable = False
    return Choices(np.arange(n), table)


def assert_same(blocks, dense, offer):
    members = np.array([0, 2, 3])
    close = {"rtol": 1e-10, "atol": 1e-11}
    rows = offer.table.T
    for j in range(dense.n_models):
        np.testing.assert_allclose(blocks.mean(j, offer), dense.mean(j, offer), **close)
        np.testing.assert_allclose(blocks.width(j, rows), dense.width(j, rows), **close)
    for got, want in zip(blocks.at(rows[0]), dense.at(np.ascontiguousarray(rows[0])), strict=True):
        np.testing.assert_allclose(got, want, **close)
    np.testing.assert_allclose(blocks.residuals(), dense.residuals(), **close)
    np.testing.assert_allclose(blocks.log_determinants(), dense.log_determinants(), **close)
    np.testing.assert_allclose(blocks.evidence(0.7), dense.evidence(0.7), **close)
    widths = np.array([0.0, 0.5, 1.0, 3.0])
    assert blocks.argmax_ucb(offer, widths).tolist() == dense.argmax_ucb(offer, widths).tolist()
    assert blocks.argmax_ucb(offer, 2.0).tolist() == dense.argmax_ucb(offer, 2.0).tolist()
    assert blocks.argmax_mean(offer).tolist() == dense.argmax_mean(offer).tolist()
    draws = [fits.argmax_draw(offer, np.random.default_rng(3), 0.8) for fits in (blocks, dense)]
    assert draws[0].tolist() == draws[1].tolist()
    radii = np.array([1.0, 0.2, 2.0])
    band, known = blocks.envelope(members, radii, offer), dense.envelope(members, radii, offer)
    np.testing.assert_allclose(band.lower, known.lower, **close)
    np.testing.assert_allclose(band.upper, known.upper, **close)
    assert band.model.tolist() == known.model.tolist()
    for reference in range(len(offer)):
        gaps = (
            blocks.largest_gaps(members, radii, offer, reference),
            dense.largest_gaps(members, radii, offer, reference),
        )
        np.testing.assert_allclose(*gaps, **close)
    sums = np.zeros((2, ARMS * SIZE))
    for fits, out in zip((blocks, dense), sums, strict=True):
        fits.add_coefficients(members, np.array([0.5, 0.2, 0.3]), out)
    np.testing.assert_allclose(*sums, **close)
    merged = []
    for fits in (blocks, dense):
        into = CandidateMoments.empty(len(offer))
        fits.merge_moments(into, np.array([1]), np.array([0.25]), np.array([2.0]), offer)
        fits.merge_moments(into, members, np.array([0.5, 0.125, 0.125]), np.array([1.0, 2.0, 0.5]), offer)
        merged.append(np.array([into.mean, into.within, into.between, np.full(len(offer), into.total)]))
    np.testing.assert_allclose(*merged, **close)


@pytest.mark.parametrize("forget", [None, 0.9])
def test_the_same_numbers_as_the_dense_bank_at_every_step(forget):
    rng = np.random.default_rng(0)
    blocks, dense = both(forget)
    for t in range(40):
        assert blocks.n_observations == dense.n_observations == t
        assert_same(blocks, dense, choices(rng))
        features, y = row(rng), float(rng.normal())
        blocks.update(features, y)
        dense.update(features, y)
    pending = np.array([row(rng, 1), row(rng, 0), row(rng, 1)])
    assert_same(blocks.with_fantasies(pending), dense.with_fantasies(pending), choices(rng))
    some = np.array([3, 1])
    few, known = blocks.with_fantasies(pending, some), dense.with_fantasies(pending, some)
    offer = choices(rng)
    for k in range(2):
        np.testing.assert_allclose(few.width(k, offer), known.width(k, offer), rtol=1e-10)
        np.testing.assert_allclose(few.mean(k, offer), known.mean(k, offer), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(few.log_determinants(), known.log_determinants(), rtol=1e-10)
    assert_same(blocks, dense, offer)  # which have believed in nothing


def test_pending_rows_one_by_one_are_the_same_bits_as_all_at_once():
    rng = np.random.default_rng(1)
    blocks, _ = both()
    for _ in range(10):
        blocks.update(row(rng), 1.0)
    pending, offer = np.array([row(rng) for _ in range(4)]), choices(rng)
    one_by_one = blocks
    for k in range(4):
        one_by_one = one_by_one.with_fantasies(pending[k : k + 1])
    np.testing.assert_array_equal(one_by_one.values(offer)[1], blocks.with_fantasies(pending).values(offer)[1])


def test_a_restored_state_continues_bit_for_bit_and_damage_is_noticed():
    rng = np.random.default_rng(2)
    blocks, _ = both()
    for _ in range(25):
        blocks.update(row(rng), float(rng.normal()))
    state = unpack(pack(blocks.state()))
    other, _ = both()
    other.restore(state)
    assert other.n_observations == 25
    for _ in range(5):
        features, offer = row(rng), choices(rng)
        for fits in (blocks, other):
            fits.update(features, 0.5)
        np.testing.assert_array_equal(blocks.values(offer)[:2], other.values(offer)[:2])
        np.testing.assert_array_equal(blocks.evidence(1.0), other.evidence(1.0))
    other.update(row(rng, 0), 7.0)
    before = other.values(offer)[0]
    broken = unpack(pack(blocks.state()))
    broken["arms"][2]["factor"][0] = 1e-9
    with pytest.raises(ValueError, match="below the ridge"):
        other.restore(broken)
    with pytest.raises(ValueError, match="must have 3 entries"):
        other.restore({**blocks.state(), "arms": blocks.state()["arms"][:2]})
    with pytest.raises(ValueError, match="lacks 'level'"):
        other.restore({"arms": []})
    np.testing.assert_array_equal(other.values(offer)[0], before)


def test_an_arm_more_is_one_more_bank_at_the_prior():
    rng = np.random.default_rng(3)
    blocks, _ = both()
    larger = ArmBanks(ArmColumns((ARMS + 1, SIZE), *groups(arms=ARMS + 1), False), RIDGE)
    for _ in range(12):
        features, y = row(rng), float(rng.normal())
        blocks.update(features, y)
        larger.update(np.append(features, np.zeros(SIZE)), y)
    offer = choices(rng)
    extended = Choices(offer.indices, np.vstack([offer.table, np.zeros((SIZE, len(offer)))]))
    np.testing.assert_array_equal(blocks.values(offer)[:2], larger.values(extended)[:2])
    np.testing.assert_array_equal(blocks.evidence(1.0), larger.evidence(1.0))
    new = np.zeros((ARMS + 1) * SIZE)
    new[ARMS * SIZE :] = 2.0
    assert larger.mean(0, new[None])[0] == 0.0
    assert larger.width(0, new[None])[0] == pytest.approx(2.0 * np.sqrt(5) / 0.3)


# -- constants of arms -----------------------------------------------------------------------------------------


def with_constants():
    columns, offsets = groups([[0, 1, 2], [0, 2]], ARMS, 3)
    return ArmBanks(ArmColumns((ARMS, 3), columns, offsets, True), np.array([0.5, 2.0]))


def test_constants_of_arms_are_unpenalised():
    rng = np.random.default_rng(4)
    fits, told = with_constants(), {arm: ([], []) for arm in range(ARMS)}
    for t in range(30):
        arm = t % 2  # arm 2 has no reward
        features = row(rng, arm, 3)
        features[3 * arm] = 1.0
        y = 1000.0 * (arm + 1) + rng.normal()
        fits.update(features, y)
        told[arm][0].append(features[3 * arm : 3 * arm + 3])
        told[arm][1].append(y)
    assert fits.n_constants == 2
    losses, levels = np.zeros(2), np.zeros(2)
    for j, (own, ridge) in enumerate(zip([[1, 2], [2]], [0.5, 2.0], strict=True)):
        for arm in (0, 1):
            x, y = np.array(told[arm][0]), np.array(told[arm][1])
            centred, rest = x[:, own] - x[:, own].mean(axis=0), y - y.mean()
            v = centred.T @ centred + ridge**2 * np.eye(len(own))
            theta = np.linalg.solve(v, centred.T @ rest)
            losses[j] += np.sum((rest - centred @ theta) ** 2) + ridge**2 * theta @ theta
            levels[j] += np.linalg.slogdet(v / ridge**2)[1]
            point = row(rng, arm, 3)
            point[3 * arm] = 1.0
            gap = point[3 * arm + np.array(own)] - x[:, own].mean(axis=0)
            np.testing.assert_allclose(fits.mean(j, point[None])[0], y.mean() + gap @ theta)
            variance = 1.0 / len(y) + gap @ np.linalg.solve(v, gap)
            np.testing.assert_allclose(fits.width(j, point[None])[0] ** 2, variance)
    beta, point = np.zeros(10), row(rng, 1, 3)  # one entry more, for an intercept of all arms
    point[3] = 1.0
    fits.add_coefficients(np.array([0]), np.ones(1), beta)
    np.testing.assert_allclose(beta[:9] @ point, fits.mean(0, point[None])[0])
    assert beta[6] == pytest.approx(1500.0, abs=2.0)  # of the arm without rewards: their mean
    assert beta[9] == 0.0
    np.testing.assert_allclose(fits.residuals(), losses, rtol=1e-6)
    np.testing.assert_allclose(fits.log_determinants(), levels)


def test_an_arm_without_rewards_is_as_good_as_the_average_and_unknown():
    rng = np.random.default_rng(5)
    fits = with_constants()
    features = row(rng, 0, 3)
    features[0] = 1.0
    for y in (-5.0, -7.0):
        fits.update(features, y)
    unseen = row(rng, 2, 3)
    unseen[6] = 1.0
    assert fits.mean(0, unseen[None])[0] == -6.0
    assert fits.width(0, unseen[None])[0] > 1000.0
    offer = Choices(np.arange(2), np.ascontiguousarray(np.array([features, unseen]).T))
    assert fits.argmax_ucb(offer, 1.0).tolist() == [1, 1]
    believed = fits.with_fantasies(unseen[None])
    assert believed.mean(0, unseen[None])[0] == pytest.approx(-6.0)  # means stay
    assert believed.width(0, unseen[None])[0] < 1.5


def test_draws_have_the_covariance_of_the_posterior_constants_included():
    rng = np.random.default_rng(6)
    fits = with_constants()
    for t in range(20):
        features = row(rng, t % ARMS, 3)
        features[3 * (t % ARMS)] = 1.0
        fits.update(features, float(rng.normal()))
    rows = np.array([row(rng, arm, 3) for arm in (0, 0, 1)])
    rows[[0, 1, 2], [0, 0, 3]] = 1.0
    normals = fits.spread([np.eye(fits.n_normals(0))[k] for k in range(fits.n_normals(0))])
    root = np.array([fits.values(rows, np.array([0]), normals[:, [k]])[2][0] for k in range(normals.shape[1])])
    np.testing.assert_allclose(np.diag(root.T @ root), fits.values(rows, np.array([0]))[1][0])
    assert (root.T @ root)[0, 2] == 0.0
    difference = rows[0] - rows[1]
    bank = RidgeBank(np.array([0, 1]), np.array([0, 2]), 0.5, intercept=True)
    bank.restore(fits.with_fantasies(np.empty((0, 9)), np.array([0])).banks[0].state())
    inner = np.linalg.inv(bank.triangle(0).T @ bank.triangle(0))[1:, 1:]
    np.testing.assert_allclose(root.T @ root @ [1, -1, 0] @ [1, -1, 0], difference[1:3] @ inner @ difference[1:3])


# -- what is refused -------------------------------------------------------------------------------------------


def test_groups_that_differ_between_arms_are_refused():
    with pytest.raises(ValueError, match="same columns in each of 2 blocks of 3"):
        ArmColumns((2, 3), np.array([0, 1, 3]), np.array([0, 3]), False)
    with pytest.raises(ValueError, match="same columns in each"):
        ArmColumns((2, 3), np.array([0, 4]), np.array([0, 2]), False)
    with pytest.raises(ValueError, match="its constant"):
        ArmColumns((2, 3), np.array([1, 4]), np.array([0, 2]), True)


def test_bad_rows_are_refused_and_change_nothing():
    blocks, _ = both()
    rng = np.random.default_rng(7)
    blocks.update(row(rng), 1.0)
    before = blocks.evidence(1.0)
    for bad, y, message in (
        (np.ones(ARMS * SIZE), 1.0, "zero outside the block of one arm"),
        (np.ones(4), 1.0, "15 columns"),
        (row(rng), np.nan, "finite"),
        (np.where(row(rng, 1) != 0.0, np.inf, 0.0), 1.0, "finite"),
    ):
        with pytest.raises(ValueError, match=message):
            blocks.update(bad, y)
    assert blocks.n_observations == 1
    np.testing.assert_array_equal(blocks.evidence(1.0), before)


def test_a_row_of_zeros_counts_as_a_reward_that_no_coefficient_explains():
    blocks, dense = both()
    for fits in (blocks, dense):
        fits.update(np.zeros(ARMS * SIZE), 2.0)
    np.testing.assert_allclose(blocks.residuals(), dense.residuals())
    assert blocks.n_observations == 1


def test_pending_trials_of_an_arm_leave_the_constants_of_others_alone():
    rng = np.random.default_rng(8)
    fits, rows = with_constants(), []
    for arm in range(ARMS):
        rows.append(row(rng, arm, 3))
        rows[-1][3 * arm] = 1.0
        fits.update(rows[-1], 1.0)
    rows = np.array(rows)
    before, after = fits.width(0, rows), fits.with_fantasies(rows[[1, 2]]).width(0, rows)
    assert after[0] == before[0]
    assert after[1] == fits.with_fantasies(rows[[1]]).width(0, rows)[1] < before[1]
