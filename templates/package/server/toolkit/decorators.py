"""Decorators by which functions become what a server offers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ...protocol.capabilities import CAPABILITY, check_extensions
from ...revisions import REVISIONS
from .cache_hints import NO_PROMISE, CacheHint
from .content import Annotations, Icon, ToolAnnotations
from .dispatcher import Toolkit
from .tools import FROM_SIGNATURE, FromSignature, Tool

Function = TypeVar("Function", bound=Callable[..., Any])


class Decorators:
    """What registers functions, and takes them away again. A `Server` is one.

    Args:
        toolkit: Keeps what is registered.
    """

    def __init__(self, toolkit: Toolkit) -> None:
        self._toolkit = toolkit

    def tool(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        annotations: ToolAnnotations | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Any] | None = None,
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | FromSignature | None = FROM_SIGNATURE,
    ) -> Callable[[Function], Function]:
        """Register the decorated function as a tool; see `Tool` for the arguments.

        Raises:
            TypeError: (from the decorator) The signature can't be served.
            ValueError: (from the decorator) Name or schema are not usable, or the name is taken.
        """
        _check_called(name, "tool")
        names = _names_at_caller()

        def register(function: Function) -> Function:
            tool = Tool(
                function,
                name=name,
                title=title,
                description=description,
                annotations=annotations,
                icons=icons,
                meta=meta,
                input_schema=input_schema,
                output_schema=output_schema,
                names=names,
                validation_seconds=self._toolkit.settings.validation_seconds,
            )
            self._toolkit.tools.add(tool.name, tool)
            return function

        return register

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        annotations: Annotations | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Any] | None = None,
        cache: CacheHint = NO_PROMISE,
    ) -> Callable[[Function], Function]:
        """Register the decorated function as a resource or, with a `{`, as a template of them.

        See `Resource` for the arguments.

        Raises:
            TypeError: (from the decorator) The function does not take the template's variables.
            ValueError: (from the decorator) Not a URI or template, or it is taken.
            MissingExtraError: (from the decorator) A template, and `uritemplate` is missing.
        """
        from .resources import Resource  # what a server has none of is not loaded

        _check_called(uri, "resource")
        names = _names_at_caller()

        def register(function: Function) -> Function:
            resource = Resource(
                function,
                uri,
                name=name,
                title=title,
                description=description,
                mime_type=mime_type,
                size=size,
                annotations=annotations,
                icons=icons,
                meta=meta,
                cache=cache,
                names=names,
            )
            kit = self._toolkit
            listing = kit.resources if resource.template is None else kit.templates
            listing.add(uri, resource)
            return function

        return register

    def prompt(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, Any] | None = None,
    ) -> Callable[[Function], Function]:
        """Register the decorated function as a prompt; see `Prompt` for the arguments.

        Raises:
            TypeError: (from the decorator) The signature can't be served.
            ValueError: (from the decorator) The name is empty or taken.
        """
        from .prompts import Prompt  # what a server has none of is not loaded

        _check_called(name, "prompt")
        names = _names_at_caller()

        def register(function: Function) -> Function:
            prompt = Prompt(
                function,
                name=name,
                title=title,
                description=description,
                icons=icons,
                meta=meta,
                names=names,
            )
            self._toolkit.prompts.add(prompt.name, prompt)
            return function

        return register

    def completion(
        self, *, argument: str, prompt: str | None = None, template: str | None = None
    ) -> Callable[[Function], Function]:
        """Register the decorated function as what suggests values for an argument.

        Args:
            argument: Name of the argument or variable.
            prompt: Name of the prompt it belongs to.
            template: Or the URI template.

        Raises:
            ValueError: Not exactly one of prompt and template, or there is a completion already.
        """
        from .completion import Completer  # what a server has none of is not loaded

        if (prompt is None) == (template is None):
            raise ValueError("completion: expected either prompt or template")
        kind, owner = ("prompt", prompt) if prompt is not None else ("template", template)
        names = _names_at_caller()

        def register(function: Function) -> Function:
            label = f"completion of {kind} {owner!r}, argument {argument!r}"
            completer = Completer(function, label, names)
            self._toolkit.add_completer((kind, str(owner), argument), completer)
            return function

        return register

    def method(
        self,
        name: str,
        *,
        params: Any = None,
        result: Any = None,
        extension: str | None = None,
    ) -> Callable[[Function], Function]:
        """Register the decorated function for a request of your own; see `CustomMethod`.

        Args:
            name: The method on the wire.
            params: Type of the params, such as a `msgspec.Struct`; `None` for a method without.
            result: Type of the result; `None` for an empty one.
            extension: Identifier of the extension that it belongs to, which is declared then; it
                exists for clients that declare it too.

        Raises:
            TypeError: (from the decorator) The function takes something else.
            ValueError: The identifier is no proper one; (from the decorator) the name is not free.
        """
        from .custom_methods import CustomMethod  # what a server has none of is not loaded

        names = _names_at_caller()
        if extension is not None:
            check_extensions({CAPABILITY: {extension: {}}}, REVISIONS.newest().facts)

        def register(function: Function) -> Function:
            taken = {name for known in REVISIONS.values() for name in known.client_requests}
            method = CustomMethod(function, name, params, result, taken, extension, names)
            self._toolkit.add_method(method)
            return function

        return register

    def remove_tool(self, name: str) -> None:
        """Take a tool away, also from clients that are connected.

        Raises:
            LookupError: There is no such tool.
        """
        self._toolkit.tools.remove(name)

    def remove_resource(self, uri: str) -> None:
        """Take a resource or a template away, also from clients that are connected.

        Raises:
            LookupError: There is no such resource.
        """
        kit = self._toolkit
        (kit.templates if kit.templates.get(uri) is not None else kit.resources).remove(uri)

    def remove_prompt(self, name: str) -> None:
        """Take a prompt away, also from clients that are connected.

        Raises:
            LookupError: There is no such prompt.
        """
        self._toolkit.prompts.remove(name)


def _check_called(first: object, decorator: str) -> None:
    """Say so when a decorator was used without its parentheses."""
    if callable(first):
        raise TypeError(f"expected @server.{decorator}(...), got @server.{decorator}")


def _names_at_caller() -> Mapping[str, Any] | None:
    """The local names where a decorator is used; annotations as text may mean one of them."""
    frame = inspect.currentframe()
    caller = frame.f_back.f_back if frame is not None and frame.f_back is not None else None
    if caller is None or caller.f_locals is caller.f_globals:
        return None
    return dict(caller.f_locals)
