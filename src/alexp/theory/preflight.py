"""Checks before the first experiment: are the models distinguishable on the domain, and what are the constants?"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, TypedDict, overload

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.extras import require
from alexp.common.validation import positive
from alexp.decision.designs import DOptimal, EOptimal, Uniform
from alexp.decision.first_order import independent_columns, smallest_eigenvalue
from alexp.decision.schedules import Schedules
from alexp.decision.semidefinite import block_eigenvalues, e_optimal
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass
from alexp.table.table import Table
from alexp.theory.confidence import corrected_lambda, printed_lambda, self_normalised_lambda_bound
from alexp.theory.eigenvalues import burn_in, concatenation, expected_explorations, explored_lambda_min_bound
from alexp.theory.regret import lasso_complexity
from alexp.theory.table_check import TableCheck, check_table

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Group as RichGroup


Pair = tuple[int, int]
# One constant of the audit: its name, its formula, and its values under t=1, t=10, ...
Constant = dict[str, str | float]


class ProblemFacts(TypedDict):
    """Sizes and feature norms."""

    models: int
    candidates: int
    columns: int
    smallest_model: int
    largest_model: int
    intercept: bool
    smallest_feature_norm: float
    median_feature_norm: float
    largest_feature_norm: float


class Columns(TypedDict):
    """Relations between the columns of the dictionary; models by name."""

    rank: int | None
    repeated_columns: int
    duplicate_models: list[list[str]]
    equal_spans: list[list[str]]
    nested_models: list[list[str]]
    deficient_models: list[str]


class DesignRow(TypedDict):
    """lambda_min of a design both ways, and certified bounds of the problem it solves; None where not computed."""

    design: str
    distinct: float | None
    model_wise: float | None
    distinct_upper_bound: float | None
    model_wise_upper_bound: float | None
    note: str


AUDIT_TIMES = (1, 10, 100, 1000)
_Plan = Uniform | DOptimal | EOptimal

_PARALLEL = 1.0 - 1e-10  # cosine from which two columns count as proportional
_PAIRS = 60  # models up to which spans are compared pair by pair
_HORIZON = 1_000_000  # rounds up to which the bound on explored data is computed
_RANK_WORK = 1e11  # floating-point operations up to which the rank is computed
_CLASS_COLUMNS = 2000  # columns up to which proportional columns are searched for
_DESIGN_COLUMNS = 300  # columns up to which lambda_min and D-optimal designs are computed
_SOLVER_COLUMNS = 60  # columns up to which E-optimal designs are computed
_BLOCK_WORK = 20_000  # sum of d_j^2 up to which the model-wise design is computed


@dataclass(frozen=True)
class Preflight:
    """The report of `preflight`. Print it, or use `to_dataframe()` or the JSON-safe `to_dict()`.

    Attributes
    ----------
    problem : sizes and feature norms.
    columns : rank, repeated columns, equal and nested models.
    c_min : C_min of the concatenation, of the distinct columns and model-wise, with certified upper bounds; None
        where it was not computed.
    designs : lambda_min of each exploration design, on the distinct columns and model-wise.
    constants : eta_t, gamma_t, lambda_t and their theoretical counterparts, formula and values.
    advice : what to do about it, most important first; empty if nothing is wrong.
    """

    problem: ProblemFacts
    columns: Columns
    c_min: dict[str, float | None]
    designs: list[DesignRow]
    constants: list[Constant]
    advice: list[str]

    def to_dict(self) -> dict[str, object]:
        """Everything as plain dicts, lists, strings and numbers."""
        return asdict(self)

    def to_dataframe(self) -> pd.DataFrame:
        """One row per number: section, quantity, value, note."""
        require("pandas")
        import pandas as pd

        rows: list[tuple[str, str, object, object]] = [
            ("problem", key, value, "") for key, value in self.problem.items()
        ]
        rows += [("columns", key, value, "") for key, value in self.columns.items()]
        rows += [("c_min", key, value, "") for key, value in self.c_min.items()]
        for design in self.designs:
            for key, value in (("distinct", design["distinct"]), ("model_wise", design["model_wise"])):
                rows.append(("designs", f"{design['design']}: {key}", value, design["note"]))
        for line in self.constants:
            for t in AUDIT_TIMES:
                rows.append(("constants", f"{line['quantity']} at t = {t}", line[f"t={t}"], line["formula"]))
        rows += [("advice", str(i + 1), text, "") for i, text in enumerate(self.advice)]
        return pd.DataFrame(rows, columns=["section", "quantity", "value", "note"])

    def _repr_html_(self) -> str:
        return str(self.to_dataframe().to_html(index=False))

    def __rich__(self) -> RichGroup:
        require("rich")
        from rich.console import Group
        from rich.markup import escape
        from rich.table import Table

        facts = Table(title="Problem", show_header=False)
        for key, fact in (*self.problem.items(), *self.columns.items()):
            facts.add_row(key.replace("_", " "), escape(_show(fact)))  # names may contain brackets
        for key, value in self.c_min.items():
            facts.add_row(f"C_min, {key.replace('_', ' ')}", _show(value))
        designs = Table("design", "distinct columns", "worst model", "note", title="lambda_min of exploration designs")
        for d in self.designs:
            designs.add_row(d["design"], _show(d["distinct"]), _show(d["model_wise"]), escape(d["note"]))
        constants = Table("constant", *(f"t = {t}" for t in AUDIT_TIMES), title="Constants")
        formulas = Table(title="where", show_header=False, box=None)
        for line in self.constants:
            constants.add_row(str(line["quantity"]), *(_show(line[f"t={t}"]) for t in AUDIT_TIMES))
            formulas.add_row(str(line["quantity"]), str(line["formula"]))
        advice = [escape(f"{i + 1}. {text}") for i, text in enumerate(self.advice)] or ["Nothing stands out."]
        return Group(facts, designs, constants, formulas, *advice)

    def __str__(self) -> str:
        require("rich")
        from rich.console import Console

        console = Console(width=140, no_color=True)
        with console.capture() as capture:
            console.print(self)
        return capture.get()


@overload
def preflight(models: Table) -> TableCheck: ...


@overload
def preflight(
    models: ModelClass,
    domain: Domain,
    *,
    noise_std: float = 0.1,
    reward_bound: float = 1.0,
    schedules: Schedules | None = None,
) -> Preflight: ...


def preflight(
    models: ModelClass | Table,
    domain: Domain | None = None,
    *,
    noise_std: float = 0.1,
    reward_bound: float = 1.0,
    schedules: Schedules | None = None,
) -> Preflight | TableCheck:
    """Check a table, or a model class on a domain, before the first experiment.

    Of a `Table`: near-duplicates, constant columns, descriptions that say the same, and how many experiments to expect.

    Looks at rank, duplicate and proportional models, feature norms, lambda_min under each exploration design, C_min,
    and audits the constants that ALExp would use at t = 1, 10, 100, 1000. Parts that would take minutes on large
    problems are omitted, with a note. E-optimal designs need ``pip install alexp[design]``.

    Parameters
    ----------
    models : the candidate models, or a table, which needs nothing else.
    domain : where they will be used.
    noise_std : as for ``ALExp``.
    reward_bound : bound on the size of the noiseless reward, as for ``ALExp``; eta_t is in its units.
    schedules : as for ``ALExp``; its defaults if None.

    >>> from alexp.problem import Interval
    >>> report = preflight(ModelClass.legendre(degree=3, size=2), Interval(resolution=51))
    >>> report.columns["rank"], report.columns["repeated_columns"]
    (4, 8)
    """
    if isinstance(models, Table):
        return check_table(models)
    if domain is None:
        raise TypeError("domain is missing: pass the candidates, or an alexp.Table in place of models and domain")
    models.require_linear("preflight", "ranks, designs and schedules are about columns")
    positive("noise_std", noise_std)
    positive("reward_bound", reward_bound)
    chosen = Schedules() if schedules is None else schedules
    features = models.matrix(domain)
    groups = list(models.groups)
    norms = model_norms(features, groups, models.scales)
    problem = _problem(models, features, norms)
    columns = _columns(models, features, groups)
    designs = _designs(models, domain, features, columns["rank"])
    eigenvalues = _c_min(models, domain, columns, designs)
    best = max((d["model_wise"] for d in designs if d["model_wise"] is not None), default=None)
    constants = audit(models, chosen, noise_std, reward_bound, float(norms.max()), best)
    return Preflight(problem, columns, eigenvalues, designs, constants, _advice(problem, columns, designs, chosen))


def _problem(models: ModelClass, features: FloatArray, norms: FloatArray) -> ProblemFacts:
    sizes = np.diff(models.offsets)
    return {
        "models": models.n_models, "candidates": features.shape[0], "columns": features.shape[1],
        "smallest_model": int(sizes.min()), "largest_model": int(sizes.max()), "intercept": bool(models.intercept),
        "smallest_feature_norm": float(norms.min()), "median_feature_norm": float(np.median(norms)),
        "largest_feature_norm": float(norms.max()),
    }  # fmt: skip


def _columns(models: ModelClass, features: FloatArray, groups: list[IntArray]) -> Columns:
    n, p = features.shape
    rank = int(independent_columns(features).size) if min(n, p) ** 2 * max(n, p) <= _RANK_WORK else None
    names = models.names
    equal, inside = span_relations(features, groups)
    same = equal_models(column_classes(features), groups) if p <= _CLASS_COLUMNS else []
    known = {pair for alike in same for pair in combinations(alike, 2)}
    return {
        "rank": rank,
        "repeated_columns": int(models.columns_flat.size - np.unique(models.columns_flat).size),
        "duplicate_models": [[names[j] for j in group] for group in same],
        "equal_spans": [[names[a], names[b]] for a, b in equal if (a, b) not in known],
        "nested_models": [[names[a], names[b]] for a, b in inside],
        "deficient_models": [names[j] for j in deficient_models(features, groups)],
    }


def _designs(models: ModelClass, domain: Domain, features: FloatArray, rank: int | None) -> list[DesignRow]:
    entries = int((np.diff(models.offsets) ** 2).sum())
    small = rank is not None and features.shape[1] <= _DESIGN_COLUMNS
    tiny = small and features.shape[1] <= _SOLVER_COLUMNS
    plans: list[tuple[str, _Plan, bool]] = [
        ("Uniform", Uniform(), True),
        ("DOptimal", DOptimal(), small),
        ("EOptimal", EOptimal(), tiny),
        ("EOptimal(model_wise=True)", EOptimal(model_wise=True), tiny and entries <= _BLOCK_WORK),
    ]
    return [
        _design(name, plan if feasible else None, models, domain, features, small) for name, plan, feasible in plans
    ]


def _design(
    name: str, plan: _Plan | None, models: ModelClass, domain: Domain, features: FloatArray, small: bool
) -> DesignRow:
    """lambda_min of one design both ways, and the certified bound of the problem it solves (None if it solves none)."""
    row: DesignRow = {
        "design": name, "distinct": None, "model_wise": None,
        "distinct_upper_bound": None, "model_wise_upper_bound": None, "note": "",
    }  # fmt: skip
    if plan is None:
        row["note"] = "not computed: too large"
        return row
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the report contains the same information
            design = plan.design(models, domain)
    except (ImportError, RuntimeError, ValueError) as error:
        row["note"] = str(error)
        return row
    row["model_wise"] = float(block_eigenvalues(features, design.weights, list(models.groups), models.scales).min())
    if small:
        row["distinct"] = smallest_eigenvalue(features[:, design.columns], design.weights)
        if design.criterion == "E model-wise":
            row["model_wise_upper_bound"] = design.upper_bound
        else:
            row["distinct_upper_bound"] = design.upper_bound
        row["note"] = "" if design.full_rank else f"{design.columns.size} independent columns"
    return row


def _c_min(models: ModelClass, domain: Domain, columns: Columns, designs: list[DesignRow]) -> dict[str, float | None]:
    """C_min three ways, read off the E-optimal designs; the upper bounds are the smallest that any design certifies."""
    rows = {row["design"]: row for row in designs}
    out = {
        "concatenation": None,
        "distinct": rows["EOptimal"]["distinct"],
        "distinct_upper_bound": _least(row["distinct_upper_bound"] for row in designs),
        "model_wise": rows["EOptimal(model_wise=True)"]["model_wise"],
        "model_wise_upper_bound": _least(row["model_wise_upper_bound"] for row in designs),
    }
    if columns["repeated_columns"]:
        out["concatenation"] = 0.0
    elif rows["EOptimal"]["distinct"] is not None:
        stacked, _ = concatenation(models, domain)
        if independent_columns(stacked).size < stacked.shape[1]:
            out["concatenation"] = 0.0
        else:  # each column once: the same problem, unless models are scaled or columns unused
            same = stacked.shape[1] == models.n_columns and bool(np.all(models.scales == 1.0))
            out["concatenation"] = out["distinct"] if same else e_optimal(stacked).value
    return out


def _least(bounds: Iterable[float | None]) -> float | None:
    return min((bound for bound in bounds if bound is not None), default=None)


def _advice(problem: ProblemFacts, columns: Columns, designs: list[DesignRow], schedules: Schedules) -> list[str]:
    out = []
    for name in columns["deficient_models"][:3]:
        out.append(f"Model {name!r} has linearly dependent columns on this domain; drop one of them.")
    for group in columns["duplicate_models"][:3]:
        out.append(f"Models {', '.join(map(repr, group[:4]))} have the same columns up to scale; keep one.")
    for a, b in columns["equal_spans"][:3]:
        out.append(f"Models {a!r} and {b!r} span the same functions here; rewards cannot tell them apart.")
    low, high = problem["smallest_feature_norm"], problem["largest_feature_norm"]
    if high > 10.0 * low:
        factor = f"a factor of {high / low:.3g}" if low > 0.0 else f"0 to {high:.3g}"
        out.append(
            f"Feature norms differ by {factor} between models, and the Lasso favours the large ones: use "
            "models.normalized(domain)."
        )
    elif high > 1.0 + 1e-9:
        out.append(
            f"Features reach norm {high:.3g}; the theorems assume 1. The printed lambda_t is too small by that "
            "factor, unless you use models.normalized(domain)."
        )
    if columns["repeated_columns"]:
        out.append(
            f"{columns['repeated_columns']} columns of the concatenated features are copies, so its C_min and "
            "kappa are 0 and the paper's regret bound says nothing here; what counts is the model-wise value."
        )
    elif columns["rank"] is not None and columns["rank"] < problem["columns"]:
        out.append(
            f"The {problem['columns']} columns have rank {columns['rank']} on the {problem['candidates']} "
            "candidates, so C_min = 0; what counts is the model-wise value."
        )
    by_name = {d["design"]: d["model_wise"] for d in designs}
    uniform, best = by_name["Uniform"], by_name["EOptimal(model_wise=True)"]
    if best is not None and uniform is not None and best > 1.5 * uniform:
        out.append(f"EOptimal(model_wise=True) explores {best / max(uniform, 1e-300):.3g} times better than Uniform.")
    if schedules.lam < 0.5:
        out.append(f"lam = {schedules.lam:g} is tuned for regret; the theorem's error bound does not hold that low.")
    return out


def _show(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return "; ".join(" = ".join(item) if isinstance(item, list) else str(item) for item in value[:4]) or "none"
    return str(value)


def audit(
    models: ModelClass,
    schedules: Schedules,
    noise_std: float,
    reward_bound: float,
    feature_bound: float,
    model_wise: float | None,
) -> list[Constant]:
    """One line per constant: quantity, formula, and its value at each of AUDIT_TIMES.

    ``feature_bound`` is max_j,x ||phi_j(x)||; ``model_wise`` the best model-wise lambda_min known, or None.
    """
    n_models, size, delta = models.n_models, models.dimension, schedules.delta
    shape = (noise_std, n_models, size, delta, feature_bound)
    printed = "(2 sigma/sqrt t) sqrt(1 + 12/sqrt2 w + 5/sqrt2 sqrt(d w)), w = log(2M/delta) + (log log d)_+"

    def line(quantity: str, formula: str, function: Callable[[int], float | FloatArray]) -> Constant:
        return {"quantity": quantity, "formula": formula, **{f"t={t}": float(function(t)) for t in AUDIT_TIMES}}

    def used(name: str, formula: str, function: Callable[[int], float | FloatArray]) -> Constant:
        return line(f"{name} (used)", formula if type(schedules) is Schedules else repr(schedules), function)

    gammas = np.cumsum([schedules.gamma_t(t) for t in range(1, AUDIT_TIMES[-1] + 1)])
    repaired = "L (2 sigma/sqrt t) sqrt(1 + 5 sqrt(d w) + 12 w), w = log(2M/delta) + log log(4 e d)"
    proved = "(2 sigma/t) max_j sqrt(lmax(V_j) (logdet(V_j/rho) + 2 log(M/delta))), rho = 2 L^2"
    lines = [
        used("gamma_t", f"min(1, {schedules.gamma:g} t^(-1/4))", schedules.gamma_t),
        line("explored rounds, expected", "sum of gamma_s, s <= t", lambda t: gammas[t - 1]),
        used("eta_t", f"{schedules.eta:g} / (B sqrt t)", lambda t: schedules.eta_t(t, reward_bound)),
        used("lambda_t", f"{schedules.lam:g} x printed", lambda t: schedules.lambda_t(t, noise_std, n_models, size)),
        line("lambda_t, printed theorem", f"L {printed}", lambda t: printed_lambda(t, *shape)),
        line("lambda_t, repaired constants", repaired, lambda t: corrected_lambda(t, *shape)),
        line("lambda_t, proved (worst data)", proved, lambda t: self_normalised_lambda_bound(t, *shape)),
    ]
    if model_wise is not None and model_wise > 0.0:
        complexity = lasso_complexity(n_models, size, delta, noise_std)
        formula = "lambda_min / (B sqrt t C(M, delta, d)), model-wise lambda_min in place of C_min"
        lines.append(
            line(
                "eta_t, theorem's shape (constant one)",
                formula,
                lambda t: model_wise / (reward_bound * np.sqrt(t) * complexity),
            )
        )
        lines.append(_guarantee(schedules, model_wise, feature_bound, size, n_models))
    return lines


def _guarantee(schedules: Schedules, model_wise: float, feature_bound: float, size: int, n_models: int) -> Constant:
    """The lower bound on lambda_min of every model's data that exploration alone gives."""
    if type(schedules) is Schedules:
        expected = expected_explorations(_HORIZON, schedules.gamma)
    else:  # schedules of another shape know their own rates
        expected = np.cumsum([schedules.gamma_t(t) for t in range(1, _HORIZON + 1)])
    square = feature_bound**2
    bound = explored_lambda_min_bound(expected, model_wise, square, size, feature_bound, schedules.delta, n_models)
    start = burn_in(bound)
    since = f"positive from t = {start}" if start is not None else f"still zero at t = {_HORIZON:,}"
    return {
        "quantity": "lambda_min of every model's data, promised",
        "formula": f"explored_lambda_min_bound; {since}",
        **{f"t={t}": float(bound[t - 1]) for t in AUDIT_TIMES},
    }


def column_classes(features: FloatArray) -> IntArray:
    """A label for each column of (N, P) such that proportional columns share one, shape (P,)."""
    lengths = np.linalg.norm(features, axis=0)
    unit = features / np.where(lengths > 0.0, lengths, 1.0)
    labels = np.arange(features.shape[1])
    for column in range(1, features.shape[1]):
        cosines = np.abs(unit[:, :column].T @ unit[:, column])
        alike = np.flatnonzero(cosines > _PARALLEL)
        if alike.size:
            labels[column] = labels[alike[0]]
    return labels


def equal_models(labels: IntArray, groups: Sequence[IntArray]) -> list[list[int]]:
    """Models with the same columns up to the scale of each column, as lists of at least two."""
    members: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for j, group in enumerate(groups):
        members[tuple(sorted(labels[group].tolist()))].append(j)
    return [models for models in members.values() if len(models) > 1]


def span_relations(features: FloatArray, groups: Sequence[IntArray]) -> tuple[list[Pair], list[Pair]]:
    """Pairs of models that span the same functions on the domain, and pairs (a, b) with a strictly inside b.

    Empty beyond 60 models, where comparing every pair would take too long.
    """
    equal: list[Pair] = []
    inside: list[Pair] = []
    if len(groups) > _PAIRS:
        return equal, inside
    bases = [_basis(features[:, group]) for group in groups]
    for (a, first), (b, second) in combinations(enumerate(bases), 2):
        common = float(((first.T @ second) ** 2).sum())
        fits_a, fits_b = common > first.shape[1] - 1e-8, common > second.shape[1] - 1e-8
        if fits_a and fits_b:
            equal.append((a, b))
        elif fits_a:
            inside.append((a, b))
        elif fits_b:
            inside.append((b, a))
    return equal, inside


def model_norms(features: FloatArray, groups: Sequence[IntArray], scales: FloatArray) -> FloatArray:
    """max_x ||phi_j(x)|| of each model, shape (M,)."""
    squares = [np.einsum("ij,ij->i", features[:, g], features[:, g]).max() for g in groups]
    return np.asarray(np.sqrt(squares) / scales, dtype=np.float64)


def deficient_models(features: FloatArray, groups: Sequence[IntArray]) -> list[int]:
    """Models whose own columns are linearly dependent on the domain."""
    lengths = np.linalg.norm(features, axis=0)
    unit = features / np.where(lengths > 0.0, lengths, 1.0)
    found = []
    for j, group in enumerate(groups):
        values = np.linalg.eigvalsh(unit[:, group].T @ unit[:, group])
        if values[0] < 1e-12 * values[-1] or np.any(lengths[group] == 0.0):
            found.append(j)
    return found


def _basis(columns: FloatArray) -> FloatArray:
    """Orthonormal basis of the column space, (N, rank)."""
    lengths = np.linalg.norm(columns, axis=0)
    left, values, _ = np.linalg.svd(columns / np.where(lengths > 0.0, lengths, 1.0), full_matrices=False)
    return np.asarray(left[:, values > 1e-10 * values[0]], dtype=np.float64)
