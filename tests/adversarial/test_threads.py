"""Optimisers may be shared by threads, copied, pickled, and left behind by a fork."""

import copy
import os
import pickle
import threading

import pytest

import alexp
from alexp.testing.settings import make, play
from tests.adversarial import threads
from tests.adversarial.interrupts import built_in, digest


def test_what_threads_do_together_one_could_have_done():
    found = threads.soak(0.1, seed=3)
    assert found["tried"] > 100
    assert found["violations"] == 0, found


def test_the_check_notices_threads_that_are_not_kept_apart(monkeypatch):
    """Without the lock the same pass finds something."""

    class NoLock:
        def acquire(self, blocking=True):
            return True

        def release(self):
            pass

        def _is_owned(self):
            return False

    kind = built_in()["alexp"]
    real_make = threads.make

    def unguarded(*args, **kwargs):
        run = real_make(*args, **kwargs)
        run._lock = NoLock()
        return run

    monkeypatch.setattr(threads, "make", unguarded)
    found = (threads.violations(kind, seed, threads=4, steps=12) for seed in range(20))
    assert any(tally["raised"] or tally["mixed up"] or tally["out of order"] for tally in found)


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda run: pickle.loads(pickle.dumps(run))])
def test_copies_have_locks_of_their_own(twin):
    run = make(alexp.ALExp)
    play(run, 3)
    other = twin(run)
    assert other._lock is not run._lock
    assert digest(other) == digest(run)
    with run._lock:  # a thread that uses the copy does not wait for us
        thread = threading.Thread(target=other.best, daemon=True)
        thread.start()
        thread.join(30.0)
        assert not thread.is_alive()


def test_a_copy_goes_on_like_the_original():
    run = make(alexp.ALExp)
    play(run, 3)
    other = pickle.loads(pickle.dumps(run))
    assert [str(trial) for trial in play(run, 4)] == [str(trial) for trial in play(other, 4)]
    assert digest(other) == digest(run)


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_child_process_does_not_wait_for_threads_it_does_not_have():
    run = make(alexp.ALExp)
    play(run, 3)
    held, go = threading.Event(), threading.Event()

    def hold():
        with run._lock:
            held.set()
            go.wait(60.0)

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    held.wait(60.0)
    child = os.fork()
    if child == 0:  # an alarm ends the child if it hangs
        import signal

        signal.alarm(60)
        os._exit(0 if run.n_told == 3 and run.ask().id == 3 else 1)
    go.set()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    thread.join()
    assert run.ask().id == 3
