"""95% intervals on adaptive logs hold at every moment at once; the i.i.d. ones of textbooks do not."""

import numpy as np
import pytest

from alexp import ope
from alexp_experiments import evaluation_coverage as coverage

WAYS = {way: coverage.WAYS[way] for way in ("ips, betting", "dr, betting, floor")}


@pytest.mark.parametrize("logger", coverage.LOGGERS)
def test_intervals_cover_at_every_moment(logger):
    found = coverage.figures(100, 400, seed=0, ways=WAYS, loggers=(logger,), policies=("sharp", "soft"))
    print("\n" + coverage.table(found, 100))
    for (_, kind, way), (held, width) in found.items():
        if way in WAYS:
            assert held >= 95
            assert width < {"sharp": 0.65, "soft": 0.45}[kind]
    assert all(found[logger, kind, "i.i.d., every round"][0] < 80 for kind in ("sharp", "soft"))


def test_a_difference_is_decided_where_two_intervals_are_not():
    """60 logs: b - a is covered at every moment, and found where the policies differ in few rounds only."""
    b = coverage.digit_policy("sharp")
    a = 0.85 * b + 0.15 / coverage.ARMS
    true = coverage.digit_value(b) - coverage.digit_value(a)
    played = coverage.digit_logs("thompson", 60, 800, seed=2)
    held = decided = apart = 0
    for k in range(60):
        log, images = played.log(k), played.images[k]
        found = ope.compare(log, a[images], b[images], reward_range=(0, 1))
        held += coverage.holds(found.running_lower, found.running_upper, true)
        decided += found.verdict.startswith("better")
        one, two = (ope.ips(log, policy[images], reward_range=(0, 1)) for policy in (a, b))
        apart += two.lower > one.upper
        assert not found.verdict.startswith("worse")
        assert (found.decided_at is None) == (found.verdict == "not yet")
    print(f"true difference {true:.3f}: held {held}, decided {decided}, two intervals apart {apart} of 60")
    assert held >= 57
    assert decided >= 50
    assert apart <= 5


def test_what_is_known_of_propensities_narrows_the_interval():
    policy, played = coverage.digit_policy("wrong"), coverage.digit_logs("greedy", 6, 1000, seed=6)
    widths = np.zeros(3)
    for k in range(6):
        blind, q, new = played.log(k), played.predictions[k], policy[played.images[k]]
        told = ope.Log(blind.rewards, blind.propensities, blind.index, blind.n, probabilities=played.probabilities[k])
        found = [
            ope.dr(blind, new, model=q, reward_range=(0, 1)),
            ope.dr(blind, new, model=q, reward_range=(0, 1), floor=coverage.FLOOR),
            ope.dr(told, new, model=q, reward_range=(0, 1)),
        ]
        widths += [one.upper - one.lower for one in found]
        assert found[0].interval == ope.ips(blind, new, reward_range=(0, 1)).interval
        assert found[0].value == found[1].value == found[2].value
    print("mean widths: nothing known, a floor, all probabilities:", widths / 6)
    assert widths[1] < 0.85 * widths[0]
    assert widths[2] < 0.9 * widths[0]


def test_logs_are_what_they_claim():
    played = coverage.digit_logs("thompson", 30, 200, seed=4)
    assert played.probabilities.sum(axis=2) == pytest.approx(np.ones((30, 200)))
    assert played.probabilities.min() >= coverage.FLOOR - 1e-12
    assert (1.0 / played.propensities).mean() == pytest.approx(coverage.ARMS, rel=0.1)
    assert played.rewards[:, -50:].mean() > 2.0 * played.rewards[:, :50].mean()  # it learns, so the log is adaptive


@pytest.mark.parametrize("own", [[], ["--own"]])
def test_the_command_prints_the_parts_of_the_page(own, capsys):
    coverage.main([*own, "--logs", "2", "--rounds", "40", "--workers", "1"])
    said, _, head, _, *rows = capsys.readouterr().out.splitlines()
    assert said == "2 logs of 40 rounds, seed 0."
    assert head.startswith("| interval | mixture, softmax" if own else "| interval | greedy, sharp |")
    assert [row.split(" | ")[0][2:] for row in rows] == [*(coverage.OWN if own else coverage.WAYS), *coverage.IID]
