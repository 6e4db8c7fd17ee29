"""The conformance suite: what every algorithm must satisfy, run over the whole registry.

For an algorithm of your own, parametrise a test over `CHECKS`:

    @pytest.mark.parametrize("check", alexp.testing.CHECKS, ids=lambda check: check.__name__)
    def test_mine(check):
        check(MyAlgorithm)

A class lists in `example` the arguments it needs beyond the shared ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from alexp.algorithms.base import Algorithm
from alexp.algorithms.trials import Trial
from alexp.experiments.core.environments import SyntheticEnvironment
from alexp.experiments.core.simulation import simulate
from alexp.problem import FiniteSet, Interval, ModelClass

Kind = type[Algorithm]
_MODELS = ModelClass.legendre(degree=4, size=2)
_DOMAIN = Interval(-1.0, 1.0, resolution=40)
_COLUMNS = ("id", "x", "index", "model", "explored", "propensity", "reward")


def make(kind: Kind, models: ModelClass = _MODELS, domain: Any = _DOMAIN, **settings: Any) -> Algorithm:
    """An instance of the algorithm on a small problem."""
    arguments = {"noise_std": 0.1, "random_state": 3} | kind.example | settings
    return kind(models, domain, **arguments)


def _reward(index: int) -> float:
    return float(np.cos(index / 5.0) + 0.1 * np.sin(37.0 * index))


def _play(algorithm: Algorithm, rounds: int) -> list[Trial]:
    trials = []
    for _ in range(rounds):
        trial = algorithm.ask()
        algorithm.tell(trial, _reward(trial.index))
        trials.append(trial)
    return trials


def _weights(algorithm: Algorithm) -> np.ndarray[Any, Any] | None:
    return getattr(algorithm, "probabilities", None)


def _refuses(error: type[Exception], action: Callable[[], Any], algorithm: Algorithm, what: str) -> None:
    before = json.dumps(algorithm.to_dict())
    message: str | None = None
    try:
        action()
    except error as raised:
        message = str(raised)
    assert message is not None, f"{what} must raise {error.__name__}"
    assert message, f"{what}: the error says nothing"
    assert json.dumps(algorithm.to_dict()) == before, f"{what}: state changed although an error was raised"


def check_repeats_with_seed(kind: Kind) -> None:
    """The same seed gives the same run bit for bit; a look at its attributes in between changes nothing."""
    first, second = make(kind), make(kind)
    for _ in range(15):
        a, b = first.ask(), second.ask()
        assert a == b
        first.tell(a, _reward(a.index))
        second.tell(b, _reward(b.index))
        _weights(second), second.best(), second.trials_dataframe(), second.to_dict()
    assert json.dumps(first.to_dict()) == json.dumps(second.to_dict())


def check_generator_as_seed(kind: Kind) -> None:
    """A NumPy generator or None is as good as an integer."""
    one = _play(make(kind, random_state=np.random.default_rng(5)), 8)
    two = _play(make(kind, random_state=np.random.default_rng(5)), 8)
    assert one == two
    _play(make(kind, random_state=None), 3)


def check_probabilities(kind: Kind) -> None:
    """Probabilities over the models, where there are any, are non-negative and sum to one at every moment."""
    algorithm = make(kind)
    for _ in range(25):
        weights = _weights(algorithm)
        if weights is not None:
            assert weights.shape == (_MODELS.n_models,)
            assert np.all(weights >= 0.0)
            assert abs(weights.sum() - 1.0) < 1e-12
        _play(algorithm, 1)


def check_propensities(kind: Kind) -> None:
    """The propensity of an action is the frequency with which it is played in that situation."""
    algorithm, n = make(kind), 4000
    _play(algorithm, 6)
    trials = algorithm.ask(n)
    stated = {trial.index: trial.propensity for trial in trials}
    played = np.bincount([trial.index for trial in trials], minlength=_DOMAIN.n_candidates)
    for trial in trials:
        assert 0.0 < trial.propensity <= 1.0 + 1e-12
        assert abs(stated[trial.index] - trial.propensity) < 1e-12, "the same situation must give the same propensity"
    assert sum(stated.values()) <= 1.0 + 1e-9
    for index, p in stated.items():
        error = np.sqrt(max(p * (1.0 - p), 1e-12) / n)
        assert abs(played[index] / n - p) < 5.0 * error + 2.0 / n, (index, played[index] / n, p)


def check_any_order(kind: Kind) -> None:
    """Rewards may come late and in any order, by trial or by id, and lead to the same estimate."""
    forward, backward = make(kind), make(kind)
    asked, again = forward.ask(6), backward.ask(6)
    assert [t.id for t in asked] == list(range(6))
    assert asked == again
    for trial in asked:
        forward.tell(trial, _reward(trial.index))
    for trial in reversed(again):
        backward.tell(trial.id, _reward(trial.index))
    assert not backward.pending()
    one, two = _weights(forward), _weights(backward)
    if one is not None and two is not None and "order" not in kind.depends_on:
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-4)
    late = forward.ask()
    _play(forward, 3)
    assert [t.id for t in forward.pending()] == [late.id]
    forward.tell(late, 0.5)


def check_save_and_load(kind: Kind) -> None:
    """Saved and loaded at any step, through JSON text, a run continues as if it had never stopped."""
    straight, broken = make(kind), make(kind)
    for step in range(12):
        a, b = straight.ask(), broken.ask()
        assert a == b
        if step % 2:
            broken = type(broken).from_dict(json.loads(json.dumps(broken.to_dict())))
        if step != 5:  # one reward stays out
            straight.tell(a, _reward(a.index))
            broken.tell(b.id, _reward(b.index))
        broken = kind.from_dict(json.loads(json.dumps(broken.to_dict(problem=False))), _MODELS, _DOMAIN)
    assert json.dumps(straight.to_dict()) == json.dumps(broken.to_dict())
    one, two = _weights(straight), _weights(broken)
    assert one is None or np.array_equal(one, two)  # type: ignore[arg-type]


def check_bad_input(kind: Kind) -> None:
    """Wrong input raises before anything changes."""
    algorithm = make(kind)
    _play(algorithm, 3)
    told, pending = algorithm.trial(0), algorithm.ask()
    for bad in (float("nan"), float("inf"), -float("inf"), 1e200):
        _refuses(ValueError, lambda bad=bad: algorithm.tell(pending, bad), algorithm, f"a reward of {bad}")  # type: ignore[misc]
    not_numbers: tuple[Any, ...] = ("1.0", None, [1.0], True)
    for wrong in not_numbers:
        _refuses(TypeError, lambda wrong=wrong: algorithm.tell(pending, wrong), algorithm, f"a reward of {wrong!r}")  # type: ignore[misc]
    _refuses(ValueError, lambda: algorithm.tell(told, 1.0), algorithm, "a reward told twice")
    _refuses(ValueError, lambda: algorithm.tell(99, 1.0), algorithm, "an unknown id")
    _refuses(ValueError, lambda: algorithm.tell(-1, 1.0), algorithm, "a negative id")
    foreign = Trial(pending.id, 0.0, (pending.index + 1) % 40, None, False, 1.0)
    _refuses(ValueError, lambda: algorithm.tell(foreign, 1.0), algorithm, "a trial of another run")
    _refuses(ValueError, lambda: algorithm.ask(0), algorithm, "n = 0")
    for available in ([], [40], [-1], [1, 1], np.zeros(40, dtype=bool), [0.5]):
        _refuses(ValueError, lambda a=available: algorithm.ask(available=a), algorithm, f"available={available}")  # type: ignore[misc]
    algorithm.tell(pending, 0.25)
    for settings in ({"direction": "up"}, {"noise_std": -1.0}, {"reward_bound": 0.0}, {"random_state": -1}):
        try:
            make(kind, **settings)
        except ValueError:
            continue
        raise AssertionError(f"{settings} must raise ValueError")


def check_available(kind: Kind) -> None:
    """A restricted round stays within the available candidates, and full rounds go on afterwards."""
    algorithm = make(kind)
    for t in range(10):
        allowed = np.arange(t, t + 3)
        trial = algorithm.ask(available=allowed)
        assert trial.index in allowed
        algorithm.tell(trial, _reward(trial.index))
    trial = algorithm.ask(available=[7])
    assert trial.index == 7
    assert abs(trial.propensity - 1.0) < 1e-9
    _play(algorithm, 2)


def check_direction(kind: Kind) -> None:
    """Minimising a reward is maximising its negative, decision by decision."""
    up, down = make(kind), make(kind, direction="minimize")
    for _ in range(12):
        a, b = up.ask(), down.ask()
        assert a == b
        up.tell(a, _reward(a.index))
        down.tell(b, -_reward(b.index))
    assert up.best().index == down.best().index
    assert up.best().value == -down.best().value


def check_scale(kind: Kind) -> None:
    """Rewards, noise and bound scaled together by a power of two change no decision, bit for bit."""
    if "scale" in kind.depends_on:
        return
    plain, scaled = make(kind), make(kind, noise_std=0.1 * 1024.0, reward_bound=1024.0)
    for _ in range(15):
        a, b = plain.ask(), scaled.ask()
        assert a == b
        plain.tell(a, _reward(a.index))
        scaled.tell(b, 1024.0 * _reward(b.index))


def check_small_problems(kind: Kind) -> None:
    """One model, one candidate, tables of candidates and unequal models are ordinary life."""
    one_model = make(kind, ModelClass.legendre(degree=1, size=2))
    _play(one_model, 4)
    weights = _weights(one_model)
    assert weights is None or weights.tolist() == [1.0]
    one_candidate = make(kind, domain=Interval(resolution=1))
    assert all(trial.index == 0 for trial in _play(one_candidate, 4))
    rng = np.random.default_rng(0)
    matrices = {"wide": rng.standard_normal((9, 6)), "narrow": rng.standard_normal((9, 1)), "flat": np.ones((9, 2))}
    table = make(kind, ModelClass.from_matrices(matrices), FiniteSet([f"item {i}" for i in range(9)]))
    for trial in _play(table, 8):
        assert trial.x == f"item {trial.index}"
    assert table.best().x.startswith("item")
    _play(make(kind, ModelClass.legendre(degree=3, size=2, intercept=True)), 8)


def check_records(kind: Kind) -> None:
    """The data frame has one row per trial, and simulation reports non-decreasing regret."""
    algorithm = make(kind)
    run = simulate(algorithm, SyntheticEnvironment(_MODELS, _DOMAIN, random_state=1), steps=10)
    assert np.all(np.diff(run.regret) >= -1e-12)
    assert run.seconds > 0.0
    algorithm.ask()
    frame = algorithm.trials_dataframe()
    assert tuple(frame.columns) == _COLUMNS
    assert len(frame) == 11
    assert frame["reward"].isna().tolist() == [False] * 10 + [True]


CHECKS: tuple[Callable[[Kind], None], ...] = (
    check_repeats_with_seed,
    check_generator_as_seed,
    check_probabilities,
    check_propensities,
    check_any_order,
    check_save_and_load,
    check_bad_input,
    check_available,
    check_direction,
    check_scale,
    check_small_problems,
    check_records,
)
