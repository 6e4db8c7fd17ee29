"""Runs of a comparison as one table on disk, to which later runs are added."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from alexp.common.files import write_text

if TYPE_CHECKING:
    import pandas as pd


def merged(old: pd.DataFrame, new: pd.DataFrame, key: Sequence[str]) -> pd.DataFrame:
    """Both tables; where both have runs with the same `key`, the new ones."""
    import pandas as pd

    again = set(new[list(key)].itertuples(index=False, name=None))
    kept = [one not in again for one in old[list(key)].itertuples(index=False, name=None)]
    return pd.concat([old[kept], new], ignore_index=True)


def store_runs(runs: pd.DataFrame, path: Path) -> None:
    """Write runs as CSV."""
    write_text(path, runs.to_csv(index=False, float_format="%.5g"))


def keep_runs(new: pd.DataFrame, path: Path, command: str, key: Sequence[str]) -> None:
    """Write runs beside those that are stored; where both have the same `key`, the new ones stay."""
    store_runs(merged(stored_runs(path, command), new, key) if path.exists() else new, path)


def stored_runs(path: Path, command: str) -> pd.DataFrame:
    """Read runs that `store_runs` wrote; `command` makes them, if there are none."""
    import pandas as pd

    if not path.exists():
        raise FileNotFoundError(f"there are no runs {path}; run `{command}` first")
    return pd.read_csv(path, keep_default_na=False, na_values=["nan"])
