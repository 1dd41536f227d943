"""What POSTs need that take long: a stream that is never silent, and a look if the client left.

Most POSTs are over before it is their turn, and pay nothing for it. In a session a client that
closes its connection cancels nothing: its call goes on, but leaves its place among those in flight
to others, and has so many seconds till the client is back.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Protocol

import anyio
from msgspec import Struct

from ...runtime.pending_requests import PARTING_SECONDS
from .lifespan import TaskScope
from .load import Load
from .post_response import SessionResponse
from .settings import Limits

logger = logging.getLogger(__name__)

_SECONDS = 15.0
_GLANCE = 0.25  # seconds between two looks at all calls, however many come meanwhile


class Work(Protocol):
    """What is done for the message of a client, or for a batch.

    Attributes:
        places: How many places among those in flight it takes.
    """

    places: int

    @property
    def attended(self) -> bool:
        """Whether its client is there."""
        ...

    async def give_up(self, text: str) -> None:
        """Cancel it, and let the client find an error if it comes back."""
        ...


class _Abandoned(Struct):
    deadline: float
    given_up: bool = False


class LongCalls:
    """The POSTs of sessions being served now.

    Args:
        background: Runs what watches for clients that leave.
        load: Where places are taken and given back.
        limits: How much goes on for clients that left, and for how long.
        keep_alive: Seconds of silence after which a stream is opened, or gets a comment; `None` for
            never.
    """

    def __init__(
        self, background: TaskScope, load: Load, limits: Limits, keep_alive: float | None
    ) -> None:
        self._background = background
        self._load = load
        self._limits = limits
        # The task that looks after a POST is there before it has been silent for too long.
        self._pause = _SECONDS if keep_alive is None else keep_alive / 2
        self._answers: dict[SessionResponse, Work] = {}
        self._abandoned: OrderedDict[Work, _Abandoned] = OrderedDict()
        self._places = 0  # of what is abandoned and not given up
        self._added = anyio.Event()
        self._next_look = 0.0
        load.relieve = self.look

    def add(self, answer: SessionResponse, work: Work) -> None:
        """Look after a POST."""
        self._answers[answer] = work

    def discard(self, answer: SessionResponse, work: Work) -> None:
        """Look after it no more."""
        del self._answers[answer]
        self.end(work)

    def look(self) -> None:
        """See soon which clients have left, since places are needed."""
        now = anyio.current_time()
        if now >= self._next_look:
            self._next_look = now + _GLANCE
            for answer in list(self._answers):
                self._watch(answer)

    def abandon(self, work: Work) -> None:
        """Count work no more as in flight: its client left, or has its answer already."""
        self._load.in_flight -= work.places
        self._abandoned[work] = _Abandoned(self._deadline())
        self._places += work.places
        while self._places > self._limits.abandoned and self.give_up_first("abandoned"):
            pass
        self._added.set()

    def end(self, work: Work) -> None:
        """Take note that work is done; it has its places again till its POST is over."""
        abandoned = self._abandoned.pop(work, None)
        if abandoned is not None:
            self._load.in_flight += work.places
            if not abandoned.given_up:
                self._places -= work.places

    async def give_up_all(self, text: str) -> None:
        """Cancel all work, and let its clients find an error that says why."""
        works = dict.fromkeys([*self._answers.values(), *self._abandoned])
        async with anyio.create_task_group() as tasks:
            for work in works:
                tasks.start_soon(_safely, _give_up_soon, work, text)

    def give_up_first(self, limit: str) -> bool:
        """Cancel the work that was abandoned first, of that whose client is not back."""
        for work, abandoned in self._abandoned.items():
            if not abandoned.given_up and not work.attended:
                self._give_up(work, limit)
                return True
        return False

    async def attend_connections(self) -> None:
        """Have each POST watched that takes long, until cancelled."""
        while True:
            await anyio.sleep(self._pause)
            for answer in list(self._answers):
                self._watch(answer)

    async def attend_abandoned(self) -> None:
        """Cancel what was abandoned for too long, until cancelled."""
        while True:
            if not self._abandoned:
                self._added = anyio.Event()
                await self._added.wait()
            work, first = next(iter(self._abandoned.items()))
            if first.deadline > anyio.current_time():
                await anyio.sleep_until(first.deadline)
            elif work.attended:
                first.deadline = self._deadline()
                self._abandoned.move_to_end(work)
            else:
                self._give_up(work, "abandoned_seconds")

    def _deadline(self) -> float:
        return anyio.current_time() + self._limits.abandoned_seconds

    def _give_up(self, work: Work, limit: str) -> None:
        abandoned = self._abandoned[work]
        if not abandoned.given_up:
            abandoned.given_up = True
            self._places -= work.places
        abandoned.deadline = self._deadline()  # once more, if it takes no notice
        self._abandoned.move_to_end(work)
        text = f"the client was not there for its answer (Limits.{limit})"
        self._background.start_soon(_safely, work.give_up, text)

    def _watch(self, answer: SessionResponse) -> None:
        if not answer.watched:
            answer.watched = True
            self._background.start_soon(_safely, self._until_left, answer)

    async def _until_left(self, answer: SessionResponse) -> None:
        left = await answer.watch()
        work = self._answers.get(answer)
        if left and work is not None:
            self.abandon(work)


async def _give_up_soon(work: Work, text: str) -> None:
    """Give work up; its client has a second to read the error."""
    with anyio.move_on_after(PARTING_SECONDS):
        await work.give_up(text)


async def _safely(work: Callable[..., Awaitable[None]], *arguments: object) -> None:
    """Do what no other call may suffer from: some servers raise errors of their own."""
    try:
        await work(*arguments)
    except Exception as error:
        logger.debug("a connection failed: %r", error)
