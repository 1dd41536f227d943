"""Serving over HTTP as a process: the command line, its one line, signals, and a quick end."""

from __future__ import annotations

import json
import re
import signal
import socket
import sys
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from kit.raw_http import head, whole
from kit.web_process import REVISION, SERVE, rest, run, start_server, until
from kit.wire import HANDSHAKE, SESSIONS, encode_message, initialize
from mcpgen_runtime.__main__ import main
from mcpgen_runtime.server.asgi.uvicorn_adapter import parse_address
from requirements import EVERY_REVISION

pytestmark = pytest.mark.costly

LISTEN = {"notifications": {"toolsListChanged": True}}


@pytest.mark.requirement("transport-security.bind-localhost", revisions=EVERY_REVISION)
@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("argv", [SERVE, ("web.py",)], ids=["command line", "server.run"])
def test_it_says_where_it_serves_and_ends_with_a_signal(
    folder: Path, argv: tuple[str, ...], by: int
) -> None:
    with start_server(folder, *argv) as server:
        assert (server.host, server.path) == ("127.0.0.1", "/mcp")
        answer = until(server.ask(whole(server.port, REVISION, "server/discover")), b'"jsonrpc"')
        assert answer.startswith(b"HTTP/1.1 200")
        assert b"server: uvicorn" not in answer.lower()
        code, out, err, took = server.end(by)
    assert (code, out, err) == (0, "", "left\n")
    assert took < 5


@pytest.mark.requirement("lifecycle.shutdown-http", revisions=SESSIONS[-1:])
def test_open_streams_are_ended_and_do_not_hold_it_up(folder: Path) -> None:
    with start_server(folder) as server:
        listening = server.ask(whole(server.port, REVISION, "subscriptions/listen", LISTEN))
        until(listening, b"acknowledged")
        body = encode_message(initialize(SESSIONS[-1]))
        opened = server.ask(head(server.port, {"Content-Length": str(len(body))}) + body)
        session = re.search(rb"(?i)mcp-session-id: (\S+)", until(opened, b'"jsonrpc"'))
        assert session is not None
        fields = {"Mcp-Session-Id": session[1].decode(), "Accept": "text/event-stream"}
        stream = server.ask(head(server.port, fields, method="GET"))
        until(stream, b"text/event-stream")
        idle = server.ask(b"POST /mcp")
        code, _, err, took = server.end()
        assert b'"result"' in rest(listening)
        rest(stream)
        rest(idle)
    assert (code, err) == (0, "left\n")
    assert took < 5


def test_a_request_that_is_done_soon_is_answered_before_the_end(folder: Path) -> None:
    with start_server(folder) as server:
        calling = server.call("slow", seconds=0.2)
        server.says("slow begins")
        code, _, err, _ = server.end()
        answer = rest(calling)
    assert (code, err) == (0, "left\n")
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"done" in answer


def test_a_second_interrupt_waits_for_nobody(folder: Path) -> None:
    text = (folder / "web.py").read_text().replace("drain=0.3", "drain=600")
    (folder / "web.py").write_text(text)
    with start_server(folder) as server:
        listening = server.ask(whole(server.port, REVISION, "subscriptions/listen", LISTEN))
        until(listening, b"acknowledged")
        calling = server.call("slow", seconds=600)
        server.says("slow begins")
        server.process.send_signal(signal.SIGINT)
        assert b'"result"' in rest(listening)  # the first one is being handled
        code, _, err, took = server.end(signal.SIGINT)
        rest(calling)
    assert (code, err) == (0, "left\n")
    assert took < 10


def test_a_lifespan_that_fails_ends_it_with_what_it_raised(folder: Path) -> None:
    done = run(folder, *SERVE, FAIL="1")
    assert done.returncode == 2
    assert done.stderr.endswith("RuntimeError: no database\n")
    assert done.stderr.count("Traceback") == 1
    assert "serving at" not in done.stderr


MISTAKES = """
--http 8000
--http 127.0.0.1:70000
--http nobody.invalid:0
--http :0 --path mcp
--http :0 --backend trio
--http :0 --hosts a/b
--http :0 --workers 0
--http :0 --workers 2 --sse
--http :0 --workers 1 --stateless --sse
--http :8000 --workers 2 --reload
--http :0 --reload
--http 8000 --reload
--reload
--stateless
--sse
announce web tools x --shared redis://127.0.0.1:1
announce web tools --shared redis://127.0.0.1:1
announce web x: --shared x
"""


def test_a_mistake_on_the_command_line_gets_one_readable_line(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    snapshot: SnapshotAssertion,
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "web", None)  # which is forgotten later
    del sys.modules["web"]
    lines = []
    for words in filter(None, MISTAKES.splitlines()):
        with pytest.raises(SystemExit) as ended:
            main((words if "announce" in words else f"serve web {words}").split())
        out, err = capsys.readouterr()
        assert (ended.value.code, out) == (2, "")
        assert err.startswith("usage: ") or err.count("\n") == 1
        said = re.sub("(?<=invalid:0: ).*", "...", err.splitlines()[-1])
        lines.append(f"{words} -> {said}")
    assert lines == snapshot


def test_names_on_the_command_line_are_served_and_others_are_not(folder: Path) -> None:
    with start_server(folder, *SERVE, "--hosts", "mcp.example.com, localhost") as server:
        for host, status in ((b"mcp.example.com", b"405"), (b"127.0.0.1", b"403")):
            asked = b"PUT /mcp HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\n\r\n" % host
            assert until(server.ask(asked), b"\r\n").startswith(b"HTTP/1.1 " + status)


def test_a_place_that_is_taken_or_a_missing_package_gets_one_readable_line(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run(folder, "-m", "mcpgen_runtime", "serve", "web", "--http", place)
    assert done.returncode == 2
    assert done.stderr == f"error: can't listen at {place}: address already in use\n"
    code = (
        "import sys; sys.modules['uvicorn'] = None\n"
        "from mcpgen_runtime.__main__ import main\n"
        "main(['serve', 'web', '--http', '127.0.0.1:0'])\n"
    )
    done = run(folder, "-c", code)
    assert done.returncode == 2
    assert done.stderr.startswith("error: serving over HTTP needs the package 'uvicorn'")
    assert done.stderr.count("\n") == 1


def test_the_two_endpoints_of_the_older_transport_stand_beside(folder: Path) -> None:
    with start_server(folder, *SERVE, "--sse", "--path", "/here") as server:
        assert server.path == "/here"
        request = f"GET /sse HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n".encode()
        stream = server.ask(request)
        place = re.search(rb"data: (/messages\S+)", until(stream, b"session_id="))
        assert place is not None
        body = encode_message(initialize(HANDSHAKE[0]))
        post = head(server.port, {"Content-Length": str(len(body))}) + body
        posted = server.ask(post.replace(b"/mcp", place[1]))
        assert until(posted, b"\r\n\r\n").startswith(b"HTTP/1.1 202")
        answer = until(stream, b'"jsonrpc"')
        assert HANDSHAKE[0].encode() in answer
        assert server.end()[0] == 0


def test_an_address_has_a_host_and_a_port() -> None:
    for text, expected in (
        ("127.0.0.1:8000", ("127.0.0.1", 8000)),
        (":8000", ("127.0.0.1", 8000)),
        ("[::1]:0", ("::1", 0)),
        ("my-host:65535", ("my-host", 65535)),
    ):
        assert parse_address(text) == expected
    wrong = ["", "8000", "host", "host:", "host:-1", "host:65536", "host:000080", "host:1e3"]
    for text in (*wrong, "host:\u0663", "::1:80"):
        with pytest.raises(ValueError, match="expected HOST:PORT"):
            parse_address(text)


def test_a_trace_has_what_comes_and_what_goes(folder: Path) -> None:
    trace = folder / "trace.jsonl"
    with start_server(folder, MCP_TRACE=str(trace)) as server:
        listening = server.ask(whole(server.port, REVISION, "subscriptions/listen", LISTEN))
        until(listening, b"acknowledged")
        answer = server.ask(whole(server.port, REVISION, "server/discover", id="two"))
        until(answer, b'"jsonrpc"')
        assert server.end()[0] == 0
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    assert {line["channel"] for line in lines} == {"server"}
    told = [
        (line["direction"], line["message"].get("method"), line["message"].get("id"))
        for line in lines
    ]
    assert told == [
        ("received", "subscriptions/listen", 1),
        ("sent", "notifications/subscriptions/acknowledged", None),
        ("received", "server/discover", "two"),
        ("sent", None, "two"),
        ("sent", None, 1),
    ]


def test_a_trace_that_cannot_be_written_is_said_at_once(folder: Path) -> None:
    done = run(folder, *SERVE, MCP_TRACE=str(folder / "no" / "trace"))
    assert done.returncode != 0
    assert "MCP_TRACE" in done.stderr
