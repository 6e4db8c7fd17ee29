"""The runner of the long passes finds them all, runs them side by side and prints their figures."""

import pytest

from tests.adversarial import soak


def test_every_pass_is_found():
    found = dict(soak.passes())
    assert {"interrupts", "kills", "laboratories", "states", "threads"} <= set(found)
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


def test_passes_by_name_are_merged_into_a_page(monkeypatch, tmp_path, capsys):
    """Rows of other passes stay, unless they are of another size, of a pass that is gone, or have other columns."""
    page, figures = tmp_path / "page.md", {"tried": 3, "violations": 0}
    marks = "<!-- soak: begin (made by hand) -->\n{}<!-- soak: end -->\n\nThe end.\n"
    page.write_text(marks.format("| pass | tried | seconds |\n|---|---|---|\n| one | 2 | 85 |\n"))

    def fail(scale, seed):
        raise OSError("no such server")

    found = {"one": lambda scale, seed: figures, "two": lambda scale, seed: {"tried": 7, "violations": 0}, "ill": fail}
    monkeypatch.setattr(soak, "passes", lambda: iter(found.items()))
    top = f"Scale 1, seed 0.\n\n{soak.COLUMNS}\n"
    assert soak.main(["--only", "two", "--into", str(page)]) == 0
    assert page.read_text() == marks.format(f"{top}| two | 7 | 0 |  |\n")
    figures["kept"] = 1
    assert soak.main(["--only", "one", "--into", str(page)]) == 0
    rows = "| one | 3 | 0 | kept 1 |\n| two | 7 | 0 |  |\n"
    assert page.read_text() == marks.format(top + rows)
    assert capsys.readouterr().out.endswith(top + rows)
    assert soak.main(["--workers", "1", "--into", str(page)]) == 1  # the others are stored all the same
    assert "| ill | 0 | 1 | first OSError: no such server |\n" + rows in page.read_text()
    del found["ill"]
    assert soak.main(["--only", "two", "--into", str(page)]) == 0
    assert page.read_text() == marks.format(top + rows)
    assert soak.main(["--only", "two", "--seed", "5", "--into", str(page)]) == 0
    assert page.read_text() == marks.format(top.replace("seed 0", "seed 5") + "| two | 7 | 0 |  |\n")
    page.write_text("# Page\n")
    with pytest.raises(SystemExit, match="no part between"):
        soak.main(["--only", "one", "--into", str(page)])
