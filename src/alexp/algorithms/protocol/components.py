"""Settings that are objects (agents, oracles, designs, schedules) as JSON-safe dicts, without pickle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from alexp.common.codec import Packable
from alexp.decision import agents, designs, schedules
from alexp.estimation.lasso import group_lasso, post_lasso
from alexp.estimation.mixture import evidence

_KNOWN: dict[str, type[Any]] = {
    **agents.BUILT_IN,
    **{kind.__name__: kind for kind in (designs.Uniform, designs.EOptimal, designs.DOptimal)},
    "Schedules": schedules.Schedules,
    "ReleasedSchedules": schedules.ReleasedSchedules,
    "GroupLasso": group_lasso.GroupLasso,
    "PostLasso": post_lasso.PostLasso,
    "Evidence": evidence.Evidence,
}


def component_to_dict(value: object) -> Packable:
    """Numbers and text as they are, known dataclasses by name and fields, anything else marked as the user's own."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {"kind": "dict", "items": {str(k): component_to_dict(v) for k, v in value.items()}}
    if isinstance(value, list | tuple):
        return [component_to_dict(item) for item in value]
    kind = type(value).__name__
    if is_dataclass(value) and _KNOWN.get(kind) is type(value):
        return {"kind": kind} | {f.name: component_to_dict(getattr(value, f.name)) for f in fields(value)}
    return {"kind": "own", "type": kind}


def component_from_dict(value: Packable, name: str) -> Packable:
    """Invert `component_to_dict`; `name` is the setting, for the error when the user must pass it again."""
    if isinstance(value, list):
        return [component_from_dict(item, name) for item in value]
    if not isinstance(value, dict):
        return value
    if value["kind"] == "dict":
        return {key: component_from_dict(item, name) for key, item in value["items"].items()}
    if value["kind"] == "own":
        raise ValueError(f"{name} was an object of your own ({value['type']}); pass {name}= again to from_dict")
    arguments = {key: component_from_dict(item, name) for key, item in value.items() if key != "kind"}
    return _KNOWN[value["kind"]](**arguments)
