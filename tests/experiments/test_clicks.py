"""The logistic regressions that the Gaussian mixture is held against on clicks, and the experiment itself."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize

from alexp_experiments.contextual.rewards import bernoulli, drift, rules
from alexp_experiments.contextual.rewards.bernoulli import LogisticMixture, sigmoid


def test_one_reward_is_the_laplace_approximation():
    mixture = LogisticMixture([np.array([0, 1])], 3, scales=(0.7,))
    row = np.array([1.0, -2.0, 9.0])
    mixture.update(row, 1.0)
    prior, x = np.array([25.0, 0.49, 0.49]), np.array([1.0, 1.0, -2.0])

    def loss(theta):
        return np.logaddexp(0.0, -theta @ x) + 0.5 * np.sum(theta**2 / prior)

    mode = minimize(loss, np.zeros(3), tol=1e-12).x
    assert mixture.means[0] == pytest.approx(mode, abs=1e-5)
    p = sigmoid(mode @ x)
    hessian = np.diag(1.0 / prior) + p * (1.0 - p) * np.outer(x, x)
    assert mixture.covariances[0] == pytest.approx(np.linalg.inv(hessian), rel=1e-4)


def test_evidence_is_nearly_the_integral():
    mixture = LogisticMixture([np.array([0])], 1, scales=(1.0,))
    mixture.update(np.array([0.5]), 0.0)
    v = 25.0 + 0.25
    exact, _ = quad(lambda eta: sigmoid(-eta) * np.exp(-0.5 * eta**2 / v) / np.sqrt(2.0 * np.pi * v), -60.0, 60.0)
    assert np.exp(mixture.log_evidence[0]) == pytest.approx(exact, abs=0.2)  # 1/2 exactly; Laplace is rough here


def test_the_true_set_wins():
    rng = np.random.default_rng(0)
    mixture = LogisticMixture([np.array([0, 1]), np.array([2, 3]), np.arange(4)], 4)
    for _ in range(600):
        row = rng.standard_normal(4)
        mixture.update(row, float(rng.random() < sigmoid(row[0] - row[1] - 1.0)))
    weights = mixture.weights().reshape(3, 3).sum(axis=1)
    assert weights[0] > 0.8
    mean, variance = mixture.moments(np.array([[1.0, -1.0, 0.0, 0.0], [-1.0, 1.0, 0.0, 0.0]]))
    assert mean == pytest.approx(sigmoid(np.array([1.0, -3.0])), abs=0.1)
    assert np.all(variance > 0.0)
    assert np.argmax(mixture.draw(np.eye(4), rng)) == 0


@pytest.mark.parametrize("rule", bernoulli.RULES)
@pytest.mark.parametrize("entrant", list(bernoulli.ENTRANTS))
def test_everybody_learns(entrant, rule):
    problem = bernoulli.Clicks(0.5, 5, 2, 150)
    even = np.mean([_even(problem, seed) for seed in range(3)])
    assert np.mean([bernoulli.play(problem, entrant, rule, seed) for seed in range(3)]) < 0.6 * even


def _even(problem, seed):
    rng = np.random.default_rng([5, seed])
    theta = rng.standard_normal(2)
    rates = sigmoid(rng.standard_normal((problem.rounds, problem.arms, 2)) @ (theta / np.linalg.norm(theta)))
    return float(np.sum(rates.max(axis=1) - rates.mean(axis=1)))


def test_the_commands_print_the_parts_of_the_page(monkeypatch, capsys):
    monkeypatch.setattr(bernoulli, "PROBLEMS", (bernoulli.Clicks(0.5, 3, 1, 20),))
    bernoulli.main(["--seeds", "2", "--workers", "1"])
    said, _, head, _, *rows = capsys.readouterr().out.splitlines()
    assert said.startswith("Clicks lost, means of 2 seeds;")
    assert head.startswith("| click rate | arms |")
    assert [row.split(" | ")[:5] for row in rows] == [
        ["| 0.5", "3", "1 of 3", "20", rule] for rule in ("ucb", "thompson")
    ]
    regrets = [bernoulli.play(bernoulli.PROBLEMS[0], "logistic", "ucb", seed) for seed in range(2)]
    assert rows[0].split(" | ")[7] == f"{np.mean(regrets):.1f}"


@pytest.mark.parametrize("module", [rules, drift])
def test_rules_and_forgetting(module, capsys):
    module.main(["--seeds", "2", "--rounds", "5", "--workers", "1"])
    said, _, head, _, *rows = capsys.readouterr().out.splitlines()
    assert said == "Mean ± standard error of 2 seeds."
    assert head == "| | " + " | ".join(stream.name for stream in module.STREAMS) + " |"
    assert [row.split(" | ")[0] for row in rows] == [f"| {name}" for name in module.ENTRANTS]
    stream, (name, settings) = replace(module.STREAMS[-1], rounds=5), list(module.ENTRANTS.items())[-1]
    regrets = [rules.play(stream, settings, seed) for seed in range(2)]
    assert rows[-1].startswith(f"| {name} | ")
    assert f"| {np.mean(regrets):.1f} ± " in rows[-1]
