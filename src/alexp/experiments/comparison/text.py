"""The words of docs/which-algorithm.md that do not depend on the numbers."""

ADVICE = """\
## In plain words

- **You want the least regret:** `EvidenceMixture`. It is the default choice, and nothing has to be stated. The rows
  below are those of a mixture that is told the noise and the size of the coefficients; stating nothing costs a few
  percent (`python -m alexp.experiments.comparison.unstated`), stating wrong numbers more. An unknown level of the
  rewards? Build the models with `intercept=True`, which tables have by default; an offset that no model contains
  hurts everybody. The simpler `rule="ucb"` is as good on the whole: a little less regret below, level with "ids" on
  many more seeds, and [less-regret.md](less-regret.md) says what not knowing the model costs, and in which rounds.
- **You trust the stated noise and need speed, or have 100,000 models:** `EvidenceMixture(light=True)`.
- **You need a regret bound without a prior, or certified statements matter more than regret:** `LMUCB`. Its
  widths are proved; it explores about twice as much as it would have to.
- **A locked run would be a disaster, a third more regret would not:** `MixtureThompson`. Randomness reopens in the end
  what a deterministic index has closed. In a hundred rounds it locks no less than other rules of the mixture do.
- **You want the paper's algorithm and its guarantee, or agents of your own kind:** `ALExp`. With
  `oracle=Evidence()` it keeps its master, pays a little less regret and locks in two thirds as often.
- **You have a table, and believe none of the models:** `EvidenceMixture(models, domain, repeats=False)` with models
  made by `from_matrices(kernels="auto")`, `from_inputs` or `from_components`, and nothing stated; `goal="best"` if one
  good row is wanted soon rather than good rows all the time. [real-tables.md](real-tables.md) has what that is worth
  beside other libraries, and what was tried. `light=True` wants noise and bound stated, and on tables there is nothing
  to state: whether it beats the grid depends on whether the numbers happen to fit (it does on the two tables below,
  played with repeats and noise). Where rows may be measured again and rewards have no noise, the mixture notices that
  they repeat and takes what was measured for known. With noise, whatever trusts features alone keeps playing the row it
  predicts best; `misfit_grid=(0.3,)` lets the mixture learn what single rows have beyond their features, at the price
  of visiting more of them: no clear gain in a hundred rounds.
- Masters that see only rewards (EXP4-IX, Corral, SmoothedCorral, D3RB, ED2RB, Balancing) need far more rounds than
  models, whatever their constants. They are here to compare, and so is `EXP4LS`, ALExp without its Lasso."""

LOCK_IN = """\
In a locked run of ALExp the data are undecided: the evidence still spreads over ten or more models, yet q puts
almost all its weight on agents that suggest one action. Three things do this together.

1. The Lasso is a point estimate. All hallucinated returns are evaluated with it; an estimate that is right on the
   actions played and wrong elsewhere is never contradicted.
2. The action that is played over and over stops being informative, so that the estimate freezes.
3. Returns grow linearly in t against eta_t = eta / sqrt(t), so q hardens like exp(c sqrt t), while exploration
   with gamma_t = gamma t^(-1/4) and a small gamma gives less than one escape in a hundred rounds.

What stops it is the *disagreement between models* in the width of the index: with posterior weights w_j and means
mu_j(x), the variance of the mixture is sum_j w_j s_j(x)^2 + sum_j w_j (mu_j(x) - m(x))^2, and the second term is
what stays large where plausible models contradict each other. It costs nothing, and an index without it locks as
often as ALExp.

It is not a proof. A rival of weight w is ignored while w < 1 / (1 + beta^2), roughly; beta_t grows like sqrt(log
t) and the grid of noise levels moves weight to larger noise when residuals are too large, which reopens the
question in practice."""

GUARANTEES = """\
| algorithm | regret bound | anytime? | in M | needs | status |
|---|---|---|---|---|---|
| ALExp | n^(3/4), with probability | yes | log M | sigma, B, exploration with lambda_min > 0 | proved in the \
paper |
| LM-UCB | sqrt(n P (d log n + log M)), P distinct features | yes | log M | sigma, B | proved (likelihood mixing) |
| EvidenceMixture, ucb, gamma > 0, plausible models only | n^(2/3) sqrt(d log n + log M) | yes | log M | sigma, \
B, lambda_min of pairs > 0 | argument complete up to constants; not what runs by default |
| EvidenceMixture, default | none | yes | | nominal sigma, B | measured only |
| MixtureThompson | sqrt(P n (log M + d log n)) on average over the prior | yes | log M | the prior | Bayesian \
only |
| evidence sampling | none | yes | | sigma, B | measured only |
| O2CS-EW, scale = 1 | sqrt(n P (d log n + log M)) | yes | log M | sigma, bound on rewards | proved, with a width \
that holds at all times; constants hopeless at n = 100 |
| FS-SCB, SquareCB | sqrt(K n (d log n + log M)), K arms | here yes | log M / none | bound on rewards | proved \
for a fixed rate |
| EXP4-IX | sqrt(K n log M) for fixed experts | here yes | log M | range of rewards | agents that learn are not \
covered |
| Corral | poly(M) sqrt(n) | no | poly | horizon, range | proved for stable agents with data of their own |
| D3RB, ED2RB, newcomers = 1 | d M sqrt(n) + d^2 sqrt(M n) | yes | poly | range | proved for data of their own |
| SmoothedCorral | sqrt(M n) and what the best agent's regret adds; n^(2/3) where that is unknown | no | poly | \
horizon, range | proved for stochastic agents |
| ETC, ETS | n^(2/3) | no | log M | horizon, lambda_min > 0 | proved |
| naive UCB | P sqrt(n) | yes | only through P | sigma, B | proved |"""

CERTIFICATES = """\
`plausible_models`, `confidence`, `stop_report` and `check_models` are there for every algorithm with a base agent or a
posterior per model; they are computed from the log of rewards, so what it plays does not matter.
[certificates.md](certificates.md) says what they rest on.

- *Proved*: with probability 1 - delta, at all times at once, the true model is among `plausible_models(delta)`
  and the reward inside `confidence(x, delta)` for every x, if a model is true, the noise is sub-Gaussian with the
  `noise_std` that was stated, its coefficients have norm at most the `norm_bound` that was stated, or |r| is at most
  the `reward_bound` that was stated, and the order of tells does not depend on the rewards. With an intercept delta
  is split between the first reward's noise and the rest. What was not stated is not certified.
- *Measured*: in 1,000 adaptive runs the true model was lost in none at delta = 0.05 and in 8 at delta = 0.2
  (allowed: 50 and 200); the sets are conservative. At sigma = 0.1, s = 2, p = 8 and after 60 rounds a median of 5
  (LM-UCB) and 8 (EvidenceMixture) of 36 models is left.
- *Neither*: the mixture's own band m -/+ 2 s. It is a credible band. In 60 runs each of three scenarios, after 5,
  20 and 100 rounds, the band at 95% covered 96 to 98% of the candidates, but the maximiser only in 85 to 97% of
  the runs with Legendre subsets and in 32% (5 rounds) to 92% with independent maps.

Certificates judge models against each other; that *all* of them are wrong is what `check_models` notices, and then
nothing is certified any more.

`stop_report(delta, epsilon)` says whether the recommended action is at this moment within epsilon of the best, with
the confidence of the other two; the smallest such epsilon; and which plausible models still disagree. It bounds
differences of rewards within each model, which is sharper than comparing two ends of the band."""

TRIED = """\
On seeds 60000-60320, apart from those reported here, twelve scenarios, geometric mean of mean regret; ten to
twenty seeds, so that differences below 10% mean little.

- *Prior scale.* A prior variance of B^2 for each of d coefficients expects a norm of B sqrt(d). Dividing by d:
  6.0 to 5.3, most of it at s = 9 and independent maps; the largest single gain, and the default now.
- *A smaller width* (beta^2 = 2 + log(t)/4 in place of 4 + log(t)/4): 5.3 to 4.7 at n = 100, but locked seeds at n
  = 1,000 (3 of 60 against 1). Not worth it. *A faster growing one* (4 + log t): 5.4 to 6.0, and no better tail at
  n = 1,000.
- *Thompson steps* in 10% of the rounds, or with probability t^(-1/2): same mean, same locked seed under Student
  noise.
- *Sampled information-directed selection* (expected regret and information from 128 posterior draws): 6.9 to 6.4,
  worse than the deterministic rule, and 5 times slower.
- *One noise level instead of three*: as good when the noise is right, worse when it is not; better on both real
  tables.
- *Candidate effects* (`misfit_grid`): exact, and neutral where a model is true (eight scenarios, 8.7 against
  8.8). On tables the ids rule then visits too many rows that have never been played. The ucb rule gained on
  tuning seeds (diabetes, 100 rounds: 16 against 24; 600 rounds: 76 against 111 with a standard error of 25) and
  not on the seeds below (25 against 27, and 32 against 25 on digits). An option, no default.
- What is left sits at sigma = 0.5 and at independent maps with sigma = 0.3, 1.7 to 2 times the oracle: there the
  hundred rounds are spent on finding the model, which the oracle is told."""

COST = """\
With C components (six times M in the full grid), K of them of weight above 1e-12, and P columns the mixture takes
C d^2 for the update, K (d^3 + d^2) for the covariance of the coefficients and N P^2 for the candidates. When P is
large it takes K N d^2 instead, and so it does when the noise is below 1e-4 of the prior scale, where a covariance
would round small variances away. From 20,000 components on, those far below the best may sleep: their evidence
can only fall, so what it was bounds what it is, and they are brought up to date when that bound comes close."""

CAVEATS = """\
This page is made by `alexp compare --out docs`; `--stored` makes it again from compare.csv. Where algorithms or
scenarios are named (`alexp compare --algorithms "alexp; alexp, tuned" --out docs`) their rows are run and take the
place of the stored ones. Seeds count from 90000, and nothing was tuned on them. `alexp compare --tune FILE` makes the
sweep behind the tuned rows.

Cells: mean ± standard error (median, worst seed); **Lk**: k locked seeds, those that lose more than 0.1 per round
over the last quarter; **Sk**: k seeds that lose as much because more than half of those rounds were the first of
some agent: with more agents than rounds that is a first pass, no decision. Who plays at random loses that much without
being stuck, and at sigma >= 0.3 and n = 100 slow learners are flagged too, told agents among them; compare with their
rows. Means of algorithms that lock hang on few seeds: look at the medians beside them.

Legendre subsets of degree up to 10 (30 for M = 4,495) on 201 points of [-1, 1]; 50 independent Gaussian maps of 5
features on 500 candidates; theta on the unit sphere; reward_bound = 1. Agents of every master have ridge = stated
sigma and width 2 sigma. Told agents are mixtures of one model, the true one, with nothing else stated, or with noise
and bound "stated" as they are to the mixtures; the best of all of them is the yardstick, which is sterner than any one.
"Oracle" is UCB on the true model, whose prior is wide; on real tables all of these get the map with the largest
adjusted R^2, which is no upper limit. "Offset 1" adds a constant that most
models lack. Algorithms that need a horizon are told it. Forty seeds where a model is true and all is as stated, half
as many on other scenarios with n = 100, ten for n = 1,000, four for n = 10,000, and a quarter of that for masters whose
agents have data of their own. D3RB and ED2RB coincide when no coefficient ever grows, as with their defaults. Times
were taken beside other runs: compare them with each other."""
