"""Candidates as combinations and in Parquet files: what they are, and what is wrong with others."""

import subprocess
import sys

import numpy as np
import pytest

import alexp
from alexp.parts.candidates import ParquetTable, _read_features
from tests.parts.holding import play

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

SIZES = (5, 4, 6)


def described(columns=6, seed=0):
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal((n, columns)) for name, n in zip("abc", SIZES, strict=True)}


def combined(matrices):
    """All combinations listed: the slow twin."""
    places = np.stack(np.unravel_index(np.arange(np.prod(SIZES)), SIZES), axis=1)
    return np.hstack([own[places[:, k]] for k, own in enumerate(matrices.values())])


@pytest.mark.parametrize("settings", [{}, {"goal": "best", "repeats": False}, {"rule": "ucb"}], ids=str)
@pytest.mark.parametrize("kernels", ["linear", alexp.kernels.Matern()], ids=["linear", "Matern"])
def test_combinations_decide_as_their_list_does(settings, kernels):
    matrices = described()
    listed = combined(matrices)
    candidates = alexp.Combinations({name: range(len(own)) for name, own in matrices.items()})
    assert len(candidates) == len(listed)
    rewards = listed @ np.random.default_rng(1).standard_normal(listed.shape[1])
    found = []
    for rows, domain in ((candidates.features(matrices), candidates), (listed, range(len(listed)))):
        models = alexp.ModelClass.from_matrices({"x": rows}, kernels=kernels)
        opt = alexp.EvidenceMixture(models, alexp.FiniteSet(domain), random_state=5, unequal_noise=False, **settings)
        found.append(play(opt, rewards, 30))
    assert found[0] == found[1]


def test_statistics_of_combinations_are_those_of_their_list():
    matrices = described()
    matrices["b"][:, 2] = 0.0
    matrices["c"] = (matrices["c"] > 0.0).astype(float)
    rows = alexp.Combinations({name: range(len(own)) for name, own in matrices.items()}).features(matrices)
    listed = combined(matrices)
    np.testing.assert_array_equal(np.asarray(rows), listed)
    np.testing.assert_allclose(rows.column_units().means, listed.mean(axis=0), atol=1e-14)
    np.testing.assert_allclose(rows.column_units().deviations, listed.std(axis=0), atol=1e-14)
    np.testing.assert_allclose(rows.column_squares(False), np.mean(listed**2, axis=0))
    np.testing.assert_array_equal(rows.nonzero_columns(), listed.any(axis=0))
    assert rows.largest_diagonal(None) == pytest.approx(float((listed**2).sum(axis=1).max()))
    assert not rows.is_counts()
    assert rows[:, 12:18].is_counts()
    np.testing.assert_array_equal(rows[:, np.array([14, 2, 3])][np.array([7, 0])], listed[[7, 0]][:, [14, 2, 3]])


def test_combinations_are_their_values():
    candidates = alexp.Combinations({"base": ["KOAc", "CsOPiv"], "celsius": [90, 105, 120]})
    domain = alexp.FiniteSet(candidates)
    assert [candidates.locate(domain[i]) for i in range(6)] == list(range(6))
    assert domain[-1] == {"base": "CsOPiv", "celsius": 120}
    with pytest.raises(IndexError):
        candidates[6]
    with pytest.raises(ValueError, match="'celsius'"):
        candidates.locate({"base": "KOAc", "celsius": 100})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: alexp.Combinations({}), "at least one component"),
        (lambda: alexp.Combinations({"a": []}), "component 'a' has no values"),
        (lambda: alexp.Combinations({"a": [1, 1]}), "component 'a' has a value twice"),
        (lambda: alexp.Combinations({"base": [1, 2]}).features({"bases": np.eye(2)}), "did you mean 'base'"),
        (lambda: alexp.Combinations({"base": [1, 2]}).features({"base": np.eye(3)}), "component 'base'"),
        (lambda: alexp.Combinations({"base": [1, 2]}).features({"base": [[1.0], [np.nan]]}), "component 'base'"),
    ],
)
def test_wrong_components_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_billion_combinations_are_no_list():
    """One candidate in 10^9 is looked at without a number for each of the others."""
    candidates = alexp.Combinations({f"c{k}": range(63) for k in range(5)})
    rows = candidates.features({f"c{k}": np.random.default_rng(k).standard_normal((63, 3)) for k in range(5)})
    models = alexp.ModelClass.from_matrices({"x": rows})
    opt = alexp.EvidenceMixture(models, alexp.FiniteSet(candidates), rule="ucb", random_state=0)
    for index in (0, 500_000_000, 63**5 - 1):
        opt.observe(index, float(index % 7))
    some = [5, 63**4, 63**5 - 2]
    assert opt.ask(available=some).index in some
    mean, std = opt.predict(candidates[500_000_000])
    assert np.isfinite(mean)
    assert std > 0.0
    with pytest.raises(MemoryError, match="too many for one memory"):
        np.asarray(opt.belief.moments(opt._everything).mean)


# -- Parquet ---------------------------------------------------------------------------------------------------------


def write(folder, n=300, files=3, group=40):
    """Files with an id, five columns of numbers and a list of four; the matrix of all numbers."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    values = rng.standard_normal((n, 9)).astype(np.float32)
    for k, rows in enumerate(np.array_split(np.arange(n), files)):
        columns = {"id": [f"m{i}" for i in rows]} | {f"x{j}": values[rows, j] for j in range(5)}
        columns["e"] = arrow.FixedSizeListArray.from_arrays(arrow.array(values[rows, 5:].ravel()), 4)
        parquet.write_table(arrow.table(columns), folder / f"{k}.parquet", row_group_size=group)
    return values


def test_rows_of_files_are_candidates(tmp_path):
    values = write(tmp_path / "t")
    candidates = alexp.Parquet(tmp_path / "t")
    assert len(candidates) == 300
    assert candidates[123]["id"] == "m123"
    assert candidates[-1]["x0"] == values[-1, 0]
    assert candidates.locate({"id": "m222"}) == 222
    assert len(alexp.Parquet(str(tmp_path / "t" / "[01].parquet"))) == 200
    with pytest.raises(IndexError):
        candidates[300]
    with pytest.raises(ValueError, match="no row"):
        candidates.locate({"id": "zzz"})


def test_parts_of_files_are_read_whatever_their_groups(tmp_path):
    values = write(tmp_path / "t")
    known = alexp.Parquet(tmp_path / "t")
    names = ["x0", "x1", "x2", "x3", "x4", "e"]
    table = ParquetTable(known._files, known._ends, names, known._schema)
    assert table.shape == (300, 9)
    assert table.dtype == np.float32
    for low, high in ((0, 300), (99, 101), (37, 250), (299, 300)):
        np.testing.assert_array_equal(table.given(0, low, high, None)(), values[low:high])
    assert _read_features(known._files, known._ends, ["x0"], [1], np.dtype(float), 5, 9).shape == (4, 1)


def test_wrong_files_and_columns_are_named(tmp_path):
    write(tmp_path / "t")
    with pytest.raises(FileNotFoundError, match="no Parquet file"):
        alexp.Parquet(tmp_path / "nothing")
    candidates = alexp.Parquet(tmp_path / "t")
    with pytest.raises(ValueError, match=r"no column 'x9' \(columns: id, x0"):
        candidates.features(["x0", "x9"])
    with pytest.raises(ValueError, match="at least one column"):
        candidates.features([])
    other = arrow.table({"id": ["a"], "x0": [1.0]})
    parquet.write_table(other, tmp_path / "t" / "9.parquet")
    with pytest.raises(ValueError, match=r"column 'x0' is double in .*9.parquet and float"):
        alexp.Parquet(tmp_path / "t")
    parquet.write_table(arrow.table({"x1": [1.0]}), tmp_path / "t" / "9.parquet")
    with pytest.raises(ValueError, match=r"9.parquet has no column 'id'"):
        alexp.Parquet(tmp_path / "t")


def test_files_without_a_cluster_say_how_to_start_one(tmp_path):
    pytest.importorskip("distributed")
    write(tmp_path / "t")
    with pytest.raises(ValueError, match=r"client = dask.distributed.Client\(\)"):
        alexp.Parquet(tmp_path / "t").features(["x0"])
    with pytest.raises(ValueError, match="features are numbers"):
        ParquetTable([], np.array([1]), ["id"], alexp.Parquet(tmp_path / "t")._schema)


def test_without_dask_a_sentence_says_how_to_get_it(tmp_path):
    write(tmp_path / "t")
    code = (
        "import sys; sys.modules['distributed'] = None\n"
        "import alexp\n"
        f"try: alexp.Parquet({str(tmp_path / 't')!r}).features(['x0'])\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'alexp[dask]'" in out


def test_studies_and_learned_lengthscales_say_that_they_need_one_memory(tmp_path):
    candidates = alexp.Combinations({"x": ["a", "b"], "y": ["c", "d", "e"]})
    features, domain = candidates.features({"x": np.eye(2), "y": np.eye(3)}), alexp.FiniteSet(candidates)
    models = alexp.ModelClass.from_matrices({"m": features})
    with pytest.raises(ValueError, match=r"in parts: use EvidenceMixture\(models, domain\)"):
        alexp.create_study(models, domain, name="s", storage=f"sqlite:///{tmp_path}/s.db")
    models = alexp.ModelClass.from_matrices({"m": features}, kernels={"m": alexp.kernels.ARD()})
    with pytest.raises(ValueError, match=r"in parts: use kernels.Matern\(\)"):
        alexp.EvidenceMixture(models, domain)
