"""The project's own papers: workflows that call what exists, one version everywhere, and `alexp doctor`."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.version import Version
from rattler_build import RenderConfig, Stage0Recipe, VariantConfig

from alexp.cli.doctor import findings
from alexp.common.extras import EXTRAS
from alexp.common.warning import deprecated

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SCHEMAS = {
    "github-workflows": WORKFLOWS,
    "dependabot": [ROOT / ".github/dependabot.yml"],
    "citation-file-format": [ROOT / "CITATION.cff"],
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_follow_their_schemas(schema):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *SCHEMAS[schema]]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_pin_actions_and_call_make_targets_that_exist(path):
    text, makefile = path.read_text(), (ROOT / "Makefile").read_text()
    for action in re.findall(r"uses: *(\S+)", text):
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), f"{action} is not pinned to a commit"
    for target in re.findall(r"make ([\w-]+)", text):
        assert re.search(rf"^{target}:", makefile, flags=re.M), f"there is no make {target}"


def test_there_is_one_version_and_one_date():
    research = tomllib.loads((ROOT / "experiments/pyproject.toml").read_text())["project"]
    citation = re.search(r"^version: (.*)\ndate-released: (.*)$", (ROOT / "CITATION.cff").read_text(), flags=re.M)
    changes = re.search(r"^## (\S+) - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)
    assert PROJECT["version"] == research["version"] == citation[1] == changes[1]
    assert citation[2] == changes[2], "the date of the release"


def test_the_conda_recipe_says_what_pyproject_says():
    """It is parsed and rendered by rattler-build, with which conda-forge builds."""
    (variant,) = Stage0Recipe.from_file(str(ROOT / "recipe/recipe.yaml")).render(VariantConfig(), RenderConfig())
    recipe, extras = variant.recipe, PROJECT["optional-dependencies"]
    assert recipe.package.version == PROJECT["version"]
    renamed = {"matplotlib-base": "matplotlib", "dask-core": "dask", "prometheus_client": "prometheus-client"}

    def asked(lines):
        found = (re.match(r"([\w-]+)(?:\[[\w,]+\])?\s*(.*)", line).groups() for line in lines)
        return {renamed.get(name, name): bound for name, bound in found if name != "alexp"}

    own = {"python": PROJECT["requires-python"]} | asked(PROJECT["dependencies"]) | asked(extras["lab"])
    assert asked(recipe.requirements.run) == own
    others = [line for name in ("client", "service", "chem", "design", "dask") for line in extras[name]]
    assert asked(recipe.requirements.to_dict()["run_constraints"]) == asked(others)


def test_what_is_deprecated_goes_when_it_is_said_to_go():
    with pytest.warns(FutureWarning, match="opt.old is deprecated and goes in alexp 9.0; use opt.new") as heard:
        deprecated("opt.old", "opt.new", "9.0")
    assert heard[0].filename == __file__
    for path in (ROOT / "src").rglob("*.py"):
        for goes in re.findall(r'deprecated\([^)]*"(\d+\.\d+)"\)', path.read_text()):
            assert Version(goes) > Version(PROJECT["version"]), f"{path.name} still has what was to go in {goes}"


def test_every_package_of_an_extra_is_known_by_its_extra():
    """So that whoever misses it is told what to install."""
    imported = {"psycopg": "psycopg", "prometheus-client": "prometheus_client", "cupy-cuda13x": "cupy"}
    for extra in ("lab", "client", "service", "chem", "design", "dask", "gpu"):
        for line in PROJECT["optional-dependencies"][extra]:
            name = re.match(r"[\w-]+", line)[0]
            if name != "alexp":
                assert EXTRAS[imported.get(name, name.replace("-", "_"))] == f"alexp[{extra}]"


def test_the_doctor_names_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rdkit", None)
    lines = dict(line.partition(": ")[::2] for line in findings(f"sqlite:///{tmp_path}/x.db") if ": " in line)
    assert lines["chem"] == "rdkit missing: pip install 'alexp[chem]'"
    assert lines["client"].startswith("httpx ")
    assert lines["studies"] == f"none yet in {tmp_path}/x.db"
    (tmp_path / "x.db").write_bytes(b"not a database, but long enough to be taken for one" * 40)
    *_, studies = findings(f"sqlite:///{tmp_path}/x.db")
    assert "not a database" in studies or "damaged" in studies
