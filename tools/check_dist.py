"""Whether wheel and sdist in a folder are what they should be: names, contents, size, and whether the wheel runs.

python tools/check_dist.py dist [VERSION]     after `python -m build`; `make dist` does both
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterable
from pathlib import Path

LARGEST = 6_000_000  # bytes of a wheel
NEEDED = ("alexp/py.typed", "alexp/gpu/kernels.cu", "alexp/datasets/data/", "alexp/service/dashboard/static/")
FOREIGN = ("alexp_experiments", "tests/", "docs/")
# Which extras' lines of `alexp doctor` name no missing package, after the installation of which extra.
HELD = {"lab": ("core", "lab"), "all": ("core", "lab", "client", "service", "chem", "design", "dask")}
FIRST_RUN = """
import alexp
models, domain = alexp.ModelClass.legendre(4, 2), alexp.Interval(resolution=50)
opt = alexp.EvidenceMixture(models, domain, random_state=0)
for _ in range(5):
    trial = opt.ask()
    opt.tell(trial, trial.x ** 2)
print(alexp.__version__, opt.best())
"""


def check_contents(wheel: Path, sdist: Path) -> None:
    """Raise SystemExit if something is missing or does not belong there."""
    names = zipfile.ZipFile(wheel).namelist()
    for part in NEEDED:
        if not any(name.startswith(part) for name in names):
            raise SystemExit(f"{wheel.name} has no {part}")
    for part in FOREIGN:
        if found := [name for name in names if name.startswith(part)]:
            raise SystemExit(f"{wheel.name} has {found[0]}, which does not belong to the library")
    if wheel.stat().st_size > LARGEST:
        raise SystemExit(f"{wheel.name} has {wheel.stat().st_size:,} bytes, more than {LARGEST:,}")
    with tarfile.open(sdist) as packed:
        held = {name.partition("/")[2] for name in packed.getnames()}
    if missing := {name for name in names if not name.endswith("/") and ".dist-info/" not in name} - {
        name.removeprefix("src/") for name in held
    }:
        raise SystemExit(f"{sdist.name} has no {min(missing)}")
    if found := [name for name in held if name.startswith(FOREIGN)]:
        raise SystemExit(f"{sdist.name} has {found[0]}, which does not belong to the library")


def readme() -> str:
    """The Python blocks of README.md, one after the other, as a reader pastes them."""
    text = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    return "\n".join(re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL))


def use(wheel: Path, extras: Iterable[str] = tuple(HELD)) -> None:
    """Install the wheel into an empty environment, alone and then with extras, and use it each time.

    Alone it plays, and README.md ends in a sentence that names the extra. With extras README.md runs to its end, and
    `alexp doctor` misses nothing of them.
    """
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")

        def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
            environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            environment |= {"MPLBACKEND": "Agg", "PYTHONUTF8": "1"}
            return subprocess.run([python, *arguments], capture_output=True, text=True, cwd=folder, env=environment)

        def must(*arguments: str | Path) -> str:
            done = run(*arguments)
            if done.returncode != 0:
                raise SystemExit(
                    f"{wheel.name}: {' '.join(map(str, arguments))[:60]} failed\n{done.stdout}{done.stderr}"
                )
            return done.stdout.strip()

        must("-m", "pip", "install", "--quiet", wheel.resolve())
        print(f"alone: {must('-W', 'error', '-c', FIRST_RUN)}", flush=True)
        if "pip install 'alexp[lab]'" not in (said := run("-c", readme()).stderr):
            raise SystemExit(f"{wheel.name} without extras does not say which one README.md needs, but\n{said}")
        for extra in extras:
            must("-m", "pip", "install", "--quiet", f"{wheel.resolve()}[{extra}]")
            must("-W", "error", "-c", "import alexp")
            must("-c", readme())
            lines = dict(re.findall(r"^(\w+): (.*)$", must("-m", "alexp", "doctor"), flags=re.MULTILINE))
            if lacking := [lines[name] for name in HELD[extra] if "missing" in lines[name]]:
                raise SystemExit(f"{wheel.name}[{extra}] lacks a package: {lacking[0]}")
            print(f"[{extra}]: README.md runs as pasted", flush=True)


def main(folder: Path, version: str | None) -> None:
    """Check the one wheel and the one sdist of a folder."""
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    if version and not wheel.name.startswith(f"alexp-{version}-"):
        raise SystemExit(f"{wheel.name} is not version {version}; correct the tag or pyproject.toml")
    check_contents(wheel, sdist)
    print(f"{wheel.name}, {wheel.stat().st_size:,} bytes, and {sdist.name}, {sdist.stat().st_size:,} bytes")
    use(wheel)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
