"""The true model stays among the plausible ones whatever contexts come."""

from tests.adversarial import contexts


def test_the_true_model_is_not_lost_to_an_adversary():
    found = contexts.soak(0.04, seed=5)
    assert found["tried"] == 40
    assert found["violations"] == 0, found


def test_the_pass_notices_noise_that_was_understated():
    """A third of the noise stated: the promise is void, and the pass has to see it."""
    found = contexts.lost(16, seed=2, stated=contexts.NOISE / 4.0)
    assert sum(found.values()) > 0.3 * 16
