"""Look at the built site: `python tools/site/check.py site`.

Every link and every anchor must lead somewhere, nothing may be loaded from elsewhere, there is no tag that is none
(what was meant as `<x, z>`), every picture says what it shows, and every public name has its place in the reference.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

MODULES = (
    "",
    ".study",
    ".kernels",
    ".rules",
    ".decision",
    ".ope",
    ".theory",
    ".testing",
    ".datasets",
    ".client",
    ".service",
    ".integrations",
)
# Public, and explained under another name.
ELSEWHERE = {
    *("alexp.decision", "alexp.extend", "alexp.kernels", "alexp.ope", "alexp.rivals", "alexp.rules"),
    *("alexp.theory", "alexp.datasets", "alexp.plot"),
    *("alexp.create_study", "alexp.load_study", "alexp.client.Client"),
}
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src"}
TAGS = frozenset(
    re.findall(
        r"\w+",
        """
        a abbr article aside b blockquote body br button caption circle code col colgroup dd del
        details dialog div dl dt em fieldset figcaption figure footer form g h1 h2 h3 h4 h5 h6 head
        header hr html i iframe img input ins kbd label legend li line link main mark meta nav
        noscript ol p path picture polygon pre rect s script section small source span strong style
        sub summary sup svg table tbody td tfoot th thead time title tr tt u ul var video
        """,
    )
)


@dataclass
class Page(HTMLParser):
    """Names, links and faults of one page."""

    path: Path
    names: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag names, links to and loads."""
        given = {name: value or "" for name, value in attrs}
        self.names |= {given[name] for name in ("id", "name") if name in given}
        if tag not in TAGS:
            self.faults.append(f"<{tag}> is no tag of HTML")
        if tag == "img" and not given.get("alt"):
            self.faults.append(f"the picture {given.get('src')} has no text")
        loads = LOADED.get(tag) or ("href" if tag == "link" and given.get("rel") != "canonical" else None)
        target = given.get(loads or "href")
        if target is None or tag not in {"a", "link", *LOADED}:
            return
        if urlsplit(target).scheme in ("http", "https") or target.startswith("//"):
            if loads:
                self.faults.append(f"{target} is loaded from elsewhere")
        elif not target.startswith(("data:", "javascript:", "mailto:")):
            self.links.append(target)


def faults(site: Path) -> list[str]:
    """Everything that is wrong, page by page."""
    # Only a server shows 404.html, at any address; its links start at the root.
    pages = {path: Page(path) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}
    out = [f"{path.relative_to(site)}: {fault}" for path, page in pages.items() for fault in page.faults]
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                out.append(f"{path.relative_to(site)}: {link} is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names:
                out.append(f"{path.relative_to(site)}: {link} has no such place")
    return out + [f"reference: {name} is missing" for name in missing(site, pages)]


def missing(site: Path, pages: dict[Path, Page]) -> list[str]:
    """Public names that no page of the reference explains."""
    explained = {name for path, page in pages.items() if path.parent == site / "reference" for name in page.names}
    modules = {f"alexp{name}": import_module(f"alexp{name}") for name in MODULES}
    names = {place: getattr(module, "__all__", dir(module)) for place, module in modules.items()}
    public = [f"{place}.{name}" for place, own in names.items() for name in own if not name.startswith("_")]
    return [name for name in public if name not in explained | ELSEWHERE]


def main() -> int:
    """Print faults; the exit status says whether there are any."""
    site = Path(sys.argv[1] if len(sys.argv) > 1 else "site").resolve()
    found = faults(site)
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{len(list(site.rglob('*.html')))} pages, {len(found)} faults")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
