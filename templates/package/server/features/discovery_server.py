"""Discovery of tools by search, in place of a list of all tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

from ..toolkit.server import ServerKernel

if TYPE_CHECKING:
    from ..toolkit.tool_discovery import ToolSearch


class DiscoveryOptions(TypedDict, total=False):
    """The discovery of the tools of a server.

    Attributes:
        discovery: `search`, or a `ToolSearch`: clients list the tools `search_tools` and
            `call_tool`, by which a model finds and calls the others; `None` lists all tools.
    """

    discovery: Literal["search"] | ToolSearch | None


class DiscoveryServer(ServerKernel):
    """A server whose tools are found by search."""

    def _use_options(self, options: dict[str, Any]) -> None:
        search = options.pop("discovery", None)
        if search is not None:
            from ..toolkit import tool_discovery  # few servers have so many tools

            tool_discovery.add_discovery(self, self._dispatcher, search)
            self._dispatcher.hooks.required_scopes = tool_discovery.with_inner_calls
        super()._use_options(options)
