"""Evidence sampling, D3RB, ED2RB, SquareCB, FS-SCB and O2CS-EW: what sets each apart, by hand."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import alexp
from alexp.estimation.ridge.bank import RidgeBank
from alexp.rivals.o2cs import AggregatingForecaster, squared_distance
from alexp.rivals.squarecb import inverse_gap_weighting
from alexp.testing import again

MODELS, DOMAIN = alexp.ModelClass.legendre(degree=4, size=2), alexp.Interval(resolution=40)


def play(algorithm, steps, seed=0, noise=0.1):
    environment = alexp.SyntheticEnvironment(MODELS, DOMAIN, noise_std=noise, random_state=seed)
    return alexp.simulate(algorithm, environment, steps)


@pytest.mark.parametrize("kind", [alexp.EvidenceSampling, alexp.LMUCB])
def test_probabilities_are_the_evidence(kind):
    algorithm = kind(MODELS, DOMAIN, noise_std=0.3, reward_bound=2.0, random_state=0)
    run = play(algorithm, 7, noise=0.3)
    rows = MODELS.matrix(DOMAIN)[[trial.index for trial in run.trials]]
    scores = np.array(
        [
            multivariate_normal(np.zeros(7), 4.0 * rows[:, g] @ rows[:, g].T + 0.09 * np.eye(7)).logpdf(run.rewards)
            for g in MODELS.groups
        ]
    )
    weights = np.exp(scores - scores.max())
    np.testing.assert_allclose(algorithm.probabilities, weights / weights.sum(), rtol=1e-8)


def test_tempered_evidence_is_flatter():
    sharp, flat = (alexp.EvidenceSampling(MODELS, DOMAIN, temper=temper, random_state=0) for temper in (1.0, 0.5))
    for algorithm in (sharp, flat):
        for index, reward in ((3, 0.5), (20, 0.1), (35, -0.4)):
            algorithm.observe(index, reward)
    expected = np.sqrt(sharp.probabilities) / np.sqrt(sharp.probabilities).sum()
    np.testing.assert_allclose(flat.probabilities, expected, rtol=1e-8)


def slow_balance(kind, models, rewards, width, delta):
    """Who plays when and with which coefficient, written as in the paper's pseudo-code."""
    m = MODELS.n_models
    n, total, d, phi = np.zeros(m), np.zeros(m), np.ones(m), np.zeros(m)
    for i, u in zip(models, rewards, strict=True):
        n[i] += 1
        total[i] += u
        seen = n > 0
        conf = np.full(m, np.inf)
        conf[seen] = width * np.sqrt(np.log(m * np.log(np.maximum(n[seen], np.e)) / delta) / n[seen])
        best = np.max(total[seen] / n[seen] - conf[seen])
        if kind is alexp.D3RB:
            if total[i] / n[i] + d[i] / np.sqrt(n[i]) + conf[i] < best:
                d[i] *= 2
            phi[i] = d[i] * np.sqrt(n[i])
        else:
            d[i] = max(1.0, np.sqrt(n[i]) * (best - total[i] / n[i] - conf[i]))
            new = d[i] * np.sqrt(n[i])
            phi[i] = new if phi[i] == 0 else min(max(new, phi[i]), 2 * phi[i])
    return d, phi


@pytest.mark.parametrize("kind", [alexp.D3RB, alexp.ED2RB])
def test_balancing_follows_the_pseudo_code(kind):
    algorithm = kind(MODELS, DOMAIN, width=0.02, d_min=1.0, newcomers=1.0, loss_range=(-1.0, 1.0), random_state=0)
    trials, rewards = [], []
    for t in range(120):
        trial = algorithm.ask()
        reward = 0.9 if trial.model < 3 else -0.9 + 0.001 * t  # some agents are much better: coefficients must grow
        algorithm.tell(trial, reward)
        trials.append(trial.model)
        rewards.append((reward + 1.0) / 2.0)
    d, phi = slow_balance(kind, trials, rewards, 0.02, 0.01)
    np.testing.assert_allclose(algorithm._d, d, rtol=1e-12)
    np.testing.assert_allclose(algorithm._potential, phi, rtol=1e-12)
    assert sorted(trials[:10]) == list(range(10)), "every agent plays once first"
    assert d.max() > 1.0
    counts = np.bincount(trials, minlength=10)
    assert counts[:3].min() > counts[3:].max(), "good agents play more"


@pytest.mark.parametrize("kind", [alexp.D3RB, alexp.ED2RB])
def test_the_first_pass_ends_with_more_agents_than_rounds(kind):
    """165 agents, 100 rounds: 25 of them play, most more than once, and the better ones more often."""
    models, domain = alexp.ModelClass.legendre(degree=10, size=3), alexp.Interval(resolution=60)
    algorithm, played = kind(models, domain, d_min=0.01, width=0.0, loss_range=(-1.0, 1.0), random_state=0), []
    for t in range(100):
        trial = algorithm.ask()
        played.append(trial.model)
        assert len(set(played)) <= 1 + 0.25 * t
        algorithm.tell(trial, 0.8 if trial.model % 3 == 0 else -0.8)
    counts = np.bincount(played, minlength=165)
    good = counts[(counts > 0) & (np.arange(165) % 3 == 0)]
    bad = counts[(counts > 0) & (np.arange(165) % 3 > 0)]
    assert np.sum(counts > 0) == 25
    assert good.mean() > 3.0 * bad.mean()


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1])
def test_newcomers_is_a_share(share):
    with pytest.raises(ValueError, match="newcomers must"):
        alexp.D3RB(MODELS, DOMAIN, newcomers=share)


def test_own_data_trains_the_agent_that_played():
    own, shared = (alexp.D3RB(MODELS, DOMAIN, data_mode=mode, random_state=0) for mode in ("own", "shared"))
    for algorithm in (own, shared):
        trial = algorithm.ask()
        algorithm.tell(trial, 1.0)
    other = (trial.model + 1) % MODELS.n_models
    features = MODELS.matrix(DOMAIN)
    assert np.all(own._pool.mean(other, features) == 0.0)
    assert np.any(shared._pool.mean(other, features) != 0.0)
    with pytest.raises(ValueError, match="data_mode"):
        alexp.D3RB(MODELS, DOMAIN, data_mode="both")


def test_inverse_gap_weighting():
    estimates = np.array([0.2, 1.0, 0.7, -1.0])
    p = inverse_gap_weighting(estimates, 5.0)
    assert p.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(p[[0, 2, 3]], 1.0 / (4 + 5.0 * (1.0 - estimates[[0, 2, 3]])))
    assert np.argmax(p) == 1
    np.testing.assert_allclose(inverse_gap_weighting(np.zeros(3), 9.0), 1 / 3)


@pytest.mark.parametrize("kind", [alexp.SquareCB, alexp.FSSCB])
def test_arms_are_suggestions_or_everything(kind):
    few, many = (kind(MODELS, DOMAIN, arms=arms, random_state=0) for arms in ("suggestions", "all"))
    for algorithm in (few, many):
        play(algorithm, 5)
    assert len({trial.index for trial in again(few, 300)}) <= MODELS.n_models
    shares = {trial.index: trial.propensity for trial in again(many, 3000)}
    assert len(shares) == 40
    assert sum(shares.values()) == pytest.approx(1.0)
    with pytest.raises(ValueError, match="arms"):
        kind(MODELS, DOMAIN, arms="some")


def test_forecasts_and_losses_by_hand():
    rng = np.random.default_rng(0)
    rows, rewards = rng.standard_normal((8, 3)), rng.standard_normal(8)
    groups = [[0, 1], [2]]
    bank = RidgeBank(np.array([0, 1, 2]), np.array([0, 2, 3]), 0.5)
    forecaster, losses = AggregatingForecaster(bank, 3), np.zeros(2)
    for t in range(8):
        expected = []
        for group in groups:
            phi = rows[: t + 1, group]  # the forecaster of Vovk, Azoury and Warmuth counts the present point
            theta = np.linalg.solve(phi.T @ phi + 0.25 * np.eye(len(group)), phi[:t].T @ rewards[:t])
            expected.append(np.clip(phi[t] @ theta, -0.8, 0.8))
        np.testing.assert_allclose(forecaster.forecasts(rows[t], 0.8), expected, rtol=1e-10, atol=1e-14)
        weights = np.exp(-losses / (8 * 0.64))
        aggregate = forecaster.absorb(rows[t], rewards[t], 0.8)
        assert aggregate == pytest.approx(weights @ expected / weights.sum(), rel=1e-10, abs=1e-14)
        bank.update(rows[t], rewards[t])
        losses += (rewards[t] - np.array(expected)) ** 2
    np.testing.assert_allclose(forecaster.losses, losses, rtol=1e-10)


def test_o2cs_set_contains_the_truth():
    """The set around the regression on forecasts holds the true coefficients in 25 runs of 40 rounds, delta = 0.1."""
    bound = 1.5  # of the rewards and of the norm
    features = MODELS.matrix(DOMAIN)
    for seed in range(25):
        environment = alexp.SyntheticEnvironment(MODELS, DOMAIN, noise_std=0.2, random_state=seed)
        algorithm = alexp.O2CSEW(MODELS, DOMAIN, noise_std=0.2, reward_bound=bound, random_state=seed)
        truth = np.zeros(5)
        truth[MODELS.groups[environment.true_model]] = environment.theta
        gram, moment = (0.2 / bound) ** 2 * np.eye(5), np.zeros(5)
        for _ in range(40):
            trial = algorithm.ask()
            row, before = features[trial.index], algorithm._set.coefficients()[0]
            np.testing.assert_allclose(before, np.linalg.solve(gram, moment), rtol=1e-6, atol=1e-9)
            assert (before - truth) @ gram @ (before - truth) <= algorithm.width() ** 2
            reward = environment.observe_index(trial.index)
            bank, weights = algorithm._forecaster, algorithm.probabilities
            forecast = float(weights @ bank.forecasts(row, algorithm._bound()))
            algorithm.tell(trial, reward)
            gram, moment = gram + np.outer(row, row), moment + forecast * row


def crossings(distance, noise_std, error, delta, n_paths=2000, steps=1000):
    """Share of paths on which forecasts that are wrong by `error` are ever further off than `distance` allows.

    B_t is what their regret is, no bound: sum (error - noise)^2 - noise^2.
    """
    noise = noise_std * np.random.default_rng(0).standard_normal((n_paths, steps))
    squares = error**2 * np.arange(1, steps + 1)
    regret = squares - 2.0 * error * np.cumsum(noise, axis=1)
    return float(np.mean(np.any(squares > distance(regret, noise_std, delta), axis=1)))


def test_o2cs_distance_holds_at_all_times_under_a_constant_error():
    """The path on which a distance that holds at one time only fails twice as often as it may."""

    def former(regret, noise_std, delta):
        a = 2.0 * noise_std**2 * np.log(1.0 / delta)
        inside = a + regret
        return np.where(inside > 0.0, (np.sqrt(a) + np.sqrt(np.maximum(inside, 0.0))) ** 2, -1.0)

    for error in (0.3, 1.0):
        now, before = (crossings(d, 0.3, error, 0.1) for d in (squared_distance, former))
        print(f"error {error}: {now:.3f} now, {before:.3f} before")
        assert now <= 0.1 + 3.0 * np.sqrt(0.1 * 0.9 / 2000)
        assert before > 0.15
    assert crossings(squared_distance, 0.3, 0.3, 0.1) > 0.03, "it is not wider than it has to be by much"


def test_o2cs_distance_holds_in_adaptive_runs():
    """Forecasts of the algorithm itself, regret as it was and no bound on it: the sharpest that theory speaks of."""
    missed, table = 0, MODELS.matrix(DOMAIN)
    for seed in range(60):
        environment = alexp.SyntheticEnvironment(MODELS, DOMAIN, noise_std=0.5, random_state=seed)
        algorithm = alexp.O2CSEW(MODELS, DOMAIN, noise_std=0.5, reward_bound=1.5, scale=0.05, random_state=seed)
        forecast, truth, reward = np.zeros((3, 40))
        for t in range(40):
            trial = algorithm.ask()
            forecasts = algorithm._forecaster.forecasts(table[trial.index], algorithm._bound())
            forecast[t], truth[t] = algorithm.probabilities @ forecasts, environment.rewards[trial.index]
            reward[t] = environment.observe_index(trial.index)
            algorithm.tell(trial, reward[t])
        regret = np.cumsum((forecast - reward) ** 2 - (truth - reward) ** 2)
        missed += bool(np.any(np.cumsum((forecast - truth) ** 2) > squared_distance(regret, 0.5, 0.1)))
    print(f"missed in {missed} of 60 runs")
    assert missed <= 12  # 6 on average at most, with three standard deviations


@pytest.mark.parametrize("name", ["evidence-sampling", "lm-ucb", "squarecb", "fs-scb", "d3rb", "ed2rb"])
def test_everyone_beats_uniform_play(name):
    total = {name: 0.0, "uniform": 0.0}
    for seed in range(5):
        for kind in total:
            algorithm = alexp.Algorithm.registry[kind](MODELS, DOMAIN, noise_std=0.1, random_state=seed)
            total[kind] += play(algorithm, 80, seed).regret[-1]
    print(total)
    assert total[name] < 0.8 * total["uniform"]
