"""What was expected of every reward: the same as asking at the time, and by each model alone."""

import numpy as np
import pytest

import alexp
from alexp.estimation.mixture.mixture import Mixture

MODELS = alexp.ModelClass.legendre(degree=4, size=2)
LINE = alexp.Interval(-1.0, 1.0, resolution=30)
POINTS = alexp.FiniteSet(LINE.points)  # where rewards may be exact


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("stated", [{}, {"noise_std": 0.1}, {"noise_std": 0.1, "reward_bound": 1.0}], ids=str)
def test_what_was_expected_at_the_time(stated, direction):
    rng = np.random.default_rng(0)
    opt = alexp.EvidenceMixture(MODELS, LINE, direction=direction, random_state=0, **stated)
    mean, std, weights = [], [], [opt.probabilities]
    for _ in range(12):
        trial = opt.ask()
        expected, spread = opt.predict(trial.x)
        mean.append(expected)
        noise = opt.belief.mixture.noise_variance(opt.belief.weights)  # what is expected is that of the grid
        std.append(np.hypot(spread, np.sqrt(noise)))
        opt.tell(trial, float(np.cos(2 * trial.x) + 0.1 * rng.normal()))
        weights.append(opt.probabilities)
    first, second = (int(j) for j in np.argsort(-opt.probabilities)[:2])
    seen = opt.hindsight([first, second])
    assert np.isnan(seen.mean[:2]).all()
    np.testing.assert_allclose(seen.mean[2:], mean[2:], rtol=1e-9)
    np.testing.assert_allclose(seen.std[2:], std[2:], rtol=1e-9)
    odds = [np.log(q[second] / q[first]) for q in weights]
    np.testing.assert_allclose(seen.log_odds[:, 1], odds, rtol=1e-6, atol=1e-9)
    assert np.all(seen.log_odds[:, 0] == 0.0)


def test_a_model_alone_expects_what_it_would_without_the_others():
    alone = alexp.ModelClass(MODELS.dictionary, [MODELS.groups[3]])
    stated = {"noise_std": 0.1, "reward_bound": 1.0, "random_state": 0}
    many, one = alexp.EvidenceMixture(MODELS, LINE, **stated), alexp.EvidenceMixture(alone, LINE, **stated)
    for index in (3, 17, 25, 9, 12):
        many.observe(index, float(np.sin(index)))
        one.observe(index, float(np.sin(index)))
    np.testing.assert_allclose(many.hindsight([3, 0]).model_mean[2:, 0], one.hindsight([0]).mean[2:], rtol=1e-9)


@pytest.mark.parametrize("stated", [{}, {"noise_std": 0.1, "reward_bound": 1.0}], ids=str)
@pytest.mark.parametrize("exact", [0, 14, 21], ids=["noise", "replays that end", "replays"])
def test_a_later_look_continues_the_earlier_one(stated, exact, monkeypatch):
    rng = np.random.default_rng(1)
    opt, fed = alexp.EvidenceMixture(MODELS, POINTS, random_state=0, **stated), []
    update = Mixture.update

    def again():
        """By a run that has not looked back yet."""
        return alexp.EvidenceMixture.from_dict(opt.to_dict()).hindsight([2, 0])

    for pair in ([1, 3], [2, 0], [2, 0]):
        for index in (3, 17, 25, 3, 9, 12, 3):
            opt.observe(index, float(np.sin(index) + (0.1 * rng.normal() if opt.n_told >= exact else 0.0)))
        with monkeypatch.context() as patch:
            patch.setattr(Mixture, "update", lambda self, *given: fed.append(given) or update(self, *given))
            seen = opt.hindsight(pair)
    if exact != 14:
        assert len(fed) == opt._mixture.n_observations  # every reward once, unless it is held back
    for name, value in vars(again()).items():
        np.testing.assert_allclose(getattr(seen, name), value, rtol=1e-12, err_msg=name)
    opt.amend(4, 5.0)
    for name, value in vars(again()).items():
        np.testing.assert_allclose(getattr(opt.hindsight([2, 0]), name), value, rtol=1e-12, err_msg=name)
