"""An authorization server by nanoidp on loopback, in its strictest profile; prints its issuer."""

from __future__ import annotations

import json
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from nanoidp.app import create_app  # type: ignore[import-untyped] # it has no types
from werkzeug.serving import make_server

TABLE = Path(__file__).parent / "tables" / "nanoidp.json"


def settings(issuer: str, resource: str) -> Any:
    text = TABLE.read_text("utf-8").replace("ISSUER", issuer)
    return json.loads(text.replace("RESOURCE", resource))


def main(resource: str) -> None:
    users = {"alice": {"password": "wonderland"}, "bob": {"password": "builder"}}
    with (
        tempfile.TemporaryDirectory() as name,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        issuer = f"http://127.0.0.1:{listener.getsockname()[1]}"
        folder = Path(name)
        documents = {
            "settings.yaml": settings(issuer, resource) | {"jwt": {"keys_dir": f"{folder}/keys"}},
            "users.yaml": {"config_version": 1, "users": users},
        }
        for file, document in documents.items():
            (folder / file).write_text(json.dumps(document))  # JSON is YAML
        app = create_app(name, strict_config=True)
        server = make_server("127.0.0.1", 0, app, True, fd=listener.fileno())
        print(issuer, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())  # leaves no folder behind
    main(*sys.argv[1:])
