import numpy as np
import pytest

import alexp
from alexp_experiments.sparse.environments import EllipticalContexts, GaussianContexts, HardInstance, UniformContexts

ALL = [
    lambda **kw: GaussianContexts(4, 12, 3, 0.6, **kw),
    lambda **kw: UniformContexts(4, 12, 3, **kw),
    lambda **kw: EllipticalContexts(4, 12, 3, **kw),
    lambda **kw: HardInstance(12, **kw),
]


@pytest.mark.parametrize("make", ALL)
def test_a_seed_has_its_rounds(make):
    one, two, other = make(random_state=3), make(random_state=3), make(random_state=4)
    assert np.array_equal(one.rows(7), two.rows(7))
    two.rows(2)
    assert one.noise(5) == two.noise(5) != one.noise(6)
    assert not np.array_equal(one.rows(7), one.rows(8))
    assert not np.array_equal(one.rows(7), other.rows(7))
    presented, values = one.round(7)
    np.testing.assert_array_equal(presented["features"], one.rows(7))
    np.testing.assert_allclose(values, one.rows(7) @ one.theta)
    assert np.count_nonzero(one.theta) == 3


def test_candidates_of_a_round_are_correlated_column_by_column():
    env = GaussianContexts(3, 2, 1, rho2=0.7, random_state=0)
    rows = np.array([env.rows(t) for t in range(4000)])  # (T, K, p)
    found = np.corrcoef(rows.transpose(1, 2, 0).reshape(6, -1))
    expected = np.kron(0.3 * np.eye(3) + 0.7, np.eye(2))
    np.testing.assert_allclose(found, expected, atol=0.05)


def test_long_rows_are_cut_and_short_ones_are_not():
    env, plain = (GaussianContexts(5, 30, 2, x_max=x_max, random_state=1) for x_max in (5.5, None))
    for t in range(20):
        long = np.linalg.norm(plain.rows(t), axis=1)
        np.testing.assert_allclose(np.linalg.norm(env.rows(t), axis=1), np.minimum(long, 5.5))


def test_uniform_and_elliptical_contexts():
    uniform = np.array([UniformContexts(2, 3, 1, random_state=0).rows(t) for t in range(3000)])
    assert np.abs(uniform).max() <= 1.0
    assert uniform.var() == pytest.approx(1.0 / 3.0, rel=0.03)
    env = EllipticalContexts(2, 8, 1, random_state=0)
    rows = np.vstack([env.rows(t) for t in range(50)])
    assert np.linalg.matrix_rank(rows) == 4  # k = p/2


def test_the_hard_instance():
    env = HardInstance(6, theta=(5.0, 6.0), random_state=2)
    assert env.theta.tolist() == [1.0, 0.1, 1.0, 0.0, 0.0, 0.0]
    first = np.array([env.rows(t)[0, 0] for t in range(2000)])
    assert set(first) == {0.0, 1.0}
    assert first.mean() == pytest.approx(0.3, abs=0.04)
    assert env.rows(0)[2, :3].tolist() in ([0.9, 0.5, 0.0], [0.0, 0.5, 0.9])


@pytest.mark.parametrize("stacked", [False, True])
def test_simulating_in_contexts(stacked):
    env = GaussianContexts(3, 4, 2, stacked=stacked, noise_std=0.1, random_state=0)
    assert (env.models.n_columns, env.domain.n_candidates) == ((36, 3) if stacked else (4, 0))
    opt = alexp.LinUCB(env.models, env.domain, noise_std=0.1, random_state=0)
    run = alexp.simulate(opt, env, steps=30)
    for t, trial in enumerate(run.trials):
        values = env.round(t).values
        assert run.rewards[t] == values[trial.index] + env.noise(t)
        assert np.diff(run.regret, prepend=0.0)[t] == pytest.approx(values.max() - values[trial.index])
    assert run.seconds > 0.0
    weighing = alexp.simulate(alexp.EvidenceMixture(env.models, env.domain, random_state=0), env, steps=3)
    assert weighing.probabilities.shape == (3, 1)
    down = alexp.LinUCB(env.models, env.domain, noise_std=0.1, direction="minimize", random_state=0)
    assert np.all(np.diff(alexp.simulate(down, env, steps=10).regret) >= 0.0)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="s0 must be at most p = 4"):
        UniformContexts(3, 4, 5)
    with pytest.raises(ValueError, match="rho2"):
        GaussianContexts(3, 4, 2, rho2=1.5)
    with pytest.raises(ValueError, match="p must"):
        HardInstance(2)
    env = UniformContexts(3, 4, 2, random_state=0)
    opt = alexp.SALasso(env.models, env.domain, noise_std=0.1)
    with pytest.raises(ValueError, match="fixed set of candidates"):
        alexp.simulate(opt, env, steps=4, plate=2)
