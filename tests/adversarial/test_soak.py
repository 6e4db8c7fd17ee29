"""The runner of the long passes finds them all, and keeps figures of what it did not run."""

import pytest

from tests.adversarial import soak


def test_every_pass_is_found():
    found = dict(soak.passes())
    assert {"interrupts", "states", "threads"} <= set(found)
    assert not {"soak", "test_soak"} & set(found)


def test_rows_are_merged():
    old = "| b | 1 | 0 |  | 1, 0 | 3 |\n| c | 2 | 0 |  | 1, 0 | 3 |"
    page = f"before\n\n{soak.BEGIN}\n{soak.HEAD}\n{old}\n{soak.END}\nafter\n"
    rows = {"a": "| a | 5 | 0 |  | 1, 0 | 9 |", "c": "| c | 7 | 0 |  | 1, 0 | 9 |"}
    out = soak.merged(page, rows)
    assert [line[2] for line in out.splitlines() if line.endswith("|")][2:] == ["a", "b", "c"]
    assert "| c | 7 |" in out
    assert "| c | 2 |" not in out
    assert out.startswith("before\n\n")
    assert out.endswith("\nafter\n")
    assert soak.merged(out, rows) == out


def test_figures_are_written_only_at_full_scale_and_violations_are_told(monkeypatch, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(f"{soak.BEGIN}\n{soak.END}\n")
    monkeypatch.setattr(soak, "PAGE", page)
    figures = {"tried": 1200, "violations": 0, "slowest": 0.25}
    monkeypatch.setattr(soak, "passes", lambda: iter([("mine", lambda scale, seed: figures)]))
    assert soak.main(["--scale", "0.5"]) == 0
    assert "mine" not in page.read_text()
    figures["violations"] = 2
    assert soak.main(["--seed", "7"]) == 1
    assert "| mine | 1,200 | 2 | slowest 0.25 | 1, 7 |" in page.read_text()
    assert "| mine | 1,200 | 2 |" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        soak.main(["--only", "yours"])


def test_the_page_has_a_table():
    assert soak.merged(soak.PAGE.read_text(encoding="utf-8"), {}) == soak.PAGE.read_text(encoding="utf-8")
