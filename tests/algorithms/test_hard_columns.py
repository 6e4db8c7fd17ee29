"""Tables as they come: columns that hardly vary, far from zero, of any size. Weights move and nothing overflows."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.sparse import csr_array

import alexp
from alexp.kernels import RBF, Linear, Matern, Tanimoto
from alexp.problem.kernels import Kernel

N = 60
RNG = np.random.default_rng(3)
PLAIN = RNG.standard_normal((N, 5))
BITS = RNG.integers(0, 2, (N, 6)).astype(np.float64)
DOMAIN = alexp.FiniteSet(np.arange(N))
TRUTH = 2.0 * PLAIN[:, 0] + PLAIN[:, 3] + 0.1 * RNG.standard_normal(N)  # in which column 3 matters


@pytest.fixture(autouse=True)
def _no_numpy_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", alexp.AssumptionWarning)
        yield


def with_column(values):
    table = PLAIN.copy()
    table[:, 3] = values
    return table


HARD = {
    "1e-8 of its size": with_column(0.1 + 1e-9 * PLAIN[:, 3]),
    "1e-10 of its size": with_column(1.0 + 1e-10 * PLAIN[:, 3]),
    "far": with_column(1e9 + PLAIN[:, 3]),
    "tiny": with_column(1e-300 * PLAIN[:, 3]),
    "huge": with_column(1e95 * PLAIN[:, 3]),
    "all far": 1e6 + PLAIN,
    "any size": PLAIN * [1e-300, 1e-150, 1.0, 1e40, 1e95],
}
USELESS = {
    "rounding": with_column(np.where(BITS[:, 0] > 0, 0.1 + 0.2, 0.3)),
    "constant": with_column(7.3),
    "large constant": with_column(1e10),
    "zero": with_column(0.0),
}


def play(models, rounds=15, kind=alexp.EvidenceMixture, **settings):
    opt = kind(models, DOMAIN, random_state=0, **settings)
    before = np.array(opt.probabilities)
    actions = []
    for k in range(rounds):
        trial = opt.ask()
        actions.append(trial.index)
        opt.tell(trial, float(TRUTH[trial.index] + 1e-3 * np.cos(5 * k)))
    after = np.array(opt.probabilities)
    assert np.isfinite(after).all()
    assert np.isfinite([opt.best().value, *np.ravel(opt.predict(3))] if hasattr(opt, "predict") else 0.0).all()
    assert np.abs(after - before).max() > 1e-3
    return actions, after, opt


@pytest.mark.parametrize("goal", ["sum", "best"])
@pytest.mark.parametrize("repeats", [True, False])
@pytest.mark.parametrize("name", HARD)
def test_units_and_offsets_of_columns_make_no_difference_to_standardised_kernels(name, repeats, goal):
    kernels = [Linear(standardize=True), Matern(2.5)]
    one, two = (
        alexp.ModelClass.from_matrices({"a": table, "b": BITS}, kernels=kernels) for table in (PLAIN, HARD[name])
    )
    actions, weights, _ = play(one, goal=goal, repeats=repeats)
    others, found, _ = play(two, goal=goal, repeats=repeats)
    assert actions == others
    np.testing.assert_allclose(found, weights, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("name", USELESS)
def test_constants_up_to_rounding_are_as_good_as_left_out(name):
    kernels = [Linear(standardize=True), Matern(2.5)]
    table = USELESS[name]
    one = alexp.ModelClass.from_matrices({"a": np.delete(table, 3, axis=1), "b": BITS}, kernels=kernels)
    two = alexp.ModelClass.from_matrices({"a": table, "b": BITS}, kernels=kernels)
    for goal in ("sum", "best"):
        actions, weights, _ = play(one, goal=goal)
        others, found, _ = play(two, goal=goal)
        assert actions == others
        np.testing.assert_allclose(found, weights, rtol=1e-6, atol=1e-9)


WIDE = RNG.standard_normal((N, 40))


@pytest.mark.parametrize("kind", [alexp.EvidenceMixture, alexp.MixtureThompson])
@pytest.mark.parametrize("offset", [1e4, 1e7, 1e10])
@pytest.mark.parametrize("sizes", [(40, 20), (5, 3)])  # one pass, and packed factors
def test_offsets_make_no_difference_beside_an_intercept(kind, offset, sizes):
    first, second = sizes
    shift = offset * np.linspace(0.5, 1.0, first)
    one, two = (
        alexp.ModelClass.from_matrices({"a": table, "b": WIDE[:, :second] ** 2})
        for table in (WIDE[:, :first], WIDE[:, :first] + shift)
    )
    actions, weights, _ = play(one, kind=kind, rounds=50 if first == 40 else 15)  # from points told to coefficients
    others, found, _ = play(two, kind=kind, rounds=50 if first == 40 else 15)
    np.testing.assert_allclose(found, weights, atol=2e-3)
    assert actions == others


@pytest.mark.parametrize("dtype", [np.float32, np.float16, "csr"])
def test_offsets_in_other_precisions(dtype):
    base = WIDE if dtype != "csr" else np.where(WIDE > 0.3, WIDE, 0.0)
    offset = {np.float32: 2.0**13, np.float16: 2.0**7, "csr": 2.0**20}[dtype]
    steps = np.round(base * 4.0) / 4.0  # numbers that all precisions have, with the offset and without
    shifted = steps + offset * (np.arange(40) < 3)
    store = csr_array if dtype == "csr" else lambda table: table.astype(dtype)
    one, two = (alexp.ModelClass.from_matrices({"a": store(table), "b": WIDE[:, :20]}) for table in (steps, shifted))
    assert (two.origin is None) is (dtype is np.float16)  # whose numbers are never far from zero for their spread
    actions, weights, _ = play(one)
    others, found, _ = play(two)
    np.testing.assert_allclose(found, weights, atol=2e-3)
    assert actions == others


CHOICES = {
    "linear": "linear",
    "auto": "auto",
    "plain": [Linear(), Tanimoto()],
    "stationary": [Matern(0.5), RBF(2.0), Linear(standardize=True)],
}
ODD = HARD | USELESS | {
    "whole numbers": RNG.integers(0, 1000, (N, 5)),
    "booleans": PLAIN > 0.0,
    "single": HARD["1e-8 of its size"].astype(np.float32),
    "half": PLAIN.astype(np.float16),
    "csr": csr_array(np.where(HARD["far"] > 0.5, HARD["far"], 0.0)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("name", ODD)
def test_weights_move_and_nothing_overflows(name, choice):
    for intercept in (True, False):
        models = alexp.ModelClass.from_matrices(
            {"a": ODD[name], "b": BITS}, kernels=CHOICES[choice], intercept=intercept
        )
        play(models, 10, goal="best", repeats=False)
        play(models, 10, noise_std=0.1, reward_bound=5.0)
        play(models, 10, kind=alexp.MixtureThompson)
        play(models, 10, kind=alexp.ALExp, oracle=alexp.Evidence(), reward_bound=5.0, noise_std=0.1)
        play(models, 10, kind=alexp.EvidenceSampling, reward_bound=5.0)


@pytest.mark.parametrize("name", ["1e-8 of its size", "far", "tiny", "any size"])
def test_inputs(name):
    one, two = (alexp.ModelClass.from_inputs(table[:, [0, 3]], lengthscales=(1.0,)) for table in (PLAIN, HARD[name]))
    assert play(one)[0] == play(two)[0]


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9])
@pytest.mark.parametrize("rule", ["ucb", "matching"])
def test_contextual_rounds_far_from_zero(rule, offset):
    def actions(shift):
        models = alexp.ModelClass.from_blocks({"a": 3, "b": 2}, intercept=True)
        opt = alexp.EvidenceMixture(models, alexp.Candidates(), rule=rule, random_state=0)
        rng, out = np.random.default_rng(1), []
        for _ in range(40):
            rows = rng.standard_normal((8, 5))
            trial = opt.ask(features=rows + shift)
            out.append(trial.index)
            opt.tell(trial, float(rows[trial.index] @ [2.0, 1.0, 0.0, 0.0, 0.0] + 0.1 * rng.standard_normal()))
        return out, opt.probabilities

    known, weights = actions(0.0)
    found, others = actions(offset)
    same = np.equal(found, known)[2:]  # the first row alone does not tell how far rows differ: all candidates tie
    assert np.mean(same) > (0.999 if offset < 1e9 else 0.8)  # the last digits are gone
    np.testing.assert_allclose(others, weights, atol=1e-3)


# -- what cannot be computed with is said ------------------------------------------------------------------------


@dataclass(frozen=True)
class Broken(Kernel):
    """A kernel with a hole: not a number between points that are far apart."""

    @property
    def name(self):
        return "broken"

    def block(self, x, z):
        apart = np.abs(x[:, :1] - np.asarray(z)[None, :, 0])
        return np.where(apart > 1.5, np.nan, np.exp(-(apart**2)))

    def own(self, z):
        return np.ones(z.shape[0])

    def to_dict(self):
        return None


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (alexp.EvidenceMixture, {}),
        (alexp.EvidenceMixture, {"goal": "best"}),
        (alexp.EvidenceMixture, {"noise_std": 0.1, "reward_bound": 3.0}),
        (alexp.EvidenceSampling, {}),
        (alexp.LinUCB, {"model": 1}),
    ],
)
def test_what_is_not_finite_is_an_error_that_names_model_and_column(kind, settings):
    frame = {"good": PLAIN, "bad": PLAIN[:, :2] + [0.0, 1e5]}
    models = alexp.ModelClass.from_matrices(frame, kernels={"good": Matern(), "bad": Broken()})
    opt = kind(models, DOMAIN, random_state=0, **settings)
    for index in np.argsort(PLAIN[:, 0])[[0, -1]]:
        opt.observe(int(index), float(TRUTH[index]))
    with pytest.raises(
        FloatingPointError, match=r"of model 'bad: broken' .* after 2 rewards; its column 'bad\[1\]', b"
    ):
        opt.ask()
    assert opt.n_told == len(opt.trials_dataframe()) == 2  # the log is whole


def test_rewards_beyond_any_noise_go_to_the_model_that_fits():
    models = alexp.ModelClass.from_matrices({"good": PLAIN[:, :1], "bad": PLAIN[:, 1:2]}, intercept=False)
    opt = alexp.EvidenceMixture(models, DOMAIN, noise_std=1e-90, reward_bound=1.0, random_state=0)
    for index in range(4):  # nothing fits: residuals of 1e170 times the noise, whose squares are no numbers
        opt.observe(index, 1e80 * (PLAIN[index, 0] + 0.1 * PLAIN[index, 2]))
    with np.errstate(over="ignore"):
        assert not np.isfinite(opt.belief.mixture.log_evidence()).any()
    assert opt.probabilities.tolist() == [1.0, 0.0]


def test_features_too_small_to_be_squared_are_pointed_out():
    models = alexp.ModelClass.from_matrices({"a": 1e-200 * PLAIN, "b": BITS})
    with pytest.warns(UserWarning, match="model 'a' is zero on every candidate, or below 1e-140 in size.* other units"):
        alexp.EvidenceMixture(models, DOMAIN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        standardised = alexp.ModelClass.from_matrices({"a": 1e-200 * PLAIN, "b": BITS}, kernels="auto")
        alexp.EvidenceMixture(standardised, DOMAIN)
    opt = alexp.EvidenceMixture(alexp.ModelClass.from_blocks({"a": 3, "b": 2}), alexp.Candidates(), random_state=0)
    with pytest.warns(UserWarning, match="no feature so far is larger than 1e-140 in size"):
        opt.tell(opt.ask(features=1e-200 * PLAIN[:5]), 1.0)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kernels", ["auto", [Matern(), Linear(standardize=True)], Tanimoto()])
def test_one_candidate_is_drawn(kernels, seed):
    table = np.random.default_rng(seed).standard_normal((1, 3))
    models = alexp.ModelClass.from_matrices({"a": table, "b": np.ones((1, 2))}, kernels=kernels)
    opt = alexp.MixtureThompson(models, alexp.FiniteSet(["only"]), random_state=seed)
    for reward in (1.0, 1.0, 0.5, 2.0):
        trial = opt.ask()
        assert trial.index == 0
        assert trial.propensity == 1.0
        opt.tell(trial, reward)


def test_noise_below_the_rounding_of_similarities():
    """Rows told in pairs that are equal but for rounding, and a noise that is lost beside their similarities."""
    table = np.vstack([PLAIN[:30], PLAIN[:30] * (1.0 + 1e-12)])
    models = alexp.ModelClass.from_matrices({"a": table}, kernels=[RBF()])
    opt = alexp.EvidenceMixture(models, DOMAIN, noise_std=1e-8, norm_bound=1.0, random_state=0)
    rewards = np.sin(table[:, 0])
    for k in range(N):
        opt.observe(k, rewards[k])
    opt.ask()
    assert opt.predict(7)[0] == pytest.approx(rewards[7], abs=1e-3)
