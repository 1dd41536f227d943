"""The quickstarts of the specification, server and client, with a package of each revision."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from kit.pages import serve_pages

PROGRAMS = Path(__file__).parent / "quickstart"
SERVER, CLIENT = "weather_server.py", "weather_client.py"
EXPECTED = """\
{revision} get_alerts get_forecast
Are there alerts in California? Wind until six
What is the weather in Sacramento? Tonight: Clear
"""


def _answer(request: BaseHTTPRequestHandler) -> tuple[str, str]:
    """The responses of the weather service, which are always the same."""
    host = f"http://{request.headers['Host']}"
    answers = {
        "alerts": {"features": [{"properties": {"headline": "Wind until six"}}]},
        "points": {"properties": {"forecast": f"{host}/gridpoints/1"}},
        "gridpoints": {
            "properties": {"periods": [{"name": "Tonight", "detailedForecast": "Clear"}]}
        },
    }
    return "application/json", json.dumps(answers[request.path.split("/")[1]])


def works(revision: str) -> bool:
    """Whether the client answers its questions by the server, with a package of one revision."""
    with tempfile.TemporaryDirectory() as folder, serve_pages(_answer) as url:
        words = ("-m", "mcpgen", "-q", "-r", revision, "-o", f"{folder}/mcpgen_runtime")
        subprocess.run([sys.executable, *words], check=True)
        for name in (SERVER, CLIENT):
            shutil.copy(PROGRAMS / name, folder)
        done = subprocess.run(
            [sys.executable, CLIENT, SERVER, url],
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
        return done.stdout == EXPECTED.format(revision=revision)


def lines() -> dict[str, int]:
    """The lines of the two programs, which are the same for all revisions."""
    return {
        name: len((PROGRAMS / name).read_text("utf-8").splitlines()) for name in (SERVER, CLIENT)
    }
