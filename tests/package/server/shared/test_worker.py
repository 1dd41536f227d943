"""A worker without clients: how it reads changes, and how it tells others of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from kit.live import App, names_back
from kit.simulation import on_virtual_clock
from mcpgen_runtime import Changes, MemoryBus, MemorySessionStore, SharedState, SharedStateError
from mcpgen_runtime.errors import InvalidParamsError
from mcpgen_runtime.server.shared.worker import Announcement, ClientMessage, SharedWorker

pytestmark = [pytest.mark.processes, pytest.mark.workers, on_virtual_clock]

UPDATED = "notifications/resources/updated"


class Engine(MemoryBus):
    """An engine whose changes are read from a script of answers, which ends with silence."""

    def __init__(self, *answers: Changes | None) -> None:
        super().__init__()
        self.answers = [*answers]
        self.worker: SharedWorker | None = None
        self.reads: list[tuple[float, str | None, bool]] = []
        self.ended = anyio.Event()
        self.refusals = 0
        self.refused: list[float] = []
        self.published: list[bytes] = []
        self.two_published = anyio.Event()

    async def changes(self, cursor: str | None) -> Changes:
        assert self.worker is not None
        self.reads.append((anyio.current_time(), cursor, self.worker.is_reading))
        if not self.answers:
            self.ended.set()
            await anyio.sleep_forever()
        if (answer := self.answers.pop(0)) is None:
            raise SharedStateError("it is away")
        return answer

    async def publish(self, change: bytes) -> None:
        if len(self.refused) < self.refusals:
            self.refused.append(anyio.current_time())
            raise SharedStateError("it is away")
        await super().publish(change)
        self.published.append(change)
        if len(self.published) == 2:
            self.two_published.set()


class Sessions:
    """The sessions of a worker."""

    def __init__(self, *failures: Exception) -> None:
        self.reloads = 0
        self.letters: list[Any] = []
        self._failures = [*failures]

    async def handle_letter(self, letter: Any) -> None:
        self.letters.append(letter)
        if self._failures:
            raise self._failures.pop(0)

    async def reload(self) -> None:
        self.reloads += 1

    async def client_of(self, identifier: str) -> None:
        return None


def make_worker(engine: Engine, sessions: Sessions | None = None) -> SharedWorker:
    """A worker of an engine."""
    worker = SharedWorker(App(names_back).service, SharedState(engine, MemorySessionStore()))
    worker.handler, engine.worker = sessions, worker
    return worker


@asynccontextmanager
async def running(engine: Engine) -> AsyncIterator[None]:
    """Run the worker of an engine, from the end of the script on."""
    assert engine.worker is not None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(engine.worker.run)
        await engine.ended.wait()
        await anyio.wait_all_tasks_blocked()
        yield
        tasks.cancel_scope.cancel()


async def test_an_engine_that_comes_and_goes_is_logged_each_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = Engine(Changes("1"), Changes("2"), None, None, Changes("3"), Changes("4"), None)
    make_worker(engine)
    async with running(engine):
        pass
    away = "it is away; other workers hear of changes later"
    assert caplog.messages == [away, "the engine of the shared state is back", away]
    begun = engine.reads[0][0]
    assert [(time - begun, is_reading) for time, _, is_reading in engine.reads] == [
        *((0, False), (0, True), (0, True), (0.5, False)),
        *((1, False), (1, True), (1, True), (1.5, False)),
    ]


async def letter_of(letter: Any) -> bytes:
    """A letter as it is published."""
    engine = Engine()
    await make_worker(engine).publish(letter)
    return engine.published[0]


async def test_a_call_of_a_revision_that_is_not_served_has_no_client() -> None:
    with pytest.raises(InvalidParamsError, match=r"expected a call of .*, got '1999-01-01'"):
        await make_worker(Engine()).client_of(None, "1999-01-01", {}, None)


@pytest.mark.parametrize(
    ("answers", "failures", "reloads", "handled"),
    [
        ("a", (), 1, 0),
        ("a b1 c1", (), 1, 2),
        ("a b1 gap c1", (), 2, 2),
        ("a b2 c1", (SharedStateError("away"),), 2, 2),
        ("a b2 c1", (ValueError("wrong"),), 1, 3),
        ("a away b1", (), 1, 1),
    ],
)
async def test_sessions_are_reloaded_when_changes_may_be_missing(
    answers: str, failures: tuple[Exception, ...], reloads: int, handled: int
) -> None:
    letter = await letter_of(ClientMessage("s", b"body"))
    script: list[Changes | None] = []
    for word in answers.split():
        count = int(word[1:]) if word[1:].isdigit() else 0
        script.append(
            None if word == "away" else Changes(word[0], [letter] * count, gap=word == "gap")
        )
    sessions, engine = Sessions(*failures), Engine(*script)
    make_worker(engine, sessions)
    async with running(engine):
        assert (sessions.reloads, len(sessions.letters)) == (reloads, handled)
        assert all(each == ClientMessage("s", b"body") for each in sessions.letters)


async def test_announcements_wait_for_the_engine_one_for_each_subject() -> None:
    engine, service = Engine(), App(names_back).service
    worker = SharedWorker(service, SharedState(engine, MemorySessionStore()))
    engine.worker, engine.refusals = worker, 3
    async with running(engine):
        begun = anyio.current_time()
        for uri in ("a:1", "a:2", "a:1"):
            service.announcer.announce(UPDATED, {"uri": uri})
        await engine.two_published.wait()
        assert [time - begun for time in engine.refused] == [0, 0.5, 1]
        expected = [Announcement(worker.id, UPDATED, {"uri": uri}) for uri in ("a:2", "a:1")]
        assert engine.published == [await letter_of(each) for each in expected]


async def test_an_announcement_about_a_subject_names_it_alone() -> None:
    engine, service = Engine(), App(names_back).service
    engine.worker = worker = SharedWorker(service, SharedState(engine, MemorySessionStore()))
    loaded: list[str] = []

    async def load(subject: str) -> None:
        loaded.append(subject)

    worker.load_subject = load
    name, wire = "notifications/tasks", {"taskId": "t", "result": {"content": ["x" * 10_000]}}
    async with running(engine):
        service.announcer.announce(name, wire, "t")
        await anyio.wait_all_tasks_blocked()
        expected = Announcement(worker.id, name, {"taskId": "t"}, "t")
        assert engine.published == [await letter_of(expected)]
    other = await letter_of(Announcement("other", name, {"taskId": "t"}, "t"))
    engine.answers = [Changes("1", [other])]
    async with running(engine):
        assert loaded == []  # no client of this worker subscribed to it


async def test_messages_of_another_form_are_counted_in_the_log_each_ten_seconds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    worker = make_worker(engine := Engine())
    async with running(engine):
        begun = anyio.current_time()
        for seconds in (0, 0, 9.5, 10, 20):
            await anyio.sleep_until(begun + seconds)
            await engine.send(worker.id, b"")
        await anyio.wait_all_tasks_blocked()
    assert [each.partition(" of another form")[0] for each in caplog.messages] == [
        f"{count} messages" for count in (1, 3, 1)
    ]


async def test_of_1001_announcements_the_oldest_is_dropped() -> None:
    engine, service = Engine(), App(names_back).service
    engine.worker = SharedWorker(service, SharedState(engine, MemorySessionStore()))
    async with running(engine):
        for number in range(1001):
            service.announcer.announce(UPDATED, {"uri": f"a:{number}"})
        await engine.two_published.wait()
        await anyio.wait_all_tasks_blocked()
        announced = [Announcement(engine.worker.id, UPDATED, {"uri": f"a:{n}"}) for n in (1, 1000)]
        assert len(engine.published) == 1000
        first_and_last = [engine.published[0], engine.published[-1]]
        assert first_and_last == [await letter_of(each) for each in announced]
