"""Kernels of one's own: one class, nothing registered, compared by value everywhere."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp

import alexp
from alexp.common.codec import pack, unpack
from alexp.kernels import RBF, Function, Kernel, Linear, Matern, Precomputed, Stationary, Tanimoto
from alexp.problem import ModelClass
from alexp.problem.kernels import kernel_from_dict
from alexp.problem.rows import dense
from alexp.problem.shared_kernels import SharedKernels
from alexp.study.declared import kernels_from_words
from alexp.testing import check_kernel

X = np.random.default_rng(0).normal(size=(40, 3)) * [1.0, 30.0, 0.01]


@dataclass(frozen=True)
class RationalQuadratic(Stationary):
    """A kernel of the distance as a dataclass, with one name whatever its parameter is."""

    alpha: float = 1.0

    @property
    def shape_name(self):
        return "rational quadratic"

    def profile(self, squares):
        return (1.0 + squares / (2.0 * self.alpha)) ** -self.alpha


class ByHand(Stationary):
    """The same without a dataclass, and with a default."""

    def __init__(self, alpha=1.0, **fields):
        super().__init__(**fields)
        object.__setattr__(self, "alpha", alpha)

    name = "by hand"

    def profile(self, squares):
        return (1.0 + squares / (2.0 * self.alpha)) ** -self.alpha


class Periodic(Kernel):
    """Not of a distance, no dataclass, an array among its attributes."""

    def __init__(self, period, weights):
        self.period, self.weights = float(period), np.array(weights, dtype=float)

    def block(self, x, z):
        apart = x[:, None] - dense(z)
        return np.exp(-2.0 * np.sin(np.pi * apart / self.period) ** 2 @ self.weights)


@dataclass(frozen=True)
class Warped(Kernel):
    """A kernel that holds another, under the name that descriptions use for the class, and an array."""

    kernel: Kernel
    divisors: np.ndarray

    def block(self, x, z):
        return self.kernel.block(np.tanh(x / self.divisors), np.tanh(dense(z) / self.divisors))


@dataclass(frozen=True)
class Rough(Matern):
    """A kernel of the library with another profile and no further field."""

    def profile(self, squares):
        return np.exp(-(squares**0.25))


class Doubled(Matern):
    """A kernel of the library with another block: an inherited plan would leave the factor out."""

    def block(self, x, z):
        return 2.0 * super().block(x, z)

    def diagonal_block(self, z):
        return 2.0 * super().diagonal_block(z)


def rational(alpha, lengthscale=1.0, x=X):
    """k(x, x) in plain NumPy, in units of the median distance of standardised columns."""
    z = x / x.std(axis=0)
    squares = ((z[:, None] - z) ** 2).sum(axis=2)
    median = np.sqrt(np.median(squares[np.triu_indices(len(x), 1)]))
    return (1.0 + squares / (lengthscale * median) ** 2 / (2.0 * alpha)) ** -alpha


NEAR, FAR = RBF(1.0, relative=False), RBF(2.0, relative=False)
OWN = {
    "dataclass": (RationalQuadratic(alpha=2.0), RationalQuadratic(alpha=0.5)),
    "by-hand": (ByHand(2.0), ByHand(0.5)),
    "periodic": (Periodic(2.0, [1, 0, 1]), Periodic(2.0, [1, 1, 0])),
    "warped": (Warped(NEAR, np.ones(3)), Warped(FAR, np.ones(3)), Warped(NEAR, np.full(3, 2.0))),
    "rough": (Rough(), Matern(), Rough(1.5)),
    "doubled": (Doubled(2.5), Matern(2.5)),
    "function": (Function(lambda x, z: x @ z.T, "k"), Function(lambda x, z: 2.0 * x @ z.T, "k")),
    "linear": (Linear(standardize=True), Linear()),
    "tanimoto": (Tanimoto(), RBF()),
    "matern": (Matern(1.5), Matern(2.5), RBF(2.0), RBF((1.0, 2.0, 3.0)), RBF(relative=False)),
    "sum": (Matern() + 0.5 * RBF(), Matern() + 0.5 * RationalQuadratic()),
    "product": (Matern() * RationalQuadratic(), Matern() * RationalQuadratic(alpha=2.0)),
    "restricted": (RationalQuadratic().on([0, 2]), RationalQuadratic().on([0, 1]), RationalQuadratic(alpha=3.0)),
}


@pytest.mark.parametrize("kernels", OWN.values(), ids=OWN)
def test_the_check_of_kernels(kernels):
    check_kernel(kernels[0], X, *kernels[1:])


def test_the_check_of_kernels_on_a_gram_matrix():
    gram = np.cov(np.random.default_rng(1).normal(size=(5, 9)))
    numbers = np.arange(5.0)[:, None]
    check_kernel(Precomputed(gram), numbers, Precomputed(2.0 * gram), Precomputed(gram, "other"))


class NamedAlike(RationalQuadratic):
    """Compared by its display name."""

    def __eq__(self, other):
        return isinstance(other, NamedAlike) and self.name == other.name

    def __hash__(self):
        return hash(self.name)


class WholeNumbersAlike(Kernel):
    """Compared by its class, with a whole number for a parameter."""

    def __init__(self, degree):
        self.degree = degree

    def block(self, x, z):
        return (1.0 + x @ dense(z).T) ** self.degree

    def __eq__(self, other):
        return isinstance(other, WholeNumbersAlike)

    def __hash__(self):
        return 0


class Forgetful(Matern):
    """Stored without its smoothness."""

    def to_dict(self):
        described = super().to_dict()
        del described["fields"]["nu"]
        return described


class Lopsided(RBF):
    def block(self, x, z):
        return super().block(x, z) * (1.0 + 0.1 * x[:, :1])


class Shifted(RBF):
    def block(self, x, z):
        return super().block(x, z) - 0.5

    def diagonal_block(self, z):
        return np.full(z.shape[0], 0.5)


class WrongDiagonal(RBF):
    def diagonal_block(self, z):
        return np.full(z.shape[0], 2.0)


class Centred(RBF):
    def block(self, x, z):
        return super().block(x, z) + float(len(z))

    def diagonal_block(self, z):
        return np.full(z.shape[0], 1.0 + len(z))


class WrongPlan(RBF):
    def plan(self, steps, columns):
        return Matern(1.5, relative=False).plan(steps, columns)


class Changing(RBF):
    def fitted(self, x):
        return self.replaced(unit=(self.unit or 1.0) * 2.0)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (NamedAlike(alpha=2.0), "with different parameters must differ"),
        (WholeNumbersAlike(2), "with different parameters must differ"),
        (WholeNumbersAlike(np.int64(2)), "with different parameters must differ"),
        (Forgetful(1.5), "must come back equal"),
        (Lopsided(), "must be k\\(z, x\\)"),
        (Shifted(), "positive semidefinite"),
        (WrongDiagonal(), "diagonal\\(x\\) must be"),
        (Centred(), "parts of the rows"),
        (WrongPlan(), "a has other values beside other kernels"),
        (Changing(), "must stay what it is"),
    ],
)
def test_the_check_notices(kernel, message):
    with pytest.raises(AssertionError, match=message):
        check_kernel(kernel, X)


# -- values --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [RationalQuadratic, ByHand])
def test_kernels_of_one_name_have_their_own_values_in_one_pass_and_densely(kind):
    a, b = kind(alpha=0.5).fitted(X), kind(alpha=3.0).fitted(X)
    assert a.name == b.name
    first, second = rational(0.5), rational(3.0)
    kernels = [a, b, a + 0.5 * b, a * b, 2.0 * (a + b) * a]
    expected = [first, second, first + 0.5 * second, first * second, 2.0 * (first + second) * first]
    for table in (X, np.asfortranarray(X), sp.csr_array(X)):
        together = SharedKernels(kernels, [np.arange(3)] * len(kernels))
        values = np.stack([together(point, table) for point in X], axis=1)
        for got, kernel, wanted in zip(values, kernels, expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-9)
            np.testing.assert_allclose(kernel(X, table), wanted, rtol=1e-9)
    assert np.abs(first - second).max() > 0.05


@pytest.mark.parametrize("goal", ["sum", "best"])
@pytest.mark.parametrize("kind", [RationalQuadratic, ByHand])
def test_models_of_kernels_of_ones_own(kind, goal):
    """Posteriors are those of Gram matrices made in NumPy: two models of one name, their sum and their product."""
    a, b = kind(alpha=0.5), kind(alpha=3.0)
    models = ModelClass.from_matrices({"x": X}, kernels={"x": [a, b, a + 0.5 * b, a * b]})
    assert len(set(models.names)) == 4
    first, second = rational(0.5), rational(3.0)
    grams = [first, second, first + 0.5 * second, first * second]
    table = models.matrix(alexp.FiniteSet(list(range(40))))
    for j, gram in enumerate(grams):
        np.testing.assert_allclose(models.gram(j, table, table), gram, rtol=1e-9)
    known = ModelClass.from_matrices({str(j): Precomputed(0.5 * (gram + gram.T)) for j, gram in enumerate(grams)})
    runs = []
    for these in (models, known):
        opt = alexp.EvidenceMixture(these, alexp.FiniteSet(list(range(40))), goal=goal, random_state=0)
        for _ in range(10):
            trial = opt.ask()
            opt.tell(trial, float(np.sin(X[trial.index, 0]) + X[trial.index, 1] / 30.0))
        runs.append((opt.trials_dataframe()["index"].tolist(), opt.probabilities))
    assert runs[0][0] == runs[1][0]
    np.testing.assert_allclose(runs[0][1], runs[1][1], rtol=1e-6)


@pytest.mark.parametrize("kind", [RationalQuadratic, ByHand])
def test_inputs_keep_parameters_at_every_lengthscale(kind):
    models = ModelClass.from_inputs(X, kind(alpha=0.5), lengthscales=[0.5, 2.0])
    assert {kernel.alpha for kernel in models.kernels} == {0.5}
    table = models.matrix(alexp.FiniteSet(list(range(40))))
    np.testing.assert_allclose(models.gram(13, table, table), rational(0.5, 2.0), rtol=1e-9)
    components = ModelClass.from_components({"a": X[:, 0], "b": X[:, 1:]}, kind(alpha=0.5))
    joined = [kernel for kernel in components.kernels if isinstance(kernel, kind)]
    assert joined
    assert {kernel.alpha for kernel in joined} == {0.5}


def test_kernels_that_are_fitted_in_a_way_of_their_own():
    class Doubly(RationalQuadratic):
        def fitted(self, x):
            done = super().fitted(x)
            return done if done is self else done.replaced(unit=2.0 * done.unit)

    models = ModelClass.from_matrices({"x": X}, kernels={"x": [Matern(), Doubly()]})
    assert models.kernels[1].unit == 2.0 * models.kernels[0].unit


# -- equality, names, storage -----------------------------------------------------------------------------------------


def test_equal_by_class_and_attributes():
    assert RationalQuadratic(alpha=2.0) == RationalQuadratic(alpha=2.0) != RationalQuadratic(alpha=3.0)
    assert ByHand(2.0) == ByHand(2.0) != ByHand(3.0)
    assert hash(ByHand(2.0)) == hash(ByHand(2.0))
    assert Periodic(1.0, [1.0, 2.0]) == Periodic(1.0, [1.0, 2.0]) != Periodic(1.0, [2.0, 1.0])
    assert Rough() != Matern()
    assert Matern() != Rough()
    fitted, fresh = ByHand(2.0).fitted(X), ByHand(2.0).fitted(X)
    fitted(X, X)  # what is kept for the next time is no part of the value
    assert fitted == fresh
    assert len({Warped(RBF(), np.ones(2)), Warped(RBF(), np.ones(2)), Warped(RBF(), np.zeros(2))}) == 2


def test_names_tell_parameters_and_models_of_one_name_are_numbered():
    @dataclass(frozen=True)
    class Wave(Stationary):
        alpha: float = 1.0
        order: int = 2

        def profile(self, squares):
            return np.exp(-squares)

    assert Wave(alpha=0.25, lengthscale=2.0).name == "Wave alpha=0.25 order=2, 2"
    assert Periodic(2.0, [1.0]).name == "Periodic period=2"
    models = ModelClass.from_matrices({"x": X}, kernels={"x": [RationalQuadratic(alpha=a) for a in (1.0, 2.0, 3.0)]})
    plain = "x: rational quadratic, 1"
    assert models.names == [plain, f"{plain} (2)", f"{plain} (3)"]
    assert [kernel.alpha for kernel in models.kernels] == [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="twice"):
        ModelClass.from_matrices({"x": X}, kernels={"x": [RationalQuadratic(), RationalQuadratic()]})


@pytest.mark.parametrize("kernel", [RationalQuadratic(alpha=0.5), Warped(NEAR, np.ones(3)), Rough(lengthscale=3.0)])
def test_dataclasses_are_stored_by_class_and_fields(kernel):
    models = ModelClass.from_matrices({"x": X}, kernels={"x": [kernel, kernel + 0.5 * RationalQuadratic(alpha=7.0)]})
    again = ModelClass.from_dict(unpack(pack(models.to_dict())))
    assert again.kernels == models.kernels
    assert type(again.kernels[0]) is type(kernel)


def test_other_classes_are_passed_again():
    domain = alexp.FiniteSet(list(range(40)))
    models = ModelClass.from_matrices({"x": X}, kernels={"x": [ByHand(2.0), ByHand(3.0)]})
    assert models.to_dict() is None
    opt = alexp.EvidenceMixture(models, domain, random_state=0)
    opt.tell(opt.ask(), 1.0)
    state = opt.to_dict()
    with pytest.raises(ValueError, match="pass models="):
        alexp.EvidenceMixture.from_dict(state)
    again = alexp.EvidenceMixture.from_dict(state, models=models)
    assert again.ask().index == opt.ask().index
    other = ModelClass.from_matrices({"x": X}, kernels={"x": [ByHand(2.0), ByHand(3.5)]})
    with pytest.raises(ValueError, match="other features than those of the saved run"):
        alexp.EvidenceMixture.from_dict(state, models=other)


def test_saved_runs_and_studies_take_up_kernels_of_ones_own(tmp_path):
    models = ModelClass.from_matrices(
        {"x": X}, kernels={"x": [RationalQuadratic(alpha=0.5), RationalQuadratic(alpha=3.0)]}
    )
    domain = alexp.FiniteSet([f"c{i}" for i in range(40)])
    opt = alexp.EvidenceMixture(models, domain, random_state=0)
    url = f"sqlite:///{tmp_path}/s.db"
    study = alexp.create_study(models, domain, name="own", storage=url, goal="sum", repeats=True, random_state=0)
    for _ in range(4):
        trial, same = opt.ask(), study.ask()
        assert trial.index == same.index
        opt.tell(trial, float(X[trial.index, 0]))
        study.tell(same, float(X[trial.index, 0]))
    again = alexp.EvidenceMixture.from_dict(json.loads(json.dumps(opt.to_dict())))
    assert again.models.kernels == models.kernels
    study.close()
    reopened = alexp.load_study(name="own", storage=url)
    assert again.ask().index == opt.ask().index == reopened.ask().index
    reopened.close()


def test_code_that_changed_is_noticed(monkeypatch):
    models = ModelClass.from_matrices({"x": X}, kernels={"x": [RationalQuadratic(alpha=0.5) + Linear(), Matern()]})
    state = alexp.EvidenceMixture(models, alexp.FiniteSet(list(range(40))), random_state=0).to_dict()
    alexp.EvidenceMixture.from_dict(state)
    monkeypatch.setattr(RationalQuadratic, "profile", lambda self, squares: np.exp(-squares))
    with pytest.raises(ValueError, match="other features than those of the saved run"):
        alexp.EvidenceMixture.from_dict(state)


def test_of_two_classes_of_one_name_the_later_is_taken_up():
    def define(power):
        @dataclass(frozen=True)
        class Again(Stationary):
            def profile(self, squares):
                return np.exp(-squares * power)

        return Again

    first, second = define(1.0), define(2.0)
    assert first() != second()
    assert type(kernel_from_dict(first().to_dict())) is second


def test_declared_studies_take_classes_that_are_imported():
    word = f"{__name__}.RationalQuadratic"
    assert kernels_from_words([f"x={word}:0.5"])["x"] == [RationalQuadratic(lengthscale=0.5)]
    assert kernels_from_words(["x=MATERN32:0.5+rbf:2"])["x"] == [Matern(1.5, lengthscale=0.5), RBF(2.0)]
    with pytest.raises(ValueError, match="has no default parameters"):
        kernels_from_words([f"x={__name__}.Periodic"])
    with pytest.raises(ValueError, match="unknown kernel 'os.path'"):
        kernels_from_words(["x=os.path"])
