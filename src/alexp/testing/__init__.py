"""The conformance suite: what every algorithm must satisfy, over a grid of settings.

For an algorithm of your own, parametrise a test over `CHECKS`:

    @pytest.mark.parametrize("check", alexp.testing.CHECKS, ids=lambda check: check.__name__)
    def test_mine(check):
        check(MyAlgorithm)

That runs each check on one small problem. `cases(MyAlgorithm)` lists all pairs of a check and a `Setting` that apply to
a class: restricted rounds, intercepts, scaled models, independent maps, rewards to be minimised, and, where the
constructor takes such arguments, agents with their own data and designed exploration:

    @pytest.mark.parametrize(("check", "setting"), alexp.testing.cases(MyAlgorithm), ids=str)
    def test_mine(check, setting):
        check(MyAlgorithm, setting)

A class lists in `example` the arguments it needs beyond the shared ones.

A kernel of your own has one check, `check_kernel(kernel, rows)`, and so has a rule, `check_rule(rule)`.
"""

from __future__ import annotations

from alexp.testing.amending import check_amend_and_back, check_amend_at_once, check_amend_later, check_retract
from alexp.testing.kernels import check_kernel
from alexp.testing.plates import check_pending, check_plates, check_without_repeats
from alexp.testing.propensities import (
    again,
    check_pending_propensities,
    check_probabilities,
    check_propensities,
    check_restricted_propensities,
)
from alexp.testing.protocol import (
    check_any_order,
    check_available,
    check_bad_input,
    check_records,
    check_save_and_load,
    check_small_problems,
)
from alexp.testing.rules import check_rule
from alexp.testing.settings import PLAIN, SETTINGS, Check, Kind, Setting, make, on_tables, settings_for, takes
from alexp.testing.symmetries import (
    check_direction,
    check_generator_as_seed,
    check_looking,
    check_observed_direction,
    check_repeats_with_seed,
    check_scale,
)

__all__ = [
    "CHECKS",
    "PLAIN",
    "SETTINGS",
    "Check",
    "Kind",
    "Setting",
    "again",
    "cases",
    "check_kernel",
    "check_rule",
    "make",
    "on_tables",
    "settings_for",
    "takes",
]

CHECKS: tuple[Check, ...] = (
    check_repeats_with_seed,
    check_generator_as_seed,
    check_probabilities,
    check_propensities,
    check_restricted_propensities,
    check_pending_propensities,
    check_plates,
    check_pending,
    check_without_repeats,
    check_any_order,
    check_save_and_load,
    check_bad_input,
    check_available,
    check_direction,
    check_observed_direction,
    check_looking,
    check_scale,
    check_small_problems,
    check_records,
    check_amend_at_once,
    check_amend_later,
    check_amend_and_back,
    check_retract,
)
_ONCE = (check_generator_as_seed, check_small_problems, check_records)  # independent of the setting


def cases(kind: Kind) -> list[tuple[Check, Setting]]:
    """All checks with all settings that apply to a class; checks that do not depend on the setting come once."""
    return [
        (check, setting) for setting in settings_for(kind) for check in CHECKS if setting is PLAIN or check not in _ONCE
    ]
