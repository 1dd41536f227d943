"""The server that users write: what it says of itself, and ways to run.

Functions come in by `registrations`; what they answer is in `application`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

from .. import server
from .._wire import to_builtins
from ..channel import Channel
from ..core.lifecycle import Description
from ..core.subscriptions import RESOURCE_UPDATED
from ..exchange import Exchange
from ..extensions import CAPABILITY, check_extensions
from ..facts import Revision
from ..json_schema import VALIDATION_SECONDS
from ..peer import CONCURRENT_REQUESTS, check_concurrent_requests
from ..revisions import REVISIONS
from .application import Settings, Toolkit
from .asking.means import Means, StateKey
from .caching import Cacheable, CacheHint, hints_of
from .content import Icon, present
from .mounts import Handlers, Mounts
from .registrations import Registrations

if TYPE_CHECKING:
    from ..asgi.app import Application
    from ..asgi.settings import HttpOptions

Lifespan: TypeAlias = Callable[["Server"], AbstractAsyncContextManager[Any]]

importing: ContextVar[bool] = ContextVar("importing", default=False)
"""Whether a module is only imported for its server, which others will run."""


class RunWhileImportedError(RuntimeError):
    """A module runs its server while it is only imported for it."""


class Server(Registrations):
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
        lifespan: Makes a context manager that is entered for each client served, over HTTP once
            for all of them; what it yields is `Context.state`.
        handlers: Rendered `ServerHandlers`, one per revision; what they have wins. States that they
            give to clients are not signed by `state_key`.
        capabilities: More to declare, such as `{"experimental": {...}}`.
        cache: How long clients may keep lists and the account of the server: one hint for all, or
            one for each of `tools`, `prompts`, `resources`, `templates` and `discover`.
        state_key: Signs the states that requests get back with their answers: one secret of at
            least 16 bytes, or several, of which the first signs and all verify. By default each
            process makes one up: then no other worker can serve a retry, nor this one once it was
            restarted. With more than one process, set it.
        state_seconds: How long the client may take for its answers.
        drain: Seconds that requests being served may still take once a client is gone.
        validation_seconds: How long the arguments of a tool, and then its result, may be held
            against a JSON Schema that was given for them. Other calls go on meanwhile.
        max_concurrent_requests: Handlers that one client may have waiting at a time, over standard
            streams and channels of one's own; over HTTP `Limits` say it. At the limit nothing more
            is read until one has ended; requests that come while a handler waits for the client's
            own answers are refused.

    Raises:
        ValueError: No name, a page size or a limit below one, a short key, no time, or no proper
            extension.
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
        cache: CacheHint | Mapping[Cacheable, CacheHint] | None = None,
        state_key: StateKey | None = None,
        state_seconds: float = 1800.0,
        drain: float = 5.0,
        validation_seconds: float = VALIDATION_SECONDS,
        max_concurrent_requests: int = CONCURRENT_REQUESTS,
    ) -> None:
        check_concurrent_requests(max_concurrent_requests)
        if capabilities and CAPABILITY in capabilities:
            check_extensions(capabilities, REVISIONS.newest().facts)
        self._lifespan = lifespan
        self._drain = drain
        self._max_concurrent_requests = max_concurrent_requests
        self._sessions = server.Sessions()
        settings = Settings(
            info=present(
                name=name,
                title=title,
                version=version,
                description=description,
                websiteUrl=website_url,
                icons=[to_builtins(icon) for icon in icons] or None,
            ),
            instructions=instructions,
            page_size=page_size,
            list_changed=list_changed,
            subscribe=subscribe,
            logging=logging,
            show_errors=show_errors,
            capabilities=dict(capabilities or {}),
            mounts=Mounts(handlers),
            means=Means(name, state_key, state_seconds),
            cache=hints_of(cache),
            validation_seconds=validation_seconds,
        )
        super().__init__(Toolkit(settings, self._sessions.announce))
        self.handle = self._toolkit.handle
        """Answer a request (see `Toolkit.handle`)."""

    def __repr__(self) -> str:
        open_now = len(self._sessions)
        clients = f"{open_now} client{'' if open_now == 1 else 's'}"
        return f"<{type(self).__name__} {self.name} {self.info['version']}, {clients}>"

    @property
    def name(self) -> str:
        """Its name, for programs."""
        name: str = self.info["name"]
        return name

    @property
    def info(self) -> Mapping[str, Any]:
        """How it introduces itself, as wire object."""
        return self._toolkit.settings.info

    @property
    def instructions(self) -> str | None:
        """How to use it, for the model."""
        return self._toolkit.settings.instructions

    def resource_updated(self, uri: str) -> None:
        """Tell the clients that subscribed to a resource that it changed.

        Works from any thread and does not wait for the sending.

        Raises:
            ValueError: The server was made without `subscribe=True`.
        """
        if not self._toolkit.settings.subscribe:
            raise ValueError("expected a server made with subscribe=True")
        self._sessions.announce(RESOURCE_UPDATED, {"uri": uri})

    async def elicitation_complete(self, elicitation_id: str) -> bool:
        """Tell the client whose user was sent to a web page that all is done there.

        Runs in the event loop that serves the client.

        Returns:
            Whether that was still to be done. In revisions without such ids nothing ever is.

        Source: client/elicitation#completion-notifications-for-url-mode-elicitation (2025-11-25).
        """
        return await self._toolkit.settings.means.elicitations.complete(elicitation_id)

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
        await server.serve(self._service(), channel)

    def asgi(self, path: str = "/mcp", **options: Unpack[HttpOptions]) -> Application:
        """The server as an ASGI application, to be run alone or mounted in another.

        Args:
            path: Path of the endpoint, below where the application is mounted.
            options: See `HttpSettings`.

        Raises:
            ValueError: An option means nothing.
        """
        from ..asgi.app import Application  # what serves standard streams need not load it
        from ..asgi.settings import HttpSettings

        return Application(self._service(), HttpSettings(path=path, **options))

    def run(
        self,
        *,
        http: str | None = None,
        path: str = "/mcp",
        backend: server.Backend = "asyncio",
        **options: Unpack[HttpOptions],
    ) -> None:
        """Serve the client at standard input and output until it is gone, or many over HTTP.

        SIGINT and SIGTERM end it too. With standard streams, prints go to standard error meanwhile.

        Args:
            http: Address to serve at, such as `127.0.0.1:8000`; `None` for standard streams.
                Without a host it is loopback's, and port 0 is any free one.
            path: Path of the endpoint.
            backend: The event loop for standard streams; trio has to be installed to be used.
            options: See `HttpSettings`.

        Raises:
            MissingExtraError: uvicorn is not installed, which HTTP needs.
            ValueError: `http` is no address, or there is no such backend for it.
            ListenFailedError: The address can't be listened at.
            RunWhileImportedError: The module is being imported by `python -m <package> serve`.
        """
        if importing.get():
            raise RunWhileImportedError("put run() under `if __name__ == '__main__':`")
        if http is None:
            server.run_stdio(self.serve, backend)
        elif backend != "asyncio":
            raise ValueError(
                f"backend: uvicorn runs on asyncio, not on {backend}; another ASGI server may run "
                "what asgi() returns"
            )
        else:
            from ..asgi.running import run  # what serves standard streams need not load it

            run(self.asgi(path, **options), http, self._drain)

    def _service(self) -> server.Service:
        kit = self._toolkit
        lifespan = self._lifespan
        return server.Service(
            application=self,
            revisions=REVISIONS,
            describe=self.describe,
            extensions=kit.custom,
            sessions=self._sessions,
            drain=self._drain,
            lifespan=nullcontext if lifespan is None else partial(lifespan, self),
            use_state=kit.state.set,
            max_concurrent_requests=self._max_concurrent_requests,
            marks_of=kit.marks_of,
        )
