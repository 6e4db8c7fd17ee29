"""Classes of kernel models: which kernels a table gets, prior weights, storage, and who takes them."""

import numpy as np
import pytest

import alexp
from alexp.common.codec import pack, unpack
from alexp.kernels import RBF, Function, Linear, Matern, Precomputed, Tanimoto
from alexp.problem import ModelClass
from alexp.problem.kernel_models import is_counts, lengthscale_draws
from alexp.problem.shared_kernels import SharedKernels
from alexp.study.declared import kernels_from_words

RNG = np.random.default_rng(0)
BITS = RNG.integers(0, 2, (30, 8)).astype(float)
COUNTS = RNG.poisson(0.5, (30, 6)).astype(float)
DESCRIPTORS = RNG.standard_normal((30, 4)) * [1.0, 100.0, 0.01, 1.0] + [0.0, 300.0, 0.0, 5.0]
TABLE = alexp.FiniteSet(list(range(30)))


def masses(models):
    """Prior mass of every family."""
    return np.bincount(models.families, weights=np.exp(models.log_prior))


# -- from matrices -----------------------------------------------------------------------------------------------------


def test_auto_looks_at_each_matrix():
    models = ModelClass.from_matrices({"bits": BITS, "counts": COUNTS, "descriptors": DESCRIPTORS}, kernels="auto")
    assert models.names == [
        "bits: linear",
        "bits: Tanimoto",
        "counts: linear",
        "counts: Tanimoto",
        "descriptors: linear",
        "descriptors: Matern 5/2, 0.5",
        "descriptors: Matern 5/2, 1",
        "descriptors: Matern 5/2, 2",
        "descriptors: Matern 5/2, 4",
        "all maps: sum of kernels",
    ]
    assert models.kernels[0] is None
    assert models.kernels[1] == Tanimoto()
    assert models.kernels[4] == Linear(standardize=True).fitted(DESCRIPTORS)
    assert models.kernels[5] == Matern(2.5, lengthscale=0.5).fitted(DESCRIPTORS)
    assert models.families.tolist() == [0, 0, 1, 1, 2, 2, 2, 2, 2, 3]
    assert [group.tolist() for group in models.groups[3:5]] == [list(range(8, 14)), list(range(14, 18))]
    assert models.intercept


def test_equal_prior_mass_per_map_then_per_kernel():
    models = ModelClass.from_matrices({"bits": BITS, "descriptors": DESCRIPTORS}, kernels="auto")
    assert masses(models) == pytest.approx([1 / 3, 1 / 3, 1 / 3])
    assert np.exp(models.log_prior[:3]) == pytest.approx([1 / 6, 1 / 6, 1 / 15])


def test_one_map_needs_no_sum():
    assert ModelClass.from_matrices({"bits": BITS}, kernels="auto").n_models == 2


def test_the_sum_gives_every_map_the_same_variance():
    models = ModelClass.from_matrices({"bits": BITS, "descriptors": DESCRIPTORS}, kernels="auto")
    table = models.matrix(TABLE)
    terms = models.kernels[-1].terms
    spread = [np.mean(k.diagonal(table)) - np.mean(k(table, table)) for k in terms]
    assert spread == pytest.approx([1 / 2, 1 / 2, 1 / 5, 1 / 5, 1 / 5, 1 / 5, 1 / 5])
    assert models.gram(7, table, table) == pytest.approx(sum(k(table, table) for k in terms))


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        (BITS, True),
        (COUNTS, True),
        (np.eye(5), True),
        (DESCRIPTORS, False),
        (-BITS, False),
        (BITS + 0.5, False),
        (np.array([[90.0, 1.0], [105.0, 2.0], [120.0, 0.0]]), False),
        (np.ones((3, 2)), True),
    ],
)
def test_what_counts_are(matrix, expected):
    assert is_counts(matrix) is expected


def test_linear_is_what_it_was():
    models = ModelClass.from_matrices({"bits": BITS, "counts": COUNTS})
    assert models.kernels is None
    assert models.names == ["bits", "counts"]
    assert models.log_prior.tolist() == [0.0, 0.0]
    assert models.families.tolist() == [0, 1]
    assert sorted(models.to_dict()) == [
        "columns",
        "dictionary",
        "intercept",
        "names",
        "offsets",
        "scales",
        "subset_size",
    ]
    same = ModelClass.from_matrices({"bits": BITS}, kernels={"bits": Linear()})
    assert same.kernels is None


def test_kernels_of_the_users_choice():
    models = ModelClass.from_matrices({"a": BITS, "b": DESCRIPTORS}, kernels=Matern(1.5))
    assert models.names == ["a: Matern 3/2, 1", "b: Matern 3/2, 1"]
    chosen = {"a": "auto", "b": [RBF(0.5), Linear(), Tanimoto() * Matern(0.5)]}
    models = ModelClass.from_matrices({"a": BITS, "b": DESCRIPTORS}, kernels=chosen, intercept=False)
    assert models.names[2:] == ["b: RBF, 0.5", "b: linear", "b: Tanimoto x Matern 1/2, 1"]
    assert masses(models) == pytest.approx([0.5, 0.5])
    assert not models.intercept


def test_a_gram_matrix_in_place_of_features():
    gram = np.cov(RNG.standard_normal((30, 50)))
    models = ModelClass.from_matrices({"bits": BITS, "spectra": Precomputed(gram)}, kernels="auto")
    assert models.names == ["bits: linear", "bits: Tanimoto", "spectra: precomputed"]
    table = models.matrix(TABLE)
    assert np.array_equal(models.gram(2, table, table), gram)
    assert models.groups[2].tolist() == [8]
    with pytest.raises(ValueError, match="'spectra' is a Gram matrix"):
        ModelClass.from_matrices({"spectra": Precomputed(gram)}, kernels={"spectra": Tanimoto()})
    with pytest.raises(ValueError, match="must have 30 rows"):
        ModelClass.from_matrices({"bits": BITS, "spectra": Precomputed(np.eye(4))})


@pytest.mark.parametrize(
    ("kernels", "error", "message"),
    [
        ("automatic", TypeError, "must be 'linear', 'auto', a kernel such as"),
        ({"a": Tanimoto()}, ValueError, "'b' has none"),
        ({"a": Tanimoto(), "b": "auto", "c": "auto"}, ValueError, "'c' is not one of the matrices"),
        ({"a": [Tanimoto(), Tanimoto()], "b": "auto"}, ValueError, "'a' has the kernel 'Tanimoto' twice"),
        ({"a": ["auto", Tanimoto()], "b": "auto"}, ValueError, "'a' has the kernel 'Tanimoto' twice"),
        ({"a": [], "b": "auto"}, ValueError, "at least one kernel"),
        (lambda x, z: x @ z.T, TypeError, "alexp.kernels.Function"),
    ],
)
def test_wrong_choices(kernels, error, message):
    with pytest.raises(error, match=message):
        ModelClass.from_matrices({"a": BITS, "b": DESCRIPTORS}, kernels=kernels)


def test_wrong_matrices_are_noticed_as_before():
    with pytest.raises(ValueError, match="nan at row 1, column 0"):
        ModelClass.from_matrices({"a": [[1.0], [np.nan]]}, kernels="auto")
    with pytest.raises(ValueError, match="must have 30 rows"):
        ModelClass.from_matrices({"a": BITS, "b": np.eye(3)}, kernels="auto")


# -- from inputs -------------------------------------------------------------------------------------------------------


def test_every_subset_at_every_lengthscale():
    models = ModelClass.from_inputs(DESCRIPTORS)
    assert models.n_models == 15 * 4
    assert models.names[0] == "x0: Matern 5/2, 0.35"
    assert models.names[17] == "x0+x1: Matern 5/2, 0.7"
    assert models.kernels[17] == Matern(2.5, lengthscale=0.7).fitted(DESCRIPTORS[:, :2])
    sizes = np.diff(models.offsets)
    by_size = np.bincount(sizes, weights=np.exp(models.log_prior))
    assert by_size == pytest.approx([0.0, 0.25, 0.25, 0.25, 0.25])
    within = np.exp(models.log_prior)[sizes == 2]
    assert within == pytest.approx(np.full(24, 0.25 / 24))
    assert np.array_equal(models.families, np.arange(60) // 4)
    assert models.intercept


def test_inputs_of_a_frame_are_named():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"temperature": [1.0, 2.0, 4.0], "pH": [3, 5, 4]})
    models = ModelClass.from_inputs(frame, RBF(), lengthscales=[1.0], intercept=False)
    assert models.names == ["temperature: RBF, 1", "pH: RBF, 1", "temperature+pH: RBF, 1"]
    assert models.matrix(alexp.FiniteSet(frame)).tolist() == [[1.0, 3.0], [2.0, 5.0], [4.0, 4.0]]
    with pytest.raises(TypeError, match="column 'solvent' holds"):
        ModelClass.from_inputs(frame.assign(solvent=["a", "b", "c"]))


def test_inputs_of_a_box():
    box = alexp.Box([0.0, 10.0], [1.0, 20.0], resolution=16)
    models = ModelClass.from_inputs(box)
    assert models.names[::4] == ["x0: Matern 5/2, 0.35", "x1: Matern 5/2, 0.35", "x0+x1: Matern 5/2, 0.35"]
    table = models.matrix(box)
    assert np.array_equal(table[:, models.groups[-1]], box.points)
    assert models.kernels[-1] == Matern(lengthscale=2.8).fitted(box.points)
    line = ModelClass.from_inputs(alexp.Interval(0.0, 1.0, resolution=9), subsets=False)
    assert line.n_models == 4
    assert np.array_equal(np.diag(line.gram(0, line.columns([0.1, 0.2]), line.columns([0.1, 0.2]))), [1.0, 1.0])


def test_inputs_without_subsets_and_kernels_without_lengthscales():
    assert ModelClass.from_inputs(DESCRIPTORS, subsets=False).names == [
        f"x0+x1+x2+x3: Matern 5/2, {scale}" for scale in (0.35, 0.7, 1.4, 2.8)
    ]
    assert ModelClass.from_inputs(DESCRIPTORS, Linear(standardize=True), max_size=1).n_models == 4
    assert (
        ModelClass.from_inputs(DESCRIPTORS, Matern(1.5), lengthscales=None, max_size=1).names[0] == "x0: Matern 3/2, 1"
    )


def sizes_of(models):
    """How many models have how many inputs, per lengthscale."""
    sizes, counts = np.unique(np.diff(models.offsets), return_counts=True)
    return dict(zip(sizes.tolist(), (counts // 4).tolist(), strict=True))


@pytest.mark.parametrize("subsets", [True, "all"])
def test_up_to_six_inputs_all_subsets_and_no_warning(subsets, recwarn):
    models = ModelClass.from_inputs(RNG.standard_normal((12, 6)), subsets=subsets)
    assert sizes_of(models) == {1: 6, 2: 15, 3: 20, 4: 15, 5: 6, 6: 1}
    assert not recwarn.list


def test_beyond_six_inputs_few_subsets_by_default_and_a_warning_that_says_so():
    ten = RNG.standard_normal((12, 10))
    expected = (
        "10 inputs have 1,023 subsets: 264 models are made, of one input, of two inputs, of all inputs but one and of "
        'all inputs. State subsets="few" to choose this, subsets="all" for all of them \\(4,092 models\\), max_size for'
    )
    with pytest.warns(UserWarning, match=expected):
        models = ModelClass.from_inputs(ten)
    assert sizes_of(models) == {1: 10, 2: 45, 9: 10, 10: 1}
    by_size = np.bincount(np.diff(models.offsets), weights=np.exp(models.log_prior))
    assert by_size[[1, 2, 9, 10]] == pytest.approx(0.25)
    assert models.names[-8] == "x1+x2+x3+x4+x5+x6+x7+x8+x9: Matern 5/2, 0.35"


def test_a_stated_choice_of_subsets_does_not_warn(recwarn):
    ten, many = RNG.standard_normal((12, 10)), RNG.standard_normal((12, 50))
    assert sizes_of(ModelClass.from_inputs(ten, subsets="few")) == {1: 10, 2: 45, 9: 10, 10: 1}
    assert ModelClass.from_inputs(ten, lengthscales=[1.0], subsets="all").n_models == 1023
    assert sizes_of(ModelClass.from_inputs(ten, max_size=2)) == {1: 10, 2: 45}
    assert sizes_of(ModelClass.from_inputs(many, subsets=False)) == {50: 1}
    assert sizes_of(ModelClass.from_inputs(many, subsets="few")) == {1: 50, 49: 50, 50: 1}  # pairs would be too many
    assert sizes_of(ModelClass.from_inputs(DESCRIPTORS[:, :1], subsets="few")) == {1: 1}
    assert sizes_of(ModelClass.from_inputs(DESCRIPTORS[:, :2], subsets="few")) == {1: 2, 2: 1}
    assert not recwarn.list


def test_the_number_of_models_grows_like_a_polynomial():
    counts = []
    for d in range(7, 41, 3):
        with pytest.warns(UserWarning, match=f"{d} inputs have"):
            models = ModelClass.from_inputs(np.arange(3.0 * d).reshape(3, d) ** 2, lengthscales=[1.0])
        counts.append(models.n_models)
    assert counts == [d * (d - 1) // 2 + 2 * d + 1 for d in range(7, 41, 3)]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"inputs": [[np.inf, 1.0]]}, ValueError, "inf at row 0"),
        ({"inputs": DESCRIPTORS, "kernel": "matern"}, TypeError, "kernel must be a kernel such as"),
        ({"inputs": DESCRIPTORS, "lengthscales": [-1.0]}, ValueError, "lengthscales must be positive"),
        ({"inputs": DESCRIPTORS, "lengthscales": [1.0, 1.0]}, ValueError, "lengthscales must be distinct"),
        ({"inputs": DESCRIPTORS, "max_size": 0}, ValueError, "max_size must be at least 1"),
        ({"inputs": DESCRIPTORS, "max_size": 2, "subsets": "few"}, ValueError, "leave it out"),
        ({"inputs": DESCRIPTORS, "subsets": "some"}, ValueError, "subsets must be True, False"),
        ({"inputs": DESCRIPTORS, "subsets": 3}, ValueError, "subsets must be True, False"),
        ({"inputs": np.eye(30), "max_size": 3}, ValueError, "up to 3 of 30 inputs make 18,100 models, more than 4,096"),
        ({"inputs": np.eye(11), "subsets": "all"}, ValueError, "up to 11 of 11 inputs make 8,188 models"),
        ({"inputs": np.eye(600)}, ValueError, "make 4,804 models, more than 4,096; use subsets=False"),
    ],
)
def test_wrong_inputs(arguments, error, message):
    with pytest.raises(error, match=message):
        ModelClass.from_inputs(**arguments)


# -- from components ---------------------------------------------------------------------------------------------------


def reactions():
    """All 2 x 3 combinations of a solvent and a ligand, the ligand described in two ways."""
    solvent, ligand = np.repeat(["DMF", "water"], 3), np.tile([0, 1, 2], 2)
    sizes, charges = np.array([[1.0, 5.0], [2.0, 3.0], [4.0, 0.0]])[ligand], np.array([0.1, 0.2, 0.9])[ligand]
    return {"solvent": solvent.tolist(), "ligand": {"size": sizes, "charge": charges}}


def test_products_over_components():
    models = ModelClass.from_components(reactions(), lengthscales=(0.5, 2.0))
    assert models.n_columns == 2 + (1 + 2) + (1 + 1)
    assert models.names[1] == "size: product, 0.5/2"
    assert models.n_models == 2 * (4 + 2 + 2)
    assert masses(models) == pytest.approx([0.5, 0.5])
    assert np.exp(models.log_prior[[0, 4, 6]]) == pytest.approx([0.5 * 0.4 / 4, 0.5 * 0.2 / 2, 0.5 * 0.4 / 2])
    table = models.matrix(alexp.FiniteSet(list("abcdef")))
    sizes = np.array([[1.0, 5.0], [2.0, 3.0], [4.0, 0.0]])
    same, other = np.eye(2), Matern(lengthscale=2.0).fitted(sizes)(sizes, sizes)
    same[0, 1] = same[1, 0] = Matern(lengthscale=0.5, relative=False)(np.zeros((1, 1)), np.ones((1, 1)))[0, 0]
    expected = np.kron(same, other)
    assert models.gram(1, table, table) == pytest.approx(expected)
    both = Matern(lengthscale=0.5).fitted(sizes)(sizes, sizes)
    expected = 0.5 * (np.kron(same, np.ones((3, 3))) + np.kron(np.ones((2, 2)), both))
    assert models.gram(4, table, table) == pytest.approx(expected)


def test_descriptors_joined():
    """The coordinates of the levels are as far apart as the standardised descriptors of the candidates."""
    given = reactions()
    models = ModelClass.from_components(given, lengthscales=(0.5, 2.0))
    which = list(models.names).index("size: joined, 2")
    table = models.matrix(alexp.FiniteSet(list("abcdef")))
    water = np.array([[word == "DMF", word == "water"] for word in given["solvent"]], dtype=float)
    together = np.hstack([water, given["ligand"]["size"]])
    expected = Matern(lengthscale=2.0).fitted(together)(together, together)
    assert models.gram(which, table, table) == pytest.approx(expected)


def test_components_survive_storage():
    models = ModelClass.from_components(reactions())
    again = ModelClass.from_dict(unpack(pack(models.to_dict())))
    assert again.kernels == models.kernels
    assert again.dictionary.names == ["solvent", "ligand", "size coordinates", "charge coordinates"]


def test_draws_are_different_and_spread():
    draws = lengthscale_draws(5, 4, 48)
    assert len({tuple(draw) for draw in draws.tolist()}) == 48
    assert draws[:4].tolist() == [[k] * 5 for k in range(4)]
    shares = np.stack([np.bincount(column, minlength=4) for column in draws.T])
    assert shares.min() >= 9
    assert len(lengthscale_draws(2, 3, 48)) == 9


@pytest.mark.parametrize(
    ("components", "error", "message"),
    [
        ({}, ValueError, "non-empty dict"),
        ({"a": ["x", "y"], "b": [1.0, 2.0, 3.0]}, ValueError, "the same candidates"),
        ({"a": ["x", "x"]}, ValueError, "component 'a' is the same for all candidates"),
        ({"a": [["x", "y"]]}, TypeError, "must be text, one per candidate"),
        ({"a": [1.0, np.nan]}, ValueError, "nan at row 1"),
        ({"a": {"one": [1.0, 2.0], "two": [1.0, 2.0, 3.0]}}, ValueError, "one row per candidate"),
        ({"a": {}}, ValueError, "at least one description"),
    ],
)
def test_wrong_components(components, error, message):
    with pytest.raises(error, match=message):
        ModelClass.from_components(components)
    with pytest.raises(ValueError, match="lengthscales"):
        ModelClass.from_components(reactions(), lengthscales=[0.0])


# -- the class ---------------------------------------------------------------------------------------------------------


def mixed():
    return ModelClass.from_matrices({"bits": BITS, "descriptors": DESCRIPTORS}, kernels="auto")


def test_storage():
    models = mixed().normalized(TABLE)
    again = ModelClass.from_dict(unpack(pack(models.to_dict())))
    assert again.kernels == models.kernels
    assert again.names == models.names
    assert np.array_equal(again.log_prior, models.log_prior)
    assert np.array_equal(again.families, models.families)
    assert np.array_equal(again.scales, models.scales)
    own = ModelClass.from_matrices({"bits": BITS}, kernels=Function(lambda x, z: x @ z.T))
    assert own.to_dict() is None


@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_prior_weights_come_back_to_the_last_bit(m):
    """A sum that is one up to rounding is not divided by once more, or a stored run would go on differently."""
    levels = np.random.default_rng(m).integers(0, 3, (30, m))
    models = ModelClass.from_components({f"part {i}": levels[:, i].astype(str).tolist() for i in range(m)})
    again = ModelClass.from_dict(unpack(pack(models.to_dict())))
    assert np.array_equal(again.log_prior, models.log_prior)
    scaled = models.to_dict() | {"log_prior": models.log_prior + 1.0}
    assert np.exp(ModelClass.from_dict(scaled).log_prior).sum() == pytest.approx(1.0)


def test_a_single_model():
    models = mixed()
    one = models.only(3)
    assert one.n_models == 1
    assert one.kernels == (models.kernels[3],)
    assert one.names == [models.names[3]]
    assert models.only(0).kernels is None
    assert models.pooled(np.arange(4)).kernels is None


def test_normalised_kernels():
    models = mixed()
    scaled = models.normalized(TABLE)
    table = models.matrix(TABLE)
    for j in range(models.n_models):
        assert scaled.variances(j, table).max() == pytest.approx(1.0)
        np.testing.assert_allclose(scaled.gram(j, table, table) * scaled.scales[j] ** 2, models.gram(j, table, table))


def test_gram_of_linear_models_is_that_of_their_features():
    models = mixed().normalized(TABLE)
    features, table = models.features(0, np.arange(30)), models.matrix(TABLE)
    np.testing.assert_allclose(models.gram(0, table, table), features @ features.T)
    np.testing.assert_allclose(models.variances(0, table), (features**2).sum(axis=1))
    with pytest.raises(ValueError, match="'bits: Tanimoto' is a kernel: its features are infinitely many"):
        models.features(1, np.arange(30))


def test_all_kernels_at_once():
    models, table = mixed(), mixed().matrix(TABLE)
    shared = SharedKernels(models.kernels, models.groups)(table[4], table)
    for j in range(models.n_models):
        assert np.array_equal(shared[j], models.gram(j, table[4:5], table)[0])


def test_repr_says_that_there_are_kernels():
    assert repr(mixed()) == "ModelClass(8 models, 7 of them kernels, 12 columns, intercept)"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"kernels": [Tanimoto()]}, ValueError, "one entry per model \\(2\\), got 1"),
        ({"kernels": [Tanimoto(), "linear"]}, TypeError, "kernel 1 must be a kernel"),
        ({"kernels": [None, Matern()]}, ValueError, "relative to the candidates"),
        ({"log_prior": [0.0, -np.inf]}, ValueError, "log_prior must be 2 finite numbers"),
        ({"log_prior": [0.0]}, ValueError, "log_prior must be 2 finite numbers"),
        ({"families": [0.5, 1.0]}, ValueError, "families must be 2 whole numbers"),
    ],
)
def test_wrong_arguments_of_the_class(arguments, error, message):
    with pytest.raises(error, match=message):
        ModelClass(alexp.Legendre(2), [[0], [1, 2]], **arguments)


def test_prior_weights_are_normalised():
    models = ModelClass(alexp.Legendre(2), [[0], [1, 2]], log_prior=np.log([3.0, 1.0]))
    assert np.exp(models.log_prior) == pytest.approx([0.75, 0.25])


# -- who takes them ----------------------------------------------------------------------------------------------------

NEED_COLUMNS = ["etc", "ets", "squarecb", "fs-scb", "o2cs-ew", "corral", "d3rb", "ed2rb", "exp4-ix"]


@pytest.mark.parametrize("name", NEED_COLUMNS)
def test_who_needs_columns_says_so(name):
    kind = alexp.Algorithm.registry[name]
    message = (
        f"{kind.__name__} needs models that are linear .*: {kind.needs_columns}; model 'bits: Tanimoto' is a kernel"
    )
    with pytest.raises(ValueError, match=message):
        kind(mixed(), TABLE, **kind.example)


def test_the_lasso_needs_columns_and_designs_do():
    with pytest.raises(ValueError, match="ALExp with GroupLasso needs models that are linear"):
        alexp.ALExp(mixed(), TABLE)
    with pytest.raises(ValueError, match="LinUCB without model= needs models that are linear"):
        alexp.LinUCB(mixed(), TABLE)
    for design in (alexp.EOptimal(), alexp.DOptimal()):
        with pytest.raises(ValueError, match="Uniform\\(\\) explores with kernels"):
            design.design(mixed(), TABLE)
    with pytest.raises(ValueError, match="preflight needs"):
        alexp.preflight(mixed(), TABLE)
    with pytest.raises(ValueError, match="SyntheticEnvironment needs"):
        alexp.SyntheticEnvironment(mixed(), TABLE)


def test_everybody_says_whether_columns_are_needed():
    """The others are those that kernels are for, and the one that looks at no model."""
    takes = {name for name, kind in alexp.Algorithm.registry.items() if not kind.needs_columns}
    own = {name for name in takes if alexp.Algorithm.registry[name].__module__.startswith("alexp.")}
    assert own == {
        "alexp", "evidence-mixture", "evidence-sampling", "linucb", "lm-ucb", "mixture-thompson", "uniform"
    }  # fmt: skip


# -- recognising -------------------------------------------------------------------------------------------------------


def prints(models):
    return alexp.UniformRandom(models, TABLE, random_state=0).fingerprint()


def test_fingerprints_know_kernels_and_prior_weights():
    different = [
        ModelClass.from_matrices({"d": DESCRIPTORS}),
        ModelClass.from_matrices({"d": DESCRIPTORS}, kernels=Matern()),
        ModelClass.from_matrices({"d": DESCRIPTORS}, kernels=Matern(lengthscale=0.5)),
        ModelClass.from_matrices({"d": DESCRIPTORS}, kernels=RBF()),
        ModelClass.from_matrices({"d": DESCRIPTORS}, kernels=Function(lambda x, z: x @ z.T)),
        ModelClass.from_matrices({"d": DESCRIPTORS}, kernels=Function(lambda x, z: 2.0 * x @ z.T)),
        ModelClass.from_matrices({"d": DESCRIPTORS}, kernels=[Matern(), RBF()]),
    ]
    unequal = ModelClass.from_matrices({"d": DESCRIPTORS}, kernels=[Matern(), RBF()])
    unequal._log_prior = np.log([0.9, 0.1])
    assert len({prints(models) for models in [*different, unequal]}) == 8
    assert prints(different[1]) == prints(ModelClass.from_matrices({"d": DESCRIPTORS}, kernels=Matern()))


def test_words():
    assert kernels_from_words(["auto"]) == "auto"
    assert kernels_from_words(["linear"]) == "linear"
    assert kernels_from_words(["tanimoto+matern12:0.5"]) == [Tanimoto(), Matern(0.5, lengthscale=0.5)]
    assert kernels_from_words(["a=auto", "b=rbf:2+standardized"]) == {
        "a": "auto",
        "b": [RBF(2.0), Linear(standardize=True)],
    }
    for words, message in [
        (["sigmoid"], "unknown kernel 'sigmoid'; known are linear"),
        (["a=rbf", "a=rbf"], "once for every map"),
        (["a=rbf", "auto"], "NAME=KERNEL"),
        (["a=tanimoto:2"], "tanimoto has no lengthscale"),
        (["rbf:wide"], "must be a number"),
        (["rbf:-1"], "lengthscale must be positive"),
    ]:
        with pytest.raises(ValueError, match=message):
            kernels_from_words(words)
