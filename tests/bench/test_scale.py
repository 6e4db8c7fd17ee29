"""How cost grows: points in processes of their own, and a large day that follows from them."""

import pytest

from alexp_experiments.bench import scale, scale_page
from alexp_experiments.bench.records import record
from alexp_experiments.bench.suite import run_benchmarks


def points(**changed):
    """Every axis with two points: the second is ten times as large and takes ten times as long."""
    out = {}
    for axis in scale.AXES:
        facts = {"cpu_ms": 2.0, "peak_mb": 100.0, "per_second": 50.0, "bytes_each": 1e4, "each_mb": 0.5, "made_ms": 4.0}
        facts |= changed.get(axis.removeprefix("scale-"), {})
        larger = facts | {"cpu_ms": 10.0 * facts["cpu_ms"], "peak_mb": 190.0}
        out[axis] = [
            record(axis, str(size), "x", axis=axis, value=size, **own) for size, own in ((100, facts), (1000, larger))
        ]
    return out


def test_a_point_is_measured_in_a_process_of_its_own():
    rows = run_benchmarks(["scale-plates"], quick=True)["records"]["scale-plates"]
    assert [row["value"] for row in rows] == [48, 192]
    assert all(row["cpu_ms"] > 0.0 and row["peak_mb"] > 50.0 for row in rows)


def test_the_large_day_follows_from_the_largest_points():
    known = points()
    assert scale.exponent(known["scale-candidates"]) == pytest.approx(1.0)
    needs = {need.part: need for need in scale.needs(known)}
    assert needs["a step on 10^9 candidates"].servers == pytest.approx(0.020 * 1e6 / 64)  # 20 ms at 1,000
    assert needs["a table of 10^9 candidates in memory"].servers == pytest.approx(0.1 * 1e9 / 512_000)
    assert needs["requests, if the study is open"].servers == pytest.approx(1e5 / 60 * 0.020 / 64)
    assert needs["all studies open at once"].servers == pytest.approx(0.5 * 1e6 / 512_000)
    assert needs["writes, one database and one study"].servers == pytest.approx(1e5 / 60 / 100)


@pytest.mark.parametrize(
    ("changed", "first"),
    [({}, "a step on 10^9 candidates"), ({"workers": {"per_second": 0.01}}, "writes, one database and one study")],
)
def test_the_page_says_what_breaks_first(changed, first):
    records = [row for rows in points(**changed).values() for row in rows]
    page = scale_page.markdown(records, "a machine.")
    assert page.splitlines()[2].startswith(f"**On a large day, {first} breaks first:")
    assert all(f"\n| {axis.removeprefix('scale-')} |" in page for axis in scale.AXES)
    with pytest.raises(ValueError, match="needs all axes"):
        scale_page.markdown(records[2:], "a machine.")
