"""Programs of the low level: their standard streams, and what they state apart from the server.

The block that opens the streams becomes `server.run_async()`. The name and the version of
`InitializationOptions` move to the server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import libcst as cst
from libcst import matchers
from libcst.metadata import QualifiedNameProvider

from mcpgen.port.call_arguments import keyword_argument, keyword_of, with_arguments
from mcpgen.port.servers import Level, Servers, dotted_name, level_of, sdk_name


def run_without_streams(
    original: cst.With, updated: cst.With, servers: Servers
) -> cst.FlattenSentinel[cst.BaseStatement] | None:
    """The statements of a block that opens the streams, with one `run_async` for its one `run`.

    `None` if the block has another number of runs, or uses the streams in another way.

    Args:
        original: The block, whose only item is a call of `stdio_server`.
        updated: The same block, with changes of what it contains.
        servers: The servers of the module.
    """
    streams = _streams(original.items[0])
    if streams is None:
        return None
    run = _RunRewriter(streams, servers)
    changed = updated.body.visit(run)
    if not isinstance(changed, cst.IndentedBlock):
        return None
    if run.count != 1 or names_in(changed) & streams:
        return None
    first, *rest = changed.body
    comments = [*updated.leading_lines, *getattr(first, "leading_lines", ())]
    return cst.FlattenSentinel([first.with_changes(leading_lines=comments), *rest])


class _RunRewriter(cst.CSTTransformer):
    """Changes `server.run(read, write, options)` of given streams to `server.run_async()`."""

    def __init__(self, streams: frozenset[str], servers: Servers) -> None:
        super().__init__()
        self.count = 0
        self._streams = streams
        self._servers = servers

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        func = updated_node.func
        if not isinstance(func, cst.Attribute) or func.attr.value != "run":
            return updated_node
        given = frozenset(_stream(each.value) for each in updated_node.args[:2])
        keywords = {keyword_of(each) for each in updated_node.args[3:]}
        if given != self._streams or not keywords <= {"raise_exceptions", "stateless"}:
            return updated_node
        self.count += 1
        changed = func.with_changes(attr=cst.Name("run_async"))
        return with_arguments(updated_node.with_changes(func=changed), [])


def _streams(item: cst.WithItem) -> frozenset[str] | None:
    """The names of two streams, as in `as (read, write)`, or of the tuple of both."""
    if item.asname is None:
        return None
    if isinstance(item.asname.name, cst.Name):
        return frozenset({item.asname.name.value})
    if not isinstance(item.asname.name, cst.Tuple):
        return None
    names = frozenset(dotted_name(each.value) for each in item.asname.name.elements)
    return None if "" in names else names


def _stream(value: cst.BaseExpression) -> str:
    """The name of a stream, or that of the tuple of both in `streams[0]`."""
    return dotted_name(value.value if isinstance(value, cst.Subscript) else value)


def names_in(node: cst.CSTNode) -> set[str]:
    """The names in a piece of code."""
    names = matchers.findall(node, matchers.Name())
    return {cst.ensure_type(each, cst.Name).value for each in names}


_USED = "an expression"
"""Stands for the name of options that have none."""


class OptionCollector(cst.CSTVisitor):
    """Collects the options of low-level servers, and what these say of a module's only server."""

    METADATA_DEPENDENCIES = (QualifiedNameProvider,)

    def __init__(self, servers: Servers) -> None:
        super().__init__()
        self._known = servers
        self._servers = 0
        self._options: list[cst.Call] = []
        self._made: dict[int, str] = {}
        self._other_uses = Counter([_USED])

    def visit_Assign(self, node: cst.Assign) -> None:
        name = dotted_name(node.targets[0].target)
        if isinstance(node.value, cst.Call) and self._is_made(node.value):
            self._made[id(node.value)] = name
            self._other_uses[name] -= 1

    def visit_Name(self, node: cst.Name) -> None:
        self._other_uses[node.value] += 1

    def visit_Call(self, node: cst.Call) -> None:
        name = sdk_name(self, node.func)
        self._servers += level_of(name) is Level.LOW
        if name is not None and name.endswith(".InitializationOptions"):
            self._options.append(node)
        if self._is_made(node):
            self._made.setdefault(id(node), _USED)
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == "run":
            for each in node.args:
                self._other_uses[dotted_name(each.value)] -= 1
                if isinstance(each.value, cst.Call):
                    self._made[id(each.value)] = ""

    def _is_made(self, node: cst.Call) -> bool:
        owner, _, method = dotted_name(node.func).rpartition(".")
        is_low = self._known.names.get(owner) is Level.LOW
        return is_low and method == "create_initialization_options"

    def used(self) -> frozenset[int]:
        """The calls that make options which more than `server.run()` takes, by identity."""
        return frozenset(call for call, name in self._made.items() if self._other_uses[name] > 0)

    def identity(self) -> Mapping[str, cst.BaseExpression]:
        """The name and the version of the server, where literals state these."""
        if self._servers != 1 or len(self._options) != 1:
            return {}
        stated = {keyword_of(each): each.value for each in self._options[0].args}
        return {
            name: value
            for name in ("name", "version")
            if isinstance(value := stated.get(f"server_{name}"), cst.SimpleString)
        }


def with_identity(
    arguments: Sequence[cst.Arg], identity: Mapping[str, cst.BaseExpression]
) -> list[cst.Arg]:
    """The arguments of a server with the name and the version that its options state."""
    made = list(arguments)
    if made and made[0].keyword is None and "name" in identity:
        made[0] = made[0].with_changes(value=identity["name"])
    is_versioned = len(made) > 1 and made[1].keyword is None
    is_versioned |= any(keyword_of(each) == "version" for each in made)
    if "version" in identity and not is_versioned:
        made.append(keyword_argument("version", identity["version"]))
    return made


def with_handlers(
    line: cst.SimpleStatementLine, handlers: Sequence[tuple[str, cst.BaseExpression]]
) -> cst.FlattenSentinel[cst.BaseStatement]:
    """The statement that binds or returns a server, with the functions of its requests.

    Args:
        line: The statement, with the call that makes the server.
        handlers: The requests, each with its function.
    """
    statement, end = line.body[0], list[cst.BaseStatement]()
    if isinstance(statement, cst.Return):
        assert statement.value is not None  # it makes the server
        target: cst.BaseExpression = cst.Name("new_server")
        end.append(cst.SimpleStatementLine([cst.Return(target)]))
        statement = cst.Assign([cst.AssignTarget(cst.Name("new_server"))], statement.value)
        line = line.with_changes(body=[statement])
    else:
        target = cst.ensure_type(statement, cst.Assign).targets[0].target
    lines: list[cst.BaseStatement] = [line]
    for method, function in handlers:
        decorator = cst.Call(
            cst.Attribute(target, cst.Name("request_handler")),
            [cst.Arg(cst.SimpleString(f'"{method}"'))],
        )
        call = cst.Call(decorator, [cst.Arg(function)])
        lines.append(cst.SimpleStatementLine([cst.Expr(call)]))
    return cst.FlattenSentinel([*lines, *end])
