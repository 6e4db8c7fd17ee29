"""A remote study does what a study does: the same calls on both, through a real server, on both storages."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa

import alexp
from alexp import ope
from alexp.study import (
    LeaseError,
    Storage,
    StudyExistsError,
    StudyNotFoundError,
    check,
    create_study,
    load_study,
)
from tests.adversarial.fleet import Server

INTERVAL = {
    "kind": "interval",
    "lower": -1.0,
    "upper": 1.0,
    "resolution": 21,
    "models": {"family": "legendre", "degree": 3, "size": 2},
}
TABLE = pd.DataFrame(
    {
        "name": [f"m{i}" for i in range(12)],
        "mass": np.linspace(1.0, 2.0, 12),
        "charge": np.tile([0.5, -0.5, 1.5], 4),
    }
)
SETS = {"mass": ["mass"], "charge": ["charge"]}


def new_database(server, name):
    """URL of an empty database."""
    url = sa.make_url(server)
    admin = sa.create_engine(url.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    admin.dispose()
    return url.set(database=name).render_as_string(hide_password=False)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def place(request, tmp_path_factory):
    """A storage with a server at it: (URL of the storage, address of the server)."""
    storage = f"sqlite:///{tmp_path_factory.mktemp('service') / 'studies.db'}"
    if request.param == "postgres":
        storage = new_database(request.getfixturevalue("server"), f"served{os.getpid()}")
    server = Server(storage).wait()
    yield storage, server.url
    server.stop()


@pytest.fixture
def client(place):
    with alexp.Client(place[1]) as client:
        yield client


@pytest.fixture
def name(request):
    return request.node.name


def interval(client, name, **options):
    return client.create(name=name, problem=INTERVAL, **{"random_state": 5, "noise_std": 0.1} | options)


def twin(**options):
    models, domain = alexp.ModelClass.legendre(degree=3, size=2), alexp.Interval(-1.0, 1.0, resolution=21)
    return alexp.EvidenceMixture(models, domain, **{"random_state": 5, "noise_std": 0.1} | options)


def reward(trial):
    return float(np.cos(trial.index / 3.0) + 0.1 * np.sin(37.0 * trial.id))


def play(*subjects, rounds=6):
    for _ in range(rounds):
        trials = [subject.ask() for subject in subjects]
        assert all(trial == trials[0] for trial in trials)
        for subject, trial in zip(subjects, trials, strict=True):
            subject.tell(trial, reward(trial))


def test_it_plays_like_the_algorithm_in_memory(client, name, place):
    study, plain = interval(client, name), twin()
    play(study, plain)
    assert type(study.ask()) is alexp.Trial
    plain.ask()
    assert study.probabilities.tolist() == plain.probabilities.tolist()
    assert study.progress is None
    assert study.policy().tolist() == plain.policy().tolist()
    assert study.best() == plain.best()
    assert study.counts == {"trials": 7, "told": 6, "pending": 1, "abandoned": 0}
    own = load_study(name, place[0])
    pd.testing.assert_frame_equal(study.trials_dataframe(), own.trials_dataframe())
    pd.testing.assert_frame_equal(study.log_frame(), own.log_frame())
    assert study.events() == own.events()
    assert study.events(since=3, limit=4) == own.events(since=3, limit=4)
    assert study.events(since=99) == []
    assert study.trial(2) == own.trial(2)
    assert {event["worker"] for event in own.events()} == {f"{os.uname().nodename}:{os.getpid()}"}
    assert check(name, place[0]).problems == []


def test_plates_and_rewards_out_of_order(client, name, place):
    study, plain = interval(client, name), twin()
    plate, same = study.ask(4, available=[1, 5, 9, 13, 17]), plain.ask(4, available=[1, 5, 9, 13, 17])
    assert plate == same
    assert study.tell_many([(trial, reward(trial)) for trial in plate[::-1]]) == (4, 0, 0)
    for trial in same[::-1]:
        plain.tell(trial, reward(trial))
    assert study.tell_many({"0": reward(plate[0]), "1": 0.25}, if_told="amend") == (0, 1, 1)
    plain.amend(1, 0.25)
    study.retract("#2")
    plain.retract(2)
    study.amend(2, 0.75)
    plain.amend(2, 0.75)
    trial, _ = study.ask(), plain.ask()
    study.abandon(trial)
    plain.abandon(trial)
    frame = pd.DataFrame({"index": [3, 4], "reward": [0.5, np.float32(0.25)]})
    assert [trial.id for trial in study.add_observations(frame)] == [5, 6]
    assert study.observe(7, 0.125).id == 7
    for index, value in ((3, 0.5), (4, 0.25), (7, 0.125)):
        plain.observe(index, value)
    assert study.probabilities.tolist() == plain.probabilities.tolist()
    states = study.trials_dataframe()["state"].tolist()
    assert states == ["told"] * 4 + ["abandoned"] + ["observed"] * 3
    assert check(name, place[0]).problems == []


def test_errors_are_those_of_a_study(client, name):
    study = interval(client, name)
    with pytest.raises(RuntimeError, match="reward"):
        study.best()
    trial = study.ask()
    study.tell(trial, 0.5)
    study.tell(trial, 0.5, if_told="same")
    with pytest.raises(alexp.AlreadyToldError, match="already has the reward"):
        study.tell(trial, 0.5)
    with pytest.raises(alexp.UnknownTrialError, match="there is no trial 9"):
        study.tell(9, 0.5)
    with pytest.raises(alexp.UnknownTrialError):
        study.trial(9)
    other = study.ask()
    with pytest.raises(alexp.NotToldError):
        study.amend(other, 0.5)
    study.abandon(other)
    with pytest.raises(alexp.AbandonedTrialError):
        study.tell(other, 0.5)
    with pytest.raises(alexp.NotCertified):
        study.plausible_models()
    with pytest.raises(ValueError, match="available"):
        study.ask(available=[999])
    with pytest.raises(ValueError, match="if_told"):
        study.tell(trial, 0.5, if_told="never")
    with pytest.raises(StudyExistsError):
        interval(client, name)
    with pytest.raises(StudyExistsError, match="noise_std"):
        interval(client, name, load_if_exists=True, noise_std=0.2)
    assert interval(client, name, load_if_exists=True).counts == study.counts
    with pytest.raises(StudyNotFoundError, match="there is no study"):
        client.study("nobody knows it")
    with pytest.raises(ValueError, match="kind"):
        client.create(name="other", problem={"kind": "sphere"})
    with pytest.raises(ValueError, match="noise_std"):
        interval(client, "other", noise_std=-1.0)
    assert study.counts == {"trials": 2, "told": 1, "pending": 0, "abandoned": 1}


def test_failed_experiments(client, name):
    study = interval(client, name)
    trials = study.ask(3)
    study.fail(trials[0], "vial broke", key="k")
    study.fail(trials[0], "vial broke", key="k")
    assert study.tell_many([(trials[1], "failed"), (trials[2], 0.5)]) == (2, 0, 0)
    assert study.counts == {"trials": 3, "told": 1, "pending": 0, "abandoned": 0, "failed": 2}
    assert study.trials_dataframe()["state"].tolist() == ["failed", "failed", "told"]
    with pytest.raises(alexp.AlreadyToldError, match="already has the reward"):
        study.fail(trials[2])
    study.amend(trials[0], 0.1)
    assert study.counts["failed"] == 1
    assert trials[1].index not in [trial.index for trial in study.ask(5)]


def test_several_objectives_cost_and_budget(client, name):
    import pandas as pd

    frame = pd.DataFrame({"id": list("ABCDE"), "mass": [1, 2, 3, 4, 5], "price": [2.0, 3.0, 4.0, 5.0, 6.0]})
    aims = {"yield": "maximize", "waste": "minimize"}
    study = client.create(frame, name=name, objectives=aims, cost="price", budget=20.0, random_state=1)
    own = alexp.EvidenceMixture(
        alexp.Table.from_frame(frame), objectives=aims, cost="price", budget=20.0, random_state=1
    )
    for trial, twin_trial in zip(study.ask(3), own.ask(3), strict=True):
        assert trial.index == twin_trial.index
        value = {"yield": 10.0 * trial.index, "waste": 1.0 + trial.index}
        study.tell(trial, value)
        own.tell(twin_trial, value)
    study.amend(0, {"yield": 5.0, "waste": 0.5})
    own.amend(0, {"yield": 5.0, "waste": 0.5})
    front, right = study.pareto(), own.pareto()
    for column in ("id", "index", "yield", "waste"):
        assert front[column].tolist() == right[column].tolist()
    assert study.trials_dataframe()["waste"].tolist() == own.trials_dataframe()["waste"].tolist()
    with pytest.raises(ValueError, match="reward lacks 'waste'"):
        study.tell(study.ask(), {"yield": 3.0})
    with pytest.raises(ValueError, match="no single best candidate"):
        study.best()
    study.observe(study.ask().index, {"yield": 3.0, "waste": 3.0})


def test_replicates(client, name):
    study = interval(client, name)
    first, second = study.ask(2)
    study.tell(first, [0.1, 0.2], note="cloudy")
    study.tell_many([(second, [0.3, 0.4, 0.5])])
    assert study.counts["told"] == 5
    study.amend(first, 0.1)
    assert study.counts["told"] == 4
    with pytest.raises(ValueError, match="results by name are for a table of candidates"):
        study.tell("water", 0.3)


def test_what_an_algorithm_does_not_have(client, name):
    study = interval(client, name, algorithm="uniform", noise_std=None)
    with pytest.raises(AttributeError, match="no probabilities"):
        _ = study.probabilities


def test_keys(client, name):
    study = interval(client, name)
    plate = study.ask(3, key="monday")
    assert study.ask(3, key="monday") == plate
    for _ in range(2):
        study.tell(plate[0], 0.5, key="A1")
    with pytest.raises(ValueError, match="key"):
        study.tell(plate[1], 0.5, key="A1")
    assert study.counts == {"trials": 3, "told": 1, "pending": 2, "abandoned": 0}


def test_a_slip_of_the_pen_is_taken_in_with_a_warning(client, name):
    study = interval(client, name, noise_std=None)
    play(study)
    trial = study.ask()
    with pytest.warns(alexp.AssumptionWarning, match="far outside") as caught:
        study.tell(trial, 7240.0)
    (said,) = [one for one in caught if one.category is alexp.AssumptionWarning]
    assert said.filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", alexp.AssumptionWarning)
        study.amend(trial, 0.724)
    assert study.trials_dataframe()["reward"].iloc[-1] == 0.724


@pytest.mark.parametrize("stated", [{"reward_bound": 2.0}, {"noise_std": None, "noise": "gaussian"}])
def test_certificates(client, name, place, stated):
    study = interval(client, name, **stated)
    play(study)
    own = load_study(name, place[0])
    for mine, theirs in (
        (study.stop_report(epsilon=0.5), own.stop_report(epsilon=0.5)),
        (study.check_models(0.1), own.check_models(0.1)),
    ):
        assert str(mine) == str(theirs)
        assert {key: np.asarray(value).tolist() for key, value in vars(mine).items()} == {
            key: np.asarray(value).tolist() for key, value in vars(theirs).items()
        }
    if own.stop_report(0.1).certified:
        assert study.plausible_models(0.1).tolist() == own.plausible_models(0.1).tolist()


def test_leases(client, name, monkeypatch):
    study = interval(client, name)
    monkeypatch.setenv("ALEXP_WORKER", "robot-1")
    mine = study.ask(2, lease=600.0)
    study.heartbeat(mine, lease=900.0)
    (first, second), free = study.pending(), study.ask()
    assert (first, second) == tuple(mine)
    assert (first.worker, first.expired) == ("robot-1", False)
    assert 600.0 < first.lease <= 900.0
    assert study.pending()[-1].lease is None
    monkeypatch.setenv("ALEXP_WORKER", "robot-2")
    with pytest.raises(LeaseError, match="robot-1"):
        study.take_over(mine[0], lease=60.0)
    with pytest.raises(LeaseError, match="robot-1"):
        study.heartbeat(mine)
    monkeypatch.setenv("ALEXP_WORKER", "robot-1")
    study.heartbeat(mine, lease=0.001)
    monkeypatch.setenv("ALEXP_WORKER", "robot-2")
    time.sleep(0.01)
    assert study.ask(1, lease=60.0) == mine[:1]  # what has expired comes first
    assert study.take_over(lease=60.0) == mine[1:]
    assert study.take_over(free, lease=60.0) == [free]
    assert study.ask(lease=60.0).id == 3
    assert {one.worker for one in study.pending()} == {"robot-2"}


def test_tables(client, name, tmp_path, place):
    study = client.create(TABLE, SETS, name=name, random_state=1)
    TABLE.to_csv(tmp_path / "table.csv", index=False)
    np.save(tmp_path / "mass.npy", TABLE[["mass"]].to_numpy())
    TABLE[["name", "charge"]].sample(frac=1.0, random_state=0).to_csv(tmp_path / "charge.csv", index=False)
    files = {"mass": tmp_path / "mass.npy", "charge": str(tmp_path / "charge.csv")}
    other = client.create(tmp_path / "table.csv", files, name=f"{name}, files", random_state=1)
    arrays = {"mass": TABLE[["mass"]].to_numpy(), "charge": TABLE[["charge"]]}
    third = client.create(TABLE, arrays, name=f"{name}, arrays", random_state=1)
    for _ in range(5):
        trials = [one.ask() for one in (study, other, third)]
        assert trials[0] == trials[1] == trials[2]
        assert trials[0].x == TABLE.iloc[trials[0].index].to_dict()
        for one, trial in zip((study, other, third), trials, strict=True):
            one.tell(trial, trial.x["mass"] + 0.01 * trial.id)
    assert study.best().x["name"] in set(TABLE["name"])
    study.add_observations(pd.DataFrame({"name": ["m3"], "reward": [1.3]}))
    assert study.info()["columns"] == ["name", "mass", "charge"]
    path = study.export(tmp_path / "out" / "trials.csv")
    exported = pd.read_csv(path, float_precision="round_trip")
    assert exported["reward"].tolist() == load_study(name, place[0]).trials_dataframe()["reward"].tolist()
    page = study.report(tmp_path / "report.html")
    assert "<html" in page.read_text(encoding="utf-8")
    assert name.split("[")[0] in page.read_text(encoding="utf-8")
    kernels = client.create(TABLE, SETS, name=f"{name}, kernels", kernels={"mass": "matern", "charge": "linear"})
    assert kernels.ask().id == 0


def test_candidates_are_added(client, name, tmp_path):
    first = pd.DataFrame({"id": ["a", "b", "c"], "x": [1.0, 2.0, 3.0], "base": ["K", "Na", "K"]})
    more = pd.DataFrame({"id": ["d", "e"], "x": [1.5, 2.5], "base": ["Na", "Cs"]})
    study = client.create(first, {"more": np.eye(3)}, name=name, random_state=0)
    with pytest.warns(UserWarning, match="column 'base': new here: 'Cs'"):
        assert study.add_candidates(more, {"more": np.ones((2, 3))}, key="k") == [3, 4]
    assert study.add_candidates(more, {"more": np.ones((2, 3))}, key="k") == [3, 4]
    assert study.info()["n_candidates"] == 5
    assert {trial.x["id"] for trial in study.ask(5)} == set("abcde")
    path = tmp_path / "one.csv"
    path.write_text("id;x;base\nf;0,5;K\n")
    with pytest.raises(ValueError, match="the description 'more', and the new ones need it as well"):
        study.add_candidates(path)
    assert study.add_candidates(path, {"more": np.zeros((1, 3))}, reading={"decimal": ","}) == [5]


def test_old_campaigns_are_learned_from(client, name, tmp_path):
    first = pd.DataFrame({"id": list("abcdef"), "x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]})
    old = first.assign(reward=[1.0, 4.0, 9.0, 16.0, 20.0, None])
    study = client.create(first, name=name, memory={"2023": old}, random_state=0)
    path = tmp_path / "older.csv"
    path.write_text("id;yield\na;3,5\nc;2,5\nf;0,5\n")
    for _ in range(2):
        study.learn_from({"2022": path}, reward="yield", key="k")
    trial = study.ask()
    study.tell(trial, float(trial.x["x"]))
    standing = study.view()["standing"]
    assert [one["name"] for one in standing["memories"]] == ["2023", "2022"]
    assert "the models of '2023' had" in standing["memories"][0]["sentence"]
    with pytest.raises(ValueError, match="there is a memory or description '2022' already"):
        study.learn_from({"2022": path}, reward="yield")


def test_boxes(client, name):
    models = {"family": "polynomial", "degree": 2, "size": 3}
    problem = {"kind": "box", "lower": [0.0, 0.0], "upper": [1.0, 2.0], "resolution": 30, "models": models}
    study = client.create(name=name, problem=problem, random_state=1)
    trial = study.ask()
    assert isinstance(trial.x, np.ndarray)
    study.tell(trial, float(trial.x @ np.ones(2)))
    assert study.best().x.shape == (2,)


def test_contexts(client, name, place):
    study = client.create(
        name=name,
        problem={"kind": "arms", "arms": ["low", "high"], "features": {"both": [0, 1], "first": [0]}},
        random_state=3,
        noise_std=0.1,
    )
    rng = np.random.default_rng(0)
    for _ in range(4):
        context = rng.standard_normal(2)
        trial = study.ask(context=context)
        assert trial.context is context
        assert trial.x in ("low", "high")
        study.tell(trial, float(context[0]) * (1.0 if trial.x == "high" else -1.0))
    own = load_study(name, place[0])
    assert study.policy(context=[0.5, 0.5]).tolist() == own.policy(context=np.array([0.5, 0.5])).tolist()
    assert study.best(context=[0.5, 0.5]).x == own.best(context=np.array([0.5, 0.5])).x
    assert study.observe("low", 0.25, context=[0.1, 0.2], propensity=0.5).propensity == 0.5
    assert study.add_arm("middle") == 2
    assert study.info()["arms"] == ["low", "high", "middle"]
    fresh = client.create(name=f"{name}, fresh", problem={"kind": "candidates", "blocks": {"a": 2, "b": 1}})
    trial = fresh.ask(features={"a": np.eye(2), "b": np.ones((2, 1))}, ids=["u", "v"])
    assert trial.x in ("u", "v")
    fresh.tell(trial, 1.0)
    assert fresh.log_frame()[["n", "ids"]].to_numpy().tolist() == [[2, None]]


def test_a_budget_per_round_and_half_lives(client, name, place):
    problem = {"kind": "arms", "arms": ["low", "high"], "features": {"both": [0, 1], "first": [0]}}
    cost = {"low": 0.0, "high": 1.0}
    study = client.create(name=name, problem=problem, cost=cost, budget=0.25, forget=[0.9, 1.0], random_state=3)
    played = [study.ask(context=[0.1 * k, 1.0]) for k in range(12)]
    for trial in played[::-1]:  # late, and the last first
        study.tell(trial, float(trial.x == "high"))
    own = load_study(name, place[0]).algorithm
    assert own.forget == (0.9, 1.0)
    assert own.spent == sum(trial.x == "high" for trial in played) <= 3.0
    logs = [ope.Log.from_frame(one.log_frame()) for one in (study, own)]
    assert logs[0].available == [None if one is None else one.tolist() for one in logs[1].available]
    assert [0] in logs[0].available  # rounds in which only "low" could be paid
    assert [context.tolist() for context in logs[1].contexts] == logs[0].contexts
    assert logs[0].ids == logs[1].ids
    found, same = (ope.verdict(log, "low") for log in logs)
    assert found.interval == same.interval
    assert found.verdict == "not yet"


def test_the_list_of_studies(client, name, place):
    study = interval(client, f"{name} / 50% # ?")
    play(study, rounds=1)
    found = {one.name: one for one in client.studies()}
    assert (found[study.name].trials, found[study.name].told, found[study.name].algorithm) == (1, 1, "evidence-mixture")
    assert client.study(study.name).counts["told"] == 1
    client.delete(study.name)
    with pytest.raises(StudyNotFoundError):
        study.ask()
    assert study.name not in {one.name for one in client.studies()}


def test_following(client, name):
    study, seen, ready = interval(client, name), [], threading.Event()
    play(study, rounds=1)

    def follow():
        events = study.follow(since=1)
        for event in events:
            seen.append((event["kind"], event["trial"]))
            ready.set()
            if len(seen) == 3:
                return

    thread = threading.Thread(target=follow)
    thread.start()
    assert ready.wait(20.0)
    play(study, rounds=1)
    thread.join(20.0)
    assert seen == [("tell", 0), ("ask", 1), ("tell", 1)]


def test_a_view(client, name):
    study = interval(client, name)
    play(study, rounds=8)
    view = study.view(points=10, rows=3)
    assert view["counts"]["told"] == 8
    assert view["trials"]["id"] == [5, 6, 7]


def test_figures_and_summary_are_those_of_the_study(client, name, place):
    study = interval(client, name)
    assert study.summary() == "0 of 21 candidates measured. Next: ask() for a trial, and tell() its reward."
    with pytest.raises(ValueError, match="nothing to draw"):
        study.plot("rewards")
    play(study)
    with load_study(name, place[0]) as own:
        assert study.summary() == own.summary()
        assert own.summary().split(". ")[0] in study._repr_html_()
        for kind in ("models", "rewards", "predictions", "residuals", "odds", "curve", "coverage", "plates"):
            assert study.plot(kind, engine="plotly") == own.plot(kind, engine="plotly"), kind
        assert [ax.get_title() for ax in study.plot()] == [ax.get_title() for ax in own.plot()]
    with pytest.raises(ValueError, match="nothing to draw: the study has no data for it"):
        study.plot("pareto")
    with pytest.raises(ValueError, match="kind must be one of"):
        study.plot("reward")


def test_threads_share_a_client(client, name):
    study = interval(client, name)
    threads = [threading.Thread(target=play, args=(study,), kwargs={"rounds": 5}) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert study.counts == {"trials": 30, "told": 30, "pending": 0, "abandoned": 0}


def test_studies_created_elsewhere(client, name, place):
    models, domain = alexp.ModelClass.legendre(degree=3, size=2), alexp.Interval(-1.0, 1.0, resolution=21)
    own = create_study(models, domain, name=name, storage=Storage(place[0]), random_state=5, noise_std=0.1)
    study = client.study(name)
    play(study, rounds=2)
    trial = own.ask()
    study.tell(trial, 0.5)
    assert own.counts == study.counts == {"trials": 3, "told": 3, "pending": 0, "abandoned": 0}


def test_the_command_and_its_tokens(tmp_path):
    from tests.adversarial.fleet import free_port

    (tmp_path / "tokens").write_text("a-long-token-to-write-with\nanother-long-token-to-read read\n")
    port = free_port()
    command = [*(sys.executable, "-m", "alexp", "serve", "--storage", f"sqlite:///{tmp_path / 's.db'}")]
    server = subprocess.Popen(
        [*command, "--port", str(port), "--token-file", str(tmp_path / "tokens")], stderr=subprocess.DEVNULL
    )
    try:
        url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 60.0
        while True:
            try:
                study = interval(alexp.Client(url, "a-long-token-to-write-with", retries=0), "s")
                break
            except alexp.study.StorageError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        play(study, rounds=1)
        reader = alexp.Client(url, "another-long-token-to-read").study("s")
        assert reader.counts["told"] == 1
        assert reader.policy().shape == (21,)
        with pytest.raises(PermissionError, match="read"):
            reader.ask()
        for token in (None, "a-long-token-that-is-wrong"):
            with pytest.raises(PermissionError, match="token"):
                alexp.Client(url, token).studies()
    finally:
        server.terminate()
        assert server.wait(30.0) in (0, -signal.SIGTERM)
