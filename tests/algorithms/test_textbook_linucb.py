"""Contextual rounds against LinUCB as it is written in the textbook (Li et al. 2010), and blocks against dense columns.

A_a = I + sum of x x' is the posterior precision under theta_a ~ N(0, I) with unit noise: a ridge of one. In the hybrid
algorithm all coefficients, common and per arm, are N(0, I) together, so that the ridge is one as well.
"""

import numpy as np
import pytest

import alexp
from alexp import LMUCB, LinUCB
from alexp.decision import UCB
from alexp.estimation.arms import ArmBanks, ArmGrid
from alexp.estimation.ridge.bank import RidgeBank

ARMS, DIM, ROUNDS, ALPHA = ["a", "b", "c", "d"], 5, 2000, 0.7
K = len(ARMS)


def contexts(seed, n=ROUNDS):
    return np.random.default_rng(seed).normal(size=(n, DIM))


def reward(z, arm, noise):
    truth = np.sin(np.arange(K * DIM).reshape(K, DIM))
    return float(truth[arm] @ z + 0.3 * noise)


def disjoint_scores(precision, target, z):
    """Algorithm 1 of Li et al."""
    scores = []
    for a in range(K):
        inverse = np.linalg.inv(precision[a])
        scores.append(inverse @ target[a] @ z + ALPHA * np.sqrt(z @ inverse @ z))
    return np.array(scores)


def linucb(models):
    """ridge 1 and beta x reward_bound x ridge = alpha."""
    agent = UCB(beta=ALPHA, ridge=1.0)
    return LinUCB(models, alexp.Arms(ARMS), model=0, agent=agent, reward_bound=1.0, noise_std=0.3, random_state=1)


def agrees(trial, scores):
    """Whether it is the best, or one of the equally good ones."""
    return scores[trial.index] >= scores.max() - 1e-10


@pytest.mark.filterwarnings("ignore::alexp.AssumptionWarning")
def test_disjoint_linucb_on_blocks_and_on_dense_columns():
    blocks = alexp.ModelClass.per_arm({"all": range(DIM)}, arms=ARMS, intercept=False)
    kron = {"all": lambda z, arms: np.kron(np.eye(K), z)}
    dense = alexp.ModelClass.from_maps(kron, contextual=True, example=(np.ones(DIM), ARMS))
    runs = linucb(blocks), linucb(dense)
    assert isinstance(runs[0]._pool.fits[0], ArmBanks)
    assert isinstance(runs[1]._pool.fits[0], RidgeBank)
    precision, target, ties = np.array([np.eye(DIM)] * K), np.zeros((K, DIM)), 0
    noise = np.random.default_rng(2).normal(size=ROUNDS)
    for t, z in enumerate(contexts(3)):
        trials = [run.ask(context=z) for run in runs]
        scores = disjoint_scores(precision, target, z)
        assert trials[0].index == trials[1].index
        assert agrees(trials[0], scores)
        ties += np.sum(scores > scores.max() - 1e-10) > 1
        a = trials[0].index
        assert trials[0].x == ARMS[a]
        y = reward(z, a, noise[t])
        for run, trial in zip(runs, trials, strict=True):
            run.tell(trial, y)
        precision[a] += np.outer(z, z)
        target[a] += y * z
    assert ties < 2 * K  # between arms that were not played yet, and nowhere else


@pytest.mark.filterwarnings("ignore::alexp.AssumptionWarning")
def test_hybrid_linucb():
    q = 6
    mixing = np.random.default_rng(4).normal(size=(K, q, DIM))

    def common(z, arms):
        return np.array([np.tanh(mixing[ARMS.index(arm)] @ z) for arm in arms])

    models = alexp.ModelClass.per_arm(
        {"front": [0, 1, 2]}, arms=ARMS, intercept=False, common=common, example=np.ones(DIM)
    )
    run = linucb(models)
    a0, b0 = np.eye(q), np.zeros(q)
    own, cross, target = np.array([np.eye(3)] * K), np.zeros((K, 3, q)), np.zeros((K, 3))
    noise = np.random.default_rng(5).normal(size=ROUNDS)
    for t, context in enumerate(contexts(6)):
        trial = run.ask(context=context)
        x, zs = context[:3], common(context, ARMS)  # Algorithm 2 of Li et al., line by line
        inverse0 = np.linalg.inv(a0)
        beta, scores = inverse0 @ b0, []
        for a, z in enumerate(zs):
            inverse = np.linalg.inv(own[a])
            theta = inverse @ (target[a] - cross[a] @ beta)
            s = z @ inverse0 @ z - 2 * z @ inverse0 @ cross[a].T @ inverse @ x + x @ inverse @ x
            s += x @ inverse @ cross[a] @ inverse0 @ cross[a].T @ inverse @ x
            scores.append(z @ beta + x @ theta + ALPHA * np.sqrt(s))
        assert agrees(trial, np.array(scores))
        a = trial.index
        y, z = reward(context, a, noise[t]), zs[a]
        run.tell(trial, y)
        inverse = np.linalg.inv(own[a])
        a0 += cross[a].T @ inverse @ cross[a]
        b0 += cross[a].T @ inverse @ target[a]
        own[a] += np.outer(x, x)
        cross[a] += np.outer(x, z)
        target[a] += y * x
        inverse = np.linalg.inv(own[a])
        a0 += np.outer(z, z) - cross[a].T @ inverse @ cross[a]
        b0 += y * z - cross[a].T @ inverse @ target[a]


SETS = {"front": [0, 1, 2], "back": [3, 4], "all": [0, 1, 2, 3, 4], "one": [2]}


def dense_maps():
    def of(own):
        return lambda z, arms: np.kron(np.eye(K), np.asarray(z)[own])

    maps = {name: of(own) for name, own in SETS.items()}
    models = alexp.ModelClass.from_maps(maps, contextual=True, example=(np.ones(DIM), ARMS))
    models.dictionary.example_rows = None  # prior scales from the first rewards, as for the others
    return models


@pytest.mark.filterwarnings("ignore::alexp.AssumptionWarning")
@pytest.mark.parametrize(
    "settings",
    [{"rule": "ids"}, {"rule": "ucb", "noise_std": 0.3}, {"rule": "ids", "noise_std": 0.3, "reward_bound": 3.0}],
)
def test_a_mixture_on_blocks_decides_like_one_on_dense_columns(settings, monkeypatch):
    blocks = alexp.ModelClass.per_arm(SETS, arms=ARMS, intercept=False)
    monkeypatch.setattr(type(blocks.dictionary), "joined_sets", None)  # dense maps do not know what they share
    settings |= {"random_state": 1, "unequal_noise": False}  # dense maps do not know which rewards are of which arm
    runs = [alexp.EvidenceMixture(one, alexp.Arms(ARMS), **settings) for one in (blocks, dense_maps())]
    grid = runs[0].belief.mixture.grid
    assert isinstance(getattr(grid, "inner", grid), ArmGrid)
    noise = np.random.default_rng(7).normal(size=200)
    waiting = []
    for t, z in enumerate(contexts(8, 200)):
        trials = [run.ask(context=z) for run in runs]
        assert trials[0].index == trials[1].index
        waiting.append((trials, reward(z, trials[0].index, noise[t])))
        if t % 5 != 1:  # rewards come late, and then several
            for told, y in waiting:
                for run, trial in zip(runs, told, strict=True):
                    run.tell(trial, y)
            waiting = []
            np.testing.assert_allclose(runs[0].probabilities, runs[1].probabilities, rtol=1e-6, atol=1e-12)
    assert runs[0].probabilities[list(SETS).index("all")] > 0.99


@pytest.mark.filterwarnings("ignore::alexp.AssumptionWarning")
@pytest.mark.parametrize("kind", [alexp.EvidenceMixture, alexp.ALExp, LMUCB])
@pytest.mark.parametrize("intercept", [True, False])
def test_runs_on_blocks_are_saved_and_continue_bit_for_bit(kind, intercept):
    models = alexp.ModelClass.per_arm(SETS, arms=ARMS, intercept=intercept)
    run, noise = kind(models, alexp.Arms(ARMS), random_state=2), np.random.default_rng(9).normal(size=40)
    pending = None
    for t, z in enumerate(contexts(10, 40)):
        trial = run.ask(context=z)
        if t == 19:
            pending = trial
            continue
        run.tell(trial, reward(z, trial.index, noise[t]))
        if t == 20:
            other = type(run).from_dict(run.to_dict())
        if t > 20:
            same = other.ask(context=z)
            assert (same.index, same.propensity) == (trial.index, trial.propensity)
            other.tell(same, reward(z, same.index, noise[t]))
    for one in (run, other):
        one.tell(pending.id, 1.0)
    np.testing.assert_array_equal(run.probabilities, other.probabilities)


@pytest.mark.filterwarnings("ignore::alexp.AssumptionWarning")
def test_constants_make_a_run_indifferent_to_the_level_of_the_rewards():
    models = alexp.ModelClass.per_arm({"front": [0, 1], "back": [3, 4]}, arms=ARMS)
    runs = [alexp.EvidenceMixture(models, alexp.Arms(ARMS), rule="ids", random_state=3) for _ in range(2)]
    noise, played = np.random.default_rng(11).normal(size=120), []
    for t, z in enumerate(contexts(12, 120)):
        trials = [run.ask(context=z) for run in runs]
        assert trials[0].index == trials[1].index
        played.append(trials[0].index)
        y = reward(np.where(np.arange(DIM) < 2, z, 0.0), trials[0].index, noise[t])
        for run, trial, level in zip(runs, trials, (0.0, 4096.0), strict=True):
            run.tell(trial, y + level)
    assert sorted(played[:K]) == list(range(K))  # of an arm without rewards nothing is known
    assert runs[0].probabilities[0] > 0.99


def test_shared_features_explain_the_level_of_a_round():
    """Rewards whose level depends on the context alone: with shared features the rest is seen at once."""
    rng, found = np.random.default_rng(13), []
    sets = {"true": [0], "wrong": [1]}
    classes = [
        alexp.ModelClass.per_arm(sets, arms=ARMS[:2], shared=[2, 3]),
        alexp.ModelClass.per_arm(sets, arms=ARMS[:2]),
    ]
    for models in classes:
        run = alexp.EvidenceMixture(models, alexp.Arms(ARMS[:2]), random_state=4)
        rng = np.random.default_rng(13)
        for _ in range(60):
            z = rng.normal(size=4)
            trial = run.ask(context=z)
            run.tell(trial, float(50.0 * z[2] - 30.0 * z[3] + z[0] * (1 - 2 * trial.index) + 0.1 * rng.normal()))
        found.append((run.probabilities[0], run.noise_estimate))
    assert found[0][0] > 0.999
    assert found[0][1] < 0.3
    assert found[1][1] > 5.0


@pytest.mark.filterwarnings("ignore::alexp.AssumptionWarning")
@pytest.mark.parametrize("intercept", [True, False])
def test_an_arm_that_is_added_begins_at_the_prior(intercept):
    arms, noise = alexp.Arms(ARMS[:3]), np.random.default_rng(14).normal(size=60)
    run = LMUCB(alexp.ModelClass.per_arm(SETS, arms=3, intercept=intercept), arms, random_state=5)
    whole = LMUCB(alexp.ModelClass.per_arm(SETS, arms=4, intercept=intercept), alexp.Arms(ARMS), random_state=5)
    for t, z in enumerate(contexts(15, 60)):
        if t == 30:
            arms.add(ARMS[3])
        trial = run.ask(context=z)
        y = reward(z, trial.index, noise[t])
        run.tell(trial, y)
        whole.observe(trial.index, y, context=z)
    assert run.models.arm_blocks == whole.models.arm_blocks
    assert 3 in [run.log.index[k] for k in range(30, 60)]
    np.testing.assert_array_equal(run.probabilities, whole.probabilities)
