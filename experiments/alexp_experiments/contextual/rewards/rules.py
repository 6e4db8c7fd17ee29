"""What rules, sharpness and floor of `EvidenceMixture` cost where candidates are new in every round.

``python -m alexp_experiments.contextual.rewards.rules`` prints the table "rules" of docs/clicks.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from alexp.common.codec import State
from alexp.rules import Matching
from alexp_experiments.contextual.rewards.playing import Stream, table

STREAMS = (
    Stream("10 new candidates", 10, 500, 0.5),
    Stream("10 new candidates, noise 2", 10, 500, 2.0),
    Stream("5 arms", 5, 500, 0.5, per_arm=True),
    Stream("2 arms, noise 1", 2, 500, 1.0, per_arm=True),
)
ENTRANTS: dict[str, State] = {
    "ucb": {"rule": "ucb"},
    "ids": {"rule": "ids"},
    "thompson, 8 draws": {"rule": "thompson"},
    "matching, sharpness 1, floor 0": {"rule": Matching(), "floor": 0.0},
    "matching, sharpness 2, floor 0": {"rule": Matching(sharpness=2.0), "floor": 0.0},
    "matching, sharpness 1, floor 0.01 (default)": {},
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description="Regret of rules where candidates are new in every round.")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rounds", type=int, help="fewer rounds than the streams have")
    parser.add_argument("--workers", type=int, help="processes; all cores by default")
    chosen = parser.parse_args(arguments)
    streams = [replace(stream, rounds=chosen.rounds or stream.rounds) for stream in STREAMS]
    print(table(streams, ENTRANTS, chosen.seeds, chosen.workers))


if __name__ == "__main__":
    main()
