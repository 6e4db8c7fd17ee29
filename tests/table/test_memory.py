"""Old campaigns: how their results are read, matched and learned, and what is said where they do not fit."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp.study import create_study
from alexp.table import FileError, Table
from alexp.table.memory import expected, read_campaign, worth

SOLVENTS, LIGANDS, CELSIUS = ("DMF", "water", "MeOH"), ("XPhos", "SPhos", "dppf"), (60, 80, 100)
FRAME = pd.DataFrame(
    [(f"r{k}", *one) for k, one in enumerate(product(SOLVENTS, LIGANDS, CELSIUS))],
    columns=["reaction", "solvent", "ligand", "T (°C)"],
)
WORTH = {"DMF": 5.0, "water": 10.0, "MeOH": 0.0, "XPhos": 7.0, "SPhos": 2.0, "dppf": 4.0, "THF": 12.0}


def yields(frame):
    return frame["solvent"].map(WORTH) + frame["ligand"].map(WORTH) + frame["T (°C)"] / 20.0


OLD = FRAME.assign(reward=yields(FRAME)).iloc[::2].drop(columns="reaction")


def column(table):
    return table.models().dictionary.table[:, -1]


def remark(table):
    return table.understood.remarks[-1]


def test_an_old_campaign_becomes_ordinary_models():
    plain, table = Table.from_frame(FRAME), Table.from_frame(FRAME).with_memory({"2023": OLD})
    models, own = table.models(), plain.models().n_models
    assert plain._memories == {}
    assert models.names[own : own + 2] == [f"2023 + {name}" for name in models.names[:2]]
    assert np.corrcoef(column(table), yields(FRAME))[0, 1] > 0.97
    assert remark(table) == "memory '2023': 14 results; 14 of them of candidates"
    assert 0.7 < np.var(column(table)) < 1.001  # the share that is known
    prior, _ = worth(models, np.exp(models.log_prior))["2023"]
    odds = (2.0 * np.var(column(table))) ** 3
    assert np.isclose(prior, odds / (1.0 + odds))


@pytest.mark.parametrize("change", [lambda y: 1e6 * y + 3e7, lambda y: 0.001 * y, lambda y: y - 1e4])
def test_the_scale_of_old_rewards_does_not_matter(change):
    base, other = (
        Table.from_frame(FRAME).with_memory({"a": one}) for one in (OLD, OLD.assign(reward=change(OLD.reward)))
    )
    assert np.allclose(column(base), column(other), atol=1e-4)


def test_the_other_direction_is_learned():
    runs = []
    for sign in (1.0, -1.0):
        table = Table.from_frame(FRAME).with_memory({"2023": OLD.assign(reward=sign * OLD["reward"])})
        opt = alexp.EvidenceMixture(table, random_state=0)
        for k in range(6):
            opt.observe(k, float(yields(FRAME)[k]))
        runs.append([opt.predict(opt.domain[k])[0] for k in range(27)])
    assert np.allclose(*runs, atol=1.0)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_before_the_first_reward_what_was_good_is_expected_to_be_good(direction):
    table = Table.from_frame(FRAME).with_memory({"2023": OLD})
    opt = alexp.EvidenceMixture(table, direction=direction, random_state=0)
    mean = [opt.predict(opt.domain[k])[0] for k in range(27)]
    assert np.corrcoef(mean, yields(FRAME))[0, 1] > 0.8
    first = [yields(FRAME)[trial.index] for trial in opt.ask(3)]
    middle = np.median(yields(FRAME))
    assert np.mean(first) > middle if direction == "maximize" else np.mean(first) < middle


def test_of_several_objectives_none_is_expected_to_follow_the_past():
    table = Table.from_frame(FRAME).with_memory({"2023": OLD})
    opt = alexp.EvidenceMixture(table, objectives={"y": "maximize", "z": "minimize"}, random_state=0)
    for name in ("y", "z"):
        part = opt.objective(name)
        assert not np.any([part.predict(part.domain[k])[0] for k in range(27)])


@pytest.mark.parametrize("kernels", ["auto", "linear", {"table": [alexp.kernels.Matern(), "linear"]}])
def test_results_of_other_candidates_are_compared_by_columns(kernels):
    old = OLD.assign(solvent=OLD["solvent"].replace({"DMF": "THF"}), **{"T (°C)": OLD["T (°C)"] + 5})
    old["reward"] = yields(old)
    table = Table.from_frame(FRAME).with_memory({"2023": old})
    assert remark(table) == "memory '2023': 14 results; 0 of them of candidates"
    mean = table.models(kernels).dictionary.table[:, -1]
    assert np.corrcoef(mean, yields(FRAME))[0, 1] > 0.8


def test_ids_are_enough_for_candidates_that_are_described_elsewhere():
    numbers = np.stack([yields(FRAME), np.arange(27.0)], axis=1)
    table = Table.from_frame(FRAME[["reaction"]]).describe("numbers", numbers)
    old = pd.DataFrame({"reaction": FRAME["reaction"][::3], "reward": yields(FRAME)[::3]})
    assert np.corrcoef(column(table.with_memory({"2023": old})), yields(FRAME))[0, 1] > 0.99
    with pytest.raises(
        FileError, match="'other' is none of the candidates, and the file has no column that models use"
    ):
        table.with_memory({"2023": old.assign(reaction="other")})


def test_an_id_with_other_cells_is_another_experiment():
    old = OLD.assign(reaction=[f"r{k}" for k in range(14)])  # numbered anew
    table = Table.from_frame(FRAME)
    assert np.array_equal(column(table.with_memory({"a": old})), column(table.with_memory({"a": OLD})))


def test_failures_blanks_replicates_and_other_columns_are_ordinary_life(tmp_path):
    file = tmp_path / "old.csv"
    lines = [
        "solvent,ligand,T (°C),operator,yield", "DMF,XPhos,60,A,15.5", "DMF,SPhos,80,A,failed",
        "water,XPhos,60,B,20; 21.5", "water,dppf,80,B,", "MeOH,,80,B,6", "MeOH,SPhos,60,C,5.0",
        "water,XPhos,80,B,22", "MeOH,SPhos,80,C,6", "DMF,XPhos,80,A,16.5",
    ]  # fmt: skip
    file.write_text("\n".join(lines), encoding="utf-8")
    table = Table.from_frame(FRAME).with_memory({"2023": file}, reward="yield")
    assert remark(table) == (
        "memory '2023': 7 results; 7 of them of candidates; 2 without a reward left out; 1 with blank cells left out; "
        "columns that are not used: 'operator'"
    )
    assert column(table)[18] < column(table)[9]  # MeOH below water


@pytest.mark.parametrize("old", [OLD.iloc[:1], OLD.assign(reward=3.0), pd.concat([OLD.iloc[:1]] * 3)])
def test_a_past_that_tells_nothing_is_left_out_and_said(old):
    with pytest.warns(UserWarning, match="memory '2023' is left out: the table's columns explain 0% of the variance"):
        models = Table.from_frame(FRAME).with_memory({"2023": old}).models()
    assert models.n_models == Table.from_frame(FRAME).models().n_models
    assert "memories" not in models.encoding


def share(table, results):
    """The share of the variance of old results that is explained."""
    campaign, _ = read_campaign("a", results, table.models().encoding, table.domain)
    return np.var(expected(table.models(), table.domain, campaign))


def test_results_that_nothing_predicts_are_trusted_little():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.standard_normal(60) for name in "abc"})
    rewards = (frame["a"] - frame["b"], rng.standard_normal(60))
    real, noise = (share(Table.from_frame(frame), frame.assign(reward=reward)) for reward in rewards)
    assert noise < 0.1 < 0.8 < real


def test_few_results_are_trusted_little():
    shares = [share(Table.from_frame(FRAME), OLD.sample(n, random_state=0)) for n in (2, 5, 14)]
    assert shares[0] < 0.3 < 0.7 < shares[2]
    assert shares == sorted(shares)


@pytest.mark.parametrize(
    ("old", "reward", "error"),
    [
        (OLD.drop(columns="ligand"), "reward", "row 0: the result is none of the candidates, and the file lacks the "
         "column 'ligand'.*add it, or name candidates of the table in 'reaction'"),
        (OLD.rename(columns={"ligand": "ligands"}), "reward", "lacks the column 'ligand'.*did you mean 'ligands'"),
        (OLD.rename(columns={"reward": "yield"}), "reward", "has no column 'reward'; say which one holds the results"),
        (OLD.assign(reward="failed"), "reward", "no line has a number in 'reward'"),
        (OLD.assign(reward="good"), "reward", "'good' is not a number"),
        (OLD.assign(**{"T (°C)": [f"{t + 273} K" for t in OLD["T (°C)"]]}), "reward", "column 'T .°C.'.*unit 'K'"),
        (OLD.assign(**{"T (°C)": "hot"}), "reward", "column 'T .°C.': 'hot' is not a number"),
        (OLD[:0], "reward", "2023 has columns without a row"),
        (pd.concat([OLD] * 40), "reward", "has 560 results, more than 500"),
    ],
)  # fmt: skip
def test_what_does_not_fit_names_the_column_and_the_remedy(old, reward, error):
    with pytest.raises(FileError, match=error):
        Table.from_frame(FRAME).with_memory({"2023": old}, reward)


def test_molecules_of_an_old_campaign_may_be_spelled_in_another_way():
    pytest.importorskip("rdkit")
    spelled = {"CP(C)C": "C[P](C)C", "CCO": "OCC", "Clc1ccccc1": "c1ccccc1Cl"}
    rows = product(["CP(C)C", "CCO", "Clc1ccccc1"], (60, 80, 100), ("a", "b"))
    frame = pd.DataFrame(rows, columns=["ligand SMILES", "celsius", "base"])
    old = frame.assign(reward=frame["ligand SMILES"].str.len() + frame["celsius"] / 20.0)
    table = Table.from_frame(frame)
    same, other = (table.with_memory({"2023": one}) for one in (old, old.replace({"ligand SMILES": spelled})))
    assert remark(other) == remark(same) == "memory '2023': 18 results; 18 of them of candidates"
    assert np.array_equal(column(same), column(other))


def test_names_must_be_free():
    table = Table.from_frame(FRAME).with_memory({"2023": OLD})
    for name in ("2023", "table"):
        with pytest.raises(ValueError, match=f"there is a memory or description '{name}' already"):
            table.with_memory({name: OLD})
    with pytest.raises(TypeError, match="campaigns must be a non-empty dict"):
        table.with_memory({})
    with pytest.raises(TypeError, match="the name of a campaign must be a text, got 2023"):
        table.with_memory({2023: OLD})
    with pytest.raises(
        TypeError, match="memory 'x' must be a data frame, the path of a file, an alexp.Table or a study"
    ):
        table.with_memory({"x": 3})


def test_tables_runs_and_studies_are_sources(tmp_path):
    run = alexp.EvidenceMixture(Table.from_frame(FRAME), random_state=1)
    study = create_study(Table.from_frame(FRAME), name="old", storage=f"sqlite:///{tmp_path}/s.db", random_state=1)
    for opt in (run, study):
        for trial in opt.ask(8):
            opt.tell(trial, float(yields(FRAME)[trial.index]))
        opt.ask()
    table = Table.from_frame(FRAME)
    both = [column(table.with_memory({"old": one})) for one in (run, study)]
    assert np.array_equal(*both)
    assert "8 results; 8 of them of candidates; 1 without a reward left out" in remark(
        table.with_memory({"old": study})
    )
    other = Table.from_frame(OLD.rename(columns={"reward": "yield"}))
    assert np.array_equal(column(table.with_memory({"a": other}, "yield")), column(table.with_memory({"a": OLD})))
    bandit = alexp.EvidenceMixture(alexp.ModelClass.legendre(2, 1), alexp.Interval(-1, 1, resolution=5), random_state=0)
    bandit.observe(2, 1.0)
    with pytest.raises(TypeError, match="memory 'x': the study must be one of a table"):
        table.with_memory({"x": bandit})


def test_what_is_expected_is_the_posterior_mean_of_a_run_on_the_old_results():
    table = Table.from_frame(FRAME)
    ratios = (1e-4, 1e-3, 1e-2, 0.1, 0.5, 2.0, 8.0, 32.0)
    settings = {"repeats": True, "goal": "sum", "ratio_grid": ratios}
    run = alexp.EvidenceMixture(table.models(), table.domain, **settings, random_state=5)
    places = OLD.index.to_numpy()
    for place, y in zip(places, OLD["reward"], strict=True):
        run.observe(int(place), float(y))
    mean, unit = np.array([run.predict(run.domain[k])[0] for k in range(27)]), np.std(OLD["reward"])
    campaign = {"rewards": OLD["reward"].to_numpy(), "places": places, "cells": {}}
    assert np.allclose(expected(table.models(), table.domain, campaign), (mean - mean.mean()) / unit, atol=1e-9)
