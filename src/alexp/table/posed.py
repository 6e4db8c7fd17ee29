"""The problem that a caller poses: models on a domain, or a table, whose defaults are its own."""

from __future__ import annotations

from typing import NamedTuple

from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass
from alexp.table.table import Table


class Posed(NamedTuple):
    """Models and domain, and the table of its candidates if there is one.

    Of a table no candidate is measured twice, and the goal is the best.
    """

    models: ModelClass
    domain: Domain
    table: Table | None


def posed(models: ModelClass | Table, domain: Domain | Table | None) -> Posed:
    """The problem of a table alone, of a table with models of the caller's, or of models on a domain."""
    if isinstance(models, Table):
        if domain is not None:
            raise TypeError("a Table has its own candidates: leave domain out, or pass models in place of the table")
        return Posed(models.models(), models.domain, models)
    if isinstance(domain, Table):
        return Posed(models, domain.domain, domain)
    if domain is None:
        raise TypeError("domain is missing: pass the candidates, or an alexp.Table in place of models and domain")
    return Posed(models, domain, None)
