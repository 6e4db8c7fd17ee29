"""Domains: the finite set of candidate actions an algorithm chooses from, in the user's own terms."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NoReturn, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from alexp.common.arrays import Action, AnyArray, FloatArray, IntArray
from alexp.common.extensions import class_stored_as, stored_name
from alexp.common.extras import require
from alexp.common.validation import count, did_you_mean, finite, matrix, positive
from alexp.common.warning import caution

# Candidates by number, by a boolean mask, by their own text, or all of them.
Available = Sequence[int] | Sequence[bool] | Sequence[str] | AnyArray | None

_MOST_COMPARED = 200_000  # candidates up to which equal ones are looked for
_OUTSIDE = 1e-9  # by which a point on the sphere may lie outside after rounding, in radii
_NAMES_SHOWN = 5  # known candidates that an error message lists


@runtime_checkable
class Domain(Protocol):
    """N candidate actions. `points` is what dictionaries are evaluated on, `domain[i]` what a user gets back.

    A domain of your own is a subclass with `points`; where actions are not points, it has `__getitem__` and `batch` as
    well. A dataclass of numbers, text and arrays is stored by the name of its class and its fields.
    """

    @property
    def n_candidates(self) -> int:
        """N; by default the number of points."""
        return len(self.points)

    @property
    @abstractmethod
    def points(self) -> Action:
        """All candidates in the form that feature maps take."""

    def __getitem__(self, index: int) -> Action:
        """Candidate `index` in the user's own form; by default a point."""
        return self.points[index]

    def batch(self, x: Action) -> tuple[Action, bool]:
        """Return the action or actions `x` as points for feature maps, and whether it was a single one."""
        points = np.asarray(x)
        single = points.ndim < np.ndim(self.points)
        return (points[None] if single else points), single

    def to_dict(self) -> dict[str, Any] | None:
        """JSON-safe description after packing, or None if the actions cannot be stored."""
        if not is_dataclass(self):
            return None
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.init}
        plain = all(_is_plain(value) for value in values.values())
        return {"kind": stored_name(type(self)), "fields": values} if plain else None


def _is_plain(value: object) -> bool:
    """Whether a field can be stored: a number, text, an array of them, or a tuple or list of such."""
    if isinstance(value, list | tuple):
        return all(_is_plain(item) for item in value)
    if isinstance(value, np.ndarray):
        return bool(value.dtype != object)
    return value is None or isinstance(value, bool | int | float | str)


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
        self.n_candidates = self.resolution
        self.points: FloatArray = 0.5 * (self.lower + self.upper) + 0.5 * (self.upper - self.lower) * unit

    def __getitem__(self, index: int) -> float:
        return float(self.points[index])

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

    def to_dict(self) -> dict[str, Any]:
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
        self.lower, self.upper = (np.atleast_1d(np.asarray(one, dtype=np.float64)) for one in (lower, upper))
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
        self.points: FloatArray = np.vstack([self.lower + (self.upper - self.lower) * np.vstack(unit), self.extra])
        self.n_candidates = len(self.points)

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

    def __getitem__(self, index: int) -> FloatArray:
        return np.array(self.points[index])

    def batch(self, x: ArrayLike) -> tuple[FloatArray, bool]:
        """Points of the box, candidates or not: shape (dim,) or (n, dim)."""
        points = np.asarray(x, dtype=np.float64)
        single = points.ndim <= 1
        return self._inside(np.atleast_2d(points)), single

    def __repr__(self) -> str:
        return f"Box({self.lower.tolist()}, {self.upper.tolist()}, {self.n_candidates} candidates)"

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe description after packing."""
        own = {name: getattr(self, name) for name in ("lower", "upper", "resolution", "seed", "extra")}
        return {"kind": "box", **own}


class FiniteSet:
    """A table of candidates: an array, a DataFrame, or a list of anything. Actions come back as the user's own rows.

    The candidates `withheld`, by number, are proposed only where `available` names them: those of a table with a number
    that was filled in.

    >>> FiniteSet(["water", "ethanol"])[1]
    'ethanol'
    """

    def __init__(self, candidates: Action, withheld: Sequence[int] = ()) -> None:
        if isinstance(candidates, str | bytes | dict | set) or not hasattr(candidates, "__len__"):
            raise TypeError(f"candidates must be an array, a DataFrame or a list, got {type(candidates).__name__}")
        self.candidates = candidates
        if len(candidates) == 0:
            raise ValueError("candidates must not be empty")
        self.withheld = np.array(sorted({count("withheld", one, 0) for one in withheld}), dtype=np.int64)
        if self.withheld.size and self.withheld[-1] >= len(candidates):
            raise ValueError(f"withheld must hold numbers below {len(candidates)}, got {self.withheld[-1]}")
        if self.withheld.size == len(candidates):
            raise ValueError("withheld must leave a candidate that can be proposed")
        if (equal := _equal_candidates(candidates)) is not None:
            caution(
                f"candidates {equal[0]} and {equal[1]} are equal ({_short(self[equal[1]])}): each counts as a "
                "candidate of its own, and a lookup finds the first; drop duplicates unless that is intended",
                UserWarning,
            )
        self._lookup: dict[Hashable, int] | None = None
        self._named: dict[str, list[int]] | None = None

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
        if hasattr(self.candidates, "locate"):  # they find their own
            return int(self.candidates.locate(x))
        if self._lookup is None:
            self._lookup = {}
            for i in range(self.n_candidates):
                self._lookup.setdefault(self._key(self[i]), i)
        try:
            return self._lookup[self._key(x)]
        except KeyError:
            raise ValueError(f"x must be one of the {self.n_candidates} candidates, got {x!r}") from None

    def name_of(self, index: int) -> str:
        """The name of a candidate: the first column of a table, or the candidate itself."""
        x = self[index]
        return str(x.iloc[0] if hasattr(x, "iloc") else x)

    def named(self, name: object) -> int:
        """Index of the candidate with a name, see `name_of`; ValueError unless exactly one has it."""
        if self._named is None:
            self._named = {}
            for i in range(self.n_candidates):
                self._named.setdefault(self.name_of(i), []).append(i)
        found = self._named.get(str(name), [])
        if len(found) == 1:
            return found[0]
        if found:
            raise ValueError(f"candidates {found[0]} and {found[1]} both have the name {str(name)!r}; name the trial")
        raise ValueError(f"no candidate has the name {str(name)!r}{did_you_mean(str(name), list(self._named))}")

    def batch(self, x: object) -> tuple[list[int], bool]:
        """Row number of one candidate; pass many as a list of rows through `locate`."""
        return [self.locate(x)], True

    def __repr__(self) -> str:
        return f"FiniteSet({self.n_candidates} candidates: {_short(self[0])}{', ...' * (self.n_candidates > 1)})"

    def to_dict(self) -> dict[str, Any] | None:
        """The table, if it consists of numbers and text; None for other objects, which cannot be stored."""
        described = self._described()
        if described is not None and self.withheld.size:
            described["withheld"] = self.withheld.tolist()
        return described

    def _described(self) -> dict[str, Any] | None:
        candidates = self.candidates
        if isinstance(candidates, np.ndarray):
            return None if candidates.dtype == object else {"kind": "array", "candidates": candidates}
        if hasattr(candidates, "iloc"):
            return _frame_to_dict(candidates)
        if isinstance(candidates, range) and len(candidates) > _MOST_COMPARED:
            return None
        if all(isinstance(item, str | int | float | bool) for item in candidates):
            return {"kind": "list", "candidates": list(candidates)}
        return None


def _equal_candidates(candidates: object) -> tuple[int, int] | None:
    """Two candidates that cannot be told apart, by number; None if all differ, are too many, or cannot be compared."""
    if len(candidates) > _MOST_COMPARED:  # type: ignore[arg-type]
        return None
    seen: dict[Hashable, int] = {}
    rows: Any = candidates.to_numpy() if hasattr(candidates, "to_numpy") else candidates
    for number, item in enumerate(rows):
        key: Any = (np.shape(item), tuple(np.ravel(item).tolist())) if isinstance(item, np.ndarray) else item
        key = tuple(item) if isinstance(item, list) else key
        try:
            if key in seen:
                return seen[key], number
        except TypeError:
            return None  # objects without a hash
        seen[key] = number
    return None


def _short(candidate: Any) -> str:
    """A candidate in at most 60 characters of one line."""
    shown = candidate.to_dict() if hasattr(candidate, "to_dict") else candidate
    text = " ".join(repr(shown.tolist() if isinstance(shown, np.ndarray) else shown).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _frame_to_dict(frame: Any) -> dict[str, Any] | None:
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


# -- domains of contextual rounds --------------------------------------------------------------------------------


class ContextualDomain:
    """A domain whose candidates are known in the round only."""

    @property
    def n_candidates(self) -> int:
        """How many candidates every round has, K; zero where that is known in the round only."""
        return 0

    @property
    def points(self) -> Action:
        """There are none before a round."""
        self._refuse("points")

    def __getitem__(self, index: int) -> Action:
        self._refuse("numbered candidates")

    def batch(self, x: Action) -> tuple[Action, bool]:
        """Actions have features in a round only."""
        self._refuse("features of an action alone; pass context=, candidates= or features=")

    def to_dict(self) -> dict[str, Any] | None:
        """JSON-safe description."""
        raise NotImplementedError

    def _refuse(self, what: str) -> NoReturn:
        raise TypeError(f"{type(self).__name__} is a domain of contextual rounds: it has no {what}")


class Arms(ContextualDomain):
    """K named arms; every round brings a context, and all arms are there unless `available` says otherwise.

    Arms may be added while a run goes on: later rounds have them, and the run is repeated from its log where its models
    have columns for every arm.

    >>> arms = Arms(["small", "large"])
    >>> arms.add("local")
    2
    >>> arms.names, arms.locate("large"), arms[2]
    (('small', 'large', 'local'), 1, 'local')
    """

    def __init__(self, names: Iterable[str]) -> None:
        if isinstance(names, str | bytes) or not isinstance(names, Iterable):
            raise TypeError(f"names must be a list of texts, one per arm, got {names!r}")
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        for name in names:
            self.add(name)
        if not self._names:
            raise ValueError("names must not be empty")

    def add(self, name: str) -> int:
        """Add an arm, and return its number."""
        if not isinstance(name, str) or not name:
            raise TypeError(f"the name of an arm must be a text, got {type(name).__name__}: {name!r}")
        if name in self._numbers:
            raise ValueError(f"there is an arm {name!r} already; names must be distinct")
        self._numbers[name] = len(self._names)
        self._names.append(name)
        return self._numbers[name]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all arms."""
        return tuple(self._names)

    def locate(self, name: object) -> int:
        """Number of an arm."""
        number = self._numbers.get(name) if isinstance(name, str) else None
        if number is None:
            raise ValueError(f"there is no arm {name!r}; arms are {', '.join(map(repr, self._names))}")
        return number

    @property
    def n_candidates(self) -> int:
        """K, the number of arms."""
        return len(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, index: int) -> str:
        return self._names[index]

    def __repr__(self) -> str:
        return f"Arms({self._names!r})"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "arms", "names": list(self._names)}


class Candidates(ContextualDomain):
    """Every round has its own candidates, passed as candidates or as their features."""

    def __repr__(self) -> str:
        return "Candidates()"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "candidates"}


class Ball(ContextualDomain):
    """{x in R^dim: ||x|| <= radius}. An action is a point of it, an array (dim,); features are its coordinates.

    There is no table of candidates: `ask()` without arguments gives a point, and `observe(0, reward, candidates=[x])`
    takes rewards of other points. Models are `ModelClass.coordinates(dim)`, or any from `ModelClass.from_blocks`
    with dim columns. Most algorithms choose from lists and refuse a ball; `LinUCB` and `SLUCB` play on it.

    >>> Ball(3).inside([[0.6, 0.0, 0.8]]).shape
    (1, 3)
    """

    def __init__(self, dim: int, radius: float = 1.0) -> None:
        self.dim, self.radius = count("dim", dim), positive("radius", radius)

    def inside(self, points: Action) -> FloatArray:
        """Points of the ball as an array (n, dim), or an error that names a point outside; one point may be (dim,)."""
        is_one = np.ndim(points) == 1 and not isinstance(points, str | dict | set)
        rows = matrix("candidates", [points] if is_one else points)
        if rows.shape[1] != self.dim or not len(rows):
            raise ValueError(f"candidates must be points with {self.dim} coordinates, at least one, got {rows.shape}")
        norms = np.linalg.norm(rows, axis=1)
        if np.any(norms > self.radius * (1.0 + _OUTSIDE)):
            k = int(np.argmax(norms))
            raise ValueError(f"candidates must lie in the ball of radius {self.radius:g}, {k} has norm {norms[k]:.6g}")
        return rows

    def __repr__(self) -> str:
        return f"Ball({self.dim}{'' if self.radius == 1.0 else f', radius={self.radius:g}'})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ball) and (self.dim, self.radius) == (other.dim, other.radius)

    def __hash__(self) -> int:
        return hash((self.dim, self.radius))

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "ball", "dim": self.dim, "radius": self.radius}

    def _refuse(self, what: str) -> NoReturn:
        raise TypeError(f"a ball has infinitely many points: it has no {what}")


def domain_from_dict(data: dict[str, Any]) -> Domain:
    """Rebuild a domain from what its `to_dict` stored."""
    kind = data["kind"]
    if kind == "interval":
        return Interval(data["lower"], data["upper"], data["resolution"])
    if kind == "box":
        return Box(data["lower"], data["upper"], data["resolution"], data["seed"], data["extra"])
    if kind in ("array", "list"):
        return FiniteSet(data["candidates"], data.get("withheld", ()))
    if kind == "frame":
        require("pandas")
        import pandas as pd

        return FiniteSet(pd.DataFrame(data["columns"], index=data["index"]), data.get("withheld", ()))
    if kind == "arms":
        return Arms(data["names"])
    if kind == "candidates":
        return Candidates()
    if kind == "ball":
        return Ball(data["dim"], data["radius"])
    own = class_stored_as(Domain, kind) if isinstance(kind, str) and "." in kind else None
    if own is None:
        remedy = "; import the module that defines it first" if "." in str(kind) else ""
        raise ValueError(f"unknown kind of domain {kind!r}{remedy}")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in data["fields"].items()}
    make: Callable[..., Domain] = own
    return make(**values)


# -- which candidates a round may use ----------------------------------------------------------------------------


def not_withheld(domain: Domain, among: IntArray | None = None) -> IntArray | None:
    """Those of some candidates, all if None, that are proposed without being named; None for all there are."""
    if not isinstance(domain, FiniteSet) or not domain.withheld.size:
        return among
    return np.setdiff1d(np.arange(domain.n_candidates) if among is None else among, domain.withheld)


def check_available(available: Available, domain: Domain) -> IntArray | None:
    """Candidate numbers that a round may use; None for all of them.

    `available` are indices, a boolean mask of length N, or, where candidates are texts, the candidates themselves.
    """
    if available is None:
        return None
    return check_positions(available, domain.n_candidates, lambda names: _named(names, domain))


def check_positions(available: Available, n: int, by_name: Callable[[list[object]], IntArray]) -> IntArray:
    """Numbers of some of n candidates that are given by number, by a mask, or by texts that `by_name` looks up."""
    array = np.asarray(available)
    if array.dtype == bool:
        if array.shape != (n,):
            raise ValueError(f"available as a mask must have shape ({n},), got {array.shape}")
        if array.any():
            return np.flatnonzero(array)
    elif array.ndim == 1 and array.size and _holds_text(available):
        array = by_name(list(available))  # type: ignore[arg-type]
    if array.ndim != 1 or array.size == 0 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            "available must be a non-empty list of candidate indices, a boolean mask with some True, or a list of "
            "candidates where these are texts"
        )
    if array.min() < 0 or array.max() >= n:
        raise ValueError(f"available must hold indices in 0..{n - 1}, got {array.min()}..{array.max()}")
    if np.unique(array).size != array.size:
        raise ValueError("available must not list a candidate twice")
    return array.astype(np.int64)


def _holds_text(available: Action) -> bool:
    return any(isinstance(item, str) for item in available)


def _named(names: list[object], domain: Domain) -> IntArray:
    """Numbers of candidates that are given by their texts."""
    if not isinstance(domain, FiniteSet) or not isinstance(domain[0], str):
        raise ValueError(
            "available can hold texts only where the candidates are texts, a FiniteSet of names; here it takes indices "
            f"in 0..{domain.n_candidates - 1} or a boolean mask, got {names[:_NAMES_SHOWN]!r}"
        )
    numbers = []
    for name in names:
        try:
            numbers.append(domain.locate(name))
        except ValueError:
            known = ", ".join(repr(domain[i]) for i in range(min(domain.n_candidates, _NAMES_SHOWN)))
            more = ", ..." if domain.n_candidates > _NAMES_SHOWN else ""
            raise ValueError(
                f"available holds {name!r}, which is none of the {domain.n_candidates} candidates: {known}{more}; "
                "give all of them as texts, or all as indices"
            ) from None
    return np.array(numbers, dtype=np.int64)
