"""The methods of the paper's comparison: what they are called, how they are drawn, and their tuned settings."""

from __future__ import annotations

from dataclasses import dataclass

from alexp.common.style import COLOURS, DASHES


@dataclass(frozen=True)
class Method:
    """One curve of a figure; `name` is that of a task."""

    name: str
    label: str
    colour: str
    dashes: str | tuple[int, tuple[int, ...]]


_LOOKS = [
    ("alexp", "ALExp", COLOURS[0], 0),
    ("oracle", "Oracle UCB", COLOURS[6], 1),
    ("naive", "Naive UCB", COLOURS[4], 4),
    ("etc", "ETC", COLOURS[2], 2),
    ("ets", "ETS", COLOURS[5], 5),
    ("corral", "Corral (shared data)", COLOURS[1], 3),
    ("corral-own", "Corral (own data)", COLOURS[3], 6),
    ("corral-released", "Corral (released code)", COLOURS[7], 7),
    ("exp4-ix", "EXP4-IX", "#7F7F7F", 1),
    ("alexp-released", "ALExp (released code)", COLOURS[0], 3),
]
METHODS = {name: Method(name, label, colour, DASHES[d]) for name, label, colour, d in _LOOKS}

PAPER = ("alexp", "oracle", "naive", "etc", "ets", "corral")  # the curves of the paper's figures
EXTRA = ("corral-own", "corral-released", "exp4-ix", "alexp-released")
