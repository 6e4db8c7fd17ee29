"""Studies whose models are enumerated and never listed."""

import gzip
from pathlib import Path

import numpy as np
import pytest

import alexp
from alexp.gpu.subsets import SubsetPosteriors
from alexp.problem.dictionaries import Legendre
from alexp.study import check, create_study, load_study


@pytest.mark.parametrize("most", [10, 50_000_000])  # of 56 models: too many to list, or not
def test_a_study_is_viewed_and_taken_up_again(tmp_path, monkeypatch, most):
    monkeypatch.setattr("alexp.problem.groups.MOST_LISTED", most)
    where = f"sqlite:///{tmp_path}/studies.db"
    models = alexp.ModelClass.subsets(Legendre(7), 3, device="cpu")
    study = create_study(models, alexp.Interval(resolution=30), name="a", storage=where, random_state=0)
    for _ in range(6):
        trial = study.ask()
        study.tell(trial, np.sin(3.0 * trial.x))
    view = study.view()
    assert (view.standing is None) == (most == 10)
    expected = alexp.EvidenceMixture.from_dict(study.algorithm.to_dict()).ask().index
    again = load_study(name="a", storage=where)
    assert again.algorithm.models.enumerated_on == "any"
    assert again.ask().index == expected


def play(study, rounds):
    for k in range(rounds):
        for trial in study.ask(2) if k % 3 == 2 else [study.ask(available=range(5, 25)) if k % 3 else study.ask()]:
            study.tell(trial, np.sin(3.0 * trial.x))
    return study.algorithm.trials_dataframe()


def test_what_alexp_decided_on_a_card_is_taken_from_the_log(tmp_path, monkeypatch):
    """Its asks leave returns behind, which are computed for what was played, even if the card judged otherwise."""
    where, best = f"sqlite:///{tmp_path}/studies.db", SubsetPosteriors.argmax_ucb
    models = alexp.ModelClass.subsets(Legendre(7), 3, device="cpu")
    with monkeypatch.context() as card:
        card.setattr("alexp.algorithms.base.enumerating_card", lambda device: "Some GPU")
        card.setattr(SubsetPosteriors, "argmax_ucb", lambda self, choices, width: (best(self, choices, width) + 1) % 10)
        settings = {"algorithm": "alexp", "noise_std": 0.1, "reward_bound": 1.0, "random_state": 0}
        study = create_study(models, alexp.Interval(resolution=30), name="a", storage=where, **settings)
        begun = play(study, 6)
        study.close()
    with load_study("a", where) as study:
        replayed = study.replayed()
        assert replayed.taken == {"Some GPU": 8}
        assert replayed.algorithm.trials_dataframe().equals(begun)
        told = [play(study, 3).equals(study.replayed().algorithm.trials_dataframe()) for _ in range(2)]
        assert all(told)
    report = check("a", where)
    assert report.ok
    assert report.taken == {"Some GPU": 8, "the CPU": 8}  # after returns of a card's, others are not made again


@pytest.mark.parametrize("name", ["alexp"])
def test_a_study_that_was_begun_on_a_real_card_goes_on_without_one(tmp_path, name):
    """40 rounds on an NVIDIA H200 of sin(5 x) + .3 x: ALExp over the subsets of 3 of 20 columns."""
    packed = Path(__file__).parent / "data" / "begun-on-an-h200.db.gz"
    (tmp_path / "moved.db").write_bytes(gzip.decompress(packed.read_bytes()))
    where = f"sqlite:///{tmp_path}/moved.db"
    with load_study(name, where) as study:
        assert study.replayed().taken == {"NVIDIA H200": 40}
        begun = [trial["index"] for trial in study.trials()]
        for _ in range(2):
            trial = study.ask()
            study.tell(trial, float(np.sin(5.0 * trial.x) + 0.3 * trial.x))
        assert [trial["index"] for trial in study.trials()][:40] == begun
    report = check(name, where)
    assert report.ok
    assert report.taken["NVIDIA H200"] == 40
