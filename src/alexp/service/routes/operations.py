"""For those who run the service: is it well, and what does it do."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from alexp.service import metrics
from alexp.service.routes.common import problems, reply
from alexp.service.schemas.answers import Health
from alexp.service.shelf import Shelf


def routes(shelf: Shelf) -> APIRouter:
    """Health and metrics."""
    router = APIRouter(tags=["operations"])

    @router.get(
        "/healthz",
        response_model=Health,
        responses={503: {"model": Health, "description": "The service is about to end, or its file is not in place."}},
        summary="Whether requests are taken",
        openapi_extra={"security": []},
    )
    async def health() -> Response:
        status = "stopping" if shelf.stopping.is_set() else shelf.storage_status()
        return reply({"status": status}, 200 if status == "ok" else 503)

    @router.get(
        "/metrics",
        response_class=Response,
        responses=problems() | {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
        summary="Numbers for Prometheus",
    )
    def meters() -> Response:
        return Response(shelf.meters.text(), headers={"Content-Type": metrics.MEDIA})

    return router
