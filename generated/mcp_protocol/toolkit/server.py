"""The server that users write: decorators that register, and ways to run.

What the registrations answer is in `application`; here is how they come in and how it starts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, TypeAlias, TypeVar

from .. import server
from .._wire import to_builtins
from ..channel import Channel
from ..core.lifecycle import Description
from ..exchange import Exchange
from ..facts import Revision
from ..revisions import REVISIONS
from .application import RESOURCE_UPDATED, Settings, Toolkit
from .content import Annotations, Icon, ToolAnnotations
from .mounts import Handlers, Mounts
from .tools import FROM_SIGNATURE, FromSignature, Tool

Function = TypeVar("Function", bound=Callable[..., Any])
Lifespan: TypeAlias = Callable[["Server"], AbstractAsyncContextManager[Any]]


class Server:
    """An MCP server.

    Args:
        name: Its name, for programs.
        version: Its version.
        title: Its name, for people.
        description: What it is.
        website_url: Where to read more.
        icons: Images for user interfaces.
        instructions: How to use it, for the model.
        page_size: Most items in one answer to a list request; `None` for all.
        list_changed: Whether clients are told when tools, resources or prompts change.
        subscribe: Whether clients may subscribe to resources (see `resource_updated`).
        logging: Whether `Context.log` and its like send anything.
        show_errors: Whether the text of a tool's unexpected exception reaches the client; by
            default it goes to the log alone. A `ToolError`'s always does.
        lifespan: Makes a context manager that is entered for each client served; what it yields
            is `Context.state`.
        handlers: Rendered `ServerHandlers`, one per revision; what they have wins.
        capabilities: More to declare, such as `{"experimental": {...}}`.
        drain: Seconds that requests being served may still take once a client is gone.

    Raises:
        ValueError: No name, or a page size below one.
    """

    def __init__(
        self,
        name: str,
        version: str = "0",
        *,
        title: str | None = None,
        description: str | None = None,
        website_url: str | None = None,
        icons: Sequence[Icon] = (),
        instructions: str | None = None,
        page_size: int | None = None,
        list_changed: bool = True,
        subscribe: bool = False,
        logging: bool = True,
        show_errors: bool = False,
        lifespan: Lifespan | None = None,
        handlers: Sequence[Handlers] = (),
        capabilities: Mapping[str, Any] | None = None,
        drain: float = 5.0,
    ) -> None:
        self.name = name
        self.info = _present(
            name=name,
            title=title,
            version=version,
            description=description,
            websiteUrl=website_url,
            icons=[to_builtins(icon) for icon in icons] or None,
        )
        self.instructions = instructions
        self._lifespan = lifespan
        self._drain = drain
        self._subscribe = subscribe
        self._sessions = server.Sessions()
        settings = Settings(
            info=self.info,
            instructions=instructions,
            page_size=page_size,
            list_changed=list_changed,
            subscribe=subscribe,
            logging=logging,
            show_errors=show_errors,
            capabilities=dict(capabilities or {}),
            mounts=Mounts(handlers),
        )
        self._toolkit = Toolkit(settings, self._sessions.announce)
        self.handle = self._toolkit.handle
        """Answer a request (see `Toolkit.handle`)."""

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
        self, name: str, *, params: Any = None, result: Any = None
    ) -> Callable[[Function], Function]:
        """Register the decorated function for a request of your own; see `CustomMethod`.

        Args:
            name: The method on the wire.
            params: Type of the params, such as a `msgspec.Struct`; `None` for a method without.
            result: Type of the result; `None` for an empty one.

        Raises:
            TypeError: (from the decorator) The function takes something else.
            ValueError: (from the decorator) The name is not free.
        """
        from .custom import CustomMethod  # what a server has none of is not loaded

        names = _names_at_caller()

        def register(function: Function) -> Function:
            taken = {name for known in REVISIONS.values() for name in known.client_requests}
            self._toolkit.add_method(CustomMethod(function, name, params, result, taken, names))
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

    def resource_updated(self, uri: str) -> None:
        """Tell the clients that subscribed to a resource that it changed.

        Works from any thread and does not wait for the sending.

        Raises:
            ValueError: The server was made without `subscribe=True`.
        """
        if not self._subscribe:
            raise ValueError("expected a server made with subscribe=True")
        self._sessions.announce(RESOURCE_UPDATED, {"uri": uri})

    def capabilities(self, revision: Revision) -> Mapping[str, Any]:
        """What the server declares in a revision, as wire object."""
        return self.describe(revision).capabilities

    def describe(self, revision: Revision) -> Description:
        """The server's account of itself in a revision."""
        return self._toolkit.describe(revision)

    async def notified(self, exchange: Exchange) -> None:
        """Take note of a notification."""
        await self._toolkit.notified(exchange)

    async def serve(self, channel: Channel) -> None:
        """Serve one client over any channel until it is gone. Clients may be served side by side.

        Raises:
            Exception: Whatever the lifespan raised.
        """
        async with self._lifespan(self) if self._lifespan else nullcontext() as state:
            self._toolkit.state.set(state)
            await server.serve(
                self,
                channel,
                revisions=REVISIONS,
                describe=self.describe,
                extensions=self._toolkit.custom,
                sessions=self._sessions,
                drain=self._drain,
            )

    def run(self, *, backend: server.Backend = "asyncio") -> None:
        """Serve the client at standard input and output until it is gone.

        SIGINT and SIGTERM end it too. Prints go to standard error meanwhile.

        Args:
            backend: The event loop to run on; trio has to be installed to be used.
        """
        server.run_stdio(self.serve, backend)


def _present(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


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
