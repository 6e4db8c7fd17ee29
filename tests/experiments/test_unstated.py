"""Stating nothing: the right model in any units, and a price that is computed as it says."""

import numpy as np
import pytest

from alexp_experiments.comparison import unstated


@pytest.mark.parametrize("name", unstated.SETTINGS)
def test_the_right_model_in_any_units(name):
    """Ten of the runs of the command, 30 rounds each."""
    found = [unstated.finds_the_model(unstated.SETTINGS[name], seed, steps=30) for seed in range(10)]
    print(f"{name}: right model in {sum(found)} of 10")
    assert sum(found) >= 9


def test_price_plays_the_same_seeds():
    (one,) = unstated.price(seeds=2, first_seed=50_000, scenarios=["s=2 σ=.1"], workers=1)
    again = next(unstated.price(seeds=1, first_seed=50_001, scenarios=["s=2 σ=.1"], workers=1))
    assert (one.stated[1], one.unstated[1]) == (again.stated[0], again.unstated[0])
    assert not np.array_equal(one.stated, one.unstated)


def test_geometric_mean_of_ratios_of_means():
    prices = [
        unstated.Price("a", np.array([1.0, 3.0]), np.array([2.0, 6.0])),
        unstated.Price("b", np.array([4.0, 4.0]), np.array([2.0, 2.0])),
    ]
    result = unstated.geometric_mean(prices)
    assert result.mean == pytest.approx(1.0)
    assert result.low == pytest.approx(1.0)
    assert result.high == pytest.approx(1.0)


def test_the_command_prints_the_part_of_the_page(capsys):
    one, two = "s=2 σ=.1", "noise stated ÷3"
    unstated.main(["--seeds", "2", "--first-seed", "50000", "--scenarios", one, two, "--workers", "1"])
    said = capsys.readouterr().out
    prices = list(unstated.price(2, 50_000, [one, two], workers=1))
    least, largest = sorted(prices, key=unstated.Price.log_ratio)
    ends = (f"{np.exp(found.log_ratio()):.2f} ({found.scenario})" for found in (least, largest))
    assert f"from {' to '.join(ends)}." in said
    all_of_them, right = unstated.geometric_mean(prices), unstated.geometric_mean(prices[:1])
    assert f"2 problems, 2 seeds in pairs: geometric mean {all_of_them.mean:.2f}, 95% interval" in said
    assert f"On the 1 problems in which a model is true and what is given is right: {right.mean:.2f} (" in said
