"""Wheel and sdist are built as `make dist` builds them, and the wheel is used in an empty environment."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import check_dist  # noqa: E402


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--dest",
        folder / "probe",
        "setuptools>=77",
    ]
    if subprocess.run(pip, capture_output=True).returncode != 0:
        pytest.skip("no package index can be reached: neither build tools nor dependencies can be installed")
    subprocess.run([sys.executable, "-m", "build", "--outdir", folder, ROOT], check=True, capture_output=True)
    return folder


def test_metadata(dist):
    files = [path for path in dist.iterdir() if path.is_file()]
    done = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_contents_and_first_use(dist, capsys):
    """`make dist` does the same with [all] as well, which takes minutes to install."""
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    check_dist.check_contents(wheel, sdist)
    check_dist.use(wheel, ["lab"])
    assert "[lab]: README.md runs as pasted" in capsys.readouterr().out


def test_what_is_missing_is_noticed(dist, tmp_path):
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    with tarfile.open(tmp_path / sdist.name, "w:gz"):
        pass
    with pytest.raises(SystemExit, match="has no alexp/"):
        check_dist.check_contents(wheel, tmp_path / sdist.name)
    with zipfile.ZipFile(tmp_path / wheel.name, "w"):
        pass
    with pytest.raises(SystemExit, match="has no alexp/py.typed"):
        check_dist.check_contents(tmp_path / wheel.name, sdist)
