"""Who may do what: tokens, and names of this host."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Iterable, Mapping
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from typing import Literal

from alexp.common.files import read_text

Right = Literal["write", "read"]
RIGHTS: tuple[Right, ...] = ("write", "read")
_SHORTEST, _LONGEST = 16, 512  # characters of a token


class Tokens:
    """Tokens and what they allow: "read" everything, or "write", too. Only their hashes are kept.

    >>> tokens = Tokens({"a-long-secret-for-robots": "write"})
    >>> tokens.allow("a-long-secret-for-robots").right, tokens.allow("another"), tokens
    ('write', None, Tokens(1 of them))
    """

    def __init__(self, rights: Mapping[str, Right]) -> None:
        if not rights:
            raise ValueError("there must be at least one token")
        for number, (token, right) in enumerate(rights.items(), start=1):
            _check_token(token, f"token {number}")
            if right not in RIGHTS:
                raise ValueError(f"token {number} must be for 'write' or 'read', got {right!r:.40}")
        self._known = [
            (_digest(token), Holder(f"token {k}", right)) for k, (token, right) in enumerate(rights.items(), 1)
        ]

    @classmethod
    def from_file(cls, path: Path) -> Tokens:
        """Lines `TOKEN` or `TOKEN read`; empty lines and those that begin with # do not count.

        No message repeats what the file holds.
        """
        rights: dict[str, Right] = {}
        for number, line in enumerate(read_text(path).splitlines(), start=1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) > 2 or (len(words) == 2 and words[1] not in RIGHTS):
                raise ValueError(f"{path}, line {number}: must be a token, and perhaps the word read after it")
            _check_token(words[0], f"{path}, line {number}: the token")
            if words[0] in rights:
                raise ValueError(f"{path}, line {number}: this token comes twice")
            rights[words[0]] = "read" if words[1:] == ["read"] else "write"
        if not rights:
            raise ValueError(f"{path} holds no token; a line with a long random text is one")
        return cls(rights)

    def allow(self, token: str) -> Holder | None:
        """Who has this token; takes the same time whichever it is, and whether there is one or not."""
        digest, found = _digest(token), None
        for known, holder in self._known:
            if hmac.compare_digest(known, digest):
                found = holder
        return found

    def __repr__(self) -> str:
        return f"Tokens({len(self._known)} of them)"


class Holder:
    """Somebody with a token, under a name that says nothing of it."""

    def __init__(self, name: str, right: Right) -> None:
        self.name, self.right = name, right


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogatepass")).digest()


def _check_token(token: str, what: str) -> None:
    if not _SHORTEST <= len(token) <= _LONGEST:
        raise ValueError(f"{what} must have {_SHORTEST} to {_LONGEST} characters, it has {len(token)}")
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise ValueError(f"{what} must consist of printable ASCII characters without spaces")


def token_in(authorization: str) -> str:
    """The token of an `Authorization` header: of a bearer, or in place of the password; empty if there is none.

    >>> token_in("Bearer abc"), token_in("Basic " + base64.b64encode(b"anybody:abc").decode()), token_in("Digest abc")
    ('abc', 'abc', '')
    """
    scheme, _, rest = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return rest.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        text = base64.b64decode(rest.strip(), validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return ""
    return text.partition(":")[2]


def is_loopback(host: str) -> bool:
    """Whether a name or address is this host's own, which nobody else can reach.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "[::1]", "0.0.0.0", "lab.example.org")]
    [True, True, True, True, False, False]
    """
    name = host.strip().rstrip(".").lower().removeprefix("[").removesuffix("]")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def host_of(authority: str) -> str:
    """A `Host` header without its port.

    >>> host_of("localhost:8000"), host_of("[::1]:8000"), host_of("example.org")
    ('localhost', '[::1]', 'example.org')
    """
    if authority.startswith("["):
        return authority.partition("]")[0] + "]"
    return authority.partition(":")[0]


def is_same_site(authority: str, origin: str, fetch_site: str, origins: Iterable[str]) -> bool:
    """Whether a page may write here: one of this service, or of an origin that was named.

    Browsers send `Origin` and `Sec-Fetch-Site` and let no page change them; programs send neither.
    """
    if origin:
        return origin in origins or origin.partition("://")[2].lower() == authority.lower()
    return fetch_site in ("", "none", "same-origin")
