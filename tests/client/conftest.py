"""One PostgreSQL server for all tests of the client."""

from tests.study.conftest import postgres, server

__all__ = ["postgres", "server"]
