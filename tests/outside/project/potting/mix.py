"""A command."""

from alexp.extend import ModelClass, algorithm_named
from potting.simplex import Simplex


def mix(parts: str, n: int = 3, algorithm: str = "ridge-thompson") -> None:
    """Propose mixtures of some parts, separated by commas."""
    models = ModelClass.from_maps({"shares": lambda shares: shares})
    for trial in algorithm_named(algorithm)(models, Simplex(tuple(parts.split(","))), random_state=0).ask(n):
        print(" ".join(f"{part}={share:g}" for part, share in trial.x.items()))
