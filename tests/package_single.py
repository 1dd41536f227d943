"""Does what the README says, as a user would: generate, write its files, run and serve them."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from documents import README, ROOT, blocks_of, examples

FOR_HTTP = re.compile(r"^for HTTP also: pip install (.*)$", re.MULTILINE)
MISSING = re.compile(r".* needs the package '(\S+)': pip install \1")
SERVING = re.compile(r"serving at (http://\S+)\n")
SECONDS = 300
SERVE = [sys.executable, "-m", "pkg", "serve"]
NOWHERE = "http://127.0.0.1:9/mcp"
FORECAST = "Oslo: sun for 3 days"
BOOKED = "SK 4035: row 12, aisle"
NO_FORMS = "needs the capability elicitation"


def run(command: list[str], folder: Path) -> str:
    """Run a command and return its output; its failure ends this run."""
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, timeout=SECONDS)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def complaint(command: list[str], folder: Path) -> str:
    """The last line that a command says on standard error; that it fails is expected."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS)
    if not done.returncode:
        sys.exit(f"{' '.join(command)}: expected it to fail, got\n{done.stdout}")
    return done.stderr.strip().rpartition("\n")[2]


def expect(what: str, wanted: str, got: str) -> None:
    """End this run unless a text is part of another."""
    if wanted not in got:
        sys.exit(f"{what}: expected {wanted!r}, got {got!r}")


@contextmanager
def serve_module(target: str, folder: Path) -> Iterator[str]:
    """The URL at which a module's server is served over HTTP meanwhile, at a free port."""
    command = [*SERVE, target, "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        killer = threading.Timer(SECONDS, process.kill)
        killer.start()
        try:
            assert process.stderr is not None
            told = process.stderr.readline()
            match = SERVING.fullmatch(told)
            if match is None:
                sys.exit(f"{' '.join(command)}: expected 'serving at URL', got {told!r}")
            yield match[1]
            process.terminate()
            expect(f"{target}, told to end", "0", str(process.wait(SECONDS)))
        finally:
            killer.cancel()
            process.kill()


def write_package(mcpgen: str, folder: Path, revision: str) -> set[str]:
    """Generate a package, and write the documents' files beside it; what HTTP needs."""
    folder.mkdir(parents=True, exist_ok=True)
    printed = run([mcpgen, "--revision", revision, "--features", "sync", "-o", "pkg"], folder)
    for name, text in examples().items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    match = FOR_HTTP.search(printed)
    if match is None:
        sys.exit(f"mcpgen: expected the packages that HTTP needs, got {printed!r}")
    return set(match[1].split())


def go_without_extras(mcpgen: str, folder: Path, revision: str, extras: set[str]) -> None:
    """The README up to HTTP, and what is said when HTTP is tried too early."""
    printed = run([sys.executable, "client.py"], folder)
    expect("client.py", FORECAST, printed)
    run([mcpgen, "check", "pkg"], folder)
    serving_too_early = [*SERVE, "server:server", "--http", "127.0.0.1:0"]
    for command in (serving_too_early, [sys.executable, "remote.py", NOWHERE]):
        told = complaint(command, folder)
        missing = MISSING.fullmatch(told)
        if missing is None or missing[1] not in extras:
            sys.exit(f"{' '.join(command)}: expected to be told of one of {extras}, got {told!r}")
    print(f"{revision}: {printed.strip()}")


def go_over_http(mcpgen: str, folder: Path, revision: str) -> None:
    """Run the examples of the documents for HTTP, over real sockets."""
    with serve_module("server:server", folder) as url:
        printed = run([sys.executable, "remote.py", url], folder).strip()
    expect("remote.py", f"{revision} {FORECAST}", printed)
    run([mcpgen, "update", "pkg", "--features", "+elicitation"], folder)
    with serve_module("booking:server", folder) as url:
        command = [sys.executable, "guest.py", url]
        clients = (folder / "pkg").glob("r*/client.py")
        if any("elicit(" in path.read_text("utf-8") for path in clients):
            expect("guest.py", BOOKED, run(command, folder))
        else:
            expect("guest.py", NO_FORMS, complaint(command, folder))
    told = complaint([sys.executable, "guest.py", url], folder)
    expect("guest.py without a server", f"no connection to {url}", told)
    print(f"{revision} over HTTP: {printed}")


def readme_commands() -> Iterator[str]:
    """The commands of the README that write a package or use it."""
    blocks = [block for block in blocks_of(README) if block.language == "sh"]
    lines = [line for block in blocks for line in block.text.splitlines()]
    yield from (line for line in lines if "../scratch/pkg" in line or line.startswith("uv run"))


def run_as_printed(target: Path, programs: list[str]) -> None:
    """Run the README's commands that write a package, and its client in each of the packages."""
    *writing, calling = readme_commands()
    for number, line in enumerate(writing):
        program = line.partition(" ")[0]
        if program not in programs:
            continue
        if not shutil.which(program):
            print(f"{program} is not installed: {line}")
            continue
        scratch = target / str(number)
        run(["sh", "-e", "-c", line.replace("../scratch", f"{scratch}")], ROOT)
        for name in ("server.py", "client.py"):
            (scratch / name).write_text(examples()[name], "utf-8")
        local = f"PATH={scratch / 'env' / 'bin'}:$PATH python client.py"
        command = local if program == "python3" else calling
        expect(line, FORECAST, run(["sh", "-c", command], scratch))
        print(f"{line}: {FORECAST}")


def main(mcpgen: str, target: str, revisions: list[str]) -> None:
    """Go through the README once per revision, each in a package of its own."""
    for module in ("mcpgen", "uvicorn", "aiohttp", "httpx2"):
        if importlib.util.find_spec(module):
            sys.exit(f"expected an environment without {module}")
    scripts = Path(sys.executable).parent
    os.environ["PATH"] = f"{scripts}{os.pathsep}{os.environ['PATH']}"  # as `activate` does
    folders = {revision: Path(target) / revision for revision in revisions}
    extras: set[str] = set()
    for revision, folder in folders.items():
        extras = write_package(mcpgen, folder, revision)
        go_without_extras(mcpgen, folder, revision, extras)
    run([sys.executable, "-m", "pip", "install", "-q", *sorted(extras)], Path(target))
    for revision, folder in folders.items():
        go_over_http(mcpgen, folder, revision)


if __name__ == "__main__":
    if sys.argv[1] == "--as-printed":
        with TemporaryDirectory() as folder:
            run_as_printed(Path(folder), sys.argv[2:])
    else:
        main(sys.argv[1], sys.argv[2], sys.argv[3:])
