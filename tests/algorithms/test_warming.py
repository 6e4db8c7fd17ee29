"""Compiling ahead leaves the algorithm alone, and afterwards there is nothing left to compile."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from numba.core import event

import alexp
from alexp.algorithms.warming import warm_up


class Remembers(alexp.Agent):
    """An agent that counts its questions."""

    ridge = 0.1

    def __init__(self):
        self.asked = 0

    def policy(self, view):
        self.asked += 1
        return int(np.argmax(view.mean))


def test_nothing_is_left_to_compile_and_nothing_has_changed():
    models = alexp.ModelClass.legendre(degree=4, size=2, intercept=True)
    domain = alexp.Interval(-1.0, 1.0, resolution=37)
    warmed, plain = (alexp.ALExp(models, domain, random_state=3) for _ in range(2))
    before = warmed.to_dict()
    assert warm_up(warmed) > 0.0
    assert warmed.to_dict() == before
    assert warm_up(warmed) == 0.0
    with event.install_recorder("numba:compile") as recorder:
        for algorithm in (warmed, plain):
            for _ in range(3):
                trial = algorithm.ask()
                algorithm.tell(trial, 1.0 - trial.x**2)
            algorithm.best()
    assert not recorder.buffer
    assert warmed.to_dict() == plain.to_dict()


def test_what_is_compiled_is_kept():
    code = (
        "import alexp; from numba.core import event; from alexp.algorithms.warming import warm_up_common\n"
        "with event.install_recorder('numba:compile') as recorder: warm_up_common()\n"
        "print(sorted({e.data['dispatcher'].py_func.__qualname__ for _, e in recorder.buffer}))"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(2)]
    assert runs[1].stdout.strip() == "[]"
    assert not runs[1].stderr


def test_agents_of_the_users_own_are_not_asked():
    agent = Remembers()
    models, domain = alexp.ModelClass.legendre(degree=3, size=2), alexp.Interval(-1.0, 1.0, resolution=23)
    warm_up(alexp.ALExp(models, domain, agents=agent, random_state=0))
    assert agent.asked == 0


def test_arms_with_costs_are_warmed_one_kind_of_model_and_rewards_after_the_other():
    arms = alexp.Arms(["small", "large"])
    kinds = [
        alexp.EvidenceMixture(
            alexp.ModelClass.per_arm({"length": [0], "topic": [1, 2]}, arms, correlation=correlation),
            arms,
            likelihood=likelihood,
            cost=[0.1, 0.5],
            budget=0.2,
            random_state=0,
        )
        for correlation in (0.0, 0.5)
        for likelihood in ("gaussian", "bernoulli")
    ]
    assert all(warm_up(kind) > 0.0 for kind in kinds)
    assert all(warm_up(kind) == 0.0 for kind in kinds)
