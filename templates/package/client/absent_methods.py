"""Errors for messages that the revision of a session lacks; they name what to use instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from ..errors import AbsentMethodError
from ..facts import Method, Revision
from ..revisions import REVISIONS

_INSTEAD: Mapping[str, str] = {
    "initialize": "connect() has opened the session; see client.server_capabilities",
    "logging/setLevel": "use client.ask_for_logs(level)",
    "ping": "use client.discover()",
    "resources/subscribe": "use client.listen(uris=[...])",
    "resources/unsubscribe": "leave the block of client.listen()",
    "server/discover": "connect() has opened the session; see client.server_capabilities",
    "subscriptions/listen": "use client.listen()",
}
"""What a client does instead of a request, in revisions that lack the request."""

_HANDLERS = "handlers= of connect()"
_OTHER_SDKS: Mapping[str, str] = {
    "call_tool_mcp": "client.call_tool(name, arguments)",
    "cancel": "client.start_call(...), whose result has cancel()",
    "complete_mcp": "client.complete(...)",
    "generate_name": "name= of connect()",
    "get_prompt_mcp": "client.get_prompt(name, arguments)",
    "initialize_result": "client.server_info, client.server_capabilities, client.instructions",
    "is_connected": "the block of connect(), in which the session is open",
    "list_prompts_mcp": "client.list_prompts_page(...)",
    "list_resource_templates_mcp": "client.list_resource_templates_page(...)",
    "list_resources_mcp": "client.list_resources_page(...)",
    "list_tools_mcp": "client.list_tools_page(...)",
    "new": "connect() once more",
    "prior_discover": "revision= of connect()",
    "protocol_version": "client.revision",
    "read_resource_mcp": "client.read_resource(uri)",
    "send_notification": "client.notify(method, params)",
    "send_ping": "client.request('ping')",
    "send_progress_notification": "client.notify('notifications/progress', params)",
    "send_request": "client.request(method, params)",
    "send_roots_list_changed": "client.notify('notifications/roots/list_changed')",
    "set_elicitation_callback": _HANDLERS,
    "set_logging_level": "client.on_log(function, level)",
    "set_roots": _HANDLERS,
    "set_sampling_callback": _HANDLERS,
    "subscribe_resource": "client.listen(uris=[...])",
    "transport": "the target of connect()",
    "unsubscribe_resource": "the end of the block of client.listen()",
}
"""What this package has instead of attributes of the clients of FastMCP and the official SDK."""

_OTHER_KEYWORDS: Mapping[str, str] = {
    "auto_initialize": "connect(), which always opens the session",
    "client_info": "name=, version=, title= and info=",
    "elicitation_callback": "handlers=, with elicit()",
    "elicitation_handler": "handlers=, with elicit()",
    "extensions": "capabilities={'extensions': {...}}",
    "init_timeout": "timeouts=Timeouts(opening=...)",
    "input_required_max_rounds": "limits=ClientLimits(input_rounds=...)",
    "list_roots_callback": "handlers=, with list_roots()",
    "log_handler": "client.on_log(function)",
    "logging_callback": "client.on_log(function)",
    "message_handler": "handlers=, with a method for each message",
    "mode": "revision=",
    "prior_discover": "revision=",
    "progress_handler": "client.on_progress(function)",
    "read_timeout_seconds": "timeouts=Timeouts(...), or timeout= of a request",
    "roots": "handlers=, with list_roots()",
    "sampling_callback": "handlers=, with create_message()",
    "sampling_capabilities": "capabilities={'sampling': {...}}",
    "sampling_handler": "handlers=, with create_message()",
    "timeout": "timeouts=Timeouts(...), or timeout= of a request",
    "verify": "http_client=, with TLS settings of its own",
}
"""The same for keywords of their constructors."""

_hump = re.compile(r"(?<=[a-z])(?=[A-Z])")


def absent_method(revision: Revision, method: str) -> AbsentMethodError:
    """The error for a message by its wire name."""
    return _error(revision, method, method)


def absent_attribute(owner: object, revision: Revision, name: str) -> AttributeError:
    """The error for an attribute that a client of the revision lacks.

    Args:
        owner: The client.
        revision: The revision of its session.
        name: The attribute, maybe the method of a message of other revisions.
    """
    method = next((wire for wire, python in _python_names() if python == name), None)
    if method is None or name.startswith("_") or _has(revision, method):
        kind = type(owner).__name__
        instead = f": use {_OTHER_SDKS[name]}" if name in _OTHER_SDKS else ""
        text = f"{kind!r} object has no attribute {name!r}{instead}"
        return AttributeError(text, name=name, obj=owner)
    return _error(revision, method, f"{name}() ({method})")


def absent_keyword(function: str, names: Iterable[str]) -> TypeError:
    """The error for keywords that `connect` or `connect_sync` does not have."""
    texts = [
        f"unexpected keyword argument {name!r}"
        + (f": use {_OTHER_KEYWORDS[name]}" if name in _OTHER_KEYWORDS else "")
        for name in names
    ]
    return TypeError(f"{function}: {'; '.join(texts)}")


def absent_from_group(group: object, clients: Iterable[object], name: str) -> AttributeError:
    """The error for an attribute that a client of several servers lacks.

    Args:
        group: The client of several servers.
        clients: The clients of its servers, which may have the attribute.
        name: The attribute.
    """
    text = f"{type(group).__name__!r} object has no attribute {name!r}"
    if not name.startswith("_") and any(hasattr(client, name) for client in clients):
        whole = name.removesuffix("_page")
        all_pages = f"{whole}() has the items of all servers; " if whole != name else ""
        text += f"; {all_pages}the client of a server has it: client.servers[name].{name}"
    return AttributeError(text, name=name, obj=group)


def _error(revision: Revision, method: str, shown: str) -> AbsentMethodError:
    having = [each for each in REVISIONS if _has(REVISIONS[each], method)]
    elsewhere = f"; it is in {', '.join(having)}" if having else ""
    instead = f": {_INSTEAD[method]}" if method in _INSTEAD else ""
    return AbsentMethodError(method, f"{revision.name} has no {shown}{instead}{elsewhere}")


def _has(revision: Revision, method: str) -> bool:
    return method in revision.client_requests or method in revision.client_notifications


def _python_names() -> Iterator[tuple[str, str]]:
    """Wire name and Python name of messages, of which a revision may lack some."""
    for wire in _INSTEAD:  # also in a package whose only revision lacks them
        yield wire, _hump.sub("_", wire.rpartition("/")[2]).lower()
    for revision in REVISIONS.values():
        rows: tuple[Method, ...] = (
            *revision.client_requests.values(),
            *revision.client_notifications.values(),
        )
        for row in rows:
            yield row.name, row.python_name
            if row.items is not None:
                yield row.name, f"{row.python_name}_page"
