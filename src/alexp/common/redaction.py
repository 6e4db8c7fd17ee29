"""Text that may be shown: without passwords, and without what would command a terminal."""

from __future__ import annotations

import re

_SCHEME = r"(?:[A-Za-z][\w+.\-]{3,}\s?:?\s?/{1,3}|(?:postgres|psql|sqlite|mysql)[\w+]*\s?[:;/]+|//)\s?"
_CREDENTIALS = re.compile(rf"(?P<before>{_SCHEME}[^\s'\":@/]*:)[^\s'\"]*(?=@)", re.IGNORECASE)
_KEYWORDS = re.compile(r"(?P<before>(?:\w*pass(?:word|wd|phrase|file)|pwd)\s*=\s*)[^\s&;,'\"]+", re.IGNORECASE)


def printable(text: str) -> str:
    """Text without what would command a terminal, line breaks aside."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def redact(text: str) -> str:
    """A text that somebody typed, without what looks like a password in it.

    >>> redact("no study 'postgresql://me:secret@host/db'"), redact("Host=h Password=secret")
    ("no study 'postgresql://me:***@host/db'", 'Host=h Password=***')
    """
    return _KEYWORDS.sub(r"\g<before>***", _CREDENTIALS.sub(r"\g<before>***", text))
