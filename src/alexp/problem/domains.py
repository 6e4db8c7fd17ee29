"""Domains: the finite set of candidate actions an algorithm chooses from, in the user's own terms."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import Action, FloatArray
from alexp.common.validation import count, finite, matrix
from alexp.common.warning import caution
from alexp.problem.contextual.balls import Ball
from alexp.problem.contextual.domains import Arms, Candidates
from alexp.problem.descriptions import Description
from alexp.problem.labels import equal_candidates


@runtime_checkable
class Domain(Protocol):
    """N candidate actions. `points` is what dictionaries are evaluated on, `domain[i]` what a user gets back."""

    @property
    def n_candidates(self) -> int:
        """N."""

    @property
    def points(self) -> Action:
        """All candidates in the form that feature maps take."""

    def __getitem__(self, index: int) -> Action:
        """Candidate `index` in the user's own form."""

    def batch(self, x: Action) -> tuple[Action, bool]:
        """Return the action or actions `x` as points for feature maps, and whether it was a single one."""

    def to_dict(self) -> Description | None:
        """JSON-safe description after packing, or None if the actions cannot be stored."""


def _bounds(lower: float, upper: float) -> tuple[float, float]:
    low, high = finite("lower", lower), finite("upper", upper)
    if low >= high:
        raise ValueError(f"lower must be below upper, got [{lower}, {upper}]")
    return low, high


class Interval:
    """[lower, upper], represented by `resolution` equally spaced points (ends included, exactly symmetric).

    >>> Interval(-1.0, 1.0, resolution=5).points.tolist()
    [-1.0, -0.5, 0.0, 0.5, 1.0]
    """

    def __init__(self, lower: float = -1.0, upper: float = 1.0, resolution: int = 2000) -> None:
        self.lower, self.upper = _bounds(lower, upper)
        self.resolution = count("resolution", resolution)
        # Integers up to rounding of one division: x and -x are then exact negatives of each other, and even
        # features tie exactly, as they do in exact arithmetic.
        steps = 2 * np.arange(self.resolution) - (self.resolution - 1)
        unit = steps / max(self.resolution - 1, 1)
        self._points: FloatArray = 0.5 * (self.lower + self.upper) + 0.5 * (self.upper - self.lower) * unit

    @property
    def n_candidates(self) -> int:
        """N = resolution."""
        return self.resolution

    @property
    def points(self) -> FloatArray:
        """Grid, shape (N,)."""
        return self._points

    def __getitem__(self, index: int) -> float:
        return float(self._points[index])

    def batch(self, x: ArrayLike) -> tuple[FloatArray, bool]:
        """Real numbers of the interval, on the grid or not."""
        points = np.asarray(x, dtype=np.float64)
        if points.ndim > 1:
            raise ValueError(f"x must be a number or a 1-D array of numbers, got shape {points.shape}")
        if not np.all((points >= self.lower) & (points <= self.upper)):
            raise ValueError(f"x must lie in [{self.lower}, {self.upper}], got {x!r}")
        return np.atleast_1d(points), points.ndim == 0

    def __repr__(self) -> str:
        return f"Interval({self.lower:g}, {self.upper:g}, resolution={self.resolution})"

    def to_dict(self) -> Description:
        """JSON-safe description."""
        return {"kind": "interval", "lower": self.lower, "upper": self.upper, "resolution": self.resolution}


class Box:
    """A box of any dimension, represented by points that fill it evenly, its corners, and optional refinements.

    The candidates are `resolution` scrambled Sobol points (fixed by `seed`), the centre, the 2^dim corners when
    dim <= 8 (linear features have their maxima there), and, for every point passed to `refined`, a cloud of
    Sobol points in ever smaller boxes around it. A full grid would need exponentially many points.

    >>> box = Box([0.0, 0.0], [1.0, 2.0], resolution=64)
    >>> box.points.shape, box.refined([[0.5, 0.5]], per_level=8, levels=2).points.shape
    ((69, 2), (85, 2))
    """

    def __init__(
        self,
        lower: Sequence[float] | FloatArray,
        upper: Sequence[float] | FloatArray,
        resolution: int = 2048,
        seed: int = 0,
        extra: ArrayLike | None = None,
    ) -> None:
        self.lower = np.atleast_1d(np.asarray(lower, dtype=np.float64))
        self.upper = np.atleast_1d(np.asarray(upper, dtype=np.float64))
        if self.lower.shape != self.upper.shape or self.lower.ndim != 1:
            sizes = f"{self.lower.size} and {self.upper.size}"
            raise ValueError(f"lower and upper must be vectors of equal length, got {sizes}")
        for low, high in zip(self.lower, self.upper, strict=True):
            _bounds(low, high)
        self.resolution, self.seed = count("resolution", resolution), count("seed", seed, 0)
        self.extra = np.empty((0, self.dim)) if extra is None else self._inside(matrix("extra", extra))
        unit = [self._sobol(self.resolution, self.seed), np.full((1, self.dim), 0.5)]
        if self.dim <= 8:
            unit.append(np.array(np.meshgrid(*[[0.0, 1.0]] * self.dim)).reshape(self.dim, -1).T)
        self._points = np.vstack([self.lower + (self.upper - self.lower) * np.vstack(unit), self.extra])

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return int(self.lower.size)

    def _sobol(self, n: int, seed: int) -> FloatArray:
        from scipy.stats import qmc  # slow to import, needed by boxes only

        return qmc.Sobol(self.dim, scramble=True, rng=np.random.default_rng(seed)).random_base2(
            int(np.ceil(np.log2(n)))
        )[:n]

    def _inside(self, points: FloatArray) -> FloatArray:
        if points.shape[1] != self.dim:
            raise ValueError(f"points must have {self.dim} coordinates, got {points.shape[1]}")
        if not np.all((points >= self.lower) & (points <= self.upper)):
            raise ValueError("points must lie inside the box")
        return points

    def refined(self, around: ArrayLike, per_level: int = 128, levels: int = 3, shrink: float = 0.25) -> Box:
        """The same box with clouds of candidates around given points (n, dim), each level `shrink` times smaller."""
        centres = self._inside(matrix("around", np.atleast_2d(np.asarray(around, dtype=np.float64))))
        span, clouds = self.upper - self.lower, [self.extra]
        for i, centre in enumerate(centres):
            for level in range(1, count("levels", levels) + 1):
                unit = self._sobol(count("per_level", per_level), self.seed + 1 + i * levels + level)
                cloud = centre + (unit - 0.5) * span * shrink**level
                clouds.append(np.clip(cloud, self.lower, self.upper))
        return Box(self.lower, self.upper, self.resolution, self.seed, np.vstack(clouds))

    @property
    def n_candidates(self) -> int:
        """N."""
        return int(self._points.shape[0])

    @property
    def points(self) -> FloatArray:
        """Candidates, shape (N, dim)."""
        return self._points

    def __getitem__(self, index: int) -> FloatArray:
        return np.array(self._points[index])

    def batch(self, x: ArrayLike) -> tuple[FloatArray, bool]:
        """Points of the box, candidates or not: shape (dim,) or (n, dim)."""
        points = np.asarray(x, dtype=np.float64)
        single = points.ndim <= 1
        return self._inside(np.atleast_2d(points)), single

    def __repr__(self) -> str:
        return f"Box({self.lower.tolist()}, {self.upper.tolist()}, {self.n_candidates} candidates)"

    def to_dict(self) -> Description:
        """JSON-safe description after packing."""
        return {
            "kind": "box",
            "lower": self.lower,
            "upper": self.upper,
            "resolution": self.resolution,
            "seed": self.seed,
            "extra": self.extra,
        }


class FiniteSet:
    """A table of candidates: an array, a DataFrame, or a list of anything. Actions come back as the user's own rows.

    >>> FiniteSet(["water", "ethanol"])[1]
    'ethanol'
    """

    def __init__(self, candidates: Action) -> None:
        if isinstance(candidates, str | bytes | dict | set) or not hasattr(candidates, "__len__"):
            raise TypeError(f"candidates must be an array, a DataFrame or a list, got {type(candidates).__name__}")
        self.candidates = candidates
        if len(candidates) == 0:
            raise ValueError("candidates must not be empty")
        if (equal := equal_candidates(candidates)) is not None:
            caution(
                f"candidates {equal[0]} and {equal[1]} are equal ({_short(self[equal[1]])}): each counts as one of its "
                "own, and looking one up finds the first; drop duplicates unless that is meant",
                UserWarning,
            )
        self._lookup: dict[Hashable, int] | None = None

    @property
    def n_candidates(self) -> int:
        """N, the number of rows."""
        return len(self.candidates)

    @property
    def points(self) -> Action:
        """The table as the user gave it."""
        return self.candidates

    def __getitem__(self, index: int) -> Action:
        if hasattr(self.candidates, "iloc"):
            return self.candidates.iloc[index]
        return self.candidates[index]

    @staticmethod
    def _key(x: object) -> Hashable:
        if isinstance(x, np.ndarray) or hasattr(x, "to_numpy"):
            values = np.asarray(x)
            return (values.shape, tuple(values.ravel().tolist()))
        if isinstance(x, list | tuple):
            return ((len(x),), tuple(x))
        return x

    def locate(self, x: object) -> int:
        """Index of the candidate equal to `x` (the first, if there are several)."""
        if self._lookup is None:
            self._lookup = {}
            for i in range(self.n_candidates):
                self._lookup.setdefault(self._key(self[i]), i)
        try:
            return self._lookup[self._key(x)]
        except KeyError:
            raise ValueError(f"x must be one of the {self.n_candidates} candidates, got {x!r}") from None

    def batch(self, x: object) -> tuple[list[int], bool]:
        """Row number of one candidate; pass many as a list of rows through `locate`."""
        return [self.locate(x)], True

    def __repr__(self) -> str:
        return f"FiniteSet({self.n_candidates} candidates: {_short(self[0])}{', ...' * (self.n_candidates > 1)})"

    def to_dict(self) -> Description | None:
        """The table, when it is made of numbers and text; None when only the user can bring it back."""
        candidates = self.candidates
        if isinstance(candidates, np.ndarray):
            return None if candidates.dtype == object else {"kind": "array", "candidates": candidates}
        if hasattr(candidates, "iloc"):
            return _frame_to_dict(candidates)
        if all(isinstance(item, str | int | float | bool) for item in candidates):
            return {"kind": "list", "candidates": list(candidates)}
        return None


def _short(candidate: Any) -> str:
    """A candidate in at most 60 characters of one line."""
    shown = candidate.to_dict() if hasattr(candidate, "to_dict") else candidate
    text = " ".join(repr(shown.tolist() if isinstance(shown, np.ndarray) else shown).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _frame_to_dict(frame: Any) -> Description | None:
    columns = {}
    for name in frame.columns:
        values = frame[name].to_list()
        if not isinstance(name, str) or not all(isinstance(v, str | int | float | bool) for v in values):
            return None
        columns[name] = values
    index = frame.index.to_list()
    if not all(isinstance(v, str | int) for v in index):
        return None
    return {"kind": "frame", "columns": columns, "index": index}


def domain_from_dict(data: Description) -> Domain:
    """Rebuild a domain from what its `to_dict` stored."""
    kind = data["kind"]
    if kind == "interval":
        return Interval(data["lower"], data["upper"], data["resolution"])
    if kind == "box":
        return Box(data["lower"], data["upper"], data["resolution"], data["seed"], data["extra"])
    if kind in ("array", "list"):
        return FiniteSet(data["candidates"])
    if kind == "frame":
        import pandas as pd

        return FiniteSet(pd.DataFrame(data["columns"], index=data["index"]))
    if kind == "arms":
        return Arms(data["names"])
    if kind == "candidates":
        return Candidates()
    if kind == "ball":
        return Ball(data["dim"], data["radius"])
    raise ValueError(f"unknown kind of domain {kind!r}")
