"""Real tables that come with the library."""

from alexp.datasets.arylation import DirectArylation, direct_arylation

__all__ = ["DirectArylation", "direct_arylation"]
