"""Which candidate a row of a user's table speaks of, and what algorithms make of data measured elsewhere."""

import json

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp import testing
from alexp.study.candidates import check_columns, observations
from alexp.testing import on_tables

INTERVAL = alexp.Interval(-1.0, 1.0, resolution=21)
BOX = alexp.Box([0.0, 0.0], [1.0, 2.0], resolution=16)
TABLE = alexp.FiniteSet(pd.DataFrame({"name": ["a", "b", "a"], "mass": [1.0, 2.0, 3.0]}))
NAMES = alexp.FiniteSet(["water", "ethanol"])
ARRAY = alexp.FiniteSet(np.array([[1.0, 2.0], [3.0, 4.0]]))


@pytest.mark.parametrize(
    ("domain", "columns", "expected"),
    [
        (INTERVAL, {"x": [-1.0, 0.3]}, [0, 13]),
        (INTERVAL, {"index": [20, 0]}, [20, 0]),
        (BOX, {"x": [BOX[3], BOX[18]]}, [3, 18]),
        (BOX, {"x0": [BOX[5][0]], "x1": [BOX[5][1]]}, [5]),
        (TABLE, {"name": ["b"]}, [1]),
        (TABLE, {"name": ["a", "a"], "mass": [3.0, 1.0]}, [2, 0]),
        (TABLE, {"index": [2]}, [2]),
        (NAMES, {"x": ["ethanol", "water", "ethanol"]}, [1, 0, 1]),
        (ARRAY, {"x": [[3.0, 4.0]]}, [1]),
    ],
)
def test_rows_find_their_candidates(domain, columns, expected):
    frame = pd.DataFrame(columns)
    frame["reward"] = np.arange(len(frame)) + 0.5
    assert observations(domain, frame) == [(index, k + 0.5) for k, index in enumerate(expected)]


@pytest.mark.parametrize(
    ("domain", "columns", "says"),
    [
        (INTERVAL, {"x": [0.0, 0.31]}, r"row 1: x = \[0.31\] is not a candidate; the nearest is \[0.3"),
        (INTERVAL, {"x": [1.5]}, "must lie in"),
        (INTERVAL, {}, "column 'index' or 'x'"),
        (INTERVAL, {"index": [21]}, "index in row 0 must be below 21"),
        (BOX, {"x": [0.5]}, "2 coordinates"),
        (TABLE, {"name": ["a"]}, "row 0: 2 candidates have {'name': 'a'}"),
        (TABLE, {"name": ["b", "z"]}, "row 1: no candidate has {'name': 'z'}"),
        (TABLE, {}, "columns of their table"),
        (NAMES, {"x": ["water", "salt"]}, "row 1: x must be one of the 2 candidates"),
    ],
)
def test_rows_that_find_none(domain, columns, says):
    frame = pd.DataFrame(columns, index=None if columns else [0])
    with pytest.raises(ValueError, match="must have a column 'reward'"):
        observations(domain, frame)
    frame["reward"] = 1.0
    with pytest.raises(ValueError, match=says):
        observations(domain, frame)


@pytest.mark.parametrize(
    ("domain", "columns", "says"),
    [
        (TABLE, {"name": ["b"], "maas": [2.0], "reward": 1.0}, "column 'maas' of the observations .* 'mass'"),
        (TABLE, {"name": ["b"], "rewrad": [2.0]}, "column 'rewrad' .* mean 'reward'"),
        (
            TABLE,
            {"name": ["b"], "reward": [2.0], "T": [1]},
            "'T' .* not known; known are 'reward', 'index', 'x', 'name'",
        ),
        (INTERVAL, {"X": [0.0], "reward": [2.0]}, "column 'X' .* mean 'x'"),
        (INTERVAL, {"indx": [0], "reward": [2.0]}, "column 'indx' .* mean 'index'"),
        (BOX, {"x0": [0.0], "x1": [0.0], "x2": [0.0], "reward": [2.0]}, "column 'x2' .* not known"),
        (alexp.Arms(["a", "b"]), {"index": ["a"], "reward": [1.0], "contxt": [[1.0]]}, "'contxt' .* mean 'context'"),
    ],
)
def test_columns_that_mean_nothing_are_refused(domain, columns, says):
    """A misspelt column would change which candidate a row finds, in silence."""
    frame = pd.DataFrame(columns)
    with pytest.raises(ValueError, match=says):
        check_columns(domain, frame.columns)
    if not isinstance(domain, alexp.Arms):
        with pytest.raises(ValueError, match=says):
            observations(domain, frame)


@pytest.mark.parametrize("domain", [INTERVAL, BOX, TABLE, NAMES, ARRAY])
def test_what_the_library_writes_can_be_handed_in(domain):
    models = alexp.ModelClass.from_maps({name: lambda x: np.ones((len(x), 1)) for name in "ab"})
    algorithm = alexp.UniformRandom(models, domain, random_state=0)
    for _ in range(3):
        algorithm.tell(algorithm.ask(), 0.5)
    for frame in (algorithm.trials_dataframe(), algorithm.log_frame()):
        assert [index for index, _ in observations(domain, frame)] == frame["index"].tolist()


def test_nearest_is_a_choice():
    frame = pd.DataFrame({"x": [0.31, -0.97], "reward": [1.0, 2.0]})
    assert observations(INTERVAL, frame, nearest=True) == [(13, 1.0), (0, 2.0)]


def test_rewards_must_be_numbers():
    for wrong in (np.nan, np.inf, "high", None):
        with pytest.raises((ValueError, TypeError), match="reward in row 1"):
            observations(INTERVAL, pd.DataFrame({"x": [0.0, 0.0], "reward": pd.Series([1.0, wrong], dtype=object)}))


@pytest.mark.parametrize("name", on_tables())
def test_every_algorithm_takes_data_from_elsewhere(name):
    kind = alexp.Algorithm.registry[name]
    algorithm, twin = testing.make(kind), testing.make(kind)
    for subject in (algorithm, twin):
        subject.observe(3, 0.5)
        subject.tell(subject.ask(), 0.25)
        late = subject.ask()
        seen = subject.observe(7, -0.5)
        assert (seen.id, seen.index, seen.model, seen.explored) == (3, 7, None, False)
        assert np.isnan(seen.propensity)
        subject.tell(late, 0.125)
    assert algorithm.ask() == twin.ask()
    again = kind.from_dict(json.loads(json.dumps(algorithm.to_dict())))
    assert json.dumps(again.to_dict()) == json.dumps(twin.to_dict())
    assert again.ask() == twin.ask()
    before = json.dumps(algorithm.to_dict())
    for index, reward in ((40, 1.0), (-1, 1.0), (0.5, 1.0), (0, np.nan), (0, "1")):
        with pytest.raises((ValueError, TypeError)):
            algorithm.observe(index, reward)
    assert json.dumps(algorithm.to_dict()) == before
    assert algorithm.n_told == 4


def test_observations_teach():
    """Rewards of all candidates, measured elsewhere, are enough to recommend the best one."""
    models = alexp.ModelClass.legendre(degree=4, size=2)
    algorithm = alexp.ALExp(models, INTERVAL, noise_std=0.01, random_state=0)
    for index in range(21):
        algorithm.observe(index, 1.0 - INTERVAL[index] ** 2)
    assert algorithm.best().index == 10
