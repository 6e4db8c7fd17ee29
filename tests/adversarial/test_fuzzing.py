"""A short pass of fuzzing, and that its oracle would notice."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import alexp
from tests.adversarial import fuzzing
from tests.adversarial.fuzzing import Sequence, Violation, kinds, run, soak

SHORT = 320  # sequences: twenty of every algorithm


def test_a_short_pass_over_all_algorithms():
    found = [wrong for seed in range(SHORT) if (wrong := run(seed)) is not None]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("seed", [1124, 13916])  # what long passes have found: coefficients whose squares overflow
def test_what_was_found_before(seed):
    assert run(seed) is None


def test_every_algorithm_is_played():
    assert {kind.name for kind in kinds()} >= {"alexp", "etc", "ets", "corral", "evidence-mixture", "lm-ucb", "uniform"}
    names = set()
    for seed in range(len(kinds())):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            names.add(Sequence(seed).kind.name)
    assert names == {kind.name for kind in kinds()}


def test_figures_of_a_soak():
    figures = soak(16 / fuzzing.SEQUENCES, seed=1)
    assert (figures["tried"], figures["violations"], figures["algorithms"]) == (16, 0, len(kinds()))


@pytest.fixture
def sequence():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield Sequence(12)


def test_a_changed_state_is_noticed(sequence):
    def torn():
        sequence.opt.ask()
        raise ValueError("after the fact")

    with pytest.raises(Violation, match="state has changed"):
        sequence._call("torn", torn, fails=True)


def test_foreign_exceptions_are_noticed(sequence):
    with pytest.raises(Violation, match="not documented"):
        sequence._call("foreign", lambda: np.empty(0).max(), fails=True)
    with pytest.raises(Violation, match="wrong input was taken"):
        sequence._call("lenient", lambda: None, fails=True)
    with pytest.raises(Violation, match="right input was refused"):
        sequence._call("strict", lambda: sequence.opt.tell(-1, 1.0))


def test_wrong_probabilities_are_noticed(sequence, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = Sequence([kind.name for kind in kinds()].index("alexp"))
    monkeypatch.setattr(alexp.ALExp, "probabilities", property(lambda self: np.full(self.models.n_models, np.nan)))
    with pytest.raises(Violation, match="probabilities"):
        wrong.look()
