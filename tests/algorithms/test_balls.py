"""A ball as domain: who plays on it, who refuses, and studies of it."""

import numpy as np
import pytest

import alexp
from alexp.algorithms.warming import warm_up
from alexp.problem import domains
from alexp.rivals.linucb import optimistic_point
from alexp.study import create_study, load_study
from alexp.testing import balls

OWN = [kind for _, kind in sorted(alexp.Algorithm.registry.items()) if kind.__module__.startswith("alexp.")]
PLAYERS = [kind for kind in OWN if kind.plays_balls()]


@pytest.mark.parametrize("check", balls.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", PLAYERS, ids=lambda kind: kind.name)
def test_conformance_on_a_ball(kind, check):
    check(kind)


def test_everybody_else_refuses_a_ball():
    assert {kind.name for kind in PLAYERS} == {"linucb", "sl-ucb"}
    for kind in OWN:
        if kind not in PLAYERS:
            balls.refuses(kind)
    with pytest.raises(ValueError, match="UCB or Greedy"):
        balls.make(alexp.LinUCB, agent=alexp.EpsilonGreedy())


def test_a_ball_is_what_it_says():
    ball = alexp.Ball(3, radius=2.0)
    assert domains.domain_from_dict(ball.to_dict()) == ball != alexp.Ball(3)
    assert hash(ball) == hash(alexp.Ball(3, 2.0))
    assert repr(ball) == "Ball(3, radius=2)"
    assert ball.inside([2.0, 0.0, 0.0]).shape == (1, 3)
    for wrong in ([2.1, 0.0, 0.0], [[0.0, 0.0]], np.empty((0, 3)), [[np.nan, 0.0, 0.0]]):
        with pytest.raises(ValueError, match="candidates"):
            ball.inside(wrong)
    with pytest.raises(TypeError, match="infinitely many"):
        ball.points  # noqa: B018
    for wrong in ((0, 1.0), (2, -1.0)):
        with pytest.raises(ValueError, match=r"dim|radius"):
            alexp.Ball(*wrong)


# -- the largest upper bound ---------------------------------------------------------------------------------------


def upper(points, mean, triangle, width):
    """<x, mean> + width ||x||_{V^-1} at points (n, d)."""
    return points @ mean + width * np.linalg.norm(np.linalg.solve(triangle.T, points.T), axis=0)


def by_ascent(mean, triangle, width, radius, rng):
    """The largest upper bound of many points, each carried uphill: linearise, go to the best point, repeat."""
    points = rng.standard_normal((500, mean.size))
    inverse = np.linalg.inv(triangle.T @ triangle)
    for _ in range(60):
        points *= radius / np.linalg.norm(points, axis=1, keepdims=True)
        slope = points @ inverse
        points = mean + width * slope / np.sqrt(np.sum(points * slope, axis=1))[:, None]
    points *= radius / np.linalg.norm(points, axis=1, keepdims=True)
    return upper(points, mean, triangle, width).max()


@pytest.mark.parametrize("seed", range(60))
def test_no_point_of_the_ball_has_a_larger_upper_bound(seed):
    rng = np.random.default_rng(seed)
    d = 1 + seed % 6
    rows = rng.standard_normal((rng.integers(0, 9), d)) * rng.choice([0.01, 1.0, 10.0])
    triangle = np.linalg.cholesky(rows.T @ rows + rng.choice([1e-3, 0.1, 1.0]) ** 2 * np.eye(d)).T
    mean = rng.standard_normal(d) * rng.choice([0.0, 1e-9, 1.0, 1.0])
    mean[: seed % 3] = 0.0  # the hard case: nothing along an axis of the ellipsoid
    if seed % 4 == 0:
        triangle = np.diag(np.sort(rng.choice([0.1, 1.0, 2.0], d)))
    width, radius = rng.choice([1e-3, 0.1, 1.0, 10.0]), rng.choice([0.5, 1.0, 3.0])
    x = optimistic_point(mean, triangle, width, radius, rng.standard_normal(d))
    assert np.linalg.norm(x) == pytest.approx(radius, rel=1e-12)
    best = by_ascent(mean, triangle, width, radius, rng)
    assert upper(x[None], mean, triangle, width)[0] >= best - 1e-9 * abs(best)


def test_without_rewards_any_direction_is_as_good_and_chance_decides():
    first = [balls.make(alexp.LinUCB, random_state=seed).ask().x for seed in range(40)]
    assert np.abs(np.mean(first, axis=0)).max() < 0.6  # of a radius of two


def test_linucb_told_its_coordinate_plays_on_it_alone():
    told = balls.make(alexp.LinUCB, model=1)
    trials = balls.play(told, 10)
    assert all(np.flatnonzero(trial.x).tolist() == [1] for trial in trials)
    assert told.best().x[1] == pytest.approx(2.0)
    greedy = balls.make(alexp.LinUCB, agent=alexp.Greedy())
    balls.play(greedy, 10)
    np.testing.assert_allclose(greedy.ask().x, greedy.best().x, atol=1e-12)


def test_linucb_certifies_points_and_no_stop():
    models, ball = alexp.ModelClass.from_blocks({"x": 4}), alexp.Ball(4, radius=2.0)
    opt = alexp.LinUCB(models, ball, noise_std=0.1, norm_bound=1.0, reward_bound=2.0, random_state=0)
    balls.play(opt, 40)
    points = np.array([[0.0, 2.0, 0.0, 0.0], [0.0, 0.0, 0.0, -2.0]])
    band = opt.confidence(candidates=points)
    assert np.all((band.lower <= [1.2, 0.6]) & (band.upper >= [1.2, 0.6]))
    with pytest.raises(alexp.NotCertified, match="ball"):
        opt.stop_report()
    assert opt.stop_report(candidates=points).x.shape == (4,)


def test_warming_up_leaves_nothing_behind():
    for kind in PLAYERS:
        opt = balls.make(kind)
        warm_up(opt)
        assert opt.n_asked == 0


# -- studies -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PLAYERS, ids=lambda kind: kind.name)
def test_a_study_on_a_ball_is_its_algorithm_and_replays(tmp_path, kind):
    plain = balls.make(kind)
    storage = tmp_path / "s.db"
    settings = {"noise_std": 0.1, "norm_bound": 1.0, "reward_bound": 2.0, "random_state": 3} | kind.example
    models, domain = plain.models, plain.domain
    study = create_study(models, domain, name="s", storage=storage, algorithm=kind.name, **settings)
    for step in range(9):
        ours, theirs = study.ask(2, key=f"k{step}"), plain.ask(2)
        assert balls.same(ours, theirs)
        assert balls.same(ours, study.ask(2, key=f"k{step}"))  # the same call once more
        if step == 4:
            study = load_study("s", storage)
        for trial in ours[: 1 + step % 2]:
            study.tell(trial.id, balls.reward(trial))
            plain.tell(trial.id, balls.reward(trial))
    study.observe(0, 0.5, candidates=[0.0, 2.0, 0.0, 0.0])
    plain.observe(0, 0.5, candidates=[0.0, 2.0, 0.0, 0.0])
    study.amend(0, 0.25)
    plain.amend(0, 0.25)
    other = load_study("s", storage)
    assert other.algorithm.state() == plain.state()
    assert balls.same([other.ask()], [plain.ask()])
    assert np.array_equal(other.best().x, plain.best().x)
    assert other.view().domain == "Ball"
    assert len(other.trials_dataframe()) == plain.n_asked
    assert not other.verify() if hasattr(other, "verify") else True
