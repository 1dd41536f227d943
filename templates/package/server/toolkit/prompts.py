"""Prompts: functions that write messages for a model.

Arguments are strings on the wire; they are converted to the types of the parameters.

Source: server/prompts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Unpack, overload

from ..._wire import StructType, convert, encode, is_many, is_object, structs_in
from ...errors import InvalidParamsError
from ...foreign_text import safe_repr
from ...runtime.request_context import RequestContext, checked_scopes
from . import signatures
from .content import (
    Icon,
    Message,
    UnfinishedResult,
    content_types,
    field_type,
    is_content,
    is_model,
    present_members,
    struct_with,
    wire_block,
)
from .context import Context
from .dispatcher import Dispatcher
from .output_conversion import known_blocks
from .registry import Registry, Respond, checked_tags
from .server import (
    Function,
    ServerKernel,
    adder,
    check_others,
    split_options,
    wire_members,
)
from .signatures import local_names

if TYPE_CHECKING:
    from ...absence import NoOptions

_NO_ARGUMENTS: Mapping[str, str] = {}
_ROLES = ("user", "assistant")
_JSON_TYPES = frozenset({"array", "object"})


class Prompt:
    """A function that writes messages for a model.

    Args:
        function: See `PromptDecorator.prompt`, also for errors.
        members: Further members of the wire object, such as `title`.
        names: Further names that the annotations may use.
        lists_empty: Whether a prompt without arguments is listed with an empty list of these.

    Attributes:
        arguments: Names of the arguments.
        dependencies: The values that other functions provide for a call, if any.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None,
        members: Mapping[str, Any],
        names: Mapping[str, Any] | None,
        lists_empty: bool = False,
    ) -> None:
        self.scopes: frozenset[str] = frozenset()
        self.tags: frozenset[str] = frozenset()
        self.respond: Respond | None = None
        self.name = name if name is not None else signatures.source_name(function)
        self.label = f"prompt {self.name!r}"
        if not self.name.strip():
            raise ValueError(f"{self.label}: expected a name")
        self._signature = signatures.read(function, self.label, names)
        self.dependencies = self._signature.dependencies
        if self._signature.open:
            raise TypeError(f"{self.label}: expected arguments with names, got **kwargs")
        self.arguments = tuple(self._signature.parameters)
        listed = [_argument(each) for each in self._signature.parameters.values()]
        self._wire = present_members(
            name=self.name,
            arguments=listed if listed or lists_empty else None,
            **{"description": self._signature.description, **members},
        )

    def wire(self, structured_content: str) -> dict[str, Any]:
        """The prompt in `prompts/list`, in its newest form."""
        return self._wire

    async def get(self, arguments: Mapping[str, str] | None, context: Context, result: Any) -> Any:
        """The result of `prompts/get` in the revision's type, or the function's unfinished one.

        Raises:
            InvalidParamsError: The arguments do not fit.
        """
        try:
            bound = self._signature.bind_strings(arguments or _NO_ARGUMENTS, context)
        except ValueError as error:
            raise InvalidParamsError(f"{self.label}: {error}") from error
        value = await self._signature.call(**bound)
        if isinstance(value, UnfinishedResult):
            return value
        description, meta = self._wire.get("description"), None
        if is_model(value, "messages"):
            description, meta = value.description or description, value.meta
            value = value.messages
        items: Sequence[Any] = value if is_many(value) else [value]
        messages = [_message(item, self.label) for item in items]
        return _result(result, messages, description, meta)


class PromptDecorator(ServerKernel):
    """The decorator of prompts; a base of `Server`."""

    def _use_options(self, options: dict[str, Any]) -> None:
        self._dispatcher.add_item_handlers(ITEM_HANDLERS)
        super()._use_options(options)

    @overload
    def prompt(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] | None = (),
        meta: Mapping[str, Any] | None = None,
        scopes: Collection[str] = (),
        tags: Collection[str] | None = (),
        **others: Unpack[NoOptions],
    ) -> Callable[[Function], Function]: ...

    @overload
    def prompt(self, function: Function, /) -> Function: ...

    def prompt(
        self,
        name: str | Callable[..., Any] | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] | None = (),
        meta: Mapping[str, Any] | None = None,
        scopes: Collection[str] = (),
        tags: Collection[str] | None = (),
        **others: Unpack[NoOptions],
    ) -> Any:
        """Register the decorated function as a prompt.

        `@server.prompt` without parentheses is `@server.prompt()`. The function is a coroutine
        function, or a plain one, which runs in a worker thread. It returns text, a content block, a
        `Message`, or a list of these; text and blocks become user messages.

        Args:
            name: Its name; that of the function by default.
            title: A name for display.
            description: The purpose; the docstring's first paragraph by default.
            icons: Images for user interfaces.
            meta: `_meta` of the prompt.
            scopes: Scopes that the prompt needs, besides those of every request.
            tags: Names for `enable` and `disable`; they are not sent.

        Raises:
            TypeError: An option is unknown or malformed; (from the decorator) the signature can't
                be served.
            ValueError: (from the decorator) The name is empty or taken.
        """
        own_name = None if callable(name) else name
        own, rest = split_options(self._dispatcher, "prompt", others)
        check_others(rest, "server.prompt")
        required = checked_scopes(scopes)
        members = own | wire_members(title, description, icons, meta)
        names = local_names(inspect.currentframe())

        def register(function: Function) -> Function:
            describe = self._dispatcher.hooks.describe
            shown = members if describe is None else describe(function, members, tags or ())
            prompt = Prompt(
                function,
                name=own_name,
                members=shown,
                names=names,
                lists_empty=describe is not None,
            )
            prompt.scopes, prompt.tags = required, checked_tags(tags)
            self._dispatcher.registries.prompts.add(prompt.name, prompt)
            return function

        return register(name) if callable(name) else register

    add_prompt = adder(prompt)

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt, also for clients that are connected.

        Raises:
            LookupError: There is no such prompt.
        """
        self._dispatcher.registries.prompts.remove(name)


def _get_prompt(dispatcher: Dispatcher, request: RequestContext) -> Coroutine[Any, Any, Any]:
    params = request.params
    prompts: Registry[Prompt] = dispatcher.registries.prompts
    prompt: Prompt | None = dispatcher.permitted_item(prompts, request, params.name)
    if prompt is None:
        raise InvalidParamsError(f"unknown prompt: {safe_repr(params.name)}")
    if prompt.respond is not None and (response := prompt.respond(request)) is not None:
        return response
    context = dispatcher.context_of(request)
    result = prompt.get(params.arguments, context, request.method.result)
    return dispatcher.result_of(context, result)


ITEM_HANDLERS = {"prompts/get": _get_prompt}
"""Handlers of requests about prompts, by wire name."""


def _argument(parameter: signatures.Parameter) -> dict[str, Any]:
    argument: dict[str, Any] = {"name": parameter.name}
    kinds = parameter.json_types()
    form = ""
    if kinds and kinds <= _JSON_TYPES:  # the schema of a prompt can't say what it is
        form = f"JSON: {encode(parameter.type.schema()).decode()}"
    if parameter.description or form:
        argument["description"] = " ".join(filter(None, (parameter.description, form)))
    argument["required"] = parameter.required
    return argument


def _message(value: Any, label: str) -> dict[str, Any]:
    role: Any = "user"
    content = value
    if isinstance(value, Message) or is_model(value, "role", "content"):
        role, content = value.role, value.content
    elif is_object(value):
        role, content = value.get("role"), value.get("content")
    if role not in _ROLES:
        raise ValueError(f"{label}: role: expected user or assistant, got {role!r}")
    if not isinstance(content, str) and not is_content(content):
        raise TypeError(
            f"{label}: expected text or one block of content, got {type(content).__name__}"
        )
    return {"role": role, "content": wire_block(content)}


@cache
def _result_types(result: Any) -> tuple[StructType, Mapping[str, StructType]]:
    """The type of a result of `prompts/get` in a revision, and its content blocks by `type`."""
    kind = struct_with(result, "messages")
    (message,) = structs_in(field_type(kind, "messages"))
    return kind, content_types(field_type(message, "content"))


def _result(
    result: Any,
    messages: list[dict[str, Any]],
    description: str | None,
    meta: Mapping[str, Any] | None,
) -> Any:
    """A result of `prompts/get` with these messages, each with one content block."""
    kind, blocks = _result_types(result)
    contents = known_blocks([message["content"] for message in messages], blocks)
    members: dict[str, Any] = {
        "messages": [
            {"role": message["role"], "content": content}
            for message, content in zip(messages, contents, strict=True)
        ]
    }
    if description is not None:
        members["description"] = description
    if meta:
        members["_meta"] = dict(meta)
    return convert(members, kind)
