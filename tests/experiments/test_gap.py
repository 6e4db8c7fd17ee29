"""The gap to informed agents: same seeds, ratios of means, and rounds that are spliced as it says."""

import numpy as np
import pytest

from alexp_experiments.comparison import gap
from alexp_experiments.comparison.gap import Gap


def curves(*finals, half=None):
    """Two rounds each; `half` of the regret is paid in the first, all of it by default."""
    return np.array([[final if half is None else half, final] for final in finals], dtype=float)


def example():
    told = {"informed ids": curves(1.0, 3.0, half=0.5), "informed ucb": curves(2.0, 4.0)}
    return Gap("a", curves(4.0, 8.0, half=1.0), told)


def test_the_ratio_is_to_the_best_informed_agent_on_the_seeds_picked():
    one = example()
    assert np.exp(one.log_ratio()) == pytest.approx(6.0 / 2.0)
    assert np.exp(one.log_ratio(np.array([1, 1]))) == pytest.approx(8.0 / 3.0)
    turned = Gap(
        "b", one.own, {"informed ids": one.informed["informed ucb"], "informed ucb": one.informed["informed ids"]}
    )
    assert turned.log_ratio() == one.log_ratio()


def test_spliced_rounds_are_the_entrants_first_and_the_informed_agents_after():
    one = example()
    assert np.exp(one.spliced(1)) == pytest.approx((1.0 + np.mean([0.5, 2.5])) / 2.0)
    assert one.spliced(2) == pytest.approx(one.log_ratio())


def test_geometric_mean_and_interval():
    same = {"informed ids": curves(2.0, 2.0)}
    result = gap.geometric_mean([Gap("a", curves(4.0, 4.0), same), Gap("b", curves(1.0, 1.0), same)])
    assert tuple(result) == pytest.approx((1.0, 0.0, 1.0, 1.0))
    wide = gap.geometric_mean([Gap("a", curves(1.0, 9.0), same)])
    assert wide.low == pytest.approx(0.5)
    assert wide.high == pytest.approx(4.5)


def test_gaps_play_the_same_seeds_with_one_model_and_with_all():
    (one,) = gap.gaps(seeds=2, first_seed=50_000, scenarios=["s=2 σ=.1"], workers=1)
    (again,) = gap.gaps(seeds=2, first_seed=50_001, scenarios=["s=2 σ=.1"], workers=1)
    assert np.array_equal(one.own[1], again.own[0])
    assert set(one.informed) == set(gap.INFORMED)
    for name, informed in one.informed.items():
        assert np.array_equal(informed[1], again.informed[name][0])
        assert not np.array_equal(informed, one.own)


def test_stuck_seeds_are_those_that_lose_at_the_end():
    steady = np.cumsum(np.full((1, 100), 0.2), axis=1)
    calm = np.cumsum(np.full((1, 100), 0.05), axis=1)
    assert Gap("a", np.vstack([steady, calm, steady]), {}).n_stuck == 2


def test_the_command_prints_the_part_of_the_page(capsys):
    gap.main(["--seeds", "2", "--first-seed", "50000", "--problems", "s=2 σ=.1", "s=2 σ=.5", "--workers", "1"])
    text = capsys.readouterr().out
    found = list(gap.gaps(2, 50_000, scenarios=["s=2 σ=.1", "s=2 σ=.5"], workers=1))
    mixture, best, ratio, stuck = text.splitlines()[3].split(" | ")[1:]
    means = {name: curves[:, -1].mean() for name, curves in found[1].informed.items()}
    assert float(mixture) == pytest.approx(found[1].own[:, -1].mean(), abs=0.006)
    assert float(best.split()[0]) == pytest.approx(min(means.values()), abs=0.006)
    agent = min(means, key=means.get).removeprefix("informed ").replace("stated", "noise given")
    assert best.split(" (")[1].strip(")") == agent
    assert float(ratio) == pytest.approx(float(mixture) / float(best.split()[0]), rel=0.01)
    assert stuck == f"{found[1].n_stuck} |"
    assert f"**{gap.geometric_mean(found).mean:.2f}**" in text
    ours, theirs = ([float(cell) for cell in line.strip("|").split("|")[1:]] for line in text.splitlines()[-2:])
    assert sum(ours) == pytest.approx(np.mean([one.own[:, -1].mean() for one in found]), abs=0.03)
    assert sum(theirs) == pytest.approx(
        np.mean([one.informed["informed ids"][:, -1].mean() for one in found]), abs=0.03
    )


@pytest.mark.parametrize(("settings", "what"), [({"who": "informed ids"}, "who"), ({"scenarios": ["s=9"]}, "scenario")])
def test_names_are_checked(settings, what):
    with pytest.raises(ValueError, match=what):
        next(gap.gaps(seeds=2, **settings))
