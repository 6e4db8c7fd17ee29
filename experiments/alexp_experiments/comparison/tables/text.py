"""The words of docs/real-tables.md that do not depend on the numbers."""

PROTOCOL = """\
Every row of these tables was measured, so that what an algorithm would have found can be looked up.
Rewards are z-scores over the table, without noise. Under a seed all entrants are told the same five random rows
(`observe`) and then choose for themselves; the five count as rounds. No row is measured twice, unless a title says
"with repeats". Nothing is stated: neither noise nor bounds. Where entrants have different numbers of seeds,
ratios are of the seeds that both have.

- **R(n)**: the sum of the n best rewards of the table minus the sum of those collected.
- **Gap**: the best reward of the table minus the best one found.
- **Top 1%**: the share of the best hundredth of the rows that was found.

`goal="sum"` wants a small R(n), `goal="best"` a small gap."""

ENTRANTS = """\
- *mixture of 0.1.0*: `EvidenceMixture` as version 0.1.0 had it for tables of unknown noise: linear maps,
  `noise_std=None`, `reward_bound=1`, rule "ids" with its wide beta, evidence to the power one; rows that were
  measured are not offered again. Features are centred and scaled to a squared norm of one on average. The yardstick
  of R(n).
- *mixture, linear maps*: the same maps with today's defaults, nothing stated. On continuous tables the maps are the
  inputs, their quadratic and cubic polynomials and a hundred random waves; "and waves" adds sines and cosines of
  every single input.
- *mixture, kernels*: today's defaults on `from_inputs(X)` (continuous tables of up to six inputs), `from_components`
  (composed rows), `from_matrices(kernels="auto")` (all others). "On whole rows" is the last one for composed rows.
- *LinUCB on one map*, *Gaussian process, one kernel* (a mixture of a single model of
  `from_matrices(kernels="auto")`): one run per map or kernel; reported is the one that was **best in hindsight**,
  which cannot be chosen beforehand.
- With `--peers`: *BoTorch SingleTaskGP*, *scikit-learn Gaussian process*, *random forest*: mean plus one standard
  deviation for the sum, (log) expected improvement for the best, refitted before every round, one run per map of the
  file, the best in hindsight reported. *Optuna TPE* plays inputs and components; the row closest to its suggestion is
  measured. Elsewhere it is left out: a category per row says nothing about other rows. A row that is missing below was
  not run."""

ARYLATION = """\
1,728 reactions: 4 bases, 12 ligands, 4 solvents, 3 concentrations, 3 temperatures; the largest yield is 100. Fifty
chemists and EDBO played it (Shields et al., Nature 590, 2021); their yields come with the table
(`alexp.datasets.direct_arylation()`). Ours: `EvidenceMixture(models, domain, goal="best", repeats=False)`, plates of
five, nothing stated. The first plate is random, or designed: five reactions far apart in all descriptions
(k-means++). Chemists chose their first plate from what they know; those who stopped keep their best."""

MADE_BY = """\
`alexp compare --tables DIR --out docs` makes the runs of our entrants on every `*.npz` of DIR and on direct
arylation; `--peers` adds other libraries (extra `peers` of experiments/), `--repeats` makes those with repeats,
`--arylation` the runs in plates. Runs are added to `real-tables.csv` and `arylation.csv`, from which the page is made;
`--stored` makes it again. A file has `y`, larger is better, and feature maps `m_*`; one narrow continuous map means
inputs. Intervals are 95%: Student's t for means, a bootstrap over seeds for ratios. Seconds are medians per round,
taken beside other runs."""
