"""What domains, dictionaries and model classes are stored as."""

from __future__ import annotations

from typing import Any

Description = dict[str, Any]  # JSON-safe once packed; `kind` or `family` says what it describes
