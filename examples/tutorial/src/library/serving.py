"""The command `python -m library`, which serves over HTTP with `--http HOST:PORT`."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from .protocol import RouteRequest, Server, StaticTokens
from .server import server


@server.custom_route("/health")
async def health(request: RouteRequest) -> str:
    """Answer the health check of the image or of a load balancer."""
    return "ok"


def create_server() -> Server:
    """The server; each process of `--workers` imports this function by name."""
    return server


def main() -> None:
    """Run the server."""
    parser = argparse.ArgumentParser(prog="library")
    parser.add_argument(
        "--http",
        metavar="HOST:PORT",
        help="serve over HTTP at this address",
    )
    parser.add_argument(
        "--hosts",
        metavar="NAME[,NAME...]",
        default=os.environ.get("MCP_HOSTS"),
        help="names and addresses that clients reach the server by over HTTP, such as "
        "mcp.example.com (MCP_HOSTS in the environment)",
    )
    parser.add_argument(
        "--workers",
        metavar="N",
        type=int,
        default=int(os.environ.get("MCP_WORKERS", "1")),
        help="processes that serve over HTTP; more than one serve without sessions "
        "(MCP_WORKERS in the environment)",
    )
    parser.add_argument(
        "--auth",
        metavar="FILE",
        default=os.environ.get("MCP_AUTH"),
        help="a JSON file with the access tokens that are accepted over HTTP, and whose each is: "
        '{"token": "alice"} (MCP_AUTH in the environment)',
    )
    chosen = parser.parse_args()
    hosts: list[str] | None = None
    if chosen.hosts:
        hosts = [*(name.strip() for name in chosen.hosts.split(",")), "127.0.0.1"]  # health checks
    auth = StaticTokens(json.loads(Path(chosen.auth).read_text("utf-8"))) if chosen.auth else None
    if chosen.http is None:
        server.run()
    elif chosen.workers > 1:
        Server.run_workers(create_server, chosen.workers, http=chosen.http, hosts=hosts, auth=auth)
    else:
        server.run(http=chosen.http, hosts=hosts, auth=auth)
