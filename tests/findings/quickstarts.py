"""The quickstarts of the specification, server and client, with a package of each revision."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

PROGRAMS = Path(__file__).parent / "quickstart"
SERVER, CLIENT = "weather_server.py", "weather_client.py"
EXPECTED = """\
{revision} get_alerts get_forecast
Are there alerts in California? Wind until six
What is the weather in Sacramento? Tonight: Clear
"""


class _Weather(BaseHTTPRequestHandler):
    """Answers as the weather service does, always the same."""

    def do_GET(self) -> None:
        """The answer for a path."""
        host = f"http://{self.headers['Host']}"
        answers = {
            "alerts": {"features": [{"properties": {"headline": "Wind until six"}}]},
            "points": {"properties": {"forecast": f"{host}/gridpoints/1"}},
            "gridpoints": {
                "properties": {"periods": [{"name": "Tonight", "detailedForecast": "Clear"}]}
            },
        }
        body = json.dumps(answers[self.path.split("/")[1]]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@contextmanager
def _service() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Weather) as service:
        thread = Thread(target=service.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{service.server_port}"
        finally:
            service.shutdown()
            thread.join()


def works(revision: str) -> bool:
    """Whether the client answers its questions by the server, with a package of one revision."""
    with tempfile.TemporaryDirectory() as folder, _service() as url:
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
