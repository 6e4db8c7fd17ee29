"""The contextual part of the conformance suite: rounds of 2 to 50 candidates that were never seen before.

    @pytest.mark.parametrize(("check", "problem"), alexp.testing.contextual.cases(MyAlgorithm), ids=str)
    def test_mine(check, problem):
        check(MyAlgorithm, problem)

An algorithm that says in `needs_table` or `needs_ball` why it plays no contextual rounds is only checked to say so.
"""

from __future__ import annotations

from alexp.testing.contextual.amending import check_amend, check_none_kept, check_repair
from alexp.testing.contextual.checks import (
    check_batches,
    check_direction,
    check_policy,
    check_pool,
    check_repeats_with_seed,
    check_wrong_input,
)
from alexp.testing.contextual.problems import PROBLEMS, ContextualProblem, ProblemCheck, refuses
from alexp.testing.contextual.saving import check_observed, check_save_and_load
from alexp.testing.settings import Kind

__all__ = ["CHECKS", "PROBLEMS", "ContextualProblem", "cases"]

CHECKS: tuple[ProblemCheck, ...] = (
    check_repeats_with_seed,
    check_policy,
    check_batches,
    check_direction,
    check_save_and_load,
    check_observed,
    check_amend,
    check_repair,
    check_none_kept,
    check_wrong_input,
)


def cases(kind: Kind) -> list[tuple[ProblemCheck, ContextualProblem]]:
    """All checks with all problems for a class; for one that needs a table or a ball, that it says so."""
    if kind.needs_table or kind.needs_ball:
        return [(refuses, problem) for problem in PROBLEMS]
    return [(check, problem) for problem in PROBLEMS for check in CHECKS] + [(check_pool, PROBLEMS[0])]
