"""The true model stays among the plausible ones whatever contexts come."""

from tests.adversarial import contexts


def test_the_true_model_is_not_lost_to_an_adversary():
    found = contexts.lost(24, seed=5, rounds=15)
    assert sum(found.values()) <= 2, found


def test_more_than_a_tenth_lost_is_a_violation(monkeypatch):
    monkeypatch.setattr(contexts, "lost", lambda sequences, seed: dict.fromkeys(contexts.STRATEGIES, sequences // 20))
    assert contexts.soak(0.04)["violations"] == 4
    monkeypatch.setattr(contexts, "lost", lambda sequences, seed: dict.fromkeys(contexts.STRATEGIES, sequences // 40))
    assert contexts.soak(0.04)["violations"] == 0


def test_the_pass_notices_noise_that_was_understated():
    """A third of the noise stated: the promise is void, and the pass has to see it."""
    found = contexts.lost(16, seed=2, stated=contexts.NOISE / 4.0)
    assert sum(found.values()) > 0.3 * 16
