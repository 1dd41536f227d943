"""Serving clients: what the hosting over standard streams and over HTTP has in common.

Standard error shows what is served, where, and how to connect: a banner on a terminal. Standard
output belongs to the protocol.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from ...channel import Channel
from ...facts import Revisions
from .. import serving
from .dispatcher import Dispatcher

if TYPE_CHECKING:
    from ...protocol.handshake import HandshakeConnection

Transport: TypeAlias = Literal["stdio", "http", "streamable-http"]
"""A transport of `Server.run`; `streamable-http` is another name of `http`."""

importing: ContextVar[bool] = ContextVar("importing", default=False)
"""Whether a module is being imported for its server, which the importer runs."""

_KINDS: tuple[str, ...] = ("tool", "resource", "resource template", "prompt")


class RunWhileImportedError(RuntimeError):
    """A module calls `run` while it is imported by `python -m <package> serve`."""


class Hosting:
    """The base of the classes that serve and run; a base of `Server`."""

    revisions: Revisions
    _new_connection: ClassVar[staticmethod[[serving.Service], HandshakeConnection]]
    _dispatcher: Dispatcher
    _announcer: serving.Announcer
    _drain: float
    _max_concurrent_requests: int

    @property
    def name(self) -> str:
        """Name of the server, for programs."""
        return self._dispatcher.name

    @property
    def info(self) -> Mapping[str, Any]:
        """Name, version and further members of `Implementation`, as wire object."""
        return self._dispatcher.settings.info

    async def serve(self, channel: Channel) -> None:
        """Serve one client over a channel until it disconnects. Calls may run concurrently.

        Raises:
            Exception: The lifespan raised it.
        """
        self._dispatcher.is_served = True
        await serving.serve(self._service(), channel)

    def _service(self) -> serving.Service:
        """The service; features override it to add what they need."""
        dispatcher = self._dispatcher
        servers = dispatcher.all_servers()
        admits, keys = (each.admit for each in servers), dispatcher.hooks.keys
        return serving.Service(
            application=dispatcher.application,
            revisions=self.revisions,
            describe=dispatcher.describe,
            new_connection=self._new_connection,
            extensions=dispatcher.custom_methods(),
            announcer=self._announcer,
            drain=self._drain,
            lifespan=dispatcher.lifespans,
            use_state=dispatcher.use_state,
            max_concurrent_requests=self._max_concurrent_requests,
            param_headers_of=dispatcher.param_headers_of,
            secret_names_of=dispatcher.secret_names_of,
            on_subscription=dispatcher.subscription_listener(),
            admit=next((admit for admit in admits if admit is not None), None),
            share=[share for each in servers for share in each.shares],
            shared_keys=tuple if keys is None else keys.shared_keys,
        )

    def _show(self, banner: bool, url: str | None = None) -> None:
        """Show on standard error what is served: a banner on a terminal, elsewhere the URL."""
        if banner and sys.stderr is not None and sys.stderr.isatty():
            from .banner import banner_text, has_banner  # programs that start servers see none

            if has_banner():
                counts = [len(registry.items) for registry in self._dispatcher.registries]
                items = dict(zip(_KINDS, counts, strict=True))
                text = banner_text(self.info, items, self.revisions, url)
                print(text, file=sys.stderr, flush=True)
                return
        if url is not None:
            print(f"serving at {url}", file=sys.stderr, flush=True)


def check_run(call: str, transport: str | None, known: Collection[str]) -> None:
    """Check that no command is importing the module for its server, and that it has the transport.

    Args:
        call: The method that was called, such as `server.run`.
        transport: Its argument; `None` for the default.
        known: The transports that it has.

    Raises:
        RunWhileImportedError: A command is importing the module.
        TypeError: It has no such transport.
    """
    if importing.get():
        raise RunWhileImportedError(f"put {call}() under `if __name__ == '__main__':`")
    if transport is not None and transport not in known:
        from ...absence import call_error  # for the error only

        expected = " or ".join(map(repr, known))
        raise call_error(call, f"expected transport {expected}, got {transport!r}")
