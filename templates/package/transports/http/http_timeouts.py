"""Timeouts and pauses of a client's HTTP transports. Loads no HTTP."""

from __future__ import annotations

import msgspec


class HttpTimeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Timeouts and pauses of Streamable HTTP and of HTTP+SSE, in seconds.

    Attributes:
        accept: For a server to accept a message whose response, if any, comes another way.
        endpoint: For a server of HTTP+SSE to send the address for messages.
        renewal: For a server to open another session in place of a lost one.
        ending: For the request that ends a session.
        linger: For reading a stream after its response: if the stream ends, the connection can be
            used again.
        first_pause: Before a stream is resumed, unless the server stated a time (`retry`).
        longest_pause: Limit of that pause; it doubles with each attempt in a row that failed.
        shortest_pause: Least pause, whatever the server stated. While connections end without a
            message, the pause doubles.
        longest_poll: Limit of that doubling; the server may ask for a longer pause.
        longest_retry: Limit of the pause that a server may ask for.

    Source: basic/transports (sending, listening, resumability and redelivery).
    """

    accept: float = 30.0
    endpoint: float = 5.0
    renewal: float = 30.0
    ending: float = 2.0
    linger: float = 1.0
    first_pause: float = 0.5
    longest_pause: float = 30.0
    shortest_pause: float = 0.1
    longest_poll: float = 5.0
    longest_retry: float = 3600.0


HTTP_TIMEOUTS = HttpTimeouts()
"""The defaults."""
