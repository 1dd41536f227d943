"""A client's connection: sends the requests of version negotiation, and receives their responses.

If the server cannot be reached, requires credentials, or says when to come back, negotiation fails.
The steps are listed in `lifecycle`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from msgspec import Raw

from .._wire import convert, error_text
from ..channel import OutgoingMessage, RequestId
from ..errors import (
    McpError,
    MethodNotFoundError,
    ProtocolError,
    RemoteProtocolError,
    RequestCancelledError,
    TransportError,
)
from ..facts import Method, Revision, Revisions
from ..foreign_text import safe_text
from . import jsonrpc
from .connection import Connection
from .events import (
    Event,
    Ignored,
    NotificationReceived,
    Opened,
    OpenFailed,
    OpenSession,
    Received,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    Send,
    StepTimedOut,
)
from .initialization import Step
from .lifecycle import (
    INITIALIZE,
    INITIALIZED,
    Description,
    RequestMetadata,
    Session,
    with_extensions,
)
from .negotiation import first_step, parse_batch
from .requests import ConnectionState, OutboundRequest, notification
from .results import result_decoder


class ClientConnection(Connection):
    """The protocol of a client; send `OpenSession` before anything else.

    Args:
        revisions: The revisions to speak.
        describe: The client's implementation info and capabilities, by revision.
        extensions: Methods besides those of the revisions, by wire name; both sides may send them.
        extra: Whether the objects of results keep the members that their schemas do not have.

    Attributes:
        step: The current step of the negotiation; `None` before and after it.
        first_step: The first step, while it may be the reason why the server fails: until the
            server itself has accepted or refused the client.
    """

    def __init__(
        self,
        revisions: Revisions,
        describe: Callable[[Revision], Description],
        extensions: Mapping[str, Method] | None = None,
        *,
        extra: bool = False,
    ) -> None:
        decoder_of = partial(result_decoder, extra=extra)
        super().__init__(
            ConnectionState(
                "client", revisions, describe, extensions or {}, decoder_of, parse_batch
            )
        )
        self.step: Step | None = None
        self.first_step: Step | None = None
        self._step_id: RequestId | None = None
        self._steps: dict[RequestId, Step] = {}

    def awaits(self, identifier: RequestId | None) -> bool:
        """Whether a request is that of the current step of the negotiation."""
        return identifier is not None and identifier == self._step_id

    def receive(self, received: Received, now: float = 0.0) -> list[Event]:
        """Receive a message, which may belong to the negotiation; see `Connection.receive`."""
        if isinstance(received, StepTimedOut):
            return [] if self.step is None else self._step_failed(self.step, None)
        events = super().receive(received, now)
        if not self._steps:
            return events
        return [after for event in events for after in self._negotiate(event)]

    def closed(self) -> list[RequestId]:
        """The transport ended; see `Connection.closed`."""
        self._end_negotiation()
        return super().closed()

    def _begin(self, step: Step) -> OutgoingMessage:
        """The request of a step, which is the current one from now on."""
        state, revision, name = self.state, step.revision, step.method
        params, method = step.params(), revision.client_requests[name]
        identifier = state.outbound.add(OutboundRequest(method, revision))
        shaped = with_extensions(method.params, params)
        if not isinstance(shaped, Raw):
            shaped = convert(shaped, method.params)
        self.step, self._step_id = step, identifier
        self._steps[identifier] = step
        data = jsonrpc.encode_request(identifier, name, shaped)
        return OutgoingMessage(data, "request", identifier, name, revision, None, params)

    def _open(self, _: OpenSession) -> Sequence[OutgoingMessage]:
        self.first_step = first_step(self.state.revisions, self.state.describe)
        return (self._begin(self.first_step),)

    _SENDERS: ClassVar = {**Connection._SENDERS, OpenSession: _open}

    def _negotiate(self, event: Event) -> list[Event]:
        """Handle an event of a request of the negotiation; pass on any other."""
        match event:
            case ResponseReceived(id=identifier) if identifier in self._steps:
                return self._step_answered(self._steps.pop(identifier), event)
            case RequestFailed(id=identifier) if identifier in self._steps:
                step = self._steps.pop(identifier)
                if identifier != self._step_id:
                    return [Ignored(f"{step.method} was refused, late")]
                return self._step_failed(step, event.error)
            case _:
                return [event]

    def _step_answered(self, step: Step, event: ResponseReceived) -> list[Event]:
        try:
            following = step.receive_result(event.result, event.raw)
        except McpError as error:
            return self._give_up(error)
        except RecursionError as error:
            return self._give_up(RemoteProtocolError(f"capabilities: {error_text(error)}"))
        for identifier in self._steps:  # of other steps, whose responses are no longer needed
            self.state.outbound.pop(identifier)
        if not isinstance(following, Session):
            return [Send(self._begin(following), opens=True)]
        self._end_negotiation()
        self.first_step = None
        self.state.session = following
        events: list[Event] = []
        if step.method == INITIALIZE:
            message = notification(self.state.role, following.revision, INITIALIZED, {})
            events.append(Send(message, opens=True))
        return [*events, Opened(following.revision)]

    def _step_failed(self, step: Step, error: McpError | None) -> list[Event]:
        try:
            following = step.receive_error(error)
        except McpError as reason:
            return self._give_up(reason)
        return [Send(self._begin(following), opens=True)]

    def _give_up(self, error: McpError) -> list[Event]:
        self._end_negotiation()
        if not isinstance(error, TransportError):
            self.first_step = None
        return [OpenFailed(error)]

    def _end_negotiation(self) -> None:
        self.step = self._step_id = None
        self._steps.clear()

    def read_request(self, message: jsonrpc.Request) -> tuple[RequestReceived, RequestMetadata]:
        """Read a request; refuse all of them in a revision whose servers send none."""
        if not self._session_revision().server_requests:
            raise MethodNotFoundError(message.method)
        return super().read_request(message)

    def _refuse(self, message: jsonrpc.Request, error: ProtocolError) -> Event:
        revision = self._session_revision()
        if revision.server_requests:
            return super()._refuse(message, error)
        return Ignored(f"request {safe_text(message.method)} from a server of {revision.name}")

    def _is_noise(self, message: jsonrpc.InvalidMessage) -> bool:
        """Some servers print log lines to their output; these get no response."""
        return message.id is None or not self._session_revision().server_requests

    def _may_belong_to(self, stream: Any) -> bool:
        """Whether an id is that of an open subscription stream; `True` and `1.0` are not `1`."""
        request = self.state.outbound.get(stream) if type(stream) in (int, str) else None
        return (
            request is not None and request.method.name == request.revision.facts.behaviour.listen
        )

    def _handle_cancelled(self, event: NotificationReceived) -> list[Event]:
        identifier = event.params.request_id
        if self._may_belong_to(identifier):
            self.state.outbound.pop(identifier)
            error = RequestCancelledError("the server ended the subscription")
            return [RequestFailed(identifier, error)]
        return super()._handle_cancelled(event)
