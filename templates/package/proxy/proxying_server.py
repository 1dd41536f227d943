"""The server of a package with proxies."""

from __future__ import annotations

from typing import Any

from ..server.toolkit import server as toolkit


class Server(toolkit.Server):
    """An MCP server, which may be a proxy; see `server.toolkit.server.Server`."""

    @staticmethod
    def proxy(target: Any, name: str = "proxy", version: str = "0", **options: Any) -> Server:
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

        server = Server(name, version, logging=False)
        server._dispatcher = proxy_of(server._dispatcher, target, options)
        return server
