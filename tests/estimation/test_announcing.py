"""What a run will take is estimated and said before it is made."""

import tracemalloc
import warnings

import numpy as np
import pytest

import alexp
from alexp.estimation import announcing
from alexp.estimation.announcing import TooLargeError, expected, machine_memory
from alexp.kernels import ARD, Matern
from alexp.problem.groups import AllSubsets

RNG = np.random.default_rng(0)
LINE = alexp.Interval(resolution=50)


class Listed(Exception):
    """Somebody has listed all subsets."""


@pytest.fixture
def unlisted(monkeypatch):
    """A process in which subsets cannot be listed."""

    def refuse(self):
        raise Listed

    monkeypatch.setattr(AllSubsets, "listed", refuse)


def table(n):
    return alexp.FiniteSet(list(range(n)))


def test_a_large_class_is_announced_before_it_is_listed(unlisted):
    models = alexp.ModelClass.legendre(degree=100, size=99)
    assert models.n_models == 5050
    assert models.dimension == 99
    assert repr(models) == "ModelClass(5050 models, 101 columns)"
    words = "EvidenceMixture with 5,050 models on 2,000 candidates takes about 2.3 s a step on one core and 8.9 GB of"
    with pytest.warns(UserWarning, match=words), pytest.raises(Listed):
        alexp.EvidenceMixture(models, alexp.Interval(resolution=2000))
    words = "ALExp with .* lower size or the number of columns, or take fewer candidates"
    with pytest.warns(UserWarning, match=words), pytest.raises(Listed):
        alexp.ALExp(models, alexp.Interval(resolution=2000))


def test_a_class_that_cannot_fit_is_refused_before_it_is_listed(unlisted):
    models = alexp.ModelClass.legendre(degree=300, size=3)  # 4.5 million
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(announcing, "machine_memory", lambda: 1e9)
        with pytest.raises(TooLargeError, match="models take too much memory: EvidenceMixture needs at least 2.*1 GB"):
            alexp.EvidenceMixture(models, LINE)
    with pytest.warns(UserWarning, match="s a step"), pytest.raises(Listed):
        alexp.EvidenceMixture(models, LINE)


def test_listed_when_first_needed_all_the_same():
    models = alexp.ModelClass.legendre(degree=5, size=3)
    assert not hasattr(models, "_offsets")
    assert [group.tolist() for group in models.groups[:2]] == [[0, 1, 2], [0, 1, 3]]
    assert models.offsets.tolist() == list(range(0, 61, 3))
    again = alexp.ModelClass.from_dict(models.to_dict())
    assert np.array_equal(again.columns_flat, models.columns_flat)


X = RNG.uniform(size=(60, 3))
CLASSES = {
    "subsets": (lambda: alexp.ModelClass.legendre(4, 2), LINE),
    "inputs": (lambda: alexp.ModelClass.from_inputs(X), table(60)),
    "matrices": (lambda: alexp.ModelClass.from_matrices({"a": X, "b": X[:, :2]}), table(60)),
    "auto": (lambda: alexp.ModelClass.from_matrices({"a": X, "b": X[:, :2]}, kernels="auto"), table(60)),
    "wide": (lambda: alexp.ModelClass.from_matrices({"a": RNG.normal(size=(60, 400))}), table(60)),
    "components": (lambda: alexp.ModelClass.from_components({"a": X[:, 0], "b": X[:, 1]}), table(60)),
    "maps": (lambda: alexp.ModelClass.from_maps({"line": lambda x: x[:, None]}, example=np.zeros(1)), LINE),
    "maps unseen": (lambda: alexp.ModelClass.from_maps({"line": lambda x: x[:, None]}), LINE),
    "groups": (lambda: alexp.ModelClass(alexp.Legendre(3), [[0, 1], [2]]), LINE),
    "arms": (lambda: alexp.ModelClass.per_arm({"a": 2}, ["u", "v"]), alexp.Arms(["u", "v"])),
    "blocks": (lambda: alexp.ModelClass.from_blocks({"a": 2}), alexp.Candidates()),
}


@pytest.mark.parametrize("name", CLASSES)
def test_every_constructor_is_announced_or_refused_in_one_place(name, monkeypatch):
    make, domain = CLASSES[name]
    kinds = [alexp.EvidenceMixture, alexp.LMUCB]
    for kind in kinds:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kind(make(), domain)  # small: nothing is said
    monkeypatch.setattr(announcing, "SLOW", 0.0)
    for kind in kinds:
        with pytest.warns(UserWarning, match=f"{kind.__name__} with .* models?.* takes about .* s a step on one core"):
            kind(make(), domain)
    monkeypatch.setattr(announcing, "machine_memory", lambda: 10.0)
    for kind in kinds:
        with pytest.raises(TooLargeError, match=f"{kind.__name__} needs at least"):
            kind(make(), domain)


def test_what_keeps_no_posteriors_counts_lists_only():
    models = alexp.ModelClass.legendre(30, 4)
    assert expected(models, 2000, 0) == (0.0, 16.0 * 4 * models.n_models, 16.0 * 4 * models.n_models)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alexp.UniformRandom(alexp.ModelClass.legendre(100, 99), LINE)


def test_subsets_that_are_enumerated_are_never_listed(unlisted, monkeypatch):
    monkeypatch.setattr(announcing, "machine_memory", lambda: 10.0)
    announcing.announce("X", alexp.ModelClass.subsets(alexp.Legendre(100), 50, device="cpu"), 100, 5)


RUNS = {
    "kernels": (alexp.EvidenceMixture, lambda: alexp.ModelClass.from_inputs(RNG.uniform(size=(400, 6))), table(400)),
    "small models": (alexp.EvidenceMixture, lambda: alexp.ModelClass.legendre(18, 6), LINE),
    "large models": (alexp.EvidenceMixture, lambda: alexp.ModelClass.legendre(30, 29), LINE),
    "agents": (alexp.ALExp, lambda: alexp.ModelClass.legendre(40, 39), LINE),
    "overlapping": (alexp.EvidenceMixture, lambda: alexp.ModelClass.legendre(60, 59), alexp.Interval(resolution=40)),
    "wide": (
        alexp.EvidenceMixture,
        lambda: alexp.ModelClass.from_matrices({"a": RNG.normal(size=(40_000, 40))}),
        table(40_000),
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_memory_is_what_was_expected(name):
    """Peak of what NumPy takes, in a run of a few steps; tables of candidates are not counted in the estimate."""
    kind, make, domain = RUNS[name]
    models = make()
    cost = expected(models, domain.n_candidates, kind.ridges_per_model)
    kind(models, domain, noise_std=0.1, random_state=0).ask()  # compiled code is none of it
    models = make()
    tracemalloc.start()
    opt = kind(models, domain, random_state=0)
    for step in range(4):
        opt.tell(opt.ask(), float(step))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    features = 3.0 * 8.0 * models.n_columns * domain.n_candidates  # the table, and copies of it
    assert cost.bytes / 3.0 <= peak <= 3.0 * cost.bytes + features


def test_memory_after_a_hundred_candidates():
    models = alexp.ModelClass.from_inputs(RNG.uniform(size=(300, 4)), Matern(), lengthscales=[1.0])
    cost = expected(models, 300, 5)
    opt = alexp.EvidenceMixture(models, table(300), repeats=False, random_state=0)
    grid = opt.belief.mixture.grid
    for step in range(100):
        opt.tell(opt.ask(), float(np.sin(step)))
    kept = sum(chunk.nbytes for family in grid.families for chunk in family._pass._chunks)
    kept += sum(family.mean.nbytes + family.variance.nbytes for family in grid.families)
    kept += sum(f.regression._dual._factors.nbytes + f.regression._dual._gram.nbytes for f in grid.families)
    copies = {id(family._block): family._block.rows for family in grid.families}.values()
    kept += sum(rows.nbytes for rows in copies if rows.base is None)
    assert cost.later == pytest.approx(kept, rel=0.02)


def test_memory_of_particles_after_a_hundred_candidates():
    models = alexp.ModelClass.from_matrices({"x": RNG.uniform(size=(300, 4))}, kernels={"x": ARD()})
    opt = alexp.EvidenceMixture(models, table(300), repeats=False, random_state=0)
    (family,) = opt.belief.mixture.grid.families
    for step in range(100):
        opt.tell(opt.ask(), float(np.sin(step)))
    kept = sum(array.nbytes for array in (family._z, family._sums, family._factors, family.mean, family.variance))
    assert kept / 3.0 <= expected(models, 300, 5).later <= 3.0 * kept


def test_memory_of_the_machine_or_of_less(tmp_path, monkeypatch):
    import resource

    whole = machine_memory()
    assert 1e8 < whole < 1e15
    limit = tmp_path / "memory.max"
    limit.write_text("123456789\n")
    monkeypatch.setattr(announcing, "_CGROUPS", (str(limit), str(tmp_path / "none")))
    assert machine_memory() == 123456789
    limit.write_text("max\n")
    assert machine_memory() <= whole or whole == machine_memory()
    monkeypatch.setattr(resource, "getrlimit", lambda which: (10**7, 10**9))
    assert machine_memory() == 10**7
