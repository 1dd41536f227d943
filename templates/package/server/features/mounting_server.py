"""Servers that serve what other servers have, under names with a prefix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from ..toolkit.server import ServerKernel, check_others

if TYPE_CHECKING:
    from ...absence import NoOptions


class MountingServer(ServerKernel):
    """A server that others are mounted on."""

    def mount(
        self, server: ServerKernel, prefix: str | None = None, **others: Unpack[NoOptions]
    ) -> None:
        """Serve the items of another server, under names with a prefix.

            main.mount(git, prefix="git")

        Its tool or prompt `status` becomes `git_status`; its resource `repo://head` becomes
        `repo://git/head`, and so do templates. Completions and custom methods are mounted too.
        Later changes of its items apply at once, and clients are notified. The other server
        handles its requests with its own middleware, lifespan and dependencies. Its name,
        instructions, `page_size`, `list_changed`, `logging`, cache hints of lists and
        `forbidden_items` have no effect: those of the outer server apply. Mounts nest, and a
        server may be mounted several times.

        Args:
            server: The other server.
            prefix: Letters, digits, `_`, `-` and `.`; with `None`, names do not change.

        Raises:
            TypeError: Not a `Server`.
            ValueError: The prefix is invalid, a name is taken or would be too long, the server
                would contain itself, or it lists items by low-level handlers. Nothing was mounted.
            RuntimeError: It has a lifespan, and this server is being served already.
        """
        from ..toolkit.mounting import mount_server  # few servers have others mounted

        check_others(others, "server.mount")
        kind: type = type(server)
        if not issubclass(kind, ServerKernel):
            from ...absence import call_error  # for the error only

            raise call_error("server.mount", f"expected Server, got {kind.__name__}")
        mount_server(self._dispatcher, server._dispatcher, prefix)
