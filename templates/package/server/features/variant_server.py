"""Tools that are other tools with other arguments."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..toolkit.content import present_members
from ..toolkit.registry import checked_tags
from ..toolkit.server import ServerKernel


class VariantServer(ServerKernel):
    """A server with variants of tools."""

    def add_tool_variant(
        self,
        source: str,
        name: str,
        *,
        title: str | None = None,
        description: str | None = None,
        rename: Mapping[str, str] | None = None,
        fix: Mapping[str, Any] | None = None,
        tags: Collection[str] = (),
    ) -> None:
        """Register a tool that calls another tool with other arguments.

            server.add_tool_variant("search", "find_books", rename={"q": "title"}, fix={"limit": 5})

        A call of the variant is a call of the other tool, with its scopes, checks and results. The
        other tool may be disabled. Errors about arguments use the other tool's names.

        Args:
            source: Name of the other tool; of a mounted one with its prefix.
            name: Its own name.
            title: A name for display; that of the other tool by default.
            description: Its description; that of the other tool by default.
            rename: New names of arguments, by those of the other tool.
            fix: Values of arguments that are not listed, and that clients can't set.
            tags: Names for `enable` and `disable`; they are not sent.

        Raises:
            TypeError: `rename` or `fix` is no mapping, or one string instead of several tags.
            LookupError: There is no such tool.
            ValueError: A name is invalid or taken, the other tool has no such argument, or a rule
                of its schema, such as `anyOf`, may name arguments.
        """
        from ..toolkit.tool_variants import ToolVariant  # few servers have some

        variant = ToolVariant(
            self._dispatcher,
            source,
            name=name,
            members=present_members(title=title, description=description),
            rename=rename,
            fix=fix,
            tags=checked_tags(tags),
        )
        self._dispatcher.registries.tools.add(name, variant)
