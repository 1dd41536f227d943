"""Streams of events that one worker writes, and another one reads to a client that resumed there.

    client -> GET, Last-Event-ID -> a worker -> the stored events, and those to come -> client
                                             -> StreamFollowed, each second -> the writer

The name of a stream begins with the worker that writes it. A writer that is not alive any more has
left its requests without response: who reads the stream then ends it with an error. The store takes
one end only, so neither several readers nor a writer that was only slow write a second one.

Source: basic/transports#resumability-and-redelivery (to 2025-11-25).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import anyio

from ...channel import RequestId
from ...errors import InternalError
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
"""After the id of a worker, in ids of requests and in names of streams."""

_LETTER_SECONDS = 1.0  # between two to the writer
_LISTENING = "l"  # before the number, in the name of a stream opened by GET
_LOST = "the process that served the request is gone; it may have been acted on"


def stream_name(prefix: str, number: int, *, listening: bool) -> str:
    """The name of a stream.

    Args:
        prefix: What the streams of a session at a worker begin with.
        number: The number of the stream.
        listening: Whether it was opened by GET.
    """
    return f"{prefix}-{_LISTENING if listening else ''}{number}"


def is_listening(name: str) -> bool:
    """Whether a stream was opened by GET, by its name."""
    return name.rpartition("-")[2].startswith(_LISTENING)


def lost_message(requests: Sequence[RequestId], revision: Revision) -> bytes:
    """The error responses to requests whose worker is gone; nothing if there are none."""
    error = InternalError(_LOST)
    errors = [error_response(each, error, revision).data for each in requests]
    return errors[0] if len(errors) == 1 else b"[%b]" % b",".join(errors) if errors else b""


class FollowedStream(ResumableStream):
    """A stream of another worker. Nothing is added to it here, but for its end."""

    async def follow(
        self, stored: StoredEvents | None, worker: SharedWorker, revision: Revision
    ) -> None:
        """Write events until the stream has ended, or the client is gone.

        Args:
            stored: The first events.
            worker: This worker.
            revision: The revision of the session.
        """
        assert self._store is not None
        try:
            while stored is not None and self.connected:
                async with self._lock:
                    await self._replay(stored.events)
                if stored.over:
                    return
                await self._notify_writer(stored, self._store, worker, revision)
                stored = await self._store.wait(self._session, stored.cursor)
        except SharedStateError as error:
            logger.debug("%s", error)  # the client resumes once more
        except Exception:
            logger.exception("the event store failed, so a stream is not followed")
        finally:
            self.stop()

    async def _notify_writer(
        self, stored: StoredEvents, store: EventStore, worker: SharedWorker, revision: Revision
    ) -> None:
        """Tell the writer that its client is there; end the stream of one that is gone."""
        now = anyio.current_time()
        if now < self.followed_until:
            return
        self.followed_until = now + _LETTER_SECONDS
        failure = lost_message(stored.requests, revision)
        letter = StreamFollowed(self._session, self.name, failure)
        if not await worker.send(self.name.partition(SEPARATOR)[0], letter):
            await store.finish(self._session, self.name, failure)
