"""What rules, sharpness and floor of `EvidenceMixture` cost where candidates are new in every round.

``python -m alexp.experiments.contextual.rewards.rules`` prints the table of docs/clicks.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from alexp.common.codec import State
from alexp.experiments.contextual.rewards.playing import Stream, table

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
    "matching, sharpness 1, floor 0": {"rule": "matching", "sharpness": 1.0, "floor": 0.0},
    "matching, sharpness 2, floor 0": {"rule": "matching", "floor": 0.0},
    "matching, sharpness 3, floor 0": {"rule": "matching", "sharpness": 3.0, "floor": 0.0},
    "matching (default: 2, floor 0.01)": {},
    "ucb, floor 0.01": {"rule": "ucb", "floor": 0.01},
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description="Regret of rules where candidates are new in every round.")
    parser.add_argument("--seeds", type=int, default=20)
    table(STREAMS, ENTRANTS, parser.parse_args(arguments).seeds)


if __name__ == "__main__":
    main()
