"""Packages that only some tasks need: the extra that installs each, and what to say when one is missing."""

from __future__ import annotations

from importlib.util import find_spec

EXTRAS = {
    "pandas": "alexp[lab]",
    "matplotlib": "alexp[lab]",
    "plotly": "alexp[lab]",
    "typer": "alexp[lab]",
    "rich": "alexp[lab]",
    "sqlalchemy": "alexp[lab]",
    "openpyxl": "alexp[lab]",
    "httpx": "alexp[client]",
    "fastapi": "alexp[service]",
    "uvicorn": "alexp[service]",
    "prometheus_client": "alexp[service]",
    "psycopg": "alexp[service]",
    "rdkit": "alexp[chem]",
    "cvxpy": "alexp[design]",
    "clarabel": "alexp[design]",
    "dask": "alexp[dask]",
    "distributed": "alexp[dask]",
    "pyarrow": "alexp[dask]",
    "torch": "alexp[gpu]",
    "array_api_compat": "alexp[gpu]",
    "cupy": "alexp[gpu]",
    "baybe": "alexp[integrations]",
    "celer": "alexp-experiments[bench]",
    "skglm": "alexp-experiments[bench]",
    "botorch": "alexp-experiments[peers]",
    "optuna": "alexp-experiments[peers]",
    "coba": "alexp-experiments[contextual-peers]",
    "vowpalwabbit": "alexp-experiments[contextual-peers]",
}
_NAMES = {
    "vowpalwabbit": "Vowpal Wabbit",
    "sqlalchemy": "SQLAlchemy",
    "httpx": "HTTPX",
    "plotly": "Plotly",
    "rdkit": "RDKit",
    "baybe": "BayBE",
}


def advice(package: str, subject: str = "this") -> str:
    """What is missing, and the command that installs it.

    >>> advice("cvxpy", "this design")
    "this design needs cvxpy, which is not installed: pip install 'alexp[design]'"
    """
    return f"{subject} needs {_NAMES.get(package, package)}, which is not installed: pip install '{EXTRAS[package]}'"


def is_installed(package: str) -> bool:
    """Whether a package can be imported; it is not imported here."""
    return find_spec(package) is not None


def require(*packages: str, subject: str = "this") -> None:
    """Raise ModuleNotFoundError with `advice` for the first package that is missing."""
    for package in packages:
        if not is_installed(package):
            raise ModuleNotFoundError(advice(package, subject), name=package)
