"""The code in the README and in the docs runs as written."""

import re
import runpy
from pathlib import Path

import pytest

import alexp

ROOT = Path(__file__).parent.parent


def blocks(path):
    return re.findall(r"```python\n(.*?)```", (ROOT / path).read_text(), flags=re.S)


BLOCKS = blocks("README.md")


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_every_block_of_the_readme_runs_as_pasted(number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "pasted.py"
    script.write_text(BLOCKS[number])
    runpy.run_path(str(script))
    if "report.html" in BLOCKS[number]:
        assert (tmp_path / "report.html").stat().st_size > 100_000


def test_the_readme_tells_the_practitioner_first():
    text = "".join(BLOCKS)
    assert text.index("alexp.EvidenceMixture(") < text.index("alexp.ALExp(")


def test_architecture_example_runs_as_written():
    scope = {"alexp": alexp}
    for block in blocks("docs/architecture.md"):
        exec(block, scope)
    models, domain = alexp.ModelClass.legendre(3, 2), alexp.Interval(resolution=20)
    opt = alexp.ALExp(models, domain, agents=scope["SoftMax"](), random_state=0)
    opt.tell(opt.ask(), 1.0)
    assert opt.ask().propensity > 0


def test_the_page_on_kernels_runs_as_written(capsys):
    scope = {}
    for block in blocks("docs/kernels.md"):
        exec(block, scope)
    shown = re.findall(r"print\(.*\)\s+# (.*)", "".join(blocks("docs/kernels.md")))
    assert capsys.readouterr().out.splitlines() == shown


def test_the_page_on_contexts_runs_as_written(capsys):
    scope = {}
    for block in blocks("docs/contextual.md"):
        exec(block, scope)
    shown = re.findall(r"print\(.*\)\s+# (.*)", "".join(blocks("docs/contextual.md")))
    assert capsys.readouterr().out.splitlines() == shown


def test_readme_shows_the_recorded_headline_table():
    shown = (ROOT / "README.md").read_text().split("<!-- headline -->")[1].split("<!-- /headline -->")[0].strip()
    recorded = (ROOT / "docs/headline.md").read_text()
    assert shown
    assert shown in recorded


def test_links_lead_somewhere():
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text()):
            assert (path.parent / target).exists(), (path.name, target)


@pytest.mark.parametrize("name", ["demo", "test", "install"])
def test_make_targets_exist(name):
    assert re.search(rf"^{name}:", (ROOT / "Makefile").read_text(), flags=re.M)
