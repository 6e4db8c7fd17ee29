"""Transformers as models: what scikit-learn would have computed, kept in the form it came in."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csc_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.utils.validation import check_is_fitted

import alexp
from alexp.integrations.sklearn import from_transformers

X = np.random.default_rng(0).normal(size=(30, 3)) * [1.0, 10.0, 0.1]
SOLVENTS = pd.DataFrame(
    {"solvent": ["DMF", "water", "EtOH", "water", "DMF", "EtOH"], "celsius": [90.0, 90.0, 105.0, 105.0, 120.0, 120.0]},
    index=[f"r{k}" for k in range(6)],
)


def test_features_are_what_the_transformers_compute():
    scaler, pca = StandardScaler(), make_pipeline(StandardScaler(), PCA(2))
    models = from_transformers({"scaled": scaler, "components": pca}, X)
    assert models.names == ["scaled", "components"]
    assert models.intercept
    rows = np.arange(len(X))
    assert np.array_equal(models.features(0, rows), StandardScaler().fit_transform(X))
    assert np.array_equal(models.features(1, rows), make_pipeline(StandardScaler(), PCA(2)).fit_transform(X))
    with pytest.raises(NotFittedError):  # the caller's own are not touched
        check_is_fitted(scaler)


def test_fitted_transformers_are_used_as_they_are():
    fitted = StandardScaler().fit(X * 7.0 + 3.0)
    models = from_transformers([fitted], X)
    assert np.array_equal(models.features(0, np.arange(30)), fitted.transform(X))
    assert not np.allclose(models.features(0, np.arange(30)), StandardScaler().fit_transform(X))


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ([StandardScaler(), PCA(2)], ["standardscaler", "pca"]),
        ([PCA(1), StandardScaler(), PCA(2)], ["pca-1", "standardscaler", "pca-2"]),
        ([("a", PCA(1)), PCA(2), "passthrough"], ["a", "pca", "passthrough"]),
        ([make_pipeline(StandardScaler(), "passthrough", PCA(1))], ["standardscaler+pca"]),
        (FeatureUnion([("one", PCA(1)), ("two", "drop"), ("three", StandardScaler())]), ["one", "three"]),
        ({"x": "passthrough"}, ["x"]),
    ],
)
def test_names(given, names):
    assert list(from_transformers(given, X).names) == names


def test_sparse_features_stay_sparse_and_decide_the_same():
    sparse = from_transformers({"kind": OneHotEncoder()}, SOLVENTS[["solvent"]])
    plain = from_transformers({"kind": OneHotEncoder(sparse_output=False)}, SOLVENTS[["solvent"]])
    assert sparse.dictionary.blocks[0].format == "csr"
    assert isinstance(plain.dictionary.blocks[0], np.ndarray)
    runs = []
    for models in (sparse, plain):
        opt = alexp.EvidenceMixture(models, alexp.FiniteSet(SOLVENTS), random_state=1)
        for _ in range(8):
            trial = opt.ask()
            opt.tell(trial, float(trial.index % 3))
        runs.append(opt.trials_dataframe()["index"].tolist())
    assert runs[0] == runs[1]


def test_precision_and_other_sparse_forms_are_kept():
    single = FunctionTransformer(lambda x: x.astype(np.float32))
    columns = FunctionTransformer(lambda x: csc_array(x * (x > 0)))
    models = from_transformers({"single": single, "columns": columns}, X)
    assert models.dictionary.blocks[0].dtype == np.float32
    assert models.dictionary.blocks[1].format == "csr"
    assert np.array_equal(models.features(1, np.arange(30)), X * (X > 0))


def test_columns_are_called_as_scikit_learn_calls_them():
    by_column = ColumnTransformer([("kind", OneHotEncoder(), ["solvent"]), ("T", StandardScaler(), ["celsius"])])
    maps = {"both": by_column, "celsius": "passthrough", "plain": FunctionTransformer(lambda x: x[["celsius"]] ** 2)}
    models = from_transformers(maps | {"celsius": FunctionTransformer(lambda x: x[["celsius"]])}, SOLVENTS)
    assert models.dictionary.names == [
        "both[kind__solvent_DMF]", "both[kind__solvent_EtOH]", "both[kind__solvent_water]", "both[T__celsius]",
        "celsius[0]", "plain[0]",
    ]  # fmt: skip
    framed = from_transformers([StandardScaler().set_output(transform="pandas")], SOLVENTS[["celsius"]])
    assert framed.dictionary.names == ["standardscaler[celsius]"]
    assert from_transformers({"own": "passthrough"}, SOLVENTS[["celsius"]]).dictionary.names == ["own[celsius]"]


def test_rows_belong_to_the_labels_of_the_candidates():
    models = from_transformers([OneHotEncoder()], SOLVENTS[["solvent"]])
    assert models.matrix(alexp.FiniteSet(SOLVENTS)).shape == (6, 3)
    with pytest.raises(ValueError, match="another order"):
        models.matrix(alexp.FiniteSet(SOLVENTS.iloc[::-1]))


def test_texts_and_kernels():
    texts = ["red blue", "red", "blue blue", "green", "green red", "blue"]
    models = from_transformers([CountVectorizer()], texts, kernels="auto")
    assert list(models.names) == ["countvectorizer: linear", "countvectorizer: Tanimoto"]
    opt = alexp.EvidenceMixture(models, alexp.FiniteSet(texts), random_state=0)
    assert opt.ask().x in texts
    assert from_transformers([CountVectorizer()], texts, intercept=False).intercept is False


def test_the_map_that_rewards_follow_is_found():
    maps = {"line": StandardScaler(), "square": make_pipeline(StandardScaler(), PolynomialFeatures(2))}
    models = from_transformers(maps, X)
    opt = alexp.EvidenceMixture(models, alexp.FiniteSet(X), random_state=0)
    z = (X - X.mean(axis=0)) / X.std(axis=0)
    for _ in range(25):
        trial = opt.ask()
        opt.tell(trial, 5.0 + z[trial.index, 0] * z[trial.index, 1] - z[trial.index, 2] ** 2)
    assert opt.probabilities[1] > 0.95


class Ranks:
    """No estimator of scikit-learn's: a convention is all there is."""

    def fit(self, X, y=None):
        self.values_ = np.sort(X[:, 0])
        return self

    def transform(self, X):
        return np.searchsorted(self.values_, X[:, 0])[:, None].astype(float)


def test_transformers_of_ones_own():
    assert from_transformers([Ranks()], X).features(0, [np.argmin(X[:, 0])])[0, 0] == 0.0
    fitted = Ranks().fit(X - 100.0)
    assert from_transformers([fitted], X).features(0, [3])[0, 0] == 30.0


class Without(TransformerMixin, BaseEstimator):
    """Has names of its own that are too few."""

    def fit(self, X, y=None):
        self.n_ = 1
        return self

    def transform(self, X):
        return np.hstack([X, X])

    def get_feature_names_out(self, input_features=None):
        return ["only one"]


def test_names_that_do_not_fit_are_left_out():
    assert from_transformers({"w": Without()}, X).dictionary.names == [f"w[{k}]" for k in range(6)]


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ([], ValueError, "must not be empty"),
        ({}, ValueError, "empty"),
        (StandardScaler(), TypeError, "single transformer"),
        ("passthrough", TypeError, "must be a list"),
        ([StandardScaler], TypeError, "pass an instance"),
        ([3], TypeError, "fit and transform"),
        (["drop"], TypeError, "passthrough"),
        ([("a", PCA(1)), ("a", PCA(2))], ValueError, "'a' twice"),
        ([SelectKBest(f_regression, k=1)], ValueError, "cannot be fitted on the candidates alone"),
    ],
    ids=map(str, range(9)),
)
def test_what_is_no_list_of_transformers_is_refused(given, error, words):
    with pytest.raises(error, match=words):
        from_transformers(given, X)


def test_features_must_be_finite_and_fit_the_candidates():
    with pytest.raises(ValueError, match="'log'.*finite"):
        from_transformers({"log": FunctionTransformer(lambda x: np.where(x > 0, x, np.nan))}, X)
    with pytest.raises(ValueError, match="'half'.*30 rows"):
        from_transformers({"all": "passthrough", "half": FunctionTransformer(lambda x: x[:15])}, X)
    with pytest.raises(TypeError, match="X must be"):
        from_transformers([StandardScaler()], 3)
