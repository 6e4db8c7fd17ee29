"""What every rule must satisfy, one of your own included."""

from __future__ import annotations

from dataclasses import replace

from alexp.algorithms.evidence_mixture import EvidenceMixture
from alexp.rules import Rule
from alexp.testing import contextual
from alexp.testing.amending import check_amend_later
from alexp.testing.plates import check_pending, check_plates, check_without_repeats
from alexp.testing.propensities import check_pending_propensities, check_propensities, check_restricted_propensities
from alexp.testing.protocol import check_available, check_save_and_load, check_small_problems
from alexp.testing.settings import PLAIN, SETTINGS, Check
from alexp.testing.symmetries import check_direction, check_looking, check_repeats_with_seed, check_scale

# Checks that depend on how a round is decided; the others look at code that all rules share.
DECIDING: tuple[Check, ...] = (
    check_repeats_with_seed,
    check_propensities,
    check_restricted_propensities,
    check_pending_propensities,
    check_plates,
    check_pending,
    check_without_repeats,
    check_save_and_load,
    check_available,
    check_direction,
    check_looking,
    check_scale,
    check_small_problems,
    check_amend_later,
)


def check_rule(rule: Rule) -> None:
    """Raise AssertionError unless `EvidenceMixture(rule=rule)` keeps the protocol.

    The same seed gives the same run; propensities are those of the draws; plates hold different candidates; rewards in
    other units change nothing; a saved run goes on, to the last bit; all of it on tables and in contextual rounds. It
    takes some ten seconds.
    """
    for setting in SETTINGS:
        if not setting.needs:
            own = replace(setting, arguments={**setting.arguments, "rule": rule})
            for check in DECIDING if setting is PLAIN else (check_propensities, check_plates, check_save_and_load):
                check(EvidenceMixture, own)
    for problem in contextual.PROBLEMS:
        mine = replace(problem, arguments={**problem.arguments, "rule": rule})
        for contextual_check in contextual.CHECKS:
            contextual_check(EvidenceMixture, mine)
