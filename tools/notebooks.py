"""Notebooks of the tutorials, made from their Markdown pages and run: `python tools/notebooks.py [NAME ...]`.

A page of docs/tutorials is the only source. Its text becomes cells of Markdown, a block of Python a cell of code, a
block that is a file a cell `%%writefile`, a block of shell a cell `%%bash`. What a block prints according to the page
is left out, and so are figures that a cell draws: running the notebook makes them. tests/test_notebooks.py compares.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "tutorials"
PAGES = sorted(FOLDER.glob("*.md"))
_BLOCK = re.compile(r"^```(?P<language>\w*)(?P<rest>[^\n]*)\n(?P<code>.*?)^```$", flags=re.M | re.S)
# Remarks for tests, figures that a cell draws, and the link to the notebook itself.
_LEFT_OUT = re.compile(
    r"<!--.*?-->|^!\[[^]]*\]\(\.\./figures/tutorial-[^)]*\)$|^\*As a notebook[^\n]*$", flags=re.M | re.S
)


def cells(page: Path) -> list[tuple[str, str]]:
    """(kind, source) of every cell, kind "markdown" or "code"."""
    found: list[tuple[str, str]] = []
    text, at = page.read_text(encoding="utf-8"), 0
    for block in _BLOCK.finditer(text):
        code, language = block["code"].rstrip("\n"), block["language"]
        file = re.match(r"# (\w+\.py)\n", code)
        if language == "text" and "title=" in block["rest"]:
            source = ""
        elif language == "python":
            source = f"%%writefile {file[1]}\n{code}" if file else code
        elif language == "sh":
            source = f"%%bash\n{code}"
        else:
            continue  # stays part of the text
        found.append(("markdown", text[at : block.start()]))
        found.append(("code", source))
        at = block.end()
    found.append(("markdown", text[at:]))
    return [(kind, clean) for kind, source in found if (clean := _clean(source) if kind == "markdown" else source)]


def _clean(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", _LEFT_OUT.sub("", text)).strip()


def notebook(page: Path) -> Any:
    """The notebook of a page, not yet run."""
    from nbformat import v4

    made = v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    )
    for number, (kind, source) in enumerate(cells(page)):
        new = v4.new_markdown_cell if kind == "markdown" else v4.new_code_cell
        made.cells.append(new(source, id=f"cell-{number}"))
    return made


def run(page: Path, seconds: int = 600) -> Any:
    """The notebook with outputs, run by Jupyter in an empty folder; an error of a cell is raised."""
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as folder:
        own = {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
        environment = {name: value for name, value in os.environ.items() if name not in ("MPLBACKEND", "ALEXP_STORAGE")}
        made = NotebookClient(notebook(page), timeout=seconds, resources={"metadata": {"path": folder}}).execute(
            env=environment | own | {"ALEXP_CACHE": str(Path(folder) / "cache")}
        )
    for cell in made.cells:
        cell.metadata = {}  # times of execution
        cell.get("outputs", [])[:] = [one for one in cell.get("outputs", []) if one.get("name") != "stderr"]
    made.metadata.pop("language_info", None)
    return made


def main() -> None:
    """Make the named notebooks, or all."""
    from nbformat import write

    for page in [FOLDER / f"{name}.md" for name in sys.argv[1:]] or PAGES:
        write(run(page), page.with_suffix(".ipynb"))
        print(page.with_suffix(".ipynb").relative_to(ROOT))


if __name__ == "__main__":
    main()
