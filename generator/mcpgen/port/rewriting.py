"""Changes of one module: constructors, decorators, keywords, contexts, results and transports.

Each change is made where the libcst metadata say that a name comes from another SDK, or where the
owner of a member is a server or a context of it. Anything else stays, and is listed if it belongs
to another SDK. `imports` changes the import statements afterwards, by what is left in the module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst
from libcst import matchers
from libcst.metadata import CodeRange, PositionProvider, QualifiedNameProvider

from mcpgen.port import alternatives
from mcpgen.port.alternatives import Target
from mcpgen.port.call_arguments import (
    changed_arguments,
    class_name,
    has_known_options,
    is_name,
    keyword_argument,
    keyword_of,
    made_item,
    message_arguments,
    negation_of,
    uri_template,
    with_arguments,
)
from mcpgen.port.clients import ConnectionFinder
from mcpgen.port.low_level import (
    OptionCollector,
    run_without_streams,
    with_handlers,
    with_identity,
)
from mcpgen.port.middleware import (
    MIDDLEWARE,
    MiddlewareParameters,
    is_message,
    log_arguments,
    middleware_parameters,
    other_log_arguments,
)
from mcpgen.port.sdk_members import sdk_members
from mcpgen.port.servers import (
    Level,
    Servers,
    annotated_class,
    dotted_name,
    is_medium,
    level_of,
    sdk_name,
)
from mcpgen.port.unported import Unported

_SDK = sdk_members()
_NAMES = matchers.Name() | matchers.Attribute()


@dataclass
class Rewritten:
    """A changed module.

    Attributes:
        module: The module, with its imports unchanged.
        needed: What the changed code names in the package.
        modules: Modules of Python's library that the changed code names.
        findings: What was left to a person.
    """

    module: cst.Module
    needed: set[Target] = field(default_factory=set[Target])
    modules: set[str] = field(default_factory=set[str])
    findings: list[Unported] = field(default_factory=list[Unported])


def rewrite(
    path: str, wrapper: cst.MetadataWrapper, servers: Servers, dialects: Mapping[Level, str]
) -> Rewritten:
    """Change a module.

    Args:
        path: Its file, as it was named.
        wrapper: The module, with its metadata.
        servers: Its servers.
        dialects: The words of `Server(compatibility=)`, by the kind of server.
    """
    options = OptionCollector(servers)
    wrapper.visit(options)
    clients = ConnectionFinder()
    wrapper.visit(clients)
    rewriter = _Rewriter(path, servers, dialects, options, clients)
    module = wrapper.visit(rewriter)
    return Rewritten(module, rewriter.needed, rewriter.modules, rewriter.findings)


class _Rewriter(cst.CSTTransformer):
    METADATA_DEPENDENCIES = (QualifiedNameProvider, PositionProvider)

    def __init__(
        self,
        path: str,
        servers: Servers,
        dialects: Mapping[Level, str],
        options: OptionCollector,
        clients: ConnectionFinder,
    ) -> None:
        super().__init__()
        self._clients = clients
        self._identity = options.identity()
        self._used_options = options.used()
        self.needed: set[Target] = set()
        self.modules: set[str] = set()
        self.findings: list[Unported] = []
        self._path = path
        self._servers = servers
        self._dialects = dialects
        self._contexts: list[frozenset[str]] = []
        self._middleware: list[MiddlewareParameters | None] = []
        self._no_references: set[int] = set()
        self._assigned: set[int] = set()
        self._understood: set[int] = set()
        self._handlers: list[tuple[str, cst.BaseExpression]] = []
        self._classes: list[Level | None] = []

    # Handlers that are arguments

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        match node.body:
            case [cst.Assign(targets=[_], value=cst.Call() as call)]:
                self._assigned.add(id(call))
            case [cst.Return(value=cst.Call() as call)]:
                self._assigned.add(id(call))
            case [cst.Assign(value=(cst.Name() | cst.Attribute()) as value)]:
                if level_of(sdk_name(self, value)) in self._dialects:
                    self._leave(node, dotted_name(value), "write compatibility= in its calls")
            case [cst.Expr(value=cst.Await(expression=cst.Call(func=func) as call))]:
                if self._is_initialization(func):
                    self._understood.add(id(call))
            case _:
                pass

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement] | cst.RemovalSentinel:
        match original_node.body:
            case [cst.Expr(value=cst.Await(expression=cst.Call(func=func)))]:
                if self._is_initialization(func):
                    return cst.RemoveFromParent()
            case _:
                pass
        if not self._handlers:
            return updated_node
        handlers, self._handlers = self._handlers, []
        return with_handlers(updated_node, handlers)

    # Names

    def visit_Attribute(self, node: cst.Attribute) -> None:
        self._no_references.add(id(node.attr))
        if isinstance(node.value, cst.Name):
            self._understood.add(id(node.value))

    def visit_Annotation(self, node: cst.Annotation) -> None:
        self._understood |= {id(each) for each in matchers.findall(node, _NAMES)}

    def visit_Arg(self, node: cst.Arg) -> None:
        if node.keyword is not None:
            self._no_references.add(id(node.keyword))

    def visit_Param(self, node: cst.Param) -> None:
        self._no_references.add(id(node.name))

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        if id(original_node) in self._no_references:
            return updated_node
        if self._is_message(original_node.value) and id(original_node) not in self._understood:
            self._leave(
                original_node,
                original_node.value,
                "use the MiddlewareRequest, whose with_params() and with_meta() make copies",
            )
        name = sdk_name(self, original_node)
        if name is not None and name.endswith(".HandlerResult"):
            return updated_node.with_changes(value="object")
        target = None if name is None else alternatives.target(name)
        if name is None or target is None or not target.name:
            return updated_node
        self._leave_message(original_node, name)
        if original_node.value != name.rpartition(".")[2]:
            return updated_node  # imported by another name, which it keeps
        self.needed.add(target)
        return updated_node.with_changes(value=target.name)

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        name = sdk_name(self, original_node)
        target = None if name is None else alternatives.target(name)
        if target is not None:
            is_of_types = sdk_name(self, original_node.value) in alternatives.TYPES
            if is_of_types and target.module == "models":
                if isinstance(original_node.value, cst.Name):
                    return updated_node
                self.needed.add(Target("models", ""))
                return cst.Attribute(cst.Name("models"), cst.Name(target.name))
            if not target.name:
                return updated_node
            self._leave_message(original_node, name)
            self.needed.add(target)
            return cst.Name(target.name)
        if name is not None and sdk_name(self, original_node.value) in alternatives.TYPES:
            self._leave(
                original_node, dotted_name(original_node), alternatives.advice_on_name(name)
            )
        return self._member(original_node, updated_node)

    def _leave_message(self, node: cst.CSTNode, name: str | None) -> None:
        """List a use of the class of messages of prompts whose parameters may matter."""
        if alternatives.is_prompt_message(name) and id(node) not in self._understood:
            self._leave(node, "Message", alternatives.advice_on_name("Message"))

    def _member(self, original: cst.Attribute, updated: cst.Attribute) -> cst.BaseExpression:
        """A member of a server or of a context."""
        owner, name = dotted_name(original.value), original.attr.value
        if self._is_message(owner):
            return self._message_member(original, updated)
        if name in _SDK.wire_names:
            self._leave(
                original, f".{name}", f"objects of the package have {_SDK.wire_names[name]}"
            )
        is_known = name != "to_data_uri" or bool(owner)
        if name in _SDK.members.media and not (is_known and self._is_medium(original.value)):
            advice = alternatives.advice_on_attribute("Image", name)
            self._leave(original, f".{name}()", advice or "")
        outer, _, last = owner.rpartition(".")
        is_understood = id(original) in self._understood
        if self._is_context(owner):
            if name == "lifespan_context":
                return updated.with_changes(attr=cst.Name("state"))
            if name == "session" and not is_understood:
                self._leave(original, "ctx.session", "use ctx.client")
        elif self._level(owner) is Level.LOW and name == "request_context":
            return updated.with_changes(attr=cst.Name("current_context"))
        elif last == "request_context" and not is_understood:
            is_low = self._level(outer) is Level.LOW
            if is_low or self._is_context(outer):
                return self._request_member(original, updated, is_low=is_low)
        return updated

    def _request_member(
        self, original: cst.Attribute, updated: cst.Attribute, *, is_low: bool
    ) -> cst.BaseExpression:
        """A member of the context of a request, of the low level or of a context."""
        name = original.attr.value
        if name == "lifespan_context":
            context = cst.ensure_type(updated.value, cst.Attribute)
            return cst.Attribute(context if is_low else context.value, cst.Name("state"))
        kind = "Context" if is_low else "RequestContext"
        advice = alternatives.advice_on_attribute(kind, name)
        if advice is not None:
            self._leave(original, f"request_context.{name}", advice)
        return updated

    def _is_message(self, name: str) -> bool:
        """Whether a name is the message in middleware of the official SDK 2."""
        return any(each is not None and each.message == name for each in self._middleware)

    def _message_member(
        self, original: cst.Attribute, updated: cst.Attribute
    ) -> cst.BaseExpression:
        """A member of the message in middleware of the official SDK 2."""
        name = original.attr.value
        if name == "params":
            self.needed.add(Target("", "to_builtins"))
            return cst.Call(cst.Name("to_builtins"), [cst.Arg(updated)])
        if name not in _SDK.message_members:
            self._leave(original, f".{name}", "MiddlewareRequest has .context with more")
        return updated.with_changes(attr=cst.Name(_SDK.message_members.get(name, name)))

    def leave_Subscript(
        self, original_node: cst.Subscript, updated_node: cst.Subscript
    ) -> cst.BaseExpression:
        name = sdk_name(self, original_node.value)
        target = None if name is None else alternatives.target(name)
        if target in (Target("", "MiddlewareRequest"), Target("", "Next")):
            return updated_node.value
        if name is not None and name.endswith(".ServerMiddleware"):
            self.modules.add("collections.abc")
            self.needed |= {Target("", "MiddlewareRequest"), Target("", "Next")}
            return cst.parse_expression(MIDDLEWARE)
        if target != Target("", "Context"):
            return updated_node
        if len(updated_node.slice) < 2:
            return updated_node
        state = updated_node.slice[1]
        text = cst.Module([]).code_for_node(state.slice)
        if text in ("None", "Any"):
            return updated_node.value
        return updated_node.with_changes(
            slice=[state.with_changes(comma=cst.MaybeSentinel.DEFAULT)]
        )

    # Subclasses of servers

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        name = node.name.value
        level = self._servers.classes.get(name)
        self._classes.append(level)
        for each in node.body.body if level is not None else ():
            if isinstance(each, cst.FunctionDef) and each.name.value in _SDK.members.overridden:
                code = f"{name}.{each.name.value}()"
                self._leave(each, code, "nothing calls it here: change the call of this method")

    def leave_ClassDef(
        self, original_node: cst.ClassDef, updated_node: cst.ClassDef
    ) -> cst.ClassDef:
        self._classes.pop()
        return updated_node

    def _level(self, owner: str) -> Level | None:
        """The kind of the server that an expression is; `None` if it is none."""
        if owner == "self" and self._classes:
            return self._classes[-1]
        return self._servers.names.get(owner)

    def _made_level(self, node: cst.BaseExpression) -> Level | None:
        """The kind of the server that a call of a function of the program returns."""
        name = dotted_name(node.func) if isinstance(node, cst.Call) else ""
        return self._servers.makers.get(name)

    def _construction(self, call: cst.Call) -> Level | None:
        """The kind of the server that a call of a subclass, or of its base, constructs."""
        level: Level | None = None
        match call.func:
            case cst.Name(value=name) if name not in self._servers.constructed:
                level = self._servers.classes.get(name)
            case cst.Attribute(
                value=cst.Call(func=cst.Name(value="super")), attr=cst.Name(value="__init__")
            ) if self._classes:
                level = self._classes[-1]
            case _:
                pass
        return level

    # Contexts

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._middleware.append(middleware_parameters(self, node))
        parameters = [*node.params.posonly_params, *node.params.params, *node.params.kwonly_params]
        self._contexts.append(
            frozenset(
                each.name.value
                for each in parameters
                if each.annotation is not None and self._names_context(each.annotation.annotation)
            )
        )

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        self._contexts.pop()
        self._middleware.pop()
        return updated_node

    def leave_Param(self, original_node: cst.Param, updated_node: cst.Param) -> cst.Param:
        annotation = original_node.annotation
        if annotation is None or not is_message(self, annotation.annotation):
            return updated_node
        if not self._is_message(original_node.name.value):
            return updated_node
        self.needed.add(Target("", "MiddlewareRequest"))
        return updated_node.with_changes(
            annotation=annotation.with_changes(annotation=cst.Name("MiddlewareRequest"))
        )

    def _names_context(self, annotation: cst.BaseExpression) -> bool:
        name = sdk_name(self, annotated_class(annotation))
        return name is not None and alternatives.target(name) == Target("", "Context")

    def _is_context(self, name: str) -> bool:
        return any(name in each for each in self._contexts)

    # Calls

    def visit_Call(self, node: cst.Call) -> None:
        for each in self._middleware:
            if each is not None and each.is_passed_on(node):
                self._understood.add(id(node.args[0].value))
        if id(node) in self._used_options:
            self._leave(node, "create_initialization_options()", "run_async() needs no options")
        if message_arguments(sdk_name(self, node.func), node) is not None:
            self._understood.add(id(node.func))
        if self._session_call(node, node) is not None:
            session = cst.ensure_type(node.func, cst.Attribute).value
            self._understood.add(id(session))

    def _session(self, call: cst.Call) -> tuple[str, str] | None:
        """The owner of the session that a method is called of, and the method."""
        owner, _, method = dotted_name(call.func).rpartition(".session.")
        outer = owner.removesuffix(".request_context")
        is_low = outer != owner and self._level(outer) is Level.LOW
        return (outer, method) if is_low or self._is_context(outer) else None

    def _session_call(self, original: cst.Call, updated: cst.Call) -> cst.Call | None:
        """A call of the context for one of its session; `None` if it is not understood."""
        session = self._session(original)
        if session is None or any(each.star for each in original.args):
            return None
        if session[1] in _SDK.session_notifications:
            return self._notification(updated, *session)
        if session[1] not in _SDK.session_calls:
            return None
        owner, replacement = session[0], _SDK.session_calls[session[1]]
        parameters = replacement.parameters
        given = {
            keyword_of(each) or (parameters[index] if index < len(parameters) else ""): each.value
            for index, each in enumerate(updated.args)
        }
        if not given.keys() <= {*parameters}:
            return None
        context = cst.parse_expression(owner)
        if self._level(owner) is Level.LOW:
            context = cst.Attribute(context, cst.Name("current_context"))
        arguments = [
            keyword_argument(each, given[each])
            for each in parameters
            if each in given and each not in ("progress_token", "related_request_id")
        ]
        func = cst.Attribute(context, cst.Name(replacement.method))
        return with_arguments(updated.with_changes(func=func, args=[]), arguments)

    def _notification(self, updated: cst.Call, owner: str, member: str) -> cst.Call:
        """A notification of the request's context for a method of its session."""
        low = ".current_context" if self._level(owner) is Level.LOW else ""
        func = cst.parse_expression(f"{owner}{low}.request_context.notify")
        arguments = [cst.Arg(cst.SimpleString(f'"{_SDK.session_notifications[member]}"'))]
        for each in updated.args:
            uri = cst.Call(cst.Name("str"), [cst.Arg(each.value)])
            element = cst.DictElement(cst.SimpleString('"uri"'), uri)
            arguments.append(cst.Arg(cst.Dict([element])))
        return with_arguments(updated.with_changes(func=func, args=[]), arguments)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        name = sdk_name(self, original_node.func)
        level = level_of(name) or self._construction(original_node)
        if level is not None:
            return self._new_server(original_node, updated_node, level)
        command = self._clients.commands.get(id(original_node))
        if command is not None:
            return command
        func = original_node.func
        if isinstance(func, cst.Attribute) and func.attr.value in _SDK.members.media:
            return self._medium(updated_node, func)
        if name is not None:
            return self._call_of_name(original_node, updated_node, name)
        if isinstance(func, cst.Attribute):
            sent = self._session_call(original_node, updated_node)
            if sent is not None:
                return sent
            owner, member = dotted_name(func.value), func.attr.value
            if owner in self._clients.sessions:
                return self._session_of_client(original_node, updated_node, member)
            server, _, last = owner.rpartition(".")
            if last == "middleware" and self._level(server) is not None:
                if member == "append":
                    return updated_node.with_changes(func=cst.parse_expression(owner))
                self._leave(original_node, f"middleware.{member}()", "use server.middleware(f)")
            level = self._level(owner) or self._made_level(func.value)
            if level is Level.LOW:
                return self._low_level_call(original_node, updated_node, member)
            if level is not None:
                return self._server_call(original_node, updated_node, member)
            if self._is_context(owner):
                return self._context_call(original_node, updated_node, member)
        return updated_node

    def _is_medium(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is an image or audio of another SDK."""
        if isinstance(node, cst.Call):
            return is_medium(sdk_name(self, node.func))
        return dotted_name(node) in self._servers.media

    def _medium(self, updated: cst.Call, func: cst.Attribute) -> cst.BaseExpression:
        """An image or audio itself for its content, and an expression for its data URI."""
        name, is_content = dotted_name(func.value), func.attr.value != "to_data_uri"
        if not self._is_medium(func.value) or (not is_content and not name):
            return updated
        if is_content:
            return cst.ensure_type(updated.func, cst.Attribute).value
        self.modules.add("base64")
        data = f"{{base64.b64encode({name}.data).decode()}}"
        return cst.parse_expression(f'f"data:{{{name}.mime_type}};base64,{data}"')

    def _new_server(self, original: cst.Call, updated: cst.Call, level: Level) -> cst.Call:
        arguments: list[cst.Arg] = []
        is_low = level is Level.LOW
        order = ("name", "version", "instructions") if is_low else ("name", "instructions")
        position = 0
        for own, each in changed_arguments(original, updated):
            if each.star or (each.keyword is None and position >= len(order)):
                self._leave(own, "a server's arguments", "name each one by its keyword")
                arguments.append(each)
                continue
            if each.keyword is None:
                keyword = order[position]
                position += 1
                is_same = keyword == "name" or (is_low and keyword == "version")
                arguments.append(each if is_same else keyword_argument(keyword, each.value))
                continue
            keyword = each.keyword.value
            if keyword in _SDK.options.ignored:
                continue
            renamed = alternatives.keyword("Server", keyword)
            request = _SDK.request_of_keyword(keyword) if is_low else None
            if request is not None and id(original) in self._assigned:
                self._handlers.append((request, each.value))
                continue
            if is_low and keyword.startswith("on_"):
                self._leave(
                    own, f"Server({keyword}=)", "use server.request_handler(request)(function)"
                )
            elif keyword == "mask_error_details":
                if not is_name(each.value, "False"):
                    self._leave(own, f"{keyword}=", "remove it, and compatibility=")
                else:
                    continue
            elif keyword == "subscriptions" and is_name(each.value, "False"):
                arguments.append(keyword_argument("list_changed", each.value))
                continue
            elif keyword == "strict_input_validation":
                arguments.append(keyword_argument("coerce", negation_of(each.value)))
                continue
            elif renamed is not None:
                arguments.append(each.with_changes(keyword=cst.Name(renamed)))
                continue
            elif keyword not in _SDK.options.same:
                advice = alternatives.advice_on_keyword("Server", keyword)
                self._leave(own, f"{class_name(original)}({keyword}=)", advice)
            arguments.append(each)
        if is_low:
            arguments = with_identity(arguments, self._identity)
        if not any(each.star or keyword_of(each) in (None, "name") for each in arguments):
            default = "mcp-server" if level is Level.OFFICIAL_2 else "FastMCP"
            arguments.append(cst.Arg(cst.SimpleString(f'"{default}"')))
        dialect = self._dialects.get(level)
        if dialect is not None:
            arguments.append(keyword_argument("compatibility", cst.SimpleString(f'"{dialect}"')))
        return with_arguments(updated, arguments)

    def _call_of_name(self, original: cst.Call, updated: cst.Call, name: str) -> cst.Call:
        own = name.rpartition(".")[2]
        if own == "get_logger" and ".utilities.logging." in name:
            self.modules.add("logging")
            logger = cst.Attribute(cst.Name("logging"), cst.Name("getLogger"))
            return updated.with_changes(func=logger)
        if own in _SDK.members.loggers:
            return self._request_log(original, updated, own)
        if own in ("McpError", "MCPError") and len(original.args) == 1:
            inner = original.args[0].value
            inner_name = None
            if isinstance(inner, cst.Call):
                inner_name = sdk_name(self, inner.func)
            if inner_name is not None and inner_name.endswith(".ErrorData"):
                data = cst.ensure_type(updated.args[0].value, cst.Call)
                return self._protocol_error(updated, data.args)
        if own == "MCPError" and all(each.keyword is not None for each in original.args):
            return self._protocol_error(updated, updated.args)
        message = message_arguments(name, updated)
        if message is not None:
            self.needed.add(Target("", "Message"))
            return with_arguments(updated.with_changes(func=cst.Name("Message")), message)
        if own == "Client" and name.startswith("fastmcp"):
            for each in original.args:
                keyword = keyword_of(each)
                if keyword is not None and keyword != "transport":
                    advice = alternatives.advice_on_keyword("connect", keyword)
                    self._leave(each, f"Client({keyword}=)", advice)
            self.needed.add(Target("", "connect"))
            arguments = [
                each.with_changes(keyword=None, equal=cst.MaybeSentinel.DEFAULT)
                if keyword_of(each) == "transport"
                else each
                for each in updated.args
            ]
            return with_arguments(updated.with_changes(func=cst.Name("connect")), arguments)
        return updated

    def _request_log(self, original: cst.Call, updated: cst.Call, own: str) -> cst.Call:
        """`log_requests` for middleware that logs; an argument without a place here is listed."""
        self.needed.add(Target("", "log_requests"))
        for each, keyword in other_log_arguments(original):
            what = f"{own}({keyword}=)" if keyword else f"{own}'s arguments"
            self._leave(each, what, "log_requests logs no params and no results")
        call = updated.with_changes(func=cst.Name("log_requests"))
        return with_arguments(call, log_arguments(updated))

    def _protocol_error(self, updated: cst.Call, members: Sequence[cst.Arg]) -> cst.Call:
        self.needed.add(Target("", "ProtocolError"))
        message = [each.value for each in members if keyword_of(each) == "message"]
        rest = [each for each in members if keyword_of(each) != "message"]
        text = message[0] if message else cst.SimpleString('""')
        call = updated.with_changes(func=cst.Name("ProtocolError"))
        return with_arguments(call, [cst.Arg(text), *rest])

    def _low_level_call(self, original: cst.Call, updated: cst.Call, member: str) -> cst.Call:
        method = _SDK.requests.get(member)
        if method is not None:
            kept: list[cst.Arg] = []
            for own, each in changed_arguments(original, updated):
                keyword = keyword_of(each)
                if member == "call_tool" and keyword == "validate_input":
                    kept.append(each)
                else:
                    what = f"{member}({keyword}=)" if keyword else f"{member}'s arguments"
                    self._leave(own, what, "remove it")
            func = cst.ensure_type(updated.func, cst.Attribute)
            call = updated.with_changes(func=func.with_changes(attr=cst.Name("request_handler")))
            return with_arguments(call, [cst.Arg(cst.SimpleString(f'"{method}"')), *kept])
        return updated

    def _server_call(self, original: cst.Call, updated: cst.Call, member: str) -> cst.Call:
        kind = {"add_tool": "tool", "add_prompt": "prompt"}.get(member, member)
        if member in _SDK.runs:
            func = cst.ensure_type(updated.func, cst.Attribute)
            call = updated.with_changes(func=func.with_changes(attr=cst.Name("run_async")))
            transport = _SDK.runs[member]
            first = [] if transport == "stdio" else [cst.Arg(cst.SimpleString(f'"{transport}"'))]
            return with_arguments(call, [*first, *self._run_arguments(original, call)])
        if member in ("run", "run_async"):
            return with_arguments(updated, self._run_arguments(original, updated))
        if member == f"add_{kind}" and (made := made_item(self, original, updated)) is not None:
            return self._item(*made, kind)
        if kind in _SDK.items:
            return self._item(original, updated, kind)
        if member in _SDK.members.applications and has_known_options(original):
            func = cst.ensure_type(updated.func, cst.Attribute)
            call = updated.with_changes(func=func.with_changes(attr=cst.Name("asgi")))
            arguments = self._run_arguments(original, call)
            if member == "sse_app":
                arguments.append(keyword_argument("sse_path", cst.SimpleString('"/sse"')))
            return with_arguments(call, arguments)
        advice = alternatives.advice_on_attribute("Server", member)
        is_own = advice is None and dotted_name(original.func).startswith("self.")
        if member not in _SDK.members.server and not is_own:
            self._leave(original, f"{member}()", advice or "see the pages on servers")
        return updated

    def _run_arguments(self, original: cst.Call, updated: cst.Call) -> list[cst.Arg]:
        arguments: list[cst.Arg] = []
        for own, each in changed_arguments(original, updated):
            keyword = keyword_of(each)
            if keyword in ("log_level", "mount_path", "uvicorn_config"):
                continue
            if keyword in (None, "transport", "host", "port", "path"):
                arguments.append(each)
                continue
            if keyword == "show_banner":
                keyword = "banner"
            elif keyword == "stateless_http":
                keyword = "stateless"
            elif not each.star:
                renamed = alternatives.keyword("server.run", keyword)
                if renamed is None:
                    advice = alternatives.advice_on_keyword("server.run", keyword)
                    self._leave(own, f"run({keyword}=)", advice)
                keyword = renamed or keyword
            arguments.append(each if each.star else each.with_changes(keyword=cst.Name(keyword)))
        return arguments

    def _item(self, original: cst.Call, updated: cst.Call, kind: str) -> cst.Call:
        func = cst.ensure_type(updated.func, cst.Attribute)
        keywords = {keyword_of(each) for each in original.args}
        is_function = bool(original.args) and isinstance(original.args[0].value, cst.Name)
        if func.attr.value in ("tool", "prompt") and is_function and {None, "name"} <= keywords:
            method = cst.Name(f"add_{func.attr.value}")
            updated = updated.with_changes(func=func.with_changes(attr=method))
        arguments: list[cst.Arg] = []
        for own, each in changed_arguments(original, updated):
            keyword = keyword_of(each)
            if each.star or keyword is None:
                value = uri_template(each.value) if kind == "resource" else each.value
                arguments.append(each.with_changes(value=value))
                continue
            if keyword == "structured_output":
                if is_name(each.value, "False"):
                    arguments.append(keyword_argument("structured", each.value))
                elif not (is_name(each.value, "True") or is_name(each.value, "None")):
                    advice = alternatives.advice_on_keyword("server.tool", keyword)
                    self._leave(own, f"{kind}({keyword}=)", advice)
                    arguments.append(each)
                continue
            if keyword == "uri" and kind == "resource":
                arguments.append(each.with_changes(value=uri_template(each.value)))
                continue
            renamed = alternatives.keyword(f"server.{kind}", keyword)
            if renamed is not None:
                arguments.append(each.with_changes(keyword=cst.Name(renamed)))
                continue
            if keyword not in _SDK.items[kind]:
                advice = alternatives.advice_on_keyword(f"server.{kind}", keyword)
                self._leave(own, f"{kind}({keyword}=)", advice)
            arguments.append(each)
        return with_arguments(updated, arguments)

    def _context_call(self, original: cst.Call, updated: cst.Call, member: str) -> cst.Call:
        arguments: list[cst.Arg] = []
        for own, each in changed_arguments(original, updated):
            keyword = keyword_of(each)
            if member in _SDK.members.logs and keyword == "logger_name":
                each = each.with_changes(keyword=cst.Name("logger"))
            elif member in _SDK.members.logs and keyword == "message":
                each = each.with_changes(keyword=cst.Name("data"))
            elif member in _SDK.members.logs and keyword == "extra":
                self._leave(own, f"ctx.{member}(extra=)", "send a dict as the message")
            elif member == "elicit" and keyword is not None:
                renamed = alternatives.keyword("ctx.elicit", keyword)
                each = each if renamed is None else each.with_changes(keyword=cst.Name(renamed))
            arguments.append(each)
        if member not in _SDK.members.context:
            advice = alternatives.advice_on_attribute("Context", member)
            if advice is not None:
                self._leave(original, f"ctx.{member}()", advice)
        return with_arguments(updated, arguments)

    # Clients of the official SDK

    def _is_initialization(self, func: cst.BaseExpression) -> bool:
        """Whether a method opens a session, which `connect` does."""
        owner, _, member = dotted_name(func).rpartition(".")
        return member == _SDK.members.opening and owner in self._clients.sessions

    def _session_of_client(
        self, original: cst.Call, updated: cst.Call, member: str
    ) -> cst.BaseExpression:
        func = cst.ensure_type(updated.func, cst.Attribute)
        if member in _SDK.members.pages:
            return updated.with_changes(func=func.with_changes(attr=cst.Name(f"{member}_page")))
        advice = alternatives.advice_on_attribute("Client", member)
        if advice is not None and id(original) not in self._understood:
            self._leave(original, f"session.{member}()", advice)
        for each in original.args:
            keyword = keyword_of(each)
            if keyword in ("read_timeout_seconds", "progress_callback"):
                self._leave(each, f"{member}({keyword}=)", "use timeout= or client.on_progress()")
        return updated

    def _connect_block(self, original: cst.With, updated: cst.With) -> cst.With | None:
        """The block of `connect` for one that opens a session; `None` for another block."""
        connection = self._clients.connections.get(id(original))
        if connection is None:
            return None
        self.needed.add(Target("", "connect"))
        arguments = [cst.Arg(connection.target), *connection.options]
        call = with_arguments(cst.Call(cst.Name("connect")), arguments)
        name = cst.AsName(cst.Name(connection.session))
        body = updated.body
        if connection.body is not original.body:
            body = cst.ensure_type(body.body[0], cst.With).body
        return updated.with_changes(items=[cst.WithItem(call, name)], body=body)

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        body = updated_node.body or [cst.SimpleStatementLine([cst.Pass()])]
        return updated_node.with_changes(body=body)

    # Standard streams of the low level

    def leave_With(
        self, original_node: cst.With, updated_node: cst.With
    ) -> cst.BaseStatement | cst.FlattenSentinel[cst.BaseStatement]:
        connected = self._connect_block(original_node, updated_node)
        if connected is not None:
            return connected
        item = original_node.items[0]
        if len(original_node.items) != 1 or not isinstance(item.item, cst.Call):
            return updated_node
        name = sdk_name(self, item.item.func)
        if name is None or not name.endswith(".stdio_server"):
            return updated_node
        changed = run_without_streams(original_node, updated_node, self._servers)
        if changed is None:
            self._leave(original_node, "stdio_server()", "use await server.run_async()")
            return updated_node
        return changed

    def _leave(self, node: cst.CSTNode, code: str, remedy: str) -> None:
        position = self.get_metadata(PositionProvider, node)
        assert isinstance(position, CodeRange)  # the module is whole
        self.findings.append(Unported(self._path, position.start.line, code, remedy))
