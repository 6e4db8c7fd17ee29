"""The words of docs/which-algorithm.md that do not depend on the numbers; those that do are in `advice`."""

from alexp.decision import Schedules
from alexp_experiments.comparison.contest import FIRST_SEED
from alexp_experiments.core.statistics import LOCKED

_SCHEDULES = Schedules()
_ESCAPES = sum(_SCHEDULES.gamma * t**-0.25 for t in range(1, 101))  # expected exploring rounds among the first hundred

LOCK_IN = f"""\
In a locked run of ALExp q puts almost all its weight on agents that suggest one action, before the data have decided
between the models. Three things do this together.

1. The Lasso is a point estimate. All hallucinated returns are evaluated with it; an estimate that is right on the
   actions played and wrong elsewhere is never contradicted.
2. The action that is played over and over stops being informative, so that the estimate freezes.
3. Returns grow linearly in t against eta_t = eta / sqrt(t), so q hardens like exp(c sqrt t), while exploration
   with gamma_t = gamma t^(-1/4) happens {_ESCAPES:.2f} times in the first hundred rounds on average, with the default
   gamma = {_SCHEDULES.gamma:g}.

What works against it is the *disagreement between models* in the width of the index: with posterior weights w_j and
means mu_j(x), the variance of the mixture is sum_j w_j s_j(x)^2 + sum_j w_j (mu_j(x) - m(x))^2, and the second term is
what stays large where plausible models contradict each other.

It is not a proof. A rival of weight w is ignored while w < 1 / (1 + beta^2), roughly; beta_t grows like sqrt(log
t) and the grid of noise levels moves weight to larger noise when residuals are too large, which reopens the
question."""

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
that holds at all times |
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
[certificates.md](certificates.md) says what they rest on and how often they held.

- *Proved*: with probability 1 - delta, at all times at once, the true model is among `plausible_models(delta)`
  and the reward inside `confidence(x, delta)` for every x, if a model is true, the noise is sub-Gaussian with the
  `noise_std` that was stated, its coefficients have norm at most the `norm_bound` that was stated, or |r| is at most
  the `reward_bound` that was stated, and the order of tells does not depend on the rewards. With an intercept delta
  is split between the first reward's noise and the rest. What was not stated is not certified.
- *Not proved*: the mixture's own band m -/+ 2 s. It is a credible band.

Certificates judge models against each other; that *all* of them are wrong is what `check_models` looks for, and where
it finds that, nothing is certified any more.

`stop_report(delta, epsilon)` says whether the recommended action is at this moment within epsilon of the best, with
the confidence of the other two; the smallest such epsilon; and which plausible models still disagree. It bounds
differences of rewards within each model, which is sharper than comparing two ends of the band."""

COST = """\
With C components (models times ridges), K of them of weight that is not negligible, and P columns the mixture takes
C d^2 for the update, K (d^3 + d^2) for the covariance of the coefficients and N P^2 for the candidates. When P is
large it takes K N d^2 instead, and so it does when the noise is far below the prior scale, where a covariance
would round small variances away. With very many components those far below the best may sleep: their evidence
can only fall, so what it was bounds what it is, and they are brought up to date when that bound comes close."""

CAVEATS = f"""\
This page is made by `alexp compare --out docs`; `--stored` makes it again from compare.csv. Where algorithms or
scenarios are named (`alexp compare --algorithms "alexp; alexp, tuned" --out docs`) their rows are run and take the
place of the stored ones. Seeds count from {FIRST_SEED}, and nothing was tuned on them. `alexp compare --tune FILE`
makes the sweep behind the tuned rows.

Cells: mean ± standard error (median, worst seed); **Lk**: k locked seeds, those that lose more than {LOCKED} per round
over the last quarter; **Sk**: k seeds that lose as much because more than half of those rounds were the first of
some agent: with more agents than rounds that is a first pass, no decision. Random play loses that much without
being stuck, and with much noise slow learners are flagged too, told agents among them; compare with their
rows. Means of algorithms that lock hang on few seeds: look at the medians beside them.

Legendre subsets of degree up to 10 (30 for M = 4,495) on 201 points of [-1, 1]; 50 independent Gaussian maps of 5
features on 500 candidates; theta on the unit sphere; reward_bound = 1. Agents of every master have ridge = stated
sigma and width 2 sigma. Told agents are mixtures of one model, the true one, with nothing else stated, or with noise
and bound "stated" as they are to the mixtures; the best of all of them is the yardstick, which is sterner than any one.
"Oracle" is UCB on the true model, whose prior is wide; on real tables all of these get the map with the largest
adjusted R^2, which is no upper limit. "Offset 1" adds a constant that most models lack. Algorithms that need a horizon
are given it. The headings say how many seeds a scenario has: fewer where runs are long; a cell says so where an
algorithm has fewer than that. D3RB and ED2RB coincide when no coefficient ever grows, as with their defaults. Times
were taken beside other runs: compare them with each other."""
