"""Commands are shown in errors without the secrets among their words."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

from kit.live import expect_refusal
from kit.stdio_process import script
from kit.wire import HANDSHAKE
from mcpgen_runtime import RequestTimeoutError, ServerStartError, Timeouts, connect
from mcpgen_runtime.command_masking import COMMAND_TEXT, masked_command
from mcpgen_runtime.transports.process import open_process
from package.tables import table

SECRET = "hunter2-Zx81"


@pytest.mark.parametrize(("words", "shown"), table("command_masking")["masked"])
def test_a_secret_of_a_command_is_not_shown(words: Sequence[str], shown: str) -> None:
    text = masked_command(["server", *words, "--verbose"])
    assert text == f"server {shown} --verbose"


@pytest.mark.parametrize("words", table("command_masking")["shown"])
def test_words_that_are_no_secrets_are_not_masked(words: Sequence[str]) -> None:
    assert masked_command(words) == " ".join(words)


def test_a_command_is_shown_within_bounds_and_on_one_line() -> None:
    text = masked_command(["python", "-c", "x = 1\n" * 10_000, *["word"] * 10_000])
    assert len(text) < COMMAND_TEXT + 50
    assert text.isprintable()


SECRETIVE = ["--api-key=" + SECRET, "--token", SECRET]


async def test_errors_of_the_opening_do_not_show_secrets() -> None:
    silent = [*script("import sys; sys.stdin.read()"), *SECRETIVE]
    dies = [*script("raise SystemExit(3)"), *SECRETIVE]
    no_command = ["no-such-command", *SECRETIVE]
    one_word = [" ".join(no_command)]
    for command, kind in (
        (silent, RequestTimeoutError),
        (dies, ServerStartError),
        (no_command, ServerStartError),
        (one_word, ServerStartError),
    ):
        with anyio.fail_after(20), pytest.raises(kind) as failed:
            timeouts = Timeouts(opening=0.5 if command is silent else 10)
            async with connect(command, revision=HANDSHAKE[-1], timeouts=timeouts):
                pytest.fail("it is no server")
        assert SECRET not in str(failed.value)
        assert ("--api-key=***" if command is one_word else "--api-key=*** --token ***") in str(
            failed.value
        )
        assert failed.value.__cause__ is None or SECRET not in str(failed.value.__cause__)
        if isinstance(failed.value, ServerStartError):
            assert failed.value.argv == tuple(command)


async def test_a_text_in_the_place_of_a_command_is_not_shown_whole() -> None:
    text: str = " ".join(["npx", "server", *SECRETIVE])
    with pytest.raises(ValueError, match=r"--api-key=\*\*\* --token \*\*\*"):
        await open_process(text)
    with pytest.raises(TypeError, match=r"--api-key=\*\*\* --token \*\*\*"):
        await expect_refusal(connect(text))
