"""A server that cannot be started leaves nothing open behind, and is told of safely."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import anyio
import pytest

from kit.processes import python, server
from mcpgen_runtime import ServerStartError
from mcpgen_runtime.server.stdio_server import open_stdio
from mcpgen_runtime.transports.process import open_process

pytestmark = pytest.mark.processes

SURROGATE = "\udc80\ud800"


def open_descriptors() -> set[int]:
    """The open descriptors of this process; opens none to find out."""
    descriptors: set[int] = set()
    for fd in range(1024):
        with suppress(OSError):
            os.fstat(fd)
            descriptors.add(fd)
    return descriptors


@pytest.fixture
def few_descriptors() -> Iterator[Callable[[int], None]]:
    """Lets this process open only so many more descriptors; undone in the end."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    held: list[int] = []

    def leave(number: int) -> None:
        limit = max(open_descriptors()) + 10
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
        try:
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            for _ in range(number):
                os.close(held.pop())

    yield leave
    resource.setrlimit(resource.RLIMIT_NOFILE, before)
    for fd in held:
        os.close(fd)


@pytest.mark.parametrize(
    ("command", "options", "error"),
    [
        (["echo", "a\0b"], {}, ValueError),
        (["echo\0"], {}, ValueError),
        (["echo", SURROGATE], {}, ValueError),
        (["echo", 7], {}, TypeError),
        (["echo"], {"env": {"A=B": "x"}}, ValueError),
        (["echo"], {"env": {"A": "x\0"}}, ValueError),
        (["echo"], {"env": {"A": 1}}, TypeError),
        (["echo"], {"env": 7}, TypeError),
        (["echo"], {"cwd": "a\0b"}, ValueError),
        (["echo"], {"cwd": 1.5}, TypeError),
        (["echo"], {"cwd": "/no/such/folder"}, ServerStartError),
        (["echo"], {"cwd": __file__}, ServerStartError),
        (["no-such-command"], {}, ServerStartError),
        ([__file__], {}, ServerStartError),
        (["/"], {}, ServerStartError),
        (["x" * 5000], {}, ServerStartError),
        (["echo", "x" * 3_000_000], {}, ServerStartError),
    ],
)
async def test_a_start_that_fails_closes_what_it_opened(
    command: Any, options: dict[str, Any], error: type[Exception]
) -> None:
    await anyio.sleep(0)
    before = open_descriptors()
    for _ in range(3):
        with pytest.raises(error):
            await open_process(command, **options)
    assert open_descriptors() == before


@pytest.mark.parametrize("left", range(8))
async def test_a_start_without_enough_descriptors_closes_those_it_got(
    few_descriptors: Callable[[int], None], left: int
) -> None:
    few_descriptors(left)
    before = open_descriptors()
    with pytest.raises(ServerStartError, match="too many open files"):
        await open_process(["echo"])
    assert open_descriptors() == before


async def test_a_start_without_threads_ends_the_process_and_closes_all() -> None:
    before = open_descriptors()
    size = threading.stack_size(1 << 46)
    try:
        with pytest.raises(ServerStartError, match="can't start new thread"):
            await open_process(python("sys.stdin.read()"))
    finally:
        threading.stack_size(size)
    assert open_descriptors() == before


async def test_a_start_that_is_cancelled_opens_nothing() -> None:
    before = open_descriptors()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await open_process(["echo"])
    assert scope.cancelled_caught
    assert open_descriptors() == before


async def test_an_error_names_the_command_and_not_the_variables() -> None:
    with pytest.raises(ValueError, match=r"'echo'.*embedded null byte") as caught:
        await open_process(["echo"], env={"TOKEN": "hunter2\0"})
    assert "hunter2" not in str(caught.value)


async def test_stderr_of_an_ended_server_is_escaped_and_truncated() -> None:
    harm = "'\\x1b[2J\\x07\\x9b' + 'x' * 5000"
    command = python(f"print({harm}, file=sys.stderr); sys.exit(3)", "# \x1b[2J")
    async with server(command, on_stderr=None) as channel:
        with pytest.raises(ServerStartError) as caught:
            await channel.receive()
    text = str(caught.value)
    assert text.replace("\n", "").isprintable()
    assert len(text) < 2000
    assert caught.value.stderr_tail[0].startswith("\x1b[2J")


@pytest.mark.parametrize("left", range(3))
async def test_standard_streams_that_cannot_be_taken_are_left_alone(
    few_descriptors: Callable[[int], None], left: int
) -> None:
    few_descriptors(left)
    before = open_descriptors()
    with pytest.raises(OSError, match="Too many open files"):
        open_stdio()
    assert open_descriptors() == before
