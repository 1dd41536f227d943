"""Settings of a client: its description, timeouts and bounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..channel import OPEN_REQUESTS
from ..errors import HttpStatusError
from ..json_schema import VALIDATION_SECONDS
from ..runtime.peer import CONCURRENT_REQUESTS, UNMATCHED_SECONDS
from ..runtime.time_limits import HTTP_TIMEOUTS, HttpTimeouts


@dataclass(frozen=True)
class Caching:
    """Bounds of a response cache.

    Attributes:
        entries: Results at a time; the least recently used ones are dropped.
        size: Bytes of all results, as JSON.
        clock: A monotonic clock, in seconds.
    """

    entries: int = 512
    size: int = 16 * 2**20
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True)
class Timeouts:
    """Timeouts of a client, in seconds.

    Attributes:
        opening: For opening the session, including a restart of the process without the probe.
            Output of a process on standard error restarts this timeout.
        longest_opening: For opening the session with a process, regardless of its output on
            standard error; `opening` if that is longer.
        probe: For the response to the probe, which distinguishes newer from older servers. A
            process that has read the probe and is still silent halfway between `probe` and
            `opening` is restarted.
        limit: For the response to a call with a timeout of its own, regardless of progress.
        listing: For all pages of a list together, besides the timeout of each page.
        validation: For validating a tool's result by its output schema, if the call has no
            timeout; a call with a timeout may use the rest of that.
        connect: For an HTTP connection.
        silence: Between two parts of an HTTP response; event streams may be silent for longer.
        body: For the whole body of an HTTP response that is not an event stream.
        unmatched: For open requests, after a response came that may be theirs and that nobody can
            read, or match with a request; progress of a request ends this.
        restore: For each request that is repeated after the server has lost the session.
        retries: Pauses before each retry of an idempotent request whose response was lost, and of
            a request that opens the session and that a proxy refused.
        http: Further timeouts and pauses of the HTTP transports.

    Source: basic/lifecycle (timeouts); 2026-07-28: basic/patterns/cancellation (timeouts).
    """

    opening: float = 60.0
    longest_opening: float = 300.0
    probe: float = 5.0
    limit: float = 3600.0
    listing: float = 300.0
    validation: float = VALIDATION_SECONDS
    connect: float = 10.0
    silence: float = 60.0
    body: float = 600.0
    unmatched: float = UNMATCHED_SECONDS
    restore: float = 10.0
    retries: tuple[float, ...] = (0.0, 0.5, 1.0, 2.0)
    http: HttpTimeouts = HTTP_TIMEOUTS

    def pause_after(self, refusal: HttpStatusError | None, pause: float | None) -> float | None:
        """Seconds until a request is sent again, of the server or otherwise the next pause.

        `None` if it is not: there were too many attempts, or the server wants too long a pause.
        """
        if pause is None or refusal is None or refusal.retry_after is None:
            return pause
        seconds = max(pause, refusal.retry_after)
        return seconds if seconds <= self.http.refused else None


@dataclass(frozen=True)
class ClientLimits:
    """Bounds on the work and the storage that a server can cause in a client.

    Attributes:
        input_rounds: Rounds in a row in which a server may ask for input.
        list_pages: Pages of a list.
        list_items: Items of a list, over all its pages.
        tools: Tools whose output schemas, parameter headers and annotations are stored.
        elicitations: URL mode elicitations that may be pending.
        open_requests: Requests that may be open at a time over HTTP; further ones wait.
    """

    input_rounds: int = 16
    list_pages: int = 10_000
    list_items: int = 100_000
    tools: int = 10_000
    elicitations: int = 1000
    open_requests: int = OPEN_REQUESTS


@dataclass(frozen=True)
class ClientSettings:
    """All settings of a client, besides those of its transport.

    Attributes:
        timeouts: Timeouts.
        limits: Bounds.
        cache: Bounds of the response cache; `None` for no cache.
        extra: Whether the objects of results keep members that their schemas do not define.
        max_concurrent_requests: Handlers that may run at a time.
        options: The options of `connect`, for features.
        target: The target of `connect`, likewise; `None` for one that is not known.
        server: The name of the server in a configuration; empty for others.
    """

    timeouts: Timeouts = Timeouts()
    limits: ClientLimits = ClientLimits()
    cache: Caching | None = field(default_factory=Caching)
    extra: bool = False
    max_concurrent_requests: int = CONCURRENT_REQUESTS
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    target: object = None
    server: str = ""


@dataclass(frozen=True)
class Identity:
    """The client's description of itself, as wire objects.

    Attributes:
        info: An `Implementation`: name, version and further members.
        capabilities: Capabilities to declare besides those that the handlers imply.
    """

    info: Mapping[str, Any]
    capabilities: Mapping[str, Any]
