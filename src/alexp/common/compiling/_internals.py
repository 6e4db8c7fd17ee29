"""The type of Numba's and LLVM's own objects, which are typed in part, and differently by every version."""

from typing import Any

Internal = Any
