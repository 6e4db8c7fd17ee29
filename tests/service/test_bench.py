"""The benchmark runs and checks itself; its numbers are for people to read."""

from alexp_experiments.bench import service
from alexp_experiments.bench.page import markdown, verdicts


def test_records(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    records = service.bench_service(rounds=3, crowds={1: 8, 4: 8})
    assert [row["subject"] for row in records] == ["ask", "tell", "a request, 1 clients", "a request, 4 clients"]
    assert all(row["median_ms"] > 0.0 and row["p95_ms"] >= row["median_ms"] for row in records)
    assert records[0]["added_ms"] == records[0]["median_ms"] - records[0]["study_ms"]
    assert all(row["per_second"] > 0.0 and row["p99_ms"] >= row["p95_ms"] for row in records[2:])
    assert list(tmp_path.glob("alexp-bench-*")) == []
    assert "## The service" in markdown(records)
    assert verdicts(records)[1][0][0].startswith("ask over HTTP")
