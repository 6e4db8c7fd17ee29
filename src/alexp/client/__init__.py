"""Client of an `alexp serve`: studies over HTTP, with the methods of local ones."""

from alexp.client.client import Client
from alexp.client.remote_study import RemoteStudy

__all__ = ["Client", "RemoteStudy"]
