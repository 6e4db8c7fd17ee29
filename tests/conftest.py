"""Which tests are slow: `make test` leaves them out, `make test-all` runs everything.

A test that takes seconds of CPU time, starts processes or servers, or repeats another on a second database is slow.
`pytest --durations=50` measures; an entry that names no test any more is reported when all tests are collected.
"""

import os
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
    "golden/test_processors.py",  # processes that take another processor for theirs
    "table/test_logarithms.py::test_the_default_reading*",
    "parts/test_dask.py",  # processes of a cluster, some of which are killed
    "gpu/*",  # devices on a strict stand-in for a GPU
    "estimation/test_calibrated.py::test_reports_on_rough_tables*",
    "golden/test_verbs.py",  # but for the few runs of FAST
    "estimation/test_screen.py",
    "estimation/test_group_lasso_extremes.py",
    "estimation/onepass/test_kernels.py",
    "algorithms/test_balancing.py",
    "algorithms/test_extremes.py",
    "algorithms/test_hard_columns.py",
    "algorithms/test_order.py",
    "algorithms/test_round_budget.py::test_never_exceeded_in_a_hundred_runs*",
    "algorithms/test_rivals_beyond.py",
    "algorithms/test_unequal_noise.py::test_at_most_one_in_forty_stays*",
    "algorithms/test_contextual_conformance.py",  # but for the algorithms of FAST
    "algorithms/sparse/*",
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
    "golden/test_verbs.py::test_the_mixture_in_memory*",
    "gpu/test_devices.py",
    "experiments/test_scenarios.py",
    "experiments/test_statistics.py",
    "algorithms/test_contextual_conformance.py*[[]alexp-*",
    "algorithms/test_contextual_conformance.py*[[]evidence-mixture-*",
    "algorithms/test_contextual_conformance.py*[[]linucb-*",
)


# Forks, kills, limits of resources, modes of files and links: skipped on Windows.
POSIX = (
    "client/test_transport.py::test_a_child_opens_its_own_connections",
    "common/test_files.py::test_nothing_stays_behind_on_a_full_disk",
    "common/test_files.py::test_names_of_drafts*",
    "common/test_files.py::test_a_link_is_replaced*",
    "common/test_files.py::test_modes",
    "common/test_files.py::test_devices_and_folders",
    "estimation/test_announcing.py::test_memory_of_the_machine*",
    "estimation/test_sweep.py::test_a_forked_child*",
    "study/test_contextual.py::test_many_processes*",
    "study/test_contextual.py::test_a_trial_of_a_worker_that_was_killed*",
)
if os.name != "posix":  # what these import or make when they are imported exists on POSIX systems only
    ignored = ("concurrency", "crashes", "forking", "leases", "memory", "read_only", "replaced")
    collect_ignore_glob = ["adversarial/*", "common/test_compiling.py", *(f"study/test_{name}.py" for name in ignored)]


def _matches(nodeid: str, patterns: tuple[str, ...]) -> list[str]:
    name = nodeid.removeprefix("tests/")
    return [pattern for pattern in patterns if fnmatch(name, pattern) or fnmatch(name, f"{pattern}::*")]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    used: set[str] = set()
    for item in items:
        if not item.nodeid.startswith("tests/"):
            continue
        slow, fast = _matches(item.nodeid, SLOW), _matches(item.nodeid, FAST)
        posix = _matches(item.nodeid, POSIX)
        used.update(slow, fast, posix)
        if posix and os.name != "posix":
            item.add_marker(pytest.mark.skip(reason="needs what only POSIX systems have"))
        if slow and not fast:
            item.add_marker(pytest.mark.slow)
    unused = [pattern for pattern in (*SLOW, *FAST, *POSIX) if pattern not in used]
    if unused and "tests" in config.args and not hasattr(config, "workerinput"):
        warnings.warn(f"tests/conftest.py names tests that do not exist: {', '.join(unused)}", stacklevel=1)
