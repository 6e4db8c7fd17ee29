"""A real browser for the tests of the dashboard and for its pictures: Debian's Chromium, driven by Playwright."""

import shutil
from contextlib import contextmanager
from pathlib import Path

AXE = Path(__file__).resolve().parents[2] / ".venv-browser" / "node_modules" / "axe-core" / "axe.min.js"
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def why_not():
    """Why there is no browser; None if there is one."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "Playwright is not installed"
    return None if shutil.which("chromium") else "Chromium is not installed, and `make test` could not install it"


@contextmanager
def browser():
    """Chromium without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=shutil.which("chromium"), args=_FLAGS)
        try:
            yield running
        finally:
            running.close()


@contextmanager
def page_of(running, size=DESK, scheme="light", **more):
    """A page of its own; whatever the browser complains of ends in an error."""
    complaints = []
    context = running.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce", locale="en-GB", **more)
    context.set_default_timeout(30_000)  # machines are busy at times
    page = context.new_page()
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.complaints = complaints
    try:
        yield page
    finally:
        context.close()


def unexpected(page):
    """What the browser complained of, other than answers that a test provoked."""
    return [text for text in page.complaints if "the server responded with a status of 4" not in text]


def faults(page):
    """Serious faults that axe-core finds: rule and what it is about."""
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(AXE.read_text(encoding="utf-8"))  # not by a script element, which the page's policy forbids
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    grave = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
    return [(one["id"], [node["html"][:160] for node in one["nodes"]][:3]) for one in grave]
