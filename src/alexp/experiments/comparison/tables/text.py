"""The words of docs/real-tables.md that do not depend on the numbers."""

PROTOCOL = """\
Every row of these tables was measured by somebody, so that what an algorithm would have found can be looked up.
Rewards are z-scores over the table, without noise. Under a seed all entrants are told the same five random rows
(`observe`) and then choose for themselves; the five count as rounds. No row is measured twice, unless a title says
"with repeats". Nothing is stated: neither noise nor bounds. Other libraries are slow and have fewer seeds; ratios are
of the seeds that both have.

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
- With `--peers`: *BoTorch SingleTaskGP*, *scikit-learn Gaussian process*, *random forest*: mean plus one standard
  deviation for the sum, (log) expected improvement for the best, refitted before every round, one run per map of the
  file, the best in hindsight reported. *Optuna TPE* plays inputs and components; the row closest to its suggestion is
  measured. Elsewhere it is left out: a category per row says nothing about other rows. A row that is missing below was
  not run: BoTorch takes minutes a run."""

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
- *Product kernels over components alone* on direct arylation: 90 to 92 after 25 experiments, 97 to 98.5 after 50.

Then, on direct arylation in plates of five (a prototype, 120 seeds of their own, five random first reactions; mean
best yield after 25 and 50 experiments and the share that had 99 by then; standard error .7 after 25). All reactions
of 99 and more have one ligand out of twelve, so that trying ligands decides:

- *Expected improvement*, power 1/4, 132 products and ten other kernels: 93.0, 98.3, .83. What is expected of pending
  trials counted among the incumbents: 93.5, 98.6, .83. Variances doubled as well: 94.3, 98.9, .91; fourfold: 95.0,
  99.2, .89. Power 1/10: 95.0, 99.3, .93; 1/30: 94.1, 99.0, .87; power 1: 93.1, 97.7, .78.
- *Descriptors joined*, so that a component counts by the number of its descriptors: one Matern on the DFT
  descriptors alone gives 94.3, 99.7, .95; with the products, power 1/4, variances doubled: **95.9, 99.5, .93**, which
  is today's default in the main. Weights for each component: 94.5 to 95.6, 99.1 to 99.3, .92.
- *A margin above the incumbent* of half a standard deviation of the rewards: 94.8, 99.0, .90. *Ranks in the place of
  rewards*: 92.9, 99.1, .90; with doubled variances 94.9, 99.2, .90. *Squares or roots of rewards*: 92.8 to 93.4, 98.2
  to 98.6, .82. *Tails of Student's t*: no difference. *Probability of improvement*: 93.7, 98.3, .82.
- *The sum of all kernels alone*: 91.1, 96.9, .70. *An effect of its own for every level*: 91.9, 96.4, .64. *Kernels in
  which some components do nothing (ANOVA)*: 91. *First plates by D-optimal design or k-means++*: worse after 10 and 15.
- *Kernels divided by k(x, x) in the place of what they vary by*, beside an intercept: half of six runs missed 99; long
  lengthscales then explain noise only.
- *Lengthscales* of .5 to 4 medians in the place of .25 to 2, R(100) under 20 seeds: 41.9, 5.2, 20.3, 28.5 and 91.4 on
  CrossedBarrel, AgNP, FreeSolv, Photoswitch and direct arylation, against 43.3, 5.7, 20.7, 30.0 and 97.1.

Once more on direct arylation, the default models and 200 further seeds (a prototype on a graphics card; standard
error .6 after 25), the default first: 94.2, 99.1, .89.

- *Deviations times 2* in the place of sqrt(2): 94.5, 99.6, .96; *times 2.8*: 93.5, 99.3, .92; *times 4, falling
  like t^(-1/2)*: 93.9, 99.2, .87. *Gains of each component relative to its largest*, so that all have the same say,
  deviations times 2: 94.4, 99.8, .97. The first is today's default; the second leaves the larger gap on CrossedBarrel
  (below).
- *Another kind of kernel for every place of a plate*: 93.0, 99.4, .90 (100 seeds); *a component drawn for every
  place*: 90.0, 98.2, .82; *a kind drawn for every place*: 94.1, 99.1, .88. *Rewards of pending trials drawn*, not
  expected: 94.4, 98.8, .88.
- *Weights by leaving one out* in the place of evidence, power 1/4: 93.6, 99.5, .91; power 1: 93.4, 99.0, .89.
  *Evidence to 1/2*, deviations times 2: 93.1, 99.2, .92.
- *Improvement under the mixture's own mean and deviation*: 94.0, 99.2, .92; *ucb*, beta = 2: 92.7, 98.0, .85.
  *Entropy of the maximum*: 93.8, 99.4, .93, ten times as slow. *A margin of .3 deviations*: 94.2, 99.5, .92.
- *Prior mass* of .7 on products: 93.8, 99.4, .91; of .6 on sums: 94.1, 99.5, .92; of .8 on joined ones: 92.7, 99.2,
  .95.
- *First plates in which every component has its levels evenly*: 72 after 10, k-means++ 77, random ones 73 (40
  seeds, standard error 3).

Last, both goals of a rule at once: direct arylation in plates (as above, 300 seeds for what is best, 100 for the rest;
after 25, after 50, share of 99 by then) and the gap on CrossedBarrel, one row at a time, after 100 rounds (100 seeds,
standard error .012 to .015). CrossedBarrel is noisy, and its best row stands alone.

- *The best mean among the candidates told as incumbent where noise is a tenth of the variance or more*, deviations
  times sqrt(2): 93.3, 98.9, .88, and .164. *The best reward as incumbent*: 94.5, 99.2, .90, and .139. *Deviations times
  2*: 94.5, 99.5, .94, and .154. *What will be measured, noise included, in the place of the mean reward*: 94.1, 99.2,
  .92 (times 2); 91.4, 97.9, .82 (times 1).
- *ucb, beta = .7*: gap .097, but far behind on direct arylation. *One place of five by ucb, the others by
  improvement*: 93.5 to 94.1, 98.8 to 99.3, .86 to .89; *two of five*: 92.1, 99.0, .83. *Improvement and ucb in turn*,
  one row at a time: **.109** (deviations times 2), .113 (times sqrt(2)), .094 (best mean as incumbent); one round of
  four by ucb: .132. In turn, the other tables keep a gap of zero, and more of their top 1% is found on the way.
- So the default improves on the best reward with deviations times 2, and where rows come back one by one every second
  round is ucb's. *The first place of every second plate by ucb*, too: 94.1, 99.3, .89 (200 seeds).

With repeats (prototypes, seeds from 60000, 8 to 24 of them, standard errors of a tenth to a fifth); R(100) of kernels
on FreeSolv, Photoswitch, AgNP, CrossedBarrel and direct arylation. Every run either looks too long or stays with a row
too early:

- *Every replay learned*, "ids": 223, 94, 34, 110, 137. *Replays that give the same held back*, then "ucb": 237, 94, 35,
  98, 104. *"ucb" from the start*, today's default: 280, 76 to 85, 35, 73 to 81, 106. With noise of .2, where nothing is
  held back, "ids" against "ucb": 187 and 213, 139 and 106, 43 and 41, 126 and 105, 127 and 116.
- *Widths*: beta = .7 locks (Photoswitch 224, CrossedBarrel 153); beta_t^2 = 4 + log(t)/4: 188, 109, 37, 88, 122; 12 +
  log(t)/4 on FreeSolv: 156. There the three best rows lie 4.3 to 5.6 deviations above the mean: a width that finds
  them is too wide elsewhere. Linear maps with 2, 4, 6 and 9 + log(t)/4: 181, 132, 107, 108 on FreeSolv; 84, 92, 95,
  116 on Photoswitch; 47, 49, 51, 53 on AgNP; 110, 104, 105, 102 on CrossedBarrel; 76, 71, 80, 92 on direct arylation.
- *What models leave unexplained added to the variance of rows that were not measured*: 267, 76, 35, 79, 114; linear
  maps lose on direct arylation (94 in the place of 76).
- *mean + t x expected improvement*: 120, 41, 104 and 88 on the last four. *New rows after pauses that grow with the
  rows measured in vain*: 212, 81, 38, 84, 116. *Evidence to the power 1/2*: 85, 46, 108, 97 on the last four. *Small
  ratios of noise to prior variance only*: 252, 86, 35, 81 on the first four; linear maps lose."""

ARYLATION = """\
1,728 reactions: 4 bases, 12 ligands, 4 solvents, 3 concentrations, 3 temperatures; the largest yield is 100. Fifty
chemists and EDBO played it (Shields et al., Nature 590, 2021); their yields come with the table
(`alexp.datasets.direct_arylation()`). Ours: `EvidenceMixture(models, domain, goal="best", repeats=False)`, plates of
five, nothing stated. The first plate is random, or designed: five reactions far apart in all descriptions
(k-means++). Chemists chose their first plate from what they know; those who stopped keep their best."""

MADE_BY = """\
`alexp compare --tables DIR --out docs` makes the runs of our entrants on every `*.npz` of DIR and on direct
arylation; `--peers` adds other libraries (`pip install 'alexp[peers]'`; here with `--seeds 10` for scikit-learn and
Optuna, 5 for the forest, 3 for BoTorch and 5 for it on AgNP, CrossedBarrel and direct arylation), `--repeats` those
with repeats, `--arylation` the runs in plates. Runs are added to `real-tables.csv` and `arylation.csv`, from which the
page is made; `--stored` makes it again. A file has `y`, larger is better, and feature maps `m_*`; one narrow continuous
map means inputs. Intervals are 95%: Student's t for means, a bootstrap over seeds for ratios, which are taken over the
seeds that both have played. Seconds are medians per round, taken beside other runs."""
