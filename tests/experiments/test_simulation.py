import numpy as np
import pytest

import alexp
from alexp.algorithms.base import Streams
from alexp.cli.demo import demo_figure, demo_table, run_demo


def test_synthetic_environment_is_the_papers_data_model():
    models, domain = alexp.ModelClass.legendre(10, 3), alexp.Interval()
    drawn = [alexp.SyntheticEnvironment(models, domain, random_state=seed) for seed in range(400)]
    assert len({env.true_model for env in drawn}) > 100
    assert all(np.isclose(np.linalg.norm(env.theta), 1.0) for env in drawn)
    env = drawn[0]
    np.testing.assert_allclose(env.reward(domain.points), env.rewards)
    assert env.best_value == env.rewards.max()
    assert env.reward(domain[17]) == pytest.approx(env.rewards[17])
    noise = np.array([env.observe(0.3) - env.reward(0.3) for _ in range(4000)])
    assert abs(noise.std() / 0.01 - 1.0) < 5 / np.sqrt(2 * 4000)
    assert abs(noise.mean()) < 5 * 0.01 / np.sqrt(4000)


def test_environment_on_a_table_takes_the_users_rows():
    matrices = {"a": np.eye(4), "b": np.arange(4.0)}
    env = alexp.SyntheticEnvironment(
        alexp.ModelClass.from_matrices(matrices), alexp.FiniteSet(["w", "x", "y", "z"]), random_state=1, true_model=1
    )
    assert abs(env.reward("z")) == 3.0
    with pytest.raises(ValueError, match="one of the 4 candidates"):
        env.reward("q")
    with pytest.raises(ValueError, match="true_model must be below 2"):
        alexp.SyntheticEnvironment(
            alexp.ModelClass.from_matrices(matrices), alexp.FiniteSet([1, 2, 3, 4]), true_model=2
        )


def test_regret_is_of_the_noiseless_reward_and_in_the_users_direction():
    models, domain = alexp.ModelClass.legendre(3, 2), alexp.Interval(resolution=50)
    env = alexp.SyntheticEnvironment(models, domain, noise_std=1.0, random_state=2)
    run = alexp.simulate(alexp.UniformRandom(models, domain, random_state=0), env, steps=30)
    index = [trial.index for trial in run.trials]
    np.testing.assert_allclose(run.regret, np.cumsum(env.best_value - env.rewards[index]))
    down = alexp.simulate(alexp.UniformRandom(models, domain, random_state=0, direction="minimize"), env, steps=30)
    np.testing.assert_allclose(down.regret, np.cumsum(env.rewards[index] - env.rewards.min()))
    assert run.probabilities is None


def test_progress_is_a_bar_or_a_function(capsys):
    models, domain = alexp.ModelClass.legendre(3, 2), alexp.Interval(resolution=50)
    env = alexp.SyntheticEnvironment(models, domain, noise_std=1.0, random_state=2)
    opt, done = alexp.UniformRandom(models, domain, random_state=0), []
    plain = alexp.simulate(opt, env, steps=7, progress=done.append)
    assert done == [1, 2, 3, 4, 5, 6, 7]
    env = alexp.SyntheticEnvironment(models, domain, noise_std=1.0, random_state=2)
    shown = alexp.simulate(alexp.UniformRandom(models, domain, random_state=0), env, steps=7, progress=True)
    np.testing.assert_array_equal(shown.regret, plain.regret)
    out, bar = capsys.readouterr()
    assert out == ""
    assert "UniformRandom" in bar
    assert "7/7" in bar
    with pytest.raises(TypeError, match="progress must be True, False or a function"):
        alexp.simulate(opt, env, steps=7, progress="yes")


def test_recorded_probabilities_are_those_in_force():
    models, domain = alexp.ModelClass.legendre(3, 2), alexp.Interval(resolution=50)
    env = alexp.SyntheticEnvironment(models, domain, random_state=2)
    run = alexp.simulate(alexp.ALExp(models, domain, noise_std=0.01, random_state=0), env, steps=10)
    assert run.probabilities.shape == (10, 6)
    np.testing.assert_allclose(run.probabilities[0], 1 / 6)
    np.testing.assert_allclose(run.probabilities.sum(axis=1), 1.0)


def test_streams_depend_on_seed_and_purpose_only():
    a = Streams(5)
    first = a.generator(1, 2).random(3)
    a.generator(1, 3).random(100)
    assert np.array_equal(first, Streams(5).generator(1, 2).random(3))
    assert not np.array_equal(first, Streams(5).generator(2, 2).random(3))
    for bad in (-1, 1.5, "x", True):
        with pytest.raises((ValueError, TypeError), match="random_state"):
            Streams(bad)


def test_demo_prints_and_draws(tmp_path, capsys):
    from rich.console import Console

    demo = run_demo(steps=15)
    Console().print(demo_table(demo))
    assert "Oracle UCB" in capsys.readouterr().out
    demo_figure(demo, tmp_path / "out" / "demo.png")
    assert (tmp_path / "out" / "demo.png").stat().st_size > 10_000
