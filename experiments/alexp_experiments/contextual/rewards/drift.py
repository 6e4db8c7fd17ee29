"""What `forget=` gains where rewards drift, and costs where they do not.

``python -m alexp_experiments.contextual.rewards.drift`` prints the table "drift" of docs/clicks.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from alexp.common.codec import State
from alexp_experiments.contextual.rewards.rules import Stream, table

STREAMS = (
    Stream("nothing changes", 10, 1000, 0.5),
    Stream("all changes every 250 rounds", 10, 1000, 0.5, period=250),
    Stream("slow drift", 10, 1000, 0.5, drift=0.05),
)
ENTRANTS: dict[str, State] = {f"forget={forget}": {"forget": forget} for forget in (None, 0.995, 0.99, 0.97)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description="Regret with and without forgetting.")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rounds", type=int, help="fewer rounds than the streams have")
    parser.add_argument("--workers", type=int, help="processes; all cores by default")
    chosen = parser.parse_args(arguments)
    streams = [replace(stream, rounds=chosen.rounds or stream.rounds) for stream in STREAMS]
    print(table(streams, ENTRANTS, chosen.seeds, chosen.workers))


if __name__ == "__main__":
    main()
