"""Every file is read right, or refused with the place and the remedy."""

import pytest

from alexp.table import FileError, Table
from tests.table.cases import CASES

READ = [case for case in CASES if not case.error]
REFUSED = [case for case in CASES if case.error]


def test_there_are_enough_cases_with_names_of_their_own():
    assert len(READ) >= 30
    assert len(REFUSED) >= 20
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", READ, ids=lambda case: case.name)
def test_a_file_is_read_right(case, tmp_path):
    path = tmp_path / case.file
    path.write_bytes(case.data)
    table = Table.read(path, **case.options)
    understood = {column.name: column.kind for column in table.understood}
    assert {name: understood[name] for name in case.kinds} == case.kinds
    frame = table.domain.candidates
    assert {name: frame[name].tolist() for name in case.cells} == case.cells
    assert table.n_candidates == len(frame)
    assert str(path) in str(table.understood)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_a_file_is_refused_with_the_remedy(case, tmp_path):
    path = tmp_path / case.file
    path.write_bytes(case.data)
    with pytest.raises(FileError) as error:
        Table.read(path, **case.options)
    assert str(path) in str(error.value)
    for part in case.error:
        assert part in str(error.value)


def test_fifty_megabytes_are_read(tmp_path):
    row = ";".join(f"{k / 7:.6f}".replace(".", ",") for k in range(1, 31))
    lines = [f"c{k};{row};{('DMF', 'water', 'MeOH')[k % 3]}" for k in range(180_000)]
    path = tmp_path / "large.csv"
    path.write_text("\n".join([";".join(["name", *(f"x{k}" for k in range(30)), "solvent"]), *lines]))
    assert path.stat().st_size > 50_000_000
    table = Table.read(path)
    assert table.n_candidates == 180_000
    kinds = [column.kind for column in table.understood]
    assert kinds == ["id", *["number"] * 30, "words"]
    assert table.understood["x29"].becomes.startswith("left out: the same")
    assert table.domain.candidates["x0"].iloc[5] == pytest.approx(1 / 7, abs=1e-6)
