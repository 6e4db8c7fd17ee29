import numpy as np
import pytest

import alexp

ARMS = ["a", "b", "c"]


def made(**settings):
    models = alexp.ModelClass.per_arm({"z": [0, 1, 2, 3]}, ARMS, intercept=False)
    return alexp.LassoBandit(models, alexp.Arms(ARMS), reward_bound=1.0, random_state=0, **settings)


@pytest.mark.parametrize(("q", "K"), [(1, 3), (2, 3), (3, 1)])
def test_the_schedule_is_that_of_the_paper(q, K):
    opt = made(q=q)
    opt._arms = K
    expected = {}
    for n in range(6):
        for a in range(1, K + 1):
            for j in range(q * (a - 1) + 1, q * a + 1):
                expected[(2**n - 1) * K * q + j] = a - 1
    last = (2**5 - 1) * K * q
    assert {t: opt.forced_arm(t) for t in range(1, last) if opt.forced_arm(t) is not None} == {
        t: a for t, a in expected.items() if t < last
    }


def test_forced_asks_are_counted_and_other_rows_are_not_forced():
    opt = made()
    rng = np.random.default_rng(0)
    opt.observe("b", 0.5, context=rng.standard_normal(4))  # takes the place of the first ask, which is for arm a
    trials = [opt.ask(context=rng.standard_normal(4)) for _ in range(2)]
    assert [trial.index for trial in trials] == [1, 2]
    assert all(trial.explored and trial.propensity == 1.0 for trial in trials)
    for trial in trials:
        opt.tell(trial, 1.0)
    counts = [[path.n_observations for path in pair] for pair in opt._data]
    assert counts == [[0, 0], [1, 2], [1, 1]]
    for _ in range(3):  # what is given up is asked for again
        again = opt.ask(context=rng.standard_normal(4))
        assert (again.index, again.explored) == (0, True)
        opt.abandon(again)
        opt = alexp.LassoBandit.from_dict(opt.to_dict())
    other = opt.ask(context=rng.standard_normal(4), available=["b", "c"])  # forced for arm a, which is not there
    opt.tell(other, 0.0)
    assert not other.explored
    assert opt._data[other.index][0].n_observations == 1


def test_the_forced_lasso_screens_and_the_other_decides():
    opt = made(h=1.0)
    opt._beta[0, :, 0] = [2.0, 1.6, 1.0]  # forced: arm c is more than h/2 behind
    opt._beta[1, :, 0] = [0.0, 1.0, 5.0]
    for _ in range(6):  # two forced passes
        opt.ask(context=np.ones(4))
    context = np.array([1.0, 0.0, 0.0, 0.0])
    assert np.flatnonzero(opt.policy(context=context)).tolist() == [1]
    wide = made(h=2.5)
    wide._beta[:] = opt._beta
    for _ in range(6):
        wide.ask(context=np.ones(4))
    assert np.flatnonzero(wide.policy(context=context)).tolist() == [2]


def test_candidates_with_coefficients_in_common_are_one_arm():
    models = alexp.ModelClass.from_blocks({"x": 3})
    opt = alexp.LassoBandit(models, alexp.Candidates(), reward_bound=1.0, random_state=0)
    forced = []
    for t in range(16):
        features = np.random.default_rng(t).standard_normal((4, 3))
        policy = opt.policy(features=features)
        forced.append(bool(np.allclose(policy, 0.25)))
        trial = opt.ask(features=features)
        opt.tell(trial, float(features[trial.index, 0]))
    assert [t + 1 for t in range(16) if forced[t]] == [1, 2, 4, 8, 16]
    features = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    assert opt.best(features=features).index == 1
