"""Server processes that do not bear the probe: started anew, once, and opened by `initialize`."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from kit.live import FakeServer, expect_refusal, open_and_close
from kit.wire import ALL, HANDSHAKE, PER_REQUEST
from mcpgen_runtime import (
    REVISIONS,
    RequestTimeoutError,
    RevisionError,
    ServerStartError,
    Timeouts,
    connect,
)

pytestmark = pytest.mark.processes

SCRIPT = str(Path(__file__).with_name("old_server.py"))
PINNED = "revision='handshake'"
PROBE, INITIALIZE = "server/discover", "initialize"
CONFIRMED = "notifications/initialized"
SOON = Timeouts(opening=3, probe=0.1)
"""With these a silent process has about 1.5 s, and a new one the rest."""


class Starts:
    """Process ids and messages that a server's processes recorded in a file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "starts"
        self._path.touch()
        self.env: Mapping[str, str] = {"STARTS": str(self._path)}

    @property
    def pids(self) -> list[int]:
        """Processes."""
        return [int(line) for line in self._path.read_text().split() if line.isdecimal()]

    @property
    def heard(self) -> list[str]:
        """Messages that were read, by whichever process."""
        return [line for line in self._path.read_text().split() if not line.isdecimal()]


@pytest.fixture
def starts(tmp_path: Path) -> Starts:
    return Starts(tmp_path)


def command(*arguments: str) -> list[str]:
    return [sys.executable, SCRIPT, *arguments]


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.requirement(
    "versioning.detect-stdio", "stdio.probe-legacy-fallback", revisions=PER_REQUEST
)
@pytest.mark.parametrize(
    ("failure", "heard"),
    [
        ("exits", [PROBE]),
        ("falls-silent", [PROBE]),
        ("stays-silent", [PROBE]),
        ("refuses", [PROBE, INITIALIZE]),
    ],
)
async def test_a_server_that_the_probe_ends_or_silences_is_restarted(
    failure: str, heard: list[str], starts: Starts
) -> None:
    with anyio.fail_after(10):
        async with connect(command(failure), env=starts.env, timeouts=SOON) as client:
            assert client.revision == "2024-11-05"
            assert await client.request("ping") is not None
    assert starts.heard == [*heard, INITIALIZE, CONFIRMED, "ping"]
    assert len(starts.pids) == 2
    assert not any(map(runs, starts.pids))


@pytest.mark.skipif(sys.platform == "win32", reason="signals and process groups of POSIX")
@pytest.mark.parametrize("failure", ["hangs", "closes-output"])
async def test_a_hanging_process_leaves_nothing_when_it_is_replaced(
    failure: str, starts: Starts
) -> None:
    with anyio.fail_after(20):
        timeouts = Timeouts(opening=6, probe=0.1)
        async with connect(command(failure), env=starts.env, timeouts=timeouts):
            first, child, second = starts.pids
            assert [runs(first), runs(child), runs(second)] == [False, False, True]


@pytest.mark.skipif(sys.platform == "win32", reason="pipes do not tell there what was read")
async def test_a_server_that_is_slow_to_start_is_waited_for(starts: Starts) -> None:
    slow = command("starts-slowly", "2.2")
    with anyio.fail_after(10):
        timeouts = Timeouts(opening=4, probe=0.1)
        async with connect(slow, env=starts.env, timeouts=timeouts) as client:
            assert client.revision == "2024-11-05"
    assert starts.heard == [PROBE, INITIALIZE, CONFIRMED]
    assert len(starts.pids) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="pipes do not tell there what was read")
async def test_a_server_that_ends_by_itself_is_started_once(starts: Starts) -> None:
    with anyio.fail_after(10), pytest.raises(ServerStartError) as failed:
        await expect_refusal(connect(command("ends-unasked"), env=starts.env))
    assert failed.value.stderr_tail == ("no API key",)
    assert PINNED not in str(failed.value)
    assert len(starts.pids) == 1


async def test_the_error_of_a_second_process_mentions_the_first(starts: Starts) -> None:
    with anyio.fail_after(10), pytest.raises(ServerStartError) as failed:
        await expect_refusal(connect(command("exits-always"), env=starts.env))
    error, text = failed.value, str(failed.value)
    assert (error.exit_code, error.stderr_tail) == (4, ("no handshake either",))
    assert text.index("no handshake either") < text.index("no such method: server/discover")
    assert "exit code 3" in text
    assert PINNED in text
    assert isinstance(error.__cause__, ServerStartError)
    assert len(starts.pids) == 2


async def test_the_log_names_the_setting_that_spares_a_second_start(
    starts: Starts, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        await open_and_close(connect([*command("exits"), "--token=hunter2"], env=starts.env))
    (line,) = [record.getMessage() for record in caplog.records]
    assert "started anew" in line
    assert PINNED in line
    assert "hunter2" not in line


async def test_endless_silence_names_the_setting_and_shows_stderr(starts: Starts) -> None:
    talks = (
        "import sys, time\n"
        "sys.stdin.readline(), sys.stdin.readline()  # the probe and `initialize`\n"
        "time.sleep(0.2)  # not at once, or the time would be 3 s, rounded\n"
        "print('busy', file=sys.stderr, flush=True), sys.stdin.read()"
    )
    timeouts = Timeouts(opening=3, probe=0.1)
    with anyio.fail_after(20), pytest.raises(RequestTimeoutError) as failed:
        await expect_refusal(connect([sys.executable, "-c", talks], timeouts=timeouts))
    assert failed.value.seconds > 3  # what it writes begins the time anew
    text = str(failed.value)
    assert text.startswith("opening the session with ")
    assert f"no answer within {failed.value.seconds:g} s" in text
    assert "busy" in text
    assert PINNED in text


@pytest.mark.parametrize("failure", ["exits", "falls-silent", "stays-silent"])
async def test_a_client_that_is_pinned_to_the_handshake_sends_no_probe(
    failure: str, starts: Starts
) -> None:
    async with connect(command(failure), revision="handshake", env=starts.env) as client:
        assert client.revision == "2024-11-05"
    assert starts.heard == [INITIALIZE, CONFIRMED]
    assert len(starts.pids) == 1


@pytest.mark.parametrize("spoken", HANDSHAKE)
async def test_the_handshake_pin_takes_any_revision_with_a_session(spoken: str) -> None:
    server = FakeServer(spoken)
    async with connect(server, revision="handshake") as client:
        assert client.revision == spoken
    assert [message["method"] for message in server.opening] == [INITIALIZE, CONFIRMED]


def test_a_package_without_a_handshake_has_no_pin_for_it() -> None:
    lifecycle = REVISIONS[PER_REQUEST[-1]].lifecycle
    modern = REVISIONS.of(lifecycle)
    with pytest.raises(RevisionError, match="has a handshake"):
        modern.select("handshake")
    assert list(REVISIONS.select("handshake")) == list(HANDSHAKE)
    assert list(REVISIONS.select(None)) == list(ALL)
    assert list(REVISIONS.select(PER_REQUEST[-1])) == [PER_REQUEST[-1]]
