"""Peers: adapters of other libraries. Those whose library is not installed say so."""

from importlib.util import find_spec

import numpy as np
import pytest

import alexp
from alexp_experiments.comparison import peers
from alexp_experiments.comparison.peers import (
    TPE,
    BotorchGP,
    Forest,
    Peer,
    PeerTask,
    SklearnGP,
    acquisition,
    log_improvement,
)
from alexp_experiments.comparison.tables import contest
from alexp_experiments.comparison.tables.data import RealScenario
from alexp_experiments.core.tasks import run_task

MODULES = {BotorchGP: "botorch", TPE: "optuna", SklearnGP: "sklearn", Forest: "sklearn"}
N = 40


def needs(kind):
    absent = find_spec(MODULES[kind]) is None
    return pytest.param(kind, marks=pytest.mark.skipif(absent, reason=f"{MODULES[kind]} is not installed"))


def problem(d=2):
    rng = np.random.default_rng(1)
    x = rng.uniform(-1.0, 1.0, (N, d))
    return alexp.ModelClass.from_matrices({"x": x}), alexp.FiniteSet(np.arange(N)), -np.sum((x - 0.3) ** 2, axis=1)


@pytest.mark.parametrize("kind", [needs(kind) for kind in MODULES])
@pytest.mark.parametrize("rule", ["ucb", "ei"])
def test_peers_find_the_hill(kind, rule):
    models, domain, rewards = problem()
    found = []
    for seed in range(2):
        peer = kind(models, domain, rule=rule, repeats=False, random_state=seed)
        order = np.argsort(rewards)
        for index in order[[3, 10, 18, 25]].tolist():  # nothing of the best third
            peer.observe(index, rewards[index])
        for _ in range(12):
            trial = peer.ask()
            peer.tell(trial, rewards[trial.index])
        assert len({*peer.trials_dataframe()["index"]}) == 16
        found.append(len({*order[-10:]} & {*peer.trials_dataframe()["index"]}))
        assert peer.best().value == max(peer.trials_dataframe()["reward"])
    assert sum(found) >= 10, "of the ten best of forty, in twelve rounds each; chance finds 6.7 with a deviation of 1.9"


class Sighted(Peer):
    """Remembers what it was shown."""

    package = "numpy"

    def score(self, rows, rewards, candidates, rng):
        self.seen = rows.copy(), candidates.copy()
        return candidates[:, 0]


@pytest.mark.parametrize("j", [0, 1])
def test_a_peer_sees_the_columns_of_its_only_model(j):
    rng = np.random.default_rng(0)
    maps = {"few": rng.uniform(size=(N, 2)), "many": rng.uniform(size=(N, 5))}
    peer = Sighted(alexp.ModelClass.from_matrices(maps).only(j), alexp.FiniteSet(np.arange(N)), random_state=0)
    for index in (3, 7):
        peer.observe(index, float(index))
    peer.ask()
    own = list(maps.values())[j]
    scaled = (own - own.min(axis=0)) / np.ptp(own, axis=0)
    np.testing.assert_allclose(peer.seen[0], scaled[[3, 7]])
    np.testing.assert_allclose(np.sort(peer.seen[1], axis=0), np.sort(scaled, axis=0))  # in an order of its own


@pytest.mark.parametrize("kind", [needs(SklearnGP), needs(Forest), needs(BotorchGP), needs(TPE)])
def test_peers_do_not_see_units_and_repeat_under_a_seed(kind):
    models, domain, rewards = problem()
    plays = []
    for factor, level in ((1.0, 0.0), (1024.0, 0.0), (1.0, 0.0)):
        peer = kind(models, domain, repeats=False, random_state=3)
        for _ in range(6):
            trial = peer.ask()
            peer.tell(trial, level + factor * rewards[trial.index])
        plays.append(peer.trials_dataframe()["index"].tolist())
    assert plays[0] == plays[1] == plays[2]


@pytest.mark.parametrize("kind", [needs(TPE)])
def test_categories(kind):
    levels = np.stack(np.meshgrid(np.arange(3.0), np.arange(4.0), np.arange(2.0)), axis=-1).reshape(-1, 3)
    models, domain = alexp.ModelClass.from_matrices({"levels": levels}), alexp.FiniteSet(np.arange(24))
    rewards = (levels[:, 0] == 1.0) + (levels[:, 1] == 2.0) + 0.5 * (levels[:, 2] == 0.0)
    peer = kind(models, domain, categories=True, repeats=False, random_state=0)
    for _ in range(16):
        trial = peer.ask()
        peer.tell(trial, rewards[trial.index])
    assert peer.best().value == rewards.max()


def test_what_is_not_installed_is_said(monkeypatch):
    models, domain, _ = problem()
    monkeypatch.setattr(Forest, "package", "no-such-package")
    with pytest.raises(ImportError, match=r"pip install 'alexp-experiments\[peers\]'"):
        Forest(models, domain)
    with pytest.raises(ImportError, match=r"alexp-experiments\[peers\]"):
        peers.library("no_such_module", "no_such_module")
    said = []
    playing = contest.playing_peers(said.append)
    assert "random forest" not in playing
    assert any("random forest does not play" in line for line in said)


def test_wrong_arguments():
    models, domain, _ = problem()
    two = alexp.ModelClass.from_matrices({"a": np.ones((N, 1)), "b": np.eye(N)})
    with pytest.raises(ValueError, match="one model"):
        Forest(two, domain)
    with pytest.raises(ValueError, match="rule"):
        Forest(models, domain, rule="greedy")
    with pytest.raises(ImportError, match="made with scikit-learn 0"):
        Forest(models, domain, library_version="0")


def test_peers_are_no_algorithms_of_the_registry():
    assert not any(issubclass(kind, Peer) for kind in alexp.Algorithm.registry.values())


def test_a_peer_s_runs_are_kept_under_its_own_code(tmp_path, monkeypatch):
    x = np.random.default_rng(0).standard_normal((30, 2))
    np.savez(tmp_path / "t.npz", y=x[:, 0], m_linear=x)
    entrant = contest.TABLE_ENTRANTS["random forest"]
    scenario = next(entrant.scenarios(RealScenario.of(str(tmp_path / "t.npz"), steps=8)))
    task = entrant.task(scenario, "sum", 0)
    assert isinstance(task, PeerTask)
    assert task.key != entrant.task(scenario, "best", 0).key
    assert np.array_equal(run_task(task).chosen, run_task(task).chosen)
    before = task.configuration
    monkeypatch.setattr(peers, "read_module", lambda name: (b"changed" * name.endswith("peers"), []))
    assert entrant.task(scenario, "sum", 0).configuration != before


def test_log_improvement_against_the_plain_formula():
    from scipy.stats import norm

    mean, std, best = np.array([-3.0, 0.0, 0.4, 2.0]), np.array([1.0, 0.5, 2.0, 0.1]), 0.5
    z = (mean - best) / std
    plain = std * (norm.pdf(z) + z * norm.cdf(z))
    assert np.allclose(log_improvement(mean, std, best), np.log(plain))
    far = log_improvement(-np.array([1e1, 1e2, 1e3, 1e5]), np.ones(4), 0.0)
    assert np.all(np.isfinite(far))
    assert np.all(np.diff(far) < 0.0)
    assert np.array_equal(acquisition("ucb", mean, std, 2.0, best), mean + 2.0 * std)
