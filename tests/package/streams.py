"""Streams of changes: how their messages are called, and the key that names a subscription."""

from __future__ import annotations

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
