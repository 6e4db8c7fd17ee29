"""Talking to an `alexp serve`: studies that live behind HTTP, used like those beside us."""

from alexp.client.client import Client
from alexp.client.remote import RemoteStudy

__all__ = ["Client", "RemoteStudy"]
