"""Names of the array types, and of what users act with; shapes are given where the arrays are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Action = Any  # one action or several, in the user's own form: numbers, arrays, rows of a table, whatever
AnyArray = NDArray[Any]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
NarrowArray = NDArray[np.float32]
RealArray = NDArray[np.floating[Any]]  # of one precision throughout a call
IntArray = NDArray[np.int64]
