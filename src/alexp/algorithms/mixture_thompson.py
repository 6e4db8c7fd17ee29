"""Thompson sampling from the evidence mixture."""

from __future__ import annotations

from typing import ClassVar

from alexp.algorithms.evidence_mixture import EvidenceMixture


class MixtureThompson(EvidenceMixture):
    """Thompson sampling from the evidence mixture: `EvidenceMixture(rule="thompson")` under a name of its own."""

    name: ClassVar[str] = "mixture-thompson"
    own_rule: ClassVar[str] = "thompson"
