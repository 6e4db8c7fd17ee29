"""Documentation, docstrings and messages use the field's words: private ones are listed here and do not come back."""

import ast
import re

import pytest

from tests.docs_blocks import ROOT

# What not to write, and what to write instead.
PRIVATE = {
    r"told agents?|agents? told": "informed agent, an agent that is given the true model",
    r"deeds?": "action, call",
    r"nobody|nobody's": "name the subject: no process, no user",
    r"who(m)?ever": "name the subject: any worker",
    r"shelf|shelves": "cache",
    r"lock-in|locked-in|locks? (itself|themselves) in": "stuck, gets stuck",
    r"hot loops?": "name what is computed",
}
# On pages and in the dashboard further ones: their readers do not know the code.
SHOWN = PRIVATE | {
    r"rewards? told|told (rewards?|late)": "rewards, rewards so far, stored",
    r"as stated|nothing (is |was )?stated": "as given, given nothing",
    r"masters?|meta-learners?": "algorithms that combine agents",
}


def any_of(words):
    return re.compile(r"\b(" + "|".join(f"(?:{word})" for word in words) + r")\b", flags=re.I)


WORDS, SHOWN_WORDS = any_of(PRIVATE), any_of(SHOWN)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES += sorted((ROOT / "src/alexp/service/dashboard/static").glob("*.js"))
SOURCES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "experiments").rglob("*.py")])


def texts_of(path):
    """(line, text) of every page, and of every docstring, message and comment of a module."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".md", ".js"):
        yield from enumerate(text.splitlines(), 1)
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from enumerate(node.value.splitlines(), node.lineno)
    for number, line in enumerate(text.splitlines(), 1):
        if "#" in line:
            yield number, line.partition("#")[2]


@pytest.mark.parametrize("kind", ["pages", "sources"])
def test_private_words_do_not_come_back(kind):
    paths, words = (PAGES, SHOWN_WORDS) if kind == "pages" else (SOURCES, WORDS)
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]!r} in {line.strip()!r}"
        for path in paths
        if path.name != "glossary.md"
        for number, line in texts_of(path)
        for match in words.finditer(line)
    ]
    assert found == [], f"write instead: {SHOWN}"


def test_the_search_finds_them():
    for sample in ("the best told agent", "the hot loop", "it locks itself in", "Whoever asks", "one deed"):
        assert WORDS.search(sample), sample
    for sample in ("12 rewards told", "all as stated", "black-box masters"):
        assert SHOWN_WORDS.search(sample), sample
    assert not WORDS.search("the stated range, indeed")
