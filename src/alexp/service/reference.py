"""The page /docs: all routes with their fields and examples, from the OpenAPI description, without scripts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from html import escape

from fastapi import APIRouter, FastAPI
from starlette.responses import Response

from alexp.common.codec import State

_STYLE = """
:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
summary { cursor: pointer; padding: .3rem 0 } h2 { margin-bottom: .3rem }
details > * { margin-left: 1.2rem } details > summary { margin-left: 0 }
table { border-collapse: collapse } td { padding: .1rem 1rem .1rem 0; vertical-align: top }
pre { overflow-x: auto; padding: .6rem; border: 1px solid #8886; border-radius: .3rem }
"""


def reference_routes(app: FastAPI) -> APIRouter:
    """The route of the page."""
    router = APIRouter()

    @cache
    def written() -> bytes:
        return page(app.openapi()).encode()

    @router.get("/docs", include_in_schema=False)
    def docs() -> Response:
        return Response(written(), media_type="text/html; charset=utf-8")

    return router


def page(openapi: State) -> str:
    """The page of an OpenAPI description."""
    by_tag: dict[str, list[str]] = {}
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            text = "\n".join(_operation(openapi, method.upper(), path, operation))
            by_tag.setdefault(operation.get("tags", ["dashboard"])[0], []).append(text)
    sections = "\n".join(f"<h2>{escape(tag)}</h2>\n" + "\n".join(texts) for tag, texts in by_tag.items())
    about = _paragraphs(openapi["info"]["description"])
    title = f"{openapi['info']['title']} {openapi['info']['version']}"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}: routes</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head><body>'
        f'<h1>{escape(title)}</h1>{about}<p><a href="/openapi.json">openapi.json</a> describes the same for programs; '
        f'<a href="/">the dashboard</a>.</p>{sections}</body></html>'
    )


def _operation(openapi: State, method: str, path: str, operation: State) -> Iterator[str]:
    yield f"<details><summary><code>{method} {escape(path)}</code> {escape(operation.get('summary', ''))}</summary>"
    yield _paragraphs(operation.get("description", ""))
    rows = [
        (f"{one['name']} ({one['in']})", _kind(one["schema"]), one.get("description", ""))
        for one in operation.get("parameters", [])
    ]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    schema = openapi["components"]["schemas"].get(_name(body), {})
    required = schema.get("required", [])
    rows += [
        (name + (" *" if name in required else ""), _kind(field), field.get("description", ""))
        for name, field in schema.get("properties", {}).items()
    ]
    if rows:
        cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
        yield "<table>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</table>"
    for example in schema.get("examples", []):
        yield f"<pre>{escape(json.dumps(example, indent=2))}</pre>"
    yield f"<p>Answers: {', '.join(sorted(operation['responses']))}.</p></details>"


def _paragraphs(text: str) -> str:
    """Paragraphs of plain text, with what is between backticks as code.

    >>> _paragraphs("One `key`.")
    '<p>One <code>key</code>.</p>'
    """
    marked = re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))
    return "".join(f"<p>{part}</p>" for part in marked.split("\n\n") if part)


def _name(schema: State) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _kind(schema: State) -> str:
    """The type of a field in a few words.

    >>> _kind({"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "null"}]})
    'list of number'
    """
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(one) for one in schema["anyOf"] if one.get("type") != "null"))
    if "enum" in schema or "const" in schema:
        return " or ".join(json.dumps(one) for one in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return _name(schema) or str(schema.get("type", "anything"))
