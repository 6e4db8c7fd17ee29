"""docs/theory.md: no public function is left without a place in it."""

from pathlib import Path

from alexp import theory

PAGE = (Path(__file__).parents[2] / "docs" / "theory.md").read_text()
RESULTS = {"Band", "CMin", "Preflight", "RegretBound", "RestrictedEigenvalue"}  # what functions return


def test_every_function_has_its_row():
    for name in set(theory.__all__) - RESULTS:
        assert name in PAGE, name


def test_coverage_table_is_filled_and_within_its_promise():
    table = PAGE.split("<!-- coverage: begin")[1].split("<!-- coverage: end -->")[0]
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| ") and "statement" not in line]
    assert len(rows) >= 20
    for row in rows:
        assert float(row[1]) <= 0.05 + 0.0147
        assert float(row[2]) <= 0.2 + 0.0269
