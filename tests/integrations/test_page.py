"""The page on integrations runs as written; parts that need another library, where that is installed."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "integrations.md").read_text()


def test_the_page_runs_as_written(capsys):
    scope, blocks = {}, re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)
    for block in blocks:
        exec(block, scope)
    shown = re.findall(r"print\(.*\)\s+# (.*)", "".join(blocks))
    assert capsys.readouterr().out.splitlines() == shown


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("library", "block"), re.findall(r"```python title=\"needs (\w+)\"\n(.*?)```", PAGE, flags=re.S)
)
def test_parts_for_other_libraries_run_as_written(library, block, capsys):
    pytest.importorskip(library)
    exec(block, {})
    assert re.match(r"8 measurements; models: .*\n.* within .* of the best candidate", capsys.readouterr().out)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("library", "block"), re.findall(r"```python title=\"runs with (\w+)\"\n(.*?)```", PAGE, flags=re.S)
)
def test_parts_in_which_the_mixture_chooses(library, block, capsys):
    pytest.importorskip(library)
    pytest.importorskip({"baybe": "skfp"}.get(library, library))  # BayBE's extra `chem`
    exec(block, {})
    shown = re.findall(r"print\(.*\)\s+# (.*)", block)
    assert capsys.readouterr().out.splitlines() == shown
