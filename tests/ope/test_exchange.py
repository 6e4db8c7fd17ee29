import json

import numpy as np
import pytest

from alexp import ope


def log_of(contexts="vector", rows=True, ids=True, probabilities=False, n=12, even=False, seed=0):
    rng = np.random.default_rng(seed)
    sizes = np.full(n, 3) if even else rng.integers(2, 5, size=n)
    index = (rng.random(n) * sizes).astype(int)
    chances = [rng.dirichlet(np.ones(size)) for size in sizes]
    made = {
        None: None,
        "vector": [rng.standard_normal(2).tolist() for _ in range(n)],
        "dict": [{"age": float(k), "city name": "a:b|c = d"} for k in range(n)],
    }[contexts]
    return ope.Log(
        rng.standard_normal(n),
        [p[a] for p, a in zip(chances, index, strict=True)],
        index,
        sizes,
        contexts=made,
        ids=[[f"arm {k}|'x" for k in range(size)] for size in sizes] if ids else None,
        features=[np.round(rng.standard_normal((size, 4)), 3) * [1, 0, 1, k % 2] for k, size in enumerate(sizes)]
        if rows
        else None,
        probabilities=chances if probabilities else None,
    )


def assert_same(one, two, ids=True, features=True):
    for name in ("rewards", "propensities", "index", "n"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    assert (one.contexts is None) == (two.contexts is None)
    for a, b in zip(one.contexts or [], two.contexts or [], strict=True):
        assert a == b if isinstance(a, dict) else list(a) == list(b)
    if ids:
        assert one.ids == two.ids
    if features:
        assert (one.features is None) == (two.features is None)
        if one.features is not None:
            assert np.array_equal(one.features.values, two.features.values)


@pytest.mark.parametrize("format", ["text", "dsjson"])
@pytest.mark.parametrize("contexts", [None, "vector", "dict"])
@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize("ids", [True, False])
def test_vowpal_wabbit_there_and_back(format, contexts, rows, ids):
    log = log_of(contexts, rows, ids)
    assert_same(log, ope.from_vw(ope.to_vw(log, format), format))


def test_dsjson_keeps_all_probabilities_and_text_cannot():
    log = log_of(probabilities=True)
    back = ope.from_vw(ope.to_vw(log, "dsjson"), "dsjson")
    assert np.array_equal(back.probabilities.values, log.probabilities.values)
    assert ope.from_vw(ope.to_vw(log)).probabilities is None
    assert ope.from_vw(ope.to_vw(log_of(), "dsjson"), "dsjson").probabilities is None


def test_text_is_what_vowpal_wabbit_documents():
    log = ope.Log(
        [1.5, -0.25],
        [0.25, 0.5],
        [1, 0],
        2,
        contexts=[{"user": "Tom", "hour": 7}, {"user": "Ann", "hour": 23}],
        features=[[[0.0, 1.0], [2.0, 0.0]], [[1.0, 1.0], [0.0, 0.0]]],
    )
    assert ope.to_vw(log) == (
        "shared |c user=Tom hour:7.0\n|a 1:1.0\n1:-1.5:0.25 |a 0:2.0 1:0.0\n"
        "\n"
        "shared |c user=Ann hour:23.0\n0:0.25:0.5 |a 0:1.0 1:1.0\n|a 1:0.0\n"
    )
    event = json.loads(ope.to_vw(log, "dsjson").splitlines()[0])
    assert event["_label_cost"] == -1.5
    assert event["_label_probability"] == 0.25
    assert (event["_labelIndex"], event["_label_Action"], event["a"], event["p"]) == (1, 2, [2], [0.25])
    assert event["c"] == {"c": {"user": "Tom", "hour": 7.0}, "_multi": [{"a": {"1": 1.0}}, {"a": {"0": 2.0, "1": 0.0}}]}


def test_text_of_others_can_be_read():
    text = """shared |User user=Tom time_of_day=morning |Weather:2 rain:0.5
|Action article=politics
0:-1.0:0.4 |Action article=sports length:3
|Action article=music

shared |User user=Anna
|Action article=politics
|Action article=sports
"""
    log = ope.from_vw(text)
    assert len(log) == 1  # the second has no label yet
    assert (log.rewards[0], log.propensities[0], log.index[0], log.n[0]) == (1.0, 0.4, 1, 3)
    assert log.contexts == [{"User^user": "Tom", "User^time_of_day": "morning", "Weather^rain": 1.0}]
    assert log.features[0].tolist() == [[1, 0, 0, 0], [0, 1, 3, 0], [0, 0, 0, 1]]


def test_dsjson_of_others_can_be_read():
    event = {
        "_label_cost": -1,
        "_label_probability": 0.8,
        "_label_Action": 2,
        "_labelIndex": 1,
        "a": [2, 1],
        "p": [0.8, 0.2],
        "c": {
            "User": {"age": 30, "_skip": 1, "tastes": [0.5, 1.5]},
            "_multi": [{"Item": {"topic": "sport"}, "_tag": "x"}, {"Item": {"topic": "art", "size": 2}, "_tag": "y"}],
        },
    }
    unlabelled = {"c": {"_multi": [{}]}, "a": [1], "p": [1.0]}
    log = ope.from_vw([json.dumps(event), json.dumps(unlabelled), ""], "dsjson")
    assert log.contexts == [{"User^age": 30.0, "User^tastes^0": 0.5, "User^tastes^1": 1.5}]
    assert log.features[0].tolist() == [[1, 0, 0], [0, 1, 2]]
    assert log.ids == [["x", "y"]]
    assert log.probabilities[0].tolist() == [0.2, 0.8]
    assert log.rewards.tolist() == [1.0]


@pytest.mark.parametrize(
    ("text", "format", "words"),
    [
        ("", "text", "no labelled example"),
        ("0:1 |a x\n|a y\n", "text", "action:cost:probability"),
        ("0:1:0.5 |a x\n1:1:0.5 |a y\n", "text", "is a second label"),
        ('{"a": 1}\n', "dsjson", "line 0 is no dsjson event"),
        ("", "json", "format must be one of 'text', 'dsjson'"),
    ],
)
def test_what_vowpal_wabbit_would_not_read_either(text, format, words):
    with pytest.raises(ValueError, match=words):
        ope.from_vw(text, format)


@pytest.mark.parametrize("format", ["text", "dsjson"])
@pytest.mark.parametrize("contexts", [None, "vector", "dict"])
def test_vowpal_wabbit_itself_reads_it(format, contexts):
    vw = pytest.importorskip("vowpalwabbit")
    log = log_of(contexts)
    workspace = vw.Workspace("--cb_explore_adf --quiet" + (" --dsjson" if format == "dsjson" else ""))
    text = ope.to_vw(log, format)
    rounds = text.split("\n\n") if format == "text" else text.splitlines()
    assert len(rounds) == len(log)
    shared = contexts is not None or format == "dsjson"
    for t, one in enumerate(rounds):
        examples = workspace.parse(one)
        lines = examples[1:] if shared else examples
        assert len(lines) == log.n[t]
        for k, example in enumerate(lines):
            costs = vw.CBLabel.from_example(example).costs
            assert len(costs) == (k == log.index[t])
            if costs:
                assert costs[0].cost == pytest.approx(-log.rewards[t], rel=1e-6)
                assert costs[0].probability == pytest.approx(log.propensities[t], rel=1e-6)
        if format == "text":
            assert [example.get_tag() for example in lines] == [
                tag.replace(" ", "%20").replace("|", "%7C").replace("'", "%27") for tag in log.ids[t]
            ]
        workspace.learn(examples)
        workspace.finish_example(examples)


@pytest.mark.parametrize("contexts", [None, "vector", "dict"])
@pytest.mark.parametrize(("rows", "ids"), [(True, False), (False, True), (False, False)])
def test_coba_there_and_back(contexts, rows, ids):
    log = log_of(contexts, rows, ids)
    assert_same(log, ope.from_coba(ope.to_coba(log)))


def test_coba_actions_tell_candidates_apart():
    log = ope.Log([1.0], [0.5], [1], 2, ids=[["a", "b"]], features=[np.ones((2, 3))])
    assert ope.to_coba(log)[0]["actions"] == ["a", "b"]
    assert ope.to_coba(log, actions="index")[0]["action"] == 1
    with pytest.raises(ValueError, match="not distinct within a round"):
        ope.to_coba(log, actions="features")
    with pytest.raises(ValueError, match="interaction 0 lacks probability"):
        ope.from_coba([{"context": None, "action": 1, "actions": [1, 2], "reward": 1.0}])
    with pytest.raises(ValueError, match="not among its actions"):
        ope.from_coba([{"action": 3, "actions": [1, 2], "reward": 1.0, "probability": 0.5}])


def test_coba_itself_takes_it():
    coba = pytest.importorskip("coba")
    log = log_of("vector", rows=True, ids=False)
    made = [coba.LoggedInteraction(**one) for one in ope.to_coba(log)]
    learner = coba.BanditEpsilonLearner(epsilon=0.1)
    for one in made:
        learner.learn(one["context"], one["action"], one["reward"], one["probability"])
    assert learner.score(made[0]["context"], made[0]["actions"], made[0]["action"]) >= 0.0
    assert_same(log, ope.from_coba(made), ids=False)


def test_open_bandit_pipeline_there_and_back():
    log = log_of("vector", rows=False, ids=False, even=True)
    feedback = ope.to_obp(log)
    assert list(feedback) == [
        "n_rounds",
        "n_actions",
        "context",
        "action_context",
        "action",
        "position",
        "reward",
        "pscore",
    ]
    assert (feedback["n_rounds"], feedback["n_actions"]) == (12, 3)
    assert feedback["context"].shape == (12, 2)
    assert_same(log, ope.from_obp(feedback))


def test_open_bandit_pipeline_without_contexts():
    changing = ope.to_obp(log_of(None, rows=True, even=True))
    assert changing["context"].shape == (12, 12)
    assert changing["action_context"] is None
    fixed = ope.Log([1.0, 0.0], [0.5, 0.5], [0, 1], 2, features=[np.eye(2)] * 2)
    assert ope.to_obp(fixed)["action_context"].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert ope.to_obp(fixed)["context"].tolist() == [[0.0], [0.0]]


def test_open_bandit_pipeline_refusals():
    with pytest.raises(ValueError, match="same number of actions"):
        ope.to_obp(log_of())
    with pytest.raises(ValueError, match="vectors of one length"):
        ope.to_obp(log_of("dict", even=True))
    feedback = ope.to_obp(log_of("vector", even=True))
    feedback["position"] = np.arange(12) % 2
    with pytest.raises(ValueError, match="pass position="):
        ope.from_obp(feedback)
    assert len(ope.from_obp(feedback, position=1)) == 6
    with pytest.raises(ValueError, match="pscore are missing"):
        ope.from_obp({"n_rounds": 1, "n_actions": 2, "action": [0], "reward": [1]})


def test_only_rounds_that_can_be_used_are_exported():
    log = ope.Log([1.0, np.nan, 0.0], [0.5] * 3, [0, 1, 1], 2)
    assert ope.to_obp(log)["n_rounds"] == len(ope.to_coba(log)) == len(ope.from_vw(ope.to_vw(log))) == 2
    with pytest.raises(ValueError, match="nothing to export"):
        ope.to_vw(ope.Log([np.nan], [0.5], [0], 2))


def test_contexts_that_cannot_be_exported_are_named():
    log = ope.Log([1.0], [0.5], [0], 2, contexts=[{"image": np.ones((2, 2))}])
    with pytest.raises(TypeError, match="context of round 0 has 'image': ndarray"):
        ope.to_vw(log)
