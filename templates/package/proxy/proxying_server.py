"""Servers that forward all messages to other servers."""

from __future__ import annotations

from typing import Any, Self

from ..server.toolkit.server import ServerKernel


class ProxyingServer(ServerKernel):
    """A server that may be a proxy."""

    @classmethod
    def proxy(cls, target: Any, name: str = "proxy", version: str = "0", **options: Any) -> Self:
        """A server that forwards all messages to another server, of any revision.

            main.mount(Server.proxy("https://example.com/mcp"), prefix="example")

        Members that one of the revisions lacks are dropped with a warning, once. Each client of
        the proxy, over HTTP each session, has a session of its own with the other server; requests
        without a session share one. A session that has ended is opened again when it is used.

        Args:
            target: The URL, command line, server or channel to connect to; see `connect`. The names
                of the servers of a configuration, if it has several, are prefixes, as of `mount`.
            name: Name of the proxy, for programs. The instructions are those of the other server.
            version: Its version.
            options: Further arguments of `connect`, such as `revision`, `env` or `auth`.

        Raises:
            TypeError: `connect` does not accept an option.
            OSError: The file of a configuration can't be read.
            ValueError: A configuration is malformed, or a name in it can't be a prefix.
        """
        from .proxy_server import proxy_of  # few servers are proxies

        server = cls(name, version, logging=False)
        server._dispatcher = proxy_of(server._dispatcher, target, options)
        return server
