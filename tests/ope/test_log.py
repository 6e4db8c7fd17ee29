import numpy as np
import pandas as pd
import pytest

from alexp import ope


def frame(**changed):
    columns = {
        "id": range(4),
        "context": [[0.1], [0.2], [0.3], [0.4]],
        "ids": [["a", "b"], ["a", "b", "c"], ["b", "c"], ["a", "c"]],
        "index": [0, 2, 1, 1],
        "n": [2, 3, 2, 2],
        "propensity": [0.5, 0.25, np.nan, 0.5],
        "reward": [1.0, 0.0, 1.0, np.nan],
        "model": pd.array([0, None, 1, 0], dtype="Int64"),
        "explored": [False, True, False, False],
    }
    return pd.DataFrame({**columns, **changed})


def test_a_frame_becomes_a_log_and_what_cannot_be_used_is_counted():
    with pytest.warns(ope.LogWarning, match="1 of 4 rounds have a reward but no propensity"):
        log = ope.Log.from_frame(frame())
    assert log.n.tolist() == [2, 3, 2, 2]
    assert log.ids[1] == ["a", "b", "c"]
    assert log.contexts[2] == [0.3]
    assert log.usable.tolist() == [True, True, False, False]
    assert log.left_out == {"without reward": 1, "without propensity": 1}
    assert repr(log) == "Log(4 rounds, 1 without reward, 1 without propensity)"
    policy = [[0.5, 0.5], [0.2, 0.3, 0.5], [1.0, 0.0], [1.0, 0.0]]  # of all rounds, used or not
    found = ope.ips(log, policy)
    assert found.value == pytest.approx((1.0 + 2.0 * 0.0) / 2)
    assert (found.n_used, found.n_left_out) == (2, 2)
    assert "2 rounds used, 2 left out" in str(found)


def test_features_in_a_frame_are_those_of_all_candidates_or_of_the_chosen_ones():
    known = frame(propensity=[0.5] * 4)
    rows = [np.full((n, 3), float(n)) for n in known["n"]]
    known["features"] = pd.Series(rows, dtype=object)
    log = ope.Log.from_frame(known)
    assert [block.shape for block in (log.features[0], log.features[1])] == [(2, 3), (3, 3)]
    assert log.chosen.tolist() == [[2.0] * 3, [3.0] * 3, [2.0] * 3, [2.0] * 3]
    known["features"] = pd.Series([np.ones(3)] * 4, dtype=object)
    assert ope.Log.from_frame(known).features is None
    assert ope.Log.from_frame(known).chosen.shape == (4, 3)
    known["features"] = pd.Series([None] * 4, dtype=object)
    assert ope.Log.from_frame(known).chosen is None


def test_frames_that_lack_something():
    with pytest.raises(ValueError, match="propensity are missing"):
        ope.Log.from_frame(frame().drop(columns="propensity"))
    with pytest.raises(ValueError, match="no column n: pass domain="):
        ope.Log.from_frame(frame().drop(columns="n"))


def test_policies_in_all_forms_agree():
    log = ope.Log([1.0, 0.0, 1.0], [0.5, 0.5, 0.25], [0, 1, 1], 2, contexts=[0.1, 0.9, 0.6])

    class Frozen:
        def policy(self, *, context):
            return np.array([context, 1.0 - context])

    array = np.array([[c, 1.0 - c] for c in (0.1, 0.9, 0.6)])
    forms = [array, array[:, :, None], array.tolist(), lambda r: [r.context, 1.0 - r.context], Frozen()]
    assert [ope.ips(log, form).value for form in forms] == pytest.approx([ope.ips(log, array).value] * 5)


def test_functions_see_the_round_and_not_its_outcome():
    log = ope.Log([1.0], [0.5], [1], 2, ids=[["a", "b"]], features=[np.eye(2)], available=[[0, 1]])
    seen = []

    def policy(round_):
        seen.append(round_)
        return [0.5, 0.5]

    ope.ips(log, policy)
    assert (seen[0].number, seen[0].n, seen[0].context, seen[0].ids) == (0, 2, None, ["a", "b"])
    assert seen[0].features.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert set(vars(seen[0])) == {"number", "n", "context", "ids", "features", "available"}


def test_part_of_a_log():
    rng = np.random.default_rng(0)
    log = ope.Log(
        rng.random(6),
        np.full(6, 0.5),
        [0, 1, 0, 1, 0, 1],
        2,
        contexts=list("abcdef"),
        features=rng.random((6, 2, 3)),
        probabilities=np.full((6, 2), 0.5),
        available=[None, [1], None, None, None, None],
    )
    mask = np.array([False, True, False, True, True, False])
    part = log.part(mask)
    assert part.contexts == ["b", "d", "e"]
    assert part.available == [[1], None, None]
    assert np.array_equal(part.rewards, log.rewards[mask])
    assert np.array_equal(part.features[1], log.features[3])
    assert np.array_equal(part.chosen, log.chosen[mask])
    assert len(part.probabilities) == 3
