"""Every "for all t" statement against its promise: adaptive paths, every step checked, delta = 0.05 and 0.2."""

import numpy as np
import pytest

from alexp.theory import self_normalised_lambda
from alexp_experiments import coverage as module
from alexp_experiments._coverage_kernels import ucb_path, worst_model_path
from alexp_experiments.coverage import PROCESSES, coverage, to_markdown


@pytest.mark.parametrize("process", PROCESSES)
def test_violations_stay_within_three_standard_errors(process):
    table = coverage([process], paths=2000, steps=10_000 if process != "plausible models" else 3000)
    print("\n" + to_markdown(table))
    assert np.all(table["violated"] <= table["delta"] + 3 * table["standard_error"])
    assert np.all(table["slack"] < 5.0)  # not vacuous


def test_the_report_notices_a_bound_that_is_too_small(monkeypatch):
    honest = module.boundaries.azuma_boundary
    monkeypatch.setattr(module.boundaries, "azuma_boundary", lambda t, b, d: 0.5 * honest(t, b, d))
    table = coverage(["bounded differences"], paths=500, steps=1000)
    assert np.all(table["violated"] > table["delta"] + 3 * table["standard_error"])


def test_reports_repeat():
    first, second = (coverage(["bounded differences"], paths=20, steps=50) for _ in range(2))
    assert first.equals(second)


def test_the_command_prints_the_part_of_the_page(monkeypatch, capsys):
    monkeypatch.setattr(module, "PROCESSES", {"bounded differences": PROCESSES["bounded differences"]})
    module.main(["--paths", "10", "--steps", "20"])
    head, _, azuma, _, said = capsys.readouterr().out.splitlines()
    assert head.startswith("| statement | violated, delta = 0.05 | violated, delta = 0.2 |")
    assert azuma.startswith("| time-uniform Azuma-Hoeffding | 0.0000 |")
    assert said == "10 paths of 20 steps each, every step checked."


def test_ridge_path_equals_a_plain_ridge_regression():
    rng = np.random.default_rng(0)
    actions, theta, noise = rng.normal(size=(60, 2)), np.array([0.3, -0.7]), 0.4 * rng.normal(size=25)
    statistic, error, level = np.empty(25), np.empty(25), np.empty(25)
    ucb_path(noise, actions, theta, 0.8, statistic, error, level)
    v, b, s = 0.8 * np.eye(2), np.zeros(2), np.zeros(2)
    for t in range(25):
        fit, inverse = np.linalg.solve(v, b), np.linalg.inv(v)
        x = actions[np.argmax(actions @ fit + np.sqrt(np.einsum("nd,de,ne->n", actions, inverse, actions)))]
        v, b, s = v + np.outer(x, x), b + x * (x @ theta + noise[t]), s + x * noise[t]
        gap = np.linalg.solve(v, b) - theta
        assert error[t] == pytest.approx(np.sqrt(gap @ v @ gap))
        assert statistic[t] == pytest.approx(np.sqrt(s @ np.linalg.solve(v, s)))
        assert level[t] == pytest.approx(np.linalg.slogdet(v / 0.8)[1])


def test_worst_model_path_equals_plain_sums():
    rng = np.random.default_rng(1)
    features, noise, steps = rng.normal(size=(5, 3, 2)), rng.normal(size=30), 30
    norms, worst = np.empty(steps), np.empty((steps, 1))
    worst_model_path(noise, features, 2.0, np.array([2 * np.log(3 / 0.1)]), norms, worst)
    s, grams, target = np.zeros((3, 2)), np.zeros((3, 2, 2)), 0
    for t in range(steps):
        pull = np.abs(features[:, target] @ s[target])
        x = features[np.argmax(pull) if t else 0]
        s, grams = s + noise[t] * x, grams + x[:, :, None] * x[:, None, :]
        target = int(np.argmax(np.linalg.norm(s, axis=1)))
        assert norms[t] == pytest.approx(np.linalg.norm(s[target]))
        assert 2 / (t + 1) * np.sqrt(worst[t, 0]) == pytest.approx(self_normalised_lambda(grams, t + 1, 1.0, 0.1))
