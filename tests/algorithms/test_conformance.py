"""Every registered algorithm through every check, over all settings that say something about it."""

import pytest

import alexp
from alexp import testing

CASES = [
    pytest.param(kind, check, setting, id=f"{name}-{check.__name__.removeprefix('check_')}-{setting}")
    for name, kind in sorted(alexp.Algorithm.registry.items())
    for check, setting in testing.cases(kind)
]


@pytest.mark.parametrize(("kind", "check", "setting"), CASES)
def test_conformance(kind, check, setting):
    check(kind, setting)


def test_settings_apply_where_the_constructor_takes_their_arguments():
    names = {name: {s.name for s in testing.settings_for(kind)} for name, kind in alexp.Algorithm.registry.items()}
    assert {name for name, known in names.items() if "own data" in known} == {
        "balancing", "corral", "d3rb", "ed2rb", "smoothed-corral",
    }  # fmt: skip
    assert {name for name, known in names.items() if "designed exploration" in known} == {
        "alexp", "estc", "etc", "ets", "exp4-ls", "popart",
    }  # fmt: skip
    assert {"noise_std", "random_state", "n_explore", "agent"} <= testing.takes(alexp.ETS)
    assert "plain" in names["uniform"]


def test_a_check_needs_no_setting():
    for check in testing.CHECKS:
        check(alexp.UniformRandom)
