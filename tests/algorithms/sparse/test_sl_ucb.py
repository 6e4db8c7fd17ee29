"""SL-UCB: the corners find the support, the rest is optimism on it, and noise in rewards ends the guarantee."""

from math import sqrt

import numpy as np
import pytest

import alexp
from alexp import simulate
from alexp.rivals.sl_ucb import active_columns, coefficients_at_corners, corner, deviation
from alexp_experiments.sparse.ball import BallEnvironment, main, player, run

P, S, N, T = 200, 3, 5000, 2500


def exploring(runs, noise_in, noise=0.1, seed=0):
    """Of some runs with coefficients of three times the threshold: how many find the support after T of N rounds, and
    in how many all coefficients are within b/sqrt(T)."""
    rng = np.random.default_rng(seed)
    threshold = 2.0 * deviation(1.0, P, 0.05) / sqrt(T)  # of norms that sum to one
    each, found, within = 3.0 * threshold, 0, 0
    assert each * sqrt(S) + noise <= 1.0  # what is stated is true
    for _ in range(runs):
        theta = np.zeros(P)
        support = np.sort(rng.choice(P, S, replace=False))
        theta[support] = each * rng.choice([-1.0, 1.0], S)
        signs = 2.0 * np.unpackbits(np.frombuffer(rng.bytes(T * P // 8), np.uint8)).reshape(T, P) - 1.0
        if noise_in == "rewards":
            shaken = noise * rng.standard_normal(T)
        else:  # <x, eta>: a sum of P products of independent signs
            shaken = (noise / P) * (2.0 * rng.binomial(P, 0.5, T) - P)
        y = signs[:, support] @ theta[support] / sqrt(P) + shaken
        estimate = coefficients_at_corners(y @ signs / sqrt(P), T, 1.0)
        found += active_columns(estimate, threshold).tolist() == support.tolist()
        within += bool(np.abs(estimate - theta).max() <= 0.5 * threshold)
    return found, within


def test_the_support_is_found_at_three_times_the_threshold():
    found, within = exploring(100, "parameters")  # P = 200, s = 3, n = 5000
    assert found > 90
    assert within >= 95


def test_with_noise_in_the_rewards_the_bound_is_void():
    """Of the same size: a coefficient has sqrt(P) times as much of it."""
    assert exploring(20, "rewards")[1] < 10


def test_a_run_explores_finds_the_support_and_then_plays_on_it():
    environment = BallEnvironment(P, S, noise_std=0.1, random_state=1)
    opt = player("sl-ucb", environment, N, 0, n_explore=600, scale=0.5, log_features="chosen")
    result = simulate(opt, environment, 700)
    assert [trial.explored for trial in result.trials] == [True] * 600 + [False] * 100
    assert opt.active.tolist() == environment.support.tolist()
    assert result.trials[0].propensity == 0.5**P
    corners = np.abs(np.array([trial.x for trial in result.trials[:600]]))
    np.testing.assert_allclose(corners, 1.0 / sqrt(P))
    later = np.array([trial.x for trial in result.trials[600:]])
    assert np.all(np.flatnonzero(np.abs(later).sum(axis=0)) == environment.support)
    assert np.diff(result.regret)[-50:].mean() < 0.1 < np.diff(result.regret)[:600].mean()
    assert environment.theta @ opt.best().x > 0.95
    assert opt.best().value == pytest.approx(1.0, abs=0.1)


def test_corners_are_even_and_on_the_sphere():
    rng = np.random.default_rng(0)
    points = np.array([corner(5, 2.0, rng) for _ in range(400)])
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 2.0)
    assert np.abs(points.mean(axis=0)).max() < 0.15
    np.testing.assert_allclose(points.T @ points / 400, 0.8 * np.eye(5), atol=0.15)


@pytest.mark.parametrize(("size", "scale", "stop"), [(1.0, 0.1, 22), (0.02, 0.1, 55), (0.02, 50.0, 55), (0.6, 0.3, 45)])
def test_exploration_ends_by_the_rule(size, scale, stop):
    """t >= sqrt(n)/max((largest - b/sqrt t)/size, n^-1/4), at the latest after n^(2/3); then 2b/sqrt t decides."""
    models, ball = alexp.ModelClass.coordinates(4), alexp.Ball(4, radius=3.0)
    opt = alexp.SLUCB(models, ball, horizon=400, scale=scale, noise_std=0.01, norm_bound=1.0, random_state=0)
    theta, rows, rewards = np.array([0.0, 0.0, size, 0.0]), [], []
    b = scale * 1.01 * sqrt(2.0 * np.log(8.0 / 0.05))
    while opt.active is None:
        trial = opt.ask()
        rows.append(trial.x)
        rewards.append(float(trial.x @ theta))
        opt.tell(trial, rewards[-1])
        t = len(rows)
        estimate = 4.0 / 9.0 * np.mean([x * y for x, y in zip(rows, rewards, strict=True)], axis=0)
        signal = (np.abs(estimate).max() - b / sqrt(t)) / 1.01
        assert (opt.active is None) == (t < 20.0 / max(signal, 400**-0.25) and t < 400 ** (2 / 3))
    assert t == stop
    passed = np.flatnonzero(np.abs(estimate) >= 2.0 * b / sqrt(stop)).tolist()
    assert opt.active.tolist() == (passed or [int(np.argmax(np.abs(estimate)))])


def test_rewards_that_come_after_the_stop_and_from_elsewhere_count():
    def make():
        return alexp.SLUCB(
            alexp.ModelClass.coordinates(3), alexp.Ball(3), horizon=100, n_explore=4, noise_std=0.1, norm_bound=1.0,
            scale=0.01, random_state=0,
        )  # fmt: skip

    late, plain = make(), make()
    theta = np.array([0.5, 0.0, -0.5])
    late.observe(0, 0.25, candidates=[0.5, 0.0, 0.0])
    trials = late.ask(6)
    for trial in trials:
        late.tell(trial, float(trial.x @ theta))
    for trial in plain.ask(4):
        plain.tell(trial, float(trial.x @ theta))
    assert late.active is not None
    assert plain.active is not None
    assert late.state()["fit"]["n_observations"] == 3
    assert plain.state()["fit"]["n_observations"] == 0


def test_wrong_settings_are_refused():
    models, ball = alexp.ModelClass.coordinates(3), alexp.Ball(3)
    with pytest.raises(TypeError, match="horizon"):
        alexp.SLUCB(models, ball)
    for wrong in ({"delta": 1.0}, {"scale": 0.0}, {"n_explore": 0}, {"horizon": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            alexp.SLUCB(models, ball, **({"horizon": 10} | wrong))
    with pytest.raises(ValueError, match="Ball"):
        alexp.SLUCB(models, alexp.Candidates(), horizon=10)
    state = balls_state = alexp.SLUCB(models, ball, horizon=10).to_dict()
    balls_state["state"]["active"] = [2, 1]
    with pytest.raises(ValueError, match=r"digest|active"):
        alexp.SLUCB.from_dict(state)


# -- the environment ---------------------------------------------------------------------------------------------


def test_noise_of_parameters_has_its_norm_and_is_the_same_for_a_seed():
    one, two = (BallEnvironment(30, 2, noise_std=0.3, random_state=5) for _ in range(2))
    opt = player("told", one, 40, 0)
    first, again = simulate(opt, one, 40), simulate(player("told", two, 40, 0), two, 40)
    np.testing.assert_array_equal(first.rewards, again.rewards)
    x = np.zeros(30)
    x[0] = 1.0
    trial = alexp.Trial(0, x, 0, None, False, 1.0)
    seen = [one.outcome(t, one.round(t), trial, 1.0)[0] - one.theta[0] for t in range(50)]
    np.testing.assert_allclose(np.abs(seen), 0.3 / sqrt(30))
    assert first.regret[-1] == pytest.approx(np.sum(1.0 - np.array([t.x @ one.theta for t in first.trials])))
    with pytest.raises(ValueError, match="sparsity"):
        BallEnvironment(3, 4)


def test_sparse_beats_all_coordinates_and_loses_to_being_told(capsys):
    ends = {name: run(400, 60, 0, name, sparsity=1)[-1] for name in ("sl-ucb", "linucb", "told")}
    half = run(400, 60, 0, "sl-ucb", sparsity=1, scale=0.5)[-1]
    assert ends["told"] < half < ends["linucb"]
    assert run(30, 5, 0).shape == (30,)
    main(["--seeds", "2", "--dim", "4", "--sparsity", "1", "--horizons", "20", "40", "--workers", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "P = 4, s = 1, noise in the parameters. Mean ± standard error of 2 seeds."
    ends = [run(40, 4, seed, "told", sparsity=1)[-1] for seed in range(2)]
    assert lines[-1].startswith("| `LinUCB` on the support | ")
    assert f"| {np.mean(ends):.1f} ± " in lines[-1]
