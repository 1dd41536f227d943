"""Streams of events of one worker that a client has resumed at another worker.

    client -> GET, Last-Event-ID -> a worker -> the stored and the following events -> client
                                             -> StreamFollowed, each second -> the writer

The name of a stream begins with the id of the worker that writes it. If the writer is not alive any
more, its requests get no response, so the reading worker ends the stream with an error. The store
accepts one end only, so neither several readers nor a slow writer add a second end.

Source: basic/transports#resumability-and-redelivery (to 2025-11-25).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import anyio

from ...channel import RequestId
from ...errors import INTERRUPTED, InternalError
from ...facts import Revision
from ...protocol.requests import error_response
from ..asgi.event_store import EventStore, StoredEvents
from ..asgi.resumable_stream import ResumableStream
from .bus import SharedStateError
from .worker import SharedWorker, StreamFollowed

logger = logging.getLogger(__name__)

FOLLOWED_SECONDS = 3.0
"""Seconds for which a client counts as reading a stream after each `StreamFollowed`."""

SEPARATOR = "."
"""Follows the id of a worker in ids of requests and in names of streams."""

_LETTER_SECONDS = 1.0  # between two letters to the writer
_LISTENING = "l"  # before the number in the name of a stream opened by GET
_LOST = "the process that served the request is gone; it may have been acted on"


def stream_name(prefix: str, number: int, *, listening: bool) -> str:
    """The name of a stream.

    Args:
        prefix: The common prefix of the streams of a session at a worker.
        number: The number of the stream.
        listening: Whether the stream was opened by GET.
    """
    return f"{prefix}-{_LISTENING if listening else ''}{number}"


def is_listening(name: str) -> bool:
    """Whether the name of a stream says that the stream was opened by GET."""
    return name.rpartition("-")[2].startswith(_LISTENING)


def lost_message(requests: Sequence[RequestId], revision: Revision) -> bytes:
    """The error responses to requests whose worker is gone; empty without requests."""
    error = InternalError(_LOST, data=INTERRUPTED)
    errors = [error_response(each, error, revision).data for each in requests]
    return errors[0] if len(errors) == 1 else b"[%b]" % b",".join(errors) if errors else b""


class FollowedStream(ResumableStream):
    """A stream of another worker. This worker only reads the stream, or ends it."""

    async def follow(
        self, stored: StoredEvents | None, worker: SharedWorker, revision: Revision, client: str
    ) -> None:
        """Write the stored events to the client until the stream ends or the client is gone.

        Args:
            stored: The first events.
            worker: This worker.
            revision: The revision of the session.
            client: The client of the session; see `SessionRecord`.
        """
        assert self._store is not None
        try:
            while stored is not None and self.connected:
                async with self._turns:
                    await self._replay(stored.events)
                if stored.over:
                    return
                await self._notify_writer(stored, self._store, worker, revision, client)
                stored = await self._store.wait(self._session, stored.cursor)
        except SharedStateError as error:
            logger.debug("%s", error)  # the client will resume again
        except Exception:
            logger.exception("the event store failed, so a stream is not followed")
        finally:
            self.stop()

    async def _notify_writer(
        self,
        stored: StoredEvents,
        store: EventStore,
        worker: SharedWorker,
        revision: Revision,
        client: str,
    ) -> None:
        """Tell the writer that its client reads; end the stream if the writer is gone."""
        now = anyio.current_time()
        if now < self.followed_until:
            return
        self.followed_until = now + _LETTER_SECONDS
        failure = lost_message(stored.requests, revision)
        letter = StreamFollowed(self._session, self.name, failure)
        if not await worker.send(self.name.partition(SEPARATOR)[0], letter, client):
            await store.finish(self._session, self.name, failure)
