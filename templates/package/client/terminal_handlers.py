"""Prompts at a terminal, for elicitation and sampling requests and for inputs of a configuration.

Questions are written to standard error, since standard output is for results. Answers are read by
line. The end of standard input cancels an elicitation, and refuses a sampling request.

Source: client/elicitation, client/sampling.
"""

from __future__ import annotations

import getpass
import json
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

import anyio
import anyio.to_thread

from .._wire import is_object, to_builtins
from ..errors import ProtocolError
from ..facts import Method
from ..foreign_text import WEB_SCHEMES, safe_text
from ..protocol.client_features import field_complaint
from ..runtime.request_context import RequestContext
from .application import ELICITATION, SAMPLING
from .server_document import ConfigInput

CAPABILITIES: Mapping[str, Any] = {"elicitation": {"form": {}, "url": {}}}
"""The capabilities to declare besides those that the handlers imply."""

_REFUSED = -1  # code of the error for a refused sampling request
_LONGEST = 4000  # most characters of a foreign text that are shown

_Members: TypeAlias = Mapping[str, Any]

_ACTIONS = {"y": "accept", "yes": "accept", "d": "decline", "c": "cancel", "": "cancel"}
_YES_OR_NO = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


class TerminalHandlers:
    """Handlers that ask the user one question at a time.

    Attributes:
        url_schemes: URL schemes that a server may ask the user to open.
    """

    url_schemes: Collection[str] = WEB_SCHEMES

    def __init__(self) -> None:
        self._lock = anyio.Lock()
        self._handlers: Mapping[str, Callable[[_Members], Any]] = {
            ELICITATION: _elicit,
            SAMPLING: _sample,
        }

    def mcp_handler(self, method: Method) -> Callable[[Any, RequestContext], Any] | None:
        """The handler of a supported request; `None` for other requests."""
        return self._ask if method.name in self._handlers else None

    async def _ask(self, params: Any, context: RequestContext) -> Any:
        handler = self._handlers[context.method.name]
        members: _Members = to_builtins(params)
        async with self._lock:
            return await anyio.to_thread.run_sync(handler, members, abandon_on_cancel=True)


def ask_input(question: ConfigInput) -> str | None:
    """Ask for an input of a configuration; `None` at the end of standard input."""
    text = _clean_text(question.description or question.id)
    if question.options:
        text += f" ({', '.join(map(_clean_text, question.options))})"
    if question.default is not None and not question.password:
        text += f" [{_clean_text(question.default)}]"
    with suppress(EOFError):
        while True:
            secret = question.password
            value = getpass.getpass(f"{text}: ") if secret else _line(f"{text}: ")
            value = value or question.default or ""
            if value and (not question.options or value in question.options):
                return value
    return None


def _elicit(params: _Members) -> _Members:
    """Ask the user to fill in a form or to open a URL; returns the result of the elicitation."""
    _show(f"\nThe server asks: {_clean_text(params.get('message'))}")
    if "url" in params:
        _show(f"It wants you to open {_clean_text(params['url'])}")
    properties = params.get("requestedSchema", {}).get("properties", {})
    what = "Have you done that?" if "url" in params else "Do you want to answer?"
    action = _ACTIONS.get(
        _line(f"{what} [y]es, [d]ecline, [c]ancel: ", may_end=True).lower(), "cancel"
    )
    if action != "accept" or "requestedSchema" not in params:
        return {"action": action}
    required = params["requestedSchema"].get("required", ())
    content: dict[str, Any] = {}
    try:
        for name, field in properties.items():
            value = _field(name, field, name in required)
            if value is not None:
                content[name] = value
    except EOFError:
        return {"action": "cancel"}
    return {"action": "accept", "content": content}


def _field(name: str, field: _Members, required: bool) -> Any:
    """Ask for a field until the value is valid; `None` for no value.

    Raises:
        EOFError: Standard input has ended.
    """
    if "description" in field:
        _show(f"  {_clean_text(field['description'])}")
    for choice, title in _choices(field):
        _show(f"    {_clean_text(choice)}{'' if title == choice else f': {_clean_text(title)}'}")
    default = field.get("default")
    hint = field.get("type", "text") if default is None else f"{json.dumps(default)} if empty"
    optional = "" if required or default is not None else ", may be empty"
    while True:
        text = _line(f"  {_clean_text(field.get('title', name))} ({_clean_text(hint)}{optional}): ")
        if not text and (default is not None or not required):
            return default
        value = _value(field, text)
        wrong = field_complaint(field, value)
        if wrong is None:
            return value
        _show(f"  {wrong}")


def _choices(field: _Members) -> list[tuple[Any, Any]]:
    """The values that a field allows, with their titles; empty for a field without choices."""
    inner = field.get("items", field)
    titled = inner.get("oneOf") or inner.get("anyOf") or ()
    values = inner.get("enum") or ()
    titles = inner.get("enumNames") or values
    pairs = [(each.get("const"), each.get("title")) for each in titled if is_object(each)]
    return pairs or [*zip(values, titles, strict=False)]


def _value(field: _Members, text: str) -> Any:
    """Convert a line to the type of the field; unchanged if the conversion fails."""
    match field.get("type"):
        case "boolean":
            return _YES_OR_NO.get(text.lower(), text)
        case "integer" | "number":
            try:
                return json.loads(text)
            except ValueError:
                return text
        case "array":
            return [each.strip() for each in text.split(",") if each.strip()]
        case _:
            return text


def _sample(params: _Members) -> _Members:
    """Ask the user for the message of the model: lines up to an empty line.

    Raises:
        ProtocolError: The user entered no text.
    """
    _show("\nThe server asks a model:")
    if "systemPrompt" in params:
        _show(f"  system: {_clean_text(params['systemPrompt'])}")
    for message in params["messages"]:
        content = message["content"]
        text = content.get("text") if is_object(content) else None
        _show(f"  {message['role']}: {_clean_text(json.dumps(content) if text is None else text)}")
    lines: list[str] = []
    while line := _line("Answer, an empty line ends it: " if not lines else "", may_end=True):
        lines.append(line)
    if not lines:
        raise ProtocolError("the user refused", code=_REFUSED)
    text = {"type": "text", "text": "\n".join(lines)}
    return {"role": "assistant", "content": text, "model": "human", "stopReason": "endTurn"}


def _line(question: str, may_end: bool = False) -> str:
    """Read a line; the end of standard input counts as an empty line if `may_end` is set.

    Raises:
        EOFError: Standard input has ended, and `may_end` is not set.
    """
    print(question, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line and not may_end:
        raise EOFError
    return line.strip()


def _show(text: str) -> None:
    print(text, file=sys.stderr)


def _clean_text(value: Any) -> str:
    """A foreign text without control characters, which a terminal would interpret."""
    lines = str(value)[:_LONGEST].splitlines()
    return "\n  ".join(safe_text(line, _LONGEST) for line in lines)
