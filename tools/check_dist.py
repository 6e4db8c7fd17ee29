"""Whether wheel and sdist in a folder are what they should be: names, contents, size, and a first run of the wheel.

python tools/check_dist.py dist [VERSION]     after `python -m build`; `make dist` does both
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

LARGEST = 6_000_000  # bytes of a wheel
NEEDED = ("alexp/py.typed", "alexp/gpu/kernels.cu", "alexp/datasets/data/", "alexp/service/dashboard/static/")
FOREIGN = ("alexp_experiments", "tests/", "docs/")
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
        if f"{sdist.name.removesuffix('.tar.gz')}/src/alexp/__init__.py" not in packed.getnames():
            raise SystemExit(f"{sdist.name} has no sources")


def first_run(wheel: Path) -> str:
    """What a first run prints in an empty environment with the wheel and what it asks for."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", wheel.resolve()], check=True)
        done = subprocess.run(
            [python, "-W", "error", "-c", FIRST_RUN], check=True, cwd=folder, text=True, stdout=subprocess.PIPE
        )
        return done.stdout.strip()


def main(folder: Path, version: str | None) -> None:
    """Check the one wheel and the one sdist of a folder."""
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    if version and not wheel.name.startswith(f"alexp-{version}-"):
        raise SystemExit(f"{wheel.name} is not version {version}; correct the tag or pyproject.toml")
    check_contents(wheel, sdist)
    print(f"{wheel.name}, {wheel.stat().st_size:,} bytes: {first_run(wheel)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
