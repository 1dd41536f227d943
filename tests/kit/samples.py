"""One plain example of every request and notification, with params that fit each revision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kit import wire

URI = "memo://one"
_TEXT = {"type": "text", "text": "hello"}
_TASK = {
    "taskId": "t1",
    "status": "working",
    "createdAt": "2025-11-25T00:00:00Z",
    "lastUpdatedAt": "2025-11-25T00:00:00Z",
    "ttl": None,
}


def task(status: str, **more: Any) -> dict[str, Any]:
    """A task on the wire."""
    times = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}
    return {"taskId": "t", "status": status, **times, "ttl": None, "pollInterval": 50, **more}


_TASKS: Mapping[str, Any] = {"tasks": {"list": {}, "cancel": {}}}
EVERY_SERVER_CAPABILITY: Mapping[str, Any] = {**wire.EVERY_SERVER_CAPABILITY, **_TASKS}
EVERY_CLIENT_CAPABILITY: Mapping[str, Any] = {**wire.EVERY_CLIENT_CAPABILITY, **_TASKS}

PARAMS: Mapping[str, Mapping[str, Any]] = {
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "greeting"},
        "argument": {"name": "who", "value": "O"},
    },
    "elicitation/create": {
        "message": "Which city?",
        "requestedSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
    "logging/setLevel": {"level": "info"},
    "ping": {},
    "prompts/get": {"name": "greeting", "arguments": {"who": "Oslo"}},
    "prompts/list": {},
    "resources/list": {},
    "resources/read": {"uri": URI},
    "resources/subscribe": {"uri": URI},
    "resources/templates/list": {},
    "resources/unsubscribe": {"uri": URI},
    "roots/list": {},
    "sampling/createMessage": {
        "messages": [{"role": "user", "content": _TEXT}],
        "maxTokens": 5,
    },
    "server/discover": {},
    "subscriptions/listen": {"notifications": {"toolsListChanged": True}},
    "tasks/cancel": {"taskId": "t1"},
    "tasks/get": {"taskId": "t1"},
    "tasks/list": {},
    "tasks/result": {"taskId": "t1"},
    "tools/call": {"name": "echo", "arguments": {"text": "hello"}},
    "tools/list": {},
    "notifications/elicitation/complete": {"elicitationId": "e1"},
    "notifications/message": {"level": "error", "data": "it broke"},
    "notifications/prompts/list_changed": {},
    "notifications/resources/list_changed": {},
    "notifications/resources/updated": {"uri": URI},
    "notifications/roots/list_changed": {},
    "notifications/tasks/status": _TASK,
    "notifications/tools/list_changed": {},
}
"""Params by method. What a connection says by itself (initialize, cancelled, ...) is not here."""

CALL = PARAMS["tools/call"]
"""The one that tests of anything else make use of."""

RESULTS: Mapping[str, Mapping[str, Any] | None] = {
    "completion/complete": {"completion": {"values": ["Oslo"], "total": 1, "hasMore": False}},
    "elicitation/create": {"action": "accept", "content": {"city": "Oslo"}},
    "prompts/get": {"messages": [{"role": "user", "content": _TEXT}]},
    "prompts/list": {"prompts": [{"name": "greeting", "title": "A greeting"}]},
    "resources/list": {"resources": [{"uri": URI, "name": "one", "size": 3}]},
    "resources/read": {"contents": [{"uri": URI, "text": "one"}]},
    "resources/subscribe": None,
    "resources/templates/list": {
        "resourceTemplates": [{"uriTemplate": "memo://{name}", "name": "memo"}]
    },
    "resources/unsubscribe": None,
    "roots/list": {"roots": [{"uri": "file:///home"}]},
    "sampling/createMessage": {"role": "assistant", "content": _TEXT, "model": "m"},
    "tasks/cancel": _TASK,
    "tasks/get": _TASK,
    "tasks/list": {"tasks": [_TASK]},
    "tasks/result": {"content": [_TEXT]},
    "tools/call": {"content": [_TEXT], "isError": False},
    "tools/list": {
        "tools": [
            {
                "name": "echo",
                "title": "Echo",
                "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
                "annotations": {"readOnlyHint": True},
            }
        ],
        "nextCursor": "",
    },
}
"""Results by method, of those that an application answers."""
