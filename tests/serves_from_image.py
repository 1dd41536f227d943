"""The image of a project, without a container: each step of its Dockerfile, in an environment."""

from __future__ import annotations

import http.client
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

PUBLIC = "mcp.example.com"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
SECONDS = 60
OF_CONTAINERS = ("EXPOSE", "FROM", "USER", "WORKDIR")
"""Instructions that say how a container is made, and not what is in it."""


def build(project: Path, python: str, folder: Path) -> tuple[list[str], list[str]]:
    """Take the steps of the Dockerfile in a folder."""
    command: list[str] = []
    check: list[str] = []
    for line in (project / "Dockerfile").read_text("utf-8").splitlines():
        instruction, _, rest = line.partition(" ")
        match instruction:
            case "COPY":
                *sources, target = shlex.split(rest)
                for each in sources:
                    copy(project / each, folder / target)
            case "RUN" if rest.startswith("pip "):
                run = [python, "-m", *shlex.split(rest), "-q"]
                subprocess.run(run, cwd=folder, check=True)
            case "RUN":
                assert rest.startswith("useradd "), f"a step that this program can't take: {line}"
            case "CMD":
                program, *words = json.loads(rest)
                assert program == "python", line
                command = [python, *words]
            case "HEALTHCHECK":
                kind, _, words_of_check = rest.partition(" ")
                program, *words = json.loads(words_of_check)
                assert (kind, program) == ("CMD", "python"), line
                check = [python, *words]
            case _:
                assert instruction in OF_CONTAINERS, f"a step that this program can't take: {line}"
    shutil.rmtree(folder / "src")  # what runs is what was installed
    return command, check


def copy(source: Path, target: Path) -> None:
    """Copy a file into a folder, or the content of a folder."""
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


def status(port: int, host: str) -> int:
    """The status of the answer to a first request that has a field `Host`."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    fields = {
        "Host": host,
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
    }
    connection.request("POST", "/mcp", json.dumps(INITIALIZE), fields)
    try:
        return connection.getresponse().status
    finally:
        connection.close()


def main(project: Path, python: str, folder: Path) -> None:
    """Build, start, ask, stop."""
    folder.mkdir()
    command, check = build(project, python, folder)
    [address] = [word for word in command if word.endswith(":8000")]
    command[command.index(address)] = "127.0.0.1:0"
    environment = {**os.environ, "MCP_HOSTS": PUBLIC, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        line = next((line for line in process.stderr if "http://127.0.0.1:" in line), "")
        assert line, "the server ended before it served"
        port = int(line.partition("http://127.0.0.1:")[2].partition("/")[0])
        answers = {host: status(port, host) for host in (PUBLIC, "evil.example.com")}
        assert answers == {PUBLIC: 200, "evil.example.com": 403}, answers
        subprocess.run([word.replace(":8000/", f":{port}/") for word in check], check=True)
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
    finally:
        process.kill()
        process.wait()
    print("serves behind", PUBLIC)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
