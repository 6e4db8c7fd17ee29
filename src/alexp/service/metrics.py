"""Numbers about a service, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

MEDIA = CONTENT_TYPE_LATEST
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Meters:
    """The meters of one application, in a registry of their own."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self.requests = Counter(
            "alexp_requests", "Requests answered.", ["method", "route", "status"], registry=registry
        )
        self.seconds = Histogram(
            "alexp_request_seconds", "Time to answer.", ["method", "route"], buckets=_BUCKETS, registry=registry
        )
        self.in_flight = Gauge("alexp_requests_in_flight", "Requests being answered.", registry=registry)
        self.asked = Counter("alexp_trials_asked", "Trials handed out.", registry=registry)
        self.told = Counter("alexp_rewards_told", "Rewards taken in, observations included.", registry=registry)
        self.problems = Counter("alexp_problems", "Requests refused, by kind of problem.", ["kind"], registry=registry)
        self._open = Gauge("alexp_open_studies", "Studies held in memory.", registry=registry)

    def count_open(self, number: Callable[[], int]) -> None:
        """Who knows how many studies are open."""
        self._open.set_function(number)

    def text(self) -> bytes:
        """All of it."""
        return generate_latest(self._registry)
