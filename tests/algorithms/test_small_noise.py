"""The noise estimate, with nothing stated, follows the noise: in any units, down to rounding."""

import numpy as np
import pytest

import alexp
from alexp.estimation.mixture.mixture import StudentMixture
from alexp.estimation.mixture.spectrum import spectrum
from alexp.kernels import Linear, Matern

RNG = np.random.default_rng(0)
TABLE = RNG.standard_normal((120, 5))
LINE = alexp.Interval(-1.0, 1.0, resolution=100)
DOMAIN = alexp.FiniteSet(np.arange(120))
OTHER = RNG.standard_normal((120, 8))
PROBLEMS = {
    "legendre": (alexp.ModelClass.legendre(degree=6, size=2), LINE, 4.5 * LINE.points**2 + LINE.points - 1.5),
    "table": (alexp.ModelClass.from_matrices({"a": TABLE, "b": OTHER}), DOMAIN, TABLE @ [1.0, 2.0, 0.0, 0.0, -1.0]),
    "auto": (
        alexp.ModelClass.from_matrices({"a": TABLE, "b": OTHER}, kernels="auto"),
        DOMAIN,
        TABLE @ [1.0, 2.0, 0.0, 0.0, -1.0],
    ),
}


def estimate(name, noise, unit=1.0, rounds=30, **settings):
    models, domain, truth = PROBLEMS[name]
    opt = alexp.EvidenceMixture(models, domain, random_state=0, **settings)
    rng = np.random.default_rng(1)
    for _ in range(rounds):
        trial = opt.ask()
        opt.tell(trial, unit * float(truth[trial.index] + noise * rng.standard_normal()))
    return opt.noise_estimate, opt


@pytest.mark.parametrize("noise", [1e-10, 1e-8, 1e-5, 1e-3, 0.1, 1.0])
@pytest.mark.parametrize("settings", [{}, {"repeats": False}, {"goal": "best", "repeats": False}], ids=str)
@pytest.mark.parametrize("name", PROBLEMS)
def test_follows_the_noise(name, settings, noise):
    found, _ = estimate(name, noise, **settings)
    assert noise / 1.7 < found < 1.7 * noise


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_noise_at_all_is_rounding(name):
    for settings in ({"repeats": False}, {"goal": "best", "repeats": False}):
        assert estimate(name, 0.0, **settings)[0] < 1e-13


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**33])
def test_in_any_units(unit):
    assert estimate("table", 1e-8, unit)[0] == unit * estimate("table", 1e-8)[0]


def test_where_rewards_cannot_tell_it_is_an_upper_bound():
    """As many coefficients as rewards: any noise is possible, and the smallest ratio of the grid stands for all."""
    wide = RNG.standard_normal((120, 60))
    models = alexp.ModelClass.from_matrices({"a": wide})
    opt = alexp.EvidenceMixture(models, DOMAIN, random_state=0)
    rewards = wide @ RNG.standard_normal(60)
    for index in range(20):
        opt.observe(index, float(rewards[index]))
    size = float(np.std(rewards[:20]))
    assert 1e-3 * size < opt.noise_estimate < size


def test_larger_noise_is_that_of_the_grid():
    """Where the smallest ratio has no weight, nothing is looked into."""
    found, opt = estimate("table", 1.0)
    weights = opt.belief.weights
    assert weights[0].sum() < 1e-6
    assert found == pytest.approx(np.sqrt(opt.belief.mixture.noise_variance(weights)), rel=1e-6)


def test_decisions_know_nothing_of_it(monkeypatch):
    _, one = estimate("table", 1e-8)
    monkeypatch.setattr(StudentMixture, "estimated_noise", lambda *_: 0.0)
    found, two = estimate("table", 1e-8)
    assert found == 0.0
    np.testing.assert_array_equal(one.trials_dataframe()["index"], two.trials_dataframe()["index"])


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kernel", [None, Linear(standardize=True), Matern(2.5)])
def test_spectra_against_dense_formulas(kernel, intercept):
    x, y, ratios = RNG.standard_normal((12, 4)), RNG.standard_normal(12), np.array([1e-3, 0.1, 2.0])
    fitted = None if kernel is None else kernel.fitted(x)
    gram = x @ x.T if fitted is None else fitted(x, x)
    residuals, levels = spectrum(fitted, x, y, intercept).at(ratios)
    for r, residual, level in zip(ratios, residuals, levels, strict=True):
        inverse, constant = np.linalg.inv(gram + r * np.eye(12)), np.ones(12)
        s = constant @ inverse @ constant
        rest = y - constant @ inverse @ y / s if intercept else y
        volume = np.linalg.slogdet(np.eye(12) + gram / r)[1] + (np.log(r * s / 12) if intercept else 0.0)
        assert residual == pytest.approx(r * rest @ inverse @ rest, rel=1e-9)
        assert level == pytest.approx(volume, rel=1e-9)


def test_spectra_that_take_too_long_are_left_out():
    assert spectrum(Matern().fitted(TABLE), np.zeros((1500, 5)), np.zeros(1500), True) is None
    assert spectrum(None, np.zeros((1500, 5)), np.zeros(1500), True) is not None
