"""Studies that are decided on a device: the log says so, and whoever has none takes decisions from it."""

import numpy as np
import pytest
import sqlalchemy as sa

import alexp
from alexp.extend import Certain
from alexp.study import check, create_study, load_study
from alexp.study.events import decompress
from alexp.study.storage import events
from tests.gpu.libraries import ARRAY_API, somewhere

pytestmark = ARRAY_API

RNG = np.random.default_rng(0)
TABLES = {"a": RNG.standard_normal((50, 20)).astype(np.float32), "b": RNG.standard_normal((50, 24)).astype(np.float32)}
DOMAIN = alexp.FiniteSet(np.arange(50))


def models(device=None):
    return alexp.ModelClass.from_matrices(TABLES, device=device)


def play(study, rounds):
    trials = [study.ask() for _ in range(rounds)]
    for trial in trials:
        study.tell(trial, float(np.cos(trial.index)))
    return [trial.index for trial in trials]


def logged(study):
    return study.refresh().algorithm.trials_dataframe()


@pytest.fixture
def begun(sqlite):
    """A study that was begun on a card: its address and its log."""
    with create_study(models(somewhere()), DOMAIN, name="s", storage=sqlite, random_state=0) as study:
        play(study, 3)
        play(study, 2)
        return sqlite, logged(study)


def wrong(*_):
    raise AssertionError("there is nothing to decide again")


def test_the_log_says_what_was_decided_and_on_what(begun):
    with sa.create_engine(begun[0]).connect() as connection:
        query = sa.select(events.c.detail).where(events.c.kind == "ask").order_by(events.c.seq)
        decided = [decompress(detail)["decided"] for detail in connection.execute(query).scalars()]
    assert decided == [{"on": "Some GPU", "told": t} for t in (0, 0, 0, 3, 3)]


def test_a_follower_without_the_card_takes_decisions_from_the_log(begun, monkeypatch):
    study = load_study("s", begun[0], models(), DOMAIN)
    assert study.refresh().algorithm.decides_on is None
    with monkeypatch.context() as patch:
        patch.setattr(alexp.EvidenceMixture, "_decide", wrong)
        again = study.replayed()
    assert again.taken == {"Some GPU": 5}
    assert again.algorithm.trials_dataframe().equals(begun[1])
    assert logged(study).equals(begun[1])
    report = check("s", begun[0], models(), DOMAIN)
    assert report.ok
    assert str(report).endswith("all is well; 5 decisions made on Some GPU, taken from the log and not made again")


def test_it_goes_on_without_the_card_and_back_on_it(begun):
    with load_study("s", begun[0], models(), DOMAIN) as study:
        play(study, 2)
        assert study.replayed().taken == {"Some GPU": 5}
    with load_study("s", begun[0], models(somewhere()), DOMAIN) as study:
        play(study, 1)
        known = logged(study)
        assert study.replayed().taken == {"the CPU": 2}
        assert study.replayed().algorithm.trials_dataframe().equals(known)
    assert check("s", begun[0]).taken == {"Some GPU": 6}  # with the tables that are stored
    assert load_study("s", begun[0]).best() is not None


def test_the_same_device_decides_again_and_a_difference_is_noticed(begun, monkeypatch):
    study = load_study("s", begun[0], models(somewhere()), DOMAIN)
    assert study.replayed().taken == {}
    monkeypatch.setattr(type(study.algorithm.rule), "play", lambda self, belief, round: Certain(7))
    with pytest.raises(alexp.study.ReplayError, match="but replaying gives"):
        study.replayed()


def test_another_device_does_not_decide_again(begun):
    study = load_study("s", begun[0], models(somewhere("Another GPU")), DOMAIN)
    assert study.replayed().taken == {"Some GPU": 5}
