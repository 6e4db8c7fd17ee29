"""The live dashboard: its page, its files, and the routes that only it needs."""

from __future__ import annotations

from fastapi import APIRouter

from alexp.service.shelf import Shelf


def routes(shelf: Shelf) -> APIRouter:
    """Routes of the dashboard."""
    return APIRouter(tags=["dashboard"])
