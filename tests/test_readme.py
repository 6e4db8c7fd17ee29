"""The code in the README and in the docs runs as written."""

import re
from pathlib import Path

import numpy as np
import pytest

import alexp

ROOT = Path(__file__).parent.parent
rng = np.random.default_rng(0)


def namespace():
    return {
        "alexp": alexp,
        "measure": lambda x: float(np.cos(3 * x)),
        "assay": lambda x: float(len(x)),
        "candidates": [f"compound-{i}" for i in range(30)],
        "F1": rng.standard_normal((30, 8)),
        "F2": rng.standard_normal((30, 3)),
        "F3": rng.standard_normal((30, 5)),
    }


def blocks(path):
    return re.findall(r"```python\n(.*?)```", (ROOT / path).read_text(), flags=re.S)


def test_readme_tour_runs_as_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = namespace()
    for block in blocks("README.md"):
        exec(block, scope)
    assert scope["run"].regret.shape == (100,)
    assert (tmp_path / "report.html").stat().st_size > 100_000


def test_architecture_example_runs_as_written():
    scope = namespace()
    for block in blocks("docs/architecture.md"):
        exec(block, scope)
    models, domain = alexp.ModelClass.legendre(3, 2), alexp.Interval(resolution=20)
    opt = alexp.ALExp(models, domain, agents=scope["SoftMax"](), random_state=0)
    opt.tell(opt.ask(), 1.0)
    assert opt.ask().propensity > 0


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
