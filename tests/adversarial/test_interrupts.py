"""An interrupt leaves an optimiser before or after what was interrupted, never between."""

import warnings

import numpy as np
import pytest

import alexp
from alexp.algorithms.log import AlreadyToldError, TrialLog
from alexp.testing.settings import PLAIN, make, play
from tests.adversarial import interrupts
from tests.adversarial.interrupts import built_in, digest


def test_no_interrupt_tears_an_optimiser():
    found = interrupts.soak(0.05, seed=11)
    assert found["tried"] >= 90
    assert found["violations"] == 0, found
    assert min(found["before"], found["after"]) > 0  # both kinds were met


def test_the_check_notices_torn_states(monkeypatch):
    """Without repairs the same pass finds something: an optimiser that has learned what its log does not have."""
    monkeypatch.setattr(alexp.ALExp, "_repair", lambda self: vars(self).update(_torn=False, _changing=False))
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        script = interrupts.deeds(PLAIN, rng)
        found = interrupts.interrupt(lambda: make(alexp.ALExp), script, 60, rng)
    assert found.violations > 0


@pytest.mark.parametrize("name", ["alexp", "exp4-ix", "evidence-mixture", "ets"])
def test_a_tell_that_fails_in_the_middle_never_happened(name, monkeypatch):
    kind = built_in()[name]
    run, calm = make(kind), make(kind)
    for one in (run, calm):
        play(one, 5)
    trial = run.ask()
    calm.ask()
    with monkeypatch.context() as patched:

        def fails(self, trial_id, value):
            raise ValueError("a full moon")

        patched.setattr(TrialLog, "record", fails)
        with pytest.raises(ValueError, match="full moon"):
            run.tell(trial, 0.5)
    assert digest(run) == digest(calm)
    run.tell(trial, 0.5)
    with pytest.raises(AlreadyToldError):
        run.tell(trial, 0.5)
    calm.tell(trial, 0.5)
    assert digest(run) == digest(calm)


def test_a_plate_is_asked_whole_or_not_at_all():
    run = make(alexp.ALExp)
    play(run, 4)
    calls = iter(range(100))

    def tired(round_):
        if next(calls) == 2:
            raise KeyboardInterrupt
        return type(run)._decision(run, round_)

    run._decision = tired
    with pytest.raises(KeyboardInterrupt):
        run.ask(4)
    assert (run.n_asked, run.pending()) == (4, [])
    assert [trial.id for trial in run.ask(4)] == [4, 5, 6, 7]


def test_wrong_input_repeats_nothing(monkeypatch):
    """Errors in arguments leave the state alone; repeating a long run at each of them would take long."""
    run = make(alexp.ALExp)
    play(run, 3)
    monkeypatch.setattr(alexp.ALExp, "_repair", lambda self: pytest.fail("was repeated"))
    for wrong in (
        lambda: run.tell(0, 1.0),
        lambda: run.tell(0, "one"),
        lambda: run.trial(77),
        lambda: run.observe(-1, 0.0),
    ):
        with pytest.raises((ValueError, TypeError, IndexError)):
            wrong()
    assert run.n_told == 3
