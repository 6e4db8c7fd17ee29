"""The same arms as the authors' released codes, round by round.

`data/reference.json` has what those codes chose on streams that `stream` draws again, with their Lassos solved to 1e-14
(and without a constant for LASSO Bandit, whose release fits one and leaves it out). Each of our runs is made to play
the reference's arms, so that one difference does not become many, and its policy is compared in every round.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import alexp
from alexp.decision.plays import Proposal

REFERENCE = json.loads((Path(__file__).parent / "data" / "reference.json").read_text())
TIGHT = alexp.GroupLasso(tol=1e-13, canonical=False)


def stream(seed, T, K, p, s0, rho2, sigma, low, high):
    """Contexts (K, p), theta and noise of every round; RandomState's numbers are the same in every version of NumPy."""
    rng = np.random.RandomState(seed)
    theta = np.zeros(p)
    theta[rng.permutation(p)[:s0]] = rng.uniform(low, high, s0)
    for _ in range(T):
        if rho2 is None:
            x = rng.uniform(-1, 1, (K, p))
        else:
            common = rng.standard_normal(p)
            x = np.sqrt(1 - rho2) * rng.standard_normal((K, p)) + np.sqrt(rho2) * common
        yield x, theta, sigma * rng.standard_normal()


def made(name):
    """Our algorithm with the constants of a reference run; its noise is one, so that lambdas are as they are there."""
    case, known = REFERENCE[name], REFERENCE[name]["settings"]
    models = alexp.ModelClass.from_blocks({"x": case["stream"]["p"]}, intercept=not name.startswith("th"))
    shared = {"noise_std": 1.0, "reward_bound": 1.0, "oracle": TIGHT, "random_state": 0}
    if name.startswith("sa"):
        return alexp.SALasso(models, alexp.Candidates(), lam=2.0 * known["sigma"], **shared)
    if name.startswith("th"):
        return alexp.THLasso(models, alexp.Candidates(), lam=known["lam0"], **shared)
    if name.startswith("dr"):
        constants = {"lam1": known["lam1"], "lam2": known["lam2"], "n_uniform": known["zt"], "clip": 3.0}
        return alexp.DRLasso(models, alexp.Candidates(), **constants, **shared)
    arms = alexp.Arms([str(a) for a in range(case["stream"]["K"])])
    per_arm = alexp.ModelClass.per_arm({"x": range(case["stream"]["K"] * case["stream"]["p"])}, arms, intercept=False)
    return alexp.LassoBandit(per_arm, arms, **known, **shared)


def ask_for(opt, arm, presented):
    """Ask, and let chance decide for this arm."""

    def decided(round_):
        decision = type(opt)._decision(opt, round_)
        forced = getattr(decision.play, "explored", False)  # of LASSO Bandit
        proposal = Proposal(arm, None, forced, decision.play.probability(arm))
        object.__setattr__(decision.play, "draw", lambda rng: proposal)
        return decision

    opt._decision = decided
    trial = opt.ask(**presented)
    del opt._decision
    return trial


@pytest.mark.filterwarnings("ignore::alexp.AssumptionWarning")
@pytest.mark.parametrize("name", list(REFERENCE))
def test_the_same_arms_as_the_released_code(name):
    case, opt = REFERENCE[name], made(name)
    opt._visiting_order = lambda k, n: np.arange(n)  # the first of equally good arms, as the reference has it
    for t, (x, theta, noise) in enumerate(stream(**case["stream"])):
        presented = {"context": x.ravel()} if name == "lasso" else {"features": x}
        arm, policy = case["arms"][t], opt.policy(**presented)
        if not (name.startswith("th") and t < 2):  # where its lambda is zero the reference solves a Lasso of one row
            expected = case["chance"][t] if case["chance"] else 1.0
            assert policy[arm] == pytest.approx(expected, abs=1e-9), f"round {t}"
        opt.tell(ask_for(opt, arm, presented), float(x[arm] @ theta) + noise)
        if str(t + 1) in case["beta"] and name != "lasso":
            beta = np.zeros(x.shape[1])
            for i, value in case["beta"][str(t + 1)]:
                beta[i] = value
            np.testing.assert_allclose(opt.fit.beta, beta, rtol=0, atol=1e-6)


def test_the_first_lasso_is_that_of_six_rewards():
    """In the released codes: `if t > 5`."""
    rng, models = np.random.default_rng(0), alexp.ModelClass.from_blocks({"x": 3})
    opt = alexp.SALasso(models, alexp.Candidates(), noise_std=1e-3, reward_bound=9.0, random_state=0)
    for _ in range(6):
        assert not opt.fit.beta.any()
        trial = opt.ask(features=(x := rng.standard_normal((4, 3))))
        opt.tell(trial, float(x[trial.index].sum()))
    assert opt.fit.beta.any()
