"""The command line in this process: what it prints, and its exit code."""

from __future__ import annotations

import io
from contextlib import chdir, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from mcpgen import cli


class Done(NamedTuple):
    """The exit code and the output of a command."""

    code: object
    out: str
    err: str


def run(*words: object, cwd: Path | None = None) -> Done:
    """Run a command to its end, in another directory if one is given."""
    out, err = io.StringIO(), io.StringIO()
    place = nullcontext() if cwd is None else chdir(cwd)
    with place, redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        cli.main([str(word) for word in words])
    return Done(ended.value.code or 0, out.getvalue(), err.getvalue())
