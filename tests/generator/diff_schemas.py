"""Tiny protocols for the tests of `mcpgen diff`: a request, a notification, and what differs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from generator.schemas import TEXT, const, facts_of, obj, ref, schema_of
from mcpgen import diff
from mcpgen.diff import Change, Protocol
from mcpgen.schema.facts import Facts


def message(method: str, params: Any = None, *, required: bool = True) -> dict[str, Any]:
    """A request or a notification."""
    properties = {"method": const(method)} | ({} if params is None else {"params": params})
    return obj("method params" if required and params is not None else "method", **properties)


def definitions(**changed: Any) -> dict[str, Any]:
    """The definitions of a tiny protocol, with some others; `None` leaves one out."""
    base: dict[str, Any] = {
        "ClientRequest": {"anyOf": [ref("PaintRequest")]},
        "ClientNotification": {"anyOf": [ref("DryNotification")]},
        "PaintRequest": message("wall/paint", ref("PaintRequestParams")),
        "PaintRequestParams": obj("color", color=TEXT),
        "PaintResult": obj("area", area={"type": "integer"}),
        "DryNotification": message("notifications/dry", ref("DryNotificationParams")),
        "DryNotificationParams": obj("", hours={"type": "integer"}),
    }
    return {name: node for name, node in {**base, **changed}.items() if node is not None}


def protocol(
    name: str = "A", facts: Facts | None = None, other: Any = (), **changed: Any
) -> Protocol:
    """A tiny protocol, with some other definitions, or other facts."""
    return diff.of_schema(schema_of(**definitions(**changed)), facts or facts_of(), name, other)


def facts_with(table: str, **values: Any) -> Facts:
    """Facts that differ in one table."""
    plain = facts_of()
    return replace(plain, **{table: replace(getattr(plain, table), **values)})


def changes(old: Protocol, new: Protocol) -> tuple[Change, ...]:
    """The changes from one protocol to another."""
    return diff.compare(old, new).changes


def rule_places(old: Protocol, new: Protocol) -> list[tuple[str, str]]:
    """The rules and places of what changes."""
    return [(change.rule.id, change.place) for change in changes(old, new)]
