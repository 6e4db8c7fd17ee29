"""A companion knows what an algorithm knows that was told the same, whoever chose what to measure."""

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp.integrations import Companion
from alexp.integrations.companion import next_candidates

RNG = np.random.default_rng(3)
TABLE = pd.DataFrame(
    [(solvent, celsius) for solvent in ("DMF", "water", "EtOH") for celsius in (90.0, 105.0, 120.0)],
    columns=["solvent", "celsius"],
)
MAPS = {
    "kind": pd.get_dummies(TABLE["solvent"]).to_numpy(float),
    "heat": (TABLE[["celsius"]].to_numpy() - 105.0) / 15.0,
    "both": np.hstack([pd.get_dummies(TABLE["solvent"]).to_numpy(float), (TABLE[["celsius"]].to_numpy() - 105) / 15]),
}
MODELS = alexp.ModelClass.from_matrices(MAPS)
YIELDS = MAPS["both"] @ [3.0, -1.0, 0.5, 2.0] + 40.0
ROWS = [0, 4, 8, 2, 5, 0, 7]
MEASURED = TABLE.iloc[ROWS].assign(reward=YIELDS[ROWS] + 0.05 * RNG.normal(size=len(ROWS))).reset_index(drop=True)


def companion(**more):
    return Companion(MODELS, alexp.FiniteSet(TABLE), **more)


def same(one, two):
    """Whether two companions, or a companion and an algorithm, know the same, bit for bit."""
    a, b = (getattr(which, "algorithm", which) for which in (one, two))
    return (
        np.array_equal(a.probabilities, b.probabilities) and a.best().value == b.best().value and a.n_told == b.n_told
    )


def told_the_same(frame, **settings):
    opt = alexp.EvidenceMixture(MODELS, alexp.FiniteSet(TABLE), random_state=0, **settings)
    for row in frame.itertuples():
        index = TABLE.index[(TABLE.solvent == row.solvent) & (TABLE.celsius == row.celsius)][0]
        opt.observe(int(index), row.reward)
    return opt


def test_it_knows_what_an_algorithm_knows():
    opt, own = told_the_same(MEASURED), companion()
    assert own.tell_frame(MEASURED) == len(own) == 7
    assert same(own, opt)
    assert own.posterior().index[0] == "both"
    assert own.posterior().to_dict() == dict(zip(MODELS.names, opt.probabilities, strict=True))
    report = own.stop_report(epsilon=0.5)
    assert (report.epsilon, report.index, report.certified) == (opt.stop_report().epsilon, opt.best().index, False)
    assert own.best().x.to_dict() == {"solvent": "DMF", "celsius": 120.0}


def test_certificates_hold_here_as_there():
    stated = {"noise_std": 0.05, "reward_bound": 60.0}
    opt, own = told_the_same(MEASURED, **stated), companion(**stated)
    for k in range(8):
        for row in TABLE.assign(reward=YIELDS + 0.01 * k).itertuples():
            own.tell({"solvent": row.solvent, "celsius": row.celsius}, row.reward)
            opt.observe(row.Index, row.reward)
    own.follow(pd.concat([MEASURED, *(TABLE.assign(reward=YIELDS + 0.01 * k) for k in range(8))]))
    assert own.plausible_models() == [MODELS.names[j] for j in opt.plausible_models()] == ["both"]
    report, other = own.stop_report(0.1, 1.0), opt.stop_report(0.1, 1.0)
    assert report.certified
    assert (report.epsilon, report.can_stop) == (other.epsilon, True)
    assert not own.check_models().contradicted
    with pytest.raises(alexp.NotCertified, match="give noise_std="):
        companion().plausible_models()


def test_rows_are_found_in_any_order_and_up_to_rounding():
    frame = MEASURED[["reward", "celsius", "solvent"]].assign(BatchNr=1)
    frame["celsius"] += 1e-6 * np.array([1, -1, 1, -1, 1, -1, 1])
    one, two = companion(), companion()
    one.tell_frame(frame), two.tell_frame(MEASURED)
    assert same(one, two)
    with pytest.raises(ValueError, match=r"row 0 of the table has celsius = 90\.4\d*, which no candidate has"):
        companion().tell_frame(frame.assign(celsius=frame.celsius + 0.4))
    three = companion(tolerance=0.02)
    three.tell_frame(frame.assign(celsius=frame.celsius + 0.4))
    assert same(three, two)


def test_a_table_that_grows_is_followed():
    own = companion()
    waiting = MEASURED.copy()
    waiting.loc[5:, "reward"] = np.nan
    assert own.follow(waiting) == 5
    before = own.algorithm
    assert own.follow(MEASURED) == 2
    assert own.algorithm is before  # nothing was computed again
    assert same(own, told_the_same(MEASURED))
    assert own.follow(MEASURED) == 0


@pytest.mark.parametrize("change", ["corrected", "deleted", "moved"])
def test_a_table_that_was_changed_is_followed_too(change):
    changed = {
        "corrected": MEASURED.assign(reward=MEASURED.reward.where(MEASURED.index != 2, 11.0)),
        "deleted": MEASURED.drop(index=3),
        "moved": MEASURED.iloc[::-1],
    }[change]
    own = companion()
    own.follow(MEASURED)
    assert len(own.posterior()) == 3
    own.follow(changed)
    assert same(own, told_the_same(changed))
    assert not same(own, told_the_same(MEASURED)) or change == "moved"


def test_smaller_may_be_better():
    up, down = companion(), companion(direction="minimize", reward="loss")
    up.tell_frame(MEASURED)
    down.tell_frame(MEASURED.assign(loss=-MEASURED.reward))
    assert down.best().index == up.best().index
    assert down.best().value == pytest.approx(-up.best().value)
    assert np.array_equal(down.posterior(), up.posterior())


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (MEASURED.drop(columns="reward"), "no column 'reward'"),
        (MEASURED.drop(columns="celsius"), "it has no 'celsius'"),
        (MEASURED.assign(reward="much"), "must hold numbers"),
        (MEASURED.assign(reward=np.inf), "finite"),
        (MEASURED.assign(solvent="THF"), "solvent = THF, which no candidate has"),
    ],
)
def test_a_wrong_table_changes_nothing(frame, words):
    own = companion()
    own.tell_frame(MEASURED[:3])
    for take in (own.tell_frame, own.follow):
        with pytest.raises(ValueError, match=words):
            take(frame)
    assert same(own, told_the_same(MEASURED[:3]))


def test_a_combination_that_is_no_candidate():
    fewer = alexp.FiniteSet(TABLE.drop(index=4))
    models = alexp.ModelClass.from_matrices({"heat": np.delete(MAPS["heat"], 4, axis=0)})
    with pytest.raises(ValueError, match=r"solvent = water, celsius = 105\.0, which is none of the candidates"):
        Companion(models, fewer).tell({"solvent": "water", "celsius": 105.0}, 1.0)


def test_candidates_of_all_kinds_are_found():
    models = alexp.ModelClass.from_matrices({"id": np.eye(3)})
    points = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    rows = Companion(models, alexp.FiniteSet(points), keys=["a", "b"])
    rows.tell(points[1], 1.0)
    rows.tell({"b": 0.5, "a": 0.5}, 2.0)
    assert rows.tell_frame(pd.DataFrame({"a": [0.0], "b": [1.0], "reward": [3.0]})) == 1
    assert rows.algorithm.trials_dataframe()["index"].tolist() == [1, 2, 0]
    names = Companion(models, alexp.FiniteSet(["p", "q", "r"]), keys=["name"])
    names.tell("q", 1.0)
    names.tell_frame(pd.DataFrame({"name": ["r", "p"], "reward": [2, 3]}))
    assert names.algorithm.trials_dataframe()["index"].tolist() == [1, 2, 0]
    labelled = pd.DataFrame({"mass": [1.0, 1.0, 1.0]}, index=pd.Index(["p", "q", "r"], name="name"))
    with pytest.warns(UserWarning, match="equal"):
        domain = alexp.FiniteSet(labelled)
    by_label = Companion(models, domain, keys=["name"])
    by_label.tell_frame(pd.DataFrame({"name": ["r", "p"], "reward": [2, 3]}))
    assert by_label.algorithm.trials_dataframe()["index"].tolist() == [2, 0]
    with pytest.raises(ValueError, match="candidates 0 and 1 are equal"):
        Companion(models, domain)
    with pytest.raises(ValueError, match="pass keys"):
        Companion(models, alexp.FiniteSet(["p", "q", "r"])).tell_frame(pd.DataFrame({"reward": [1.0]}))


def test_points_of_a_box_need_be_no_candidates():
    box = alexp.Box([0.0, -1.0], [1.0, 1.0], resolution=32)
    models = alexp.ModelClass.subsets(alexp.Polynomial(2, dim=2), 2, intercept=True)
    own = Companion(models, box, keys=["x", "z"])
    points = np.array([[0.25, 0.125], box.points[3], [0.75, -0.5], [0.25, 0.125]])
    for point in points[:2]:
        own.tell(point, float(point.sum()))
    assert own.posterior().sum() == pytest.approx(1.0)
    own.follow(pd.DataFrame(points, columns=["x", "z"]).assign(reward=points.sum(axis=1)))
    larger = alexp.Box([0.0, -1.0], [1.0, 1.0], resolution=32, extra=points[[0, 2]])
    opt = alexp.EvidenceMixture(models, larger, random_state=0)
    for point, index in zip(points, [37, 3, 38, 37], strict=True):
        assert np.array_equal(larger[index], point)
        opt.observe(index, float(point.sum()))
    assert same(own, opt)
    for keys, words in ((["x"], "2 coordinates"), (None, "keys must name the 2")):
        with pytest.raises(ValueError, match=words):
            Companion(models, box, keys=keys).tell_frame(pd.DataFrame({"x": [0.5], "reward": [1.0]}))
    with pytest.raises(ValueError, match="inside the box"):
        own.tell([2.0, 0.0], 1.0)
    assert len(own) == 4


def test_other_domains_and_settings_are_refused():
    with pytest.raises(TypeError, match=r"Box\(\[a\], \[b\]\)"):
        Companion(alexp.ModelClass.legendre(2, 1), alexp.Interval())
    with pytest.raises(ValueError, match="tolerance"):
        companion(tolerance=0.0)
    with pytest.raises(ValueError, match="'celsius'; got 'pressure'"):
        companion(keys=["pressure"])


def test_a_summary_for_the_log():
    own = companion()
    assert own.summary() == "no measurements yet"
    own.tell_frame(MEASURED)
    first, second = own.summary().splitlines()
    assert first.startswith("7 measurements; models: both 1.00, ")
    assert second == str(own.stop_report())
    assert repr(own).endswith("7 measurements)")


def test_next_experiments_follow_from_what_is_known():
    own = companion()
    own.follow(MEASURED)
    done = {tuple(row) for row in MEASURED[["solvent", "celsius"]].to_numpy().tolist()}
    left = [row for row in map(tuple, TABLE.to_numpy().tolist()) if row not in done]
    pending, excluded = [dict(zip(TABLE.columns, row, strict=True)) for row in left[:2]]
    (one,) = own.next(pending=[pending], exclude=[excluded])
    assert tuple(one) == left[2]
    assert {tuple(x) for x in own.next(3)} == set(left)
    assert len(own) == len(MEASURED)  # nothing was told
    assert [tuple(x) for x in own.next(2)] == [tuple(x) for x in own.next(2)]
    with pytest.raises(ValueError, match="4"):
        own.next(4)


@pytest.mark.parametrize(("free", "repeats"), [([0, 1, 2, 3, 5], True), ([1, 2, 3, 5, 6, 7], False)])
def test_the_next_experiment_is_the_mixtures(free, repeats):
    told = [(0, 3.0), (4, 1.0), (0, 3.1)]
    opt = alexp.EvidenceMixture(MODELS, alexp.FiniteSet(TABLE), goal="best", repeats=repeats, random_state=7)
    for index, reward in told:
        opt.observe(index, reward)
    opt.ask(available=[8])
    expected = [trial.index for trial in opt.ask(2, available=free)]
    domain = alexp.FiniteSet(TABLE)
    got = next_candidates(MODELS, domain, told, 2, pending=[8], available=free, random_state=7)
    assert got == expected
