"""Newton steps for the class of all subsets: the quadratic model, its linear term, and what to do when it is wrong."""

from __future__ import annotations

import math
from typing import NamedTuple

from alexp.common.arrays import FloatArray, IntArray
from alexp.common.compiling import compact
from alexp.estimation.lasso._cone import SNAP, cone_quadratic
from alexp.estimation.lasso._linalg import floats, integers
from alexp.estimation.lasso._quadratic import FIRST_DAMPING, LARGEST_DAMPING
from alexp.estimation.lasso._subsets import least_total
from alexp.estimation.lasso._working import Point, Working


class ConeModel(NamedTuple):
    """The quadratic model of F around the current d, for the columns that may move."""

    who: IntArray  # (>= f,) their position in the working set
    d: FloatArray  # (>= f,)
    pull: FloatArray  # (>= f,) g_i^2 / (2 mu), minus the derivative of F's first part
    linear: FloatArray  # (>= f,) the same, rescaled
    step: FloatArray  # (>= f,)
    scratch: FloatArray  # (>= f,)
    low: FloatArray  # (>= f,) least d after the step


@compact.kernel
def cone_model(columns: int) -> ConeModel:
    """Return room for a model of this many columns."""
    return ConeModel(
        integers(columns),
        floats(columns),
        floats(columns),
        floats(columns),
        floats(columns),
        floats(columns),
        floats(columns),
    )


@compact.leaf
def limit_falls(h: FloatArray, model: ConeModel, k: int, level: float) -> None:
    """Set the least d after the step: zero only for columns that would not be missed.

    With d_i = 0 and the rest as it is, |g_i| would be |g_i| / (1 - d_i x_i'(mu I + X D X')^-1 x_i): F bends sharply
    near zero, where its quadratic model is blind. A column that would then be far above the level keeps a tenth.
    """
    for a in range(k):
        model.low[a] = 0.0
        if model.d[a] > 0.0 and model.pull[a] > 0.0:
            left = 1.0 - 0.5 * model.d[a] * h[a, a] / model.pull[a]
            if left <= 0.0 or model.pull[a] > 4.0 * level * left * left:
                model.low[a] = 0.1 * model.d[a]


@compact.leaf
def rescale(h: FloatArray, model: ConeModel, k: int, size: int, tau: float, target: float) -> None:
    """Make the model's step the Newton step for 1/|g_i| = 1/kappa (free columns), 1/||g_U|| = 1/T (those at the top).

    The left sides are nearly linear in d, as in the secular equation of trust regions. kappa is the level at which the
    free columns would meet if each only felt itself, T the present value; both are scaled so that
    T^2 + (s - u) kappa^2 = (mu w)^2, the condition at the optimum. An error in them matters only to second order.
    ``target`` is (mu w)^2 / (2 mu).
    """
    top = 0.0
    free = 0.0
    mass = 0.0
    n_top = 0
    for a in range(k):
        if model.d[a] >= (1.0 - SNAP) * tau:
            top += model.pull[a]
            n_top += 1
        elif model.d[a] > 0.0:
            room = model.pull[a] / h[a, a] if h[a, a] > 0.0 else 0.0
            free += room * math.sqrt(model.pull[a])
            mass += room
    if tau == 0.0:  # everything is at zero and at the top; the s largest will be
        n_top = 0
        top = 0.0
        for a in range(k):
            if n_top < size:
                top += model.pull[a]
                n_top += 1
    level = (free / mass) ** 2 if mass > 0.0 else 0.0
    excess = math.sqrt((top + (size - n_top) * level) / target) if n_top < size else math.sqrt(top / target)
    common = 1.0 / (excess * excess) + 2.0 * (excess - 1.0)
    level /= excess * excess
    limit_falls(h, model, k, level if level > 0.0 else target / size)
    for a in range(k):
        if level == 0.0 or model.pull[a] == 0.0 or model.d[a] >= (1.0 - SNAP) * tau:
            model.linear[a] = common * model.pull[a]
        else:  # a column that meets the top before the level goes no further
            reach = 1.0 + 0.5 * (tau - model.d[a]) * h[a, a] / model.pull[a]
            ratio = min(math.sqrt(model.pull[a] / level), reach)
            model.linear[a] = model.pull[a] * (1.0 / (ratio * ratio) + 2.0 * (ratio - 1.0))


@compact.leaf
def first_order(model: ConeModel, pull: FloatArray, k: int, size: int, tau: float, rise: float, cost: float) -> float:
    """Return cost rise - sum_i pull_i x_i, the derivative of F along the step, without cancellation near the optimum.

    Since sum x = s rise, any price may be subtracted from all pulls and s times from the cost; the right one makes
    every term small by itself.
    """
    top = 0.0
    n_top = 0
    total = 0.0
    size_of = 0.0
    for a in range(k):
        total += model.step[a]
        size_of += abs(model.step[a])
        if model.d[a] >= (1.0 - SNAP) * tau:
            top += pull[a]
            n_top += 1
    price = 0.0
    if n_top < size and abs(total - size * rise) <= 1e-9 * size_of:
        price = (cost - top) / (size - n_top)
    change = (cost - top - (size - n_top) * price) * rise
    for a in range(k):
        moved = model.step[a]
        if model.d[a] >= (1.0 - SNAP) * tau:  # one that stays at the top moves with it
            moved = 0.0 if abs(moved - rise) <= SNAP * tau else moved - rise
        change -= (pull[a] - price) * moved
    return change


@compact.kernel
def damped_cone_step(
    h: FloatArray, model: ConeModel, k: int, size: int, tau: float, cost: float, damping: float
) -> tuple[float, float, float]:
    """Find a step within the cone; return tau's step, the derivative of F along it (negative) and the damping used."""
    secular = True
    while True:
        if secular:
            rescale(h, model, k, size, tau, cost)
        else:
            for a in range(k):
                model.linear[a] = model.pull[a]
        rise = cone_quadratic(h, model.linear, k, size, cost, damping, model.d, model.low, tau, model.step)
        derivative = first_order(model, model.pull, k, size, tau, rise, cost)
        if derivative < 0.0 or damping > LARGEST_DAMPING:
            return rise, derivative, damping
        if not secular:
            damping = max(100.0 * damping, FIRST_DAMPING)
        secular = False


@compact.leaf
def retreat_in_cone(
    model: ConeModel,
    work: Working,
    at: Point,
    size: int,
    tau: float,
    rise: float,
    cost: float,
    mu: float,
    fraction: float,
) -> float:
    """Shorten a rejected step: columns sent to zero that now violate keep a tenth, or else everything shrinks.

    Return tau's step.
    """
    k = work.tally[4]
    repaired = False
    for a in range(k):
        g = at.g[work.member[model.who[a]]]
        if model.d[a] > 0.0 and model.step[a] == -model.d[a] and 0.5 * size * g * g > mu * cost:
            model.step[a] *= 0.9
            repaired = True
    fraction = 1.0 if repaired else max(0.1, min(fraction, 0.5))
    for a in range(k):
        model.step[a] *= fraction
        model.scratch[a] = model.d[a] + model.step[a]
    return least_total(model.scratch, k, size) - tau if repaired else fraction * rise
