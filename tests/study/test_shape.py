"""noise="gaussian" in studies: on the command line, kept, replayed, and spoken of in reports."""

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from alexp.cli import app
from alexp.study import load_study

N = 40


def test_one_switch_on_the_command_line(tmp_path):
    storage, rng = f"sqlite:///{tmp_path / 'a.db'}", np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1.0, 1.0, (N, 2)), columns=["dose", "heat"])
    frame.insert(0, "id", [f"m{k}" for k in range(N)])
    frame.to_csv(tmp_path / "c.csv", index=False)

    def run(*words, code=0):
        result = CliRunner().invoke(app, ["study", *words, "--storage", storage])
        assert result.exit_code == code, result.output
        return " ".join(result.output.split())

    files = ["--candidates", str(tmp_path / "c.csv")]
    assert "noise must be" in run("create", "s", *files, "--noise", "uniform", code=1)
    for name, kernels in (("lines", "linear"), ("curves", "auto")):
        run("create", name, *files, "--noise", "gaussian", "--kernels", kernels, "--seed", "1")
        study = load_study(name, storage)
        for trial in study.ask(20):
            study.tell(trial, 60.0 + 20.0 * float(frame["dose"][trial.index]) + rng.standard_normal())
        again = load_study(name, storage)
        assert again.algorithm.noise == "gaussian"
        assert str(again.stop_report()) == str(study.stop_report())
        kind = {"lines": "certified", "curves": "calibrated"}[name]
        assert study.stop_report().kind == kind
        said = run("status", name)
        assert "in at least 95 of 100 such runs, if" in said
        page = study.report(tmp_path / f"{name}.html").read_text()
        assert "errors are bell-shaped" in page
        assert (study.view().certificates is None) == (kind == "calibrated")
