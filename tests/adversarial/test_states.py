"""States that are not as they were saved: a ValueError, or a sound run."""

import json

import numpy as np
import pytest

import alexp
from alexp.testing.settings import make, play, settings_for
from tests.adversarial import states
from tests.adversarial.interrupts import built_in


def test_changed_states_are_refused_or_sound():
    wrong = []
    found = states.soak(0.16, seed=5, report=wrong)
    assert found["tried"] == 320
    assert found["violations"] == 0, wrong
    assert found["refused"] > 200
    assert found["same"] > 0


def test_the_check_notices_states_that_are_believed(monkeypatch):
    """Without the checks of fields the same pass finds something."""
    monkeypatch.setattr("alexp.estimation.ridge.bank.floats", lambda *shape, **bounds: lambda name, value: value)
    assert states.soak(0.1, seed=5)["violations"] > 0


@pytest.mark.parametrize("name", ["alexp", "uniform", "corral"])
def test_the_digest_notices_every_change_but_of_the_problem(name):
    kind, rng = built_in()[name], np.random.default_rng(1)
    run = make(kind, settings_for(kind)[0])
    play(run, 4)
    run.ask(2)
    state = json.loads(json.dumps(run.to_dict()))
    assert kind.from_dict(state).n_asked == 6
    for _ in range(60):
        what, changed = states.change(state, [state], rng)
        content = {key: value for key, value in changed.items() if key not in ("problem", "digest")}
        if content == {key: state[key] for key in content}:
            continue
        with pytest.raises(ValueError, match="state"):
            assert kind.from_dict(changed) is None, what


def test_numbers_may_be_written_in_another_way():
    run = make(alexp.ALExp, noise_std=1.0)
    state = json.loads(json.dumps(run.to_dict()))
    state["settings"]["noise_std"] = 1  # as other languages write 1.0
    assert alexp.ALExp.from_dict(state).noise_std == 1.0


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("state", "n_scored"), 99, "n_scored"),
        (("log",), {}, "log"),
        (("entropy",), "minus one", "entropy"),
        (("settings", "schedules"), {"kind": "Pickle"}, "schedules"),
        (("settings", "oracle", "tol"), -1.0, "oracle"),
        (("settings", "horizn"), 3, "horizn"),
        (("problem", "domain", "resolution"), 10**12, "resolution"),
        (("problem", "models", "dictionary"), {"family": "legendre"}, "models"),
    ],
)
def test_the_error_names_the_field(path, value, message):
    run = make(alexp.ALExp)
    play(run, 2)
    state = json.loads(json.dumps(run.to_dict()))
    del state["digest"]
    states.at(state, path[:-1])[path[-1]] = value
    with pytest.raises(ValueError, match=message):
        alexp.ALExp.from_dict(state)


def test_a_failed_resume_changes_nothing():
    run, other = make(alexp.ALExp), make(alexp.ALExp)
    play(run, 3)
    play(other, 5)
    before = json.dumps(run.to_dict())
    state = other.state()
    with pytest.raises(ValueError, match="returns"):
        run.resume(other.log.state(), {**alexp.common.codec.unpack(state), "returns": np.zeros(2)})
    assert json.dumps(run.to_dict()) == before


@pytest.mark.parametrize("name", ["exp4-ix", "corral"])
def test_abandoned_trials_leave_nothing_behind(name):
    """What was noted about them goes, also from a state that has kept it."""
    kind = built_in()[name]
    run = make(kind)
    play(run, 2)
    trials = run.ask(20)
    old = json.loads(json.dumps(run.to_dict(problem=False)))
    for trial in trials[1:]:
        run.abandon(trial)
    assert list(run._notes) == [trials[0].id]
    leaky = json.loads(json.dumps(run.to_dict(problem=False)))
    assert len(leaky["state"]["notes"]) == 1
    leaky["state"]["notes"] = old["state"]["notes"]
    del leaky["digest"]
    assert list(kind.from_dict(leaky, run.models, run.domain)._notes) == [trials[0].id]


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (lambda codes: codes[:-1], "trials of the log"),  # the last ask is missing
        (
            lambda codes: codes[[1, 0, *range(2, codes.size)]],
            "before its other events",
        ),  # told before it was asked for
        (lambda codes: np.append(codes, codes[1]), "every reward"),  # told twice
        (lambda codes: np.append(codes, 4 * 0 + 3), r"log\['abandoned'\]"),  # given up, say the events alone
        (lambda codes: np.append(codes[:-1], 2), "every reward"),  # asked for, says the log, and measured elsewhere
    ],
    ids=["short", "early", "twice", "abandoned", "elsewhere"],
)
def test_events_go_with_their_log(codes, message):
    run = make(alexp.ALExp)
    play(run, 3)
    run.ask()
    log = run.log.state()
    log["events"]["codes"] = codes(log["events"]["codes"])
    with pytest.raises(ValueError, match=message):
        make(alexp.ALExp).resume(log, alexp.common.codec.unpack(run.state()))
