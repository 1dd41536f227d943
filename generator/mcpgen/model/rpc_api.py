"""The typed API of the messages: methods that send a message, and handlers that receive one.

The API of one revision has the types of that revision. The API of several revisions has, for each
message, the arguments of all revisions and the union of their types.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from mcpgen import names
from mcpgen.json_types import Node
from mcpgen.model.core_names import core_names
from mcpgen.model.docstrings import Texts, arguments, docstring
from mcpgen.model.methods import Method, Methods
from mcpgen.model.normalized import ANY_MAP, Definition, NormalizedSchema, reference
from mcpgen.model.schema_queries import META
from mcpgen.model.type_hints import GIVEN, Containers, annotation, union
from mcpgen.model.unions import holds_object, member_names

CURSOR = "cursor"
WHOLE = "*"
"""The field of an argument that is the params as a whole."""
_ANSWER_TO = {"inputResponses": "inputRequests", "requestState": "inputRequests", "task": "task"}
"""Params without an argument, and the member of a result that requests each."""
_TAKEN = (
    *("fields", "in_thread", "meta", "on_progress", "read", "result", "returns", "self"),
    "timeout",
)
"""Names that the rendered methods use themselves."""
_RETURNS = (
    "returns",
    "A type: the call then returns the tool's value as this type, or raises ToolResultError.",
)
_INDENT = 8


@dataclass(frozen=True)
class Argument:
    """One member of the params, as an argument.

    Attributes:
        name: Its name.
        field: Python name of the member; `WHOLE` for all of them.
        type: Its type, without the mark of an optional one; an object may be given as a wire
            object too.
        required: Whether it must be given.
        nullable: Whether null is a value of it, so that absence is UNSET and not `None`.
        doc: Its meaning; may be empty.
        positional: Whether it may be given by position, and not by keyword alone.
    """

    name: str
    field: str
    type: str
    required: bool
    nullable: bool
    doc: str
    positional: bool = False


@dataclass(frozen=True)
class StubMethod:
    """One method of a client that sends a request.

    Attributes:
        python_name: Its name.
        arguments: The params one by one.
        returns: Type of the result.
        doc: Its docstring, quotes included.
        all_pages: Whether the method follows the pages of a list, and returns all items.
        typed: Whether it returns the value of the result as a type that the caller passes.
    """

    python_name: str
    arguments: tuple[Argument, ...]
    returns: str
    doc: str
    all_pages: bool = False
    typed: bool = False


@dataclass(frozen=True)
class Call:
    """One message, as a method and as a handler.

    Attributes:
        name: The wire's name.
        python_name: The coroutine's name.
        doc: Its docstring, quotes included, like the next two.
        page_doc: The docstring of the coroutine that gets one page.
        handler_doc: The docstring of the handler.
        params: Type of the params for handlers; includes `None` if they are optional.
        arguments: The params one by one; the params as a whole where they are of several kinds.
        whole: Whether `arguments` is the params as a whole.
        result: Type of the result.
        answer: Type of the result, without results for params that the method lacks.
        item: Type of the items of a paginated list.
        values: Definitions of tool results, which have a value.
        by_page: Whether a paginated list can be read page by page.
        summary, source: Parts of the docstring.
    """

    name: str
    python_name: str
    doc: str
    page_doc: str
    handler_doc: str
    params: str
    arguments: tuple[Argument, ...]
    whole: bool
    result: str
    answer: str
    item: str | None
    values: tuple[str, ...]
    summary: str
    source: str
    by_page: bool = True

    @property
    def return_type(self) -> str:
        """The return type of a handler: the result, or a wire object."""
        return union([self.result, annotation(ANY_MAP, GIVEN)])

    @property
    def methods(self) -> tuple[StubMethod, ...]:
        """The methods of a client for a request: one, or two for a list with pages."""
        if self.item is None:
            typed = bool(self.values)
            call = StubMethod(self.python_name, self.arguments, self.answer, self.doc, typed=typed)
            return (call,)
        page = f"{self.python_name}_page"
        items = f"list[{self.item}]"
        every = StubMethod(self.python_name, self.filters, items, self.doc, all_pages=True)
        one = StubMethod(page, self.arguments, self.answer, self.page_doc)
        return (every, one) if self.by_page else (every,)

    @property
    def filters(self) -> tuple[Argument, ...]:
        """The arguments of a list request that apply to all pages."""
        return tuple(argument for argument in self.arguments if argument.name != CURSOR)


@dataclass(frozen=True)
class Messages:
    """The requests and notifications that one side sends or receives."""

    requests: tuple[Call, ...]
    notifications: tuple[Call, ...]


@dataclass(frozen=True)
class RpcApi:
    """The API of one revision, or of several.

    Attributes:
        client: Messages of a client; a server has a handler for each.
        calls: Messages that an open client has a method for.
        group: Messages that a client of several servers sends too, with lists as a whole.
        server: Messages of a server.
        handled: Messages that a client has a handler for, including requests inside results.
    """

    client: Messages
    calls: Messages
    group: Messages
    server: Messages
    handled: Messages


def derive(
    types: NormalizedSchema, methods: Methods, texts: Texts, core: frozenset[str] = frozenset()
) -> RpcApi:
    """The API of one revision, or of an extension beside the `core` definitions of its revision."""
    maker = _Maker(types, texts, replace(GIVEN, core=core))

    def messages(*groups: Iterable[Method], notifications: Iterable[Method]) -> Messages:
        requests = {m.python_name: maker.call(m) for group in groups for m in group}
        return Messages(tuple(requests.values()), tuple(maker.call(m) for m in notifications))

    from_server = methods.of("server", "notification")
    from_client = methods.of("client", "notification")
    asking = methods.of("server", "request")
    of_client = messages(methods.of("client", "request"), notifications=from_client)
    return RpcApi(
        client=of_client,
        calls=_user_messages(of_client),
        group=_for_groups(of_client, {m.name for m in methods.all if m.for_groups}),
        server=messages(asking, notifications=from_server),
        handled=messages(asking, methods.inputs, notifications=from_server),
    )


def merge(apis: Mapping[str, RpcApi]) -> RpcApi:
    """The API of several revisions, given oldest first."""
    return RpcApi(
        client=_merge_messages({name: each.client for name, each in apis.items()}),
        calls=_merge_messages({name: each.calls for name, each in apis.items()}),
        group=_merge_messages({name: each.group for name, each in apis.items()}),
        server=_merge_messages({name: each.server for name, each in apis.items()}),
        handled=_merge_messages({name: each.handled for name, each in apis.items()}),
    )


def _user_messages(sent: Messages) -> Messages:
    """The messages of a client, except those that it sends by itself."""
    own = core_names().by_itself
    return Messages(
        tuple(call for call in sent.requests if call.name not in own),
        tuple(call for call in sent.notifications if call.name not in own),
    )


def _for_groups(sent: Messages, methods: Set[str]) -> Messages:
    """The messages of a client that a client of several servers sends too."""
    return Messages(
        tuple(
            replace(call, by_page=False)
            for call in sent.requests
            if call.name in methods and not call.whole
        ),
        tuple(call for call in sent.notifications if call.name in methods),
    )


class _Maker:
    def __init__(self, normal: NormalizedSchema, texts: Texts, types: Containers) -> None:
        self.normal = normal
        self.texts = texts
        self.types = types

    def call(self, method: Method) -> Call:
        message = self.normal.definitions[method.type]
        params = self.normal.definition(method.params)
        parts = self._parts(params, method)
        whole = params is not None and not parts
        each = [self._arguments(part, method) for part in parts]
        arguments = self._whole(params) if params and whole else _merge_arguments(each)
        result = union(map(self.types.type_named, method.results)) or "None"
        answers = self._answers(method)
        answer = union(map(self.types.type_named, answers)) or "None"
        typed = method.runs_tool and not whole and not self.types.core
        return _add_docstrings(
            Call(
                name=method.name,
                python_name=method.python_name,
                doc="",
                page_doc="",
                handler_doc="",
                params=self._params(method),
                arguments=arguments,
                whole=whole,
                result=result,
                answer=answer,
                item=self.types.type_named(method.item) if method.item and not whole else None,
                values=tuple(answers) if typed else (),
                summary=self.texts.summary(message),
                source=self.texts.source(message),
            ),
            (),
        )

    def _params(self, method: Method) -> str:
        if method.params is None:
            return "None"
        return self.types.type_named(method.params) + ("" if method.params_required else " | None")

    def _parts(self, params: Definition | None, method: Method) -> Sequence[Definition]:
        """The objects that params may be, if each has what is positional; empty for none."""
        if params is None or params.is_object:
            return [params] if params is not None else ()
        parts = [self.normal.definition(name) for name in member_names(self.normal, params)]
        wanted = {*method.positional}
        fit = [each for each in parts if each is not None and wanted <= each.properties.keys()]
        return fit if wanted and len(fit) == len(parts) else ()

    def _whole(self, params: Definition) -> tuple[Argument, ...]:
        kind = annotation(_with_wire(self.normal, reference(params.name)), self.types)
        doc = self.texts.summary(params)
        return (Argument("params", WHOLE, kind, True, False, doc, positional=True),)

    def _arguments(self, params: Definition, method: Method) -> tuple[Argument, ...]:
        """The params one by one, those that are taken by position first."""
        left_out = {META, *self._omitted_params(method)}
        python = names.members(params.properties)
        free = names.members((*_TAKEN, *python.values()))
        members = [
            Argument(
                name=free[python[wire]],
                field=python[wire],
                type=annotation(_with_wire(self.normal, node), self.types),
                required=wire in params.required,
                nullable=self.normal.allows_null(node),
                doc=self.texts.member(params, wire),
            )
            for wire, node in params.properties.items()
            if wire not in left_out
        ]
        return _order(members, [free[python[w]] for w in method.positional if w in python])

    def _answers(self, method: Method) -> list[str]:
        """The results that are possible without the omitted params."""
        left_out = {_ANSWER_TO[wire] for wire in self._omitted_params(method)}
        return [name for name in method.results if left_out.isdisjoint(self._properties(name))]

    def _omitted_params(self, method: Method) -> list[str]:
        """Params without an argument.

        The client itself answers requests for input, and a `task` changes the type of the result.
        """
        answers = {wire for name in method.results for wire in self._properties(name)}
        if method.params is None:
            return []
        params = self._properties(method.params)
        return [wire for wire, answer in _ANSWER_TO.items() if answer in answers and wire in params]

    def _properties(self, name: str) -> Mapping[str, Node]:
        return self.normal.definitions[name].properties


def _with_wire(normal: NormalizedSchema, node: Node) -> Node:
    """A schema that allows wire objects in place of objects."""
    if "anyOf" in node:
        return {"anyOf": [_with_wire(normal, part) for part in node["anyOf"]]}
    if "$ref" in node:
        return {"anyOf": [node, ANY_MAP]} if holds_object(normal, node) else node
    if node.get("type") == "array":
        return {**node, "items": _with_wire(normal, node["items"])}
    return node


def _add_docstrings(call: Call, revisions: Sequence[str]) -> Call:
    """A call with docstrings."""
    every_argument = [(a.name, a.doc) for a in call.arguments]
    every_argument += [_RETURNS] if call.values else []
    own = [(a.name, a.doc) for a in call.filters] if call.item else every_argument
    only = f"Only in {', '.join(revisions)}." if revisions else ""
    paged = len(own) < len(every_argument)
    every = "Follows the pages to the last, and returns the items of all." if paged else ""
    return replace(
        call,
        doc=docstring([call.summary, every, only, arguments(own), call.source], _INDENT),
        page_doc=docstring([call.summary, only, arguments(every_argument), call.source], _INDENT),
        handler_doc=docstring([call.summary, only, call.source], _INDENT),
    )


def without_values(api: RpcApi) -> RpcApi:
    """The API of one revision whose methods do not take a type for the values of tools."""

    def plain(messages: Messages) -> Messages:
        calls = (
            _add_docstrings(replace(call, values=()), ()) if call.values else call
            for call in messages.requests
        )
        return replace(messages, requests=tuple(calls))

    return replace(api, calls=plain(api.calls), group=plain(api.group))


def _merge_messages(apis: Mapping[str, Messages]) -> Messages:
    return Messages(
        requests=_merge_calls({name: api.requests for name, api in apis.items()}),
        notifications=_merge_calls({name: api.notifications for name, api in apis.items()}),
    )


def _merge_calls(groups: Mapping[str, Sequence[Call]]) -> tuple[Call, ...]:
    by_name: dict[str, dict[str, Call]] = {}
    for revision, calls in reversed(
        list(groups.items())
    ):  # the newest revision gives the order and the texts
        for call in calls:
            by_name.setdefault(call.python_name, {})[revision] = call
    return tuple(
        _merge_call(list(group.values()), sorted(group) if len(group) < len(groups) else ())
        for group in by_name.values()
    )


def _merge_call(calls: Sequence[Call], revisions: Sequence[str]) -> Call:
    newest = calls[0]
    whole = next((call for call in calls if call.whole), None)
    items = [call.item for call in calls if call.item]
    merged = replace(
        newest,
        params=union(call.params for call in calls),
        arguments=whole.arguments if whole else _merge_arguments([c.arguments for c in calls]),
        whole=whole is not None,
        result=union(call.result for call in calls),
        answer=union(call.answer for call in calls),
        item=union(items) if items and not whole else None,
        values=tuple(dict.fromkeys(name for call in calls for name in call.values)),
    )
    return _add_docstrings(merged, revisions)


def _merge_arguments(groups: Sequence[Sequence[Argument]]) -> tuple[Argument, ...]:
    by_name: dict[str, list[Argument]] = {}
    for group in groups:
        for argument in group:
            by_name.setdefault(argument.name, []).append(argument)
    merged = [
        replace(
            same[0],
            type=union(argument.type for argument in same),
            required=len(same) == len(groups) and all(argument.required for argument in same),
            nullable=any(argument.nullable for argument in same),
        )
        for same in by_name.values()
    ]
    positional = [a.name for group in groups for a in group if a.positional]
    return _order(merged, list(dict.fromkeys(positional)))


def _order(arguments: Sequence[Argument], positional: Sequence[str]) -> tuple[Argument, ...]:
    """Arguments with those first that are taken by position, then the required ones.

    A required argument after an optional one is taken by keyword, and so are all after it.
    """
    by_name = {argument.name: argument for argument in arguments}
    first: list[Argument] = []
    for argument in (by_name[name] for name in positional if name in by_name):
        if argument.required and first and not first[-1].required:
            break
        first.append(replace(argument, positional=True))
    taken = {argument.name for argument in first}
    others = (replace(a, positional=False) for a in arguments if a.name not in taken)
    return (*first, *sorted(others, key=lambda argument: not argument.required))
