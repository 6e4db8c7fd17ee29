import pytest

import alexp
from alexp import testing


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("name", sorted(alexp.Algorithm.registry))
def test_conformance(name, check):
    check(alexp.Algorithm.registry[name])
