"""Other libraries: scikit-learn's transformers as models, and a companion for loops of BayBE and Ax.

`sklearn` makes models of transformers. `Companion` reads the measurements of another loop and says which models explain
them and whether to stop; `baybe` and `ax` read the tables of those libraries for it. Each of the three libraries is
imported when it is first used.
"""

from alexp.integrations.companion import Companion

__all__ = ["Companion"]
