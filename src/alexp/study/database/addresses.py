"""Where studies are stored: reading a URL, refusing what only looks like one, and never showing a password."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote, quote_plus

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url

DEFAULT = "sqlite:///alexp.db"
_RIGHT = f"storage must look like {DEFAULT!r}, 'postgresql://user@host/database' or the path of a file"
_DRIVERS = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
# Of the query of a URL only these may be seen; whatever else it holds may be a secret, or a misspelt one.
_SHOWN = {"host", "hostaddr", "port", "dbname", "sslmode", "connect_timeout", "application_name"}
_HOST = re.compile(r"[\w.\-]*|[\da-fA-F:.%]+")
_WORD = r"[A-Za-z][A-Za-z0-9+._-]+"  # two letters at least: one is a drive
_MISTYPED = re.compile(
    rf"\s*['\"]?(?:{_WORD}\s*:\s*[/\\]"  # postgresql:/...
    r"|(?:postgres\w*|psql|pg|sqlite\d?|mysql|mariadb|oracle|mssql|jdbc|https?)(?:\+\w+)?\s*(?:[:;]|[/\\]{2})"
    r"|[/\\]{2}[^/\\]*@"  # //user@...
    r"|.*:.*@"  # user:password@...
    r"|.*\b(?:password|passwd|pwd|dbname|hostaddr)\s*=)",
    re.IGNORECASE | re.DOTALL,
)


def parse_url(url: str | URL | Path) -> URL:
    """Read a storage URL; plain paths mean SQLite files. No message repeats what was given: it may hold a password.

    >>> parse_url("lab.db").render_as_string(), parse_url("postgresql://me@host/db").drivername
    ('sqlite:///lab.db', 'postgresql+psycopg')
    >>> parse_url("postgresql://host/db?user=me&password=secret").render_as_string()
    'postgresql+psycopg://me:***@host/db'
    """
    if not isinstance(url, str | URL | Path):
        raise TypeError(f"{_RIGHT}, got {type(url).__name__}")
    if isinstance(url, Path) or (isinstance(url, str) and "://" not in url):
        return _file(str(url))
    try:
        parsed = make_url(url.strip() if isinstance(url, str) else url)
    except (sa.exc.ArgumentError, ValueError):  # the latter for a port that is no number
        raise ValueError(f"{_RIGHT}; what was given cannot be read as a URL") from None
    driver = _DRIVERS.get(parsed.drivername.lower())
    if driver is None:
        raise ValueError("storage must be SQLite or PostgreSQL: its URL begins with 'sqlite://' or 'postgresql://'")
    parsed = parsed.set(drivername=driver)
    return _checked_file(parsed) if driver == "sqlite" else _checked_server(parsed)


def _file(path: str) -> URL:
    if not path.strip() or "\0" in path:
        raise ValueError(f"{_RIGHT}, got {'an empty text' if not path.strip() else 'a text with a null character'}")
    if _MISTYPED.match(path):
        raise ValueError(
            f"{_RIGHT}; what was given looks like a mistyped URL (is it '://' after the kind of database?). "
            "A file of such a name can be given as 'sqlite:///./NAME'"
        )
    return URL.create("sqlite", database=path)


def _checked_file(url: URL) -> URL:
    if url.username or url.password or url.host or url.port:
        raise ValueError("a SQLite URL has no user, password or host: three slashes, as in 'sqlite:///alexp.db'")
    if url.database in (None, "", ":memory:"):
        raise ValueError("a study in memory would not be durable; give a file, for instance 'sqlite:///alexp.db'")
    assert url.database is not None
    if re.match(rf"{_WORD}:[/\\]", url.database):
        raise ValueError(f"{_RIGHT}; this is one URL inside another")
    return url.set(query={})


def _checked_server(url: URL) -> URL:
    """Move user and password into their places; refuse what would put a part of a password elsewhere."""
    query = {key: value for key, value in url.query.items() if key not in ("user", "password")}
    user, password = (_last(url.query.get(key)) for key in ("user", "password"))
    url = url.set(username=user or url.username, password=password or url.password, query=query)
    shown = [url.database or "", *(_last(value) or "" for key, value in query.items() if key.lower() in _SHOWN)]
    if not _HOST.fullmatch(url.host or "") or any("@" in value for value in shown):
        raise ValueError(
            "the storage's host or database has characters that none has; in a password, write '@' as %40, "
            "'/' as %2F, ':' as %3A and '?' as %3F"
        )
    return url


def _last(value: str | tuple[str, ...] | None) -> str | None:
    return value[-1] if isinstance(value, tuple) else value


def without_secrets(url: URL) -> tuple[URL, dict[str, str]]:
    """The URL without those parts of its query that may be secret, and these parts, for the driver alone."""
    hidden = {key: _last(value) or "" for key, value in url.query.items() if key.lower() not in _SHOWN}
    return url.difference_update_query(hidden), hidden


def scrub(text: str, url: URL, hidden: dict[str, str]) -> str:
    """A message of the driver without the secrets that it may repeat."""
    secrets = {str(url.password)} if url.password else set()
    secrets |= {value for value in hidden.values() if value}
    for secret in sorted(secrets, key=len, reverse=True):
        for written in (secret, quote(secret, safe=""), quote_plus(secret)):
            text = text.replace(written, "***")
    return text
