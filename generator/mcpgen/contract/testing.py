"""Contracts as tests: a server is compared with its file, or the file is written anew.

`testing.contract` of a generated package calls `check_in_memory`; the fixture of pytest is `check`.
"""

from __future__ import annotations

import sys
from os import PathLike
from pathlib import Path
from typing import Any

from mcpgen.contract import RUN, command, document, report
from mcpgen.contract.document import Contract
from mcpgen.contract.rules import FAILING
from mcpgen.errors import UsageError, safe_text

UPDATE = "pytest --contract-update"


def check(server: object, file: str | PathLike[str], *, fail_on: str = "any") -> None:
    """Check that a server shows what a contract says, in each revision that it speaks.

    Args:
        server: The server as for `mcpgen contract check`, such as the command that starts it, or a
            `Server` of a generated package.
        file: The contract; a relative path, and the command, start from the root directory of
            pytest.
        fail_on: The least grave change that fails: `breaking`, `warning` or `any`.

    Raises:
        AssertionError: The server has changed, or there is no file.
        McpgenError: The server does not answer, or the file is no contract.
        RuntimeError: A `Server` is checked in a coroutine: await `testing.contract` there.
    """
    __tracebackhide__ = True
    if isinstance(server, str):
        _compare(command.of_server(server, RUN.get().root), Path(file), fail_on)
        return
    import anyio  # only to talk to servers

    new = anyio.run(command.of_memory, _package_of(server), server)
    _compare(new, Path(file), fail_on)


async def check_in_memory(
    package: Any, server: object, file: str | PathLike[str], fail_on: str = "any"
) -> None:
    """Check that a server in memory shows what a contract says.

    Args:
        package: The generated package, whose client asks in each revision that it has.
        server: The server.
        file: See `check`.
        fail_on: See `check`.

    Raises:
        AssertionError: As for `check`.
        McpgenError: As for `check`.
    """
    __tracebackhide__ = True
    _compare(await command.of_memory(package, server), Path(file), fail_on)


def _package_of(server: object) -> Any:
    """The generated package that a server is made with.

    Raises:
        UsageError: It is made with none, or with one without a client.
    """
    for kind in type(server).__mro__:
        name = kind.__module__
        while name:
            module = sys.modules.get(name)
            if hasattr(module, "REVISIONS") and hasattr(module, "connect"):
                return module
            name = name.rpartition(".")[0]
    raise UsageError(
        "expected a Server of a generated package with a client, or as text what starts a server,"
        f" such as 'python server.py', got {safe_text(repr(server))}"
    )


def _compare(new: Contract, file: Path, fail_on: str) -> None:
    __tracebackhide__ = True
    if fail_on not in FAILING:
        raise UsageError(f"expected fail_on of {', '.join(FAILING)}, got {safe_text(fail_on)!r}")
    run = RUN.get()
    path = run.root / file
    if run.updates:
        text = document.text_of(new)
        if not path.is_file() or path.read_text("utf-8") != text:
            path.write_text(text, encoding="utf-8", newline="\n")
        return
    if not path.is_file():
        raise AssertionError(f"{file}: expected a contract, got no file; {UPDATE} writes it")
    changes = command.changes(document.read(path), new)
    if any(change.rule.severity in FAILING[fail_on] for change in changes):
        raise AssertionError(
            f"{file}: the server has changed: {report.summary(changes)}\n{report.text(changes)}\n"
            f"{UPDATE} writes the file anew"
        )
