"""Several half-lives beside each of them alone, where rewards drift and where they do not.

``python -m alexp_experiments.contextual.rewards.half_lives`` prints the table "half-lives" of docs/budgets.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from alexp.common.codec import State
from alexp_experiments.contextual.rewards.drift import STREAMS
from alexp_experiments.contextual.rewards.rules import Stream, table

WEIGHTS = (0.97, 0.99, 0.995, 1.0)
ARMS = Stream("4 arms, all changes every 250 rounds", 4, 1000, 0.5, per_arm=True, period=250)
ENTRANTS: dict[str, State] = {f"forget={one}": {"forget": one} for one in WEIGHTS[:-1]} | {
    "forget=None": {},
    f"forget={WEIGHTS}": {"forget": WEIGHTS},
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description="Regret with several half-lives, and with each of them.")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rounds", type=int, help="fewer rounds than the streams have")
    parser.add_argument("--workers", type=int, help="processes; all cores by default")
    chosen = parser.parse_args(arguments)
    streams = [replace(stream, rounds=chosen.rounds or stream.rounds) for stream in (*STREAMS, ARMS)]
    print(table(streams, ENTRANTS, chosen.seeds, chosen.workers))


if __name__ == "__main__":
    main()
