"""Contextual rounds for every algorithm; see `alexp.testing.contextual`."""

import pytest

import alexp
from alexp.testing import contextual

KINDS = [kind for name, kind in sorted(alexp.Algorithm.registry.items()) if kind.__module__.startswith("alexp.")]
CASES = [pytest.param(kind, *case, id=f"{kind.name}-{case[0].__name__}-{case[1]}") for kind in KINDS
         for case in contextual.cases(kind)]  # fmt: skip


@pytest.mark.filterwarnings("ignore::alexp.AssumptionWarning")
@pytest.mark.parametrize(("kind", "check", "problem"), CASES)
def test_contextual_conformance(kind, check, problem):
    check(kind, problem)
