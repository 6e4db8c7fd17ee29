"""Tables of regret after n rounds, and which of their means hang on a few locked runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from alexp.common.arrays import FloatArray
from alexp_experiments.core.statistics import estimate, locked
from alexp_experiments.core.tasks import Record
from alexp_experiments.paper.pages.captions import flow

HANGS = 0.2  # a mean hangs on locked runs if leaving them out changes it by more than this share

HEADER = ("| method | mean [95%] | median | worst | locked | best model found |", "|---|---|---|---|---|---|")


def _curves(records: Sequence[Record]) -> FloatArray:
    return np.array([record.regret for record in records])


class Hanging(NamedTuple):
    """A mean that locked runs make: how many there are, the mean, and the mean of the other runs."""

    stuck: int
    mean: float
    without: float


def hanging(records: Sequence[Record]) -> Hanging | None:
    """What the mean hangs on, or None if it does not; neither does one of runs that are mostly locked."""
    curves = _curves(records)
    bad, final = locked(curves), curves[:, -1]
    if not 0 < bad.sum() <= final.size / 2:
        return None
    mean, without = float(final.mean()), float(final[~bad].mean())
    return Hanging(int(bad.sum()), mean, without) if abs(mean - without) > HANGS * mean else None


def row(label: str, records: Sequence[Record]) -> str:
    """One line of a table."""
    curves = _curves(records)
    final = curves[:, -1]
    knows = any(record.recommended >= 0 for record in records)
    found = f"{sum(r.recommended == r.true_model for r in records)}/{len(records)}" if knows else "-"
    return (
        f"| {label} | {estimate(final)} | {np.median(final):.2f} | {final.max():.1f} "
        f"| {int(locked(curves).sum())}/{len(curves)} | {found} |"
    )


def regret_table(runs: Mapping[str, Sequence[Record]]) -> str:
    """Regret by label, and a sentence on every mean that hangs on locked runs."""
    lines = [*HEADER, *(row(label, records) for label, records in runs.items())]
    weak = {label: found for label, records in runs.items() if (found := hanging(records)) is not None}
    if weak:
        parts = [f"{label} {one.mean:.2f} ({one.without:.2f} without {one.stuck})" for label, one in weak.items()]
        n = len(next(iter(runs.values())))
        text = f"Means that hang on a few locked runs of {n}, so that medians say more: {', '.join(parts)}."
        lines += ["", flow(text)]
    return "\n".join(lines)
