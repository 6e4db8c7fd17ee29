"""The benchmark runs and checks itself; its numbers are for people to read."""

from alexp_experiments.bench.study import bench_study


def test_records(tmp_path, monkeypatch, storage):
    monkeypatch.chdir(tmp_path)
    records = bench_study(trials=60, rounds=3, storage=storage)
    assert [record["subject"] for record in records] == ["fill, per trial", "open", "ask", "tell"]
    assert all(record["median_ms"] > 0.0 for record in records)
    assert list(tmp_path.glob("alexp-bench-*")) == []
