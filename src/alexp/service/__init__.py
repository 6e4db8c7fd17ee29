"""Studies over HTTP, for robots, browsers and other languages: `alexp serve`."""

from importlib import import_module
from typing import TYPE_CHECKING

from alexp.common.extras import require

if TYPE_CHECKING:
    from alexp.service.app import create_app
    from alexp.service.security import Limits, Tokens

__all__ = ["Limits", "Tokens", "create_app"]

_MODULE_OF = {"Limits": "security", "Tokens": "security", "create_app": "app"}


def __getattr__(name: str) -> object:
    """Load a public name when it is first used."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'alexp.service' has no attribute {name!r}")
    require("fastapi", "uvicorn", "prometheus_client", subject="the service")
    value: object = getattr(import_module(f"alexp.service.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
