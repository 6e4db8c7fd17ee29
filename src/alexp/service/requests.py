"""Request bodies: they validate requests and describe them in OpenAPI."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from math import comb
from typing import Annotated, Literal, NamedTuple, Self, Unpack

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from alexp.algorithms.base import RoundArguments
from alexp.common.arrays import Action
from alexp.common.codec import State
from alexp.common.validation import LARGEST
from alexp.problem import Arms, Box, Candidates, Fourier, Interval, Legendre, ModelClass
from alexp.problem.dictionaries import Dictionary, Polynomial, RandomFourier
from alexp.problem.domains import Domain
from alexp.problem.kernels import Kernel
from alexp.problem.plates import PlateArguments
from alexp.service.security import Limits
from alexp.study.declared import kernels_by_name, kernels_from_words
from alexp.study.tables import Terms
from alexp.table.columns import REWARD, Reading
from alexp.table.files import FileError, Lines, column_lines, lines_of, packed_cells
from alexp.table.table import Table

Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Whole = Annotated[int, Field(ge=0, lt=2**63)]
TrialNumber = Annotated[int, Field(ge=0, lt=2**63, description="Number of a trial.", examples=[0])]
Lease = Annotated[
    float | None,
    Field(gt=0.0, le=315_360_000.0, description="Seconds for which no other worker gets the trials.", examples=[600]),
]
Worker = Annotated[
    str | None,
    Field(max_length=200, description="Name of the worker; the caller's address if absent.", examples=["robot-1"]),
]
Key = Annotated[
    str | None,
    Field(
        min_length=1,
        max_length=100,
        description="Idempotency key of your choice: a call that is repeated with the same key returns the stored "
        "result and does nothing. The header Idempotency-Key does the same.",
        examples=["plate-of-monday"],
    ),
]
Delta = Annotated[float, Field(gt=0.0, lt=1.0, description="Certified statements hold with probability 1 - delta.")]

_MOST_CELLS = 10_000_000  # of a workbook or a Parquet file
_MOST_ERRORS = 1000  # of a request that are looked at


class Body(BaseModel):
    """A request. Unknown fields are refused, numbers must be finite, and types are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="wrap")
    @classmethod
    def _few_errors(cls, value: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """One error in place of very many: to list them would keep other requests waiting."""
        try:
            return handler(value)
        except ValidationError as error:
            if (number := error.error_count()) <= _MOST_ERRORS:
                raise
            text = "{number} values or names of fields are wrong, too many to list"
            raise PydanticCustomError("too_many", text, {"number": number}) from None


class RoundBody(Body):
    """The round of a request, in contextual studies."""

    context: JsonValue = Field(
        default=None,
        description="The context: a list of numbers or an object. With n, a list of n objects or lists is n contexts.",
    )
    candidates: list[JsonValue] | None = Field(
        default=None, description="Candidates of the round, for models that compute features of candidates."
    )
    features: JsonValue = Field(
        default=None, description="One row of numbers per candidate, or an object of such blocks by name."
    )
    available: list[bool] | list[Whole] | list[str] | None = Field(
        default=None, description="Which candidates may be chosen: numbers, true or false for each, or names."
    )

    def round_arguments(self) -> RoundArguments:
        """The round as keyword arguments of `ask`."""
        return {"context": _context(self.context), "candidates": self.candidates, "features": self.features}


class NamedRoundBody(RoundBody):
    """A round with optional names of its candidates."""

    ids: list[str | int | float] | None = Field(default=None, description="One name per candidate, all distinct.")

    def round_arguments(self) -> RoundArguments:
        """The round as keyword arguments of `ask`."""
        return {**super().round_arguments(), "ids": self.ids}


def _context(value: JsonValue) -> Action:
    """The context; a list of numbers becomes a vector, which is one context for any n."""
    if isinstance(value, list) and value and all(isinstance(one, int | float) for one in value):
        try:
            return np.array(value, dtype=np.float64)
        except OverflowError:
            raise ValueError("context has a number beyond the range of floats") from None
    return value


OneReward = Number | dict[str, Number]
Measured = OneReward | Annotated[list[OneReward], Field(min_length=1, max_length=1000)] | dict[str, list[Number]]
Cell = str | int | Number
Names = Annotated[list[str], Field(min_length=1, max_length=1000)]
Size = Annotated[int, Field(ge=1, le=1_000_000)]


class Built(NamedTuple):
    """Models and domain that a request describes."""

    models: ModelClass
    domain: Domain | Table


_EXAMPLE_PROBLEM: JsonDict = {
    "kind": "table",
    "csv": "solvent,celsius\nwater,20\nwater,60\nethanol,20\nethanol,60\n",
    "models": {"solvent": ["solvent"], "both": ["solvent", "celsius"]},
}


def _examples(*examples: JsonDict) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": list(examples)})


# -- tables ----------------------------------------------------------------------------------------------------


class TableFile(Body):
    """A file as it is: CSV, .xlsx or Parquet."""

    name: str = Field(min_length=1, max_length=200, description="For messages.", examples=["reactions.xlsx"])
    content: str = Field(description="The bytes of the file, in base64.")

    def data(self) -> bytes:
        """The bytes."""
        try:
            data = b64decode(self.content, validate=True)
        except ValueError:
            raise ValueError(f"file {self.name!r}: content must be base64") from None
        if (cells := packed_cells(data)) > _MOST_CELLS:
            raise ValueError(
                f"file {self.name!r} unpacks to some {cells} cells; this service takes at most {_MOST_CELLS}"
            )
        return data


Results = str | TableFile | dict[str, list[Cell | bool | None]]  # CSV text, a file, or column by column


class MemoryBody(Body):
    """Results of old campaigns."""

    memory: dict[str, Results] = Field(
        default_factory=dict,
        description="Results of old campaigns by name, each as CSV text, a file or columns: those of the table that "
        "models use, and the reward.",
    )
    reward: str | None = Field(
        default=None, max_length=200, description="The column of the results; reward in memory if absent."
    )

    def campaigns(self, limits: Limits) -> dict[str, Lines]:
        """The results as lines; raises if they are too many."""
        out = {}
        for name, given in self.memory.items():
            if isinstance(given, dict):
                out[name] = column_lines(given, name)
            else:
                file = (given.data(), given.name) if isinstance(given, TableFile) else (given, name)
                out[name] = lines_of(*file)
            _check("results", len(out[name].rows), limits.candidates)
        return out


MissingWord = Literal["refuse", "median", "drop", "leave out"]


class TableBody(Body):
    """A table of candidates; further descriptions of them, if there are any."""

    file: TableFile | None = Field(default=None, description="One candidate per line, below a line of names.")
    csv: str | None = Field(default=None, description="In place of file: the text itself.")
    columns: dict[str, list[Cell | bool | None]] | None = Field(
        default=None, description="In place of file: column by column."
    )
    id: str | None = Field(default=None, description="The column that names the candidates.")
    sheet: str | None = Field(default=None, description="Of a workbook with several.")
    kinds: dict[str, Literal["number", "log", "words", "yes/no", "SMILES", "label"]] = Field(
        default_factory=dict, description="What columns are, where that is not what the reader takes them for."
    )
    ignore: list[str] = Field(default_factory=list, description="Columns that models do not use.")
    missing: MissingWord | dict[str, MissingWord] = Field(
        default="refuse",
        description="Blank cells: an error; filled; their candidates or their columns left out. By column, with * for "
        "all others. A candidate with a number that was filled in is proposed only where available names it.",
    )
    decimal: Literal[".", ","] | dict[str, Literal[".", ","]] | None = Field(
        default=None, description="The decimal sign, or signs by column, where the cells do not tell."
    )
    replace: dict[str, str | Number] = Field(default_factory=dict, description="What to read in place of some cells.")
    header: Annotated[int | None, Field(ge=1, description="The line that has the names of the columns.")] = None
    skip: list[Whole] = Field(default_factory=list, description="Lines that are no candidates.")
    encoding: str | None = Field(default=None, max_length=40, description="Of a text.")
    reward: str | None = Field(
        default=None, max_length=200, description="The column of results: no feature; they count as measured."
    )
    models: dict[str, str | TableFile | list[str] | list[list[Number]]] = Field(
        default_factory=dict,
        description="Descriptions of the candidates by name: a file or CSV text, matched by id, rows of numbers, or "
        "names of columns of the table, which are then used in no other model.",
    )

    def table(self, limits: Limits, **stated: Unpack[Reading]) -> Table:
        """The table; raises if it exceeds the limits. What is `stated` of columns counts unless the body says more."""
        given = {"file": self.file, "csv": self.csv, "columns": self.columns}
        if sum(value is not None for value in given.values()) != 1:
            raise ValueError("csv, columns or file must be given, and only one of them")
        options: Reading = {
            "id": self.id or stated.get("id"),
            "sheet": self.sheet,
            "kinds": {**stated.get("kinds", {}), **self.kinds},
            "ignore": self.ignore,
            "missing": self.missing,
            "decimal": self.decimal,
            "replace": self.replace,
            "header": self.header,
            "skip": self.skip,
            "encoding": self.encoding,
            "reward": self.reward or stated.get("reward"),
            "reward_elsewhere": stated.get("reward_elsewhere", False),
        }
        if self.columns is not None:
            table = Table.from_columns(self.columns, **options)
        elif self.file is not None:
            table = Table.from_bytes(self.file.data(), self.file.name, **options)
        else:
            table = Table.from_bytes(self.csv or "", "csv", **options)
        _check("candidates", table.n_candidates, limits.candidates)
        for name, described in self.models.items():
            if isinstance(described, TableFile):
                table.describe(name, described.data(), file=described.name)
            else:
                with _prefixed(f"models.{name}"):
                    table.describe(name, described, file=name)
        return table


class TableProblem(TableBody, MemoryBody):
    """A table of candidates, what its models are, and old campaigns."""

    model_config = _examples(_EXAMPLE_PROBLEM)

    kind: Literal["table"]
    reward: str | None = Field(
        default=None,
        max_length=200,
        description="The column of results: no feature of the table, where they count as measured. The one in memory "
        "has the same name, or is called reward.",
    )
    kernels: str | dict[str, str] = Field(
        default="auto", description="auto, linear, or kernels by name of the description, such as tanimoto+matern:0.5."
    )
    intercept: bool = Field(default=True, description="Give every model a free constant.")
    normalize: bool = Field(default=False, description="Scale every model's features to norm at most one.")

    def table(self, limits: Limits, **stated: Unpack[Reading]) -> Table:
        """The table; raises if it or its features exceed the limits."""
        stated["reward_elsewhere"] = bool(self.memory)
        table = super().table(limits, **stated)
        _check("features", sum(values.size for values in table.features().values()), limits.features)
        if not self.memory:
            return table
        with _prefixed("memory"):
            return table.with_memory(self.campaigns(limits), self.reward or REWARD)

    @property
    def leaves_models(self) -> bool:
        """Whether the models are those that a table suggests."""
        return self.kernels == "auto" and self.intercept and not self.normalize

    def build(self, limits: Limits) -> Built:
        """Models and the table; raises if they exceed the limits."""
        table = self.table(limits)
        with _prefixed("kernels"):
            words = self.kernels
            kernels = kernels_from_words([words]) if isinstance(words, str) else kernels_by_name(words)
        models = table.models(kernels, intercept=self.intercept)
        return Built(models.normalized(table.domain) if self.normalize else models, table)


# -- intervals and boxes ---------------------------------------------------------------------------------------


class LegendreFamily(Body):
    """All subsets of so many Legendre polynomials on the interval."""

    family: Literal["legendre"]
    degree: int = Field(ge=0, le=200)
    size: int = Field(ge=1, le=200)

    def dictionary(self, domain: Interval) -> Dictionary:
        """The columns of all models."""
        return Legendre(self.degree, domain.lower, domain.upper)

    def n_columns(self, dim: int) -> int:
        """Number of columns of the dictionary."""
        return self.degree + 1


class FourierFamily(Body):
    """All subsets of so many waves; the period is the width of the interval if absent."""

    family: Literal["fourier"]
    frequencies: int = Field(ge=0, le=200)
    size: int = Field(ge=1, le=200)
    period: float | None = Field(default=None, gt=0.0)

    def dictionary(self, domain: Interval) -> Dictionary:
        """The columns of all models."""
        return Fourier(self.frequencies, domain.upper - domain.lower if self.period is None else self.period)

    def n_columns(self, dim: int) -> int:
        """Number of columns of the dictionary."""
        return 2 * self.frequencies + 1


class PolynomialFamily(Body):
    """All subsets of so many monomials of the coordinates."""

    family: Literal["polynomial"]
    degree: int = Field(ge=0, le=50)
    size: int = Field(ge=1, le=200)

    def dictionary(self, domain: Interval | Box) -> Dictionary:
        """The columns of all models."""
        return Polynomial(self.degree, domain.dim if isinstance(domain, Box) else 1)

    def n_columns(self, dim: int) -> int:
        """Number of columns of the dictionary."""
        return comb(dim + self.degree, self.degree)


class RandomFourierFamily(Body):
    """All subsets of so many random Fourier features of a Gaussian kernel."""

    family: Literal["random-fourier"]
    features: int = Field(ge=1, le=2000)
    size: int = Field(ge=1, le=2000)
    lengthscale: float = Field(default=1.0, gt=0.0)
    seed: int = Field(default=0, ge=0, lt=2**63)

    def dictionary(self, domain: Interval | Box) -> Dictionary:
        """The columns of all models."""
        return RandomFourier(self.features, domain.dim if isinstance(domain, Box) else 1, self.lengthscale, self.seed)

    def n_columns(self, dim: int) -> int:
        """Number of columns of the dictionary."""
        return self.features


class KernelFamily(Body):
    """A kernel on every subset of the coordinates, at four lengthscales: finds the coordinates that matter."""

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
    with _prefixed("kernel"):
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

    def build(self, limits: Limits) -> Built:
        """Models and domain; raises if they exceed the limits."""
        _check("candidates", self.resolution, limits.candidates)
        domain = Interval(self.lower, self.upper, self.resolution)
        return Built(_built(self.models, domain, self.intercept, limits), domain)


class BoxProblem(Body):
    """Points of several coordinates, each between two ends."""

    kind: Literal["box"]
    lower: list[Number] = Field(min_length=1, max_length=64)
    upper: list[Number] = Field(min_length=1, max_length=64)
    resolution: Size = 2048
    seed: int = Field(default=0, ge=0, lt=2**63)
    models: PolynomialFamily | RandomFourierFamily | KernelFamily = Field(discriminator="family")
    intercept: bool = False

    def build(self, limits: Limits) -> Built:
        """Models and domain; raises if they exceed the limits."""
        _check("candidates x coordinates", self.resolution * len(self.lower), limits.candidates)
        domain = Box(self.lower, self.upper, self.resolution, self.seed)
        return Built(_built(self.models, domain, self.intercept, limits), domain)


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
    unions: bool = Field(default=False, description="Whether unions of the sets of features are models as well.")
    correlation: float = Field(default=0.0, ge=0.0, lt=1.0, description="Of coefficients in two arms, a priori.")
    intercept: bool = True
    example: list[JsonValue] | None = Field(default=None, description="Typical contexts, to tell units by.")

    def build(self, limits: Limits) -> Built:
        """Models and domain; raises if they exceed the limits."""
        sizes = [one if isinstance(one, int) else len(one) for one in self.features.values()]
        _check("features", len(self.arms) ** 2 * (sum(sizes) + 1), limits.features)
        with _prefixed("arms"):
            domain = Arms(self.arms)
        models = ModelClass.per_arm(
            self.features,
            domain,
            intercept=self.intercept,
            unions=self.unions,
            shared=self.shared,
            correlation=self.correlation,
            example=self.example,
        )
        return Built(models, domain)


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

    def build(self, limits: Limits) -> Built:
        """Models and domain; raises if they exceed the limits."""
        if (self.blocks is None) == (self.crossed is None):
            raise ValueError("problem needs either blocks or crossed")
        if self.blocks is not None:
            intercept = bool(self.intercept)
            return Built(ModelClass.from_blocks(self.blocks, intercept=intercept, example=self.example), Candidates())
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
        return Built(models, Candidates())


def _pair(name: str, unit: list[float]) -> tuple[float, float]:
    if len(unit) != 2:
        raise ValueError(f"units.{name} must be a scale, or a list of centre and scale")
    return unit[0], unit[1]


@contextmanager
def _prefixed(field: str) -> Iterator[None]:
    """Begin error messages with a field, which `problems` then finds in the body."""
    try:
        yield
    except FileError as error:
        raise error.under(field) from None
    except (ValueError, TypeError) as error:
        raise ValueError(f"{field}: {error}") from None


def _check(what: str, number: int, most: int) -> None:
    if number > most:
        raise ValueError(f"problem has {number} {what}; this service takes at most {most}")


MOST_TRIALS = 2000  # of one request


AIMS = ("objectives", "cost", "budget")


class Create(Body):
    """A new study."""

    model_config = _examples(
        {"name": "solvents", "random_state": 0, "problem": _EXAMPLE_PROBLEM},
        {
            "name": "polymer",
            "settings": {"noise_std": 0.05},
            "problem": {
                "kind": "interval",
                "lower": -1.0,
                "upper": 1.0,
                "resolution": 200,
                "models": {"family": "legendre", "degree": 4, "size": 2},
            },
        },
    )

    name: str = Field(min_length=1, max_length=200, description="Distinct among all studies; printable characters.")
    problem: TableProblem | IntervalProblem | BoxProblem | ArmsProblem | CandidatesProblem = Field(discriminator="kind")
    algorithm: str | None = Field(default=None, max_length=100, examples=["evidence-mixture"])
    direction: Literal["maximize", "minimize"] = "maximize"
    repeats: bool | None = Field(default=None, description="Whether a measured candidate may be proposed again.")
    expired: Literal["offer", "abandon"] | None = Field(
        default=None, description="Trials with an expired lease: offer them again (default), or abandon them."
    )
    random_state: int | None = Field(default=None, ge=0, lt=2**128, description="Seed; a random one if absent.")
    objectives: dict[str, Literal["maximize", "minimize"]] | None = Field(
        default=None,
        description="Two or three objectives in place of a direction; a name that is a column of the table is known.",
        examples=[{"yield": "maximize", "cost": "minimize"}],
    )
    cost: str | list[Number] | dict[str, Number] | None = Field(
        default=None,
        description="What an experiment costs: a column of the table, or a number per candidate; in contextual rounds "
        "a number per arm, or a block of one feature.",
    )
    budget: float | None = Field(
        default=None, ge=0.0, description="What all experiments together may cost, or a contextual round on average."
    )
    settings: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="Further arguments of the algorithm.",
        examples=[{"reward_range": [0, 100], "noise": "gaussian"}],
    )

    def aims(self) -> State:
        """Objectives, cost and budget, where they are stated."""
        return {name: value for name in AIMS if (value := getattr(self, name)) is not None}

    load_if_exists: bool = Field(default=False, description="Open the study if it exists already, and is the same.")
    key: Key = None


class Ask(NamedRoundBody):
    """Number of trials, and the round in contextual studies."""

    model_config = _examples({"n": 8, "lease": 3600, "worker": "robot-1", "key": "plate-of-monday"}, {})

    n: int | None = Field(default=None, ge=1, le=MOST_TRIALS, description="How many; one if absent.")
    distinct: bool = Field(default=False, description="An error if one list would need a candidate twice.")
    where: str | None = Field(
        default=None,
        max_length=10_000,
        description="A condition on the columns of the candidates.",
        examples=["temperature <= 105 and solvent != 'DMF'"],
    )
    at_most: dict[str, Annotated[int, Field(ge=1)]] | None = Field(
        default=None, min_length=1, description="How many of the trials may share a value of a column."
    )
    together: Names | None = Field(default=None, description="Columns that have one value for all trials.")
    lease: Lease = None
    worker: Worker = None
    key: Key = None

    def plate_arguments(self) -> PlateArguments:
        """Constraints of the plate as keyword arguments of `ask`."""
        return {"where": self.where, "at_most": self.at_most, "together": self.together}


class Result(Body):
    """The reward of one trial, which is named by its number, by its candidate, or by both."""

    trial: TrialNumber | None = None
    candidate: str | int | float | None = Field(
        default=None, description="Name of the candidate: the first column of its table."
    )
    reward: Measured | Literal["failed"] = Field(
        examples=[0.3],
        description="A number, or an object of numbers by objective; several measurements of one experiment as a list; "
        'or "failed": it failed and has no reward.',
    )
    note: str = Field(default="", max_length=2000, description="Kept in log, export and report.")


class Sure(Body):
    """Rewards far outside those so far are refused (409) unless `sure`."""

    sure: bool = Field(default=False, description="Accept rewards that look like typing errors.")
    worker: Worker = None
    key: Key = None


class Tell(Sure):
    """Rewards: all are stored, or, if any is wrong, none."""

    model_config = _examples({"results": [{"trial": 0, "reward": 0.3}], "key": "well-A1"})

    results: list[Result] = Field(min_length=1, max_length=100_000)
    if_told: Literal["raise", "same", "amend"] = Field(
        default="raise",
        description="Where a trial has a reward already: an error, an error unless it is the same, or a correction.",
    )


class ResultsFile(Body):
    """A file of results, or its text, to be read."""

    model_config = _examples({"csv": "trial;reward\n1;71,2\n2;failed\n", "amend": True})

    file: TableFile | None = Field(
        default=None, description="A line of column names: trial, or the first column of the candidates, and reward."
    )
    csv: str | None = Field(
        default=None, description="In place of file: the text itself, or lines of a name and a reward, without titles."
    )
    partial: bool = Field(default=False, description="Leave out lines without a reward.")
    amend: bool = Field(default=False, description="Where a trial has another reward already, take that of the file.")
    decimal: Literal[".", ","] | None = Field(default=None, description="The decimal sign, where rewards do not tell.")
    reward: str | None = Field(
        default=None, max_length=200, description="The column of the results; by default that of the study, or reward."
    )
    replace: dict[str, str | Number] = Field(
        default_factory=dict, description='What to read as a result in place of a cell: a number, "failed", or "".'
    )

    def terms(self) -> Terms:
        """What is said about the file beyond its cells."""
        return Terms(self.reward, self.replace, self.partial, self.decimal, self.amend)

    def source(self) -> tuple[str, bytes | str]:
        """Name for messages, and content."""
        if (self.file is None) == (self.csv is None):
            raise ValueError("csv or file must be given, and only one of them")
        return ("text", self.csv or "") if self.file is None else (self.file.name, self.file.data())


class Amend(Sure):
    """The right reward of a trial, in place of the one it has; several measurements as a list."""

    model_config = _examples({"trial": 0, "reward": 0.35})

    trial: TrialNumber
    reward: Measured


class Retract(Body):
    """A trial, to withdraw its reward."""

    model_config = _examples({"trial": 0})

    trial: TrialNumber
    worker: Worker = None
    key: Key = None


class Abandon(Body):
    """Pending trials to abandon, all or none."""

    model_config = _examples({"trials": [3, 4]})

    trials: list[TrialNumber] = Field(min_length=1, max_length=100_000)
    worker: Worker = None
    key: Key = None


class Fail(Body):
    """A trial whose experiment failed."""

    model_config = _examples({"trial": 3, "reason": "vial broke", "worker": "robot-1"})

    trial: TrialNumber | None = None
    candidate: str | int | float | None = Field(default=None, description="Name of the candidate.")
    reason: str = Field(default="", max_length=2000, description="Why; kept in log, export and report.")
    if_told: Literal["raise", "same", "amend"] = Field(
        default="raise",
        description="Where the trial has a reward or has failed already: an error, an error unless it has failed, or "
        "a correction.",
    )
    worker: Worker = None
    key: Key = None


class Observe(Sure):
    """Measurements made without an ask: all are stored, or, if any is wrong, none."""

    model_config = _examples({"observations": [{"index": 3, "reward": 0.2}]})

    observations: list[dict[str, JsonValue]] = Field(
        min_length=1,
        max_length=100_000,
        description="Each has a reward and names its candidate: by index, x, x0 and x1 and so on, or columns of the "
        "candidates' table. In contextual studies index, and some of context, candidates, features, ids, "
        "available and propensity.",
    )
    nearest: bool = Field(default=False, description="Count points off the grid for the nearest candidate.")


class Heartbeat(Body):
    """Trials that the worker still measures."""

    model_config = _examples({"trials": [3, 4], "worker": "robot-1"})

    trials: list[TrialNumber] = Field(min_length=1, max_length=100_000)
    lease: Lease = None
    worker: Worker = None


class TakeOver(Body):
    """Trials of other workers: those listed, or those with an expired lease."""

    model_config = _examples({"n": 4, "lease": 600, "worker": "robot-2"})

    trials: list[TrialNumber] | None = Field(default=None, min_length=1, max_length=100_000)
    n: Annotated[int | None, Field(ge=1, le=MOST_TRIALS)] = None
    lease: Lease = None
    worker: Worker = None


class NewCandidates(TableBody):
    """Candidates to add to a study of a table: a table with the same columns and descriptions."""

    model_config = _examples({"csv": "solvent,celsius\nmethanol,20\nmethanol,60\n"})

    kind: Literal["table"] = "table"
    worker: Worker = None
    key: Key = None


class OldCampaigns(MemoryBody):
    """Old campaigns that a study of a table learns from."""

    model_config = _examples(
        {
            "memory": {
                "2023": "solvent,celsius,yield\nwater,20,40\nwater,60,55\nmethanol,20,31\nmethanol,60,47\n"
                "ethanol,20,36\nethanol,60,50\n"
            },
            "reward": "yield",
        }
    )

    worker: Worker = None
    key: Key = None


class NewArm(Body):
    """An arm to add to a study of arms."""

    model_config = _examples({"name": "local-model"})

    name: str = Field(min_length=1, max_length=200)
    worker: Worker = None
    key: Key = None


class Policy(NamedRoundBody):
    """The round for which propensities are requested."""

    model_config = _examples({}, {"context": [0.2, 0.7]})


class Recommend(NamedRoundBody):
    """The round for which a recommendation is requested."""

    model_config = _examples({}, {"context": [0.2, 0.7]})


class Stop(RoundBody):
    """When to stop: the round, in contextual studies, and the tolerance."""

    model_config = _examples({"epsilon": 0.1})

    delta: Delta = 0.05
    epsilon: Annotated[float | None, Field(gt=0.0, description="How far from the best is good enough.")] = None
