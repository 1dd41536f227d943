"""Errors for messages that a client has no method for; they name what to use instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from ..errors import AbsentMethodError
from ..facts import Method, Revision
from ..other_sdks import attribute_error
from ..revisions import REVISIONS

_INSTEAD: Mapping[str, str] = {
    "logging/setLevel": "use client.ask_for_logs(level)",
    "ping": "use client.discover()",
    "resources/subscribe": "use client.listen(uris=[...])",
    "resources/unsubscribe": "leave the block of client.listen()",
    "server/discover": "connect() has opened the session; see client.server_capabilities",
    "subscriptions/listen": "use client.listen()",
}
"""What a client does instead of a request, in revisions that lack the request."""

_BY_ITSELF = frozenset({"initialize", "notifications/cancelled", "notifications/initialized"})
"""Messages that a client sends without its user; `other_sdks` says what to use."""

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
    if method is None or method in _BY_ITSELF or name.startswith("_") or _has(revision, method):
        return attribute_error(owner, "Client", name)
    return _error(revision, method, f"{name}() ({method})")


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
