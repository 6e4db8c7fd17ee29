"""Notebooks of the tutorials: their cells are those of the pages, they show what the pages promise, and they run."""

import json
import os

import pytest
from tools.notebooks import PAGES, cells, run

from tests.docs_blocks import alike, blocks_of

FULL = os.environ.get("ALEXP_FULL") == "1"
MAKE = "make it anew: python tools/notebooks.py {}"


def stored(page):
    return json.loads(page.with_suffix(".ipynb").read_text(encoding="utf-8"))["cells"]


def printed(cell):
    return "".join("".join(out["text"]) for out in cell["outputs"] if out.get("name") == "stdout")


def code_of(notebook):
    return [cell for cell in notebook if cell["cell_type"] == "code"]


def promises(page):
    """What each code cell must print, in order; None where the page does not say."""
    blocks = [block for block in blocks_of(page) if block.language in ("python", "sh")]
    return [block.prints for block in blocks]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_notebook_has_the_cells_of_its_page(page):
    found = [(cell["cell_type"], "".join(cell["source"])) for cell in stored(page)]
    assert found == cells(page), MAKE.format(page.stem)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_outputs_are_what_the_page_promises(page):
    for cell, promise in zip(code_of(stored(page)), promises(page), strict=True):
        assert not any(out["output_type"] == "error" for out in cell["outputs"])
        assert promise is None or alike(promise, printed(cell)), MAKE.format(page.stem)
        if "savefig" in "".join(cell["source"]):
            assert any("image/png" in out.get("data", {}) for out in cell["outputs"]), "the figure is not shown"


@pytest.mark.skipif(not FULL, reason="runs every notebook by Jupyter; `make docs` does it")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_notebook_runs(page):
    pytest.importorskip("nbclient")
    made = run(page)
    for cell, promise in zip(code_of(made["cells"]), promises(page), strict=True):
        assert promise is None or alike(promise, printed(cell)), page.stem
