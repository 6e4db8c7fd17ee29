"""A study with an absurd reward, or features of 1e10 beside others of one, opens, goes on, reports, and is healed."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import alexp
from alexp.cli.study import app
from alexp.study import create_study, load_study

RNG = np.random.default_rng(5)
TABLE = {name: RNG.normal(size=(12, size)) for name, size in (("a", 2), ("b", 1), ("c", 3))}
WIDE = {"a": TABLE["a"] * [1.0, 1e10], "b": TABLE["b"] * 1e-10, "c": TABLE["c"]}
DOMAIN = alexp.FiniteSet([f"item {i}" for i in range(12)])
RIGHT = RNG.normal(size=12)
ABSURD = 4  # the trial with the absurd reward

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def new_study(storage, name, tables=TABLE):
    kind = alexp.Algorithm.registry[name]
    models = alexp.ModelClass.from_matrices(tables)
    settings = {"noise_std": 0.1, "reward_bound": 3.0, "random_state": 1, "repeats": True} | kind.example
    return create_study(models, DOMAIN, name="s", storage=storage, algorithm=name, **settings)


def go_on(study, rounds, absurd=None):
    for _ in range(rounds):
        trial = study.ask()
        study.tell(trial, RIGHT[trial.index] if absurd is None or trial.id != ABSURD else absurd)


@pytest.mark.parametrize("absurd", [1e12, -1e100])
@pytest.mark.parametrize("name", ["alexp", "etc", "ets", "evidence-mixture", "lm-ucb", "o2cs-ew", "corral"])
def test_an_absurd_reward_bricks_nothing(tmp_path, name, absurd):
    storage = f"sqlite:///{tmp_path}/s.db"
    go_on(new_study(storage, name), 7, absurd)
    study = load_study("s", storage)
    go_on(study, 2)
    assert study.algorithm.n_told == 9
    assert study.report(tmp_path / "report.html").stat().st_size > 10_000
    shown = CliRunner().invoke(app, ["status", "s", "--storage", storage])
    assert shown.exit_code == 0, shown.output
    assert "9" in shown.output
    study.retract(ABSURD)
    healed = load_study("s", storage)
    go_on(healed, 1)
    assert np.isfinite(healed.best().value)
    assert abs(healed.best().value) < 1e3  # nothing of it is left
    told = healed.trials_dataframe().reward
    assert told.isna().sum() == 1
    assert told.abs().max() < 10.0


def test_retracting_brings_lambda_back(tmp_path):
    storage = f"sqlite:///{tmp_path}/s.db"
    study = new_study(storage, "alexp")
    with pytest.warns(alexp.ConvergenceWarning, match="span too many digits"):
        go_on(study, 7, 1e60)
    opt = study.algorithm
    assert opt.fit.lam > 1e3 * opt.lambda_t(opt.n_told)
    with warnings.catch_warnings():  # who opens it later is told, too, when it is asked
        warnings.simplefilter("error", alexp.ConvergenceWarning)
        again = load_study("s", storage)
    again.retract(ABSURD)
    opt = again.algorithm
    assert opt.fit.lam == opt.lambda_t(opt.n_told)


@pytest.mark.parametrize("name", ["alexp", "etc", "ets", "evidence-mixture"])
def test_features_of_any_size(tmp_path, name):
    storage = f"sqlite:///{tmp_path}/s.db"
    go_on(new_study(storage, name, WIDE), 9)
    study = load_study("s", storage)
    go_on(study, 1)
    assert np.isfinite(study.best().value)
    assert study.report(tmp_path / "report.html").exists()


@pytest.mark.parametrize("wrong", [1e101, 10**400, float("nan"), -1e300])
def test_what_is_refused_is_not_stored(tmp_path, wrong):
    storage = f"sqlite:///{tmp_path}/s.db"
    study = new_study(storage, "alexp")
    go_on(study, 3)
    trial = study.ask()
    before = json.dumps(study.algorithm.to_dict()), len(list(study.events()))
    limit = r"reward.* must be finite and not exceed 1e\+100 in size"
    for attempt in (
        lambda: study.tell(trial, wrong),
        lambda: study.amend(0, wrong),
        lambda: study.add_observations(pd.DataFrame({"index": [1], "reward": pd.Series([wrong], dtype=object)})),
    ):
        with pytest.raises(ValueError, match=limit):
            attempt()
    assert (json.dumps(study.algorithm.to_dict()), len(list(study.events()))) == before
    study.tell(trial, 1e100)


@pytest.mark.parametrize("text", ["1e101", "1" + "0" * 400, "-1e400"])
def test_what_is_refused_on_the_command_line(tmp_path, text):
    storage = f"sqlite:///{tmp_path}/s.db"
    study = new_study(storage, "alexp")
    go_on(study, 3)
    trial = study.ask()
    before = json.dumps(study.algorithm.to_dict())
    plate, seen = tmp_path / "plate.csv", tmp_path / "seen.csv"
    plate.write_text(f"trial,reward\n{trial.id},{text}\n")
    seen.write_text(f"index,reward\n1,{text}\n")
    for arguments in (["tell", "s", plate], ["amend", "s", "0", text], ["observe", "s", seen]):
        said = CliRunner().invoke(app, [*map(str, arguments), "--storage", storage, "--yes"])
        assert said.exit_code == 1
        assert isinstance(said.exception, SystemExit), said.exception  # one line, no traceback
        assert "reward" in said.output
        assert "1e+100" in said.output or "real number" in said.output
    assert json.dumps(load_study("s", storage).algorithm.to_dict()) == before
