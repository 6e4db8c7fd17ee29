"""Memory as models: columns, kernels and prior weights, against formulas written out."""

import numpy as np
import pytest
from scipy.special import logsumexp

import alexp
from alexp.problem.kernels import ARD, Linear, Matern
from alexp.problem.memory_models import memories_of

RNG = np.random.default_rng(0)
BITS, NUMBERS = RNG.integers(0, 2, (30, 6)).astype(float), RNG.standard_normal((30, 3)) * [1.0, 50.0, 0.01]
PAST = RNG.standard_normal(30) * 40.0 + 300.0
Z = (PAST - PAST.mean()) / PAST.std()


def kernels(trust=None):
    models = alexp.ModelClass.from_matrices({"bits": BITS, "numbers": NUMBERS}, kernels="auto")
    return models, models.remembering({"2023": PAST}, trust)


def varies(gram):
    return np.mean(np.diag(gram)) - np.mean(gram)


@pytest.mark.parametrize("trust", [None, {"2023": 0.3}])
def test_a_memory_is_one_more_column_beside_every_kernel(trust):
    models, more = kernels(trust)
    rows, r = more.dictionary.table, 1.0 if trust is None else 0.3
    assert np.allclose(rows[:, -1], np.sqrt(r) * Z)
    m = models.n_models
    assert more.names[:m] == models.names
    for j in range(m):
        own = models.gram(j, rows[:, :-1], rows[:, :-1])
        assert more.names[m + j] == f"2023 + {models.names[j]}"
        joined = more.gram(m + j, rows, rows)
        assert np.allclose(joined, own / varies(own) + r * np.outer(Z, Z))


def test_prior_weights_follow_the_trust():
    models, more = kernels({"2023": 0.25})
    prior, own = np.exp(more.log_prior), np.exp(models.log_prior)
    (past,) = memories_of(more, 1)
    assert np.isclose(prior[past].sum(), 1.0 / 9.0)  # odds of (2 r)^3 = 1/8
    assert np.allclose(prior[: models.n_models], 8.0 / 9.0 * own)
    assert np.allclose(prior[models.n_models :], 1.0 / 9.0 * own)
    assert set(more.families[past]).isdisjoint(models.families)


def test_several_memories_have_models_of_their_own():
    models, _ = kernels()
    more = models.remembering({"a": PAST, "b": -(PAST**2)})
    first, second = memories_of(more, 2)
    assert [more.names[j].split(" + ")[0] for j in (*first, *second)] == ["a"] * first.size + ["b"] * second.size
    assert np.allclose([np.exp(more.log_prior[own]).sum() for own in (first, second)], 8.0 / 17.0)
    assert set(more.families[first]).isdisjoint(more.families[second])


def test_linear_models_have_a_memory_that_varies_as_they_do():
    models = alexp.ModelClass.from_matrices({"bits": BITS, "numbers": NUMBERS})
    more = models.remembering({"2023": PAST})
    assert more.names == ["bits", "numbers", "2023 + bits", "2023 + numbers"]
    rows = more.dictionary.table
    for j, block in enumerate([BITS, NUMBERS]):
        own = block @ block.T
        assert np.allclose(more.gram(2 + j, rows, rows), own / varies(own) + np.outer(Z, Z))


def test_particles_stay_without_a_memory():
    choice = {"numbers": [ARD(), Matern(), Linear()]}
    models = alexp.ModelClass.from_matrices({"numbers": NUMBERS}, kernels=choice).remembering({"2023": PAST})
    assert models.n_models == 3 + 2
    opt = alexp.EvidenceMixture(models, alexp.FiniteSet(range(30)), random_state=0)
    opt.tell(opt.ask(), 1.0)
    assert np.isclose(opt.probabilities.sum(), 1.0)
    alone = alexp.ModelClass.from_matrices({"numbers": NUMBERS}, kernels={"numbers": [ARD()]})
    with pytest.raises(ValueError, match="all models are ARD or constant"):
        alone.remembering({"2023": PAST})


@pytest.mark.parametrize("seed", range(5))
def test_a_useless_memory_costs_at_most_the_logarithm_of_its_odds(seed):
    models, _ = kernels()
    rng, domain = np.random.default_rng(seed), alexp.FiniteSet(range(30))
    more = models.remembering({"2023": rng.standard_normal(30)}, {"2023": 0.5})
    evidence = []
    for one in (models, more):
        opt = alexp.EvidenceMixture(one, domain, random_state=0)
        for k in range(12):
            opt.observe(k, float(NUMBERS[k, 0]))
        evidence.append(logsumexp(opt._mixture.log_evidence() + one.log_prior))
    assert evidence[1] >= evidence[0] - np.log(2.0) - 1e-9


def test_a_good_memory_is_found_and_its_scale_learned():
    models, domain = kernels()[1], alexp.FiniteSet(range(30))
    opt = alexp.EvidenceMixture(models, domain, random_state=0)
    for k in range(8):
        opt.observe(k, 7.0 - 0.001 * PAST[k])
    (past,) = memories_of(models, 1)
    assert opt.probabilities[past].sum() > 0.95
    mean = [opt.predict(k)[0] for k in range(30)]
    assert np.allclose(mean, 7.0 - 0.001 * PAST, atol=0.005)


@pytest.mark.parametrize(
    ("memory", "error"),
    [
        (np.ones(30), "memory '2023' expects the same of all candidates"),
        (np.ones(29), "must have 30 rows"),
        (np.full(30, np.nan), "nan"),
    ],
)
def test_wrong_memories_are_refused(memory, error):
    with pytest.raises(ValueError, match=error):
        kernels()[0].remembering({"2023": memory})


def test_memories_are_about_a_list_of_candidates():
    with pytest.raises(TypeError, match="memories are about a list of candidates"):
        alexp.ModelClass.legendre(3, 2).remembering({"2023": PAST})
    with pytest.raises(ValueError, match="memories must be a non-empty dict"):
        kernels()[0].remembering({})
    with pytest.raises(ValueError, match="trust must"):
        kernels()[0].remembering({"2023": PAST}, {"2023": 1.5})


def test_models_with_a_memory_are_stored():
    models = kernels({"2023": 0.5})[1]
    again = alexp.ModelClass.from_dict(models.to_dict())
    rows = models.dictionary.table
    assert again.names == models.names
    for j in range(models.n_models):
        assert np.array_equal(again.gram(j, rows, rows), models.gram(j, rows, rows))
