"""Streams of changes: how their messages are called, and the key that names a subscription."""

from __future__ import annotations

from typing import Any

from package.wire import facts

LISTEN = "subscriptions/listen"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
UPDATED = "notifications/resources/updated"
CHANGED = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
}
ALL_LISTS = dict.fromkeys(CHANGED, True)


def tag(revision: str) -> str:
    """The key of `_meta` that names a subscription."""
    key = facts(revision).meta.subscription_id
    assert key is not None
    return key


def told(revision: str, method: str, id: Any, **params: Any) -> dict[str, Any]:
    """A notification of a subscription."""
    params["_meta"] = {tag(revision): id}
    return {"jsonrpc": "2.0", "method": method, "params": params}
