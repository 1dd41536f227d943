"""Shared by fault tests: revisions, clients, and the form that a failure must have."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import anyio
import pytest

from kit.http_process import SECONDS
from mcpgen_runtime import McpError


class Outcome:
    """How a call ended."""

    def __init__(self) -> None:
        self.ended = anyio.Event()
        self.value: Any = None
        self.failure: Exception | None = None

    async def run(self, call: Callable[[], Awaitable[Any]]) -> None:
        """Make the call."""
        try:
            self.value = await call()
        except Exception as error:
            self.failure = error
        self.ended.set()

    async def failed(self, *kinds: type[McpError]) -> str:
        """Wait until it has, by one of these errors; the text."""
        with anyio.fail_after(SECONDS):
            await self.ended.wait()
        assert self.failure is not None, self.value
        return text_of(self.failure, *kinds)

    async def text(self) -> str:
        """Wait for the text that the tool gave."""
        with anyio.fail_after(SECONDS):
            await self.ended.wait()
        if self.failure is not None:
            raise self.failure
        text: str = self.value.content[0].text
        return text


def text_of(error: Exception, *kinds: type[McpError]) -> str:
    """The text of an error, which has to be of this package, one line, and telling."""
    assert isinstance(error, kinds or McpError), repr(error)
    text = str(error)
    assert len(text.splitlines()) == 1, text
    assert len(text.split()) > 2, text
    assert "Error(" not in text, text
    return text


def check_quiet(caplog: pytest.LogCaptureFixture) -> None:
    """See that nothing in this process failed in a way that only the log tells."""
    loud = [
        record
        for record in caplog.get_records("call")
        if record.levelno >= logging.ERROR or record.exc_info
    ]
    assert loud == []


def refusals(call: Callable[[Any], object], cases: Iterable[Any]) -> list[str]:
    """The errors of a function that refuses each case, for a snapshot."""
    errors: list[str] = []
    for case in cases:
        with pytest.raises((TypeError, ValueError, LookupError)) as refused:
            call(case)
        errors.append(f"{type(refused.value).__name__}: {refused.value}")
    return errors
