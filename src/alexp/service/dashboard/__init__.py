"""The dashboard: one page that shows studies as they go on, and the two routes that only it needs."""

from alexp.service.dashboard.web import routes

__all__ = ["routes"]
