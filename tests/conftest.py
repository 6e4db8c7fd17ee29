"""Which tests are slow: `make test` leaves them out, `make test-all` runs everything.

A test that takes seconds of CPU time, starts processes or servers, or repeats another on a second database is slow.
`pytest --durations=50` measures; an entry that names no test any more is reported when all tests are collected.
"""

import warnings
from fnmatch import fnmatch

import pytest

# Patterns of paths below tests/, or of path::test.
SLOW = (
    "*[[]*postgres*",  # the same tests run on SQLite in the fast tier
    "adversarial/*",  # interrupts, kills, damaged states, fuzzing
    "bench/*",
    "*/test_bench.py",
    "experiments/*",  # runs of experiments; their statistics are fast
    "service/test_[!a]*",  # servers, browsers, clients, floods; the API itself is fast
    "study/test_concurrency.py",
    "study/test_crashes.py",
    "study/test_forking.py",
    "study/test_locking.py",
    "study/test_memory.py",
    "study/test_report.py",
    "table/test_files.py::test_fifty_megabytes*",
    "parts/test_dask.py",  # processes of a cluster, some of which are killed
    "gpu/*",  # devices on a strict stand-in for a GPU
    "estimation/test_screen.py",
    "estimation/test_group_lasso_extremes.py",
    "estimation/onepass/test_kernels.py",
    "algorithms/test_balancing.py",
    "algorithms/test_extremes.py",
    "algorithms/test_hard_columns.py",
    "algorithms/test_order.py",
    "algorithms/test_round_budget.py::test_never_exceeded_in_a_hundred_runs*",
    "algorithms/test_rivals_beyond.py",
    "algorithms/test_contextual_conformance.py",  # but for the algorithms of FAST
    "algorithms/sparse/*",
    "evaluation/test_coverage.py",
    "theory/test_coverage.py",
    "common/test_compiling.py",
    "outside/*",  # a package of another team in processes of its own
    "test_cli.py::test_demo*",
    "test_dist.py",  # installs the wheel into an environment of its own
    "test_docs.py",
    "test_first_minutes.py",
    "test_mutants.py",
    "test_pages.py::test_a_default_that_is_changed*",
)
FAST = (
    "gpu/test_devices.py",
    "experiments/test_scenarios.py",
    "experiments/test_statistics.py",
    "algorithms/test_contextual_conformance.py*[[]alexp-*",
    "algorithms/test_contextual_conformance.py*[[]evidence-mixture-*",
    "algorithms/test_contextual_conformance.py*[[]linucb-*",
)


def _matches(nodeid: str, patterns: tuple[str, ...]) -> list[str]:
    name = nodeid.removeprefix("tests/")
    return [pattern for pattern in patterns if fnmatch(name, pattern) or fnmatch(name, f"{pattern}::*")]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    used: set[str] = set()
    for item in items:
        if not item.nodeid.startswith("tests/"):
            continue
        slow, fast = _matches(item.nodeid, SLOW), _matches(item.nodeid, FAST)
        used.update(slow, fast)
        if slow and not fast:
            item.add_marker(pytest.mark.slow)
    unused = [pattern for pattern in (*SLOW, *FAST) if pattern not in used]
    if unused and "tests" in config.args and not hasattr(config, "workerinput"):
        warnings.warn(f"tests/conftest.py names tests that do not exist: {', '.join(unused)}", stacklevel=1)
