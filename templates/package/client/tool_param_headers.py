"""The parameter headers of a server's tools: HTTP headers that repeat arguments of a call.

Source: basic/transports/streamable-http#custom-headers-from-tool-parameters.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Raw

from .._wire import UNREADABLE
from ..errors import InvalidParamsError, McpError, ProtocolError, RemoteError
from ..foreign_text import safe_repr
from ..protocol.lifecycle import Session
from ..protocol.param_headers import Path, format_path, param_headers_of, value_at
from ..protocol.results import result_decoder
from ..runtime.peer import Peer
from ..runtime.pending_requests import OnProgress
from .application import ClientApplication, Handlers, HeadersOfCall
from .client_settings import ClientSettings, Identity
from .pipeline import RequestOptions, RequestPipeline
from .server_state import TOOLS_LIST, drop_oldest

_logger = logging.getLogger(__name__)


class ToolParamHeaders:
    """The parameter headers of a server's tools, from the latest list of each tool.

    The headers of a tool are stored until the tool is listed again, even after a notification that
    tools have changed. If the headers are stale, the server refuses the call, and the client lists
    the tools again.

    Args:
        limit: Most tools whose headers are stored; the oldest are dropped.

    Attributes:
        mirrored: Whether the transport has headers; the transport sets this.
        prefix: The prefix of the header names; `None` in revisions without parameter headers.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.mirrored = False
        self.prefix: str | None = None
        self._headers: dict[str, Mapping[Path, str]] = {}
        self._warned: dict[str, str] = {}

    @property
    def in_use(self) -> bool:
        """Whether the transport and the revision have parameter headers."""
        return self.mirrored and self.prefix is not None

    def store(self, tools: Iterable[Any]) -> list[Any]:
        """Store the parameter headers of typed tools.

        Returns:
            The tools that can be called. A warning is logged once for each other tool.
        """
        return [tool for tool in tools if not self.in_use or self._store_headers(tool)]

    def headers_for(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, str]:
        """The headers of a call: encoded values by header name.

        Raises:
            InvalidParamsError: An argument cannot be encoded as a header value.
        """
        headers: dict[str, str] = {}
        names = self._headers.get(tool)
        if not names or not self.in_use:
            return headers
        from ..framing.header_values import (  # loaded by the transport already
            encode_value,
            value_text,
        )

        for path, name in names.items():
            value = value_at(arguments, path)
            if value is not None:
                try:
                    headers[f"{self.prefix}{name}"] = encode_value(value_text(value))
                except ProtocolError as error:
                    raise InvalidParamsError(
                        f"tool {safe_repr(tool)}: {format_path(path)}: {error}"
                    ) from None
        return headers

    def _store_headers(self, tool: Any) -> bool:
        try:
            self._headers[tool.name] = param_headers_of(tool.input_schema)
            drop_oldest(self._headers, self._limit)
        except ValueError as error:
            self._headers.pop(tool.name, None)
            if self._warned.get(tool.name) != str(error):
                self._warned[tool.name] = str(error)
                drop_oldest(self._warned, self._limit)
                _logger.warning("tool %s is left out: %s", safe_repr(tool.name), error)
            return False
        return True


class HeaderRequests(RequestPipeline):
    """Stores the parameter headers of listed tools, and lists them again if they are stale."""

    def __init__(self, peer: Peer, session: Session, application: HeaderApplication) -> None:
        super().__init__(peer, session, application)
        self._headers = application.param_headers
        self._headers.prefix = session.revision.facts.headers.param_prefix

    def send_raw(
        self,
        method: str,
        params: Any,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> Coroutine[Any, Any, Raw]:
        sending = super().send_raw(method, params, meta, timeout, on_progress)
        if method != TOOLS_LIST or not self._headers.in_use:
            return sending
        return self._stored(sending)

    async def _stored(self, sending: Coroutine[Any, Any, Raw]) -> Raw:
        raw = await sending
        with suppress(*UNREADABLE):  # the caller gets unreadable results too
            self._usable_tools(result_decoder(self.row(TOOLS_LIST))(raw).tools)
        return raw

    def _usable_tools(self, tools: Sequence[Any]) -> Sequence[Any]:
        return self._headers.store(super()._usable_tools(tools))

    async def _refused(self, options: RequestOptions, error: RemoteError) -> bool:
        """List the tools again if a call was refused for its parameter headers.

        Source: basic/transports/streamable-http#client-behavior (2026-07-28).
        """
        if await super()._refused(options, error):
            return True
        expected = self.session.revision.facts.errors.header_mismatch
        if not options.facts.param_headers or error.code != expected:
            return False
        if options.is_refreshed or not self._headers.in_use:
            return False
        self.state.forget((TOOLS_LIST,))
        try:
            await self.pages(TOOLS_LIST, {}, None, options.timeout)
        except McpError:
            return False
        options.is_refreshed = True
        return True


class HeaderApplication(ClientApplication):
    """The application of a client that may send parameter headers."""

    def __init__(
        self, handlers: Handlers | None, identity: Identity, settings: ClientSettings | None = None
    ) -> None:
        super().__init__(handlers, identity, settings)
        self.param_headers = ToolParamHeaders(self.settings.limits.tools)

    def mirror_params(self) -> HeadersOfCall | None:
        self.param_headers.mirrored = True
        return self.param_headers.headers_for
