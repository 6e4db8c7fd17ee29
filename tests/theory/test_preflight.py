"""Preflight: it must notice what is wrong, say it, and stay quiet and quick when nothing is."""

import json

import numpy as np
import pytest

import alexp.theory
from alexp import FiniteSet, Interval, ModelClass, Schedules
from alexp.theory import preflight
from alexp.theory.preflight import Preflight, column_classes, span_relations


@pytest.fixture(scope="module")
def paper() -> Preflight:
    return preflight(ModelClass.legendre(degree=10, size=2), Interval(resolution=201), noise_std=0.01)


def test_the_papers_scenario(paper):
    assert paper.problem["models"] == 55
    assert paper.problem["largest_feature_norm"] == pytest.approx(np.sqrt(2))
    assert paper.columns["rank"] == 11
    assert paper.columns["repeated_columns"] == 99
    assert paper.columns["nested_models"] == paper.columns["duplicate_models"] == []
    assert paper.c_min["concatenation"] == 0.0
    assert paper.c_min["distinct"] == pytest.approx(0.0614, abs=5e-5)
    assert paper.c_min["model_wise"] == pytest.approx(0.0654, abs=5e-5)
    assert paper.c_min["model_wise_upper_bound"] - paper.c_min["model_wise"] < 1e-6
    assert any("99 columns" in text for text in paper.advice)
    assert any("norm 1.41" in text for text in paper.advice)


def test_every_design_is_reported_and_ordered(paper):
    wise = {row["design"]: row["model_wise"] for row in paper.designs}
    distinct = {row["design"]: row["distinct"] for row in paper.designs}
    assert wise["Uniform"] == pytest.approx(0.0508, abs=5e-5)
    assert max(wise.values()) == wise["EOptimal(model_wise=True)"]
    assert max(distinct.values()) == distinct["EOptimal"]


def test_constants_audit(paper):
    lines = {line["quantity"]: line for line in paper.constants}
    schedules = Schedules()
    for t in (1, 10, 100, 1000):
        assert lines["gamma_t (used)"][f"t={t}"] == pytest.approx(schedules.gamma_t(t))
        assert lines["eta_t (used)"][f"t={t}"] == pytest.approx(schedules.eta_t(t, 1.0))
        assert lines["lambda_t (used)"][f"t={t}"] == pytest.approx(schedules.lambda_t(t, 0.01, 55, 2))
        proved, printed = lines["lambda_t, proved (worst data)"], lines["lambda_t, printed theorem"]
        assert proved[f"t={t}"] < printed[f"t={t}"]
    expected = sum(schedules.gamma_t(t) for t in range(1, 101))
    assert lines["explored rounds, expected"]["t=100"] == pytest.approx(expected)
    assert "t^(-1/4)" in lines["gamma_t (used)"]["formula"]


def test_three_forms_say_the_same(paper):
    data = json.loads(json.dumps(paper.to_dict(), allow_nan=False))
    assert data["columns"]["rank"] == 11
    table = paper.to_dataframe()
    assert set(table["section"]) == {"problem", "columns", "c_min", "designs", "constants", "advice"}
    value = table.loc[table["quantity"] == "EOptimal: distinct", "value"].item()
    assert value == pytest.approx(data["c_min"]["distinct"])
    text = str(paper)
    assert "EOptimal(model_wise=True)" in text
    assert f"{data['c_min']['distinct']:.4g}" in text
    assert "<table" in paper._repr_html_()


def test_a_clean_problem_gets_no_warnings_about_columns():
    rng = np.random.default_rng(0)
    models = ModelClass.from_matrices({"a": rng.normal(size=(80, 2)), "b": rng.normal(size=(80, 2))})
    domain = FiniteSet(range(80))
    report = preflight(models.normalized(domain), domain, schedules=Schedules(lam=1.0))
    assert report.c_min["concatenation"] > 0.0
    assert all("EOptimal" in text for text in report.advice)


def test_trouble_is_named():
    rng = np.random.default_rng(1)
    a = rng.normal(size=(50, 2))
    models = ModelClass.from_matrices({
        "base": a,
        "scaled[x]": a * np.array([3.0, -0.5]),
        "mixed": a @ rng.normal(size=(2, 2)),
        "wider": np.column_stack([a, rng.normal(size=50)]),
        "broken": np.column_stack([a[:, 0], 2 * a[:, 0]]),
        "huge": 1e4 * rng.normal(size=(50, 2)),
    })  # fmt: skip
    report = preflight(models, FiniteSet(range(50)))
    assert report.columns["duplicate_models"] == [["base", "scaled[x]"]]
    assert ["base", "mixed"] in report.columns["equal_spans"]
    assert ["base", "wider"] in report.columns["nested_models"]
    assert report.columns["deficient_models"] == ["broken"]
    assert report.c_min["concatenation"] == 0.0
    text = " ".join(report.advice)
    for word in ("'broken'", "'scaled[x]'", "'mixed'", "normalized(domain)", "rank"):
        assert word in text
    assert "scaled[x]" in str(report)


def test_large_problems_are_left_alone():
    rng = np.random.default_rng(2)
    models = ModelClass.from_matrices({f"m{j}": rng.normal(size=(40, 4)) for j in range(80)})
    report = preflight(models, FiniteSet(range(40)))
    assert report.designs[0]["model_wise"] > 0.0
    assert "too large" in report.designs[2]["note"]
    assert report.columns["rank"] == 40
    assert report.c_min["distinct"] is None
    json.dumps(report.to_dict(), allow_nan=False)


def test_missing_solver_is_reported_not_raised(monkeypatch):
    def missing():
        raise ImportError("pip install alexp[design]")

    monkeypatch.setattr("alexp.decision.semidefinite.load_cvxpy", missing)
    report = preflight(ModelClass.legendre(degree=3, size=2), Interval(resolution=31))
    assert "alexp[design]" in report.designs[2]["note"]
    assert report.designs[1]["distinct"] > 0.0
    assert "alexp[design]" in str(report)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="noise_std"):
        preflight(ModelClass.legendre(degree=2, size=1), Interval(resolution=9), noise_std=0.0)


def test_column_classes_and_span_limits():
    x = np.linspace(-1, 1, 20)
    labels = column_classes(np.stack([x, -2 * x, x**2, 0 * x, x + x**2], axis=1))
    assert labels.tolist() == [0, 0, 2, 3, 4]
    many = [np.array([0])] * 61
    assert span_relations(np.ones((3, 1)), many) == ([], [])


def test_everything_public_is_documented_and_importable():
    for name in alexp.theory.__all__:
        assert getattr(alexp.theory, name).__doc__
