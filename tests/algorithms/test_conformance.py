"""Every registered algorithm through the conformance suite, over the settings that can make a difference to it.

Representatives run all checks in all settings. Of the others, the checks that look at the algorithm's own code run on
the plain problem, and those that depend on how it decides and what it keeps run in further settings. What is left out
looks at code that all algorithms share, or at a setting that is part of another one.
"""

import pytest

import alexp
from alexp import testing

REPRESENTATIVES = ("alexp", "corral", "etc", "evidence-mixture", "linucb", "sa-lasso")  # one of each kind
SHARED = {"bad_input", "records", "generator_as_seed", "observed_direction"}  # checks of the protocol alone
DECIDING = {"propensities", "plates", "save_and_load", "direction", "scale", "amend_later"}
CONTAINED = {"restricted rounds", "own data"}  # other settings have them, too


def title(check):
    return check.__name__.removeprefix("check_")


def can_differ(name, check, setting):
    """Whether a check may fail for this algorithm in this setting and pass in all cases that are run."""
    if name in REPRESENTATIVES:
        return True
    if setting is testing.PLAIN:
        return title(check) not in SHARED
    return title(check) in DECIDING and setting.name not in CONTAINED


CASES = [
    pytest.param(
        kind, check, setting,
        id=f"{name}-{title(check)}-{setting}",
        marks=() if setting is testing.PLAIN else pytest.mark.slow,
    )
    for name, kind in sorted(alexp.Algorithm.registry.items())
    for check, setting in testing.cases(kind)
    if can_differ(name, check, setting)
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::alexp.AssumptionWarning")
@pytest.mark.parametrize(("kind", "check", "setting"), CASES)
def test_conformance(kind, check, setting):
    check(kind, setting)


def test_the_names_above_are_those_of_the_suite():
    assert set(REPRESENTATIVES) <= set(alexp.Algorithm.registry)
    assert {title(check) for check in testing.CHECKS} >= SHARED | DECIDING
    assert {setting.name for setting in testing.SETTINGS} >= CONTAINED
    met = {(check, setting.name) for _, check, setting in (case.values for case in CASES)}
    assert met == {case for name in REPRESENTATIVES for case in _cases(name)}, "every check meets every setting"


def _cases(name):
    return [(check, setting.name) for check, setting in testing.cases(alexp.Algorithm.registry[name])]


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
