"""The runner of the long passes finds them all, runs them side by side and prints their figures."""

import pytest

from tests.adversarial import soak


def test_every_pass_is_found():
    found = dict(soak.passes())
    assert {"interrupts", "states", "threads"} <= set(found)
    assert not {"soak", "test_soak"} & set(found)


def test_figures_are_printed_and_violations_are_told(monkeypatch, capsys):
    figures = {"tried": 1200, "violations": 0, "slowest": 0.25}
    monkeypatch.setattr(soak, "passes", lambda: iter([("mine", lambda scale, seed: figures)]))
    assert soak.main(["--scale", "0.5"]) == 0
    assert capsys.readouterr().out.startswith("Scale 0.5, seed 0.\n\n| pass | tried |")
    figures["violations"] = 2
    assert soak.main(["--seed", "7"]) == 1
    assert "| mine | 1,200 | 2 | slowest 0.25 |" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        soak.main(["--only", "yours"])


def test_passes_run_side_by_side(capsys):
    assert soak.main(["--only", "threads", "states", "--scale", "0.01", "--workers", "2"]) == 0
    rows = capsys.readouterr().out.splitlines()[4:]
    assert [row.split(" | ")[0] for row in rows] == ["| states", "| threads"]
