"""`alexp doctor`: what is installed, where compiled code and studies are kept, and what to do about what is missing."""

from __future__ import annotations

import os
import platform
from collections import defaultdict
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import typer

from alexp.cli.study import DEFAULT, Where
from alexp.common.extras import EXTRAS, is_installed

_CORE = ("numpy", "scipy", "numba")


def doctor(storage: Where = DEFAULT) -> None:
    """Say what is installed and what is missing, with the command that installs it. Paste it into a bug report.

    Example: alexp doctor --storage sqlite:///lab.db
    """
    for line in findings(storage):
        typer.echo(line)


def findings(storage: str) -> Iterator[str]:
    """One line for each thing looked at."""
    cores = os.cpu_count() or 1
    yield f"alexp {_version('alexp')}, Python {platform.python_version()}, {platform.platform()}, {cores} cores"
    yield "core: " + ", ".join(f"{package} {_version(package)}" for package in _CORE)
    packages = defaultdict[str, list[str]](list)
    for package, extra in EXTRAS.items():
        packages[extra].append(package)
    for extra, members in packages.items():
        name = extra.partition("[")[2].rstrip("]")
        if extra.startswith("alexp["):
            missing = [package for package in members if not is_installed(package)]
            found = ", ".join(f"{package} {_version(package)}" for package in members if package not in missing)
            remedy = f"{', '.join(missing)} missing: pip install '{extra}'" if missing else ""
            yield f"{name}: " + "; ".join(filter(None, [found, remedy]))
    yield f"GPU: {_gpu()}"
    yield f"compiled code: {_compiled_code()}"
    yield f"studies: {_studies(storage)}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # CuPy's distribution has the name of its CUDA version
        return "installed"


def _gpu() -> str:
    if not is_installed("torch"):
        return "not looked for, because PyTorch is missing; everything runs on the CPU"
    import torch

    return str(torch.cuda.get_device_name()) if torch.cuda.is_available() else "none that PyTorch sees"


def _compiled_code() -> str:
    from alexp.common.compiling import cache_folder

    folder = cache_folder()
    if folder is None:
        return "cannot be kept, so every start compiles anew; set NUMBA_CACHE_DIR to a folder that can be written"
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    advice = "" if size else "; `alexp warmup` compiles what common problems need"
    return f"{size / 1e6:.0f} MB in {folder}{advice}"


def _studies(storage: str) -> str:
    if not is_installed("sqlalchemy"):
        return "SQLAlchemy is missing"
    from alexp.study import Storage, StudyError, list_studies

    try:
        opened = Storage(storage)
        if opened.is_sqlite and not Path(str(opened.path)).exists():
            return f"none yet in {opened.describe()}"
        return f"{len(list_studies(storage))} in {opened.describe()}"
    except (StudyError, ValueError, OSError) as error:
        return str(error)
