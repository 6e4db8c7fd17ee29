"""Which extra brings a package that is not installed."""

from __future__ import annotations

_EXTRAS = {
    "sqlalchemy": "study",
    "alembic": "study",
    "plotly": "study",
    "psycopg": "postgres",
    "fastapi": "service",
    "uvicorn": "service",
    "prometheus_client": "service",
    "httpx": "client",
    "pyarrow": "sweep",
    "dask": "sweep",
    "distributed": "sweep",
    "sklearn": "compare",
    "cvxpy": "design",
    "clarabel": "design",
    "celer": "bench",
    "skglm": "bench",
    "psutil": "bench",
    "botorch": "peers",
    "optuna": "peers",
    "coba": "contextual-peers",
    "vowpalwabbit": "contextual-peers",
    "torch": "gpu",
    "array_api_compat": "gpu",
    "cupy": "gpu",
}
_NAMES = {"sklearn": "scikit-learn", "vowpalwabbit": "Vowpal Wabbit"}


def advice_for(error: ImportError) -> str | None:
    """What to install, in one line; None if the missing module is none of ours.

    >>> advice_for(ModuleNotFoundError("No module named 'sklearn'", name="sklearn.datasets"))
    "this needs scikit-learn, which is not installed: pip install 'alexp[compare]'"
    """
    if "alexp[" in str(error):  # raised by this library, which has said what to do
        return str(error)
    package = (error.name or "").partition(".")[0]
    if package not in _EXTRAS:
        return None
    return f"this needs {_NAMES.get(package, package)}, which is not installed: pip install 'alexp[{_EXTRAS[package]}]'"
