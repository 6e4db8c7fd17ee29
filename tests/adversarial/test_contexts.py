"""The true model stays among the plausible ones whatever contexts come."""

from collections import Counter

from tests.adversarial import contexts


def test_the_true_model_is_not_lost_to_an_adversary():
    found = contexts.fates(24, seed=5, rounds=15)
    assert sum(fate.total() for fate in found.values()) == 24
    assert sum(fate["lost"] for fate in found.values()) <= 2, found
    assert sum(fate["kept"] for fate in found.values()) >= 15, found


def test_more_than_a_tenth_lost_to_one_strategy_is_a_violation(monkeypatch):
    for lost, violations in ((2, 4), (1, 0)):
        fate = Counter(lost=lost, withheld=3, kept=7 - lost)
        monkeypatch.setattr(contexts, "fates", lambda *_, fate=fate: dict.fromkeys(contexts.STRATEGIES, fate))
        assert contexts.soak(0.04)["violations"] == violations


def test_the_pass_notices_noise_that_was_understated():
    """A quarter of the noise stated: the promise is void, and hardly any run may end as if nothing was wrong."""
    found = contexts.fates(16, seed=2, stated=contexts.NOISE / 4.0)
    assert sum(fate["kept"] for fate in found.values()) <= 4
