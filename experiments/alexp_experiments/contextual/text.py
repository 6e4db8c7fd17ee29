"""The words of docs/contextual-results.md that do not depend on the numbers."""

PROTOCOL = """\
Every stream is drawn before the first decision, with what every arm would have given in every round: all entrants
meet the same rounds in the same order with the same luck, and regret is that of expected rewards.

- **digits**, **wine**, **breast cancer**: the tables of scikit-learn as bandits. The context is a row, standardised
  column by column, the arms are the classes, the reward is 1 for the right one: regret counts mistakes. One pass over
  the rows, shuffled by the seed, or five. Feature sets of digits: five blocks of 16 pixels, sums over rows and
  columns, 8, 16 and 32 principal components, all 64 pixels. Of wine and breast cancer: groups of measurements that
  belong together, 2 and 5 principal components, all columns. Principal components are those of the rows of the whole
  table, without labels.
- **routing**: made-up prompts for two or three language models that differ in skill and price; the reward is 1 for a
  right answer minus its cost (`alexp_experiments.contextual.routing` says how prompts are made). Feature sets:
  counts, subject, embedding, noise, subject and counts, everything.
- **new candidates**: ten candidates that were never seen before in each of 500 rounds, eight blocks of five features;
  the reward is linear in one of the blocks, noise .3."""

ENTRANTS = """\
- *mixture*: `EvidenceMixture` over all feature sets, nothing stated; its default plays every arm with a probability,
  for logs that others can learn from. *mixture, ucb*: `rule="ucb"`, which decides deterministically. *mixture, one
  set*: the same with one set at a time; reported is the set that was **best in hindsight**, which cannot be chosen
  beforehand.
- *mixture-thompson*, *alexp*, *lm-ucb* over all sets; *linucb, all columns* on the columns of all sets at once;
  *linucb, one set* as above. Where a noise level has to be stated it is .3.
- *coba*: learners of coba with their default settings, on all columns of the context; arms are one-hot vectors.
  Corral has epsilon, UCB and LinUCB under it. Those with VW in their name run Vowpal Wabbit with coba's default
  interactions, which cross actions with contexts and with pairs of columns of contexts.
- *VW*: Vowpal Wabbit itself. `--cb_explore K` has a model per arm. Plain `--cb_explore_adf` crosses nothing, so that
  with arms that have no features of their own contexts cannot matter; `-q xa` crosses them. `--automl` looks for
  crossings."""

MADE_BY = """\
`alexp compare --contextual --out docs` makes our runs, `--peers` adds coba and Vowpal Wabbit (extra
`contextual-peers` of experiments/). Runs are added to `contextual-results.csv`, from which page and figure are made;
`--stored` makes them again. Intervals are 95%: Student's t for means, a bootstrap over seeds for ratios. Milliseconds
are medians over seeds of the mean of a run, taken beside other runs. Nothing was tuned on the seeds of this page."""
