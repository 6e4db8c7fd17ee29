"""Contextual runs that are interrupted at single instructions are before or after what was interrupted, too."""

import warnings

import numpy as np
import pytest

import alexp
from alexp.algorithms.log import AbandonedTrialError, AlreadyToldError
from alexp.testing.contextual import PROBLEMS, reward
from tests.adversarial.interrupts import Deed, built_in, interrupt


def script(problem, rng):
    """Asks of one and of several trials, late rewards, observations, corrections, abandonments and looks."""
    out, waiting, told, n_trials = [], [], [], 0

    def tell(trial):
        value = reward(trial, 0)
        out.append(Deed("tell", lambda run: run.tell(trial, value), repeated=AlreadyToldError))
        waiting.remove(trial)
        told.append(trial)

    for step in range(6):
        round_, n = problem.round(step), int(rng.integers(1, 3))
        out.append(Deed("ask", lambda run, n=n, round_=round_: run.ask(n, **round_)))
        waiting += range(n_trials, n_trials + n)
        n_trials += n
        while waiting and rng.random() < 0.7:
            tell(int(rng.choice(waiting)))
        if waiting and step == 3:
            gone = waiting.pop()
            out.append(Deed("abandon", lambda run, gone=gone: run.abandon(gone), repeated=AbandonedTrialError))
        if step in (1, 4):
            out.append(Deed("observe", lambda run, round_=round_: run.observe(1, 0.25, propensity=0.5, **round_)))
            told.append(n_trials)
            n_trials += 1
        if told and step % 2:
            which = int(rng.choice(told))
            out.append(Deed("amend", lambda run, which=which, step=step: run.amend(which, 0.1 * step)))
        out.append(Deed("policy", lambda run, round_=round_: run.policy(**round_), changes=False))
    return out


@pytest.mark.parametrize("name", ["alexp", "corral", "evidence-mixture", "linucb", "uniform"])
def test_no_interrupt_tears_a_contextual_run(name):
    kind, rng = built_in()[name], np.random.default_rng(7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for problem in PROBLEMS:
            found = interrupt(lambda problem=problem: problem.make(kind), script(problem, rng), 8, rng)
            assert found.violations == 0, (problem.name, found)


def test_what_is_not_kept_cannot_be_repaired():
    opt = PROBLEMS[0].make(alexp.LinUCB, log_features="none")
    opt.tell(opt.ask(**PROBLEMS[0].round(0)), 1.0)
    opt._torn = True
    for use in (lambda: opt.ask(**PROBLEMS[0].round(1)), lambda: opt.n_told, opt.to_dict):
        with pytest.raises(RuntimeError, match="load the last state"):
            use()
