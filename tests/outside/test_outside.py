"""A package of another team, installed: kernel, rule, algorithm, domain and command, from docs/extending.md alone."""

import ast
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent / "project"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Environment in which the package is installed: its files and the metadata that an installer writes."""
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(PROJECT / "potting", site / "potting", ignore=shutil.ignore_patterns("__pycache__"))
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    metadata = site / f"{project['name']}-{project['version']}.dist-info"
    metadata.mkdir()
    about = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (metadata / "METADATA").write_text(about, encoding="utf-8")
    groups = (
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in project["entry-points"].items()
    )
    (metadata / "entry_points.txt").write_text("\n".join(groups), encoding="utf-8")
    paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "120", "TERM": "dumb"}


def python(installed, code, *arguments, cwd=None):
    done = subprocess.run(
        [sys.executable, "-W", "ignore::UserWarning", "-c", code, *arguments],
        env=installed, cwd=cwd, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def alexp(installed, *words):
    return python(installed, "import sys; from alexp.cli import main; sys.argv[0] = 'alexp'; main()", *words)


def test_it_imports_the_door_alone():
    for path in (PROJECT / "potting").glob("*.py"):
        modules = {
            node.module
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom) and node.module
        }
        assert {name for name in modules if name.startswith("alexp")} <= {"alexp.extend"}, path


def test_the_command(installed):
    assert "mix" in alexp(installed, "--help")
    assert "Propose mixtures" in alexp(installed, "mix", "--help")
    lines = alexp(installed, "mix", "peat,sand,bark", "--n", "4").splitlines()
    assert len(set(lines)) == 4
    assert all(line.startswith("peat=") for line in lines)


def test_the_algorithm_keeps_the_protocol(installed):
    code = """
import warnings; warnings.simplefilter("ignore")
import alexp, alexp.testing
from alexp.testing import contextual
kind = alexp.algorithms.algorithm_named("ridge-thompson")
for check in alexp.testing.CHECKS:
    check(kind)
for check, problem in contextual.cases(kind):
    check(kind, problem)
print(kind.__module__, "ridge-thompson" in alexp.algorithms.registered_names())
"""
    assert python(installed, code).split() == ["potting.ridge_thompson", "True"]


def test_the_rule_keeps_the_protocol(installed):
    code = """
import warnings; warnings.simplefilter("ignore")
import alexp.testing
from potting.top_two import TopTwo
alexp.testing.check_rule(TopTwo(leader=0.7))
"""
    python(installed, code)


def test_the_kernel_keeps_the_rules_of_kernels(installed):
    code = """
import numpy as np, alexp.testing
from potting.cauchy import Cauchy
alexp.testing.check_kernel(Cauchy(0.5), np.random.default_rng(0).uniform(size=(20, 3)))
"""
    python(installed, code)


MAKE = """
import json, sys
import alexp
from alexp.kernels import Matern
from potting.cauchy import Cauchy
from potting.simplex import Simplex
from potting.top_two import TopTwo

domain = Simplex(("peat", "sand", "bark"))
kernels = {"shares": [Cauchy(0.3), Cauchy(0.3) + 0.5 * Matern(), Cauchy(2.0) * Matern()]}
models = alexp.ModelClass.from_matrices({"shares": domain.points}, kernels=kernels)
opt = alexp.EvidenceMixture(models, domain, rule=TopTwo(0.8), random_state=0)
study = alexp.create_study(models, domain, name="soil", rule=TopTwo(0.8), random_state=0)
for _ in range(3):
    for trial, same in zip(opt.ask(2), study.ask(2)):
        assert trial.x == same.x
        opt.tell(trial, trial.x["sand"] - trial.x["bark"] ** 2)
        study.tell(same, trial.x["sand"] - trial.x["bark"] ** 2)
open("state.json", "w").write(json.dumps(opt.to_dict()))
print(json.dumps([trial.x for trial in opt.ask(3)]))
"""
# Another process, which imports nothing of the package itself.
LOAD = """
import json, sys
import alexp
if sys.argv[1] == "state":
    opt = alexp.algorithms.load(json.load(open("state.json")))
else:
    opt = alexp.load_study("soil")
print(json.dumps([trial.x for trial in opt.ask(3)]))
"""


@pytest.mark.parametrize("where", ["state", "study"])
def test_saved_runs_and_studies_go_on_in_another_process(installed, tmp_path, where):
    installed = installed | {"ALEXP_STORAGE": f"sqlite:///{tmp_path}/studies.db"}
    straight = json.loads(python(installed, MAKE, cwd=tmp_path))
    assert json.loads(python(installed, LOAD, where, cwd=tmp_path)) == straight
    assert len({tuple(x.values()) for x in straight}) == 3


def test_a_package_that_cannot_be_imported_is_named_and_left_out(installed, tmp_path):
    shutil.copytree(Path(installed["PYTHONPATH"].split(os.pathsep)[0]), tmp_path / "site")
    (tmp_path / "site" / "potting" / "mix.py").write_text("import a_module_that_is_missing\n", encoding="utf-8")
    rest = installed["PYTHONPATH"].split(os.pathsep)[1:]
    broken = installed | {"PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), *rest])}
    done = subprocess.run(
        [sys.executable, "-m", "alexp", "--help"], env=broken, capture_output=True, text=True, check=True
    )
    assert "command 'mix' of potting.mix:mix cannot be loaded" in done.stderr
    assert "mix " not in done.stdout
    assert "study" in done.stdout
