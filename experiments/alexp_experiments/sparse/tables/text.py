"""What the page says around its tables."""

from collections.abc import Sequence

import numpy as np

from alexp_experiments.sparse.tables.entrants import GRID, SIZES, VECTORS, WIDE
from alexp_experiments.sparse.tables.measures import FLAT, log_slope

INTRODUCTION = """# Tables 1 and 2 of the paper, measured

The paper argues by two tables of rivals: which method needs what, and how its regret grows with the rounds n and the
models M. Here every row is played, on instances that satisfy its assumptions, and the exponents are measured. `alexp
tables --out docs` makes this page and its runs (`tables.csv`), and goes on where it was stopped; `alexp tables
--stored --out docs` writes the page again from stored runs."""

READING = f"""**How to read it.** *Exponents* are least-squares slopes of the log of mean regret on log n over n =
{", ".join(map(str, GRID))}, and on log p; 95% intervals by resampling seeds. *Printed* is the slope of the
printed bound over the same points, logarithms included and constants left out: not the exponent of its powers alone.
*Kept*, decided before anything was run: **flat** if the interval ends below {FLAT} (regret has stopped growing, and
every rate holds); **yes** if the interval begins at or below the printed slope; **no** otherwise. A *no* at these n
is no refutation: bounds are about large n, and a method whose theory has it explore for thousands of rounds has a
slope of one until then. A *yes* is no proof either: upper bounds may be loose, and most are."""


def _log_growth(widths: Sequence[int], size: int) -> str:
    """The exponent of log M in p over the widths that growth is measured on, with the numbers of models."""
    models = np.array(widths, dtype=np.float64) / size
    return f"{float(log_slope(models, np.log(models))):.2f} (M = {models[0]:.0f} .. {models[-1]:.0f})"


GROWTH = f"""Over these grids log M has an exponent in p of {_log_growth(WIDE, SIZES["contexts"][0])} on contexts and of
{_log_growth(VECTORS, SIZES["vectors"][0])} on vectors, sqrt(M) one of 0.5, M itself of one. *Of even play's* is R
at the grid's end over that of even play in the same place: a method near one has learned nothing by then, and how
that grows with p says nothing about it. A reward tells masters that see only rewards about one model of M."""

HOW = """## How it is measured

*Contexts*: 20 Gaussian candidates a round, correlation .7 in every column, p = 100 columns in groups of five, one of
which matters (coefficients U(0, 1)), noise .5: the first reference instance of the sparse literature, with the five
columns side by side. For growth p = 50 .. 1600 (M = 10 .. 320 groups) at n = 500; less where rounds take p^2 or
more. *Vectors*: a fixed set of 3 p vectors, even on the sphere of radius sqrt(p / 30), groups of two columns with
coefficients of one, noise .1; at p = 30 that is 90 unit vectors, Case 2 of Jang et al. For growth p = 30 .. 240 (90
.. 720 vectors), radii growing so that C_min, which bounds divide by, stays what it is. *Ball*: the unit ball of
R^100, noise of norm .1 in the parameters, three coordinates that matter; nothing else in the tables plays there.

Every method gets the models it is made for: the sparse ones all columns, the model-selecting ones the M groups, ModCB
nested sets of 5, 10, 20, ... columns of which the second is the smallest true one. So ALExp, the mixture and the
masters know which columns belong together; sparse methods need not. All are told the noise, a bound on rewards and
one on coefficients; where theory asks for more (n, s) the remark says so. Constants are those of the released codes
where there are any (SA Lasso .8, TH Lasso .1, DR Lasso 1 and .5 with a clip of 3, LASSO Bandit .04 and .5), and the
library's defaults elsewhere: nothing was tuned for this page. Methods that are told n play a run for every n;
`Doubling` makes them anytime."""

MASTERS_TEXT = """## Masters where released code was run

1200 unit vectors in R^600, of whose coordinates the first 12 matter (1/sqrt(12) each), noise .1, nested models of 1,
2, 4, ..., 512 columns; the released code of Zhu and Nowak (2022) was run once. What is to be repeated is the order:
the oracle before LinUCB++ before dynamic balancing. Rewards are about N(0, 1/600), smaller than the noise. That
code's widths are gamma phi' V^-1 phi, without a root; ours have the root and a factor that makes them as wide after
600 rounds."""

RELEASED_TEXT = """## Sparse bandits where released code was run

Their authors' codes on six kinds of instances, few seeds each; ours on other seeds of the same kinds. *In the band*
allows 25%, as for a port on other instances, and two standard errors of the difference."""
