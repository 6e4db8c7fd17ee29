"""Every code block of the README and the documentation runs as a reader would run it, and every link leads somewhere.

`make test` leaves out what is marked as slow; `make docs` (ALEXP_FULL=1) runs all of it, and shell blocks by Bash.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs_blocks import FOREIGN, PAGES, PLAIN, ROOT, SHELL, Reader, blocks_of, name_of
from tests.study.conftest import postgres, server  # noqa: F401 (fixtures)

FULL = os.environ.get("ALEXP_FULL") == "1"
BLOCKS = {name_of(path): blocks_of(path) for path in PAGES}
# Pages that are one session of a shell, with a server in it, and the tests that paste them.
SESSIONS = {"docs/service.md": "tests/service/test_page.py"}
RUNNING = sorted(page for page in BLOCKS if page not in SESSIONS and any(block.runs for block in BLOCKS[page]))
# Blocks that nobody can run here, and those too slow for `make test`: at most so many, so that they do not spread.
MOST_SKIPPED, MOST_SLOW = 8, 4


@pytest.fixture
def reader(request, tmp_path, monkeypatch):
    """In an empty folder, with an environment that is put back afterwards."""
    before = dict(os.environ)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # as at the prompt: a block may import the file that another one is
    os.environ.pop("ALEXP_STORAGE", None)
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    os.environ |= {"ALEXP_CACHE": str(tmp_path / "cache"), "MPLBACKEND": "Agg", "COLUMNS": "120"}
    yield Reader(FULL, lambda: request.getfixturevalue("postgres"))
    os.environ.clear()
    os.environ.update(before)


def evaluation(reader):
    assert reader.namespace["frozen"].log.n_told == 0  # being asked for a policy leaves no trace


def studies(reader):
    assert Path("report.html").stat().st_size > 100_000
    assert len(Path("trials.csv").read_text().splitlines()) == 17
    assert " tell 0 0.9 " in reader.printed


def theory(reader):
    assert "99 columns of the concatenat" in reader.printed
    assert "0.0654" in reader.printed


def plates(reader):
    assert reader.namespace["progress"][-1][1] >= 99
    assert Path("arylation.html").stat().st_size > 100_000


# What else must be true after the blocks of a page have run.
AFTERWARDS = {
    "docs/evaluation.md": evaluation,
    "docs/studies.md": studies,
    "docs/theory.md": theory,
    "docs/tutorials/plates.md": plates,
}


@pytest.mark.parametrize("page", RUNNING)
def test_every_block_of_a_page_runs(page, reader):
    reader.read(BLOCKS[page])
    if page in AFTERWARDS:
        AFTERWARDS[page](reader)


@pytest.mark.skipif(not FULL, reason="installs the library; `make docs` does it")
def test_a_newcomer_gets_a_picture(tmp_path):
    """Who copies the three blocks of the front page has a plotted result."""
    install, *python = BLOCKS["docs/index.md"]
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    (tmp_path / "pasted.py").write_text("".join(block.code for block in python))
    own = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    script = f"cd {shlex.quote(str(tmp_path))}\n{install.code}\npython pasted.py\n"
    done = subprocess.run(["bash", "-ec", script], capture_output=True, text=True, env=own | {"MPLBACKEND": "Agg"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "first-result.png").stat().st_size > 10_000


def test_the_conditions_belong_to_pages_that_run():
    assert set(AFTERWARDS) <= set(RUNNING)


def test_blocks_are_in_languages_that_somebody_knows():
    for block in (block for blocks in BLOCKS.values() for block in blocks):
        assert block.language in {"python", *SHELL, *PLAIN, *FOREIGN}, block.place
        assert block.language not in FOREIGN or block.skipped, block.place


def test_sessions_have_their_tests():
    for page, test in SESSIONS.items():
        assert Path(page).name in (ROOT / test).read_text()


def test_few_blocks_are_left_out():
    blocks = [block for blocks in BLOCKS.values() for block in blocks]
    skipped = [block.place for block in blocks if block.skipped]
    slow = [block.place for block in blocks if block.slow]
    assert len(skipped) <= MOST_SKIPPED, skipped
    assert len(slow) <= MOST_SLOW, slow


def anchors(path):
    """Names of the headings of a page, as links call them."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.*)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", [*PAGES, ROOT / "CHANGELOG.md"], ids=name_of)
def test_links_lead_somewhere(path):
    made = {ROOT / "docs/changelog.md", ROOT / "docs/reference/command-line.md"}  # when the site is built
    for target, anchor in re.findall(r"\]\(([^)#:]*)(#[^)]+)?\)", path.read_text(encoding="utf-8")):
        page = (path.parent / target).resolve() if target else path
        assert page.exists() or page in made, (path.name, target)
        if anchor and page.suffix == ".md" and page not in made:
            assert anchor[1:] in anchors(page), (path.name, target, anchor)


def test_every_page_has_its_place_on_the_site():
    shown = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for path in (ROOT / "docs").rglob("*.md"):
        assert f" {path.relative_to(ROOT / 'docs').as_posix()}\n" in shown, path


def test_the_reading_path_exists_and_takes_an_afternoon():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    section = page.partition("## The reading path of an afternoon")[2].partition("\n## ")[0]
    path = {name: int(lines) for name, lines in re.findall(r"^\| `(\S+\.py)` \| (\d+) \|", section, flags=re.M)}
    lines = {name: len((ROOT / "src/alexp" / name).read_text(encoding="utf-8").splitlines()) for name in path}
    assert len(path) > 10
    assert sum(lines.values()) <= 8800
    wrong = {name: lines[name] for name in path if abs(lines[name] - path[name]) > max(40, path[name] // 4)}
    assert wrong == {}, "lines as they are now; the page says otherwise"


@pytest.mark.parametrize("name", ["demo", "test", "install", "docs"])
def test_make_targets_exist(name):
    assert re.search(rf"^{name}:", (ROOT / "Makefile").read_text(), flags=re.M)
