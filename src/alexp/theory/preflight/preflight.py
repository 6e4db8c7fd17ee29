"""Look before spending money: can these models be told apart here, and what will the constants be?"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.validation import positive
from alexp.decision.designs import DOptimal, EOptimal, Uniform
from alexp.decision.first_order import independent_columns, smallest_eigenvalue
from alexp.decision.schedules import Schedules
from alexp.decision.semidefinite import block_eigenvalues, e_optimal
from alexp.problem.domains import Domain
from alexp.problem.models import ModelClass
from alexp.theory.eigenvalues import concatenation
from alexp.theory.preflight import _checks as checks
from alexp.theory.preflight._audit import AUDIT_TIMES, audit
from alexp.theory.preflight._facts import Achieved, Columns, Constant, DesignRow, ProblemFacts

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Group as RichGroup

__all__ = ["Preflight", "preflight"]


_Plan = Uniform | DOptimal | EOptimal

_RANK_WORK = 1e11  # floating-point operations up to which the rank is computed
_CLASS_COLUMNS = 2000  # columns up to which proportional columns are searched for
_DESIGN_COLUMNS = 300  # columns up to which lambda_min and D-optimal designs are computed
_SOLVER_COLUMNS = 60  # columns up to which E-optimal designs are computed
_BLOCK_WORK = 20_000  # sum of d_j^2 up to which the model-wise design is computed


@dataclass(frozen=True)
class Preflight:
    """What `preflight` found. Print it, or take `to_dataframe()` or the JSON-safe `to_dict()`.

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
        return {
            "problem": dict(self.problem),
            "columns": dict(self.columns),
            "c_min": dict(self.c_min),
            "designs": [dict(d) for d in self.designs],
            "constants": [dict(c) for c in self.constants],
            "advice": list(self.advice),
        }

    def to_dataframe(self) -> pd.DataFrame:
        """One row per number: section, quantity, value, note."""
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
        from rich.console import Console

        console = Console(width=140, no_color=True)
        with console.capture() as capture:
            console.print(self)
        return capture.get()


def preflight(
    models: ModelClass,
    domain: Domain,
    *,
    noise_std: float = 0.1,
    reward_bound: float = 1.0,
    schedules: Schedules | None = None,
) -> Preflight:
    """Check a model class on a domain before the first experiment.

    Looks at rank, duplicate and proportional models, feature norms, lambda_min under each exploration design, C_min,
    and audits the constants that ALExp would use at t = 1, 10, 100, 1000. Parts that would take minutes on large
    problems are left out and say so. E-optimal designs need ``pip install alexp[design]``.

    Parameters
    ----------
    models : the candidate models.
    domain : where they will be used.
    noise_std : as for ``ALExp``.
    reward_bound : bound on the size of the noiseless reward, as for ``ALExp``; eta_t is in its units.
    schedules : as for ``ALExp``; its defaults if None.

    >>> from alexp.problem import Interval
    >>> report = preflight(ModelClass.legendre(degree=3, size=2), Interval(resolution=51))
    >>> report.columns["rank"], report.columns["repeated_columns"]
    (4, 8)
    """
    models.require_linear("preflight", "ranks, designs and schedules are about columns")
    positive("noise_std", noise_std)
    positive("reward_bound", reward_bound)
    chosen = Schedules() if schedules is None else schedules
    features = models.matrix(domain)
    groups = list(models.groups)
    norms = checks.model_norms(features, groups, models.scales)
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
    equal, inside = checks.span_relations(features, groups)
    same = checks.equal_models(checks.column_classes(features), groups) if p <= _CLASS_COLUMNS else []
    known = {tuple(pair) for models_ in same for pair in _pairs(models_)}
    return {
        "rank": rank,
        "repeated_columns": int(models.columns_flat.size - np.unique(models.columns_flat).size),
        "duplicate_models": [[names[j] for j in group] for group in same],
        "equal_spans": [[names[a], names[b]] for a, b in equal if (a, b) not in known],
        "nested_models": [[names[a], names[b]] for a, b in inside],
        "deficient_models": [names[j] for j in checks.deficient_models(features, groups)],
    }


def _pairs(members: list[int]) -> list[tuple[int, int]]:
    return [(a, b) for i, a in enumerate(members) for b in members[i + 1 :]]


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
        {"design": name, **_design(plan if feasible else None, models, domain, features, small)}
        for name, plan, feasible in plans
    ]


def _design(plan: _Plan | None, models: ModelClass, domain: Domain, features: FloatArray, small: bool) -> Achieved:
    """lambda_min of one design both ways, and the certified bound of the problem it solves (None if it solves none)."""
    row = Achieved(distinct=None, model_wise=None, distinct_upper_bound=None, model_wise_upper_bound=None, note="")
    if plan is None:
        row["note"] = "not computed: too large for a quick look"
        return row
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the report says the same in its own words
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
