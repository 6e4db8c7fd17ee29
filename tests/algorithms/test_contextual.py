"""Contextual runs: what trials and logs hold, growth of arms, repeats, certificates, and what is refused."""

import json

import numpy as np
import pytest

import alexp
from alexp.algorithms.log import NoRewardYetError
from alexp.algorithms.offer_log import check_packed, pack_rows, plain, unpack_rows, unplain
from alexp.algorithms.warming import warm_up
from alexp.testing.contextual import PROBLEMS, Crossed

PAIRS = alexp.ModelClass(Crossed(), [[0, 1, 2], [3, 4, 5], [0, 3]])
BLOCKS = alexp.ModelClass.from_blocks({"a": 3, "b": 2})
pytestmark = pytest.mark.filterwarnings("ignore::alexp.AssumptionWarning")


class PerArm:
    """p features of a context with columns of their own for each of K arms."""

    def __init__(self, n_arms, size=2):
        self.n_arms, self.size = n_arms, size
        self.n_columns = n_arms * size
        self.names = [f"f{k}@{a}" for a in range(n_arms) for k in range(size)]

    def offered(self, context, candidates):
        assert len(candidates) == self.n_arms
        return np.kron(np.eye(self.n_arms), np.asarray(context)[None, :])

    def __call__(self, x):
        raise TypeError

    def to_dict(self):
        return None


class Growing(alexp.ModelClass):
    """Models per arm that can have more arms."""

    def with_arms(self, arms):
        return per_arm(len(arms))


def per_arm(n_arms):
    return Growing(PerArm(n_arms), [np.arange(n_arms) * 2, np.arange(n_arms * 2)], ["first", "both"])


def contexts(n, seed=0, size=2):
    return np.random.default_rng(seed).normal(size=(n, size))


def test_a_trial_tells_of_its_round():
    opt = alexp.LinUCB(PAIRS, alexp.Arms(["one", "four", "fifteen"]), random_state=0)
    context = np.ones(3)
    trial = opt.ask(context=context, available=["four", "one"], scores=True)
    context[:] = 9.0  # the caller's array is the caller's
    assert trial.x in ("one", "four")
    assert trial.x == ["one", "four", "fifteen"][trial.index]
    assert trial.n_candidates == 3
    assert trial.scores.tolist() == [float(k == trial.index) for k in range(3)]
    np.testing.assert_array_equal(opt.trial(trial.id).context, np.ones(3))
    assert opt.trial(trial.id) == trial
    assert opt.trial(trial.id).scores is None
    assert json.loads(json.dumps(opt.trial(0).to_dict()))["context"] == [1.0, 1.0, 1.0]
    assert "context" not in alexp.LinUCB(alexp.ModelClass.legendre(2, 1), alexp.Interval()).ask().to_dict()


def test_the_frame_has_what_evaluation_needs():
    opt = alexp.EvidenceMixture(PAIRS, alexp.Candidates(), random_state=0, log_features="all")
    sets = [[(1.0, 0.5), (0.2, 0.1)], [(0.3, -1.0), (1.0, 1.0), (0.0, 2.0)]]
    for k, candidates in enumerate(sets):
        trial = opt.ask(context={"age": 3, "c": 1}["c"] * np.ones(3), candidates=candidates, ids=range(len(candidates)))
        opt.tell(trial, float(k))
    opt.observe(1, 0.5, context=np.ones(3), candidates=sets[0], propensity=0.5, available=[1])
    frame = opt.log_frame()
    assert set(frame) == {"id", "x", "index", "model", "explored", "propensity", "reward", "n", "context", "ids",
                          "available", "features"}  # fmt: skip
    assert frame["n"].tolist() == [2, 3, 2]
    assert frame["ids"].tolist() == [[0, 1], [0, 1, 2], None]
    assert frame["x"].tolist() == [sets[k][i] for k, i in zip((0, 1, 0), frame["index"], strict=True)]
    np.testing.assert_array_equal(frame["features"][1], PAIRS.offered(np.ones(3), sets[1]))
    assert [None if a is None else a.tolist() for a in frame["available"]] == [None, None, [1]]
    fixed = alexp.UniformRandom(alexp.ModelClass.legendre(2, 1), alexp.Interval(resolution=7), random_state=0)
    fixed.tell(fixed.ask(), 1.0)
    assert fixed.log_frame()["n"].tolist() == [7]
    assert fixed.policy().tolist() == [1.0 / 7.0] * 7
    assert fixed.policy(available=[2, 3]).tolist() == [0.0, 0.0, 0.5, 0.5, 0.0, 0.0, 0.0]
    arms = alexp.LinUCB(PAIRS, alexp.Arms(["a", "bb"]), random_state=0)
    arms.ask(context=np.ones(3))
    assert arms.log_frame()["ids"].tolist() == [["a", "bb"]]
    assert arms.log_frame()["features"].tolist() == [None]


def test_rows_are_stored_compactly_and_bit_for_bit():
    dense, sparse = np.array([[1.0, 2.0], [-0.0, 3.0]]), np.kron(np.eye(6), np.ones(4))
    sparse[0, 5] = -0.0
    for rows in (dense, sparse):
        packed = pack_rows(rows)
        again = unpack_rows(packed, len(rows), rows.shape[1])
        assert again.tobytes() == rows.tobytes()
        check_packed("rows", packed, len(rows), rows.shape[1])
    assert len(pack_rows(sparse)) < 0.3 * sparse.nbytes
    assert unpack_rows(pack_rows(dense), 2, 3).tolist() == [[1.0, 2.0, 0.0], [0.0, 3.0, 0.0]]
    for wrong in (b"", pack_rows(dense)[:-1], pack_rows(np.array([[np.inf, 1.0]] * 2)), b"x" * 30):
        with pytest.raises(ValueError, match="rows must hold"):
            check_packed("rows", wrong, 2, 2)


def test_contexts_are_stored_as_plain_data():
    value = {"age": np.int64(3), "tags": ("a", ("b", 1)), "v": np.arange(2.0), "more": [1, {"x": None}], "o": 2j}
    kept = unplain(plain(value))
    assert kept["tags"] == ("a", ("b", 1))
    assert kept["v"] is value["v"]
    assert (kept["age"], kept["more"], kept["o"]) == (3, [1, {"x": None}], "2j")


def test_rows_of_arms_take_no_more_than_their_own_columns():
    def size(n_arms):
        opt = alexp.LinUCB(per_arm(n_arms), alexp.Arms([f"a{k}" for k in range(n_arms)]), random_state=0)
        for context in contexts(20):
            opt.tell(opt.ask(context=context), 0.5)
        return len(opt.log.offers._chosen[5])

    assert size(50) == size(5)


@pytest.mark.parametrize("kind", [alexp.LinUCB, alexp.ALExp, alexp.EvidenceMixture, alexp.LMUCB])
def test_arms_that_are_added_are_played_and_nothing_is_forgotten(kind):
    arms = alexp.Arms(["a", "b"])
    opt = kind(per_arm(2), arms, noise_std=0.1, norm_bound=1.0, random_state=0)
    for step, context in enumerate(contexts(12)):
        trial = opt.ask(context=context)
        if step % 4:
            opt.tell(trial, float(context[0] * (1 if trial.x == "a" else -1)))
    arms.add("c")
    assert opt.policy(context=np.ones(2)).size == 3
    assert opt.models.n_columns == 6
    late = opt.pending()
    assert len(late) == 3
    for trial in late:
        opt.tell(trial, 0.1)
    for context in contexts(15, 1):
        trial = opt.ask(context=context)
        opt.tell(trial, 1.0 if trial.x == "c" else 0.0)
    assert "c" in set(opt.trials_dataframe()["x"])
    opt.amend(1, 0.3)
    again = kind.from_dict(json.loads(json.dumps(opt.to_dict(problem=False))), opt.models, arms)
    assert again.ask(context=np.ones(2)) == opt.ask(context=np.ones(2))
    fresh = kind(per_arm(3), arms, noise_std=0.1, norm_bound=1.0, random_state=0)
    for trial, frame_row in zip(range(opt.n_asked), opt.log_frame().itertuples(), strict=True):
        if not np.isnan(frame_row.reward) and trial < 12:
            fresh.observe(frame_row.x, frame_row.reward, context=frame_row.context)
    assert fresh.n_told == 12


def test_arms_are_added_at_once_where_columns_belong_to_no_arm():
    arms = alexp.Arms(["one", "four"])
    runs = [kind(PAIRS, arms, random_state=0) for kind in (alexp.LinUCB, alexp.UniformRandom)]
    for opt in runs:
        opt.tell(opt.ask(context=np.ones(3)), 1.0)
    arms.add("fifteen")
    for opt in runs:
        assert opt.ask(context=np.ones(3)).n_candidates == 3
        opt.observe("fifteen", 5.0, context=np.ones(3))
        opt = type(opt).from_dict(opt.to_dict(problem=False), PAIRS, arms)
        assert opt.ask(context=np.ones(3)).n_candidates == 3
    assert runs[1].best(context=np.ones(3)).x == "fifteen"


def test_growth_needs_a_log_that_can_be_repeated():
    arms = alexp.Arms(["a", "b"])
    opt = alexp.LinUCB(per_arm(2), arms, random_state=0, log_features="none")
    opt.tell(opt.ask(context=np.ones(2)), 1.0)
    arms.add("c")
    with pytest.raises(ValueError, match="nor arms added"):
        opt.ask(context=np.ones(2))


def test_repeats_go_by_ids():
    opt = alexp.EvidenceMixture(BLOCKS, alexp.Candidates(), repeats=False, random_state=0)
    rng, seen = np.random.default_rng(0), []
    for _ in range(6):
        trial = opt.ask(features=rng.normal(size=(6, 5)), ids=list("abcdef"))
        seen.append(trial.x)
        opt.tell(trial, 1.0)
    assert sorted(seen) == list("abcdef")
    before = json.dumps(opt.to_dict())
    with pytest.raises(ValueError, match="n must be at most 0"):
        opt.ask(features=np.ones((2, 5)), ids=["a", "b"])
    with pytest.raises(ValueError, match="repeats=False needs ids="):
        opt.ask(features=np.ones((2, 5)))
    with pytest.raises(ValueError, match="at most 1"):
        opt.ask(2, features=np.ones((2, 5)), ids=["a", "new"])
    assert json.dumps(opt.to_dict()) == before
    assert opt.ask(features=np.ones((2, 5)), ids=["a", "new"]).x == "new"
    opt.amend(0, 2.0)
    with pytest.raises(ValueError, match="no meaning for arms"):
        alexp.LinUCB(PAIRS, alexp.Arms(["a"]), repeats=False)


def test_what_makes_no_sense_is_refused_at_construction():
    domain = alexp.Candidates()
    with pytest.raises(ValueError, match="DOptimal designs for a table"):
        alexp.ALExp(BLOCKS, domain, exploration=alexp.DOptimal())
    with pytest.raises(ValueError, match="log_features is for contextual rounds"):
        alexp.LinUCB(alexp.ModelClass.legendre(2, 1), alexp.Interval(), log_features="all")
    with pytest.raises(ValueError, match="log_features must be one of"):
        alexp.LinUCB(BLOCKS, domain, log_features="some")
    with pytest.raises(TypeError, match="Arms or Candidates"):
        alexp.LinUCB(BLOCKS, "arms")

    class Tabular(alexp.LinUCB):
        needs_table = "it sorts all candidates"

    with pytest.raises(ValueError, match="Tabular needs a table of candidates: it sorts all candidates"):
        Tabular(BLOCKS, domain)


def test_without_a_round_there_is_nothing_to_say():
    opt = alexp.LMUCB(BLOCKS, alexp.Candidates(), noise_std=0.1, norm_bound=1.0, random_state=0)
    with pytest.raises(RuntimeError, match="at least one reward"):
        opt.best(features=np.ones((2, 5)))
    opt.tell(opt.ask(features=np.eye(5)), 0.3)
    for ask in (opt.best, opt.ask, opt.policy, opt.stop_report, opt.confidence):
        with pytest.raises(ValueError, match="features= is missing"):
            ask()
    with pytest.raises(ValueError, match="without x"):
        opt.confidence(1.0, features=np.eye(5))
    with pytest.raises(TypeError, match="no table"):
        opt.features()


def test_certificates_are_about_a_round():
    rng, theta = np.random.default_rng(3), np.array([0.5, -0.3, 0.2, 0.0, 0.0])
    opt = alexp.LMUCB(BLOCKS, alexp.Candidates(), noise_std=0.1, norm_bound=1.0, random_state=0)
    for _ in range(60):
        features = rng.normal(size=(8, 5))
        trial = opt.ask(features=features)
        opt.tell(trial, float(features[trial.index] @ theta + 0.1 * rng.normal()))
    assert opt.certifies
    assert opt.plausible_models().tolist() == [0]
    assert not opt.check_models().contradicted
    assert opt.check_models().checked
    features = rng.normal(size=(8, 5))
    band = opt.confidence(features=features)
    assert np.all(band.lower <= features @ theta)
    assert np.all(features @ theta <= band.upper)
    report = opt.stop_report(features=features, epsilon=1.0)
    assert report.certified
    assert report.index == opt.best(features=features).index
    assert (features @ theta).max() - features[report.index] @ theta <= report.epsilon
    assert report.between_candidates is None
    for _ in range(40):  # what was stated is wrong from here on
        features = rng.normal(size=(8, 5))
        opt.tell(opt.ask(features=features), 3.0 * rng.normal())
    assert opt.check_models().contradicted
    assert not opt.stop_report(features=features).certified


def test_a_bound_on_rewards_certifies_nothing_without_a_table():
    opt = alexp.LMUCB(BLOCKS, alexp.Candidates(), noise_std=0.1, reward_bound=1.0, random_state=0)
    opt.tell(opt.ask(features=np.eye(5)), 0.3)
    with pytest.raises(alexp.NotCertified, match="state norm_bound"):
        opt.plausible_models()
    assert "state norm_bound" in opt.stop_report(features=np.eye(5)).reason
    bare = alexp.LMUCB(BLOCKS, alexp.Candidates(), noise_std=0.1, norm_bound=1.0, log_features="none", random_state=0)
    bare.tell(bare.ask(features=np.eye(5)), 0.3)
    with pytest.raises(alexp.NotCertified, match="log_features"):
        bare.plausible_models()


def test_the_true_model_is_seldom_lost_to_adversarial_rounds():
    """Sets that react to what was played, delta = 0.1: lost in at most 10% of runs, all moments together."""
    lost = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        theta = np.append(rng.normal(size=3), [0.0, 0.0])
        theta /= np.linalg.norm(theta)
        opt = alexp.LMUCB(BLOCKS, alexp.Candidates(), noise_std=0.3, norm_bound=1.0, random_state=seed)
        gone, last = False, np.zeros(5)
        for t in range(15):
            features = rng.normal(size=(4, 5)) * rng.choice([0.1, 1.0, 3.0]) - last  # away from what it has learned
            trial = opt.ask(features=features)
            last = features[trial.index] * (t % 3 == 0)
            opt.tell(trial, float(features[trial.index] @ theta + 0.3 * rng.choice([-1.0, 1.0])))
            try:
                gone |= 0 not in opt.plausible_models(0.1)
            except alexp.NotCertified:
                gone = True
        lost += gone
    assert lost <= 3


def test_probabilities_are_those_of_the_last_ask():
    problem = PROBLEMS[0]
    opt = problem.make(alexp.ALExp)
    for step in range(5):
        opt.tell(opt.ask(**problem.round(step)), 0.5 * step)
    before = opt.probabilities
    opt.tell(opt.ask(**problem.round(6)), 1.0)
    assert not np.array_equal(opt.probabilities, before)  # the ask has scored
    after = opt.cumulative_returns
    opt.policy(**problem.round(7))
    np.testing.assert_array_equal(opt.cumulative_returns, after)


def test_fingerprints_tell_contextual_problems_apart():
    def mark(models, domain=alexp.Candidates):
        return alexp.LinUCB(models, domain(), random_state=0).fingerprint()

    sizes = {"a": 3, "b": 2}
    one = mark(alexp.ModelClass.from_blocks(sizes, example=np.eye(5)))
    assert one == mark(alexp.ModelClass.from_blocks(sizes, example=np.eye(5)))
    others = [
        mark(alexp.ModelClass.from_blocks(sizes)),
        mark(alexp.ModelClass.from_blocks(sizes, example=2.0 * np.eye(5))),
        mark(alexp.ModelClass.from_blocks({"a": 2, "b": 3}, example=np.eye(5))),
        mark(alexp.ModelClass.from_blocks({"a": 3, "c": 2}, example=np.eye(5))),
        mark(alexp.ModelClass.from_blocks(sizes, example=np.eye(5), intercept=True)),
    ]
    assert len({one, *others}) == 6
    saved = alexp.LinUCB(alexp.ModelClass.from_blocks(sizes), alexp.Candidates(), random_state=0).to_dict()
    with pytest.raises(ValueError, match="other features"):
        alexp.LinUCB.from_dict(saved, models=alexp.ModelClass.from_blocks({"a": 2, "b": 3}))


def test_damaged_rounds_are_refused():
    opt = alexp.LinUCB(BLOCKS, alexp.Candidates(), random_state=0)
    opt.tell(opt.ask(features=np.eye(5), ids=list("abcde")), 1.0)
    opt.ask(features=np.eye(5))
    log = opt._log.state()

    def refused(match, **changes):
        fresh = alexp.LinUCB(BLOCKS, alexp.Candidates(), random_state=0)
        offers = dict(log["offers"]) | changes
        with pytest.raises(ValueError, match=match):
            fresh.resume(log | {"offers": offers}, opt._whole_state())
        assert fresh.n_asked == 0

    none = {"sizes": np.zeros(2, dtype=np.int64), "data": np.empty(0, dtype=np.uint8)}
    refused("lacks the row of trial 0", chosen=none)
    refused("n_candidates", n_candidates=np.array([5]))
    refused("below log", n_candidates=np.array([9, 1]), ids=[None, None])
    refused("distinct", ids=[["a"] * 5, None])
    refused("sum of its sizes", chosen=log["offers"]["chosen"] | {"data": np.zeros(3, dtype=np.uint8)})
    refused("must have 2 entries", contexts=[None])
    refused("n_candidates", n_candidates=np.array([10**12, 5]))
    whole = alexp.LinUCB.from_dict(opt.to_dict())
    assert whole.log_features == "chosen"
    with pytest.raises(ValueError, match="lacks the rows that trial 0 was chosen from"):
        alexp.LinUCB.from_dict(opt.to_dict(), log_features="all")


def test_compiling_ahead_needs_no_round():
    for problem in PROBLEMS:
        opt = problem.make(alexp.EvidenceMixture)
        warm_up(opt)
        assert opt.n_asked == 0


def test_predictions_in_a_round():
    opt = alexp.EvidenceMixture(BLOCKS, alexp.Candidates(), random_state=0)
    opt.tell(opt.ask(features=np.eye(5)), 1.0)
    mean, std = opt.predict(features=np.eye(5)[:3])
    assert mean.shape == std.shape == (3,)


def test_an_id_is_free_again_when_its_trial_is_given_up_or_its_reward_withdrawn():
    opt = alexp.LinUCB(BLOCKS, alexp.Candidates(), repeats=False, random_state=0)
    first, second = opt.ask(2, features=np.eye(5)[:2], ids=["a", "b"])
    opt.abandon(first)
    assert opt.ask(features=np.eye(5)[:2], ids=["a", "b"]).x == first.x
    opt.tell(second, 1.0)
    opt.retract(second)
    assert opt.ask(features=np.eye(5)[:2], ids=["a", "b"]).x == second.x
    again = alexp.LinUCB.from_dict(opt.to_dict())
    assert again.log.offers.played == opt.log.offers.played == {"a": 1, "b": 1}


def test_asks_between_rewards_draw_random_numbers_of_their_own():
    agent = alexp.ThompsonSampling(draws=1)
    opt = alexp.LinUCB(BLOCKS, alexp.Candidates(), agent=agent, random_state=0)
    opt.tell(opt.ask(features=np.eye(5)), 0.1)
    features = np.random.default_rng(1).normal(size=(40, 5))
    assert len({opt.ask(features=features).index for _ in range(20)}) > 5
    np.testing.assert_array_equal(opt.policy(features=features), opt.policy(features=features))


def test_many_rewards_may_be_out():
    opt = alexp.LMUCB(BLOCKS, alexp.Candidates(), noise_std=0.1, norm_bound=1.0, random_state=0)
    rng = np.random.default_rng(0)
    for _ in range(100):
        opt.ask(features=rng.normal(size=(3, 5)))
    features = rng.normal(size=(3, 5))
    again = alexp.LMUCB.from_dict(json.loads(json.dumps(opt.to_dict())))
    assert again.ask(features=features) == opt.ask(features=features)
    pending = opt._open_offer(opt._check_offer(features=features)).pending
    assert pending.trials.tolist() == list(range(69, 101))  # the newest
    np.testing.assert_array_equal(pending.rows[-1], opt.log.offers.row(100))
    for trial in opt.pending()[::7]:
        opt.tell(trial, 0.1)


def test_a_recommendation_before_the_first_reward_leaves_the_run_whole():
    """A run that keeps no features cannot be repeated, so an answer that there is none must not ask for that."""
    run = alexp.UniformRandom(BLOCKS, alexp.Candidates(), log_features="none", random_state=0)
    with pytest.raises(NoRewardYetError):
        run.best(features=np.ones((2, 5)))
    run.tell(run.ask(features=np.ones((2, 5))), 0.5)
    assert run.n_told == 1
