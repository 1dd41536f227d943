"""The option `--reload` of `serve`: a child process, replaced after each change of a Python file.

Directories are watched one by one. Links are not followed and the number of directories is bounded,
so that neither a link to `/` nor a huge tree takes time, memory, or the watches that the system has
for all programs of the user. The child process ends when this process ends, for any reason.
"""

# The types of an optional library are unknown where the library is not installed.
# mypy: disable-error-code="import-not-found"
# pyright: reportMissingImports=false, reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

from ...errors import MissingExtraError
from .serve_command import AddOption, fail
from .serve_http import SERVE_BY, ServeBy, serve_here

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

    from watchfiles import Change

WATCHED_DIRECTORIES = 4000
"""Most directories that are watched; those nearest to the first one."""

_PAUSE_SECONDS = 0.25  # without a change, before a new process starts
_STORM_SECONDS = 5.0  # after which one starts even though files go on changing
_END_SECONDS = 5.0  # for a process to end by SIGTERM; then it is killed
_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages"})
_CHILD_SECONDS = 10.0  # for the process of --reload to end, after the one that started it


def add_options(add: AddOption) -> None:
    """Add the option `--reload`."""
    add(
        "--reload",
        dest=SERVE_BY,
        action=ServeBy,
        nargs=0,
        const=_serve,
        help="start the process anew when a Python file below the current directory changes",
    )


def _serve(target: str, options: dict[str, Any]) -> None:
    """Serve in a child process, which is replaced after each change of a file.

    Clients keep their connection to the address; those with a session open another one, as after
    every restart of a server.
    """
    from ..asgi.uvicorn_adapter import address_of

    if importlib.util.find_spec("watchfiles") is None:
        fail(str(MissingExtraError("--reload", "watchfiles")))
    try:
        _, port = address_of("serve", options.get("http"), None, None)
    except ValueError as error:
        fail(str(error))
    if port == 0:
        fail("--reload: expected a port other than 0, so that clients find the new process")

    try:
        serve_again(partial(_serve_child, target, options), Path.cwd())
    except OSError as error:
        fail(f"--reload: can't watch the directories below {Path.cwd()}: {error}")


def _serve_child(target: str, options: dict[str, Any]) -> None:
    from ..asgi.child_process import end_with_parent

    end_with_parent(_CHILD_SECONDS)
    serve_here(target, options)


def serve_again(serve: Callable[[], None], root: Path) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        serve: The function that the child process calls; pickled.
        root: The directory to watch, with its subdirectories.

    Raises:
        OSError: The system can't watch so many directories.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    process = _start(serve)
    try:
        while True:
            directories = watched_directories(root)
            if len(directories) == WATCHED_DIRECTORIES:
                text = f"--reload: only {WATCHED_DIRECTORIES} directories below {root} are watched"
                print(text, file=sys.stderr, flush=True)
            _wait_for_change(directories)
            _end(process)
            process = _start(serve)
    except KeyboardInterrupt:
        pass
    finally:
        _end(process)


def watched_directories(root: Path) -> list[Path]:
    """The directories to watch: no links, no hidden ones, no virtual environments."""
    directories = [root]
    waiting = deque(directories)
    while waiting:
        directory = waiting.popleft()
        try:
            with os.scandir(directory) as entries:
                names = [each.name for each in entries if each.is_dir(follow_symlinks=False)]
        except OSError:  # it is not readable, or was removed
            continue
        for path in (directory / name for name in sorted(names) if _is_watched(name)):
            if len(directories) == WATCHED_DIRECTORIES:
                return directories
            if not (path / "pyvenv.cfg").exists():
                directories.append(path)
                waiting.append(path)
    return directories


def _wait_for_change(directories: list[Path]) -> None:
    """Wait until a Python file has changed or a directory was added, and changes have ceased."""
    import watchfiles

    is_python = watchfiles.PythonFilter()

    def is_relevant(change: Change, path: str) -> bool:
        is_directory = change == watchfiles.Change.added and Path(path).is_dir()
        return (is_directory and _is_watched(Path(path).name)) or is_python(change, path)

    latest: float | None = None  # when the wait ends, once something has changed
    try:
        for changes in watchfiles.watch(
            *directories,
            watch_filter=is_relevant,
            rust_timeout=int(_PAUSE_SECONDS * 1000),
            yield_on_timeout=True,
            recursive=False,
            ignore_permission_denied=True,
        ):
            now = time.monotonic()
            if changes and latest is None:
                latest = now + _STORM_SECONDS
            elif latest is not None and (not changes or now >= latest):
                return
    except FileNotFoundError:  # a directory is gone already
        return


def _is_watched(name: str) -> bool:
    return not name.startswith(".") and name not in _SKIPPED


def _start(serve: Callable[[], None]) -> SpawnProcess:
    import multiprocessing  # loads slowly

    process = multiprocessing.get_context("spawn").Process(target=serve)
    process.start()
    return process


def _end(process: SpawnProcess) -> None:
    process.terminate()
    process.join(_END_SECONDS)
    if process.is_alive():
        process.kill()
        process.join()


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
