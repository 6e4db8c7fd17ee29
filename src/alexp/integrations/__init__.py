"""Where users already are: scikit-learn's transformers as models, and a companion for loops of other libraries.

`sklearn` makes models of transformers. `Companion` looks at the measurements of somebody else's loop and says which
models explain them and whether one may stop; `baybe` and `ax` read the tables of those libraries for it. None of the
three libraries is needed before it is used.
"""

from alexp.integrations.companion import Companion

__all__ = ["Companion"]
