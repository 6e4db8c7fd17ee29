"""A short pass over hostile inputs; `python -c "from tests.adversarial.hostile import soak; ..."` for the whole."""

from tests.adversarial.hostile import KINDS, Case, command, laboratory, run, violations


def test_hostile_inputs():
    tried, broken = run(0.35, seed=3)
    assert broken == []
    assert tried >= 10 * len(KINDS)


def test_violations_would_be_noticed():
    def outside(folder):
        (folder / "new").write_text("x")
        return 0, ""

    with laboratory() as folder:
        assert violations(Case("", lambda: (1, "error: S3CRET")), folder)
        assert violations(Case("", lambda: (1, "Traceback (most recent call last)")), folder)
        assert violations(Case("", lambda: (3, "error: x")), folder)
        assert violations(Case("", lambda: (1, "")), folder)
        assert not violations(Case("", command("study", "list")), folder)
        assert violations(Case("", lambda: outside(folder)), folder)
