"""Clients of the official SDK: the blocks that open a transport and a session become `connect`.

A block is understood if it opens one transport and one session over its streams, without callbacks,
and uses the streams for nothing else. Any other one stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import libcst as cst
from libcst.metadata import QualifiedNameProvider

from mcpgen.port.call_arguments import keyword_argument, keyword_of
from mcpgen.port.low_level import names_in
from mcpgen.port.servers import dotted_name, sdk_name

_URLS: Mapping[str, str | None] = {
    "sse_client": "sse",
    "streamable_http_client": None,
    "streamablehttp_client": None,
}
"""Transports of `connect` by the functions that open one to a URL."""

_PARAMETERS = ("command", "args", "env", "cwd")
"""Keywords of `StdioServerParameters` that have a place here."""


@dataclass(frozen=True)
class Connection:
    """A block that opens a session.

    Attributes:
        target: The first argument of `connect`.
        options: Its further arguments.
        session: The name of the session.
        body: The block in which the session is open, as it was written.
    """

    target: cst.BaseExpression
    options: Sequence[cst.Arg]
    session: str
    body: cst.BaseSuite


class ConnectionFinder(cst.CSTVisitor):
    """Finds the blocks of a module that open sessions.

    Attributes:
        connections: They, by the id of their outermost `with`.
        sessions: Names of the sessions.
        commands: Calls of `StdioServerParameters` that become commands, by id.
    """

    METADATA_DEPENDENCIES = (QualifiedNameProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.connections: dict[int, Connection] = {}
        self.sessions: set[str] = set()
        self.commands: dict[int, cst.BaseExpression] = {}
        self._parameters: dict[str, list[cst.Call]] = {}

    def visit_Assign(self, node: cst.Assign) -> None:
        if isinstance(node.value, cst.Call) and self._own(node.value) == "StdioServerParameters":
            for each in node.targets:
                self._parameters.setdefault(dotted_name(each.target), []).append(node.value)

    def visit_With(self, node: cst.With) -> None:
        items, body = list(node.items), node.body
        if len(items) == 1 and len(body.body) == 1 and isinstance(body.body[0], cst.With):
            inner = body.body[0]
            items, body = [*items, *inner.items], inner.body
        match items:
            case [
                cst.WithItem(
                    item=cst.Call() as opening, asname=cst.AsName(name=cst.Tuple() as streams)
                ),
                cst.WithItem(
                    item=cst.Call() as session, asname=cst.AsName(name=cst.Name(value=name))
                ),
            ] if self._own(session) == "ClientSession":
                pass
            case _:
                return
        given = [each.value for each in session.args if each.keyword is None]
        opened = [dotted_name(each.value) for each in streams.elements]
        is_plain = len(given) == len(session.args) == 2
        if not is_plain or [dotted_name(each) for each in given] != opened[:2]:
            return
        if names_in(body) & ({*opened} - {"_"}):
            return
        target = self._target(opening)
        if target is not None:
            self.connections[id(node)] = Connection(*target, name, body)
            self.sessions.add(name)

    def _own(self, call: cst.Call) -> str:
        """The name of the class or function of another SDK that a call has; else empty."""
        return (sdk_name(self, call.func) or "").rpartition(".")[2]

    def _target(self, opening: cst.Call) -> tuple[cst.BaseExpression, Sequence[cst.Arg]] | None:
        name = self._own(opening)
        if not opening.args:
            return None
        first, *rest = opening.args
        if keyword_of(first) not in (None, "url", "server") or first.star:
            return None
        if name in _URLS and all(keyword_of(each) == "headers" for each in rest):
            transport = _URLS[name]
            word = cst.SimpleString(f'"{transport}"')
            more = [] if transport is None else [keyword_argument("transport", word)]
            return first.value, [*(keyword_argument("headers", each.value) for each in rest), *more]
        if name != "stdio_client" or rest:
            return None
        return self._command(first.value)

    def _command(
        self, value: cst.BaseExpression
    ) -> tuple[cst.BaseExpression, Sequence[cst.Arg]] | None:
        """The command of the parameters of a process, which a name may be bound to once."""
        calls = [value] if isinstance(value, cst.Call) else self._parameters.get(dotted_name(value))
        if calls is None or len(calls) != 1 or self._own(calls[0]) != "StdioServerParameters":
            return None
        given = {keyword_of(each) or "": each.value for each in calls[0].args}
        if "command" not in given or not given.keys() <= {*_PARAMETERS}:
            return None
        words: list[cst.BaseElement] = [cst.Element(given["command"])]
        arguments = given.get("args")
        if isinstance(arguments, cst.List):
            words += [
                each.with_changes(comma=cst.MaybeSentinel.DEFAULT) for each in arguments.elements
            ]
        elif arguments is not None:
            words.append(cst.StarredElement(arguments))
        command = cst.List(words)
        self.commands[id(calls[0])] = command
        options = [keyword_argument(each, given[each]) for each in ("env", "cwd") if each in given]
        return (command if isinstance(value, cst.Call) else value), options
