"""Lower bounds are versions that the tests were run with: pyproject.toml and constraints/lowest.txt agree."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RESEARCH = tomllib.loads((ROOT / "experiments/pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
# Not what a user of the library gets: for those who work on it, have BayBE or Ax already, or a GPU.
TOOLS = ("integrations", "gpu", "docs", "test", "lint")


def bounds(lines):
    found = [Requirement(line) for line in lines]
    return {r.name: Version(next(iter(r.specifier)).version) for r in found if r.name != PROJECT["name"]}


def constraints():
    lines = (ROOT / "constraints" / "lowest.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_bounds_are_those_that_were_run():
    asked = bounds(PROJECT["dependencies"] + RESEARCH["dependencies"] + RESEARCH["optional-dependencies"]["bench"])
    for name, lines in EXTRAS.items():
        if name not in TOOLS:
            asked |= bounds(lines)
    lowest = {name: Version(text) for name, text in constraints().items()}
    assert {name: lowest.get(name) for name in asked} == asked
    assert set(lowest) - set(asked) == {"psycopg-binary"}


def test_all_means_every_extra_for_users():
    names = re.findall(r"\[(.*)\]", EXTRAS["all"][0])[0].split(",")
    assert set(names) == set(EXTRAS) - {"all", *TOOLS}


@pytest.mark.parametrize("name", ["test-lowest", "rivals"])
def test_make_targets_exist(name):
    assert re.search(rf"^{name}:", (ROOT / "Makefile").read_text(), flags=re.M)
