"""Hostile inputs: names, addresses, files, settings, paths and environments as nobody means them, or as somebody does.

Whatever comes in, through the command line or from Python: no secret comes out, no file outside the working folder
changes, nothing ends in a traceback, and the exit code says whether it worked (0), failed (1) or was no command (2).
"""

from __future__ import annotations

import io
import os
import struct
import tempfile
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

import alexp
from alexp.cli import app
from alexp.study import Storage, StudyError, create_study, load_study

MODELS, DOMAIN = alexp.ModelClass.legendre(degree=3, size=2), alexp.Interval(-1.0, 1.0, resolution=21)
SECRET = "S3CRET"
INPUTS = 200  # at scale 1
N = 6  # candidates
_ALLOWED = (StudyError, ValueError, TypeError, OSError)
_EVIL = [
    "=1+2",
    "@SUM(A1)",
    "\x1b[31m",
    "../../x",
    "a\0b",
    "\ud800",
    "[red]",
    "{0}%s%n",
    "'; DROP TABLE t--",
    "x" * 500,
]
_EVIL += ["-rf", "--help", "\u202ex", "\n", "", " ", "nan", "1e999", "-1", "9" * 5000, "'=x", '"', "\ufeff", "<script>"]


@dataclass(frozen=True)
class Case:
    """One input: what it is, and what to do with it in the working folder; returns an exit code and what was said."""

    title: str
    run: Callable[[], tuple[int, str]]


def command(*arguments: object, **environment: str) -> Callable[[], tuple[int, str]]:
    """Run `alexp` with these arguments."""

    def run() -> tuple[int, str]:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], env=environment)
        said = result.output
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            said += "".join(traceback.format_exception(result.exception))
        return result.exit_code, said

    return run


def python(act: Callable[[], object]) -> Callable[[], tuple[int, str]]:
    """Do something in Python, where the documented errors may come."""

    def run() -> tuple[int, str]:
        try:
            return 0, repr(act())
        except _ALLOWED as error:
            return 1, f"error: {error}"

    return run


# -- cases -----------------------------------------------------------------------------------------------------


def addresses(rng: np.random.Generator) -> Iterator[Case]:
    """Storage URLs with a password somewhere: right ones to a server that is not there, mistyped and torn ones."""
    schemes = [
        "postgresql",
        "postgres",
        "POSTGRESQL",
        "postgresql+psycopg",
        "postgresql+x",
        "sqlite",
        "mysql",
        "psql",
        "",
    ]
    between = ["://", ":/", ":", "//", ";//", ": //", " ://", "/", ":///"]
    host = "127.0.0.1:1"  # where nobody listens
    places = [f"u:{SECRET}@{host}/db", f"{host}/db?user=u&password={SECRET}", f"u:%533CRET{SECRET}@{host}/db"]
    places += [f"u@{host}/db?sslpassword={SECRET}", f"u:{SECRET}@x@{host}/db", f"u@{host}/db?pasword={SECRET}"]
    places += [f"u:{SECRET}@127.0.0.1:{SECRET}/db", f"u:{SECRET}/@{host}/db"]
    doings = ["list", "status", "ask", "environment", "python", "name", "extra"]
    while True:
        url = str(rng.choice(schemes)) + str(rng.choice(between)) + str(rng.choice(places))
        if rng.random() < 0.2:  # torn
            cut = int(rng.integers(len(url)))
            url = url[:cut] + url[cut + 1 :]
        match str(rng.choice(doings)):
            case "list":
                run = command("study", "list", "--storage", url)
            case "status" | "ask" as what:
                run = command("study", what, "s", "--storage", url)
            case "environment":
                run = command("study", "list", ALEXP_STORAGE=url)
            case "python":
                run = python(
                    lambda url=url: (storage := Storage(url), storage.url, storage.describe(), storage.exists())
                )
            case "name":
                run = command("study", "status", f"postgresql://{places[0]}")
            case _:
                run = command("study", "list", f"postgresql://{places[0]}")
        if SECRET in url:
            yield Case(f"address {url!r}", run)


def names(rng: np.random.Generator) -> Iterator[Case]:
    """Names of studies, models, columns and candidates."""
    while True:
        evil = str(rng.choice(np.array(_EVIL, dtype=object)))
        match int(rng.integers(5)):
            case 0:
                yield Case(
                    f"study {evil!r:.40}",
                    python(lambda evil=evil: create_study(MODELS, DOMAIN, name=evil, storage="x.db")),
                )
            case 1:
                yield Case(f"open {evil!r:.40}", python(lambda evil=evil: load_study(evil, "x.db")))
            case 2:
                text = f"name,{evil}\n" + "".join(f"{evil}{k},{k}\n" for k in range(N))
                yield Case(f"candidates {evil!r:.40}", _creating(text))
            case 3:
                matrices = {evil: np.eye(N), "b": np.ones((N, 1))}
                yield Case(f"model {evil!r:.40}", python(lambda matrices=matrices: _whole_life(matrices)))
            case _:
                yield Case(f"trial {evil!r:.40}", command("study", "amend", "good", "--", evil, evil))


def _whole_life(matrices: dict[str, np.ndarray]) -> object:
    """A study with such models, from its creation to its report and export."""
    from alexp.problem import FiniteSet, ModelClass

    table = FiniteSet([f"{key}{k}" for k in range(N) for key in list(matrices)[:1]])
    study = create_study(ModelClass.from_matrices(matrices), table, name="life", storage="life.db", random_state=0)
    study.tell(study.ask(), 0.5)
    study.report("life.html")
    return command("study", "export", "life", "--storage", "life.db", "--out", "life.csv")()


def _creating(
    candidates: str | bytes, features: bytes | None = None, suffix: str = ".npy"
) -> Callable[[], tuple[int, str]]:
    def run() -> tuple[int, str]:
        data = candidates if isinstance(candidates, bytes) else candidates.encode("utf-8", "surrogatepass")
        Path("evil.csv").write_bytes(data)
        given = "fp.npy"
        if features is not None:
            given = f"evil{suffix}"
            Path(given).write_bytes(features)
        what = ("study", "create", "new", "--candidates", "evil.csv", "--features", f"f={given}", "--storage", "new.db")
        return command(*what)()

    return run


_GOOD = "name,x\n" + "".join(f"m{k},{k}.5\n" for k in range(N))


def tables(rng: np.random.Generator) -> Iterator[Case]:
    """CSV files of candidates, of observations and of results."""
    fixed: list[bytes] = [
        b"",
        b"\n",
        b"a",
        b"\xff\xfe\0x",
        b'"',
        b'a\n"x',
        b"a,a\n1,2\n",
        b"a,b\n1\n",
        b"\0\0\0",
        b"trial,reward\n0,1\n",
    ]
    fixed += [
        b"a\n" + b"x" * 200_000 + b"\n",
        b"a\n" + b"9" * 6000 + b"\n",
        b",\n,\n",
        b"a\n" + b"1e400\n" * N,
        "\ufeff=a\n=b\n".encode(),
    ]
    fixed += [
        ("," * 3000 + "\n").encode() * 3,
        b"reward,index\nnan,0\n",
        b"index,reward\n-1,1\n",
        b"index,reward\n1e9,x\n",
    ]
    for data in fixed:
        yield Case(f"candidates {data!r:.30}", _creating(data))
        yield Case(f"results {data!r:.30}", _with_file(data, "study", "tell", "good", "evil.csv"))
        yield Case(f"observations {data!r:.30}", _with_file(data, "study", "observe", "good", "evil.csv", "--yes"))
    while True:
        cell = str(rng.choice(np.array(_EVIL, dtype=object))).encode("utf-8", "surrogatepass")
        data = b"trial,reward\n" + (cell + b",1.0" if rng.random() < 0.5 else b"0," + cell) + b"\n"
        yield Case(f"results {data!r:.40}", _with_file(data, "study", "tell", "good", "evil.csv", "--yes"))
        yield Case("candidates, mutated", _creating(_mutated(_GOOD.encode(), rng)))


def _with_file(data: bytes, *arguments: str) -> Callable[[], tuple[int, str]]:
    def run() -> tuple[int, str]:
        Path("evil.csv").write_bytes(data)
        return command(*arguments)()

    return run


_BITS = [b'"', b"\0", b"\xff", b"\r", b",", b"\n", b"9" * 400, b"=", b"\xed\xa0\x80", b"x" * 140_000]


def _mutated(data: bytes, rng: np.random.Generator) -> bytes:
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 6))):
        place = int(rng.integers(len(out) + 1))
        match int(rng.integers(3)):
            case 0:
                out[place:place] = _BITS[int(rng.integers(len(_BITS)))]
            case 1:
                del out[place : place + int(rng.integers(1, 9))]
            case _:
                out[place : place + 1] = bytes([int(rng.integers(256))])
    return bytes(out)


def arrays(rng: np.random.Generator) -> Iterator[Case]:
    """Files of features: .npy with headers that lie, archives, bombs, pickles, mutations."""
    buffer = io.BytesIO()
    np.save(buffer, np.eye(N))
    good = buffer.getvalue()
    shapes = [
        "(1000000000000,)",
        "(9223372036854775807, 2)",
        "(-1, 6)",
        "(6, 0)",
        "(1e9,)",
        "()",
        "('a',)",
        "(6, 6, 1)",
    ]
    kinds = ["'<f8'", "'|O'", "'|S0'", "'<U4'", "[('a', '<f8')]", "'<c16'", "'<M8[s]'", "'>f8'", "'<q77'", "{}"]
    for text in ["__import__('os').system('touch ../pwned')", "(" * 3000, "{" * 3000, "0" * 20_000, "{'shape': (1,)}"]:
        yield Case(f"array {text!r:.30}", _creating(_GOOD, _npy(text)))
    yield Case("pickle", _creating(_GOOD, b"\x80\x04cos\nsystem\n(S'touch ../pwned'\ntR."))
    yield Case("header of 4 GiB", _creating(_GOOD, b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1)))
    for suffix in (".npy", ".npz", ".csv"):
        yield Case(f"bomb as {suffix}", _creating(_GOOD, _bomb(), suffix))
    while True:
        if rng.random() < 0.5:
            yield Case("array, mutated", _creating(_GOOD, _mutated(good, rng)))
        else:
            shape, kind = str(rng.choice(shapes)), str(rng.choice(kinds))
            header = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}"
            yield Case(f"array {kind} {shape}", _creating(_GOOD, _npy(header, bytes(8 * N * N))))


def _npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def _bomb() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "a.npy", _npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1250000,), }", bytes(10_000_000))
        )
    return buffer.getvalue()


def settings(rng: np.random.Generator) -> Iterator[Case]:
    """JSON and other values of the options of `create`, `ask` and `heartbeat`."""
    values = [
        "[" * 5000,
        "{" * 5000 + "}" * 5000,
        "9" * 5000,
        "1e999",
        "NaN",
        "null",
        '{"a":',
        "\\ud800",
        '"',
        "[1,",
        "__class__",
    ]
    values += ["-1", "0", "inf", "1h2", "1e400d", "9" * 400 + "d", "=1", "\x1b[0m", f"postgresql://u:{SECRET}@h/d"]
    keys = [
        "noise_std",
        "power",
        "models",
        "domain",
        "random_state",
        "self",
        "__init__",
        "x" * 300,
        "=",
        "name",
        "storage",
    ]
    create = ("study", "create", "new", "--candidates", "good.csv", "--features", "f=fp.npy", "--storage", "new.db")
    options = ["--noise-std", "--reward-bound", "--algorithm", "--direction", "--seed", "--expired"]
    while True:
        value = str(rng.choice(np.array(values, dtype=object)))
        match int(rng.integers(4)):
            case 0:
                yield Case(f"setting {value!r:.30}", command(*create, "--setting", f"{rng.choice(keys)}={value}"))
            case 1:
                option = str(rng.choice(options))
                yield Case(f"{option} {value!r:.30}", command(*create, option, value))
            case 2:
                yield Case(f"lease {value!r:.30}", command("study", "ask", "good", "--lease", value))
            case _:
                yield Case(f"heartbeat {value!r:.30}", command("study", "heartbeat", "good", "--", value))


def paths(rng: np.random.Generator) -> Iterator[Case]:
    """Files to write and to read that are folders, links, devices, absent, outside, or have no possible name."""
    wrong = [
        ".",
        "..",
        "/",
        "link",
        "dangling",
        "folder",
        "absent/x",
        "x" * 300,
        "a\nb",
        "/dev/null",
        "/dev/full",
        "/proc/self/mem",
    ]
    wrong += ["/proc/nothing", "good.csv/x", "~", "\x1b[0m", "folder/", "loop", "../canary"]
    readers = [("study", "tell", "good"), ("study", "observe", "good")]
    writers = [("study", "ask", "good", "--force", "--out"), ("study", "export", "good", "--out")]
    writers += [("study", "report", "good", "--out"), ("study", "pending", "good", "--out")]
    writers += [("preflight", "--degree", "2", "--size", "1", "--resolution", "9", "--json")]
    while True:
        path = str(rng.choice(np.array(wrong, dtype=object)))
        if path != "../canary" and rng.random() < 0.6:  # outside on purpose is outside by right
            yield Case(f"writing {path!r:.30}", command(*writers[int(rng.integers(len(writers)))], path))
        elif rng.random() < 0.5:
            yield Case(f"reading {path!r:.30}", command(*readers[int(rng.integers(len(readers)))], path))
        elif path not in (
            "/dev/null",
            "/dev/full",
            "dangling",
            "a\nb",
            "\x1b[0m",
            "~",
        ):  # the others can become databases
            yield Case(f"storing {path!r:.30}", command("study", "status", "good", "--storage", path))


def environments(rng: np.random.Generator) -> Iterator[Case]:
    """Variables of the environment."""
    values = ["", " ", "/dev/null", "x" * 5000, "\udcff\udcfe", "\x1b[31m", "..", "=1+1", f"postgresql:/u:{SECRET}@h/d"]
    while True:
        value = str(rng.choice(np.array(values, dtype=object)))
        what = [("study", "ask", "good", "--lease", "1h"), ("study", "pending", "good", "--workers"), ("study", "list")]
        chosen = what[int(rng.integers(len(what)))]
        yield Case(f"worker {value!r:.30}", command(*chosen, ALEXP_WORKER=value))
        if value not in ("..", "x" * 5000, "=1+1", "\x1b[31m", "\udcff\udcfe"):
            yield Case(f"storage {value!r:.30}", command("study", "list", ALEXP_STORAGE=value))


KINDS = (addresses, names, tables, arrays, settings, paths, environments)


# -- running them ----------------------------------------------------------------------------------------------


@contextmanager
def laboratory() -> Iterator[Path]:
    """A working folder with a good study, inside a folder in which nothing may change."""
    before, keep = Path.cwd(), {key: os.environ.get(key) for key in ("ALEXP_STORAGE", "ALEXP_WORKER")}
    with tempfile.TemporaryDirectory(prefix="alexp-hostile-") as folder:
        outside = Path(folder)
        (outside / "canary").write_text("precious")
        (outside / "inside").mkdir()
        os.chdir(outside / "inside")
        for key in keep:
            os.environ.pop(key, None)
        try:
            Path("good.csv").write_text(_GOOD)
            np.save("fp.npy", np.eye(N))
            Path("folder").mkdir()
            Path("link").symlink_to(outside / "canary")
            Path("dangling").symlink_to(outside / "created")
            Path("loop").symlink_to("loop")
            made = command(
                "study", "create", "good", "--candidates", "good.csv", "--features", "f=fp.npy", "--repeats"
            )()
            asked = command("study", "ask", "good", "-n", "2", "--out", "plate.csv")()
            assert (made[0], asked[0]) == (0, 0), (made, asked)
            yield outside
        finally:
            os.chdir(before)
            os.environ.update({key: value for key, value in keep.items() if value is not None})


def violations(case: Case, outside: Path) -> list[str]:
    """What a case has broken."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        code, said = case.run()
    said += " ".join(str(warning.message) for warning in warned)
    found = []
    if SECRET in said:
        found.append("a secret was printed")
    if "Traceback" in said or "\x1b[31m" in said:
        found.append("a traceback, or a command to the terminal")
    if code not in (0, 1, 2) or (code and "rror" not in said):
        found.append(f"exit code {code} and no word of an error")
    if sorted(os.listdir(outside)) != ["canary", "inside"] or (outside / "canary").read_text() != "precious":
        found.append("a file outside was written")
    return [f"{case.title}: {what}: {said[-600:]}" for what in found]


def run(scale: float, seed: int) -> tuple[int, list[str]]:
    """How many inputs were tried, and what they have broken."""
    number, broken = max(round(INPUTS * scale), len(KINDS)), []
    rngs = np.random.default_rng(seed).spawn(len(KINDS))
    sources = [kind(rng) for kind, rng in zip(KINDS, rngs, strict=True)]
    with laboratory() as outside:
        for k in range(number):
            broken += violations(next(sources[k % len(sources)]), outside)
            for made in ("new.db", "life.db", "x.db"):
                for suffix in ("", "-wal", "-shm"):
                    Path(made + suffix).unlink(missing_ok=True)
    return number, broken


def soak(scale: float, seed: int) -> dict[str, int | float | str]:
    """Hostile inputs tried, and violations among them."""
    number, broken = run(scale, seed)
    return {"tried": number, "violations": len(broken)} | ({"first": broken[0][:200]} if broken else {})
