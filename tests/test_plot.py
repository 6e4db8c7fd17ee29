"""Figures by one call, and a run in a paragraph."""

import re
import subprocess
import sys
from html import escape

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import alexp
from alexp import plot
from alexp.study.viewing import view_of

N = 60


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def problem(direction="maximize", **settings):
    """An optimiser on a table whose second description is right, and the rewards of all candidates."""
    rng = np.random.default_rng(5)
    tables = {"wrong": rng.normal(size=(N, 4)), "<right> $": rng.normal(size=(N, 3))}
    rewards = 20.0 + 5.0 * tables["<right> $"] @ np.array([1.0, -2.0, 0.5]) + 0.3 * rng.normal(size=N)
    models, domain = alexp.ModelClass.from_matrices(tables), alexp.FiniteSet([f"c{i}" for i in range(N)])
    settings = {"repeats": False, "goal": "best", "random_state": 0} | settings
    return alexp.EvidenceMixture(models, domain, direction=direction, **settings), rewards


def play(opt, rewards, plates=3, size=4):
    """Weights before every reward and after the last, as the run saw them."""
    seen = [opt.probabilities]
    for _ in range(plates):
        for trial in opt.ask(size):
            opt.tell(trial, rewards[trial.index])
            seen.append(opt.probabilities)
    return np.array(seen)


def test_weights_looked_back_at_are_those_of_the_run():
    opt, rewards = problem()
    seen = play(opt, rewards)
    history, leaders = view_of(opt).standing.history, [leader.model for leader in view_of(opt).standing.leaders]
    assert history.told.tolist() == list(range(13))
    np.testing.assert_allclose(history.q, seen[:, leaders], atol=2e-6)  # stored in single precision
    assert not np.allclose(history.q[0], history.q[-1])


def test_both_engines_draw_the_same_numbers():
    opt, rewards = problem()
    play(opt, rewards)
    for draw in (plot.models, plot.rewards, plot.predictions, plot.residuals, plot.odds, plot.coverage, plot.plates):
        ax, figure = draw(opt), draw(opt, engine="plotly")
        assert (ax.get_xlabel(), ax.get_ylabel()) == (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text)
        lines = [trace for trace in figure.data if "lines" in trace.mode]
        drawn = [line for line in ax.get_lines() if len(line.get_xdata()) > 2 or draw is plot.predictions]
        for trace in lines:
            assert (
                any(
                    np.allclose(line.get_ydata(), np.array(trace.y, dtype=float))
                    for line in drawn
                    if len(line.get_ydata()) == len(trace.y)
                )
                or len(trace.y) == 2
            ), draw.__name__
        points = [trace for trace in figure.data if trace.mode == "markers"]
        offsets = [marks.get_offsets() for marks in ax.collections if len(marks.get_offsets())]
        for trace in points:
            wanted = np.column_stack([trace.x, trace.y]).astype(float)
            assert any(one.shape == wanted.shape and np.allclose(one, wanted) for one in offsets), draw.__name__


def test_an_axes_is_accepted_and_returned():
    opt, rewards = problem()
    play(opt, rewards)
    _, ax = plt.subplots()
    assert plot.models(opt, ax) is ax
    assert len(plt.get_fignums()) == 1
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["<right> \\$", "wrong"]


def test_best_so_far_goes_the_way_of_the_direction():
    for direction, best in (("maximize", np.maximum), ("minimize", np.minimum)):
        opt, rewards = problem(direction)
        play(opt, rewards)
        told = opt.trials_dataframe()["reward"].to_numpy()
        (line,) = plot.rewards(opt).get_lines()
        assert line.get_ydata()[-1] == best.reduce(told)
        (line,) = plot.plates(opt).get_lines()
        assert line.get_ydata().tolist() == [best.reduce(told[: 4 * k]) for k in (1, 2, 3)]


def test_an_overview_shows_what_there_is():
    opt, rewards = problem()
    with pytest.raises(ValueError, match="nothing to draw: there is no reward yet"):
        opt.plot()
    play(opt, rewards)
    assert [ax.get_title() for ax in opt.plot()] == [
        "Which model is winning", "What was found", "Do the models predict it", "Surprises",
    ]  # fmt: skip
    models, line = alexp.ModelClass.legendre(degree=4, size=2), alexp.Interval(resolution=50)
    environment = alexp.SyntheticEnvironment(models, line, noise_std=0.1, random_state=0)
    alone = alexp.ALExp(models, line, noise_std=0.1, reward_bound=2.0, random_state=0)
    run = alexp.simulate(alone, environment, 10)
    titles = [ax.get_title() for ax in alone.plot()]
    assert titles == ["Which model is winning", "What was found", "The reward, as estimated"]
    assert len(plot.models(alone).patches) == 6, "bars of the leading models: ALExp cannot look back"
    (curve,) = run.plot().get_lines()
    assert curve.get_ydata().tolist() == run.regret.tolist()
    both = plot.regret({"one": run, "two": run})
    assert [text.get_text() for text in both.get_legend().get_texts()] == ["one", "two"]


def test_coverage_by_hand():
    opt, rewards = problem()
    play(opt, rewards)
    seen = view_of(opt).explanation
    scaled = np.abs((seen.reward - seen.expected) / seen.spread)
    scaled = scaled[np.isfinite(scaled)]
    level, share = plot.coverage(opt).get_lines()[0].get_data()
    at = int(np.argmin(np.abs(level - 0.68)))
    assert share[at] == np.mean(scaled <= 0.9945)  # 68% of a normal lie within 0.9945 of its standard deviations
    assert share[0] == 0.0


def test_what_cannot_be_drawn_is_said():
    opt, rewards = problem()
    play(opt, rewards)
    with pytest.raises(ValueError, match="engine must be"):
        plot.models(opt, engine="gnuplot")
    with pytest.raises(ValueError, match="leave it out with engine='plotly'"):
        plot.models(opt, plt.subplots()[1], engine="plotly")
    with pytest.raises(ValueError, match="no Interval"):
        plot.curve(opt)
    with pytest.raises(TypeError, match="source must be an optimiser, a study or a view of one, got list"):
        plot.models([])
    with pytest.raises(ValueError, match="there is no run"):
        plot.regret([])


def test_a_study_draws_and_says_what_its_algorithm_does(tmp_path):
    opt, rewards = problem()
    storage = f"sqlite:///{tmp_path}/s.db"
    with alexp.create_study(opt.models, opt.domain, name="s", storage=storage, goal="best", random_state=0) as study:
        for trial in study.ask(4):
            study.tell(trial, rewards[trial.index])
        assert len(study.plot()) == 4
        plot.plates(study)
        assert study.summary() == plot.summary(study.view())
        shown = re.sub("<[^>]*>", " ", study._repr_html_())
        for sentence in study.summary().split(". "):
            assert escape(sentence.rstrip("."), quote=True) in shown


def test_a_summary_says_what_a_colleague_would_ask():
    opt, rewards = problem()
    assert opt.summary() == "0 of 60 candidates measured. Next: ask() for a trial, and tell() its reward."
    play(opt, rewards)
    best = opt.trials_dataframe()["reward"].idxmax()
    text = opt.summary()
    assert text.startswith('12 of 60 candidates measured. Of 2 models "<right> $" leads with probability ')
    assert 'The rewards favour "<right> $" over "wrong" by ' in text
    assert f"Best measured: {opt.log.reward[best]:.4g} ({opt.trial(int(best)).x})." in text
    assert str(opt.stop_report()) in text
    assert "&lt;right&gt;" in opt._repr_html_()
    assert "<right>" not in opt._repr_html_()
    opt.ask(2)
    assert "12 of 60 candidates measured; 2 pending." in opt.summary()


def test_a_summary_worries_where_rewards_surprise():
    opt, _ = problem(repeats=True)
    rng = np.random.default_rng(0)
    for k in range(40):  # rewards that jump to another level: no model predicts that
        opt.observe(int(rng.integers(N)), float(1e-3 * rng.normal() + 1000.0 * (k in (15, 20, 25, 30, 35))))
    assert "the models may lack something" in opt.summary()


def test_rounds_with_contexts():
    arms = alexp.Arms(["low", "high"])
    models = alexp.ModelClass.per_arm({"one": [0], "two": [1, 2]}, arms)
    opt = alexp.EvidenceMixture(models, arms, random_state=0)
    rng = np.random.default_rng(1)
    for context in rng.normal(size=(20, 3)):
        trial = opt.ask(context=context)
        opt.tell(trial, context[0] * trial.index)
    assert opt.summary().startswith('20 rounds measured. Of 2 models "one" leads')
    assert "Mean reward" in opt.summary()
    assert len(opt.plot()) >= 2


def test_neither_a_database_nor_a_display_is_needed():
    code = (
        "import sys; sys.modules['sqlalchemy'] = None; sys.modules['plotly'] = None\n"
        "import alexp; assert 'matplotlib' not in sys.modules\n"
        "opt = alexp.EvidenceMixture(alexp.ModelClass.legendre(3, 2), alexp.Interval(resolution=9), random_state=0)\n"
        "for _ in range(4): opt.tell(opt.ask(), 1.0 + opt.n_told)\n"
        "opt.plot(), opt.summary(), opt._repr_html_()\n"
        "try: alexp.plot.models(opt, engine='plotly')\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "engine='plotly' needs Plotly, which is not installed: pip install 'alexp[lab]'\n"


def test_a_kind_names_one_figure():
    opt, rewards = problem()
    play(opt, rewards)
    _, ax = plt.subplots()
    assert opt.plot("rewards", ax) is ax
    assert opt.plot("models", engine="plotly").data[0].type == "scatter"
    with pytest.raises(ValueError, match="kind must be one of"):
        opt.plot("reward")
    with pytest.raises(ValueError, match="name it, one of models, rewards"):
        opt.plot(engine="plotly")


def test_several_runs_of_a_name_are_a_median_and_a_band():
    models, line = alexp.ModelClass.legendre(degree=4, size=2), alexp.Interval(resolution=50)
    runs = []
    for seed in range(3):
        environment = alexp.SyntheticEnvironment(models, line, noise_std=0.1, random_state=seed)
        runs.append(alexp.simulate(alexp.UniformRandom(models, line, random_state=seed), environment, 8))
    ax = plot.regret({"uniform": runs, "first": runs[0]})
    stacked = np.array([run.regret for run in runs])
    median, first = ax.get_lines()
    np.testing.assert_array_equal(median.get_ydata(), np.median(stacked, axis=0))
    np.testing.assert_array_equal(first.get_ydata(), stacked[0])
    (band,) = ax.collections
    corners = band.get_paths()[0].vertices[:, 1]
    assert (corners.min(), corners.max()) == (stacked.min(), stacked.max())
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["uniform", "first"]


def test_a_bound_is_drawn_on_logarithmic_axes():
    bound = alexp.theory.regret_bound(1000, 4, 1, delta=0.1, noise_std=0.05, norm_bound=1.0, c_min=1.0)
    ax = bound.plot()
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    total, trivial, *terms = ax.get_lines()
    assert total.get_ydata()[-1] == bound.sum[-1]
    assert trivial.get_ydata()[0] == bound.trivial[0]
    assert [line.get_label() for line in terms] == list(bound.terms)
    figure = bound.plot(engine="plotly")
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"


def test_intervals_of_policies_are_drawn():
    rng = np.random.default_rng(0)
    log = alexp.ope.Log(rng.random(60), np.full(60, 0.5), rng.integers(0, 2, 60), np.full(60, 2))
    even = alexp.ope.ips(log, [np.array([0.5, 0.5])] * 60, reward_range=(0, 1))
    ax = even.plot()
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == even.running_lower.min()
    assert band[:, 1].max() == even.running_upper.max()
    both = plot.values({"even": even, "again": even}, engine="plotly")
    assert [trace.name for trace in both.data if trace.showlegend] == ["even", "again"]
    assert both.data[-1].y == (even.value,)
    with pytest.raises(ValueError, match="pass reward_range="):
        alexp.ope.ips(log, [np.array([0.5, 0.5])] * 60).plot()


def test_trials_and_recommendations_are_shown_in_plain_numbers():
    opt = alexp.EvidenceMixture(
        alexp.Table.from_frame(pd.DataFrame({"solvent": ["DMF", "THF", "water"], "celsius": [20, 40, 60]})),
        random_state=0,
    )
    trial = opt.ask()
    opt.tell(trial, 0.5)
    for shown in (repr(trial), repr(opt.best())):
        assert "\n" not in shown
        assert "np." not in shown
        assert "x={'solvent': " in shown
    assert "<tr><td>solvent</td><td>" in trial._repr_html_()
    assert "np." not in opt._repr_html_() + opt.stop_report()._repr_html_()


def test_a_study_that_only_has_observations_has_no_figure_of_plates(tmp_path):
    """Results found in a table when a study is created are observations."""
    models, domain = alexp.ModelClass.legendre(degree=2, size=1), alexp.Interval(-1.0, 1.0, resolution=9)
    with alexp.create_study(models, domain, name="s", storage=tmp_path / "s.db", random_state=0) as study:
        study.observe(3, 0.5)
        assert "plates" not in plot.pictures(study)
