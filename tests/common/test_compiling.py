"""Compiled code on disk: valid for the sources it was made of, and never in the way."""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import alexp
from alexp.common import compiling as kept
from alexp.common._numba_pipeline import TEXT, Notice

PACKAGE = Path(alexp.__file__).parent
NOBODY = 65534

# Two small kernels in files of their own: an entry point and an ingredient that it is made of.
_INGREDIENT = """
from alexp.common.compiling import ieee
@ieee.leaf
def doubled(x):
    return FACTOR * x
FACTOR = 2.0
"""
_ENTRY = """
from alexp.common.compiling import ieee
from alexp.estimation._ingredient import doubled
@ieee.entry
def quadrupled(x):
    return doubled(doubled(x))
"""
_USE = """
from alexp.estimation._made_of import quadrupled
print(quadrupled(1.5), sum(quadrupled.stats.cache_hits.values()))
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the package with the two kernels."""
    shutil.copytree(PACKAGE, tmp_path / "tree" / "alexp", ignore=shutil.ignore_patterns("__pycache__"))
    estimation = tmp_path / "tree" / "alexp" / "estimation"
    (estimation / "_ingredient.py").write_text(_INGREDIENT)
    (estimation / "_made_of.py").write_text(_ENTRY)
    return tmp_path / "tree"


def python(tree: Path, code: str, cache: Path | None, **more: object) -> subprocess.CompletedProcess[str]:
    """Run code on the copy, with the cache in a folder or wherever it finds one."""
    keep = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA_", "XDG_"))}
    environment = keep | {"PYTHONPATH": str(tree)} | ({} if cache is None else {"NUMBA_CACHE_DIR": str(cache)})
    extra = more.pop("environment", {})
    assert isinstance(extra, dict)
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment | extra, cwd=tree.parent, **more
    )  # type: ignore[call-overload]


def used(tree: Path, cache: Path) -> list[str]:
    """Result of the entry point, and how often the cache had it."""
    done = python(tree, _USE, cache)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout.split()


def test_a_changed_ingredient_in_another_file_is_compiled_again(tree, tmp_path):
    cache, ingredient = tmp_path / "cache", tree / "alexp" / "estimation" / "_ingredient.py"
    assert used(tree, cache) == ["6.0", "0"]
    assert used(tree, cache) == ["6.0", "1"]
    os.utime(ingredient, (1, 1))
    assert used(tree, cache) == ["6.0", "1"]
    ingredient.write_text(_INGREDIENT.replace("FACTOR = 2.0", "FACTOR = 3.0"))
    assert used(tree, cache) == ["13.5", "0"]
    ingredient.write_text(_INGREDIENT)
    assert used(tree, cache) == ["6.0", "1"]


@pytest.mark.parametrize(
    "damage", [lambda old: b"", lambda old: old[: len(old) // 2], lambda old: b"x" * len(old), lambda old: old[:-1]]
)
def test_a_damaged_file_is_made_again(tree, tmp_path, damage):
    cache = tmp_path / "cache"
    used(tree, cache)
    files = list(cache.rglob("*.nbc"))
    assert len(files) == 1
    files[0].write_bytes(damage(files[0].read_bytes()))
    assert used(tree, cache) == ["6.0", "0"]
    assert used(tree, cache) == ["6.0", "1"]
    assert not list(cache.rglob("*.tmp"))


def test_a_file_that_cannot_be_understood_is_made_again(tree, tmp_path):
    cache = tmp_path / "cache"
    used(tree, cache)
    file = next(iter(cache.rglob("*.nbc")))
    kept._write(file, b"whole, but no pickle")
    assert used(tree, cache) == ["6.0", "0"]
    assert used(tree, cache) == ["6.0", "1"]


def test_processes_that_compile_at_once_do_not_disturb_each_other(tree, tmp_path):
    cache = tmp_path / "cache"
    environment = {**os.environ, "PYTHONPATH": str(tree), "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", _USE]
    racing = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [run.communicate()[0].split()[0] for run in racing] == ["6.0"] * 3
    assert used(tree, cache) == ["6.0", "1"]


def test_ordinary_compiled_code_may_call_kernels():
    from numba import njit

    from alexp.estimation.lasso._linalg import solve_factored

    @njit
    def solved(factor, b):
        solve_factored(factor, b, b.size)
        return b

    factor = np.array([[2.0, 0.0], [1.0, 3.0]])
    assert np.allclose(factor @ factor.T @ solved(factor, np.array([1.0, 2.0])), [1.0, 2.0])


def test_all_kernel_files_count_and_no_others():
    names = {path.relative_to(PACKAGE).as_posix() for path in kept.kernel_files()}
    assert {"common/_numba_pipeline.py", "estimation/lasso/_linalg.py", "estimation/ridge/_values.py"} <= names
    assert "algorithms/alexp.py" not in names
    marked = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "numba import njit" in path.read_text() and path.name != "compiling.py"
    }
    assert not marked  # compiled past the cache


def without_override() -> None:
    """In a child of root: be bound by permissions like everybody else."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        if libc.prctl(24, capability, 0, 0, 0):  # PR_CAPBSET_DROP
            raise OSError(ctypes.get_errno(), "cannot give up the right to write everywhere")


@pytest.fixture
def bound(tree: Path) -> dict[str, object]:
    """How to run as a user who can write nowhere but among temporary files."""
    for path in [tree, *tree.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    (tree.parent / "scratch").mkdir()
    environment = {"HOME": str(tree), "TMPDIR": str(tree.parent / "scratch"), "PYTHONDONTWRITEBYTECODE": "1"}
    if os.getuid() != 0:
        return {"environment": environment}
    try:
        subprocess.run(["true"], preexec_fn=without_override, check=True)
    except subprocess.SubprocessError:
        pytest.skip("root that cannot give up its rights")
    return {"environment": environment, "preexec_fn": without_override}


def test_a_private_temporary_folder_where_nothing_else_can_be_written(tree, bound):
    first = python(tree, _USE, None, **bound)
    assert first.returncode == 0, first.stderr
    assert first.stdout.split() == ["6.0", "0"]
    assert first.stderr.count("alexp found no folder to keep compiled code in") == 1
    folder = next((tree.parent / "scratch").iterdir())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert python(tree, _USE, None, **bound).stdout.split() == ["6.0", "1"]


def test_a_planted_temporary_folder_is_not_trusted(tree, bound, tmp_path):
    target = tmp_path / "planted"
    target.mkdir(mode=0o777)
    target.chmod(0o777)
    (tree.parent / "scratch" / f"alexp-code-of-{os.getuid()}").symlink_to(target)
    for _ in range(2):
        done = python(tree, _USE, None, **bound)
        assert done.stdout.split() == ["6.0", "0"], done.stderr
        assert "compiled again by every process" in done.stderr
    assert not list(target.iterdir())


@pytest.mark.parametrize("kind", ["open to all", "of another user", "a file", "fine"])
def test_only_a_folder_of_ones_own_is_private(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(kept.tempfile, "tempdir", str(tmp_path))
    own = tmp_path / f"alexp-code-of-{os.getuid()}"
    if kind == "a file":
        own.write_text("")
    else:
        own.mkdir(mode=0o700)
    if kind == "open to all":
        own.chmod(0o777)
    if kind == "of another user":
        if os.getuid() != 0:
            pytest.skip("only root can make one")
        os.chown(own, NOBODY, NOBODY)
    assert kept._private_folder("x") == (own / "x" if kind == "fine" else None)


@pytest.mark.parametrize("given", [None, "cache", "XDG"])
def test_code_is_never_read_from_the_working_directory(tmp_path, monkeypatch, given):
    """Without a home, a user's cache folder is the relative path "~/.cache"; what is read there would be executed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: (_ for _ in ()).throw(KeyError("no entry")))
    monkeypatch.setattr(kept.config, "CACHE_DIR", "cache" if given == "cache" else "")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if given == "XDG":
        monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    if given == "cache":
        with pytest.warns(RuntimeWarning, match="NUMBA_CACHE_DIR must be an absolute path .* got 'cache'"):
            folders = kept._Folders()
    else:
        folders = kept._Folders()
    assert all(folder.is_absolute() for folder in folders.read)
    assert folders.read
    assert not list(tmp_path.iterdir())


def test_temporary_code_does_not_go_to_the_working_directory(tmp_path, monkeypatch):
    """Python's last resort for temporary files is the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(kept.tempfile, "tempdir", str(tmp_path))
    assert kept._private_folder("x") is None
    assert not list(tmp_path.iterdir())


def test_a_lack_of_memory_discards_no_code(tmp_path, monkeypatch):
    function = kept.CodeCache(test_code_is_never_read_from_the_working_directory)
    monkeypatch.setattr(kept, "_folders", lambda: type("Folders", (), {"read": [tmp_path], "write": tmp_path}))
    monkeypatch.setattr(kept.CodeCache, "_file", lambda *_: "code.nbc")
    monkeypatch.setattr(kept.rtsys, "initialize", lambda _: None)
    kept._write(tmp_path / "code.nbc", b"code")

    def poor(_):
        raise MemoryError

    monkeypatch.setattr(kept.pickle, "loads", poor)
    with pytest.raises(MemoryError):
        function.load_overload(None, type("Target", (), {"codegen": lambda: None}))
    assert (tmp_path / "code.nbc").exists()


def test_code_kept_beside_read_only_sources_is_used(tree, request):
    assert python(tree, _USE, None).stdout.split() == ["6.0", "0"]  # as when an image is built
    bound = request.getfixturevalue("bound")
    assert python(tree, _USE, None, **bound).stdout.split() == ["6.0", "1"]


def test_a_named_folder_is_the_only_one(tree, tmp_path):
    assert python(tree, _USE, None).stdout.split() == ["6.0", "0"]  # beside the sources
    assert python(tree, _USE, None).stdout.split() == ["6.0", "1"]
    assert used(tree, tmp_path / "named") == ["6.0", "0"]
    assert used(tree, tmp_path / "named") == ["6.0", "1"]


def test_a_terminal_is_told_once_why_it_waits(monkeypatch, capsys):
    monkeypatch.setattr(Notice, "patience", 0.0)
    monkeypatch.setattr(Notice, "said", False)
    monkeypatch.setattr(Notice, "spent", 0.0)
    with Notice.while_compiling():
        pass
    assert not capsys.readouterr().err  # not a terminal
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    for _ in range(2):
        with Notice.while_compiling(), Notice.while_compiling():
            for _ in range(200):
                if Notice.said:
                    break
                __import__("time").sleep(0.01)
    assert capsys.readouterr().err.count(TEXT) == 1


def test_theory_is_loaded_when_used():
    code = (
        "import sys, alexp; assert 'alexp.theory' not in sys.modules and 'scipy.stats' not in sys.modules; "
        "assert alexp.preflight is alexp.theory.preflight and alexp.__version__; "
        "from alexp import theory; assert theory.lasso_confidence; assert 'preflight' in dir(alexp)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
