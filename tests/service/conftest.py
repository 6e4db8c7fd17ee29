"""One PostgreSQL server for all tests of the service."""

from tests.study.conftest import postgres, server

__all__ = ["postgres", "server"]
