"""Text that may be shown: without passwords, and without what would command a terminal."""

from __future__ import annotations

import re

# Bounded everywhere: a text of a million letters must not take long.
_SCHEME = r"(?:\b[A-Za-z][\w+.\-]{3,30}\s?:?\s?/{1,3}|\b(?:postgres|psql|sqlite|mysql)[\w+]{0,20}\s?[:;/]{1,3}|//)\s?"
_CREDENTIALS = re.compile(rf"(?P<before>{_SCHEME}[^\s'\":@/]{{0,100}}:)[^\s'\"]{{0,500}}(?=@)", re.IGNORECASE)
_KEYWORDS = re.compile(
    r"(?P<before>\w{0,20}pass(?:word|wd|phrase|file)\s?=\s?|\bpwd\s?=\s?)[^\s&;,'\"]+", re.IGNORECASE
)


def printable(text: str) -> str:
    """Text without what would command a terminal, line breaks aside."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def redact(text: str) -> str:
    """A text that a user typed, without what looks like a password in it.

    >>> redact("no study 'postgresql://me:secret@host/db'"), redact("Host=h Password=secret")
    ("no study 'postgresql://me:***@host/db'", 'Host=h Password=***')
    """
    text = _CREDENTIALS.sub(r"\g<before>***", text) if "@" in text else text
    return _KEYWORDS.sub(r"\g<before>***", text) if "=" in text else text
