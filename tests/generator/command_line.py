"""The command line in this process: what it prints, and its exit code."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple

import pytest

from mcpgen import cli


class Done(NamedTuple):
    """What a command left behind."""

    code: object
    out: str
    err: str


def run(*words: str) -> Done:
    """Run a command to its end."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        cli.main(words)
    return Done(ended.value.code or 0, out.getvalue(), err.getvalue())
