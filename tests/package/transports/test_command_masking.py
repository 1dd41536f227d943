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

SECRET = "hunter2-Zx81"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--api-key=" + SECRET], "--api-key=***"),
        (["--token", SECRET], "--token ***"),
        (["--access_token", SECRET, "--port", "80"], "--access_token *** --port 80"),
        (["--token", "-" + SECRET], "--token ***"),
        (["--token", "--password", SECRET], "--token *** ***"),
        (["-H", "Authorization: Bearer " + SECRET], "-H Authorization: ***"),
        (["--header", "X-Custom:" + SECRET], "--header X-Custom: ***"),
        (["--header=Cookie: a=" + SECRET], "--header=Cookie: ***"),
        (["-e", "GITHUB_PERSONAL_ACCESS_TOKEN=" + SECRET], "-e GITHUB_PERSONAL_ACCESS_TOKEN=***"),
        (["env", "API_KEY=" + SECRET, "npx"], "env API_KEY=*** npx"),
        (["--env=DB_PASSWORD=a b " + SECRET], "--env=DB_PASSWORD=***"),
        (["postgres://me:" + SECRET + "@db/x"], "postgres://***@db/x"),
        (["https://" + SECRET + "@host/x"], "https://***@host/x"),
        (["https://host/mcp?a=1&api_key=" + SECRET], "https://host/mcp?a=1&api_key=***"),
        (['{"port": 1, "apiKey": "' + SECRET + '"}'], '{"port": 1, "apiKey": "***'),
        (["Bearer " + SECRET], "Bearer ***"),
        (["ghp_" + SECRET.replace("-", "") * 3], "***"),
        (["sk-" + SECRET * 3], "***"),
        (["--pat", SECRET], "--pat ***"),
        (["--key=" + SECRET], "--key=***"),
        (["npx server --token " + SECRET + " -v"], "npx server --token *** -v"),
    ],
)
def test_a_secret_of_a_command_is_not_shown(words: Sequence[str], shown: str) -> None:
    text = masked_command(["server", *words, "--verbose"])
    assert text == f"server {shown} --verbose"


@pytest.mark.parametrize(
    "words",
    [
        ["npx", "-y", "@modelcontextprotocol/server-filesystem@0.6.2", "/home/me/author=x"],
        ["uvx", "mcp-server-auth", "--port", "8000", "--max-tokens", "5"],
        ["python", "-m", "keyring.server", "--token-file", "/run/token", "--key-file=/run/key"],
        ["sh", "-c", "serve --token-file /run/token --port 80"],
        ["docker", "run", "-i", "--rm", "-v", "data:/data", "image:latest"],
        ["mcp-remote", "https://auth.example.com:8080/mcp?a=1", "--transport", "http-only"],
        ["node", "monkey.js", "--keyboard", "us"],
    ],
    ids=lambda words: words[0],
)
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
