"""Studies whose models are enumerated and never listed."""

import numpy as np
import pytest

import alexp
from alexp.problem.dictionaries import Legendre
from alexp.study import create_study, load_study


@pytest.mark.parametrize("most", [10, 50_000_000])  # of 56 models: too many to list, or not
def test_a_study_is_viewed_and_taken_up_again(tmp_path, monkeypatch, most):
    monkeypatch.setattr("alexp.problem.layout.MOST_LISTED", most)
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
