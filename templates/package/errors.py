"""The errors of this package, as one small tree.

    McpError                        every error that this package raises deliberately
    +-- ProtocolError               has a JSON-RPC code; a handler that raises one answers with it
    |   +-- LocalProtocolError      this side would break a rule of the revision
    |   +-- RemoteProtocolError     the peer broke a rule; `code` is the code for the response
    |   +-- ParseError              -32700
    |   +-- InvalidRequestError     -32600
    |   +-- MethodNotFoundError     -32601
    |   |   +-- AbsentMethodError   the revision has no such message; nothing was sent
    |   +-- InvalidParamsError      -32602
    |   +-- InternalError           -32603
    |   +-- ResourceNotFoundError   code by revision
    |   +-- MissingCapabilityError  the peer did not declare a required capability
    |   +-- UnsupportedRevisionError (in `protocol.server_connection`)
    |   +-- URLElicitationRequiredError (in `client_features.input_required`)
    |   +-- HeaderMismatchError     HTTP header fields differ from the body
    +-- RemoteError                 the peer answered a request of this side with an error
    +-- RevisionError               no revision in common
    +-- RequestTimeoutError         no response in time
    +-- RequestCancelledError       this side cancelled the request
    +-- ToolError                   a tool's own error, for the model
    +-- ToolResultError             a result has no value of the type that the caller named
    |   +-- ToolFailedError         the tool reported an error
    +-- LockError                   a server differs from its lock (in `client.lock.lock_file`)
    |   +-- LockFileError           the file of the lock can't be used
    |   +-- LockMismatchError       an item was changed or is new (in `client.lock.server_lock`)
    +-- MissingExtraError           an optional dependency is not installed
    +-- AuthorizationError          no access token could be obtained
    |   +-- OAuthError              an authorization server refused, with a code of OAuth
    |                               (in `auth.token_endpoint`)
    +-- TransportError
        +-- ConnectionClosedError   the connection ended before the response
        +-- EndOfChannel            the peer closed the channel
        +-- FrameError              one frame was invalid; the channel is usable
        +-- ServerStartError        the server process ended before its first message
        +-- ListenFailedError       cannot listen at an address
        +-- WorkerFailedError       a worker process could not start to serve
        +-- ConnectFailedError      no connection to the server's address
        +-- HttpStatusError         the server refused with an HTTP status
        +-- ResponseLostError       the connection broke before the response was received
        +-- SessionLostError        the server lost the session, and the one that replaced it
        +-- RequestLost             a channel reports that a request will not be answered

The class tells which side is at fault; attributes hold the data. Error texts quote a peer's text on
one line, shortened and without control characters; the attributes hold the whole text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from .foreign_text import safe_list, safe_repr, safe_text

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002

TOO_MANY_REQUESTS = 429
_OUTAGES = (TOO_MANY_REQUESTS, 502, 503, 504)

NO_DATA: Any = object()
"""Marks an error without `data`, which differs from `data: null`."""

NOT_BEGUN: Mapping[str, Any] = {"begun": False}
"""`data` of the error for a request that was refused before any work on it: send it again later."""

INTERRUPTED: Mapping[str, Any] = {"begun": True}
"""`data` of the error for a request whose work was begun and given up; it may have had effects."""


def was_begun(data: Any) -> bool | None:
    """Whether work on a request was begun, as `data` of its error says; `None` if it does not."""
    match data:
        case {"begun": bool() as begun}:
            return begun
        case _:
            return None


_LONGEST_URI = 2048  # longest URI that is sent as data of an error

_REMOTE_TEXT = 1000  # characters of a peer's error text that an error quotes

_SHOWN_LINE = 500  # characters of a line on standard error that an error quotes

_SHOWN_BODY = 300  # characters of the body of an HTTP response that an error quotes


class McpError(Exception):
    """Base of every error that this package raises deliberately."""


class ProtocolError(McpError):
    """An error with a JSON-RPC code. A handler that raises one answers its request with it.

    Args:
        message: One line for the peer; never a traceback.
        code: JSON-RPC error code; the default of the class if omitted.
        data: `error.data`; not sent if omitted.

    Source: basic/index (error responses).
    """

    default_code: ClassVar[int] = INTERNAL_ERROR

    def __init__(self, message: str, *, code: int | None = None, data: Any = NO_DATA) -> None:
        super().__init__(message)
        self.message = message
        self.code = self.default_code if code is None else code
        self.data = data


class LocalProtocolError(ProtocolError):
    """This side would break a rule of the revision; nothing was sent."""


class RemoteProtocolError(ProtocolError):
    """The peer broke a rule of the revision; `code` is the JSON-RPC code for the response."""

    default_code = INVALID_REQUEST


class ParseError(ProtocolError):
    """The text received is not JSON (-32700)."""

    default_code = PARSE_ERROR


class InvalidRequestError(ProtocolError):
    """The JSON received is not a request (-32600)."""

    default_code = INVALID_REQUEST


class MethodNotFoundError(ProtocolError):
    """The method is unknown, or its capability was not declared (-32601)."""

    default_code = METHOD_NOT_FOUND

    def __init__(self, method: str, text: str = "", *, data: Any = NO_DATA) -> None:
        super().__init__(text or f"method not found: {safe_text(method)}", data=data)
        self.method = method


class AbsentMethodError(MethodNotFoundError, AttributeError):
    """The revision of a session has no such message; nothing was sent.

    The text names the revision, the message, and what to use instead.
    """


class InvalidParamsError(ProtocolError):
    """The params do not fit the method (-32602)."""

    default_code = INVALID_PARAMS


class InternalError(ProtocolError):
    """The receiver failed unexpectedly (-32603)."""

    default_code = INTERNAL_ERROR


class ResourceNotFoundError(ProtocolError):
    """There is no resource with this `uri`. The revision defines the code.

    The URI is sent as `data` if it has at most 2,048 characters.

    Source: server/resources (error handling).
    """

    default_code = INVALID_PARAMS

    def __init__(self, uri: str) -> None:
        data = {"uri": uri} if len(uri) <= _LONGEST_URI else NO_DATA
        super().__init__(f"resource not found: {safe_text(uri)}", data=data)
        self.uri = uri


class MissingCapabilityError(ProtocolError):
    """A message requires a capability that the other side did not declare.

    Attributes:
        path: The capability, from the top, such as `("elicitation", "url")`.
    """

    default_code = INVALID_REQUEST

    def __init__(self, path: Sequence[str], needed_by: str) -> None:
        required: dict[str, Any] = {}
        inner = required
        for name in path:
            inner = inner.setdefault(name, {})
        super().__init__(
            f"{needed_by} needs the capability {'.'.join(path)}; it was not declared",
            data={"requiredCapabilities": required},
        )
        self.path = tuple(path)


class HeaderMismatchError(ProtocolError):
    """Header fields of an HTTP request are missing, broken, or differ from its body.

    The revision defines the code.

    Source: basic/transports/streamable-http#server-validation (2026-07-28).
    """

    default_code = INVALID_REQUEST


class RemoteError(McpError):
    """The peer answered a request with an error.

    Attributes:
        code: JSON-RPC code as received. Codes from -32019 to -32000 have no common meaning.
        message: The peer's text.
        data: The peer's `error.data`, or `None` if there was none.
        method: The request that failed.

    Args:
        name: The caller's name of the tool or prompt, if the peer's name differs.
    """

    def __init__(
        self, code: int, message: str, data: Any = None, method: str = "", *, name: str = ""
    ) -> None:
        where = " ".join(filter(None, (method, name and safe_repr(name))))
        where = f"{where}: " if where else ""
        super().__init__(f"{where}{safe_text(message, _REMOTE_TEXT)} (code {code})")
        self.code = code
        self.message = message
        self.data = data
        self.method = method

    @property
    def resource_not_found(self) -> bool:
        """Whether the error may mean that the resource to read does not exist.

        The code is -32002 or -32602 (invalid params), depending on the server's revision.

        Source: server/resources (error handling).
        """
        codes = (RESOURCE_NOT_FOUND, INVALID_PARAMS)
        return self.method == "resources/read" and self.code in codes


class RevisionError(McpError):
    """Client and server have no protocol revision in common.

    Attributes:
        supported: Revisions of this side.
        offered: Revisions that the other side named; empty if it named none.
    """

    def __init__(self, message: str, supported: Sequence[str], offered: Sequence[str] = ()) -> None:
        named = f"; the peer offers {safe_list(offered)}" if offered else ""
        super().__init__(f"{message}; this side speaks {', '.join(supported)}{named}")
        self.supported = tuple(supported)
        self.offered = tuple(offered)


class RequestTimeoutError(McpError):
    """No response in time. The request was cancelled if the revision allows that.

    Args:
        more: Further text for the message.

    Attributes:
        method: The request.
        seconds: The timeout.
    """

    def __init__(self, method: str, seconds: float, more: str = "") -> None:
        suffix = f"; {more}" if more else ""
        super().__init__(f"{method}: no answer within {seconds:g} s{suffix}")
        self.method = method
        self.seconds = seconds


class RequestCancelledError(McpError):
    """The request was cancelled before it was answered."""


class ToolError(McpError):
    """A tool failed; the model receives the text in a result with `isError`.

    Source: server/tools (error handling).
    """


class ToolResultError(McpError):
    """A tool's result has no value of the type that the caller named.

    Attributes:
        tool: The name of the tool.
        revision: The negotiated revision.
        result: The typed result.
    """

    def __init__(self, tool: str, revision: str, result: Any, text: str, reason: str = "") -> None:
        more = f": {reason}" if reason else ""
        super().__init__(f"tool {safe_repr(tool)} ({revision}): {text}{more}")
        self.tool = tool
        self.revision = revision
        self.result = result


class ToolFailedError(ToolResultError):
    """A tool reported an error in its result, where the caller expects a value.

    Attributes:
        message: The tool's texts.
    """

    def __init__(self, tool: str, revision: str, result: Any, message: str) -> None:
        quoted = safe_text(message, _REMOTE_TEXT) or "no text"
        super().__init__(tool, revision, result, f"the tool reported an error: {quoted}")
        self.message = message


class MissingExtraError(McpError):
    """An optional dependency is not installed; the text names the package to install."""

    def __init__(self, feature: str, package: str) -> None:
        super().__init__(f"{feature} needs the package {package!r}: pip install {package}")
        self.package = package


class AuthorizationError(McpError):
    """No access token could be obtained. The text holds no token, code or secret."""


class TransportError(McpError):
    """The transport failed."""


class ConnectionClosedError(TransportError):
    """The connection ended: nothing can be sent, and open requests get no response."""


class EndOfChannel(TransportError):
    """The peer closed the channel: there are no further messages."""


class FrameError(TransportError):
    """One frame could not be read as a message; the channel stays usable.

    Attributes:
        code: The JSON-RPC code for the response: -32700, or -32600 for a frame that is too long.
    """

    def __init__(self, message: str, code: int = PARSE_ERROR) -> None:
        super().__init__(message)
        self.code = code


class ServerStartError(TransportError):
    """A server process could not be started, or ended before it answered.

    Args:
        command: The command as one text, with secrets masked.
        more: Further text for the end of the message.

    Attributes:
        command: As passed.
        argv: The command.
        exit_code: Exit code; negative for a signal; `None` if the process never ran.
        stderr_tail: The last lines of the process's standard error.
    """

    def __init__(
        self,
        command: str,
        argv: Sequence[str],
        exit_code: int | None,
        stderr_tail: Sequence[str],
        reason: str = "",
        more: str = "",
    ) -> None:
        ended = "could not be started" if exit_code is None else f"ended with exit code {exit_code}"
        parts = [f"server {command!r} {ended}"]
        if reason:
            parts.append(safe_text(reason))
        parts += last_lines(stderr_tail)
        super().__init__("; ".join([*parts, more] if more else parts))
        self.command = command
        self.argv = tuple(argv)
        self.exit_code = exit_code
        self.stderr_tail = tuple(stderr_tail)
        self.reason = reason

    def with_more(self, more: str) -> ServerStartError:
        """A copy of the error with further text."""
        return ServerStartError(
            self.command, self.argv, self.exit_code, self.stderr_tail, self.reason, more
        )


def last_lines(stderr_tail: Sequence[str]) -> list[str]:
    """The last lines of standard error, as part of an error text; empty if there are none."""
    if not stderr_tail:
        return []
    lines = (f"\n  {safe_text(line, _SHOWN_LINE)}" for line in stderr_tail)
    return ["last lines on stderr:" + "".join(lines)]


class ListenFailedError(TransportError):
    """Cannot listen at an address: it is in use, or does not belong to this machine."""


class WorkerFailedError(TransportError):
    """A worker process could not start to serve; standard error has the reason."""


class ConnectFailedError(TransportError):
    """No connection to the server could be opened: nothing was sent.

    Attributes:
        url: URL without credentials and query.
    """

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"no connection to {safe_text(url)}: {safe_text(reason)}")
        self.url = url


class HttpStatusError(TransportError):
    """The server, or a proxy before it, refused a message with an HTTP status.

    Args:
        more: Further text for the message.

    Attributes:
        url: URL without credentials and query.
        status: The status code, such as 503.
        reason: The reason phrase.
        body: The beginning of the body.
        retry_after: Seconds to wait before the next attempt, by `Retry-After`; `None` if absent.
        begun: Whether work on the message was begun, if the refusal says so; see `NOT_BEGUN`.
    """

    def __init__(
        self,
        url: str,
        status: int,
        reason: str,
        body: bytes = b"",
        more: str = "",
        retry_after: float | None = None,
        begun: bool | None = None,
    ) -> None:
        text = " ".join(body[:1000].decode(errors="replace").split())[:_SHOWN_BODY]
        excerpt = f": {safe_text(text, _SHOWN_BODY)}" if text else ""
        suffix = f"; {more}" if more else ""
        status_text = f"{url} answered HTTP {status} {safe_text(reason)}".rstrip()
        super().__init__(status_text + excerpt + suffix)
        self.url = url
        self.status = status
        self.reason = reason
        self.body = body
        self.retry_after = retry_after
        self.begun = begun
        self._more = more

    def with_more(self, more: str) -> HttpStatusError:
        """A copy of the error with text appended."""
        more = f"{self._more}; {more}" if self._more else more
        return HttpStatusError(
            self.url, self.status, self.reason, self.body, more, self.retry_after, self.begun
        )

    @property
    def wants_credentials(self) -> bool:
        """Whether the request needs other credentials. Source: RFC 9110 (401, 407)."""
        return self.status in (401, 407)

    @property
    def may_pass(self) -> bool:
        """Whether the status is temporary. Source: RFC 9110 (5xx), RFC 6585 (429)."""
        return self.status >= 500 or self.status == TOO_MANY_REQUESTS

    @property
    def is_outage(self) -> bool:
        """Whether the same request may succeed soon, at this or another process of the server.

        A proxy answers so if a process ended or did not answer, so the request may have been acted
        on. Source: RFC 9110 (502, 503, 504), RFC 6585 (429).
        """
        return self.status in _OUTAGES


def refusal_of(error: Exception) -> HttpStatusError | None:
    """The refusal with an HTTP status that an error is, or was caused by; `None` for others."""
    cause = error.__cause__ if isinstance(error, RemoteError) else error
    return cause if isinstance(cause, HttpStatusError) else None


class ResponseLostError(TransportError):
    """The connection broke before the response; the server may have processed the request."""


class SessionLostError(TransportError):
    """The server lost the session, and then the session that replaced it."""


class RequestLost(TransportError):
    """A channel reports that one request of this side gets no response; the channel stays usable.

    Attributes:
        id: Id of the request.
        error: The error for the caller of the request.
    """

    def __init__(self, id: int | str, error: McpError) -> None:
        super().__init__(str(error))
        self.id = id
        self.error = error
