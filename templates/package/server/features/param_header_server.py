"""Header fields of HTTP that repeat arguments of tools, in revisions that have them."""

from __future__ import annotations

from ...protocol.param_headers import param_headers_of
from ..toolkit.server import ServerKernel
from ..toolkit.tools import Tool


class ParamHeaderServer(ServerKernel):
    """A server whose clients may repeat arguments of tools in header fields."""

    def _prepare_tool(self, tool: Tool) -> None:
        tool.param_headers = param_headers_of(tool.schema)
        super()._prepare_tool(tool)
