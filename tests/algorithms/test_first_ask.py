"""The very first ask beside an intercept: features are compared about their mean, since the constant is open."""

import numpy as np
import pytest

import alexp
from alexp.kernels import Linear, Matern, Tanimoto

N = 50
RNG = np.random.default_rng(5)
DOMAIN = alexp.FiniteSet(np.arange(N))
SMALL = RNG.standard_normal((N, 4)) * [1.0, 2.0, 0.5, 1.0]
WIDE = RNG.standard_normal((N, 400))


def farthest(table, centred):
    rows = table - table.mean(axis=0) if centred else table
    return int(np.argmax(np.square(rows).sum(axis=1)))


KINDS = {
    "ids": (alexp.EvidenceMixture, {"rule": "ids"}),
    "ucb": (alexp.EvidenceMixture, {"rule": "ucb"}),
    "ei": (alexp.EvidenceMixture, {"goal": "best"}),
    "stated": (alexp.EvidenceMixture, {"noise_std": 0.1, "reward_bound": 1.0}),
    "linucb": (alexp.LinUCB, {"model": 0}),
    "alexp": (alexp.ALExp, {}),
    "lm-ucb": (alexp.LMUCB, {}),
    "o2cs": (alexp.O2CSEW, {}),
    "corral": (alexp.Corral, {"horizon": 30}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("table", [SMALL, WIDE], ids=["small", "wide"])
@pytest.mark.parametrize("offset", [0.0, 3.0])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_plays_the_candidate_farthest_from_the_mean(kind, intercept, offset, table):
    shifted = table + offset * np.linspace(-1.0, 1.0, table.shape[1])
    make, settings = KINDS[kind]
    opt = make(alexp.ModelClass.from_matrices({"a": shifted}, intercept=intercept), DOMAIN, random_state=0, **settings)
    assert farthest(shifted, True) != farthest(shifted, False) or offset == 0.0
    assert opt.ask().index == farthest(shifted, intercept)


@pytest.mark.parametrize("kernel", [Linear(standardize=True), Linear(standardize=True) + Matern(2.5)])
@pytest.mark.parametrize("kind", ["ucb", "linucb"])
def test_kernels_about_their_level(kernel, kind):
    shifted = SMALL + np.array([0.0, 30.0, 0.0, -5.0])
    make, settings = KINDS[kind]
    opt = make(alexp.ModelClass.from_matrices({"a": shifted}, kernels=kernel), DOMAIN, random_state=0, **settings)
    assert opt.ask().index == farthest(SMALL / SMALL.std(axis=0), True)


@pytest.mark.parametrize("kernel", [Matern(2.5), Tanimoto()])
def test_kernels_that_prefer_no_candidate_leave_it_to_chance(kernel):
    models = alexp.ModelClass.from_matrices({"a": np.abs(SMALL)}, kernels=kernel)
    firsts = {alexp.EvidenceMixture(models, DOMAIN, random_state=seed).ask().index for seed in range(12)}
    assert len(firsts) > 5


def test_enumerated_subsets_agree_with_listed_ones():
    table = SMALL + np.array([3.0, 0.0, -8.0, 1.0])
    columns = alexp.ModelClass.from_matrices({"a": table}).dictionary
    listed = alexp.ModelClass.subsets(columns, 2, intercept=True)
    enumerated = alexp.ModelClass.subsets(columns, 2, intercept=True, device="cpu")
    for kind, settings in ((alexp.EvidenceMixture, {"rule": "ucb"}), (alexp.ALExp, {"noise_std": 0.1})):
        one, two = (kind(models, DOMAIN, random_state=0, **settings) for models in (listed, enumerated))
        assert one.ask().index == two.ask().index


def test_contextual_rounds_are_compared_among_themselves():
    models = alexp.ModelClass.from_blocks({"a": 4}, intercept=True)
    opt = alexp.EvidenceMixture(models, alexp.Candidates(), rule="ucb", random_state=0)
    rows = SMALL[:10] + np.array([0.0, 0.0, 0.0, 50.0])
    assert farthest(rows, True) != farthest(rows, False)
    assert opt.ask(features=rows).index == farthest(rows, True)


def test_plates_and_later_asks_are_as_before():
    """Pending trials and rewards tell of the constant: widths are those of (1, phi)."""
    models = alexp.ModelClass.from_matrices({"a": SMALL})
    opt = alexp.LinUCB(models, DOMAIN, model=0, random_state=0)
    first, second = opt.ask(2)
    ridge = 0.01
    design = np.hstack([np.ones((N, 1)), SMALL])
    v = np.diag([0.0, *np.full(4, ridge**2)]) + np.outer(design[first.index], design[first.index])
    widths = np.einsum("nd,de,ne->n", design, np.linalg.inv(v), design)
    widths[first.index] = -np.inf
    assert second.index == int(np.argmax(widths))


def test_one_candidate_has_nothing_to_differ_from():
    models = alexp.ModelClass.from_matrices({"a": SMALL})
    opt = alexp.EvidenceMixture(models, DOMAIN, random_state=0)
    assert opt.predict(3)[1] > 0.0
    assert opt.ask(available=[3]).index == 3
