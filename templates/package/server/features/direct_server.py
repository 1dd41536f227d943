"""Requests to a server without a client."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from ..toolkit.server import ServerKernel

if TYPE_CHECKING:
    from ... import models
    from ..toolkit.direct_requests import DirectSession


class DirectServer(ServerKernel):
    """A server whose tools, resources and prompts are used without a client."""

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None
    ) -> models.CallToolResult:
        """Call a tool without a client, as a client of the newest revision without capabilities.

        The lifespan is that of the running request if there is one, else one for the call. The
        methods below work the same way.

        Raises:
            RemoteError: The server answers with an error, such as that for an unknown tool.
        """
        params = {"name": name, "arguments": dict(arguments or {})}
        result: models.CallToolResult = await self._direct("call_tool", params)
        return result

    async def read_resource(self, uri: str) -> models.ReadResourceResult:
        """Read a resource without a client."""
        result: models.ReadResourceResult = await self._direct("read_resource", {"uri": uri})
        return result

    async def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None
    ) -> models.GetPromptResult:
        """Get a prompt without a client."""
        params = {"name": name, "arguments": dict(arguments or {})}
        result: models.GetPromptResult = await self._direct("get_prompt", params)
        return result

    async def list_tools(self) -> list[models.Tool]:
        """The tools, as a client gets them."""
        return await self._direct_list("list_tools", "tools")

    async def list_resources(self) -> list[models.Resource]:
        """The resources, as a client gets them."""
        return await self._direct_list("list_resources", "resources")

    async def list_prompts(self) -> list[models.Prompt]:
        """The prompts, as a client gets them."""
        return await self._direct_list("list_prompts", "prompts")

    async def _direct(self, method: str, params: Mapping[str, Any]) -> Any:
        async with self._direct_session() as session:
            return await session.request(method, params)

    async def _direct_list(self, method: str, member: str) -> list[Any]:
        async with self._direct_session() as session:
            return await session.list_all(method, member)

    def _direct_session(self) -> AbstractAsyncContextManager[DirectSession]:
        from ..toolkit.direct_requests import (
            direct_session,
        )  # used by tests and routes of an application

        states = [each.state for each in self._dispatcher.all_servers()]
        return direct_session(self._service(), states)
