"""Rewards that come out the same when a candidate is measured again: learned once, sure for that candidate alone."""

import json

import numpy as np
import pytest

import alexp
from alexp.estimation.mixture import making
from alexp.estimation.mixture.replays import Replays, replayed
from alexp.kernels import Matern
from alexp.problem.candidates import Choices

N = 60
PLACES = np.random.default_rng(5).uniform(-1.0, 1.0, (N, 2))
EXACT = np.cos(3.0 * PLACES[:, 0]) + PLACES[:, 1] + 0.4 * np.random.default_rng(6).standard_normal(N)
LINEAR = alexp.ModelClass.from_matrices({"a": PLACES, "b": PLACES**2})
KERNELS = alexp.ModelClass.from_matrices({"a": PLACES}, kernels={"a": [Matern(), Matern(lengthscale=0.3)]})
TABLE = alexp.FiniteSet(np.arange(N))
BOTH = pytest.mark.parametrize("models", [LINEAR, KERNELS], ids=["linear", "kernels"])


def mixture(models, domain=TABLE, watched=True, **settings):
    opt = alexp.EvidenceMixture(models, domain, **{"random_state": 0, **settings})
    if not watched:
        opt._replays = Replays(False)
    return opt


def told(models, pairs, watched=True, **settings):
    opt = mixture(models, watched=watched, **settings)
    for candidate, reward in pairs:
        opt.observe(candidate, float(reward))
    return opt


def exact(*candidates):
    return [(candidate, EXACT[candidate]) for candidate in candidates]


def expectations(opt):
    """Of the models, whatever is known of single candidates."""
    round_ = opt._everything
    mean, variance = opt.belief.mixture.moments(opt.belief.weights, round_.wide)
    return np.concatenate([mean, variance, opt.probabilities, [opt.noise_estimate]])


@BOTH
def test_the_same_reward_again_is_not_learned(models):
    once, again = told(models, exact(3, 8, 20, 41, 7)), told(models, exact(3, 8, 3, 20, 41, 20, 3, 7))
    np.testing.assert_array_equal(expectations(again), expectations(once))
    assert (again.n_told, again.belief.mixture.n_observations) == (8, 5)


@BOTH
@pytest.mark.parametrize(
    "stated", [{"noise_std": 0.2}, {"reward_bound": 3.0}, {"rule": "thompson"}, {"goal": "best"}], ids=str
)
def test_it_is_where_something_is_stated_or_another_rule_decides(models, stated):
    assert told(models, exact(3, 8, 3, 20), **stated).belief.mixture.n_observations == 4


def test_it_is_on_an_interval():
    opt = alexp.EvidenceMixture(alexp.ModelClass.legendre(degree=3, size=2), alexp.Interval(-1.0, 1.0, resolution=9))
    for index in (2, 5, 2):
        opt.observe(index, 0.5)
    assert opt.belief.mixture.n_observations == 3


def beliefs(opt):
    """Mean and standard deviation at every candidate, (2, N)."""
    return np.array([opt.predict(x) for x in range(N)]).T


@BOTH
def test_replays_make_their_own_candidates_sure_and_no_others(models):
    opt, once = told(models, exact(3, 8, 20, 41, 7, 20, 20, 3)), told(models, exact(3, 8, 20, 41, 7))
    (mean, std), (mean_once, std_once) = beliefs(opt), beliefs(once)
    others = ~np.isin(np.arange(N), [3, 20])
    np.testing.assert_array_equal(mean[others], mean_once[others])
    np.testing.assert_array_equal(std[others], std_once[others])
    np.testing.assert_array_equal(mean[[3, 20]], EXACT[[3, 20]])
    noise = np.sqrt(opt.belief.mixture.noise_variance(opt.belief.weights))
    np.testing.assert_allclose(std[[3, 20]], noise * np.sqrt([1 / (2 * 3), 1 / (3 * 4)]), rtol=1e-12)


def test_settle_does_for_many_what_a_loop_does_for_one():
    rng = np.random.default_rng(2)
    for n_held in (0, 1, 5, 40):
        table, replays = rng.standard_normal(12), Replays(True)
        candidates = rng.integers(2, 12, n_held).tolist()
        for candidate in [*range(9), *candidates]:
            replays.hold(candidate, float(table[candidate]))
        indices, mean, variance = rng.permutation(12), rng.standard_normal(12), rng.random(12)
        counts = [max(0, (list(range(9)) + candidates).count(i) - 1) for i in indices]
        slow = [
            (mean[j], variance[j]) if k == 0 else (table[i], 0.7 / ((k + 1) * (k + 2)))
            for j, (i, k) in enumerate(zip(indices, counts, strict=True))
        ]
        fast = replays.settle(mean, variance, 0.7, Choices(indices, np.zeros((0, 12))))
        np.testing.assert_allclose(np.array(slow), np.array(fast).T, rtol=1e-15)


def test_the_largest_upper_bound_is_played():
    opt = told(LINEAR, exact(3, 8, 20, 41, 7, 20))
    assert opt.rule == alexp.rules.IDS()
    beta = np.sqrt(4.0 + 0.25 * np.log(7))
    bounds = [mean + beta * std for mean, std in (opt.predict(x) for x in range(N))]
    assert opt.ask().index == int(np.argmax(bounds))


@BOTH
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_another_reward_of_a_candidate_brings_all_of_them_back(models, direction):
    pairs = [*exact(3, 8, 3, 20, 3, 41, 8), (20, EXACT[20] + 0.01), *exact(7, 3)]
    opt = told(models, pairs, direction=direction)
    all_learned = told(models, pairs, watched=False, direction=direction)
    np.testing.assert_allclose(expectations(opt), expectations(all_learned), rtol=1e-8, atol=1e-10)
    assert opt.belief.mixture.n_observations == len(pairs)
    mean, std = opt.predict(3)
    assert std > 0.0
    assert mean != EXACT[3]


def play(opt, rewards, n):
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, rewards(trial.index, trial.id))
    return [opt.trial(k).index for k in range(opt.n_asked)]


def saved_and_loaded(opt):
    return alexp.EvidenceMixture.from_dict(json.loads(json.dumps(opt.to_dict())), opt.models, opt.domain)


def as_measured(index, trial):
    return float(EXACT[index])


def noisy_from_25(index, trial):
    return float(EXACT[index] + (0.1 * np.sin(trial) if trial >= 25 else 0.0))


@BOTH
@pytest.mark.parametrize("rewards", [as_measured, noisy_from_25])
@pytest.mark.parametrize("stop", [20, 30])
def test_a_saved_run_goes_on_bit_for_bit(models, rewards, stop):
    whole, first = (alexp.EvidenceMixture(models, TABLE, random_state=1) for _ in range(2))
    actions = play(whole, rewards, 40)
    assert len(set(actions)) < 40  # some were measured again
    play(first, rewards, stop)
    second = saved_and_loaded(first)
    assert play(second, rewards, 40 - stop) == actions
    np.testing.assert_array_equal(expectations(second), expectations(whole))


def test_a_state_in_which_all_were_learned_goes_on_learning():
    old = told(LINEAR, exact(3, 8, 3, 20, 3), watched=False)  # as versions did that held nothing back
    new = saved_and_loaded(old)
    new.observe(8, float(EXACT[8]))
    assert new.belief.mixture.n_observations == 6
    assert len(new.belief.replays) == 0


@BOTH
def test_corrections_give_the_run_that_had_them_from_the_start(models):
    opt = told(models, exact(3, 8, 3, 20))
    opt.amend(2, 0.123)
    other = told(models, [*exact(3, 8), (3, 0.123), *exact(20)])
    np.testing.assert_array_equal(expectations(opt), expectations(other))
    assert opt.belief.mixture.n_observations == 4
    opt.amend(2, float(EXACT[3]))
    np.testing.assert_array_equal(beliefs(opt), beliefs(told(models, exact(3, 8, 3, 20))))
    assert opt.belief.mixture.n_observations == 3
    opt.retract(2)
    np.testing.assert_array_equal(beliefs(opt), beliefs(told(models, exact(3, 8, 20))))


@BOTH
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_looking_back_expects_what_was_expected_at_the_time(models, direction):
    opt, expected = mixture(models, direction=direction), []
    for candidate in (3, 8, 20, 3, 41, 7, 3, 20, 11, 3):
        mean, std = opt.predict(candidate)
        noise = opt.belief.mixture.noise_variance(opt.belief.weights)
        expected.append((mean, np.sqrt(std**2 + noise), opt.probabilities))
        opt.observe(candidate, float(EXACT[candidate]))
    seen = opt.hindsight([0, 1])
    mean, std, weights = zip(*expected, strict=True)
    np.testing.assert_allclose(seen.mean[2:], mean[2:], rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(seen.std[2:], std[2:], rtol=1e-8)
    log_odds = [np.log(q[1] / q[0]) for q in (*weights, opt.probabilities)]
    np.testing.assert_allclose(seen.log_odds[1:, 1], log_odds[1:], rtol=1e-6, atol=1e-9)
    assert seen.mean[6] == EXACT[3]


def test_plates_have_the_largest_bounds_each_candidate_once():
    opt = told(LINEAR, exact(3, 8, 20, 41, 7, 20, 3, 3, 3))
    plate = [trial.index for trial in opt.ask(4)]
    assert len(set(plate)) == 4
    assert 3 not in plate  # its reward is sure and low
    bounds = [mean + np.sqrt(4.0 + 0.25 * np.log(10)) * std for mean, std in beliefs(opt).T]
    assert plate[0] == int(np.argmax(bounds))


ARMS = alexp.ModelClass.from_matrices({"arms": np.eye(3)})
THREE = alexp.FiniteSet(["control", "A", "B"])


def after_control(seed):
    """A run whose control has given 0 twice, so that it looks the best; rewards of A and B are N(.5, 1)."""
    rng, opt = np.random.default_rng(seed), mixture(ARMS, THREE, random_state=seed)
    for index, reward in [(0, 0.0), (1, -0.4), (2, -0.1), (0, 0.0)]:
        opt.observe(index, reward)
    return opt, lambda index, trial: 0.0 if index == 0 else float(rng.normal(0.5, 1.0))


def test_an_exact_control_does_not_make_others_known():
    opt, _ = after_control(0)
    once = mixture(ARMS, THREE)
    for index, reward in [(0, 0.0), (1, -0.4), (2, -0.1)]:
        once.observe(index, reward)
    for x in ("A", "B"):  # as much is expected of them, and less is known: their noise may be larger than the models'
        assert opt.predict(x)[0] == once.predict(x)[0]
        assert opt.predict(x)[1] > 2.0 * once.predict(x)[1]
    report, spread = opt.stop_report(delta=0.01), np.hypot(opt.predict("control")[1], opt.predict("B")[1])
    assert report.x == "control"
    assert report.epsilon > opt.predict("B")[0] + 2.5 * spread > 0.0


def test_an_exact_control_does_not_keep_others_from_being_tried():
    for seed in range(20):
        opt, rewards = after_control(seed)
        assert 2 in play(opt, rewards, 20)[4:], seed
        assert opt.belief.mixture.n_observations == opt.n_told == 24, seed


def test_every_candidate_is_measured_again_and_again():
    rewards = np.array([0.0, 0.1, 0.2, 0.3, 1.0])
    replays, counts, everything = Replays(True), np.zeros(5, dtype=int), Choices(np.arange(5), np.zeros((0, 5)))
    for t in range(1, 3001):
        mean, variance = replays.settle(rewards - 0.1, np.full(5, 0.05), 0.3, everything)
        candidate = int(np.argmax(mean + t**0.25 * np.sqrt(variance)))
        replays.hold(candidate, float(rewards[candidate]))
        counts[candidate] += 1
    assert counts.min() >= 4
    assert counts[4] > 2500


def test_rewards_that_several_candidates_give_are_learned():
    opt = told(LINEAR, [(3, 0.0), (8, 0.0), (3, 0.0), (8, 0.0), (20, 1.0), (20, 1.0)])
    assert (opt.belief.mixture.n_observations, len(opt.belief.replays)) == (5, 1)
    opt.observe(41, 1.0)
    assert (opt.belief.mixture.n_observations, len(opt.belief.replays)) == (7, 0)
    opt.observe(20, 1.0)
    assert opt.belief.mixture.n_observations == 8
    assert saved_and_loaded(opt).belief.mixture.n_observations == 8


def test_ties_are_held_apart_in_saved_runs():
    pairs = [(3, 0.0), (8, 0.0), (3, 0.0), (20, 1.0), (20, 1.0), (8, 0.0)]
    opt = told(LINEAR, pairs)
    again = saved_and_loaded(opt)
    assert (again.belief.mixture.n_observations, len(again.belief.replays)) == (5, 1)
    np.testing.assert_array_equal(beliefs(again), beliefs(opt))
    np.testing.assert_allclose(opt.hindsight([0, 1]).log_odds[-1, 1], np.log(np.divide(*opt.probabilities[::-1])))


def test_contextual_rounds_hold_nothing_back():
    opt = mixture(alexp.ModelClass.from_blocks({"a": 3, "b": 2}), alexp.Candidates(), rule="ucb")
    rng = np.random.default_rng(0)
    features = {"a": rng.standard_normal((2, 3)), "b": rng.standard_normal((2, 2))}
    for _ in range(4):
        opt.tell(opt.ask(features=features, ids=["x", "y"]), 1.0)
    assert not opt.belief.replays.watched
    assert opt.belief.mixture.n_observations == 4


def test_clicks_agree_by_chance_and_soon_differ():
    rng = np.random.default_rng(3)
    chances = rng.uniform(0.1, 0.6, N)
    opt = alexp.EvidenceMixture(LINEAR, TABLE, random_state=0)
    for _ in range(60):
        trial = opt.ask()
        opt.tell(trial, float(rng.random() < chances[trial.index]))
    assert len(opt.belief.replays) == 0
    assert opt.belief.mixture.n_observations == 60


def test_replayed_is_what_holding_would_have_led_to():
    rng = np.random.default_rng(0)
    for changed in (None, 3.5, 0.0):  # nothing, another reward of a candidate, a reward of another one
        candidates = rng.integers(6, size=30)
        rewards = candidates // 2 * (candidates > 3) + 0.1 * candidates * (candidates < 4)  # 4 and 5 tie
        candidates[20], rewards[20] = (candidates[20], rewards[20]) if changed is None else (6, changed)
        candidates[25], rewards[25] = (candidates[25], rewards[25]) if changed != 3.5 else (6, 4.5)
        one, learned = Replays(True), np.zeros(30, dtype=bool)
        for t, (candidate, reward) in enumerate(zip(candidates.tolist(), rewards.tolist(), strict=True)):
            learned[t] = not one.hold(candidate, reward)
            if one.release():
                learned[: t + 1] = True
        two, mask = replayed(candidates, rewards, True)
        assert (one._first, one.held, one.watched) == (two._first, two.held, two.watched)
        assert one.watched == (changed is None)
        assert len(one) == 30 - learned.sum()
        assert (len(one) > 0) == one.watched
        np.testing.assert_array_equal(mask, learned)
    assert replayed(candidates, rewards, False)[1].all()


def regret(seed, models, watched):
    rng = np.random.default_rng(seed)
    rewards = np.cos(3.0 * PLACES[:, 0]) + PLACES[:, 1] + 0.6 * rng.standard_normal(N)
    opt = mixture(models, watched=watched, random_state=seed)
    return sum(float(rewards.max() - rewards[index]) for index in play(opt, lambda i, _: float(rewards[i]), 80))


@BOTH
def test_less_is_lost_on_tables_that_no_model_explains(models):
    pairs = np.array([[regret(seed, models, watched) for watched in (True, False)] for seed in range(40)])
    logs = np.log(pairs[:, 0] / pairs[:, 1])
    ratio, error = np.exp(logs.mean()), logs.std() / np.sqrt(len(logs))
    print(f"held back / learned: {ratio:.2f} [{ratio * np.exp(-2 * error):.2f}, {ratio * np.exp(2 * error):.2f}]")
    assert ratio * np.exp(2 * error) < 1.0


def per_cents(seed, history, watched):
    """Regret in per cents, and whether the last 20 of 80 rounds all play one bad candidate."""
    rng = np.random.default_rng(seed)
    mean = PLACES @ rng.standard_normal(2)
    mean = 100.0 * (mean - mean.min()) / np.ptp(mean)

    def measured(index, _trial):
        return float(np.clip(np.round(mean[index] + 0.3 * rng.standard_normal()), 0.0, 100.0))

    opt = mixture(LINEAR, watched=watched, random_state=seed)
    for index in np.repeat(rng.permutation(N)[:history], 2).tolist():
        opt.observe(index, measured(index, 0))
    lost = mean.max() - mean[play(opt, measured, 80)[2 * history :]]
    return lost.sum(), bool(np.ptp(lost[-20:]) == 0.0 and lost[-1] > 1.0)


@pytest.mark.parametrize("history", [0, 10])
def test_whole_per_cents_with_little_noise_cost_no_more(history):
    """They agree by chance nearly always; no run is locked, new or with a history, and little is paid."""
    pairs = np.array([[per_cents(seed, history, watched) for watched in (True, False)] for seed in range(20)])
    (regret_held, stuck), (regret_learned, stuck_learned) = pairs.mean(axis=0)
    print(f"held back {regret_held:.1f} per cents lost, learned {regret_learned:.1f}")
    assert stuck <= stuck_learned
    assert regret_held < regret_learned + 20.0  # an experiment at random costs some 50


def test_a_state_of_another_form_is_learned_from_rewards_without_those_held_back(monkeypatch):
    wide = alexp.ModelClass.from_matrices({"a": PLACES @ np.random.default_rng(1).standard_normal((2, 70))})
    monkeypatch.setattr(making, "takes_one_pass", lambda *_: True)
    kept = told(wide, exact(3, 8, 3, 20, 41, 20))
    monkeypatch.setattr(making, "takes_one_pass", lambda *_: False)
    packed = saved_and_loaded(kept)
    assert type(packed.belief.mixture.grid) is not type(kept.belief.mixture.grid)
    assert packed.belief.mixture.n_observations == 4
    np.testing.assert_allclose(expectations(packed), expectations(kept), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(packed.predict(20), kept.predict(20), rtol=1e-6)
    assert packed.predict(20)[0] == EXACT[20]


def on_clicks(seed, watched):
    """Regret, and whether the best arm was not played in the last quarter; arm 0 is never clicked, others seldom."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(-1.0, 1.0, (8, 2))
    rates = (0.01 + 0.045 * (1.0 + np.sin(2.0 * places[:, 0] + places[:, 1]))) * (np.arange(8) > 0)
    models = alexp.ModelClass.from_matrices({"a": places, "b": places**2, "arms": np.eye(8)})
    opt = mixture(models, alexp.FiniteSet(np.arange(8)), watched, random_state=seed)
    arms = np.array(play(opt, lambda index, _: float(rng.random() < rates[index]), 100))
    return float(np.sum(rates.max() - rates[arms])), not np.any(rates[arms[-25:]] == rates.max())


def test_no_more_is_lost_on_clicks_than_without_the_rule():
    pairs = np.array([[on_clicks(seed, watched) for watched in (True, False)] for seed in range(60)])
    more = pairs[:, 0, 0] - pairs[:, 1, 0]
    mean, error, locked = more.mean(), more.std() / np.sqrt(len(more)), pairs[:, :, 1].sum(axis=0)
    print(f"regret {pairs[:, :, 0].mean(axis=0)}, difference {mean:.2f} +- {error:.2f}, locked {locked}")
    assert mean < 2.0 * error
    assert locked[0] <= locked[1] + 6  # a standard error of the difference is some 5


def test_a_study_that_is_opened_again_goes_on_as_one_run(tmp_path):
    storage, played = tmp_path / "studies.db", []
    settings = {"name": "exact", "storage": storage, "repeats": True, "goal": "sum", "random_state": 1}
    alexp.create_study(LINEAR, TABLE, **settings).close()
    for _ in range(2):
        with alexp.load_study("exact", storage) as study:
            for _ in range(18):
                trial = study.ask()
                study.tell(trial, as_measured(trial.index, trial.id))
                played.append(trial.index)
            study.amend(trial.id, 0.123)
            study.amend(trial.id, as_measured(trial.index, trial.id))
            seen = beliefs(study.refresh().algorithm)
    run = mixture(LINEAR, random_state=1)
    assert play(run, as_measured, 36) == played
    assert len(run.belief.replays) > 5
    np.testing.assert_allclose(seen, beliefs(run), rtol=1e-9)
    assert alexp.study.check("exact", storage).ok
