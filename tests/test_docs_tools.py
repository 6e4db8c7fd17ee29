"""What runs and checks the documentation notices what is wrong with it."""

import sys
import time

import pytest

from tests.docs_blocks import ROOT, Block, Reader, alike, bash, blocks_of

sys.path.insert(0, str(ROOT / "tools" / "site"))


@pytest.mark.parametrize(
    ("promised", "printed", "same"),
    [
        ("a 1.50\n", "a 1.51\n", True),
        ("a 1.50\n", "a 1.70\n", False),
        ("a 3\n", "a 4\n", False),
        ("a ... z", "a 1\n2\n3 z\n", True),
        ("a ... z", "b 1 z\n", False),
        ("-0.25", "0.25", False),
        ("x", "x\ny", False),
    ],
)
def test_what_a_block_prints(promised, printed, same):
    assert alike(promised, printed) is same


def page(tmp_path, monkeypatch, text):
    monkeypatch.setattr("tests.docs_blocks.ROOT", tmp_path)
    (tmp_path / "page.md").write_text(text)
    return blocks_of(tmp_path / "page.md")


def test_blocks_and_their_remarks(tmp_path, monkeypatch):
    text = (
        "# T\n```python\nx = 1\n```\n```text title='prints'\n2\n```\n## A\n<!-- postgres -->\n### B\n```sh\ny\n```\n"
        "## C\n<!-- slow: long -->\n```sh\nz\n```\n<!-- not run: why -->\n```python\n# a.py\n```\n"
    )
    first, second, third, fourth = page(tmp_path, monkeypatch, text)
    assert (first.code, first.prints, first.line) == ("x = 1\n", "2\n", 3)
    assert (second.postgres, third.postgres) == (True, False)
    assert third.slow == "long"
    assert fourth.skipped == "why"
    assert not fourth.runs
    assert fourth.file == "a.py"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```python\nx\n", "never closed"),
        ("- a\n\n  ```python\n  x\n  ```\n", "indented"),
        ("<!-- not run: why -->\nwords\n", "belongs to no block"),
    ],
)
def test_pages_that_cannot_be_read(tmp_path, monkeypatch, text, message):
    with pytest.raises(AssertionError, match=message):
        page(tmp_path, monkeypatch, text)


@pytest.mark.parametrize(
    ("block", "error"),
    [
        (Block("p", 1, "python", "1 / 0\n"), ZeroDivisionError),
        (Block("p", 1, "python", "print(1)\n", prints="2\n"), AssertionError),
        (Block("p", 1, "sh", "false\n"), AssertionError),
        (Block("p", 1, "sh", "alexp study ask nothing-of-this-name\n"), AssertionError),
        (Block("p", 1, "toml", "a = = 1\n"), ValueError),
        (Block("p", 1, "cobol", "ADD 1 TO X.\n"), AssertionError),
    ],
)
def test_a_reader_notices(block, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error):
        Reader(False, None).read([block])


@pytest.mark.parametrize(
    ("code", "kept"),
    [
        ("print(1 + 1)  # 2\n", True),
        ("print(1 + 1)  # 3\n", False),
        ("print(0.5, 'a # b')  # 0.49 a # b\n", True),
        ("print(\n    [1, 2]\n)  # [1, 2]\n", True),
        ("print('long', 'text')  # long ...\n", True),
        ("for x in (1, 2):\n    print(x)  # 1\n", False),
        ("if False:\n    print(1)  # 1\n", False),
        ("# said\nprint(1)\nx = 1  # one\n", True),
        ("def f():\n    print(1)  # 2\n", False),
        ("def f():\n    print(3)  # 3\nf()\n", True),
        ("# file.py\nprint(1)  # 1\n", False),
    ],
)
def test_a_comment_beside_a_print_is_what_it_prints(code, kept, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = [Block("p", 7, "python", "x = 0\n"), Block("p", 12, "python", code)]
    if kept:
        Reader(False, None).read(blocks)
    else:
        with pytest.raises(AssertionError, match=r"never printed|and not|what a file prints"):
            Reader(False, None).read(blocks)


def test_a_reader_leaves_slow_blocks_to_make_docs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    slow = Block("p", 1, "python", "done = True\n", slow="long")
    assert "done" not in Reader(False, None).read([slow]).namespace
    assert "done" in Reader(True, None).read([slow]).namespace


def test_what_a_script_leaves_behind_is_not_waited_for(tmp_path):
    started = time.monotonic()
    assert bash("sleep 60 &\necho $!", "here").strip().isdigit()
    assert time.monotonic() - started < 30


def test_the_built_site_is_looked_at(tmp_path, monkeypatch):
    import check

    monkeypatch.setattr(check, "MODULES", ())
    (tmp_path / "b.html").write_text('<h1 id="here">b</h1>')
    good = '<a href="b.html#here">b</a><img src="b.html" alt="b"><a href="https://example.org">elsewhere</a>'
    (tmp_path / "a.html").write_text(good)
    assert check.faults(tmp_path) == []
    bad = {
        '<a href="c.html">c</a>': "not there",
        '<a href="b.html#gone">b</a>': "no such place",
        '<a href="#gone">a</a>': "no such place",
        '<img src="b.html">': "no text",
        '<script src="https://example.org/x.js"></script>': "from elsewhere",
        '<link rel="stylesheet" href="//example.org/x.css">': "from elsewhere",
        "<x, z>": "no tag",
    }
    for html, message in bad.items():
        (tmp_path / "a.html").write_text(html)
        (fault,) = check.faults(tmp_path)
        assert message in fault, html


def test_a_name_without_an_explanation_is_missing(tmp_path):
    import check

    found = check.missing(tmp_path, {})
    assert "alexp.EvidenceMixture" in found
    assert "alexp.study.Study" in found
    assert "alexp.theory" not in found


def test_docstrings_become_markdown():
    pytest.importorskip("griffe")
    from docstrings import markdown

    text = 'What <x, z> is.\n\nParameters\n----------\na, b : first\n    second\nc\n    third\n\n>>> f("<")\n1\n\nEnd.'
    assert [line for line in markdown(text).splitlines() if line] == [
        *("What &lt;x, z> is.", "**Parameters**", "- `a`, `b`: first", "    second", "- `c`:", "    third"),
        *("```pycon", '>>> f("<")', "1", "```", "End."),
    ]


def test_pages_that_are_made_from_something_else():
    pytest.importorskip("mkdocs")
    import hooks

    commands = hooks.command_line()
    assert commands.startswith("# Command line\n")
    assert "`alexp study take-over`" in commands
    assert "..." not in commands.split("**Commands**")[1].split("##")[0]  # whole sentences
    assert "](studies.md" not in commands
    assert "](docs/" not in hooks.changelog()
