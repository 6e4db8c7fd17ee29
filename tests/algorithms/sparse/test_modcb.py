import numpy as np
import pytest

import alexp
from alexp.rivals.modcb import NestedDrops, cumulative_order, nested_order


def chain(*sizes):
    base = alexp.ModelClass.from_blocks({"x": max(sizes)})
    return alexp.ModelClass(base.dictionary, [np.arange(size) for size in sizes])


def test_drops_are_means_over_pairs():
    """By the definition: z = S_i^(1/2) (pinv(blockdiag(S_m, 0)) - pinv(S_i)) f y, averaged over pairs of samples."""
    rng = np.random.default_rng(0)
    drops, tables = NestedDrops(6), [rng.standard_normal((6, 4)) for _ in range(20)]
    for table in tables:
        drops.add_round(table)
    rows, y = rng.standard_normal((9, 6)), rng.standard_normal(9)
    for row, value in zip(rows, y, strict=True):
        drops.add_sample(row, value)
    moment = np.mean([table @ table.T / 4 for table in tables], axis=0)
    for m, i in ((2, 5), (1, 6), (3, 4)):
        small = np.zeros((i, i))
        small[:m, :m] = moment[:m, :m]
        values, vectors = np.linalg.eigh(moment[:i, :i])
        root = vectors * np.sqrt(values) @ vectors.T
        z = (rows[:, :i] * y[:, None]) @ (root @ (np.linalg.pinv(small) - np.linalg.pinv(moment[:i, :i]))).T
        pairs = [z[s] @ z[t] for s in range(9) for t in range(9) if s != t]
        assert drops.by_column()[m:i].sum() == pytest.approx(np.mean(pairs), rel=1e-6)
    assert drops.mean_square == pytest.approx(np.mean(y**2))


def test_drops_are_unbiased():
    rng = np.random.default_rng(1)
    theta, found = np.array([1.0, 0.0, 0.5, 0.0]), []
    for _ in range(300):
        drops = NestedDrops(4)
        for _ in range(100):
            drops.add_round(rng.standard_normal((4, 5)))
        for _ in range(12):
            row = rng.standard_normal(4)
            drops.add_sample(row, float(row @ theta + rng.standard_normal()))
        found.append(drops.by_column())
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(300)
    assert np.all(np.abs(mean - theta**2) < 4.0 * error + 0.02)


@pytest.mark.filterwarnings("ignore::alexp.AssumptionWarning")
def test_goes_on_to_the_model_that_is_needed_and_no_further():
    reached = []
    for seed in range(4):
        rng, models = np.random.default_rng(seed), chain(2, 4, 8, 16)
        theta = np.zeros(16)
        theta[:4] = 0.7
        opt = alexp.ModCB(models, alexp.Candidates(), noise_std=0.3, norm_bound=1.4, kappa=0.4, random_state=seed)
        assert opt.model == 0
        for _ in range(500):
            features = rng.standard_normal((4, 16))
            trial = opt.ask(features=features)
            opt.tell(trial, float(features[trial.index] @ theta) + 0.3 * rng.standard_normal())
        reached.append(opt.model)
        assert opt.probabilities[opt.model] == 1.0
    assert reached == [1, 1, 1, 1]


def test_rounds_are_even_as_often_as_they_should_be():
    opt = alexp.ModCB(chain(1, 3), alexp.Candidates(), kappa=0.5, noise_std=0.1, random_state=0)
    for t in range(1, 13):
        features = np.random.default_rng(t).standard_normal((3, 3))
        policy = opt.policy(features=features)
        assert policy.min() == pytest.approx(min(1.0, np.sqrt(3 / t)) / 3)
        opt.tell(opt.ask(features=features), 0.0)


@pytest.mark.parametrize(
    ("groups", "why"),
    [([[0, 1], [1, 2, 3]], "lacks columns of"), ([[0, 1], [1, 0]], "has the same columns as"), ([[0], [1]], "lacks")],
)
def test_models_that_are_not_nested_are_refused(groups, why):
    base = alexp.ModelClass.from_blocks({"x": 4})
    models = alexp.ModelClass(base.dictionary, groups)
    with pytest.raises(ValueError, match=f"nested models.*{why}"):
        alexp.ModCB(models, alexp.Candidates())


def test_the_order_of_columns():
    base = alexp.ModelClass.from_blocks({"x": 6})
    order, columns, sizes = nested_order(alexp.ModelClass(base.dictionary, [[1, 3, 4, 5], [4], [3, 4]]))
    assert order.tolist() == [1, 2, 0]
    assert columns.tolist() == [4, 3, 1, 5]
    assert sizes.tolist() == [1, 2, 4]


def test_models_may_stand_for_all_that_come_before_them():
    base = alexp.ModelClass.from_blocks({"x": 6})
    models = alexp.ModelClass(base.dictionary, [[2, 3], [3], [0, 2], [5]])
    order, columns, sizes = cumulative_order(models)
    assert (order.tolist(), columns.tolist(), sizes.tolist()) == ([0, 2, 3], [2, 3, 0, 5], [2, 3, 4])
    agents = [alexp.Greedy(), alexp.UCB(), alexp.Greedy(), alexp.EpsilonGreedy(0.5)]
    opt = alexp.ModCB(models, alexp.Candidates(), cumulative=True, agents=agents, norm_bound=1.0, random_state=0)
    opt._rank = 2
    assert opt.model == 3
    assert opt.probabilities.tolist() == [0.0, 0.0, 0.0, 1.0]
    assert [type(agent).__name__ for agent in opt._pool.agents] == ["Greedy", "EpsilonGreedy"]
    features = np.random.default_rng(0).standard_normal((5, 6))
    opt.tell(opt.ask(features=features), 1.0)
    assert opt.best(features=features).model == 3
