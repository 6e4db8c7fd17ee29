import numpy as np
import pytest

import alexp


def test_naive_uses_every_distinct_column_once():
    rng = np.random.default_rng(0)
    base = rng.standard_normal((12, 3))
    models = alexp.ModelClass.from_matrices({"a": base, "b": base[:, :2], "c": rng.standard_normal((12, 1))})
    opt = alexp.LinUCB(models, alexp.FiniteSet(list(range(12))))
    assert opt._single().groups[0].tolist() == [0, 1, 2, 5]


def test_oracle_finds_the_optimum_and_names_its_model():
    models, domain = alexp.ModelClass.legendre(6, 2), alexp.Interval(resolution=300)
    for seed in range(5):
        env = alexp.SyntheticEnvironment(models, domain, noise_std=0.01, random_state=seed)
        opt = alexp.LinUCB(models, domain, model=env.true_model, noise_std=0.01, random_state=seed)
        alexp.simulate(opt, env, steps=40)
        best = opt.best()
        assert env.best_value - env.rewards[best.index] < 0.02
        assert best.model == env.true_model
    with pytest.raises(ValueError, match="model must be below"):
        alexp.LinUCB(models, domain, model=models.n_models)


def test_ties_have_no_systematic_side():
    """Even features cannot tell x from -x: over seeds, both sides are played."""
    models, domain = alexp.ModelClass(alexp.Legendre(4), [[2, 4]]), alexp.Interval(resolution=100)
    first = [alexp.LinUCB(models, domain, model=0, random_state=seed).ask().x for seed in range(60)]
    assert set(np.abs(first)) == {1.0}
    assert 15 < np.sum(np.array(first) > 0) < 45


def test_uniform_play_recommends_the_best_average():
    models, domain = alexp.ModelClass.legendre(2, 1), alexp.FiniteSet(np.array([0.0, 0.5, 1.0]))
    opt = alexp.UniformRandom(models, domain, random_state=0)
    for trial in opt.ask(30):
        opt.tell(trial, [0.0, 2.0, 1.0][trial.index])
    assert opt.best().index == 1
    assert opt.best().value == 2.0


def test_intercept_absorbs_an_offset():
    """With an intercept, adding 100 to every reward changes what is played only through rounding."""
    domain = alexp.Interval(resolution=60)
    models = alexp.ModelClass.legendre(4, 2, intercept=True)
    runs = []
    for offset in (0.0, 100.0):
        opt = alexp.ALExp(models, domain, noise_std=0.05, random_state=1, oracle=alexp.GroupLasso(1e-10))
        rng = np.random.default_rng(5)
        for _ in range(25):
            trial = opt.ask()
            opt.tell(trial, offset + np.sin(3 * trial.x) + 0.05 * rng.standard_normal())
        runs.append((opt.probabilities, [opt.trial(i).index for i in range(25)], opt.best()))
    assert runs[0][1] == runs[1][1]
    np.testing.assert_allclose(runs[0][0], runs[1][0], atol=1e-6)
    assert runs[1][2].value == pytest.approx(runs[0][2].value + 100.0, abs=1e-6)


def test_a_hundred_thousand_tells_do_not_drift():
    models, domain = alexp.ModelClass.legendre(3, 2), alexp.Interval(resolution=64)
    opt = alexp.LinUCB(models, domain, model=2, noise_std=0.1, random_state=0)
    rng = np.random.default_rng(1)
    rows = models.columns(domain.points)
    counts, sums = np.zeros(64), np.zeros(64)
    for _ in range(100_000):
        index, y = int(rng.integers(64)), float(rng.standard_normal())
        opt.observe(index, y)
        counts[index] += 1
        sums[index] += y
    s = models.groups[2]
    v = (rows[:, s] * counts[:, None]).T @ rows[:, s] + 1e-4 * np.eye(2)
    fresh = np.linalg.solve(v, rows[:, s].T @ sums)
    mean = opt._pool.mean(0, rows)
    np.testing.assert_allclose(mean, rows[:, s] @ fresh, atol=1e-10)


def test_released_code_variant_needs_and_uses_the_horizon():
    models, domain = alexp.ModelClass.legendre(4, 2), alexp.Interval(resolution=50)
    with pytest.raises(ValueError, match="pass horizon="):
        alexp.ALExp(models, domain, variant="released-code")
    opt = alexp.ALExp(models, domain, noise_std=0.01, variant="released-code", horizon=30, random_state=0)
    env = alexp.SyntheticEnvironment(models, domain, random_state=3)
    run = alexp.simulate(opt, env, steps=30)
    assert opt.schedules.eta_t(1) == opt.schedules.eta_t(30)
    assert np.isfinite(run.regret[-1])
    again = alexp.ALExp.from_dict(opt.to_dict())
    assert again.ask() == opt.ask()
    with pytest.raises(ValueError, match="variant must be one of"):
        alexp.ALExp(models, domain, variant="draft")


def test_retrospective_and_clipped_returns():
    models, domain = alexp.ModelClass.legendre(4, 2), alexp.Interval(resolution=50)
    env = alexp.SyntheticEnvironment(models, domain, random_state=3)
    both = {"returns": "retrospective", "clip_returns": True}
    for settings in ({"returns": "retrospective"}, {"clip_returns": True}, both):
        opt = alexp.ALExp(models, domain, noise_std=0.01, random_state=0, reward_bound=0.2, **settings)
        alexp.simulate(opt, env, steps=25)
        if "clip_returns" in settings:
            assert np.abs(opt.cumulative_returns).max() <= 25 * 0.2 + 1e-12
        again = alexp.ALExp.from_dict(opt.to_dict())
        assert np.array_equal(again.probabilities, opt.probabilities)
    with pytest.raises(ValueError, match="returns must be one of"):
        alexp.ALExp(models, domain, returns="later")


def test_retrospective_returns_evaluate_all_past_policies_with_the_newest_estimate():
    models, domain = alexp.ModelClass.legendre(3, 2), alexp.Interval(resolution=20)
    opt = alexp.ALExp(models, domain, noise_std=0.1, random_state=2, returns="retrospective")
    past = []
    for _ in range(8):
        trial = opt.ask()
        opt.tell(trial, float(np.cos(2 * trial.x)))
        past.append(opt._decision(opt._everything).play.otherwise.policies)
    estimate = opt._candidates.table.T @ opt.fit.beta
    np.testing.assert_allclose(opt.cumulative_returns, sum(p.expectation(estimate) for p in past), atol=1e-12)
