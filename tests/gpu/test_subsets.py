"""All subsets without a list of them: the twin of the device's kernels against the models that are listed."""

from itertools import combinations
from math import comb

import numpy as np
import pytest

import alexp
from alexp.decision.agents import UCB, EpsilonGreedy, Greedy, ThompsonSampling
from alexp.estimation.mixture.making import level_mixture, ratio_mixture
from alexp.estimation.posteriors import CandidateMoments
from alexp.estimation.ridge.bank import RidgeBank
from alexp.gpu.cpu_engine import CpuEngine
from alexp.gpu.subsets import SharedSums, engine_for, level_subsets, rank_of, ratio_subsets
from alexp.problem.candidates import NOTHING, CandidateTable, Pending
from alexp.problem.dictionaries import Legendre
from alexp.problem.groups import AllSubsets, binomial_table
from alexp.problem.matrices import Matrices
from alexp.problem.models import ANYWHERE

DEGREE, N = 7, 30
DOMAIN = alexp.Interval(-1.0, 1.0, resolution=N)
RATIOS = (1e-4, 1e-2, 0.5)


def classes(size, intercept=False):
    return [alexp.ModelClass.subsets(Legendre(DEGREE), size, intercept=intercept, device=d) for d in (None, "cpu")]


def told(mixtures, candidates, n):
    rng = np.random.default_rng(0)
    for index in rng.integers(N, size=n):
        y = np.sin(3.0 * DOMAIN.points[index]) + 0.1 * rng.standard_normal()
        for mixture in mixtures:
            mixture.update(candidates.row(int(index)), y, int(index))


def exact_moments(mixture, weights, choices, pending):
    """Of a listed mixture, with nobody left out."""
    merged = CandidateMoments.empty(len(choices))
    for part in mixture.components(weights, choices, pending, least=0.0):
        merged.merge(part.share, part.mean, part.variance)
    return merged.mean, merged.within + merged.between


def pair_of(kind, size, intercept):
    models, enumerated = classes(size, intercept)
    candidates = CandidateTable(models, DOMAIN, np.random.default_rng(1).permutation(N))
    if kind == "levels":
        grids = (0.2, 1.5, (1 / 3, 1.0, 3.0), (1.0, 4.0), 1.0)
        made = level_mixture(models, candidates, *grids), level_mixture(enumerated, candidates, *grids)
    else:
        grids = (RATIOS, 0.2 if kind == "known" else None, 0.5)
        made = ratio_mixture(models, candidates, *grids), ratio_mixture(enumerated, candidates, *grids)
    return *made, candidates


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("size", "kind"), [(2, "levels"), (3, "levels"), (3, "known"), (3, "unknown"), (4, "unknown")])
def test_the_mixture_is_that_of_the_listed_models(size, kind, intercept):
    listed, ours, candidates = pair_of(kind, size, intercept)
    choices, rows = candidates.everything.choices, candidates.rows(np.array([3, 5]))
    for n in (0, 1, 9):
        told((listed, ours), candidates, n)
        weights, posterior = listed.weights(), ours.weights()
        for pending in (NOTHING, Pending(np.array([1, 2]), np.array([3, 5]), rows)):
            mean, variance = exact_moments(listed, weights, choices, pending)
            own_mean, own_variance = ours.moments(posterior, choices, pending)
            np.testing.assert_allclose(own_mean, mean, rtol=0.0, atol=1e-9)
            np.testing.assert_allclose(own_variance, variance, rtol=1e-9)
        shares = listed.probabilities(weights)
        np.testing.assert_allclose(ours.probabilities(posterior), shares, atol=1e-12)
        assert ours.noise_variance(posterior) == pytest.approx(listed.noise_variance(weights), rel=1e-12)
        np.testing.assert_allclose(
            ours.column_probabilities(posterior), listed.column_probabilities(weights), atol=1e-12
        )
        if n:
            assert ours.leader(posterior) == listed.leader(weights)
            numbers, best = ours.likeliest(posterior, 5)
            np.testing.assert_allclose(best, np.sort(shares)[::-1][:5], atol=1e-12)
            np.testing.assert_allclose(shares[numbers], best, atol=1e-12)


@pytest.mark.parametrize("noise", [1e-2, 5e-5])
def test_widths_keep_their_digits_where_there_is_little_noise(noise):
    """A subset is seen once with each pair, and differences between subsets must not be made of rounding."""
    models, enumerated = classes(3)
    candidates = CandidateTable(models, DOMAIN, np.arange(N))
    grids = (noise, 1.0, (1.0,), (1.0, 4.0), 1.0)
    listed, ours = (level_mixture(m, candidates, *grids) for m in (models, enumerated))
    rng, choices = np.random.default_rng(0), candidates.everything.choices
    for index in rng.integers(N, size=200):
        row = candidates.row(int(index))
        for mixture in (listed, ours):
            mixture.update(row, float(row[1] - 0.5 * row[3] + 0.2 * row[6]), int(index))
    mean, variance = listed.moments(listed.weights(), choices)
    own, spread = ours.moments(ours.weights(), choices)
    np.testing.assert_allclose(own, mean, rtol=0.0, atol=1e-6 * np.sqrt(variance.max()))
    np.testing.assert_allclose(np.sqrt(spread), np.sqrt(variance), rtol=1e-5)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_sweep_finds_what_the_bank_finds(size, intercept):
    rng = np.random.default_rng(size)
    p = 9
    table = np.ascontiguousarray(rng.standard_normal((p, 40)))
    columns, offsets = AllSubsets(p, size).listed().ravel(), np.arange(comb(p, size) + 1) * size
    bank, engine = RidgeBank(columns, offsets, 0.1, intercept), CpuEngine(p, size)
    sums = SharedSums(np, p, intercept)
    for row in rng.standard_normal((12, p)):
        y = row[1] - row[2] + 0.1 * rng.standard_normal()
        bank.update(row, y)
        sums.update(row, y)
    pending = rng.standard_normal((2, p))
    believed, later = bank.with_fantasies(pending), sums.with_fantasies(pending)
    for width in (0.0, 0.05, 3.0):
        for fits, after in ((bank, sums), (believed, later)):
            points = np.ascontiguousarray(table.T) - after.mean
            ours = engine.sweep(sums, after, 0.01, width, points, 0, bank.n_models)
            np.testing.assert_array_equal(ours, fits.argmax_ucb(table, width))
    some = engine.sweep(sums, sums, 0.01, 0.05, np.ascontiguousarray(table.T) - sums.mean, 7, 11)
    np.testing.assert_array_equal(some, bank.argmax_ucb(table, 0.05)[7:18])


def test_sums_are_about_the_means_where_there_is_an_intercept():
    rng = np.random.default_rng(0)
    rows, y = 50.0 + rng.standard_normal((20, 5)), 7.0 + rng.standard_normal(20)
    plain, centred = SharedSums(np, 5, False), SharedSums(np, 5, True)
    for row, reward in zip(rows, y, strict=True):
        plain.update(row, float(reward))
        centred.update(row, float(reward))
    about, rest = rows - rows.mean(axis=0), y - y.mean()
    np.testing.assert_allclose(plain.gram, rows.T @ rows, rtol=1e-12)
    np.testing.assert_allclose(plain.cross, rows.T @ y, rtol=1e-12)
    np.testing.assert_allclose(centred.gram, about.T @ about, atol=1e-11)
    np.testing.assert_allclose(centred.cross, about.T @ rest, atol=1e-11)
    assert centred.total == pytest.approx(rest @ rest)
    assert plain.squares == pytest.approx(rest @ rest)
    assert plain.total == pytest.approx(y @ y)
    np.testing.assert_array_equal(centred.gram, centred.gram.T)
    again = SharedSums(np, 5, True)
    again.restore(centred.state())
    assert all(np.array_equal(again.state()[key], value) for key, value in centred.state().items())
    damaged = centred.state() | {"gram": centred.gram + np.triu(np.ones((5, 5)))}
    with pytest.raises(ValueError, match=r"state\['gram'\] must be symmetric"):
        again.restore(damaged)


def test_subsets_are_numbered_as_they_are_listed():
    groups = AllSubsets(7, 3)
    listed = list(combinations(range(7), 3))
    assert [tuple(group) for group in groups] == listed == [tuple(row) for row in groups.listed()]
    assert [rank_of(group, 7) for group in listed] == list(range(35))
    assert tuple(groups[-1]) == (4, 5, 6)
    assert [tuple(group) for group in groups[3:5]] == listed[3:5]
    with pytest.raises(IndexError, match="there are 35 models, no model 35"):
        groups[35]
    assert binomial_table(7, 3)[7, 3] == 35


# -- algorithms ------------------------------------------------------------------------------------------------------


def play(algorithms, rounds=14):
    """The same trials of all, plates among them; actions of each."""
    rng, actions = np.random.default_rng(3), [[] for _ in algorithms]
    for k in range(rounds):
        plates = [algorithm.ask(3 if k % 5 == 4 else 1) for algorithm in algorithms]
        noise = 0.1 * rng.standard_normal(3)
        for algorithm, plate, seen in zip(algorithms, plates, actions, strict=True):
            for trial, more in zip(plate, noise, strict=False):
                seen.append((trial.index, trial.propensity))
                algorithm.tell(trial, np.sin(3.0 * trial.x) + more)
    return actions


@pytest.mark.parametrize(
    ("settings", "intercept"),
    [({}, False), ({}, True), ({"rule": "ucb", "reward_bound": 1.0}, False), ({"repeats": False}, True)],
)
def test_the_mixture_plays_as_with_a_list(settings, intercept):
    listed, ours = (alexp.EvidenceMixture(m, DOMAIN, random_state=0, **settings) for m in classes(3, intercept))
    one, two = play([listed, ours])
    assert one == two
    assert ours.best().index == listed.best().index
    assert ours.likeliest(3)[0][0] == listed.likeliest(3)[0][0]
    np.testing.assert_allclose(ours.probabilities, listed.probabilities, atol=1e-9)
    again = alexp.EvidenceMixture.from_dict(ours.to_dict())
    assert again.models.enumerated_on == ANYWHERE
    assert again.ask().index == ours.ask().index


@pytest.mark.parametrize(
    ("agent", "intercept"), [(UCB(), False), (UCB(beta=0.5), True), (Greedy(), False), (EpsilonGreedy(), False)]
)
def test_alexp_plays_as_with_a_list(agent, intercept):
    known = {"agents": agent, "noise_std": 0.1, "reward_bound": 1.0, "random_state": 0}
    listed, ours = (alexp.ALExp(m, DOMAIN, **known) for m in classes(3, intercept))
    one, two = play([listed, ours])
    assert one == two
    assert ours.best().index == listed.best().index
    np.testing.assert_array_equal(ours.cumulative_returns, listed.cumulative_returns)
    again = alexp.ALExp.from_dict(ours.to_dict())
    assert again.ask().index == ours.ask().index


def test_certificates_list_what_can_be_listed():
    known = {"noise_std": 0.1, "reward_bound": 1.0, "random_state": 0}
    listed, ours = (alexp.EvidenceMixture(m, DOMAIN, **known) for m in classes(2))
    play([listed, ours], 6)
    assert ours.plausible_models().tolist() == listed.plausible_models().tolist()


def test_too_many_to_list_have_everything_but_lists(monkeypatch):
    """With a limit that these 56 models exceed."""
    monkeypatch.setattr("alexp.problem.groups.MOST_LISTED", 10)
    opt = alexp.EvidenceMixture(classes(3)[1], DOMAIN, noise_std=0.1, reward_bound=1.0, random_state=0)
    play([opt], 8)
    report = opt.stop_report()
    assert not report.certified
    assert "56 are enumerated, never listed" in report.reason
    assert report.epsilon > 0.0
    assert opt.predict(0.5)[1] > 0.0
    assert opt.column_probabilities().sum() == pytest.approx(3.0)
    for what in (lambda: opt.probabilities, lambda: opt.hindsight([0])):
        with pytest.raises(ValueError, match="list"):
            what()
    with pytest.raises(alexp.NotCertified, match="one by one"):
        opt.plausible_models()


def test_looking_back_lists_what_can_be_listed():
    listed, ours = (alexp.EvidenceMixture(m, DOMAIN, random_state=0) for m in classes(2))
    play([listed, ours], 6)
    np.testing.assert_array_equal(ours.hindsight([0, 3]).log_odds, listed.hindsight([0, 3]).log_odds)


# -- a hundred million -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many():
    return alexp.ModelClass.subsets(
        Matrices({"x": np.random.default_rng(0).standard_normal((20, 844))}), 3, device="cpu"
    )


def test_a_hundred_million_models_are_never_listed(many):
    assert (many.n_models, many.dimension) == (comb(844, 3), 3)
    assert many.names[10**7] == "x[29]+x[88]+x[599]"
    opt = alexp.EvidenceMixture(many, alexp.FiniteSet(np.arange(20)), random_state=0)
    opt.observe(3, 1.0)
    for name in ("probabilities",):
        with pytest.raises(ValueError, match="needs a list of the models, and 99846044 subsets are enumerated"):
            getattr(opt, name)
    for ask in (lambda: many.columns_flat, lambda: many.scales, lambda: many.log_prior, lambda: many.normalized(None)):
        with pytest.raises(ValueError, match="are enumerated, never listed"):
            ask()
    assert not hasattr(many, "_offsets")


def test_what_needs_a_list_is_refused_when_it_is_made(many):
    domain = alexp.FiniteSet(np.arange(20))
    small = classes(3)[1]
    with pytest.raises(ValueError, match="99846044 models are too many to list; .* or pass device="):
        alexp.ModelClass.subsets(many.dictionary, 3)
    with pytest.raises(ValueError, match="LMUCB needs a list of its models"):
        alexp.LMUCB(many, domain)
    with pytest.raises(ValueError, match="rule='thompson' looks at models one by one"):
        alexp.EvidenceMixture(small, DOMAIN, rule="thompson")
    with pytest.raises(ValueError, match="for models that are listed"):
        alexp.EvidenceMixture(small, DOMAIN, forget=0.9)
    with pytest.raises(ValueError, match="noise of at least 1e-05 times what coefficients"):
        alexp.EvidenceMixture(small, DOMAIN, noise_std=1e-6, reward_bound=1.0)
    with pytest.raises(ValueError, match="noise of at least 1e-05 times what coefficients"):
        alexp.EvidenceMixture(small, DOMAIN, ratio_grid=(1e-11,))
    for agent in (ThompsonSampling(), UCB(beta="theory")):
        with pytest.raises(ValueError, match="one agent for all of them"):
            alexp.ALExp(small, DOMAIN, agents=agent)
    with pytest.raises(ValueError, match="keeps features for each model"):
        alexp.ALExp(small, DOMAIN, returns="retrospective")
    with pytest.raises(ValueError, match="must have 2 to 6 columns, got 7"):
        engine_for("cpu", 20, 7)
    with pytest.raises(ValueError, match=r"subsets of 6 out of 9000 columns are more than 2\*\*63"):
        engine_for("cpu", 9000, 6)
    with pytest.raises(ValueError, match='device must be "cpu", "cuda"'):
        alexp.ModelClass.subsets(Legendre(5), 2, device="gpu")


def test_columns_of_zeros_are_pointed_out_without_a_list():
    table = np.random.default_rng(0).standard_normal((10, 8))
    table[:, [2, 5]] = 0.0
    models = alexp.ModelClass.subsets(Matrices({"x": table}), 2, device="cpu")
    with pytest.warns(UserWarning, match=r"models such as 'x\[2\]\+x\[5\]' are zero on every candidate"):
        alexp.EvidenceMixture(models, alexp.FiniteSet(np.arange(10)))


def test_without_a_table_or_a_gpu_there_is_a_sentence(monkeypatch):
    models = classes(3)[1]
    with pytest.raises(ValueError, match="need a table of candidates"):
        ratio_subsets(models, None, RATIOS, None, 1.0, None)
    with pytest.raises(ValueError, match="need a table of candidates"):
        level_subsets(models, None, 0.1, 1.0, (1.0,), (1.0,), 1.0, None)
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    there = alexp.ModelClass.subsets(Legendre(DEGREE), 3, device="cuda")
    with pytest.raises(alexp.common.backends.NoDeviceError, match="device='cuda' needs CuPy"):
        alexp.EvidenceMixture(there, DOMAIN)
    assert isinstance(engine_for(ANYWHERE, DEGREE + 1, 3), CpuEngine)
