"""The report: complete, self-contained, and drawn without an error in a real browser where there is one."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import alexp
from alexp.study import create_study
from alexp.study.events import belief, belief_is_due, compress, decompress
from alexp.testing import on_tables

from .conftest import new_study, play

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
VOID = {"meta", "br", "img", "link", "hr"}


class Page(HTMLParser):
    """Text, ids and addresses of a page; notices tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.addresses, self.words, self.scripts = [], [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.addresses += [attributes[key] for key in ("src", "href") if key in attributes]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        (self.scripts if self.open and self.open[-1] == "script" else self.words).append(data)


def rich_study(path, **settings):
    study = new_study(path, "a <b>bold</b> & odd </script> name", **settings)
    play(study, 25)
    study.add_observations(pd.DataFrame({"index": [3, 4], "reward": [0.5, 0.25]}))
    waiting = study.ask(3)
    study.abandon(waiting[1])
    return study


def read(study, path):
    study.report(path)
    page = Page(path.read_text(encoding="utf-8"))
    return page, json.loads(next(script for script in page.scripts if script.startswith("{")))


def test_everything_is_on_the_page(tmp_path):
    study = rich_study(tmp_path / "study.db", reward_bound=2.0)
    page, figures = read(study, tmp_path / "report.html")
    text = " ".join(" ".join(page.words).split())
    assert page.addresses == []  # nothing is fetched from anywhere
    assert "a <b>bold</b> & odd </script> name" in text
    assert set(figures) == {"probabilities", "returns", "rewards", "curve"}
    assert {f"figure-{name}" for name in figures} <= set(page.ids)
    for words in (
        "27 rewards", "2 pending", "1 abandoned", "recommended", "Which model is winning, and why",
        "leads with q =",
        "effectively ruled out", "still plausible", "hours pending", "γ_t = min(1, γ t^(-1/4))", "η_t = η / (B √t)",
        "λ_t = c (2σ/√t)", "noise_std", "Estimated reward", "trials it chose",
    ):  # fmt: skip
        assert words in text, words
    rewards = {trace["name"]: trace for trace in figures["rewards"]["data"]}
    drawn = sum(len(trace["x"]) for name, trace in rewards.items() if name != "best so far")
    assert drawn == 27
    assert rewards["external measurement"]["y"] == [0.5, 0.25]
    best = rewards["best so far"]["y"]
    assert best[-1] == study.trials_dataframe()["reward"].max()
    assert best == sorted(best)


def test_history_of_the_leading_models(tmp_path):
    study = rich_study(tmp_path / "study.db")
    standing = study.view().standing
    history, leaders = standing.history, [leader.model for leader in standing.leaders]
    assert history.told.tolist() == [*range(25), 27, 27, 27, 27]
    np.testing.assert_array_equal(history.q[-1], study.probabilities[leaders])
    np.testing.assert_allclose(history.q[0], 1.0 / 6.0)
    assert np.all(history.behind <= 0.0)
    eta = study.algorithm.schedules.eta_t(27, 1.0)
    first, second = standing.leaders[:2]
    np.testing.assert_allclose(np.log(second.q / first.q), eta * second.behind, rtol=1e-9)  # as the page says


@pytest.mark.parametrize("name", on_tables())
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_every_algorithm_has_a_report(tmp_path, name, direction):
    study = new_study(tmp_path / "s.db", algorithm=name, direction=direction, **alexp.Algorithm.registry[name].example)
    empty, figures = read(study, tmp_path / "empty.html")
    assert figures == {}
    assert "There is no reward yet." in empty.words
    play(study, 4)
    _, figures = read(study, tmp_path / "report.html")
    best = next(trace for trace in figures["rewards"]["data"] if trace["name"] == "best so far")["y"]
    assert best == sorted(best, reverse=direction == "minimize")


def test_tables_of_candidates(tmp_path):
    rng = np.random.default_rng(0)
    models = alexp.ModelClass.from_matrices({"fp": rng.standard_normal((9, 3)), "<i>": rng.standard_normal((9, 2))})
    table = pd.DataFrame({"smiles": ["C" * 80] + [f"N{i}" for i in range(8)], "mass": rng.uniform(size=9)})
    study = create_study(
        models, alexp.FiniteSet(table), name="m", storage=tmp_path / "study.db", algorithm="alexp", random_state=1
    )
    play(study, 5)
    page, figures = read(study, tmp_path / "report.html")
    assert set(figures) == {"probabilities", "returns", "rewards"}
    assert "<i>" in " ".join(page.words)
    assert {trace["name"] for trace in figures["returns"]["data"]} == {"fp", "&lt;i&gt;"}  # Plotly reads HTML there


def test_models_that_no_reward_tells_apart(tmp_path):
    same = np.random.default_rng(0).standard_normal((6, 2))
    models = alexp.ModelClass.from_matrices({"a": same, "b": same, "c": same})
    study = create_study(models, alexp.FiniteSet(list(range(6))), name="m", storage=tmp_path / "s.db", random_state=1)
    play(study, 3)
    page, _ = read(study, tmp_path / "report.html")
    assert "and 2 other models share the lead with q = 0.333" in " ".join(page.words)


def test_beliefs_are_thinned_and_shortened():
    due = [trial for trial in range(100_000) if belief_is_due(trial)]
    assert due[:256] == list(range(256))
    assert 400 < len(due) < 700

    class Many:
        n_told = 3
        probabilities = np.linspace(0.0, 1.0, 5000)
        cumulative_returns = np.arange(5000.0)

    kept = decompress(compress(belief(Many())))
    assert kept["models"].tolist() == list(range(3976, 5000))
    np.testing.assert_allclose(kept["q"], Many.probabilities[3976:], rtol=1e-6)
    assert kept["returns"][-1] == 4999.0


@pytest.mark.skipif(BROWSER is None, reason="browser not installed")
def test_in_a_browser(tmp_path):
    """Chromium draws every figure with lines or points in it, and nothing throws."""
    study = rich_study(tmp_path / "study.db")
    study.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    watcher = "<script>window.onerror = m => { document.title = 'ERROR ' + m }</script>"
    watched = page.replace("<head>", f"<head>{watcher}", 1)
    (tmp_path / "watched.html").write_text(watched, encoding="utf-8")
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1150,2600", "--virtual-time-budget=20000",
    ]  # fmt: skip
    address = (tmp_path / "watched.html").as_uri()
    drawn = subprocess.run([*command, "--dump-dom", address], capture_output=True, timeout=180, check=True)
    dom = drawn.stdout.decode()
    assert "<title>ERROR" not in dom
    for name in ("probabilities", "returns", "rewards", "curve"):
        figure = dom.split(f'id="figure-{name}"', 1)[1].split("<section", 1)[0]
        assert re.search(r'class="(js-line|point)"', figure), name
    shot = tmp_path / "report.png"
    subprocess.run([*command, f"--screenshot={shot}", address], capture_output=True, timeout=180, check=True)
    assert shot.read_bytes().startswith(b"\x89PNG")
    assert shot.stat().st_size > 50_000
