"""Which numbers and figures of the documentation are stale, and how they are made anew.

`docs/pages.toml` lists what commands make: files, or a part of a page between `<!-- NAME: begin -->` and
`<!-- NAME: end -->`, which is what the command prints. Making something leaves a stamp, `docs/stamps/NAME.txt`: the
command, its seeds, the version of the library, the defaults of the classes it uses, and the output of a *sample*, a
small run of the same command. A page is stale when its sample comes out differently, when it is not what its command
wrote, or when the command itself has changed. So a change of a default or of an algorithm turns the pages stale that
depend on it, and a change that leaves all runs as they are turns none.

    python tools/pages.py check [NAME ...]   list what is stale; `make pages-check`
    python tools/pages.py make [NAME ...]    make what is stale, or what is named; `make pages`
    python tools/pages.py stamp NAME ...     write stamps after a command was run by hand, in parts or elsewhere
    python tools/pages.py list               all entries with their commands

Times, memory and screenshots have no sample: entries with `per_version = true` are stale when the version changes.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import inspect
import io
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST, STAMPS = ROOT / "docs" / "pages.toml", ROOT / "docs" / "stamps"
TIMES = {"ms", "seconds", "ms per step"}  # columns that differ from run to run
TOLERANCE = 1e-3  # relative; samples are deterministic, other processors round differently
_NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")
_STAMP = re.compile(r"\n*<!-- made by .* -->\n*\Z")


@dataclass(frozen=True)
class Entry:
    """Something that one command makes.

    Attributes
    ----------
    makes : files below the root, or `page.md#NAME` for the part of a page between the marks of NAME.
    seeds : the seeds behind the numbers, in words.
    uses : public classes whose defaults are recorded.
    sample : a quick form of the command; `{out}` stands for an empty folder. Its output is the tables *.csv that it
        writes there, without times, or what it prints.
    per_version : whether it has no sample and is made anew for every version.
    needs : a folder or an extra that the command needs, in words.
    """

    name: str
    command: str
    makes: tuple[str, ...]
    seeds: str = ""
    uses: tuple[str, ...] = ()
    sample: str = ""
    per_version: bool = False
    needs: str = ""

    @property
    def stamp(self) -> Path:
        """Where its stamp is kept."""
        return STAMPS / f"{self.name}.txt"

    @property
    def pages(self) -> list[str]:
        """Markdown files that it makes, whole or in part."""
        return [path for path in self.makes if path.partition("#")[0].endswith(".md")]


def entries() -> dict[str, Entry]:
    """All entries by name."""
    listed = tomllib.loads(LIST.read_text(encoding="utf-8"))
    return {
        name: Entry(name, **{key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()})
        for name, entry in listed.items()
    }


# -- stamps ------------------------------------------------------------------------------------------------------


def head(entry: Entry) -> dict[str, str]:
    """What a stamp says above the sample."""
    lines = {"command": entry.command, "seeds": entry.seeds, "version": version("alexp"), "sample": entry.sample}
    lines |= {f"defaults of {name}": defaults(name) for name in entry.uses}
    return lines | {f"content of {part}": content(part) for part in entry.makes}


def defaults(name: str) -> str:
    """Default arguments of a public class."""
    import alexp

    parameters = inspect.signature(getattr(alexp, name)).parameters.values()
    return ", ".join(f"{one.name}={one.default!r}" for one in parameters if one.default is not one.empty)


def content(part: str) -> str:
    """Short hash of a file, or of what stands between two marks; "missing" if there is none."""
    path, _, mark = part.partition("#")
    if not (ROOT / path).exists():
        return "missing"
    if not path.endswith(".md"):
        return hashlib.sha256((ROOT / path).read_bytes()).hexdigest()[:12]
    text = _STAMP.sub("\n", (ROOT / path).read_text(encoding="utf-8"))
    if mark:
        begin, end = marks(mark)
        found = re.search(f"{begin}\n(.*){end}", text, flags=re.S)
        if found is None:
            return "missing"
        text = found[1]
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def marks(name: str) -> tuple[str, str]:
    """Patterns of the marks around a part of a page; the first one carries the stamp."""
    return f"<!-- {re.escape(name)}: begin[^\n]*-->", f"<!-- {re.escape(name)}: end -->"


def sample(entry: Entry) -> str:
    """Output of the sample: numbers that the present code gives."""
    if not entry.sample:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        printed = run(entry.sample.replace("{out}", shlex.quote(folder)), cache=folder)
        tables = sorted(Path(folder).rglob("*.csv"))
        return "\n".join(line for path in tables for line in without_times(path)) if tables else printed.rstrip()


def without_times(path: Path) -> Iterator[str]:
    """Lines of a table, without the columns that are times."""
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))
    keep = [k for k, name in enumerate(rows[0]) if name not in TIMES]
    yield from (",".join(row[k] for k in keep) for row in rows)


def run(command: str, cache: str = "") -> str:
    """What a command prints; it must succeed."""
    bin_folder = Path(sys.executable).parent
    own = {"PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}", "MPLBACKEND": "Agg", "COLUMNS": "200"}
    own |= {"OPENBLAS_NUM_THREADS": "1"} | ({"ALEXP_CACHE": cache} if cache else {})
    done = subprocess.run(["bash", "-ec", command], cwd=ROOT, env=os.environ | own, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        print(done.stdout, file=sys.stderr)  # a soak that finds a violation says here which
        raise SystemExit(f"`{command}` failed with status {done.returncode}")
    return done.stdout


def write_stamp(entry: Entry) -> None:
    """Record what the page was made from, and put a line about it into every page that it makes."""
    STAMPS.mkdir(exist_ok=True)
    words = f"made by `{entry.command}`" + (f", seeds {entry.seeds}" if entry.seeds else "")
    words += f", alexp {version('alexp')}"
    for part in entry.pages:
        path, _, mark = part.partition("#")
        text = (ROOT / path).read_text(encoding="utf-8")
        if mark:
            text = re.sub(marks(mark)[0], lambda _, mark=mark: f"<!-- {mark}: begin ({words}) -->", text)
        else:
            text = _STAMP.sub("\n", text) + f"\n<!-- {words} -->\n"
        (ROOT / path).write_text(text, encoding="utf-8")
    lines = [f"{key}: {value}" for key, value in head(entry).items()]
    entry.stamp.write_text("\n".join([*lines, "---", sample(entry), ""]), encoding="utf-8")


def said(chosen: Sequence[Entry], what: str) -> Iterator[Entry]:
    """The entries one after the other; on standard error, which it is and about how long the rest takes."""
    begin = time.monotonic()
    for place, entry in enumerate(chosen):
        per_entry = (time.monotonic() - begin) / max(place, 1)
        left = f", about {max(per_entry * (len(chosen) - place) / 60.0, 1.0):.0f} min left" if place else ""
        print(f"{what} {entry.name} ({place + 1} of {len(chosen)}{left})", file=sys.stderr, flush=True)
        yield entry


# -- checking ----------------------------------------------------------------------------------------------------


def reasons(entry: Entry) -> list[str]:
    """Why an entry is stale; none if it is not."""
    if not entry.stamp.exists():
        return ["it has no stamp"]
    top, _, before = entry.stamp.read_text(encoding="utf-8").partition("\n---\n")
    old, new = dict(line.split(": ", 1) for line in top.splitlines() if ": " in line), head(entry)
    found = [
        f"{key} was `{old.get(key, '')}`, is `{new[key]}`"
        for key in ("command", "seeds")
        if old.get(key, "") != new[key]
    ]
    found += [
        f"{key[11:]} is not what the command wrote"
        for key in new
        if key.startswith("content of ") and old.get(key) != new[key]
    ]
    if entry.per_version:
        return found + ([] if old.get("version") == new["version"] else [f"made with version {old.get('version')}"])
    try:
        now = sample(entry)
    except SystemExit as error:  # a page that holds its own numbers to be what they were
        return [*found, f"its sample cannot be made: {error}"]
    if difference := first_difference(before.rstrip("\n"), now):
        changed = [key for key in new if key.startswith("defaults of ") and old.get(key) != new[key]]
        found.append(f"its sample {difference}" + (f" ({', '.join(changed)} differ)" if changed else ""))
    return found


def notes(entry: Entry) -> list[str]:
    """Defaults that have changed since; where the sample is the same, they do not matter to the page."""
    top = entry.stamp.read_text(encoding="utf-8").partition("\n---\n")[0] if entry.stamp.exists() else ""
    old, new = dict(line.split(": ", 1) for line in top.splitlines() if ": " in line), head(entry)
    return [
        f"{key} differ, its sample does not"
        for key in new
        if key.startswith("defaults of ") and old.get(key) != new[key]
    ]


def first_difference(before: str, now: str) -> str:
    """The first line in which two texts differ by more than rounding; "" if there is none."""
    old, new = before.splitlines(), now.splitlines()
    for a, b in zip(old, new, strict=False):
        if not alike(a, b):
            return f"had `{a[:200]}`, has `{b[:200]}`"
    return "" if len(old) == len(new) else f"had {len(old)} lines, has {len(new)}"


def alike(a: str, b: str) -> bool:
    """Whether two lines have the same words, and numbers that agree up to rounding."""
    if _NUMBER.sub("#", a) != _NUMBER.sub("#", b):
        return False
    pairs = zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=True)
    return all(x == y or math.isclose(float(x), float(y), rel_tol=TOLERANCE, abs_tol=1e-9) for x, y in pairs)


def check(chosen: Sequence[Entry]) -> list[Entry]:
    """Print what is stale and why; returns it."""
    stale = []
    for entry in said(chosen, "checking"):
        found = reasons(entry)
        if found:
            stale.append(entry)
            print(f"{', '.join(entry.makes)} (`{entry.command}`): stale: {'; '.join(found)}", flush=True)
        else:
            for note in notes(entry):
                print(f"{', '.join(entry.pages or entry.makes)}: {note}", flush=True)
    print(f"{len(stale)} of {len(chosen)} entries are stale")
    return stale


# -- making ------------------------------------------------------------------------------------------------------


def make(entry: Entry) -> None:
    """Run the command, put what it prints between the marks, if there are any, and write the stamp."""
    print(f"{entry.name}: {entry.command}", flush=True)
    printed = run(entry.command)
    for part in entry.makes:
        path, _, mark = part.partition("#")
        if mark:
            begin, end = marks(mark)
            text = (ROOT / path).read_text(encoding="utf-8")
            if not re.search(f"{begin}.*{end}", text, flags=re.S):
                raise SystemExit(f"{path} has no part between <!-- {mark}: begin --> and <!-- {mark}: end -->")
            body = f"<!-- {mark}: begin -->\n{printed.rstrip()}\n<!-- {mark}: end -->"
            text = re.sub(f"{begin}.*{end}", lambda _, body=body: body, text, flags=re.S)
            (ROOT / path).write_text(text, encoding="utf-8")
    write_stamp(entry)


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("check", "make", "stamp", "list"))
    parser.add_argument("names", nargs="*", help="entries of docs/pages.toml; all by default")
    given = parser.parse_args(arguments)
    known = entries()
    if unknown := [name for name in given.names if name not in known]:
        raise SystemExit(f"there is no entry {unknown[0]!r} in docs/pages.toml; known are {', '.join(known)}")
    chosen = [known[name] for name in given.names or known]
    if given.what == "list":
        for entry in chosen:
            print(f"{entry.name}: {entry.command} -> {', '.join(entry.makes)}")
    elif given.what == "stamp":
        if not given.names:
            raise SystemExit("name the entries to stamp")
        for entry in said(chosen, "stamping"):
            write_stamp(entry)
    elif given.what == "make":
        for entry in said(chosen if given.names else check(chosen), "making"):
            make(entry)
    else:
        return 1 if check(chosen) else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
