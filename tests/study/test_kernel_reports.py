"""What a study of kernel models shows is what its models say: view, explanation, report."""

import json

import numpy as np
import pytest

import alexp

N = 30
RNG = np.random.default_rng(4)
BITS, DESCRIPTORS = RNG.integers(0, 2, (N, 8)).astype(float), RNG.standard_normal((N, 3)) * [1.0, 50.0, 0.1]
MODELS = alexp.ModelClass.from_matrices({"bits": BITS, "descriptors": DESCRIPTORS}, kernels="auto")
DOMAIN = alexp.FiniteSet([f"item {i}" for i in range(N)])
REWARDS = 50.0 + 8.0 * np.sin(1.5 * DESCRIPTORS[:, 0]) + 3.0 * np.cos(DESCRIPTORS[:, 1] / 40.0)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Three plates of six with a trial that was given up, rewards in another order, one of them corrected."""
    where = f"sqlite:///{tmp_path_factory.mktemp('kernels') / 'study.db'}"
    made = alexp.create_study(MODELS, DOMAIN, name="kernels", storage=where, random_state=0, repeats=False, goal="best")
    for plate in range(3):
        trials = made.ask(6)
        assert len({trial.index for trial in trials}) == 6
        if plate == 1:
            made.abandon(trials.pop(2))
        for trial in trials[::-1]:
            made.tell(trial, float(REWARDS[trial.index]))
    made.amend(3, float(REWARDS[made.algorithm.trial(3).index]) + 0.5)
    made.ask(2)
    yield made
    made.close()


def alone(models, told, **settings):
    opt = alexp.EvidenceMixture(models, DOMAIN, random_state=0, repeats=False, goal="best", **settings)
    for index, reward in told:
        opt.observe(index, reward)
    return opt


def told(study):
    log = study.algorithm.log
    return [(int(log.index[trial]), float(log.reward[trial])) for trial in log.told_in_order()]


def test_standing_is_the_posterior(study):
    view = study.view()
    q = alone(MODELS, told(study)).probabilities
    names = [MODELS.names[j] for j in np.argsort(-q, kind="stable")]
    assert [leader.name for leader in view.standing.leaders] == names[: len(view.standing.leaders)]
    np.testing.assert_allclose(view.standing.leaders[0].q, q.max(), rtol=1e-9)
    data = view.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert view.counts == {"trials": 20, "told": 17, "pending": 2, "abandoned": 1}


def test_what_was_expected_is_what_a_run_would_have_predicted(study):
    seen, known = study.view().explanation, told(study)
    leader, runner = (MODELS.names.index(name) for name in (seen.leader, seen.runner_up))
    assert [float(value) for value in seen.reward] == [reward for _, reward in known]
    assert np.isnan(seen.expected[:2]).all()
    for t in (2, 3, 9, 16):
        index = known[t][0]
        mean, std = alone(MODELS, known[:t]).predict(DOMAIN[index])
        np.testing.assert_allclose(seen.expected[t], mean, rtol=1e-9)
        assert std < seen.spread[t] < 100.0 * std  # noise included
        by_leader, _ = alone(MODELS.only(leader), known[:t], power=0.25).predict(DOMAIN[index])
        np.testing.assert_allclose(seen.by_leader[t], by_leader, rtol=1e-9)
    for t in (0, 1, 5, 17):
        q = alone(MODELS, known[:t]).probabilities
        np.testing.assert_allclose(seen.odds[t], np.log10(q[leader] / q[runner]), rtol=1e-8, atol=1e-9)


def test_odds_begin_with_those_of_the_prior():
    opt = alone(MODELS, [(0, 1.0), (5, 2.0)])
    seen = opt.hindsight([2, 0])  # one of five kernels of a map, one of two of another
    np.testing.assert_allclose(seen.log_odds[0], [0.0, np.log(5.0 / 2.0)])
    np.testing.assert_allclose(seen.log_odds[1], seen.log_odds[0], atol=1e-12)  # one reward tells the level only


def test_the_report_tells_it(study, tmp_path):
    study.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    view = study.view()
    for words in (view.explanation.leader, view.explanation.runner_up, "all maps: sum of kernels", view.best.label):
        assert words in page
    assert "not certified" in page or "estimate without a guarantee" in page


def test_certificates_and_their_refusals_are_shown(tmp_path):
    where = f"sqlite:///{tmp_path / 'stated.db'}"
    settings = {"noise_std": 0.05, "norm_bound": 40.0, "reward_bound": 40.0}
    with alexp.create_study(MODELS, DOMAIN, name="s", storage=where, random_state=0, **settings) as stated:
        for trial in stated.ask(8):
            stated.tell(trial, float(REWARDS[trial.index] - 50.0))
        report, shown = stated.algorithm.stop_report(), stated.view().certificates
        assert report.certified
        assert shown.epsilon == report.epsilon
        band = stated.algorithm.confidence("item 3")
        assert band.lower <= REWARDS[3] - 50.0 <= band.upper
    with alexp.create_study(MODELS, DOMAIN, name="t", storage=where, noise_std=0.05, reward_bound=60.0) as bounded:
        bounded.tell(bounded.ask(), 1.0)
        assert "under a kernel" in str(bounded.stop_report().reason)
