"""Asks the user at a terminal: what a server asks by elicitation and sampling, and what a
configuration has as inputs.

Questions go to standard error, so that standard output has results alone. Answers are read by line.
The end of the input cancels an elicitation, and refuses to answer in place of a model.

Source: client/elicitation, client/sampling.
"""

from __future__ import annotations

import getpass
import json
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

import anyio
import anyio.to_thread

from .._wire import is_object, to_builtins
from ..errors import ProtocolError
from ..facts import Method
from ..foreign_text import WEB_SCHEMES, safe_text
from ..protocol.client_features import field_complaint
from ..runtime.request_context import RequestContext
from .client_settings import ConfigInput
from .handler_validation import ELICITATION, SAMPLING

CAPABILITIES: Mapping[str, Any] = {"elicitation": {"form": {}, "url": {}}}
"""Capabilities of a terminal besides those that the handlers imply."""

_REFUSED = -1  # code of the error for what the user refuses
_LONGEST = 4000  # characters of a foreign text that are shown

_Members: TypeAlias = Mapping[str, Any]

_ACTIONS = {"y": "accept", "yes": "accept", "d": "decline", "c": "cancel", "": "cancel"}
_YES_OR_NO = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


class TerminalHandlers:
    """Asks one question at a time.

    Attributes:
        url_schemes: URL schemes that a server may ask the user to open.
    """

    url_schemes: Collection[str] = WEB_SCHEMES

    def __init__(self) -> None:
        self._turn = anyio.Lock()
        self._handlers: Mapping[str, Callable[[_Members], Any]] = {
            ELICITATION: _elicit,
            SAMPLING: _sample,
        }

    def mcp_handler(self, method: Method) -> Callable[[Any, RequestContext], Any] | None:
        """The handler of a request that can be answered at a terminal."""
        return self._ask if method.name in self._handlers else None

    async def _ask(self, params: Any, context: RequestContext) -> Any:
        handler = self._handlers[context.method.name]
        members: _Members = to_builtins(params)
        async with self._turn:
            return await anyio.to_thread.run_sync(handler, members, abandon_on_cancel=True)


def ask_input(question: ConfigInput) -> str | None:
    """The value of an input of a configuration; `None` at the end of the input."""
    text = _shown(question.description or question.id)
    if question.options:
        text += f" ({', '.join(map(_shown, question.options))})"
    if question.default is not None and not question.password:
        text += f" [{_shown(question.default)}]"
    try:
        while True:
            secret = question.password
            value = getpass.getpass(f"{text}: ") if secret else _line(f"{text}: ")
            value = value or question.default or ""
            if value and (not question.options or value in question.options):
                return value
    except EOFError:
        return None


def _elicit(params: _Members) -> _Members:
    """The answer to an elicitation, by a form or by a URL."""
    _show(f"\nThe server asks: {_shown(params.get('message'))}")
    if "url" in params:
        _show(f"It wants you to open {_shown(params['url'])}")
    properties = params.get("requestedSchema", {}).get("properties", {})
    what = "Have you done that?" if "url" in params else "Do you want to answer?"
    action = _ACTIONS.get(_line(f"{what} [y]es, [d]ecline, [c]ancel: ", "c").lower(), "cancel")
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
    """The value of one field, asked for until it is valid; `None` for none.

    Raises:
        EOFError: The input has ended.
    """
    if "description" in field:
        _show(f"  {_shown(field['description'])}")
    for choice, title in _choices(field):
        _show(f"    {_shown(choice)}{'' if title == choice else f': {_shown(title)}'}")
    default = field.get("default")
    hint = field.get("type", "text") if default is None else f"{json.dumps(default)} if empty"
    optional = "" if required or default is not None else ", may be empty"
    while True:
        text = _line(f"  {_shown(field.get('title', name))} ({_shown(hint)}{optional}): ")
        if not text and (default is not None or not required):
            return default
        value = _value(field, text)
        wrong = field_complaint(field, value)
        if wrong is None:
            return value
        _show(f"  {wrong}")


def _choices(field: _Members) -> list[tuple[Any, Any]]:
    """The values that a field allows, with their titles; empty if any is."""
    inner = field.get("items", field)
    titled = inner.get("oneOf") or inner.get("anyOf") or ()
    values = inner.get("enum") or ()
    titles = inner.get("enumNames") or values
    pairs = [(each.get("const"), each.get("title")) for each in titled if is_object(each)]
    return pairs or [*zip(values, titles, strict=False)]


def _value(field: _Members, text: str) -> Any:
    """The value of a line, by the type of the field; the text itself if it fits none."""
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
    """The user's answer in place of a model: lines up to an empty one.

    Raises:
        ProtocolError: The user gave none.
    """
    _show("\nThe server asks a model:")
    if "systemPrompt" in params:
        _show(f"  system: {_shown(params['systemPrompt'])}")
    for message in params["messages"]:
        content = message["content"]
        text = content.get("text") if is_object(content) else None
        _show(f"  {message['role']}: {_shown(json.dumps(content) if text is None else text)}")
    lines: list[str] = []
    while line := _line("Answer, an empty line ends it: " if not lines else "", ""):
        lines.append(line)
    if not lines:
        raise ProtocolError("the user refused", code=_REFUSED)
    text = {"type": "text", "text": "\n".join(lines)}
    return {"role": "assistant", "content": text, "model": "human", "stopReason": "endTurn"}


def _line(question: str, at_end: str | None = None) -> str:
    """The line that the user writes, or `at_end` at the end of the input.

    Raises:
        EOFError: The input has ended, and there is no `at_end`.
    """
    print(question, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    if not line:
        if at_end is None:
            raise EOFError
        return at_end
    return line.strip()


def _show(text: str) -> None:
    print(text, file=sys.stderr)


def _shown(value: Any) -> str:
    """A foreign text, line by line, without characters that a terminal acts on."""
    lines = str(value)[:_LONGEST].splitlines()
    return "\n  ".join(safe_text(line, _LONGEST) for line in lines)
