"""Logs in the formats of other libraries, there and back."""

from alexp.evaluation.exchange.coba import from_coba, to_coba
from alexp.evaluation.exchange.feeding import feed
from alexp.evaluation.exchange.obp import from_obp, to_obp
from alexp.evaluation.exchange.vowpal import from_vw, to_vw

__all__ = ["feed", "from_coba", "from_obp", "from_vw", "to_coba", "to_obp", "to_vw"]
