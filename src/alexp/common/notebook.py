"""How results are shown by notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def paragraph(text: object) -> str:
    """A text as HTML, one paragraph per line.

    >>> paragraph("a < b")
    '<p>a &lt; b</p>'
    """
    return "".join(f"<p>{escape(line)}</p>" for line in str(text).splitlines())


def table(rows: Iterable[Iterable[object]]) -> str:
    """Rows of cells as HTML.

    >>> table([("x", 0.5)])
    '<table><tr><td>x</td><td>0.5</td></tr></table>'
    """
    lines = ("".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows)
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"
