"""Contextual rounds in studies: many workers, restarts, late rewards and corrections, always the same bits."""

import json
import multiprocessing
import os
import signal

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp.algorithms.registry import algorithm_named
from alexp.study import ProblemMismatchError, check, create_study, load_study, logbook, replay as replay_module
from alexp.study.report import compromise_sentences

from .contextual import (
    ALGORITHMS,
    BLOCKS,
    NAMES,
    PER_ARM,
    SETTINGS,
    arms_study,
    ask,
    blocks_study,
    context,
    features,
    reward,
)


def whole(algorithm):
    return json.dumps(algorithm.to_dict())


def in_memory(algorithm, **settings):
    kind = algorithm_named(algorithm)
    return kind(BLOCKS, alexp.Candidates(), **(SETTINGS | settings))


# -- the same bits -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_two_workers_and_a_restart_play_as_one_run_in_memory(algorithm, storage):
    alone, late = in_memory(algorithm), []
    workers = [blocks_study(storage, algorithm=algorithm), load_study("s", storage)]
    for k in range(12):
        asker, teller = workers[k % 2], workers[(k + 1) % 2]
        expected, trial = ask(alone, k), ask(asker, k)
        assert (trial, trial.propensity) == (expected, expected.propensity)
        late.append(trial.id)
        if k % 3 == 2:  # the last one first, from the other worker, by its id
            for number in (late.pop(), late.pop(0)):
                alone.tell(number, reward(alone.trial(number)))
                teller.tell(number, reward(teller.trial(number)))
        if k == 7:
            workers[0].close()
            workers[0] = load_study("s", storage)
    for plate in (alone.ask(features=features(50), n=3), workers[0].ask(features=features(50), n=3)):
        assert len({trial.index for trial in plate}) == 3
    assert len(late) == 4
    assert whole(workers[0].algorithm) == whole(workers[1].algorithm) == whole(alone)
    assert whole(workers[0].replayed().algorithm) == whole(alone)
    assert check("s", storage).ok


def work(storage, worker, rounds, answers):
    study = load_study("s", storage)
    for k in range(rounds):
        trial = ask(study, 100 * worker + k)
        study.tell(trial, reward(trial))
    answers.put(worker)


@pytest.mark.parametrize("algorithm", ["evidence-mixture", "alexp"])
def test_many_processes_arrive_at_the_same_state(algorithm, storage):
    holder = blocks_study(storage, algorithm=algorithm)
    trial = ask(holder, 0)
    holder.tell(trial, reward(trial))
    fork, rounds = multiprocessing.get_context("fork"), 8
    answers = fork.Queue()
    workers = [fork.Process(target=work, args=(storage, w, rounds, answers)) for w in (1, 2, 3)]
    for worker in workers:
        worker.start()
    assert sorted(answers.get(timeout=120) for _ in workers) == [1, 2, 3]
    for worker in workers:
        worker.join()
    assert holder.counts == {"trials": 25, "told": 25, "pending": 0, "abandoned": 0}
    alone = in_memory(algorithm)
    frame, rewards = holder.log_frame(), holder.trials_dataframe()["reward"]
    for event in holder.events():
        if event["kind"] == "ask":
            number, _ = frame["ids"][event["trial"]][0].removeprefix("item ").split(".")
            assert ask(alone, int(number)).index == event["candidate"]
        else:
            alone.tell(event["trial"], float(rewards[event["trial"]]))
    assert whole(holder.algorithm) == whole(alone) == whole(holder.replayed().algorithm)


def die_with_a_trial(storage):
    study = load_study("s", storage)
    ask(study, 3)
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_trial_of_a_worker_that_was_killed_is_told_by_another(storage):
    study = blocks_study(storage)
    for k in range(3):
        trial = ask(study, k)
        study.tell(trial, reward(trial))
    process = multiprocessing.get_context("fork").Process(target=die_with_a_trial, args=(storage,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    (held,) = study.pending()
    assert held.id == 3
    assert held.n_candidates == 4
    load_study("s", storage).tell(held, reward(held))
    alone = in_memory("evidence-mixture")
    for k in range(4):
        trial = ask(alone, k)
        alone.tell(trial, reward(trial))
    assert whole(study.algorithm) == whole(alone)


def test_no_code_runs_again_for_trials_of_the_log(sqlite):
    calls = []

    def doses(patient, candidates):
        calls.append(patient)
        return patient["age"] * np.asarray(candidates)[:, None]

    maps = {"dose": doses, "square": lambda patient, candidates: np.asarray(candidates)[:, None] ** 2}
    models = alexp.ModelClass.from_maps(maps, contextual=True, example=({"age": 1.0}, [0.0, 1.0]))
    for algorithm in ("evidence-mixture", "alexp"):
        study = create_study(
            models, alexp.Candidates(), name=algorithm, storage=sqlite, algorithm=algorithm, **SETTINGS
        )
        other = load_study(algorithm, sqlite, models)
        calls.clear()
        for k in range(6):
            trial = study.ask(context={"age": 1.0 + k}, candidates=[0.1, 0.5, 0.9])
            assert trial.context == {"age": 1.0 + k}
            assert trial.x in (0.1, 0.5, 0.9)
            study.tell(trial, reward(trial))
        assert len(calls) == 6
        other.amend(2, 0.125)
        assert whole(study.algorithm) == whole(other.algorithm) == whole(other.replayed().algorithm)
        assert other.trial(3).context == {"age": 4.0}
        assert len(calls) == 6
    with pytest.raises(ProblemMismatchError, match="never stored; pass models="):
        load_study("alexp", sqlite)


def test_what_a_caller_does_with_his_objects_later_changes_nothing(sqlite):
    study = arms_study(sqlite, models=alexp.ModelClass.per_arm({"age": ["age"]}, arms=3))
    patient = {"age": 3.0, "tags": ("a", 1), "scan": np.arange(4.0)}
    trial = study.ask(context=patient)
    assert trial.context is patient
    patient["age"] = 7.0
    patient["scan"][0] = 9.0
    for known in (study.trial(0), load_study("s", sqlite).trial(0)):
        assert known.context["age"] == 3.0
        assert known.context["tags"] == ("a", 1)
        assert known.context["scan"].tolist() == [0.0, 1.0, 2.0, 3.0]


# -- corrections, observations, arms -----------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["evidence-mixture", "alexp"])
def test_amended_and_retracted_rewards_leave_nothing_behind(algorithm, storage):
    study, other, alone = blocks_study(storage, algorithm=algorithm), load_study("s", storage), in_memory(algorithm)
    for subject in (study, alone):
        for k in range(6):
            trial = ask(subject, k)
            subject.tell(trial, 1.5 if k == 2 else reward(trial))
        subject.amend(2, 0.25)
        subject.retract(4)
    for k in range(6, 9):
        assert ask(other, k) == ask(alone, k)
    other.abandon(7)
    alone.abandon(7)
    assert whole(study.algorithm) == whole(alone) == whole(other.replayed().algorithm)


def test_observations_come_with_their_rounds_and_propensities(storage):
    study, alone = arms_study(storage), alexp.EvidenceMixture(PER_ARM, alexp.Arms(NAMES), **SETTINGS)
    for subject in (study, alone):
        seen = subject.observe("high", 0.5, context=context(0), propensity=0.25)
        assert (seen.index, seen.x, seen.propensity, seen.n_candidates) == (2, "high", 0.25, 3)
        subject.observe(0, 0.75, context=context(1))
    rows = {"index": ["low", "middle"], "reward": [0.5, 0.0], "context": [context(2), context(3)]}
    frame = pd.DataFrame(rows | {"propensity": [0.5, np.nan]})
    assert study.add_observations(frame)[0].propensity == 0.5
    for k, (index, value, chance) in enumerate(zip(rows["index"], rows["reward"], [0.5, None], strict=True)):
        alone.observe(index, value, context=rows["context"][k], propensity=chance)
    trial = study.ask(context=context(4))
    assert trial == alone.ask(context=context(4))
    assert whole(load_study("s", storage).algorithm) == whole(alone)
    assert study.trials_dataframe()["state"].tolist() == [*(4 * ["observed"]), "pending"]
    with pytest.raises(ValueError, match=r"row 1: context= is missing"):
        study.add_observations(frame.drop(columns="context").assign(context=[context(0), None]))
    with pytest.raises(ValueError, match="columns 'index' and 'reward'"):
        study.add_observations(frame.drop(columns="index"))
    assert study.counts["told"] == 4


def test_a_log_with_all_features_can_be_observed_by_another_study(sqlite):
    first = blocks_study(sqlite, log_features="all")
    for k in range(5):
        trial = ask(first, k)
        first.tell(trial, reward(trial))
    second = blocks_study(sqlite, "second", random_state=9)
    second.add_observations(first.log_frame())
    assert np.array_equal(second.probabilities, first.probabilities)
    assert second.log_frame()["propensity"].tolist() == first.log_frame()["propensity"].tolist()
    third, fourth = arms_study(sqlite, "third", log_features="all"), arms_study(sqlite, "fourth", random_state=9)
    third.tell(third.ask(context=context(0), available=["low", "high"]), 0.5)
    fourth.add_observations(third.log_frame())
    assert np.array_equal(fourth.probabilities, third.probabilities)


@pytest.mark.parametrize(
    ("algorithm", "log_features"), [("evidence-mixture", "chosen"), ("evidence-mixture", "all"), ("alexp", "chosen")]
)
def test_arms_are_added_for_all_workers(storage, algorithm, log_features, monkeypatch):
    study = arms_study(storage, algorithm=algorithm, log_features=log_features)
    other, arms = load_study("s", storage), alexp.Arms(NAMES)
    alone = algorithm_named(algorithm)(PER_ARM, arms, log_features=log_features, **SETTINGS)
    for k in range(5):
        trial = study.ask(context=context(k))
        assert alone.ask(context=context(k)) == trial
        study.tell(trial, reward(trial))
        alone.tell(trial.id, reward(trial))
    assert study.add_arm("extreme", key="fourth") == 3
    assert other.add_arm("extreme", key="fourth") == 3
    arms.add("extreme")
    for k in range(5, 9):
        trial = (study, other)[k % 2].ask(context=context(k))
        assert alone.ask(context=context(k)) == trial
        assert trial.n_candidates == 4
        study.tell(trial, reward(trial))
        alone.tell(trial.id, reward(trial))
    other.amend(2, 0.125)
    alone.amend(2, 0.125)
    study.refresh()
    study.close()
    opened = load_study("s", storage)
    with monkeypatch.context() as patched:
        patched.setattr(logbook, "read", None)  # the snapshot knows the arms; nothing of the log is needed
        assert opened.counts["trials"] == 9
    assert whole(opened.algorithm) == whole(alone) == whole(opened.replayed().algorithm) == whole(other.algorithm)
    assert opened.algorithm.domain.names == (*NAMES, "extreme")
    assert check("s", storage).ok
    with pytest.raises(ValueError, match="there is an arm 'extreme' already"):
        study.add_arm("extreme")
    with pytest.raises(ValueError, match="for another arm"):
        study.add_arm("other", key="fourth")
    blocks_study(storage, "blocks")
    with pytest.raises(TypeError, match="arms are added to a domain of alexp.Arms"):
        load_study("blocks", storage).add_arm("x")


def test_a_worker_who_has_not_heard_of_a_new_arm_plays_it(sqlite):
    study, asker, observer = arms_study(sqlite), load_study("s", sqlite), load_study("s", sqlite)
    assert asker.counts["trials"] == observer.counts["trials"] == 0  # both know three arms
    first = study.ask(context=context(7), key="first")
    study.add_arm("extreme")
    assert study.ask(context=context(7), key="first") == first
    assert asker.ask(context=context(0)).n_candidates == 4
    assert observer.observe("low", 0.5, context=context(1)).n_candidates == 4
    assert whole(study.algorithm) == whole(asker.algorithm) == whole(observer.algorithm)


def test_arms_of_the_caller_are_his_own(sqlite):
    arms = alexp.Arms(NAMES)
    study = create_study(PER_ARM, arms, name="s", storage=sqlite, **SETTINGS)
    arms.add("extreme")
    assert study.ask(context=context(0)).n_candidates == 3
    with pytest.raises(ProblemMismatchError, match="the arms differ; pass only the arms of its creation"):
        load_study("s", sqlite, domain=alexp.Arms(["low", "high", "middle"]))


# -- asking ------------------------------------------------------------------------------------------------------


def test_contexts_at_once_names_and_answers(storage):
    study, alone = arms_study(storage), alexp.EvidenceMixture(PER_ARM, alexp.Arms(NAMES), **SETTINGS)
    contexts = np.array([context(k) for k in range(3)])
    trials = study.ask(3, context=contexts)
    assert trials == alone.ask(3, context=contexts)
    assert [np.array_equal(trial.context, row) for trial, row in zip(trials, contexts, strict=True)] == 3 * [True]
    for trial in trials:
        study.tell(trial, reward(trial))
        alone.tell(trial, reward(trial))
    some = {"context": context(5), "available": ["low", "high"]}
    chances = study.policy(**some)
    assert np.array_equal(chances, alone.policy(**some))
    assert chances[1] == 0.0
    assert study.best(**some) == alone.best(**some)
    assert str(study.stop_report(context=context(5))) == str(alone.stop_report(context=context(5)))
    band = study.confidence(context=context(5))
    assert np.array_equal(band.lower, alone.confidence(context=context(5)).lower)
    assert study.ask(**some) == alone.ask(**some)
    assert (
        study.log_frame()
        .drop(columns=["context", "available"])
        .equals(alone.log_frame().drop(columns=["context", "available"]))
    )
    assert study.log_frame()["available"][3].tolist() == [0, 2]
    with pytest.raises(ValueError, match="context= is missing"):
        study.ask()
    with pytest.raises(ValueError, match="context= is missing"):
        study.best()
    with pytest.raises(ValueError, match="at most the 3 candidates to choose from when distinct, got 4"):
        study.ask(4, context=context(1), distinct=True)
    assert study.counts["trials"] == 4


def test_a_fixed_study_takes_no_context(sqlite):
    study = create_study(alexp.ModelClass.legendre(3, 2), alexp.Interval(resolution=9), name="s", storage=sqlite)
    with pytest.raises(ValueError, match="for contextual domains"):
        study.ask(context=1.0)
    with pytest.raises(ValueError, match="for contextual domains"):
        study.observe(0, 1.0, context=1.0)
    assert study.observe(3, 0.5).index == 3
    assert study.counts["told"] == 1


def test_a_call_with_a_key_happens_once(storage):
    study = blocks_study(storage)
    trial = ask(study, 0, key="request 17")
    assert ask(load_study("s", storage), 0, key="request 17") == trial
    assert study.counts["trials"] == 1
    with pytest.raises(ValueError, match="another context or other features"):
        ask(study, 1, key="request 17")
    seen = study.observe(1, 0.5, features=features(3), key="seen")
    assert study.observe(1, 0.5, features=features(3), key="seen").id == seen.id
    assert study.counts["trials"] == 2


def test_candidates_that_were_measured_are_not_proposed_again_by_anybody(storage):
    study = blocks_study(storage, repeats=False)
    with pytest.raises(ValueError, match="needs ids="):
        study.ask(features=features(0))
    played = {study.ask(features=features(0), ids=list("abcd")).x for _ in range(2)}
    played |= {trial.x for trial in load_study("s", storage).ask(2, features=features(0), ids=list("abcd"))}
    assert played == set("abcd")
    with pytest.raises(ValueError, match="n must be at most 0"):
        study.ask(features=features(0), ids=list("abcd"))


def test_an_expired_trial_stays_with_its_context(storage, monkeypatch):
    study = blocks_study(storage)
    monkeypatch.setenv("ALEXP_WORKER", "first")
    lost = ask(study, 0, lease=1e-3)
    monkeypatch.setenv("ALEXP_WORKER", "second")
    assert ask(study, 1).id == 1  # a new trial, in its own round
    assert [trial.expired for trial in study.pending()] == [True, False]
    (taken,) = study.take_over(lease=60.0)
    assert taken == lost
    assert study.pending()[0].worker == "second"
    strict = blocks_study(storage, "strict", expired="abandon")
    ask(strict, 0, lease=1e-3)
    ask(strict, 1)
    assert strict.counts == {"trials": 2, "told": 0, "pending": 1, "abandoned": 1}
    assert [event["kind"] for event in strict.events()] == ["ask", "abandon", "ask"]


def test_long_logs_are_read_in_parts_by_their_size(storage, monkeypatch):
    study = blocks_study(storage, log_features="all")
    for k in range(6):
        trial = ask(study, k)
        study.tell(trial, reward(trial))
    monkeypatch.setattr(logbook, "_FEW", 0)
    monkeypatch.setattr(logbook, "_MOST_BYTES", 900)  # about two asks
    read, parts = logbook.read, []

    def counted(connection, number, start, stop):
        parts.append(stop - start)
        return read(connection, number, start, stop)

    monkeypatch.setattr(logbook, "read", counted)
    assert whole(load_study("s", storage).algorithm) == whole(study.algorithm)
    assert sum(parts) == 12
    assert 3 <= len(parts) <= 6
    assert len(study.beliefs()) == 6
    assert len(study.pending()) == 0
    monkeypatch.setattr(logbook, "_MOST_BYTES", 1)  # less than any: one by one
    assert whole(study.replayed().algorithm) == whole(study.algorithm)


def test_snapshots_hold_pending_rounds(storage, monkeypatch):
    monkeypatch.setattr(replay_module, "REPLAY_EVENTS", 4)
    study = blocks_study(storage, algorithm="alexp")
    for k in range(6):
        trial = ask(study, k)
        if k % 2:
            study.tell(trial, reward(trial))
    assert study.refresh().snapshot_at >= 8
    opened = load_study("s", storage)
    assert [trial.id for trial in opened.pending()] == [0, 2, 4]
    for trial in opened.pending():
        opened.tell(trial, reward(trial))
    assert whole(opened.algorithm) == whole(study.algorithm) == whole(study.replayed().algorithm)


# -- budgets and half-lives --------------------------------------------------------------------------------------

BUDGET = {"cost": (0.1, 1.0, 3.0), "budget": 0.8, "noise_std": None, "norm_bound": None}


@pytest.mark.parametrize("settings", [BUDGET, BUDGET | {"log_features": "all"}, {"forget": (0.9, 1.0)}])
def test_budgets_and_half_lives_play_as_one_run_in_memory(storage, settings):
    settings = SETTINGS | settings
    alone = alexp.EvidenceMixture(PER_ARM, alexp.Arms(NAMES), **settings)
    workers = [arms_study(storage, **settings), load_study("s", storage)]
    for k in range(25):
        expected, trial = alone.ask(context=context(k)), workers[k % 2].ask(context=context(k))
        assert (trial, trial.propensity) == (expected, expected.propensity)
        if k % 3:  # every third reward never comes, and is given up by the other worker
            alone.tell(k, reward(expected))
            workers[(k + 1) % 2].tell(k, reward(trial))
        else:
            alone.abandon(k)
            workers[(k + 1) % 2].abandon(k)
    again = load_study("s", storage)
    plates = [one.ask(4, context=np.array([context(90 + k) for k in range(4)])) for one in (alone, again)]
    assert plates[0] == plates[1]
    assert whole(again.algorithm) == whole(alone)
    assert check("s", storage).ok
    if "budget" in settings:
        money = again.view().money
        assert (money.spent, money.budget) == (alone.spent, pytest.approx(0.8 * 29))
        assert money.spent <= money.budget
        assert f"Spent: {money.spent:.6g} of a budget of 23.2;" in " ".join(compromise_sentences(again.view()))
        with pytest.raises(ValueError, match="an added arm has none"):
            again.add_arm("new")


def test_rounds_that_cannot_be_paid_are_not_recorded(storage):
    models = alexp.ModelClass.from_blocks({"user": 2, "price": 1})
    study = create_study(
        models, alexp.Candidates(), name="s", storage=storage, cost="price", budget=1.0, random_state=0
    )
    rows = np.array([[0.1, 0.2, 0.5], [0.3, 0.4, 5.0]])
    trial = study.ask(features=rows)
    assert (trial.index, trial.propensity) == (0, 1.0)
    n_events = study.view().n_events
    with pytest.raises(ValueError, match="this round costs 5 at least"):
        study.ask(features=rows, available=[1])
    assert study.view().n_events == n_events
    study.tell(trial, 1.0)
    assert load_study("s", storage).algorithm.spent == 0.5


# -- feedback that comes late, in parts, or not at all -----------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["evidence-mixture", "alexp"])
def test_rewards_after_their_trial_was_given_up(storage, algorithm):
    study, alone = blocks_study(storage, algorithm=algorithm), in_memory(algorithm)
    for one in (study, alone):
        for k in range(6):
            ask(one, k)
        for k in (5, 0, 2):
            one.tell(k, reward(one.trial(k)))
        one.abandon(1)
        one.abandon(3)
        one.tell(3, 0.25, if_told="amend")  # feedback after the deadline
        one.tell(3, 0.25, if_told="amend")  # sent twice
        one.tell(4, 0.1)
        one.tell(4, 0.6, if_told="amend")  # first in part, then whole
    assert (alone.log.reward[3], alone.log.reward[4]) == (0.25, 0.6)
    assert (alone.n_told, alone.log.abandoned, list(alone.log.pending)) == (5, {1}, [])
    again = load_study("s", storage)
    assert whole(again.algorithm) == whole(study.algorithm) == whole(alone)
    assert check("s", storage).ok
    assert again.counts["abandoned"] == 1
    with pytest.raises(alexp.AbandonedTrialError, match=r"amend\(1, reward\)"):
        again.tell(1, 0.5)
    for one in (again, alone):
        one.amend(1, 0.3)
        one.retract(1)
        one.retract(3)
    assert whole(load_study("s", storage).algorithm) == whole(again.algorithm) == whole(alone)
    assert alone.log.retracted == {1, 3}
    assert ask(again, 9) == ask(alone, 9)


def test_pending_rounds_for_ever_change_no_propensity_of_matching():
    """Only rewards teach: feedback that never comes leaves the default rule as it is."""
    some, none = (in_memory("evidence-mixture", noise_std=None, norm_bound=None) for _ in range(2))
    for k in range(40):
        for one in (some, none):
            trial = ask(one, k)
            if k % 4 == 0:
                one.tell(trial, reward(trial))
            elif one is none:
                one.abandon(trial)
    assert len(some.log.pending) == 30
    assert some.policy(features=features(99)).tolist() == none.policy(features=features(99)).tolist()
