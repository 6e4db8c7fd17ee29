"""What `forget=` gains where rewards drift, and costs where they do not.

``python -m alexp.experiments.contextual.rewards.drift`` prints the table of docs/clicks.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from alexp.common.codec import State
from alexp.experiments.contextual.rewards.playing import Stream, table

STREAMS = (
    Stream("nothing changes", 10, 1000, 0.5),
    Stream("all changes every 250 rounds", 10, 1000, 0.5, period=250),
    Stream("slow drift", 10, 1000, 0.5, drift=0.05),
)
ENTRANTS: dict[str, State] = {
    "forget=None": {"floor": 0.0},
    "forget=0.995": {"floor": 0.0, "forget": 0.995},
    "forget=0.99": {"floor": 0.0, "forget": 0.99},
    "forget=0.97": {"floor": 0.0, "forget": 0.97},
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description="Regret with and without forgetting.")
    parser.add_argument("--seeds", type=int, default=20)
    table(STREAMS, ENTRANTS, parser.parse_args(arguments).seeds)


if __name__ == "__main__":
    main()
