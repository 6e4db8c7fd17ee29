"""`ope.verdict`: whether a new policy may replace the one in use."""

import numpy as np
import pytest

import alexp
from alexp import ope
from alexp_experiments import verdicts

NAMES = ["small", "large"]


def routed(n=3000, missing=0.2, seed=0, **columns):
    """A log of a policy that plays 1 with probability .7; rewards .4 and .6."""
    rng = np.random.default_rng(seed)
    index = (rng.random(n) < 0.7).astype(int)
    rewards = (rng.random(n) < np.where(index == 1, 0.6, 0.4)).astype(float)
    rewards[rng.random(n) < missing] = np.nan
    return ope.Log(rewards, np.where(index == 1, 0.7, 0.3), index, 2, ids=[NAMES] * n, **columns)


def test_the_logger_against_an_incumbent():
    """The logger earns .54, "small" .4 and "large" .6."""
    log = routed()
    better, worse = ope.verdict(log, "small"), ope.verdict(log, "large")
    assert better.verdict.startswith("better by at least 0.0")
    assert worse.verdict.startswith("worse by at least 0.0")
    assert better.lower <= 0.14 <= better.upper
    assert worse.lower <= -0.06 <= worse.upper
    assert str(better).startswith(better.verdict)
    assert better.n_left_out == log.left_out["without reward"] > 0
    assert any("do not depend on their rewards" in line for line in better.assumes)


def test_what_is_said_is_rounded_down():
    found = ope.verdict(routed(), "small")
    said = float(found.verdict.split()[-1])
    assert 0.99 * found.lower < said <= found.lower


def test_few_rounds_decide_nothing():
    found = ope.verdict(routed(n=20), "small")
    assert found.verdict == "not yet"
    assert found.decided_at is None


def test_policies_by_action_name_function_choices_or_probabilities_are_the_same():
    log = routed()
    ways = [0, "small", lambda round_: "small", lambda round_: 0, np.tile([1.0, 0.0], (len(log), 1)), ["small"] * 3000]
    ways.append(np.zeros(3000, dtype=int))
    found = {ope.verdict(log, way).interval for way in ways}
    assert len(found) == 1
    assert (
        ope.verdict(log, "large", "small").interval
        == ope.compare(log, "large", "small", reward_range=(0, 1), method="drifting").interval
    )


def test_the_logger_as_a_policy_of_its_own_has_the_same_value():
    """From propensities of played actions, or from probabilities of all: other payoffs of the same difference."""
    log = routed()
    one, two = ope.verdict(log, "small"), ope.verdict(log, "small", np.tile([0.3, 0.7], (3000, 1)))
    assert one.value == pytest.approx(two.value, abs=1e-12)
    assert one.upper - one.lower == pytest.approx(two.upper - two.lower, rel=0.5)


def test_own_payoffs_have_the_right_mean_and_stay_above_minus_one():
    """Exactly, over the draw of the action: p(a) x(a) adds up to the difference for every reward."""
    p, incumbent, means = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.2, 0.7]), np.array([0.2, 0.9, 0.5])
    for offset, sign in ((1.0, 1.0), (0.0, -1.0)):
        change = sign * (p - incumbent)
        bets = ope.sequences.Bets(
            ope.log.Ragged(np.stack((change, -change), axis=1).ravel(), 2 * np.arange(4)),
            np.zeros(3, dtype=int),
            p,
            means,
            difference=True,
            offset=offset,
        )
        payoffs = bets.payoffs("drifting")
        assert p @ payoffs.values[:, 0] == pytest.approx(sign * (p - incumbent) @ means)
        for rewards in (np.zeros(3), np.ones(3)):
            extreme = ope.sequences.replace(bets, rewards=rewards).payoffs("drifting")
            assert extreme.values.min() >= -extreme.lows[0] - 1e-12


def test_bounds_of_losses_are_those_of_rewards():
    log = routed()
    turned = ope.Log(1.0 - log.rewards, log.propensities, log.index, 2)
    one, two = ope.verdict(log, 0), ope.verdict(turned, 0)
    assert one.interval == pytest.approx((-two.upper, -two.lower), abs=1e-12)


def test_a_learner_of_this_library_is_judged_from_its_log():
    arms = alexp.Arms(NAMES)
    models = alexp.ModelClass.per_arm({"one": [0], "two": [1]}, arms)
    opt = alexp.EvidenceMixture(models, arms, floor=0.3, random_state=0)
    rng = np.random.default_rng(1)
    for _ in range(400):
        context = rng.uniform(-1.0, 1.0, 2)
        trial = opt.ask(context=context)
        opt.tell(trial, float((trial.index == 1) == (context[0] > 0)))
    found = ope.verdict(ope.Log.from_frame(opt.log_frame()), "small")
    assert found.verdict.startswith("better by at least")
    assert found.decided_at < 400


def test_a_policy_that_gets_worse_loses_its_verdict():
    """It was better in the first quarter and is worse since: "drifting" follows the mean so far."""
    n = 4000
    rng = np.random.default_rng(3)
    index = rng.integers(2, size=n)
    one = np.arange(n) < n // 4
    rewards = np.where(one, index == 1, index == 0).astype(float)
    log = ope.Log(rewards, np.full(n, 0.5), index, 2)
    found = ope.verdict(log, 0, 1)
    assert found.running_lower[n // 4] > 0.5
    assert found.verdict.startswith("worse by at least 0.4")
    assert found.decided_at > n // 2


@pytest.mark.parametrize(
    ("incumbent", "options", "words"),
    [
        ("huge", {}, "incumbent plays 'huge' in round 0, and its candidates are small, large"),
        (2, {}, r"incumbent plays 2 in round 0, and its candidates are 0\.\.1"),
        ("small", {"policy": ["small"] * 2}, "policy must have one entry for each of the 3000"),
        ("small", {"policy": -1}, "policy plays -1 in round 0"),
        ("small", {"reward_range": (0.0, 0.5)}, "rewards lie outside the stated range"),
        ("small", {"delta": 0.0}, "delta"),
        (True, {}, "incumbent must be a list"),
    ],
)
def test_refusals(incumbent, options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        ope.verdict(routed(), incumbent, **options)


def test_names_need_names_in_the_log():
    log = ope.Log([1.0, 0.0], [0.5, 0.5], [0, 1], 2)
    with pytest.raises(ValueError, match="the log has no names"):
        ope.verdict(log, "small")


def test_claims_are_rarely_false():
    """120 logs of each logger: at most delta of them, and the clear cases are found. The whole form has 1,000."""
    found = verdicts.figures(logs=120, rounds=300, own=0, seed=900)
    print("\n" + verdicts.table(found))
    for title, some in found.items():
        assert sum(not one.right for one in some) <= 0.05 * len(some), title
    assert sum(one.sentence.startswith("better") for one in found["shadow: a sharper policy"]) > 60
    assert sum(one.sentence != "not yet" for one in found["shadow: two policies of one value"]) <= 12


def test_the_command_prints_the_part_of_the_page(capsys):
    verdicts.main(["--logs", "2", "--rounds", "40", "--workers", "1"])
    said, _, head, _, *rows = capsys.readouterr().out.splitlines()
    assert said == "2 logs of each logger, 40 rounds, seeds from 0."
    assert head.startswith("| | logs | a false claim")
    assert len(rows) == 7
