"""Part of tools/mutants.py: a pytest plugin that runs the tests it names, or records which test executes what.

`MUTANT_TESTS` names a file with a test or a file of tests in each line; these run, in this order. `MUTANT_FAILED` names
a file for the first that fails. `MUTANT_SURVEY` names a file for the seconds of all tests that passed, and for the
tests that execute each line of the sources.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Generator, Mapping
from pathlib import Path

import pytest

KEPT = 200  # tests of a statement that are worth running; a quarter of that from each file of tests


def picked(tests: Collection[str], seconds: Mapping[str, float], kept: int = KEPT) -> list[str]:
    """The first ones: the fastest first, but another case of a test only after all other tests."""
    seen, ranked = Counter[str](), []
    for test in sorted(tests, key=lambda name: (seconds[name], name)):
        function = test.partition("[")[0]
        ranked.append((seen[function], len(ranked), test))
        seen[function] += 1
    return [test for _, _, test in sorted(ranked)[:kept]]


class Selection:
    """Runs the named tests."""

    def __init__(self, tests: Path, failed: Path) -> None:
        self._place = {name: place for place, name in enumerate(tests.read_text(encoding="utf-8").splitlines())}
        self._failed = failed

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        places = [(self._place.get(i.nodeid, self._place.get(i.nodeid.partition("::")[0])), i) for i in items]
        items[:] = [item for place, item in sorted(((p, i) for p, i in places if p is not None), key=lambda x: x[0])]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.pytest_runtest_logreport(report)

    def pytest_runtest_logreport(self, report: pytest.CollectReport | pytest.TestReport) -> None:
        if report.failed and not self._failed.exists():
            self._failed.write_text(report.nodeid, encoding="utf-8")


class Survey:
    """Records which test executes which line; a fixture of a whole module counts for the test that comes first."""

    def __init__(self, file: Path) -> None:
        from coverage import Coverage

        self._file = file
        self._seconds: dict[str, float] = {}
        self._failed = set[str]()
        self._coverage = Coverage(data_file=None, source=["src", "experiments"], config_file=False)
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, bool, bool]:
        self._coverage.switch_context(item.nodeid)
        done = yield
        self._coverage.switch_context("")
        return done

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0.0) + report.duration
        if not report.passed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        data, sound = self._coverage.get_data(), self._seconds.keys() - self._failed
        number = {test: index for index, test in enumerate(sound)}
        lines = {
            Path(file).relative_to(Path.cwd()).as_posix(): {
                line: [number[test] for test in picked(number.keys() & tests, self._seconds, KEPT // 4)]
                for line, tests in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }
        seconds = {test: round(self._seconds[test], 3) for test in number}
        self._file.write_text(json.dumps({"seconds": seconds, "lines": lines}), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """What the environment asks for."""
    if tests := os.environ.get("MUTANT_TESTS"):
        config.pluginmanager.register(Selection(Path(tests), Path(os.environ["MUTANT_FAILED"])))
    if file := os.environ.get("MUTANT_SURVEY"):
        config.pluginmanager.register(Survey(Path(file)))
