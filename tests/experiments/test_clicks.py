"""The experiments of docs/clicks.md."""

from dataclasses import replace

import numpy as np
import pytest

from alexp.estimation.mixture.bernoulli import sigmoid
from alexp_experiments.contextual.rewards import bernoulli, drift, rules


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("likelihood", bernoulli.LIKELIHOODS)
def test_everybody_learns(likelihood, fixed):
    problem = bernoulli.Clicks(0.5, 5, 2, 150, fixed)
    even = np.mean([_even(problem, seed) for seed in range(3)])
    assert np.mean([bernoulli.play(problem, seed, likelihood=likelihood) for seed in range(3)]) < 0.6 * even


def _even(problem, seed):
    rng = np.random.default_rng([5, seed])
    theta = rng.standard_normal(2)
    rates = sigmoid(rng.standard_normal((problem.rounds, problem.arms, 2)) @ (theta / np.linalg.norm(theta)))
    return float(np.sum(rates.max(axis=1) - rates.mean(axis=1)))


def test_the_commands_print_the_parts_of_the_page(monkeypatch, capsys):
    monkeypatch.setattr(bernoulli, "PROBLEMS", (bernoulli.Clicks(0.5, 3, 1, 20),))
    bernoulli.main(["--seeds", "2", "--workers", "1"])
    said, _, head, _, *rows = capsys.readouterr().out.splitlines()
    assert said.startswith("Clicks lost, means ± standard errors of 2 seeds;")
    assert head.startswith("| click rate | arms |")
    assert [row.split(" | ")[:4] for row in rows] == [["| 0.5", "3", "1 of 3", "20"]]
    lost = [bernoulli.play(bernoulli.PROBLEMS[0], seed, likelihood="bernoulli") for seed in range(2)]
    assert rows[0].split(" | ")[5].startswith(f"{np.mean(lost):.1f} ± ")


def test_the_command_prints_coverage(capsys):
    bernoulli.main(["--coverage", "--seeds", "2", "--workers", "1", "--problems", "4"])
    said, _, head, _, row = capsys.readouterr().out.splitlines()
    assert said.startswith("Shares of true probabilities in credible intervals")
    assert head.startswith("| click rate | rounds | 95%, Gaussian | 80%, Gaussian | 50%, Gaussian | 95%, Bernoulli |")
    shares = [bernoulli.covered(bernoulli.PROBLEMS[4], "gaussian", seed)[0] for seed in range(2)]
    assert row.startswith(f"| 0.1 | 1000 | {np.mean(shares):.3f} ± ")


@pytest.mark.parametrize("module", [rules, drift])
def test_rules_and_forgetting(module, capsys):
    module.main(["--seeds", "2", "--rounds", "5", "--workers", "1"])
    regret, *logs = capsys.readouterr().out.split("\n\nA round of the log")
    said, _, head, _, *rows = regret.splitlines()
    assert len(logs) == (2 if module is rules else 0)
    assert said.endswith("Mean ± standard error of 2 seeds.")
    assert head == "| | " + " | ".join(stream.name for stream in module.STREAMS) + " |"
    assert [row.split(" | ")[0] for row in rows] == [f"| {name}" for name in module.ENTRANTS]
    stream, (name, settings) = replace(module.STREAMS[-1], rounds=5), list(module.ENTRANTS.items())[-1]
    regrets = [rules.play(stream, settings, seed).regret for seed in range(2)]
    assert rows[-1].startswith(f"| {name} | ")
    assert f"| {np.mean(regrets):.1f} ± " in rows[-1]


def test_what_a_log_is_worth():
    """A log of even play counts in full for even play, one of a deterministic rule not at all."""
    stream = rules.Stream("three arms", 3, 5, 0.5, per_arm=True)
    even = rules.play(stream, {"floor": 1.0}, 0, logs=True)
    assert even[1:] == pytest.approx((1.0, 1.0 / 3.0))
    assert rules.play(stream, {"rule": "ucb"}, 0, logs=True).even == 0.0
