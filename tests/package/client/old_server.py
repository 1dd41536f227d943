"""A server that does not bear what comes before `initialize`, as a script."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FAILURES = (
    "exits",  # at once, when the probe comes
    "falls-silent",  # when the probe comes, and exits when the next message does
    "stays-silent",  # from the probe on, to the end of its input
    "hangs",  # likewise, and beyond: it heeds neither the end of its input nor SIGTERM
    "closes-output",  # when the probe comes, and hangs
    "refuses",  # the probe with an error, and exits when `initialize` comes
    "exits-always",  # whatever comes
    "ends-unasked",  # before it reads anything
    "starts-slowly",  # reads nothing for as many seconds as its second argument says
)


def note(text: object) -> None:
    """Add a line to the file."""
    with Path(os.environ["STARTS"]).open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


def say(message: dict[str, Any], **members: Any) -> None:
    """Answer a request."""
    answer = {"jsonrpc": "2.0", "id": message["id"], **members}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def hang() -> None:
    """Go on whatever happens, with a child that does the same."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)"
    note(subprocess.Popen([sys.executable, "-c", child]).pid)
    time.sleep(60)


def close_output() -> None:
    """Close standard output, and hang."""
    os.close(1)
    hang()


def react_to_probe(failure: str, message: dict[str, Any]) -> None:
    """Reaction of the server to a message before `initialize`, by the kind of failure."""
    print(f"no such method: {message['method']}", file=sys.stderr, flush=True)
    act: dict[str, Callable[[], object]] = {
        "exits": lambda: sys.exit(3),
        "exits-always": lambda: sys.exit(3),
        "falls-silent": lambda: (sys.stdin.readline(), sys.exit(3)),
        "stays-silent": lambda: (sys.stdin.read(), sys.exit(0)),
        "hangs": hang,
        "closes-output": close_output,
        "refuses": lambda: say(message, error={"code": -32601, "message": "no"}),
        "starts-slowly": lambda: say(message, error={"code": -32601, "message": "no"}),
    }
    act[failure]()


def main(failure: str) -> None:
    """Serve."""
    note(os.getpid())
    if failure == "ends-unasked":
        sys.exit("no API key")
    if failure == "starts-slowly":
        time.sleep(float(sys.argv[2]))
    was_probed = False
    for line in sys.stdin:
        message = json.loads(line)
        note(message["method"])
        if message["method"] == "initialize" and not (failure == "refuses" and was_probed):
            if failure == "exits-always":
                print("no handshake either", file=sys.stderr, flush=True)
                sys.exit(4)
            info = {"name": "old", "version": "1"}
            agreed = {"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": info}
            say(message, result=agreed)
        elif message["method"] == "initialize":
            sys.exit(3)
        elif message["method"] == "ping":
            say(message, result={})
        elif "id" in message:
            was_probed = True
            react_to_probe(failure, message)


if __name__ == "__main__":
    main(sys.argv[1])
