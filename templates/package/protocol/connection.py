"""One connection without its I/O: bytes in, events out; calls in, bytes out.

`Connection` correlates, checks and refuses; it opens nothing, waits for nothing and asks no clock
(moments come from the caller). Each message is judged by the revision it belongs to: in a session
by what the handshake agreed, otherwise by what the request's own `_meta` says. What a revision has
is read from its tables; a message that they do not know is refused or ignored.

    bytes --> Receiver           --> events    all work on one ConnectionState; a client adds
    calls --> Sender, Notifier   --> bytes     its Opening until revision and capabilities are
                                               agreed

Source: basic/index, basic/lifecycle, basic/versioning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._wire import error_text
from ..channel import RequestId
from ..errors import McpError, ProtocolError, RemoteProtocolError, TransportError
from ..facts import Method, Revision, Revisions, Role
from ..foreign_text import safe_repr
from .events import Event, Ignored, Opened, OpenFailed, RequestFailed, ResponseReceived, Send
from .jsonrpc import Message
from .lifecycle import INITIALIZED, Description, Session
from .notifications import Notifier
from .receiver import Receiver
from .request_meta import Shared
from .sender import Sender
from .state import ConnectionState
from .subscriptions import RESOURCE_UPDATED
from .version_negotiation import Step, VersionNegotiation


class Connection:
    """The protocol of one peer talking to another, as client or as server.

    Args:
        role: Which end this is.
        revisions: The revisions to speak.
        describe: This side's account of itself in a revision.
        extensions: Methods beyond the revisions', by wire name; both sides may send them.
        shared: What it has in common with others of the same side; nothing by default.
        extra: Whether the objects of results keep the members that their schemas do not have.

    Attributes:
        request, respond, fail, cancel, abandoned, close_streams: See `Sender`.
        progress, log, notify: See `Notifier`.
        result_decoder: See `Receiver`.
    """

    def __init__(
        self,
        role: Role,
        revisions: Revisions,
        describe: Callable[[Revision], Description],
        extensions: Mapping[str, Method] | None = None,
        shared: Shared | None = None,
        *,
        extra: bool = False,
    ) -> None:
        self._state = ConnectionState(role, revisions, describe, extensions or {}, extra)
        shared = shared or Shared(revisions)
        self._sender = Sender(self._state, shared)
        self._notifier = Notifier(self._state)
        self._receiver = Receiver(self._state, self._sender, self._notifier, shared)
        self._opening: VersionNegotiation | None = None
        self._opening_id: RequestId | None = None
        self._probe_id: RequestId | None = None
        self._without_probe: Revisions | None = None
        self.request = self._sender.request
        self.respond = self._sender.respond
        self.fail = self._sender.fail
        self.cancel = self._sender.cancel
        self.abandoned = self._sender.abandoned
        self.close_streams = self._sender.close_streams
        self.progress = self._notifier.progress
        self.log = self._notifier.log
        self.notify = self._notifier.notify
        self.result_decoder = self._receiver.result_decoder

    @property
    def role(self) -> Role:
        """Which end this is."""
        return self._state.role

    @property
    def session(self) -> Session | None:
        """What was agreed; `None` before, and on a server that no client shook hands with."""
        return self._state.session

    @property
    def revision(self) -> Revision:
        """The agreed revision, or the newest one while none is agreed."""
        return self._state.revision

    @property
    def probing(self) -> bool:
        """Whether silence means an older server: a probe is open, and there is another way."""
        opening = self._opening
        return opening is not None and opening.step is Step.PROBING and opening.may_fall_back

    @property
    def without_probe(self) -> Revisions | None:
        """The revisions to offer, without a probe, to a server that is started anew.

        Servers exist that end, or fall silent, when something comes before `initialize`. `None` if
        the probe is not to blame: none was sent, or the opening has ended in one way or the other,
        or there is no handshake to go on with.
        """
        return self._without_probe

    @property
    def open_calls(self) -> int:
        """How many of our requests wait for their answer."""
        return len(self._state.calls)

    @property
    def being_served(self) -> tuple[RequestId, ...]:
        """Ids of the peer's requests that have no answer yet."""
        return tuple(self._state.serving)

    def follows(self, uri: str) -> bool:
        """Whether the peer asked to be told when a resource changes."""
        session = self._state.session
        if session is not None and uri in session.subscriptions:
            return True
        return next(self._state.streams.wanting(RESOURCE_UPDATED, uri), None) is not None

    def ask_for_logs(self, level: str | None) -> None:
        """Have each request ask for log messages from `level` on, where a revision does it so."""
        self._state.log_level = level

    def open(self) -> bytes:
        """Begin a client's session.

        Returns:
            The first message: a probe or `initialize`. `Opened` or `OpenFailed` follows.
        """
        self._opening = VersionNegotiation(self._state.revisions, self._state.describe)
        self._without_probe = self._opening.without_probe
        return self._step(self._opening)

    def opening_timed_out(self) -> list[Event]:
        """No answer came to the probe that `open` made: go on without it.

        Should it come later, from a server that was slow to start, it still counts.

        Returns:
            The next message to send, or `OpenFailed`.
        """
        opening = self._opening
        if opening is None or not self.probing:
            return []
        self._probe_id = self._opening_id
        return self._opening_failed(opening, None)

    def receive(self, data: bytes, now: float = 0.0) -> list[Event]:
        """Take one message.

        Args:
            data: Whole, without frame.
            now: This moment, on the clock that `request` was given.

        Returns:
            What happened, in order. Never raises on what the peer sent.
        """
        return self._followed_up(self._receiver.receive(data, now))

    def take(self, message: Message, now: float = 0.0) -> list[Event]:
        """Take one message that `jsonrpc.parse` has sorted already; see `receive`."""
        return self._followed_up(self._receiver.take(message, now))

    def take_batch(self, messages: Sequence[Message], now: float = 0.0) -> list[Event]:
        """Take the messages of a batch, sorted by `jsonrpc.parse_batch` already; see `receive`."""
        return self._followed_up(self._receiver.take_batch(messages, now))

    def unreadable(self, error: ProtocolError) -> list[Event]:
        """Take a frame that could not even be read as a message."""
        return self._receiver.unreadable(error)

    def stream_closed(self, identifier: RequestId) -> list[Event]:
        """The peer closed the stream on which its request was to be answered.

        Returns:
            That the request is cancelled, in revisions where closing says so; otherwise nothing.

        Source: basic/transports/streamable-http#cancellation (2026-07-28).
        """
        return self._receiver.stream_closed(identifier)

    def opening_refused(self, error: McpError) -> list[Event]:
        """The transport did not deliver a message of the opening, or told of a refusal.

        Returns:
            The next message to send, or `OpenFailed`: so it is for a server that was not told that
            the client is ready.
        """
        if self._opening is None or self._opening_id is None:
            return [OpenFailed(error)]
        return self.lost(self._opening_id, error)

    def lost(self, identifier: RequestId, error: McpError) -> list[Event]:
        """The transport knows that a request of ours will not be answered, and why."""
        if self._state.calls.pop(identifier) is None:
            return [Ignored(f"{safe_repr(identifier)}, which is no open request: {error}")]
        return self._followed_up([RequestFailed(identifier, error)])

    def closed(self) -> list[RequestId]:
        """The transport ended: nothing more can be answered on either side.

        Returns:
            Our requests that stay without answer.
        """
        self._state.serving.clear()
        self._state.streams.clear()
        self._opening = self._opening_id = None
        return self._state.calls.drain()

    def deadline(self, identifier: RequestId) -> float | None:
        """The moment a request of ours counts as lost; progress moves it."""
        call = self._state.calls.get(identifier)
        return None if call is None else call.deadline

    def next_deadline(self) -> float | None:
        """The earliest of all deadlines."""
        return self._state.calls.next_deadline()

    def expired(self, now: float) -> list[RequestId]:
        """Our requests whose deadline has passed; `cancel` takes them out."""
        return self._state.calls.expired(now)

    def _followed_up(self, events: list[Event]) -> list[Event]:
        if self._opening is None:
            return events
        return [after for event in events for after in self._opened(self._opening, event)]

    def _step(self, opening: VersionNegotiation) -> bytes:
        revision, name, params = opening.request()
        self._opening_id, message = self._sender.opening_request(revision, name, params)
        return message

    def _opened(self, opening: VersionNegotiation, event: Event) -> list[Event]:
        """Follow up an event of the opening's own request; pass any other through."""
        match event:
            case ResponseReceived(id=identifier) if identifier == self._opening_id:
                return self._answered(opening, event.result)
            case ResponseReceived(id=identifier) if identifier == self._probe_id:
                self._drop_call(self._opening_id)
                opening.step = Step.PROBING
                return self._answered(opening, event.result)
            case RequestFailed(id=identifier) if identifier == self._opening_id:
                return self._opening_failed(opening, event.error)
            case RequestFailed(id=identifier) if identifier == self._probe_id:
                return [Ignored("the probe was refused, late")]
            case _:
                return [event]

    def _answered(self, opening: VersionNegotiation, result: Any) -> list[Event]:
        try:
            session = opening.answered(result)
        except McpError as error:
            return self._give_up(error)
        except RecursionError as error:
            return self._give_up(RemoteProtocolError(f"capabilities: {error_text(error)}"))
        if session is None:
            return [Send(self._step(opening), opens=True)]
        return self._agree(opening, session)

    def _drop_call(self, identifier: RequestId | None) -> None:
        """Forget a request of the opening: its answer tells nothing new."""
        if identifier is not None:
            self._state.calls.pop(identifier)

    def _agree(self, opening: VersionNegotiation, session: Session) -> list[Event]:
        self._drop_call(self._probe_id)
        self._opening = self._opening_id = self._probe_id = self._without_probe = None
        self._state.session = session
        events: list[Event] = []
        if opening.shook_hands:
            message = self._notifier.notification(session.revision, INITIALIZED, {})
            events.append(Send(message, opens=True))
        return [*events, Opened(session.revision)]

    def _opening_failed(self, opening: VersionNegotiation, error: McpError | None) -> list[Event]:
        try:
            opening.failed(error)
        except McpError as reason:
            return self._give_up(reason)
        return [Send(self._step(opening), opens=True)]

    def _give_up(self, error: McpError) -> list[Event]:
        self._opening = self._opening_id = None
        if not isinstance(error, TransportError):
            self._without_probe = None  # the server itself said no
        return [OpenFailed(error)]
