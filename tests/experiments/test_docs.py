"""The code in docs/sweeps.md runs as pasted into a file."""

import os
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def run(script, folder):
    path = folder / "script.py"
    path.write_text(script)
    environment = os.environ | {"ALEXP_CACHE": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=300, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_snippets_on_sweeps_run_as_scripts(tmp_path):
    first, second = re.findall(r"```python\n(.*?)```", (DOCS / "sweeps.md").read_text(), flags=re.S)[:2]
    for whole, small in (('SCENARIOS["large"]', 'SCENARIOS["large"].with_(steps=4, resolution=40)'), ("(20)", "(2)")):
        assert whole in first
        first = first.replace(whole, small)
    assert re.search(r"\[[-\d. e]+\]", run(first, tmp_path))
    assert list((tmp_path / "cache").rglob("*.parquet"))
    run(second, tmp_path)
