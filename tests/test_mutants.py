"""The mutation tool on a library of two functions: what it notices, and what it must not pass over."""

import importlib.util
import json
import os
import shutil
import subprocess
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
    (tests / "test_plugin.py").write_text("import no_such_plugin\n")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they start slowly
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "LIST", tmp_path / "mutants.json")
    monkeypatch.setattr(module, "KILLERS", tmp_path / "killers.json")
    pytest.importorskip("coverage")
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
        entry("B1", "return x + x + x", "return 4 * x", tests=["tests/test_broken.py"]),
        entry("B2", "return x + x + x", "return 4 * x", tests=["tests/test_plugin.py"]),
    ]
    tool.LIST.write_text(json.dumps(entries))
    before = (tool.ROOT / "src" / "alexp" / "sums.py").read_text()
    with pytest.raises(SystemExit, match="--survey makes it"):
        tool.main([])
    assert tool.main(["--survey"]) == 0
    assert tool.main(["--jobs", "2"]) == 1
    printed = capsys.readouterr().out
    verdicts = {line.split()[3]: line.split()[0] for line in printed.splitlines() if " s  " in line}
    assert verdicts == {
        "K1": "killed", "S1": "survived", "S2": "survived", "O1": "killed",
        "T1": "stale", "T2": "stale", "I1": "invalid", "B1": "survived", "B2": "survived",
    }  # fmt: skip
    assert "S1 changed (src/alexp/sums.py): NO REASON IS KNOWN" in printed
    assert "S2 changed (src/alexp/sums.py): equivalent because" in printed
    assert "left out: tests/test_broken.py::test_broken fails on the unchanged tree" in printed
    assert "left out: tests/test_plugin.py fails on the unchanged tree" in printed
    assert (tool.ROOT / "src" / "alexp" / "sums.py").read_text() == before
    assert tool.main(["--only", "K1", "S2"]) == 0
    assert tool.main(["--list", "--files", "*/other.py"]) == 0


def test_a_run_in_pieces_goes_on_where_it_ended(tool, tmp_path, capsys, monkeypatch):
    out = tmp_path / "verdicts.jsonl"
    entries = [entry("K1", "return x + x\n", "return 3 * x\n"), entry("S1", "return x + x + x", "return 4 * x")]
    tool.LIST.write_text(json.dumps(entries))
    tool.main(["--survey"])
    capsys.readouterr()
    tool.main(["--out", str(out), "--minutes", "0"])
    assert "2 open" in capsys.readouterr().out.splitlines()
    tool.main(["--out", str(out), "--part", "1/2"])
    tool.main(["--out", str(out), "--part", "2/2"])
    with out.open("a") as file:
        file.write('{"id": "K1", "cha')  # the machine was switched off
    with monkeypatch.context() as patch:
        patch.setattr(tool, "pytest", lambda *_: pytest.fail("nothing has changed"))
        tool.main(["--out", str(out), "--keep-killers"])
    assert json.loads(tool.KILLERS.read_text()) == {"K1": "tests/test_double.py::test_double"}
    assert {line.split()[3]: line.split()[0] for line in capsys.readouterr().out.splitlines() if " s  " in line} == {
        "K1": "killed", "S1": "survived",
    }  # fmt: skip
    (tool.ROOT / "tests" / "test_triple.py").write_text(
        "from alexp.sums import triple\ndef test_triple():\n    assert triple(1) == 3\n"
    )
    tool.main(["--survey", "tests/test_triple.py"])
    tool.main(["--out", str(out)])  # a new test, which the survivor has not passed
    assert "test_triple" in next(line for line in capsys.readouterr().out.splitlines() if "  S1 " in line)


_PLACES = """
LIMIT = 3
class Counter:
    step = 1
    def up(self, x):
        if x > LIMIT:
            return x
        return x + self.step
@ieee.leaf
def hidden(x):
    return unseen(x)
def caller(x, more=0):
    return hidden(x) + more
"""


def test_the_tests_that_execute_a_change_are_chosen(tool):
    (tool.ROOT / "tests" / "test_double.py").write_text(
        "from alexp import places\n"
        "import pytest\n"
        "def test_large():\n    assert places.Counter().up(5) == 5\n"
        "def test_small():\n    assert places.Counter().up(1) == 2\n"
        "@pytest.mark.parametrize('x', [1, 2])\n"
        "def test_caller(x):\n    with pytest.raises(TypeError):\n        places.caller(x)\n"
    )
    (tool.ROOT / "src" / "alexp" / "places.py").write_text(
        "class ieee:\n    leaf = staticmethod(lambda function: None)\n" + _PLACES
    )
    tool.main(["--survey"])
    survey = tool.Survey(tool.ROOT / ".numba-cache" / "survey.json.gz")

    def chosen(old, file="places"):
        mutant = tool.Mutant("M", "", f"src/alexp/{file}.py", old, f"{old} ")
        return sorted(test.partition("::")[2] for test in survey.executing(mutant))

    assert chosen("            return x\n") == ["test_large"]
    assert chosen("x + self.step") == ["test_small"]
    assert chosen("LIMIT = 3") == chosen("unseen(x)") == []  # constants and compiled functions
    (tool.ROOT / "src" / "alexp" / "places.py").rename(tool.ROOT / "src" / "alexp" / "moved.py")
    tool.modules.cache_clear()
    assert chosen("x + self.step", "moved") == ["test_small"]
    mutant = tool.Mutant("M", "", "src/alexp/moved.py", "unseen(x)", "x")
    runs = survey.choose(mutant, 60.0, "tests/test_double.py::test_large")
    assert runs[0] == ["tests/test_double.py::test_large"]
    assert {f"tests/test_double.py::{name}" for name in ("test_small", "test_caller[1]")} <= set(runs[1])


_KERNEL = """
from alexp.common.compiling import ieee
@ieee.leaf
def doubled(x):
    return 2.0 * x
"""
_ENTRY = """
from alexp.common.compiling import ieee
from alexp._kernel import doubled
@ieee.entry
def quadrupled(x):
    return doubled(doubled(x))
"""
_OTHER = """
from alexp.common.compiling import ieee
@ieee.entry
def tripled(x):
    return 3.0 * x
"""
_TEST = """
from alexp._entry import quadrupled
from alexp._other import tripled
def hits(function):
    return sum(function.stats.cache_hits.values())
def test_entries():
    assert quadrupled(1.5) == 6.0 and tripled(1.5) == 4.5
"""
_REUSE = """
from test_double import hits, quadrupled, tripled
def test_reuse():
    assert quadrupled(1.5) == 6.0 and tripled(1.5) == 4.5
    assert (hits(quadrupled), hits(tripled)) == (0, 1)
"""


def test_compiled_code_of_a_changed_kernel_is_made_anew_and_other_code_is_not(tool, capsys):
    library, tests = tool.ROOT / "src" / "alexp", tool.ROOT / "tests"
    common = TOOL.parents[1] / "src" / "alexp" / "common"
    shutil.copytree(common, library / "common", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in (("_kernel", _KERNEL), ("_entry", _ENTRY), ("_other", _OTHER)):
        (library / f"{name}.py").write_text(text)
    (tests / "test_double.py").write_text(_TEST)
    (tests / "test_reuse.py").write_text(_REUSE)
    own = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    command = [sys.executable, "-m", "pytest", "-q", "tests/test_double.py"]
    subprocess.run(command, cwd=tool.ROOT, env=own | {"PYTHONPATH": str(tool.ROOT / "src")}, check=True)
    tool.main(["--survey"])
    assert len(list((library / "__pycache__").rglob("*.nbc"))) == 2

    def kernel(id_, new):
        return entry(id_, "return 2.0 * x", new) | {"file": "src/alexp/_kernel.py"}

    tool.LIST.write_text(json.dumps([kernel("K1", "return 2.5 * x"), kernel("S1", "return x + x")]))
    tool.KILLERS.write_text(json.dumps({"S1": "tests/test_reuse.py::test_reuse"}))
    assert tool.main([]) == 1
    printed = capsys.readouterr().out
    assert "_kernel.py): tests/test_double.py::test_entries" in printed
    assert "survived: S1" in printed  # with tripled from the tool's folder and quadrupled made anew
    kept = list((tool.ROOT / ".numba-cache").glob("alexp-code-*"))
    assert len(kept) == 1, kept
    assert len(list(kept[0].iterdir())) == 2


def test_stale_mutants_find_their_text(tool, capsys):
    (tool.ROOT / "src" / "alexp" / "more.py").write_text("def square(x):\n    return x * x\n")
    tool.LIST.write_text(
        json.dumps([entry("T1", "return x * x", "return x"), entry("T2", "return x + x + y", "return x")])
    )
    assert tool.main(["--list"]) == 1
    printed = capsys.readouterr().out
    assert "moved to src/alexp/more.py" in printed
    assert "moved to nowhere" in printed
    assert tool.main(["--relocate"]) == 1  # the second still needs a hand
    assert [item["file"] for item in json.loads(tool.LIST.read_text())] == ["src/alexp/more.py", "src/alexp/sums.py"]


def test_the_list_is_in_order():
    entries = json.loads(TOOL.with_suffix(".json").read_text())
    assert len(entries) > 200
    assert len({item["id"] for item in entries}) == len(entries)
    for item in entries:
        assert set(item) <= {"id", "title", "file", "old", "new", "tests", "occurrence", "reason"}, item["id"]
        assert item["old"] != item["new"], item["id"]
