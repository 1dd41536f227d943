"""A principal at standard streams: the same handlers, and no tokens."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import mcpgen_runtime
from kit.wire import INITIALIZED, SESSIONS, initialize, request
from mcpgen_runtime import Principal, Server
from requirements import EVERY_REVISION, requirement

SERVER = """
import os
from mcpgen_runtime import Context, Principal, Server

server = Server("local")

@server.tool(scopes=["files:write"])
async def write(ctx: Context) -> str:
    return f"{ctx.principal.subject} {ctx.principal.token}"

server.run(principal=%s)
"""


@requirement("auth-flow.stdio-environment", revisions=EVERY_REVISION)
@pytest.mark.parametrize(
    ("principal", "answer"),
    [
        ('Principal.local(token=os.environ["ACME_TOKEN"])', "local secret-1"),
        ('Principal("bob", scopes={"files:write"})', "bob None"),
        ("None", "write' needs the scopes files:write"),
    ],
)
def test_a_local_server_serves_on_behalf_of_its_principal(
    tmp_path: Path, principal: str, answer: str
) -> None:
    (tmp_path / "server.py").write_text(SERVER % principal)
    call = request(SESSIONS[-1], "tools/call", {"name": "write", "arguments": {}})
    lines = [json.dumps(each) for each in (initialize(SESSIONS[-1]), INITIALIZED, call)]
    done = subprocess.run(
        [sys.executable, "server.py"],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={
            "PYTHONPATH": str(Path(mcpgen_runtime.__file__).parent.parent),
            "ACME_TOKEN": "secret-1",
        },
        timeout=60,
        check=True,
    )
    assert answer in done.stdout.splitlines()[-1]


def test_over_http_each_request_is_authenticated_instead() -> None:
    with pytest.raises(ValueError, match="principal: expected auth instead"):
        Server("s").run(http="127.0.0.1:0", principal=Principal.local())
