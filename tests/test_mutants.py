"""The mutation tool on a library of two functions: what it notices, and what it must not pass over."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[1] / "tools" / "mutants.py"


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """The tool, pointed at a small tree of its own."""
    spec = importlib.util.spec_from_file_location("mutants_under_test", TOOL)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mutants_under_test", module)
    spec.loader.exec_module(module)
    library, tests = tmp_path / "src" / "alexp", tmp_path / "tests"
    library.mkdir(parents=True)
    tests.mkdir()
    (library / "__init__.py").write_text("")
    (library / "sums.py").write_text("def double(x):\n    return x + x\n\n\ndef triple(x):\n    return x + x + x\n")
    (tests / "test_double.py").write_text(
        "from alexp.sums import double\n\n\ndef test_double():\n    assert double(3) == 6\n"
    )
    (tests / "test_broken.py").write_text("def test_broken():\n    assert 1 == 2\n")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they start slowly
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "LIST", tmp_path / "mutants.json")
    monkeypatch.setattr(module, "TESTS", {"src/alexp": ("tests/test_double.py",)})
    return module


def entry(id_, old, new, **more):
    return {"id": id_, "title": "changed", "file": "src/alexp/sums.py", "old": old, "new": new, **more}


def test_verdicts(tool, capsys):
    entries = [
        entry("K1", "return x + x\n", "return 3 * x\n"),
        entry("S1", "return x + x + x", "return 4 * x"),
        entry("S2", "return x + x + x", "return 3 * x", reason="equivalent because it is the same number"),
        entry("O1", "x + x", "x - x", occurrence=1),
        entry("T1", "return x * x", "return x"),
        entry("T2", "x + x", "x - x"),
        entry("I1", "return x + x + x", "return x +"),
        entry("E1", "return x + x + x", "return 3 * x", tests=["tests/test_broken.py"]),
    ]
    tool.LIST.write_text(json.dumps(entries))
    before = (tool.ROOT / "src" / "alexp" / "sums.py").read_text()
    assert tool.main(["--jobs", "2"]) == 1
    printed = capsys.readouterr().out
    verdicts = {line.split()[3]: line.split()[0] for line in printed.splitlines() if " s  " in line}
    assert verdicts == {
        "K1": "killed", "S1": "survived", "S2": "survived", "O1": "killed",
        "T1": "stale", "T2": "stale", "I1": "invalid", "E1": "error",
    }  # fmt: skip
    assert "S1 changed (src/alexp/sums.py): NO REASON IS KNOWN" in printed
    assert "S2 changed (src/alexp/sums.py): equivalent because" in printed
    assert "test_broken fails on the unchanged tree too" in printed
    assert (tool.ROOT / "src" / "alexp" / "sums.py").read_text() == before
    assert tool.main(["--only", "K1", "S2"]) == 0
    assert tool.main(["--list", "--files", "*/other.py"]) == 0


def test_stale_mutants_find_their_text(tool, capsys):
    (tool.ROOT / "src" / "alexp" / "more.py").write_text("def square(x):\n    return x * x\n")
    tool.LIST.write_text(
        json.dumps([entry("T1", "return x * x", "return x"), entry("T2", "return x + x + y", "return x")])
    )
    assert tool.main(["--list"]) == 1
    printed = capsys.readouterr().out
    assert "moved to src/alexp/more.py" in printed
    assert "perhaps src/alexp/sums.py:6: return x + x + x" in printed
    assert tool.main(["--relocate"]) == 1  # the second still needs a hand
    assert [item["file"] for item in json.loads(tool.LIST.read_text())] == ["src/alexp/more.py", "src/alexp/sums.py"]


def test_the_list_is_in_order():
    entries = json.loads(TOOL.with_suffix(".json").read_text())
    assert len(entries) > 200
    assert len({item["id"] for item in entries}) == len(entries)
    for item in entries:
        assert set(item) <= {"id", "title", "file", "old", "new", "tests", "occurrence", "reason"}, item["id"]
        assert item["old"] != item["new"], item["id"]
