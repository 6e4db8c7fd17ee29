"""Files are written as a whole or not at all, and no size that a file claims is believed."""

import io
import os
import re
import stat
import struct
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp.common import files
from alexp.common.cells import from_csv, marked, to_csv, unmarked
from alexp.common.files import read_array, read_text, write_text, writing
from alexp.common.style import new_figure, save_figure

SOURCE = Path(alexp.__file__).parent


# -- writing ---------------------------------------------------------------------------------------------------


def test_a_file_is_there_at_once_or_not_at_all(tmp_path):
    path = tmp_path / "new" / "file.txt"
    with writing(path) as file:
        file.write(b"first")
        assert not path.exists()
    assert path.read_bytes() == b"first"
    with pytest.raises(TypeError), writing(path) as file:
        file.writelines([b"second", 3])
    assert path.read_bytes() == b"first"
    assert os.listdir(path.parent) == ["file.txt"]


@pytest.fixture
def full_disk():
    """No file may become larger than 1000 bytes."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_nothing_stays_behind_on_a_full_disk(tmp_path, full_disk):
    path = tmp_path / "file.txt"
    write_text(path, "old")
    for size in (1001, 100_000):
        with pytest.raises(OSError, match="too large"):
            write_text(path, "x" * size)
    figure, _ = new_figure()
    with pytest.raises(OSError, match="too large"):
        save_figure(figure, tmp_path / "figure.png")
    assert os.listdir(tmp_path) == ["file.txt"]
    assert path.read_text() == "old"


def test_names_of_drafts_cannot_be_guessed_and_links_are_not_followed(tmp_path, monkeypatch):
    seen = []
    for _ in range(2):
        with writing(tmp_path / "file.txt"):
            seen += os.listdir(tmp_path)
        (tmp_path / "file.txt").unlink()
    assert len(set(seen)) == 2
    assert all(re.fullmatch(r"\.file\.txt\.[0-9a-f]{16}\.tmp", name) for name in seen)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    monkeypatch.setattr(files.secrets, "token_hex", lambda _size: "guessed")
    draft = tmp_path / ".file.txt.guessed.tmp"
    for target in (victim, tmp_path / "absent"):
        draft.symlink_to(target)
        with pytest.raises(FileExistsError):
            write_text(tmp_path / "file.txt", "evil")
        draft.unlink()
    assert victim.read_text() == "precious"
    assert os.listdir(tmp_path) == ["victim"]


def test_a_link_is_replaced_not_followed(tmp_path):
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.write_text("precious")
    link.symlink_to(victim)
    write_text(link, "mine")
    assert (victim.read_text(), link.read_text(), link.is_symlink()) == ("precious", "mine", False)


def test_modes(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "new", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    (tmp_path / "new").chmod(0o604)
    write_text(tmp_path / "new", "y")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o604


def test_devices_and_folders(tmp_path):
    write_text(Path("/dev/null"), "gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)  # and not a file in its place
    with pytest.raises(IsADirectoryError):
        write_text(tmp_path, "x")
    assert os.listdir(tmp_path) == []
    with pytest.raises(OSError, match="File name too long|too long"):
        write_text(tmp_path / ("x" * 300), "x")
    assert os.listdir(tmp_path) == []


def test_all_that_writes_does_it_here():
    """A list of what the library calls to write files; only `common/files.py` does."""
    direct = re.compile(
        r"\.write_(?:text|bytes)\(|\.savefig\((?!file)|\.to_csv\([^)\n]*path|np\.savez?\((?!file)|\bopen\([^)\n]*[\"'][wax]"
    )
    found = {
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for path in SOURCE.rglob("*.py")
        if path.name != "files.py"
        for line in path.read_text(encoding="utf-8").splitlines()
        if direct.search(line) and "write_bytes(path," not in line
    }
    assert {line for line in found if not line.startswith("bench/study.py")} == set()  # it measures fsync


# -- arrays ----------------------------------------------------------------------------------------------------


def npy(header, data=b"", version=(1, 0)):
    text = header.encode() + b" " * (64 - (len(header) + 11) % 64) + b"\n"
    size = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + size + text + data


def head(shape="(2, 2)", descr="'<f8'"):
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"


def test_arrays_are_read_as_numpy_does(tmp_path):
    for k, array in enumerate([np.arange(6.0).reshape(3, 2), np.asfortranarray(np.eye(3)), np.arange(3, dtype="i2"),
                               np.zeros((0, 4)), np.float32([[1]]), np.array(True)]):  # fmt: skip
        np.save(tmp_path / f"{k}.npy", array)
        again = read_array(tmp_path / f"{k}.npy")
        assert (again.dtype, again.shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(again, array)


HEADERS = {
    "terabytes": npy(head("(1000000000000,)")),
    "more than 64 bits": npy(head("(9223372036854775807, 9223372036854775807)")),
    "too short": npy(head(), bytes(31)),
    "too long": npy(head(), bytes(33)),
    "negative": npy(head("(-2, -2)"), bytes(32)),
    "objects": npy(head(descr="'|O'"), bytes(32)),
    "nothing per number": npy(head("(1000000000000000,)", "'|S0'")),
    "text": npy(head("(4,)", "'<U2'"), bytes(32)),
    "records": npy(head("(4,)", "[('a', '<f8')]"), bytes(32)),
    "times": npy(head("(4,)", "'<M8[s]'"), bytes(32)),
    "code": npy("__import__('os').system('touch pwned')"),
    "no dict": npy("[1, 2]"),
    "other keys": npy("{'shape': (1,)}"),
    "unknown type": npy(head(descr="'<q99'"), bytes(32)),
    "a shape of text": npy(head("('a',)"), bytes(8)),
    "a shape of truth": npy(head("(True,)"), bytes(8)),
    "huge header": b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**32 - 1) + b"x" * 100,
    "long header": npy(head() + " " * 50_000, bytes(32), (2, 0)),
    "deep": npy("(" * 5000),
    "version 9": npy(head(), bytes(32), (9, 0)),
    "empty": b"",
    "cut off": npy(head())[:20],
    "no array": b"name,x\na,1\n",
}


@pytest.mark.parametrize("name", HEADERS)
def test_wrong_arrays(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("x.npy").write_bytes(HEADERS[name])
    with pytest.raises(ValueError):  # noqa: PT011
        read_array(Path("x.npy"))
    assert os.listdir() == ["x.npy"]


def test_archives_are_not_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.npy", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", npy(head("(12500000,)"), bytes(100_000_000)))
    assert (tmp_path / "bomb.npy").stat().st_size < 200_000
    with pytest.raises(ValueError, match=r"\.npz archive"):
        read_array(tmp_path / "bomb.npy")


def test_streams_without_an_end(monkeypatch):
    monkeypatch.setattr(files, "_MOST_STREAMED", 1000)
    with pytest.raises(ValueError, match="does not end"):
        read_text(Path("/dev/zero"))
    with pytest.raises(ValueError, match="does not end"):
        read_array(Path("/dev/zero"))


# -- cells -----------------------------------------------------------------------------------------------------

NAMES = [
    "=1+2", "+1+2", "-1+2", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "'=1", "''=1", "'", "''", "'tis", "'-5", "-5", "+5",
    "-5.0e-3", "-", "=", " =1", "' =1", " a ", "' a ", "a ", "a,b", "a;b", "a\tb", 'a"b', '"', "a\nb", "a\rb", "a\r\nb",
    "\uff1d1", "\ufeff=1", "-inf", "nan", "é", "", "0", "007", "1e5", "'\t", "\t", "  ", "'  ", "=cmd|' /C calc'!A0",
]  # fmt: skip


def random_names(seed, n):
    rng = np.random.default_rng(seed)
    alphabet = list("=+-@'\t\r\n ,;\"a1.e\ufeff\uff0b")
    return ["".join(rng.choice(alphabet, rng.integers(0, 7))) for _ in range(n)]


def test_marked_cells_come_back_as_they_were():
    for name in [*NAMES, *random_names(0, 20_000)]:
        assert unmarked(marked(name)) == name


def test_no_cell_would_be_run():
    number = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
    for name in [*NAMES, *random_names(1, 20_000)]:
        cell = marked(name)
        assert cell[:1] not in tuple("=+-@\t\r\n") or number.fullmatch(cell.strip())
        assert cell.strip()[:1] not in tuple("=+-@") or number.fullmatch(cell.strip())


def test_tables_come_back_as_they_were():
    names = [*NAMES, *random_names(2, 2000)]
    rows = [["trial", "a;b;c\td", "=n,ame"], *([str(k), name, name[::-1]] for k, name in enumerate(names))]
    assert [cells for _, cells in from_csv(to_csv(rows))] == rows
    others = pd.read_csv(io.StringIO(to_csv(rows)), dtype=str, keep_default_na=False, lineterminator="\n")
    assert [unmarked(cell) for cell in others.iloc[:, 1]] == names  # other programs read the same


def test_lines_are_counted_and_mistakes_named():
    assert from_csv('a;b\n\n"x\ny"; 2\n', ";") == [(1, ["a", "b"]), (3, ["x\ny", "2"])]
    assert from_csv('"a,b";c\n1;2', ";") == [(1, ["a,b", "c"]), (2, ["1", "2"])]
    assert from_csv("") == []
    with pytest.raises(ValueError, match="line 2: .*field larger"):
        from_csv("a\n" + "x" * 17_000_000)
