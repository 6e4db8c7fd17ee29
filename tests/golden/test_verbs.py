"""Every recorded call is answered as before: see `tests.golden.verbs`.

`python -m tests.golden.record --compare tests/golden/data` looks at every bit; the tests allow for other processors, so
hashes of many numbers, which are marked, are not compared, nor are numbers within texts.
"""

import json
import re
from pathlib import Path

import pytest

from tests.golden import record, verbs
from tests.golden.test_golden import NUMBER, same

BEFORE = record.read(Path(__file__).parent / "data", "verbs")
FEW = ("per arm", "once", "objectives")  # problems that the fast tier plays with the mixture
pytestmark = pytest.mark.filterwarnings("ignore")


def roughly(value):
    """A recording without what may differ in the last bit of a number."""
    if isinstance(value, dict):
        return {key: roughly(one) for key, one in value.items()}
    if isinstance(value, list):
        return [roughly(one) for one in value]
    if not isinstance(value, str) or NUMBER.fullmatch(value):
        return value
    return "#" if value.startswith("#") else re.sub(r"-?\d+\.?\d*(e[+-]?\d+)?", "0", value)


def compare(key, found):
    same(roughly(BEFORE[key]), roughly(json.loads(json.dumps(found))), key)


@pytest.mark.parametrize("problem", FEW)
def test_the_mixture_in_memory(problem):
    compare(f"memory/evidence-mixture/{problem}", verbs.memory("evidence-mixture", problem))


@pytest.mark.parametrize(
    ("algorithm", "problem"), [(a, p) for a, p in verbs.cases() if a != "evidence-mixture" or p not in FEW]
)
def test_runs_in_memory(algorithm, problem):
    compare(f"memory/{algorithm}/{problem}", verbs.memory(algorithm, problem))


@pytest.mark.parametrize(("algorithm", "problem"), verbs.studies())
def test_studies(algorithm, problem):
    compare(f"study/{algorithm}/{problem}", verbs.study(algorithm, problem))


@pytest.mark.parametrize("problem", verbs.REMOTE)
def test_clients(problem):
    compare(f"remote/{problem}", verbs.remote(problem))


def test_requests():
    compare("http", verbs.http())


def test_commands():
    compare("shell", verbs.shell())
