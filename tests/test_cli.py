import json
import re
import shlex

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from alexp import cli
from alexp.cli import app

runner = CliRunner()


def test_help_lists_every_command():
    text = runner.invoke(app, ["--help"]).output
    for command in ("demo", "run", "reproduce", "compare", "bench", "preflight", "study"):
        assert command in text


def commands(group, *path):
    """Every command of the command line by its words, without groups."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *path, name)
        else:
            yield (*path, name), command


ALL = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_command_has_an_example_that_it_accepts(words):
    examples = re.findall(r"^ *Example: (alexp .*)$", ALL[words].help, flags=re.M)
    assert len(examples) == 1, "one example, on a line of its own"
    called = shlex.split(examples[0])[1:]
    assert tuple(called[: len(words)]) == words
    ALL[words].make_context(words[-1], called[len(words) :])  # raises for an option that there is not


def test_words_of_the_command_line_are_those_of_the_docs():
    private = re.compile(r"\b(deed|nobody|everybody|whoever|locked|shelf|told agent|nothing stated|masters?)\b", re.I)
    for words, command in ALL.items():
        helps = [command.help or "", *(getattr(one, "help", None) or "" for one in command.params)]
        assert not private.findall(" ".join(helps)), words


def test_without_a_command_it_says_what_to_do_first():
    text = " ".join(runner.invoke(app, []).output.split())
    for first in ("See it work: alexp demo", "alexp study create NAME --candidates FILE", "alexp COMMAND --help"):
        assert first in text


def test_demo(tmp_path):
    result = runner.invoke(app, ["demo", "--out", str(tmp_path), "--steps", "12"])
    assert result.exit_code == 0, result.output
    for word in ("ALExp", "Oracle UCB", "uniform play", "true model", "Regret is", "Next: docs/what-to-use.md"):
        assert word in result.output.replace("\n", " ")
    assert (tmp_path / "demo.png").exists()


def test_preflight_of_a_built_in_family(tmp_path):
    file = tmp_path / "report.json"
    options = ["--degree", "4", "--size", "2", "--resolution", "51", "--json", str(file)]
    result = runner.invoke(app, ["preflight", *options])
    assert result.exit_code == 0, result.output
    report = json.loads(file.read_text())
    assert report["problem"]["models"] == 10


def test_preflight_of_tables(tmp_path):
    (tmp_path / "items.csv").write_text("name\na\nb\nc\nd\n")
    np.save(tmp_path / "f.npy", np.random.default_rng(0).standard_normal((4, 2)))
    items = ["--candidates", str(tmp_path / "items.csv")]
    result = runner.invoke(app, ["preflight", *items, "--features", f"f={tmp_path / 'f.npy'}"])
    assert result.exit_code == 0, result.output
    assert "candidates" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--features", "f=nowhere.csv"], "which are missing"),
        (["--candidates", "nowhere.csv", "--features", "f"], "nowhere.csv"),
        (["--degree", "2", "--size", "7"], "at most the 3 columns"),
    ],
)
def test_preflight_explains_mistakes(arguments, message):
    result = runner.invoke(app, ["preflight", *arguments])
    assert result.exit_code == 1
    assert message in result.output


def test_a_command_of_a_package_does_not_replace_another(monkeypatch):
    def mine():
        """Mine."""

    offered = [("demo", mine), ("study", mine), ("mine", mine), ("mine", mine), ("odd", 3)]
    monkeypatch.setattr(cli, "announced", lambda group: iter(offered))
    monkeypatch.setattr(app, "registered_commands", list(app.registered_commands))
    before = len(app.registered_commands)
    with pytest.warns(UserWarning, match="is left out") as warned:
        cli.add_commands()
    assert [str(one.message).split("'")[1] for one in warned] == ["demo", "study", "mine"]
    assert [one.name for one in app.registered_commands[before:]] == ["mine"]
    assert "Mine." in runner.invoke(app, ["mine", "--help"]).output
