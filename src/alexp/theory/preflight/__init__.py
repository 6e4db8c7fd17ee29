"""A look at a problem before it is run: what is identifiable, how wide certificates will be, what it will cost."""

from alexp.theory.preflight.preflight import Preflight, preflight

__all__ = ["Preflight", "preflight"]
