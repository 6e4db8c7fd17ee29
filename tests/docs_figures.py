"""Figures that pages draw with their own blocks, into docs/figures: `python -m tests.docs_figures`."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.docs_blocks import ROOT, Reader, blocks_of

PAGES = ("index.md", "tutorials/algorithm.md", "tutorials/plates.md", "tutorials/routing.md")


def main():
    os.environ.setdefault("MPLBACKEND", "Agg")
    for page in PAGES:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            sys.path.insert(0, folder)  # files that blocks have written
            blocks = blocks_of(ROOT / "docs" / page)
            Reader(full=False, postgres=None).read([block for block in blocks if block.language == "python"])
            for drawn in Path(folder).glob("*.png"):
                shutil.copy(drawn, ROOT / "docs" / "figures" / drawn.name)
                print(f"docs/figures/{drawn.name}, by docs/{page}")
            os.chdir(ROOT)


if __name__ == "__main__":
    main()
