"""Problems as plain data: a table of candidates, an interval, a box, arms, or candidates of rounds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import comb
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, JsonValue

from alexp.problem import Arms, Box, Candidates, FiniteSet, Fourier, Interval, Legendre, ModelClass
from alexp.problem.dictionaries import Dictionary, Polynomial, RandomFourier
from alexp.problem.domains import Domain
from alexp.problem.kernels import Kernel
from alexp.service.limits import Limits
from alexp.service.schemas.base import Body, Number
from alexp.study.declared import declared_features, declared_table, kernels_by_name, kernels_from_words

Cell = str | int | Number
Names = Annotated[list[str], Field(min_length=1, max_length=1000)]
Size = Annotated[int, Field(ge=1, le=1_000_000)]


class Declared(NamedTuple):
    """What an algorithm is constructed with."""

    models: ModelClass
    domain: Domain


# -- tables ----------------------------------------------------------------------------------------------------


class TableProblem(Body):
    """A table of candidates, and one way to describe them per model."""

    kind: Literal["table"]
    csv: str | None = Field(default=None, description="One candidate per line, below a line of names.")
    columns: dict[str, list[Cell]] | None = Field(default=None, description="In place of csv: column by column.")
    models: dict[str, str | list[str] | list[list[Number]]] = Field(
        min_length=1,
        description="Features by name of the model: rows of numbers, CSV text, or names of columns of the table; "
        "a column of texts becomes one column of zeros and ones per text.",
    )
    kernels: str | dict[str, str] = Field(
        default="linear", description="linear, auto, or kernels by name of the model, such as tanimoto+matern:0.5."
    )
    intercept: bool = Field(default=True, description="Give every model a free constant.")
    normalize: bool = Field(default=False, description="Scale every model's features to norm at most one.")

    def build(self, limits: Limits) -> Declared:
        """Models and domain."""
        table = declared_table(self.csv, self.columns)
        _check("candidates", len(table), limits.candidates)
        matrices = {name: declared_features(name, features, table) for name, features in self.models.items()}
        _check("features", sum(values.size for values in matrices.values()), limits.features)
        with _about("kernels"):
            words = self.kernels
            kernels = kernels_from_words([words]) if isinstance(words, str) else kernels_by_name(words)
        models, domain = ModelClass.from_matrices(matrices, kernels=kernels, intercept=self.intercept), FiniteSet(table)
        return Declared(models.normalized(domain) if self.normalize else models, domain)


# -- intervals and boxes ---------------------------------------------------------------------------------------


class LegendreFamily(Body):
    """All subsets of so many Legendre polynomials on the interval."""

    family: Literal["legendre"]
    degree: int = Field(ge=0, le=200)
    size: int = Field(ge=1, le=200)

    def dictionary(self, domain: Interval) -> Dictionary:
        """The columns."""
        return Legendre(self.degree, domain.lower, domain.upper)

    def n_columns(self, dim: int) -> int:
        """P."""
        return self.degree + 1


class FourierFamily(Body):
    """All subsets of so many waves; the period is the width of the interval if absent."""

    family: Literal["fourier"]
    frequencies: int = Field(ge=0, le=200)
    size: int = Field(ge=1, le=200)
    period: float | None = Field(default=None, gt=0.0)

    def dictionary(self, domain: Interval) -> Dictionary:
        """The columns."""
        return Fourier(self.frequencies, domain.upper - domain.lower if self.period is None else self.period)

    def n_columns(self, dim: int) -> int:
        """P."""
        return 2 * self.frequencies + 1


class PolynomialFamily(Body):
    """All subsets of so many monomials of the coordinates."""

    family: Literal["polynomial"]
    degree: int = Field(ge=0, le=50)
    size: int = Field(ge=1, le=200)

    def dictionary(self, domain: Interval | Box) -> Dictionary:
        """The columns."""
        return Polynomial(self.degree, domain.dim if isinstance(domain, Box) else 1)

    def n_columns(self, dim: int) -> int:
        """P."""
        return comb(dim + self.degree, self.degree)


class RandomFourierFamily(Body):
    """All subsets of so many random Fourier features of a Gaussian kernel."""

    family: Literal["random-fourier"]
    features: int = Field(ge=1, le=2000)
    size: int = Field(ge=1, le=2000)
    lengthscale: float = Field(default=1.0, gt=0.0)
    seed: int = Field(default=0, ge=0, lt=2**63)

    def dictionary(self, domain: Interval | Box) -> Dictionary:
        """The columns."""
        return RandomFourier(self.features, domain.dim if isinstance(domain, Box) else 1, self.lengthscale, self.seed)

    def n_columns(self, dim: int) -> int:
        """P."""
        return self.features


class KernelFamily(Body):
    """A kernel on every subset of the coordinates, at four lengthscales: which coordinates matter is found out."""

    family: Literal["kernel"]
    kernel: str = Field(default="matern", examples=["matern", "rbf"])
    subsets: bool = True


def _built(family: SmallFamily | KernelFamily, domain: Interval | Box, intercept: bool, limits: Limits) -> ModelClass:
    dim = domain.dim if isinstance(domain, Box) else 1
    if isinstance(family, KernelFamily):
        _check("candidates for kernels", domain.n_candidates, limits.candidates // 10)
        if family.subsets:
            _check("coordinates of kernels on subsets", dim, 30)
        return ModelClass.from_inputs(domain, _kernel(family.kernel), subsets=family.subsets, intercept=intercept)
    columns = family.n_columns(dim)
    _check("features", domain.n_candidates * columns, limits.features)
    if family.size > columns:
        raise ValueError(f"size must be at most the {columns} columns of the family, got {family.size}")
    _check("models", comb(columns, family.size), limits.models)
    return ModelClass.subsets(family.dictionary(domain), family.size, intercept=intercept)  # type: ignore[arg-type]


def _kernel(word: str) -> Kernel:
    with _about("kernel"):
        chosen = kernels_from_words([word])
    if not isinstance(chosen, list) or len(chosen) != 1 or not isinstance(chosen[0], Kernel):
        raise ValueError(f"kernel must be one kernel, such as matern, got {word!r:.80}")
    return chosen[0]


SmallFamily = LegendreFamily | FourierFamily | PolynomialFamily | RandomFourierFamily


class IntervalProblem(Body):
    """Numbers between two ends."""

    kind: Literal["interval"]
    lower: Number = -1.0
    upper: Number = 1.0
    resolution: Size = 2000
    models: SmallFamily | KernelFamily = Field(discriminator="family")
    intercept: bool = False

    def build(self, limits: Limits) -> Declared:
        """Models and domain."""
        _check("candidates", self.resolution, limits.candidates)
        domain = Interval(self.lower, self.upper, self.resolution)
        return Declared(_built(self.models, domain, self.intercept, limits), domain)


class BoxProblem(Body):
    """Points of several coordinates, each between two ends."""

    kind: Literal["box"]
    lower: list[Number] = Field(min_length=1, max_length=64)
    upper: list[Number] = Field(min_length=1, max_length=64)
    resolution: Size = 2048
    seed: int = Field(default=0, ge=0, lt=2**63)
    models: PolynomialFamily | RandomFourierFamily | KernelFamily = Field(discriminator="family")
    intercept: bool = False

    def build(self, limits: Limits) -> Declared:
        """Models and domain."""
        _check("candidates x coordinates", self.resolution * len(self.lower), limits.candidates)
        domain = Box(self.lower, self.upper, self.resolution, self.seed)
        return Declared(_built(self.models, domain, self.intercept, limits), domain)


# -- contextual rounds -----------------------------------------------------------------------------------------

FeatureNames = Annotated[list[str], Field(max_length=1000)]
Entries = Annotated[list[Annotated[int, Field(ge=0, lt=100_000)]], Field(max_length=10_000)]
ContextSet = Annotated[int, Field(ge=1, le=10_000)] | Entries | FeatureNames


class ArmsProblem(Body):
    """Named arms that appear in ever new contexts, with coefficients of their own for every arm."""

    kind: Literal["arms"]
    arms: Names
    features: dict[str, ContextSet] = Field(
        min_length=1,
        description="Features of the context by name of the model: entries of the context vector, keys of the context "
        "object, or the length of the vector that the context has under this name.",
    )
    shared: ContextSet | None = Field(default=None, description="Features with one coefficient for all arms.")
    intercept: bool = True
    example: list[JsonValue] | None = Field(default=None, description="Typical contexts, to tell units by.")

    def build(self, limits: Limits) -> Declared:
        """Models and domain."""
        sizes = [one if isinstance(one, int) else len(one) for one in self.features.values()]
        _check("features", len(self.arms) ** 2 * (sum(sizes) + 1), limits.features)
        with _about("arms"):
            domain = Arms(self.arms)
        models = ModelClass.per_arm(
            self.features, domain, intercept=self.intercept, shared=self.shared, example=self.example
        )
        return Declared(models, domain)


class CrossedFeatures(Body):
    """Which features of the context change what an action is worth: one model per set of products."""

    context: FeatureNames
    action: Names
    order: int = Field(default=2, ge=1, le=4)
    units: dict[str, Number | list[Number]] | None = Field(
        default=None, description="Scale, or centre and scale, of features by name."
    )
    max_models: int = Field(default=256, ge=2, le=4096)


class CandidatesProblem(Body):
    """Rounds that bring their candidates along: as features in declared blocks, or by features with names."""

    kind: Literal["candidates"]
    blocks: dict[str, Annotated[int, Field(ge=1, le=10_000)]] | None = Field(
        default=None, description="One model per block of columns, by name: how many columns it has."
    )
    crossed: CrossedFeatures | None = None
    intercept: bool | None = None
    example: JsonValue = Field(default=None, description="Features of typical candidates, for blocks.")

    def build(self, limits: Limits) -> Declared:
        """Models and domain."""
        if (self.blocks is None) == (self.crossed is None):
            raise ValueError("problem needs either blocks or crossed")
        if self.blocks is not None:
            intercept = bool(self.intercept)
            return Declared(
                ModelClass.from_blocks(self.blocks, intercept=intercept, example=self.example), Candidates()
            )
        assert self.crossed is not None
        if self.example is not None:
            raise ValueError("example is for blocks; units tell the scales of crossed features")
        crossed = self.crossed
        n, units = len(crossed.context) + len(crossed.action), crossed.units or {}
        _check("products", sum(comb(n, k) for k in range(2, crossed.order + 1)), 10_000)
        pairs = {name: unit if isinstance(unit, float | int) else _pair(name, unit) for name, unit in units.items()}
        models = ModelClass.crossed(
            crossed.context,
            crossed.action,
            crossed.order,
            units=pairs,
            intercept=self.intercept is not False,
            max_models=crossed.max_models,
        )
        return Declared(models, Candidates())


def _pair(name: str, unit: list[float]) -> tuple[float, float]:
    if len(unit) != 2:
        raise ValueError(f"units.{name} must be a scale, or a list of centre and scale")
    return unit[0], unit[1]


@contextmanager
def _about(field: str) -> Iterator[None]:
    """Let messages begin with the field they are about, by which it is found in the body."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from None


def _check(what: str, number: int, most: int) -> None:
    if number > most:
        raise ValueError(f"problem has {number} {what}; this service takes at most {most}")
