"""Pages that are made from something else (the changelog, the command line from its own help), and wide figures."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from typer.cli import get_docs_for_click

ROOT = Path(__file__).parents[2]


def command_line() -> str:
    """What `alexp --help` and the help of all commands say."""
    from alexp.cli import app

    command = typer.main.get_command(app)
    _whole_sentences(command)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command, info_name="alexp"), name="alexp")
    return (
        text.replace("# `alexp`", "# Command line", 1).replace("```console", "```text").replace("\n$ alexp", "\nalexp")
    )


def _whole_sentences(command: object) -> None:
    """Lists of commands have the first line of each help, which Typer would cut off."""
    for one in getattr(command, "commands", {}).values():
        one.short_help = (one.help or "").strip().partition("\n\n")[0].replace("\n", " ")
        _whole_sentences(one)


def changelog() -> str:
    """CHANGELOG.md, whose links start at the root of the repository."""
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add them."""
    for path, content in (("changelog.md", changelog()), ("reference/command-line.md", command_line())):
        files.append(File.generated(config, path, content=content))
    return files


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Figures at least 1,200 pixels wide get the class `wide`: the style sheet lets them scroll on a phone."""
    folder = Path(config.docs_dir) / Path(page.file.src_uri).parent

    def marked(found: re.Match[str]) -> str:
        file = folder / found[1]
        wide = file.exists() and struct.unpack(">I", file.read_bytes()[16:20])[0] >= 1200
        return found[0].replace("<img ", '<img class="wide" ') if wide else found[0]

    return re.sub(r'<img [^>]*src="([^":]+\.png)"', marked, html)
