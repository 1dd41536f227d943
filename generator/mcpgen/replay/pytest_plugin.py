"""The plugin of pytest: traces as tests, by `--mcp-traces DIR` or by the fixture `mcp_replay`.

    pytest --mcp-traces traces --mcp-server "python server.py"

Each session of each `*.jsonl` in the folder is a test. Values are compared as `rules.toml` in the
folder says, where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:  # reading traces costs import time
    from mcpgen.replay.recording import Session

RULES_FILE = "rules.toml"


class TraceDiffersError(AssertionError):
    """A server does not answer as it was recorded; the text is the report."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, and the settings that stand for them."""
    group = parser.getgroup("mcpgen")
    group.addoption(
        "--mcp-traces", metavar="DIR", help="Play the traces (*.jsonl) in this folder as tests."
    )
    group.addoption(
        "--mcp-server",
        metavar="TARGET",
        help="The server that they are played to, as for mcpgen replay --against.",
    )
    parser.addini("mcp_traces", "Folder with traces that are played as tests.", default="")
    parser.addini("mcp_server", "The server that traces are played to.", default="")


def _setting(config: pytest.Config, name: str) -> str:
    value = config.getoption(f"--{name.replace('_', '-')}") or config.getini(name)
    return str(value or "")


def pytest_configure(config: pytest.Config) -> None:
    """Collect the folder of the traces besides what pytest was asked for.

    Raises:
        pytest.UsageError: There is no such folder, or no server.
    """
    folder = _setting(config, "mcp_traces")
    if not folder:
        return
    path = config.rootpath / folder
    if not path.is_dir():
        raise pytest.UsageError(f"--mcp-traces: expected a folder with traces, got {folder}")
    if not _setting(config, "mcp_server"):
        raise pytest.UsageError("--mcp-traces: expected --mcp-server TARGET, got none")
    if str(path) not in config.args:
        config.args.append(str(path))


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The tests of a trace, if it lies in the folder of the traces."""
    folder = _setting(parent.config, "mcp_traces")
    is_trace = bool(folder) and file_path.suffix == ".jsonl"
    if is_trace and (parent.config.rootpath / folder) in file_path.parents:
        return TraceFile.from_parent(parent, path=file_path)  # pyright: ignore[reportUnknownMemberType]  # pytest has no types there
    return None


class TraceFile(pytest.File):
    """A trace, with a test for each session."""

    def collect(self) -> Iterator[pytest.Item]:
        """The sessions."""
        from mcpgen.replay import recording

        for number, session in enumerate(recording.read(str(self.path)), 1):
            name = f"session {number}"
            yield TraceItem.from_parent(self, name=name, recorded=session)  # pyright: ignore[reportUnknownMemberType]  # pytest has no types there


class TraceItem(pytest.Item):
    """A session that is played to the server."""

    def __init__(self, *, recorded: Session, **options: Any) -> None:
        super().__init__(**options)  # pyright: ignore[reportUnknownMemberType]  # pytest has no types there
        self._recorded = recorded

    def runtest(self) -> None:
        """Play the session.

        Raises:
            TraceDiffersError: The server does not answer as it was recorded.
        """
        rules = self.path.with_name(RULES_FILE)
        server = _setting(self.config, "mcp_server")
        _check((self._recorded,), server, rules if rules.is_file() else None, self.config.rootpath)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The report of the differences, without frames."""
        if isinstance(excinfo.value, TraceDiffersError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The trace, with the line of the session's first message."""
        return self.path, self._recorded.messages[0].line - 1, f"{self.path.name}: {self.name}"


@pytest.fixture
def mcp_replay(request: pytest.FixtureRequest) -> Callable[..., None]:
    """A function that plays a trace to a server.

    Its arguments: the trace; the server, as for `mcpgen replay --against`, or a server of a
    generated package in this process; `rules=`, a file with rules. It raises `TraceDiffersError`,
    an `AssertionError`, with the report.
    """

    def play(trace: str | Path, server: Any, *, rules: str | Path | None = None) -> None:
        from mcpgen.replay import recording

        root = request.config.rootpath
        sessions = recording.read(str(root / trace))
        _check(sessions, server, None if rules is None else root / rules, root)

    return play


def _check(sessions: tuple[Session, ...], server: Any, rules: Path | None, root: Path) -> None:
    from mcpgen.replay import command, matching, report

    options = command.Options(matching.read_rules(rules) if rules is not None else ())
    if isinstance(server, str):
        runs = command.replay(sessions, server, root, options)
    else:
        runs = command.replay_in_process(sessions, server, options)
    if any(run.differs for run in runs):
        raise TraceDiffersError(f"{report.text(runs)}\n{report.summary(runs)}")
