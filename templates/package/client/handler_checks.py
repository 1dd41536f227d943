"""Checks of handler names, before a session is opened, and errors for absent methods.

A method of a class of handlers with another name would never be called, and one with other
parameters would fail when the server sends a request. A class of handlers may also have helper
methods, data and callable objects.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from ..absence import attribute_error
from ..errors import AbsentMethodError
from ..facts import Method, Revision
from ..foreign_text import safe_repr
from ..revisions import REVISIONS
from ..runtime.stubs import HandlersBase

_ARGUMENTS = "(params, ctx)"
_ALIKE = 0.85  # least similarity of a name that is treated as misspelled
_AFFIXES = re.compile(r"^(on|handle)_|_(handler|callback|fn|func)$")
_INNER_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def check_handlers(handlers: object) -> None:
    """Check the names of an object's handlers, and the number of their parameters.

    Raises:
        TypeError: The object has no handlers, or a handler has other parameters or a misspelled
            name.
    """
    if not callable(getattr(handlers, "mcp_handler", None)):
        raise TypeError(
            "handlers: expected an object of a class that is derived from ClientHandlers (or "
            f"SyncClientHandlers), or the class, got {safe_repr(handlers)}"
        )
    if not isinstance(handlers, HandlersBase):
        return
    names = [
        name
        for owner in type(handlers).__mro__
        if "mcp_stubs" in vars(owner)
        for name, value in vars(owner).items()
        if inspect.isfunction(value) and not name.startswith("_") and name != "mcp_handler"
    ]
    own = dict(_own_functions(handlers))
    place = f"handlers: {type(handlers).__name__}"
    for name, function in own.items():
        if name in names and not _accepts_arguments(function, 2):
            raise TypeError(
                f"{place}.{name}: expected a method with the parameters {_ARGUMENTS}, got "
                f"{_signature(function)}"
            )
    for name, function in own.items():
        right = None if name in names else _meant_name(name, function, names)
        if right is not None and right not in own:
            raise TypeError(f"{place}.{name} is no handler: write {right}{_ARGUMENTS}")


def _own_functions(handlers: HandlersBase) -> Iterator[tuple[str, Any]]:
    """The public functions that the user's classes define, bound to the object."""
    seen: set[str] = set()
    for owner in type(handlers).__mro__:
        if "mcp_stubs" in vars(owner):
            seen |= vars(owner).keys()
            continue
        for name, value in vars(owner).items():
            if name.startswith("_") or name in seen or isinstance(value, type | property):
                continue
            seen.add(name)
            if callable(value) or isinstance(value, staticmethod | classmethod):
                yield name, getattr(handlers, name)


def _signature(function: Any) -> inspect.Signature | None:
    """The signature of a function as it is called; `None` if unknown."""
    if hasattr(function, "__signature__"):  # set by hand, and maybe of another function
        return None
    try:
        return inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return None


def _accepts_arguments(function: Any, count: int) -> bool:
    """Whether a function accepts so many positional arguments; true if unknown."""
    signature = _signature(function)
    try:
        if signature is not None:
            signature.bind(*([None] * count))
    except TypeError:
        return False
    return True


def _meant_name(name: str, function: Any, names: list[str]) -> str | None:
    """The handler name that was probably meant; `None` if the method is a helper."""
    plain = _AFFIXES.sub("", _snake_case(name))
    right = _other_names().get(plain, plain)
    if right in names and (_accepts_arguments(function, 1) or _accepts_arguments(function, 2)):
        return right
    alike = get_close_matches(name, names, cutoff=_ALIKE)
    return alike[0] if alike and _accepts_arguments(function, 2) else None


def _other_names() -> Mapping[str, str]:
    """The handler names by wire name and by capability of their methods."""
    others: dict[str, str] = {}
    for revision in REVISIONS.values():
        for method in (*revision.server_requests.values(), *revision.input_requests.values()):
            words = (method.name, *method.capability[:1])
            others |= {_snake_case(word): method.python_name for word in words}
        for method in revision.server_notifications.values():
            others[_snake_case(method.name.removeprefix("notifications/"))] = method.python_name
    return others


def _snake_case(word: str) -> str:
    return _INNER_CAPITAL.sub("_", word).replace("/", "_").lower()


_INSTEAD: Mapping[str, str] = {
    "logging/setLevel": "use client.ask_for_logs(level)",
    "ping": "use client.discover()",
    "resources/subscribe": "use client.listen(uris=[...])",
    "resources/unsubscribe": "leave the block of client.listen()",
    "server/discover": "connect() has opened the session; see client.server_capabilities",
    "subscriptions/listen": "use client.listen()",
}
"""By method: the advice in revisions that lack the method."""

_BY_ITSELF = frozenset({"initialize", "notifications/cancelled", "notifications/initialized"})
"""Messages that a client sends by itself; `sdk_names` has the advice for these."""


def absent_method(revision: Revision, method: str) -> AbsentMethodError:
    """The error for a message by its wire name."""
    return _error(revision, method, method)


def absent_attribute(
    owner: object, revision: Revision, name: str, absent: Mapping[str, str]
) -> AttributeError:
    """The error for an attribute that a client of the revision lacks.

    Args:
        owner: The client.
        revision: The revision of its session.
        name: The attribute, maybe the method of a message of other revisions.
        absent: Members of absent features, each with its feature.
    """
    method = next((wire for wire, python in _python_names() if python == name), None)
    if method is None or method in _BY_ITSELF or name.startswith("_") or _has(revision, method):
        return attribute_error(owner, name, absent)
    return _error(revision, method, f"{name}() ({method})")


def _error(revision: Revision, method: str, label: str) -> AbsentMethodError:
    having = [each for each in REVISIONS if _has(REVISIONS[each], method)]
    elsewhere = f"; it is in {', '.join(having)}" if having else ""
    instead = f": {_INSTEAD[method]}" if method in _INSTEAD else ""
    return AbsentMethodError(method, f"{revision.name} has no {label}{instead}{elsewhere}")


def _has(revision: Revision, method: str) -> bool:
    return method in revision.client_requests or method in revision.client_notifications


def _python_names() -> Iterator[tuple[str, str]]:
    """Wire name and Python name of all messages of all revisions."""
    for wire in _INSTEAD:  # also in a package whose only revision lacks them
        yield wire, _snake_case(wire.rpartition("/")[2])
    for revision in REVISIONS.values():
        rows: tuple[Method, ...] = (
            *revision.client_requests.values(),
            *revision.client_notifications.values(),
        )
        for row in rows:
            yield row.name, row.python_name
            if row.items is not None:
                yield row.name, f"{row.python_name}_page"
