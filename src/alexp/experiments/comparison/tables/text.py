"""The words of docs/real-tables.md that do not depend on the numbers."""

PROTOCOL = """\
Every row of these tables was measured by somebody, so that what an algorithm would have found can be looked up.
Rewards are z-scores over the table, without noise. Under a seed all entrants are told the same five random rows
(`observe`) and then choose for themselves; the five count as rounds. No row is measured twice. Nothing is stated:
neither noise nor bounds.

- **R(n)**: the sum of the n best rewards of the table minus the sum of those collected.
- **Gap**: the best reward of the table minus the best one found.
- **Top 1%**: the share of the best hundredth of the rows that was found.

`goal="sum"` wants a small R(n), `goal="best"` a small gap."""

ENTRANTS = """\
- *mixture of 0.1.0*: `EvidenceMixture` as version 0.1.0 had it for tables of unknown noise: linear maps,
  `noise_std=None`, `reward_bound=1`, rule "ids" with its wide beta, evidence to the power one; rows that were
  measured are not offered again. Features are centred and scaled to a squared norm of one on average. The yardstick
  of R(n). "Noise .1" is the same with `noise_std=0.1`, which 0.1.0 assumed if nothing was said; "light" has
  `light=True` as well.
- *mixture, linear maps*: the same maps with today's defaults, nothing stated. On continuous tables the maps are the
  inputs, their quadratic and cubic polynomials and a hundred random waves; "and waves" adds sines and cosines of
  every single input.
- *mixture, kernels*: today's defaults on `from_inputs(X)` (continuous tables of up to six inputs), `from_components`
  (composed rows), `from_matrices(kernels="auto")` (all others). "On whole rows" is the last one for composed rows.
- *LinUCB on one map*, *Gaussian process, one kernel* (a mixture of a single model of
  `from_matrices(kernels="auto")`): one run per map or kernel; reported is the one that was **best in hindsight**,
  which nobody can choose beforehand.
- *BoTorch SingleTaskGP*, *scikit-learn Gaussian process*, *random forest*: mean plus one standard deviation for the
  sum, (log) expected improvement for the best, refitted before every round, one run per map of the file, the best in
  hindsight reported. *Optuna TPE* plays inputs and components; the row closest to its suggestion is measured.
  Elsewhere it is left out: a category per row says nothing about other rows."""

TRIED = """\
Measured on prototypes before the defaults were chosen, six to ten seeds on twelve tables; ratios of geometric means
of R(100) to the mixture of 0.1.0 in the same series.

- *Linear maps only*, nothing stated: .85 to .88. *The same with ucb and beta = 1*: .92 in place of 1 for 0.1.0's
  prior.
- *Kernels and subsets of inputs*, evidence to the power one: .69 to .73, but on reaction tables whole runs lock on a
  region (150 beside 35), because evidence on data that it has chosen itself is too sure.
- *Evidence to a power*: 1/2 gives .715, 1/4 gives .70, and both help on reaction tables; where a model is true and
  actions may repeat they cost 9% and 29%. So the power is one where repeats are allowed.
- *One more model, the sum of all kernels*: .68 with power 1/2 and beta = .7.
- *Fixed beta = .5 where actions repeat*: locks, 3.5 times worse. *A random beta*: 44% worse.
- *Alternating a linear and a kernel mixture*: .74 to .77, better on reaction tables only.
- *First five points by k-means++ on all maps*, power 1/4, beta falling from 2 to .5: .72, and the best on reaction
  tables.
- *Expected improvement for the sum*: 1.27, but the smallest gap to the best row: hence two goals.
- *Product kernels over components alone* on direct arylation: 90 to 92 after 25 experiments, 97 to 98.5 after 50."""

ARYLATION = """\
1,728 reactions: 4 bases, 12 ligands, 4 solvents, 3 concentrations, 3 temperatures; the largest yield is 100. Fifty
chemists and EDBO played it (Shields et al., Nature 590, 2021); their yields come with the table
(`alexp.datasets.direct_arylation()`). Ours: `EvidenceMixture(models, domain, goal="best", repeats=False)`, plates of
five, nothing stated. The first plate is random, or designed: five reactions far apart in all descriptions
(k-means++). Chemists chose their first plate from what they know; those who stopped keep their best."""

MADE_BY = """\
`alexp compare --tables DIR --out docs` makes the runs of our entrants on every `*.npz` of DIR and on direct
arylation; `--peers` adds other libraries (`pip install 'alexp[peers]'`), `--repeats` those with repeats,
`--arylation` the runs in plates. Runs are added to `real-tables.csv` and `arylation.csv`, from which the page is
made; `--stored` makes it again. A file has `y`, larger is better, and feature maps `m_*`; one narrow continuous map
means inputs. Intervals are 95%: Student's t for means, a bootstrap over seeds for ratios, which are taken over the
seeds that both have played. Seconds are medians per round, taken beside other runs."""
