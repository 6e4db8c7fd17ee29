"""Results by name, and several measurements of one experiment, in memory."""

import json

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp.algorithms.log import AlreadyToldError, UnknownTrialError

INPUTS = np.random.default_rng(0).uniform(-1.0, 1.0, (12, 2))
FRAME = pd.DataFrame({"compound": [f"A{k}" for k in range(12)], "mass": np.arange(12.0)})


def new(candidates=FRAME, **settings):
    models = alexp.ModelClass.from_matrices({"both": INPUTS, "first": INPUTS[:, :1]})
    return alexp.EvidenceMixture(models, alexp.FiniteSet(candidates), random_state=0, **settings)


def test_results_by_name():
    opt = new()
    first, second = opt.ask(2)
    opt.tell(first.x["compound"], 1.0)
    opt.tell(second, 2.0, candidate=second.x["compound"])
    assert list(opt.log.reward) == [1.0, 2.0]
    with pytest.raises(AlreadyToldError, match="trial 0 already has the reward 1.0"):
        opt.tell(first.x["compound"], 3.0)
    opt.tell(first.x["compound"], 3.0, "amend")
    before = opt.to_dict()
    for arguments, candidate, error, match in (
        ((0, 1.0), second.x["compound"], UnknownTrialError, f"trial 0 is candidate {first.x['compound']!r}, not"),
        (("a3", 1.0), None, ValueError, "no candidate has the name 'a3'; did you mean 'A"),
        ((None, 1.0), None, ValueError, "a result must name its trial or its candidate"),
    ):
        with pytest.raises(error, match=match):
            opt.tell(*arguments, candidate=candidate)
    unasked = next(name for k, name in enumerate(FRAME["compound"]) if k not in opt.log.index)
    with pytest.raises(UnknownTrialError, match=f"candidate {unasked!r} was not asked for; .* added by observe"):
        opt.tell(unasked, 1.0)
    assert opt.to_dict() == before
    third = opt.ask()
    opt.fail(third.x["compound"], "tar")
    assert opt.log.failed == {2}


def test_a_name_with_several_pending_trials_is_refused():
    opt = new(list(FRAME["compound"]))
    opt.ask(2, available=["A3", "A4"])
    opt.ask(2, available=["A3", "A4"])
    with pytest.raises(ValueError, match="candidate 'A3' has 2 pending trials: .*; name the trial"):
        opt.tell("A3", 1.0)
    twice = new(pd.DataFrame({"compound": ["A"] * 2 + list("BCDEFGHIJK"), "k": range(12)}))
    twice.ask(available=[0])
    with pytest.raises(ValueError, match="candidates 0 and 1 both have the name 'A'; name the trial"):
        twice.tell("A", 1.0)


@pytest.mark.parametrize("repeats", [True, False])
def test_replicates_are_that_many_measurements(repeats):
    opt, plain = new(repeats=repeats), new(repeats=repeats)
    trial = opt.ask()
    assert plain.ask().index == trial.index
    opt.tell(trial, [71.2, 72.9, 70.8])
    plain.tell(trial, 71.2)
    plain.observe(trial.index, 72.9)
    plain.observe(trial.index, 70.8)
    assert opt.n_told == 3
    assert opt.log.replicates == {0: [1, 2]}
    assert opt.log.measurements(0) == (71.2, 72.9, 70.8)
    assert opt.state() == plain.state()
    assert opt.ask().index == plain.ask().index
    again = type(opt).from_dict(json.loads(json.dumps(opt.to_dict())))
    assert again.log.replicates == {0: [1, 2]}
    again.tell(0, [71.2, 72.9, 70.8], "same")
    with pytest.raises(AlreadyToldError, match=r"has the reward \[71.2, 72.9, 70.8\], and now got \[71.2, 72.9\]"):
        again.tell(0, [71.2, 72.9], "same")


def test_replicates_are_amended_as_a_whole():
    opt = new()
    first, second = opt.ask(2)
    opt.tell(first, [1.0, 2.0, 3.0])
    opt.tell(second, 5.0)
    right = new()
    right.ask(2)
    right.tell(first, [1.0, 2.5, 3.0])
    right.tell(second, 5.0)
    opt.amend(first, [1.0, 2.5, 3.0])
    assert opt.to_dict() == right.to_dict()
    opt.amend(first, 4.0)
    assert opt.log.measurements(0) == (4.0,)
    assert opt.n_told == 2
    opt.amend(first, [4.0, 4.1, 4.2, 4.3])
    assert opt.log.measurements(0) == (4.0, 4.1, 4.2, 4.3)
    assert opt.log.replicates == {0: [2, 3, 5]} or opt.log.replicates == {0: [2, 3, 4]}
    opt.fail(first, "all of them", "amend")
    assert (opt.n_told, opt.log.failed, opt.log.measurements(0)) == (1, {0}, ())
    opt.amend(first, [1.0, 2.0])
    opt.retract(first)
    assert (opt.n_told, opt.log.measurements(0)) == (1, ())


def test_wrong_replicates_change_nothing():
    opt = new()
    trial = opt.ask()
    before = opt.to_dict()
    for reward, error, match in (
        ([], ValueError, "reward must be 1 to 1000 measurements, got 0"),
        ([1.0, np.nan], ValueError, "reward must be finite"),
        ([1.0, "x"], TypeError, "reward must be one real number"),
        (np.ones((2, 2)), TypeError, "reward must be one real number"),
    ):
        with pytest.raises(error, match=match):
            opt.tell(trial, reward)
    assert opt.to_dict() == before
    log = opt.log.state()
    with pytest.raises(ValueError, match="log\\['replicates'\\] must be pairs"):
        opt.resume(log | {"replicates": np.array([0, 0])}, opt._state())
