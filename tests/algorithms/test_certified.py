"""Certificates measured: coverage of adaptive runs, power, bands, stopping, and their formulas by hand."""

import numpy as np
import pytest

import alexp

MODELS, DOMAIN = alexp.ModelClass.legendre(degree=8, size=2), alexp.Interval(resolution=31)
SMALL, COARSE = alexp.ModelClass.legendre(degree=4, size=2), alexp.Interval(resolution=11)


def play(algorithm, environment, steps):
    for _ in range(steps):
        trial = algorithm.ask()
        algorithm.tell(trial, environment.observe_index(trial.index))
    return algorithm


def survives(algorithm, environment, steps):
    """Whether the true model stays plausible and the reward inside the band at every time, at delta = 0.05 and 0.2.

    Sets shrink as delta grows, so that 0.05 needs a look only where 0.2 fails.
    """
    kept = np.ones(2, dtype=bool)
    for step in range(steps):
        play(algorithm, environment, 1)
        for k, delta in ((1, 0.2), (0, 0.05)):
            try:
                inside = environment.true_model in algorithm.plausible_models(delta)
            except alexp.NotCertified:  # a false alarm counts as a failure
                inside = False
            if inside and step % 5 == 0:
                band = algorithm.confidence(COARSE.points, delta)
                inside = bool(np.all((band.lower <= environment.rewards) & (environment.rewards <= band.upper)))
            kept[k] &= inside
            if inside:
                break
    return kept


@pytest.mark.parametrize(
    ("kind", "runs", "intercept"),
    [
        (alexp.LMUCB, 500, False),
        (alexp.EvidenceMixture, 250, False),
        (alexp.ALExp, 100, False),
        (alexp.LMUCB, 150, True),
    ],
)
def test_true_model_survives(kind, runs, intercept):
    """1,000 adaptive runs in all; no group of them may lose more than a fraction delta."""
    models = alexp.ModelClass.legendre(degree=4, size=2, intercept=intercept)
    kept = np.zeros(2)
    for seed in range(runs):
        environment = alexp.SyntheticEnvironment(models, COARSE, noise_std=0.3, random_state=seed)
        kept += survives(kind(models, COARSE, noise_std=0.3, norm_bound=1.0, random_state=seed), environment, 25)
    print(f"{kind.name}: lost {runs - kept} of {runs}, allowed {runs * np.array([0.05, 0.2])}")
    assert np.all(runs - kept <= runs * np.array([0.05, 0.2]))


def test_understated_noise_loses_the_true_model():
    """The count above can fail: it does when the noise is thirty times what was stated."""
    kept = 0
    for seed in range(30):
        environment = alexp.SyntheticEnvironment(SMALL, COARSE, noise_std=0.3, random_state=seed)
        liar = alexp.LMUCB(SMALL, COARSE, noise_std=0.01, norm_bound=1.0, random_state=seed)
        kept += survives(liar, environment, 25)[1]
    print(f"kept {kept} of 30")
    assert kept < 0.8 * 30


@pytest.mark.parametrize("kind", [alexp.LMUCB, alexp.EvidenceMixture])
def test_most_models_are_ruled_out(kind):
    """sigma = 0.1, s = 2, p = 8: fewer than half of the models after 60 steps, in the median over seeds."""
    left = []
    for seed in range(12):
        environment = alexp.SyntheticEnvironment(MODELS, DOMAIN, noise_std=0.1, random_state=seed)
        algorithm = play(kind(MODELS, DOMAIN, noise_std=0.1, norm_bound=1.0, random_state=seed), environment, 60)
        left.append(algorithm.plausible_models(0.05).size)
    print(f"{kind.name}: {sorted(left)} of {MODELS.n_models}")
    assert np.median(left) < MODELS.n_models / 2


def test_direction_flips_the_band():
    stated = {"noise_std": 0.1, "norm_bound": 1.0, "random_state": 0}
    up, down = alexp.LMUCB(SMALL, COARSE, **stated), alexp.LMUCB(SMALL, COARSE, direction="minimize", **stated)
    for value in (0.3, -0.2, 0.5):
        trial, twin = up.ask(), down.ask()
        up.tell(trial, value)
        down.tell(twin, -value)
    above, below = up.confidence(0.5), down.confidence(0.5)
    assert above.lower == -below.upper
    assert above.upper == -below.lower


def test_stop_report():
    environment = alexp.SyntheticEnvironment(MODELS, DOMAIN, noise_std=0.05, random_state=2)
    algorithm = alexp.EvidenceMixture(MODELS, DOMAIN, noise_std=0.05, norm_bound=1.0, random_state=2)
    play(algorithm, environment, 3)
    early = algorithm.stop_report(0.1, epsilon=0.3)
    assert not early.can_stop
    assert early.disagreeing.size > 0
    play(algorithm, environment, 200)
    late = algorithm.stop_report(0.1, epsilon=0.3)
    assert late.epsilon < early.epsilon
    assert late.can_stop
    assert late.disagreeing.size == 0
    assert environment.best_value - environment.rewards[late.index] <= late.epsilon
    assert "within" in str(late)
    without_target = algorithm.stop_report(0.1)
    assert not without_target.can_stop
    assert without_target.epsilon == late.epsilon


def test_agents_with_data_of_their_own_do_not_matter():
    """Certificates come from the log, so that it does not matter who has seen what."""
    bands = []
    for mode in ("own", "shared"):
        algorithm = alexp.D3RB(SMALL, COARSE, data_mode=mode, noise_std=0.1, norm_bound=1.0, random_state=0)
        for index, value in ((1, 0.3), (5, 0.2), (9, -0.1)):
            algorithm.observe(index, value)
        bands.append(algorithm.confidence(0.3))
    assert bands[0] == bands[1]


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1])
def test_delta_must_be_a_probability(delta):
    with pytest.raises(ValueError, match="delta"):
        alexp.LMUCB(SMALL, COARSE, noise_std=0.1, norm_bound=1.0, random_state=0).plausible_models(delta)
    with pytest.raises(ValueError, match="epsilon"):
        play(alexp.LMUCB(SMALL, COARSE), alexp.SyntheticEnvironment(SMALL, COARSE), 1).stop_report(0.1, epsilon=0.0)
