import numpy as np
import pytest

import alexp
from alexp_experiments.core.scenarios import SCENARIOS, Scenario, scenario_named


def test_paper_scenarios_have_the_sizes_of_the_paper():
    assert {name: SCENARIOS[name].n_models for name in ("easy", "hard-printed", "hard-meant", "large")} == {
        "easy": 55, "hard-printed": 165, "hard-meant": 55, "large": 165,
    }  # fmt: skip
    assert [SCENARIOS[f"scaling-{p}"].n_models for p in (9, 10, 11, 12, 13, 141)] == [45, 55, 66, 78, 91, 10011]
    assert all((s.steps, s.resolution, s.noise_std) == (100, 2000, 0.01) for s in SCENARIOS.values())


def test_plain_scenario_is_the_papers_environment():
    scenario = SCENARIOS["easy"]
    ours = scenario.environment(5)
    models, domain = alexp.ModelClass.legendre(10, 2), alexp.Interval(resolution=2000)
    theirs = alexp.SyntheticEnvironment(models, domain, noise_std=0.01, random_state=5)
    assert ours.true_model == theirs.true_model
    assert np.array_equal(ours.rewards, theirs.rewards)
    assert [ours.observe_index(i) for i in range(5)] == [theirs.observe_index(i) for i in range(5)]


def test_changes_to_the_reward():
    plain = Scenario(resolution=100).environment(3).rewards
    shifted = Scenario(resolution=100, offset=2.0).environment(3).rewards
    np.testing.assert_allclose(shifted - plain, 2.0, atol=1e-12)
    misfit = Scenario(resolution=100, misfit=0.25).environment(3).rewards - plain
    columns = alexp.ModelClass.legendre(10, 2).matrix(alexp.Interval(resolution=100))
    residual = misfit - columns @ np.linalg.lstsq(columns, misfit, rcond=None)[0]
    assert 0.2 < np.abs(misfit).max() <= 0.25
    assert np.abs(residual).max() > 0.1  # no combination of features comes near


def test_heavy_tails_have_the_stated_standard_deviation():
    environment = Scenario(resolution=10, noise_std=0.5, noise="student-t").environment(0)
    draws = np.array([environment.noise() for _ in range(40_000)])
    low, high = np.quantile(draws, [0.25, 0.75])
    assert high - low == pytest.approx(2 * 0.7649 * 0.5 / np.sqrt(3.0), rel=0.03)  # quartiles of t with 3 degrees


def test_gaussian_family_draws_features_from_the_seed():
    scenario = Scenario(family="gaussian", size=3, n_maps=7, resolution=30)
    models, domain = scenario.problem(1)
    assert (models.n_models, models.n_columns, domain.n_candidates) == (7, 21, 30)
    assert np.array_equal(models.matrix(domain), scenario.problem(1)[0].matrix(domain))
    assert not np.array_equal(models.matrix(domain), scenario.problem(2)[0].matrix(domain))


def test_reward_range_holds_all_rewards():
    for scenario in (SCENARIOS["large"], Scenario(offset=-3.0, misfit=0.5)):
        low, high = scenario.reward_range
        for seed in range(20):
            rewards = scenario.environment(seed).rewards
            assert low < rewards.min() < rewards.max() < high


def test_round_trip_and_clear_errors():
    scenario = Scenario(family="gaussian", offset=1.5, noise="student-t")
    assert Scenario.from_dict(scenario.to_dict()) == scenario
    with pytest.raises(ValueError, match="unknown fields of a scenario: sise"):
        Scenario.from_dict({"sise": 3})
    with pytest.raises(ValueError, match="known are easy, hard-printed"):
        scenario_named("esay")
    with pytest.raises(ValueError, match="family must be one of"):
        Scenario(family="fourier")
    with pytest.raises(ValueError, match="size must be at most"):
        Scenario(size=12, degree=10)
