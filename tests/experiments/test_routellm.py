"""The experiment of docs/routing.md."""

import numpy as np
import pytest

from alexp_experiments.contextual import routellm


@pytest.fixture
def small(monkeypatch):
    prompts = routellm.made_up(300)
    known = prompts, np.where(prompts.is_routed[:, None], prompts.right, 0.5)  # who knows the answers
    monkeypatch.setattr(routellm, "_known", lambda path: known)
    return prompts


def test_the_large_model_costs_what_it_is_worth(small):
    rewards = (small.right - [0.0, small.cost])[small.is_routed]
    assert rewards[:, 0].mean() == pytest.approx(rewards[:, 1].mean())
    assert small.n_raw == 48
    assert {name: len(places) for name, places in small.further.items()} == {
        "16 components": 16,
        "64 components": 24,
        "subject and 16 components": 28,
    }


def test_the_command_prints_a_table(small, capsys):
    routellm.main(["--seeds", "2", "--rounds", "40", "--workers", "1", "--routers", "all sets and unions", "LinUCB"])
    *_, head, _, first, second = capsys.readouterr().out.splitlines()
    assert head == "| router | all rounds | last 20 | all rounds, expected | less than the first row |"
    runs = [routellm.play("", "LinUCB", 40, seed) for seed in range(2)]
    share = np.mean([run.earned[0] - run.single[0] for run in runs]) / np.mean(
        [run.offline[0] - run.single[0] for run in runs]
    )
    assert second.startswith(f"| LinUCB | {share:.2f} ± ")
    assert first.startswith("| all sets and unions | ")


def test_finished_runs_are_kept(small, tmp_path, monkeypatch):
    run = ("", "LinUCB", 20, 3, str(tmp_path))
    found = routellm._play(run)
    monkeypatch.setattr(routellm, "play", None)
    again = routellm._play(run)
    assert [np.allclose(one, other) for one, other in zip(found, again, strict=True)] == [True] * 4


def test_routers_learn(small):
    runs = [routellm.play("", "all sets and unions", 170, seed) for seed in range(2)]
    assert all(run.earned[0] > run.single[0] - 0.1 for run in runs)


def test_the_default_closes_more_of_the_gap_than_that_of_1_0_0(monkeypatch):
    """On made-up prompts, 40 orders of them, by the probabilities that offline regressions predict."""
    prompts = routellm.made_up(1500)
    known = prompts, routellm.offline(prompts)
    monkeypatch.setattr(routellm, "_known", lambda path: known)
    names = ("five sets, cost stated", "five sets, cost stated, 1.0.0")
    now, then = ([routellm.play("", name, 400, seed) for seed in range(40)] for name in names)
    more = routellm.shares(now)[2] - routellm.shares(then)[2]
    low = more.mean() - 2.0 * more.std(ddof=1) / np.sqrt(more.size)
    print(f"{more.mean():.3f} more of the gap, at least {low:.3f}")
    assert low > 0.0
