"""Columns of numbers in their logarithm: where that is chosen, what models see, and what stays in the file's units."""

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp.table import FileError, Table
from alexp.table.logarithms import why_logarithm

GEOMETRIC = np.geomspace(1e-8, 1.0, 9)


def hpo(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "alpha": rng.choice(GEOMETRIC, n),
            "batch": rng.choice([16, 32, 64, 128, 256], n),
            "lr": 10.0 ** rng.uniform(-5, -1, n),
            "depth": rng.choice([1, 2, 3], n),
            "dropout": rng.uniform(0.0, 1.0, n) + 1e-9,
            "width": rng.integers(1, 3000, n),
        }
    )


def test_levels_that_are_equally_spaced_in_the_logarithm_are_taken_there():
    understood = Table.from_frame(hpo()).understood
    kinds = {column.name: column.kind for column in understood}
    assert kinds == {
        "alpha": "log", "batch": "log", "lr": "log", "depth": "number", "dropout": "number", "width": "number",
    }  # fmt: skip
    assert understood["alpha"].becomes == (
        "the logarithm of a number from 1e-08 to 1; 9 levels, equally spaced in the logarithm; "
        "kinds={'alpha': 'number'} takes them as they are"
    )
    assert "they span 4.0 decades, and are spread more evenly in the logarithm" in understood["lr"].becomes


@pytest.mark.parametrize(
    ("values", "chosen"),
    [
        ([1, 3, 10, 30, 100], True), ([1, 2, 5, 10, 20, 50, 100], True), ([0.1, 1, 10], True),
        ([16, 32, 64, 128], True),
        ([2.5, 5, 10], False), ([60, 80, 100, 120], False), ([90, 105, 120], False), ([1, 2, 3, 5, 8, 13], False),
        ([0, 1, 10, 100], False), ([-1, 1, 10, 100], False), ([1, 1000], False), ([100, 101, 102, 103], False),
        ([1.0, 1.1, 1.21, 1.331], False), (np.random.default_rng(0).uniform(size=5000), False),
        (np.random.default_rng(0).exponential(size=5000), False), (np.random.default_rng(0).normal(100, 5, 500), False),
        (np.random.default_rng(0).lognormal(0, 2, 5000), True), (np.random.default_rng(0).chisquare(1, 5000), False),
    ],
)  # fmt: skip
def test_where_the_logarithm_is_chosen(values, chosen):
    assert bool(why_logarithm(np.array(values, dtype=float))) == chosen


def test_models_see_the_logarithm_and_candidates_keep_their_units():
    frame = pd.DataFrame({"alpha": GEOMETRIC})
    table = Table.from_frame(frame)
    np.testing.assert_allclose(table.features()["table"].ravel(), np.arange(-8.0, 1.0))
    assert table.domain.candidates["alpha"].tolist() == GEOMETRIC.tolist()
    plain = Table.from_frame(frame, kinds={"alpha": "number"})
    assert plain.features()["table"].ravel().tolist() == GEOMETRIC.tolist()
    opt = alexp.EvidenceMixture(table, random_state=0)
    asked = opt.ask(3, where="alpha <= 1.5e-6")  # in the units of the file
    assert sorted(trial.x["alpha"] for trial in asked) == pytest.approx([1e-8, 1e-7, 1e-6])


def test_nine_levels_are_nine_different_points():
    """Linearly, eight of the nine lie within a tenth of the range."""
    spread = Table.from_frame(pd.DataFrame({"alpha": GEOMETRIC})).features()["table"].ravel()
    steps = np.diff(spread) / np.ptp(spread)
    np.testing.assert_allclose(steps, 1 / 8)


@pytest.mark.parametrize("cell", [0.0, -1.0])
def test_numbers_without_a_logarithm_are_refused_with_the_remedy(cell):
    frame = pd.DataFrame({"x": [0.1, cell, 10.0]})
    with pytest.raises(
        FileError, match=r"row 1, column 'x': .* has no logarithm.*replace=\{.*\}.*kinds=\{'x': 'number'\}"
    ):
        Table.from_frame(frame, kinds={"x": "log"})
    assert Table.from_frame(frame, kinds={"x": "log"}, replace={str(cell): 0.01}).understood["x"].kind == "log"


def test_blank_cells_are_filled_by_the_median_of_the_logarithms():
    table = Table.from_frame(pd.DataFrame({"x": [1e-4, 1e-2, np.nan, 1.0, 1e2]}), missing="median")
    assert table.features()["table"][2].tolist() == [-1.0, 1.0]


def test_later_candidates_are_read_as_the_first():
    frame = pd.DataFrame({"id": range(5), "x": [1e-4, 1e-3, 1e-2, 1e-1, 1.0]})
    opt = alexp.EvidenceMixture(Table.from_frame(frame, id="id"), random_state=0)
    more = pd.DataFrame({"id": [5, 6], "x": [3.0, 7.0]})
    opt.add_candidates(Table.from_frame(more, id="id"))  # alone they would be taken as they are
    np.testing.assert_allclose(opt.features()[-2:, 0], np.log10([3.0, 7.0]))
    with pytest.raises(FileError, match="has no logarithm"):
        opt.add_candidates(Table.from_frame(more.assign(id=[7, 8], x=[0.0, 1.0]), id="id"))
    plain = alexp.EvidenceMixture(Table.from_frame(frame, id="id", kinds={"x": "number"}), random_state=0)
    plain.add_candidates(Table.from_frame(pd.DataFrame({"id": range(5, 10), "x": GEOMETRIC[:5]}), id="id"))
    np.testing.assert_allclose(plain.features()[-5:, 0], GEOMETRIC[:5])


def test_the_default_reading_finds_what_the_linear_one_does_not():
    """Forty tables of hyperparameters with one optimum each, 25 noisy trials of 1,000: mean distance from the best."""
    lost = {"log": [], "number": [], "random": []}
    for seed in range(40):
        rng = np.random.default_rng(seed)
        frame = hpo(1000, seed).drop(columns=["dropout", "width"])
        alpha, lr, batch = np.log10(frame["alpha"]), np.log10(frame["lr"]), np.log2(frame["batch"])
        peak = rng.uniform([-6, -4, 5], [-2, -2, 7])
        found = -(((alpha - peak[0]) / 3) ** 2 + (lr - peak[1]) ** 2 + ((batch - peak[2]) / 4) ** 2).to_numpy()
        span = found.max() - np.median(found)
        for kind in ("log", "number"):
            table = Table.from_frame(frame, kinds={} if kind == "log" else dict.fromkeys(frame, "number"))
            opt = alexp.EvidenceMixture(table, random_state=seed)
            best, noise = -np.inf, np.random.default_rng(seed)
            for _ in range(25):
                trial = opt.ask()
                opt.tell(trial, found[trial.index] + 0.02 * span * noise.normal())
                best = max(best, found[trial.index])
            lost[kind].append((found.max() - best) / span)
        lost["random"].append((found.max() - rng.permutation(found)[:25].max()) / span)
    means = {kind: float(np.mean(values)) for kind, values in lost.items()}
    assert means["log"] < 0.05 < means["random"] < means["number"]
