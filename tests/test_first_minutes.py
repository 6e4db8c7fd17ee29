"""What a newcomer meets first: version, module, missing extras in one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import alexp
from alexp import cli
from alexp.cli.errors import advice_for
from alexp.common.extras import EXTRAS

ROOT = Path(__file__).parent.parent

BLOCK = """
import sys


class Absent:
    names = set({names!r})

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


sys.meta_path.insert(0, Absent())
import importlib.util

_found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in Absent.names else _found(name, package)
"""


def run(*arguments, program=("-m", "alexp"), without=(), folder):
    """`python -m alexp ...`, or another program, in a process where some packages are not installed."""
    (folder / "sitecustomize.py").write_text(BLOCK.format(names=tuple(without)))
    path = os.pathsep.join([str(folder), *sys.path, os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, *program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=os.environ | {"PYTHONPATH": path})


def test_version(tmp_path):
    result = run("--version", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == f"alexp {alexp.__version__}"


@pytest.mark.parametrize(
    ("arguments", "without", "extra"),
    [
        (("study", "list"), ("sqlalchemy",), "alexp[lab]"),
        (("serve",), ("fastapi",), "alexp[service]"),
    ],
)
def test_a_missing_extra_is_one_line(arguments, without, extra, tmp_path):
    result = run(*arguments, without=without, folder=tmp_path)
    assert result.returncode != 0
    assert "Traceback" not in result.stderr
    assert extra in " ".join(result.stderr.split())
    assert len(result.stderr.strip().splitlines()) == 1


EXTRA = sorted({package for package, extra in EXTRAS.items() if extra.startswith("alexp[")})
CORE = """
import alexp
models, line = alexp.ModelClass.legendre(3, 2), alexp.Interval(resolution=9)
for kind in (alexp.EvidenceMixture, alexp.ALExp):
    opt = kind(models, line, noise_std=0.1, random_state=0)
    for trial in opt.ask(3):
        opt.tell(trial, 1.0)
    opt.best(), opt.probabilities, opt.summary(), type(opt).from_dict(opt.to_dict())
for needs in (opt.trials_dataframe, opt.plot, lambda: alexp.EvidenceMixture(alexp.Table.read("x.csv")),
              lambda: alexp.create_study, lambda: alexp.Client("http://127.0.0.1:1")):
    try:
        needs()
    except ModuleNotFoundError as error:
        print(error)
"""


def test_the_core_needs_no_extra(tmp_path):
    """Ask and tell work with NumPy, SciPy and Numba alone; what needs more says what to install."""
    (tmp_path / "x.csv").write_text("id,u\na,1\nb,2\n")
    (tmp_path / "core.py").write_text(CORE)
    done = run(program=["core.py"], without=EXTRA, folder=tmp_path)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "this needs pandas, which is not installed: pip install 'alexp[lab]'",
        "this needs matplotlib, which is not installed: pip install 'alexp[lab]'",
        "this needs pandas, which is not installed: pip install 'alexp[lab]'",
        "a study needs SQLAlchemy, which is not installed: pip install 'alexp[lab]'",
        "alexp.Client needs HTTPX, which is not installed: pip install 'alexp[client]'",
    ]
    done = run("demo", without=EXTRA, folder=tmp_path)
    assert done.stderr == "error: the command line needs typer, which is not installed: pip install 'alexp[lab]'\n"


def test_preflight_of_files_needs_no_database(tmp_path):
    (tmp_path / "items.csv").write_text("name\na\nb\nc\nd\n")
    (tmp_path / "f.csv").write_text("u,v\n1,2\n3,4\n5,7\n0,1\n")
    result = run(
        "preflight", "--candidates", "items.csv", "--features", "f=f.csv", without=("sqlalchemy",), folder=tmp_path
    )
    assert result.returncode == 0, result.stderr


def test_modules_of_others_are_not_explained_away():
    assert advice_for(ModuleNotFoundError("No module named 'mine'", name="mine")) is None


def test_a_module_that_cannot_be_mapped_is_no_missing_extra(monkeypatch, capsys):
    """Wherever the command line is when memory runs out, loading itself included."""
    for error in (ImportError("x.so: failed to map segment", name="sqlalchemy.cyextension"), MemoryError()):

        def short(error=error):
            raise error

        monkeypatch.setattr(cli, "app", short)
        with pytest.raises(SystemExit):
            cli.main()
        said = capsys.readouterr().err
        assert said.startswith("error: not enough memory")
        assert "install" not in said


def test_reprs():
    models, line = alexp.ModelClass.legendre(10, 3), alexp.Interval(-1, 1, 50)
    opt = alexp.EvidenceMixture(models, line, random_state=0)
    opt.tell(opt.ask(), 0.5)
    opt.ask()
    assert repr(opt) == "EvidenceMixture(165 models, 50 candidates, 1 told, 1 pending)"
    assert repr(models) == "ModelClass(165 models, 11 columns)"
    assert repr(line) == "Interval(-1, 1, resolution=50)"
    assert repr(alexp.FiniteSet(["water"])) == "FiniteSet(1 candidates: 'water')"
    assert repr(alexp.Box([0], [2], 4)).startswith("Box([0.0], [2.0], ")
