"""The tool that says which numbers of the documentation are stale, on a page of its own; and the list of entries."""

import importlib.util
import re
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOOL = ROOT / "tools" / "pages.py"


def load(monkeypatch):
    spec = importlib.util.spec_from_file_location("pages_under_test", TOOL)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "pages_under_test", module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """The tool, pointed at a small tree: a part of a page, a table, and a page that is made once per version."""
    module = load(monkeypatch)
    docs = tmp_path / "docs"
    docs.mkdir()
    (tmp_path / "value.txt").write_text("0.25\n")
    (docs / "page.md").write_text("# Page\n\n<!-- part: begin -->\n<!-- part: end -->\n\nThe end.\n")
    (docs / "pages.toml").write_text(
        '[part]\ncommand = "cat value.txt value.txt"\nmakes = ["docs/page.md#part"]\nseeds = "0 to 9"\n'
        'uses = ["UCB"]\nsample = "cat value.txt"\n\n'
        '[table]\ncommand = "cp value.txt docs/table.csv; echo made > docs/made.md"\n'
        'makes = ["docs/table.csv", "docs/made.md"]\n'
        "sample = \"(echo x,ms; sed 's/$/,1/' value.txt) > {out}/t.csv; date +%N\"\n\n"
        '[speed]\ncommand = "date +%N > docs/speed.md"\nmakes = ["docs/speed.md"]\nper_version = true\n'
    )
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "LIST", docs / "pages.toml")
    monkeypatch.setattr(module, "STAMPS", docs / "stamps")
    return module


def test_what_was_made_is_not_stale(tool, capsys):
    assert tool.main(["check"]) == 1
    assert "3 of 3 entries are stale" in capsys.readouterr().out
    assert tool.main(["make"]) == 0
    text = (tool.ROOT / "docs/page.md").read_text()
    assert re.search(
        r"begin \(made by `cat value.txt value.txt`, seeds 0 to 9, .*-->\n0.25\n0.25\n<!-- part: end", text
    )
    assert text.endswith("The end.\n")
    assert (tool.ROOT / "docs/made.md").read_text().startswith("made\n\n<!-- made by ")
    assert tool.main(["check"]) == 0
    tool.main(["make", "part", "table"])  # a second time leaves nothing twice
    assert (tool.ROOT / "docs/page.md").read_text() == text
    assert (tool.ROOT / "docs/made.md").read_text().count("<!-- made by ") == 1


def test_a_sample_that_differs_makes_a_page_stale(tool, capsys):
    tool.main(["make"])
    (tool.ROOT / "value.txt").write_text("0.250001\n")  # rounding
    assert tool.main(["check"]) == 0
    (tool.ROOT / "value.txt").write_text("0.27\n")
    capsys.readouterr()
    assert tool.main(["check"]) == 1
    said = capsys.readouterr().out
    assert "its sample had `0.25`, has `0.27`" in said
    assert "docs/table.csv" in said
    assert "speed" not in said


def test_a_sample_that_fails_makes_a_page_stale(tool, capsys):
    tool.main(["make"])
    (tool.ROOT / "value.txt").unlink()
    capsys.readouterr()
    assert tool.main(["check"]) == 1
    said = capsys.readouterr().out
    assert "docs/page.md#part" in said
    assert "its sample cannot be made: `cat value.txt` failed with status 1" in said
    assert "2 of 3 entries are stale" in said


def test_changes_by_hand_are_noticed(tool, capsys):
    tool.main(["make"])
    page = tool.ROOT / "docs/page.md"
    page.write_text(page.read_text().replace("The end.", "Another end."))  # outside of the marks: ours to write
    assert tool.main(["check"]) == 0
    page.write_text(page.read_text().replace("\n0.25\n0.25\n", "\n0.25\n0.26\n"))
    assert tool.main(["check", "part"]) == 1
    assert "docs/page.md#part is not what the command wrote" in capsys.readouterr().out


def test_a_changed_default_is_named(tool, capsys, monkeypatch):
    tool.main(["make"])
    monkeypatch.setattr(tool, "defaults", lambda name: "beta=3.0")
    capsys.readouterr()
    assert tool.main(["check"]) == 0
    assert "docs/page.md#part: defaults of UCB differ, its sample does not" in capsys.readouterr().out
    (tool.ROOT / "value.txt").write_text("0.3\n")
    assert tool.main(["check", "part"]) == 1
    assert "(defaults of UCB differ)" in capsys.readouterr().out


SAMPLE = """
import sys, alexp
models, domain = alexp.ModelClass.legendre(degree=3, size=2), alexp.Interval(-1.0, 1.0, resolution=21)
opt = getattr(alexp, sys.argv[1])(models, domain, random_state=0, noise_std=0.1)
for _ in range(8):
    trial = opt.ask()
    opt.tell(trial, 1.0 - trial.x**2 + trial.x / 3.0)
print([opt.trial(k).index for k in range(8)])
"""


def test_a_default_that_is_changed_in_a_copy_makes_its_own_pages_stale(tool, capsys, monkeypatch):
    """Those whose runs it changes, and no others."""
    source = tool.ROOT / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    (tool.ROOT / "sample.py").write_text(SAMPLE)
    kinds = ("ALExp", "EvidenceMixture", "LMUCB")
    entry = '[{0}]\ncommand = "echo > docs/{0}.md"\nmakes = ["docs/{0}.md"]\nsample = "python sample.py {0}"\n'
    tool.LIST.write_text("".join(map(entry.format, kinds)))
    monkeypatch.setenv("PYTHONPATH", str(source))
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")  # nothing is compiled
    tool.main(["make"])
    for file, old, new, expected in (
        ("decision/agents.py", "beta: float | str = 2.0", "beta: float | str = 9.0", {"ALExp"}),
        ("estimation/lasso/group_lasso.py", "tol: float = 1e-6", "tol: float = 1e-5", set()),  # solved beyond it
        ("algorithms/evidence_mixture.py", "gamma: float = 0.0", "gamma: float = 0.9", {"EvidenceMixture"}),
    ):
        path = source / "alexp" / file
        text = path.read_text()
        assert text.count(old) == 1
        path.write_text(text.replace(old, new))
        capsys.readouterr()
        tool.main(["check"])
        said = capsys.readouterr().out
        assert {kind for kind in kinds if f"docs/{kind}.md (" in said} == expected, said
        path.write_text(text)
    assert tool.main(["check"]) == 0


def test_what_has_no_sample_is_made_for_every_version(tool, capsys, monkeypatch):
    tool.main(["make"])
    monkeypatch.setattr(tool, "version", lambda name: "9.9")
    assert tool.main(["check"]) == 1
    assert "1 of 3 entries are stale" in capsys.readouterr().out


def test_wrong_calls_say_what_there_is(tool):
    with pytest.raises(SystemExit, match="no entry 'parts' in docs/pages.toml; known are part, table, speed"):
        tool.main(["check", "parts"])
    (tool.ROOT / "docs/page.md").write_text("# Page\n")
    with pytest.raises(SystemExit, match="has no part between"):
        tool.main(["make", "part"])


# -- the list of this project ------------------------------------------------------------------------------------


def test_every_mark_and_figure_has_its_entry(monkeypatch):
    tool = load(monkeypatch)
    listed = tool.entries()
    assert {path.stem for path in tool.STAMPS.glob("*.txt")} == set(listed)
    made = {part for entry in listed.values() for part in entry.makes}
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    marked = {
        f"{path.relative_to(ROOT).as_posix()}#{name}"
        for path in pages
        for name in re.findall(r"<!-- ([\w-]+): begin", path.read_text(encoding="utf-8"))
    }
    assert marked == {part for part in made if "#" in part}
    stored = {
        path.relative_to(ROOT).as_posix()
        for kind in ("*.csv", "*.png", "*.svg")
        for path in (ROOT / "docs").rglob(kind)
    }
    assert {path for path in stored if "/assets/" not in path} <= made


def test_pages_are_what_their_commands_wrote(monkeypatch):
    tool = load(monkeypatch)
    for entry in tool.entries().values():
        assert entry.sample or entry.per_version, entry.name
        stamp = entry.stamp.read_text(encoding="utf-8")
        for part in entry.makes:
            assert f"content of {part}: {tool.content(part)}\n" in stamp, part
