"""nginx, HAProxy and Caddy as processes, each with one listener.

The programs are named by MCP_NGINX, MCP_HAPROXY and MCP_CADDY; MCP_PROXY_LIBRARIES is a folder
with shared libraries that they need, if they are not where the system has them. `nox -s proxies`
sets all four.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from kit.http_process import Process

Ports: TypeAlias = Mapping[str, int]
"""Where the servers listen, by name."""

SECONDS = 20.0
_PAUSE = 0.05


@dataclass(frozen=True)
class Route:
    """A way through a proxy, under a path of its own."""

    name: str
    server: str
    version: str = "1.1"
    seconds: int | None = None


class Proxy:
    """A proxy that runs."""

    def __init__(self, process: Process, port: int) -> None:
        self._process = process
        self._port = port

    def url(self, route: Route) -> str:
        """Where clients find the server behind a route."""
        return f"http://127.0.0.1:{self._port}/{route.name}/mcp"

    def lines(self, route: Route) -> list[str]:
        """The lines that the proxy has logged of the requests that took a route."""
        return [line for line in self._process.lines if f"/{route.name}/" in line]


@contextmanager
def nginx(folder: Path, routes: Sequence[Route], ports: Ports) -> Iterator[Proxy]:
    """Run nginx, with the defaults of its directives but for what the routes say."""
    port = free_port()
    locations = "\n".join(_location(each, ports[each.server]) for each in routes)
    server = f"server {{\nlisten 127.0.0.1:{port};\n{locations}\n}}"
    with nginx_server(folder, server, port) as process:
        yield Proxy(process, port)


@contextmanager
def nginx_server(
    folder: Path, text: str, port: int, words: Sequence[str] = ("-g", "daemon off;")
) -> Iterator[Process]:
    """Run nginx with the text of a file as images have it in `conf.d`."""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    folders = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    (folder / "nginx.conf").write_text(f"""
master_process off;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
access_log off;
{folders}
{text}
}}
""")
    program = os.environ["MCP_NGINX"]
    files = ("-e", "stderr", "-p", f"{folder}", "-c", f"{folder}/nginx.conf")
    with _run_process((program, *files, *words), port) as process:
        yield process


def _location(route: Route, port: int) -> str:
    limit = "" if route.seconds is None else f"proxy_read_timeout {route.seconds}s;"
    return (
        f"location /{route.name}/ {{ proxy_pass http://127.0.0.1:{port}/; "
        f"proxy_http_version {route.version}; {limit} }}"
    )


@contextmanager
def haproxy(folder: Path, routes: Sequence[Route], ports: Ports) -> Iterator[Proxy]:
    """Run HAProxy. It has no limits by default, so the routes have a usual one: 30 s."""
    port = free_port()
    rules = "\n".join(f"use_backend {each.name} if {{ path_beg /{each.name}/ }}" for each in routes)
    backends = "\n".join(_backend(each, ports[each.server]) for each in routes)
    text = f"""
global
    log stderr format raw local0
defaults
    mode http
    log global
    option httplog
    timeout connect 5s
    timeout client 30s
    timeout server 30s
frontend clients
    bind 127.0.0.1:{port}
    {rules}
{backends}
"""
    with haproxy_server(folder, text, port) as process:
        yield Proxy(process, port)


@contextmanager
def haproxy_server(folder: Path, text: str, port: int) -> Iterator[Process]:
    """Run HAProxy with the text of its file; see `nginx_server`."""
    (folder / "haproxy.cfg").write_text(text)
    command = (os.environ["MCP_HAPROXY"], "-db", "-f", f"{folder}/haproxy.cfg")
    with _run_process(command, port) as process:
        yield process


@contextmanager
def caddy_server(folder: Path, text: str, port: int) -> Iterator[Process]:
    """Run Caddy with the text of a Caddyfile; see `nginx_server`."""
    here = "{\nadmin off\ndefault_bind 127.0.0.1\n}\n"
    (folder / "Caddyfile").write_text(here + text)
    command = (os.environ["MCP_CADDY"], "run", "--config", f"{folder}/Caddyfile")
    names: Sequence[str] = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
    homes: dict[str, str] = dict.fromkeys(names, f"{folder}")
    with _run_process((*command, "--adapter", "caddyfile"), port, homes) as process:
        yield process


def _backend(route: Route, port: int) -> str:
    limit = "" if route.seconds is None else f"timeout server {route.seconds}s"
    return f"""
backend {route.name}
    http-request replace-path /{route.name}/(.*) /\\1
    {limit}
    server only 127.0.0.1:{port}
"""


@contextmanager
def _run_process(
    command: Sequence[str], port: int, env: Mapping[str, str] = {}
) -> Iterator[Process]:
    libraries = os.environ.get("MCP_PROXY_LIBRARIES")
    process = Process(command, env if libraries is None else {**env, "LD_LIBRARY_PATH": libraries})
    try:
        wait_for(process, port)
        yield process
    finally:
        process.kill()


def wait_for(process: Process, port: int) -> None:
    """Wait until a process listens."""
    deadline = time.monotonic() + SECONDS
    while process.runs and time.monotonic() < deadline:
        with suppress(OSError), closing(socket.create_connection(("127.0.0.1", port))):
            return
        time.sleep(_PAUSE)
    raise AssertionError(f"it does not listen at port {port}: {process.lines}")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
