"""Figures that pages draw with their own blocks, into docs/figures: `python -m tests.docs_figures [--out FOLDER]`.

What is printed is what the blocks of these pages print: figures and text come from the same runs.
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.docs_blocks import ROOT, Reader, blocks_of

PAGES = (
    "index.md",
    "tutorials/algorithm.md",
    "tutorials/paper.md",
    "tutorials/plates.md",
    "tutorials/routing.md",
    "tutorials/web.md",
)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "figures")
    out = parser.parse_args().out.resolve()
    os.environ.setdefault("MPLBACKEND", "Agg")
    for page in PAGES:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            sys.path.insert(0, folder)  # files that blocks have written
            blocks = blocks_of(ROOT / "docs" / page)
            read = Reader(full=False, postgres=None).read([block for block in blocks if block.language == "python"])
            print(f"docs/{page}\n{read.printed}")
            for drawn in Path(folder).glob("*.png"):
                shutil.copy(drawn, out / drawn.name)
            os.chdir(ROOT)


if __name__ == "__main__":
    main()
