"""Contracts: what a server shows to its clients, in a file, and whom a change of it breaks.

Here are the settings of a test run that contracts obey, for the plugin of pytest, which imports
nothing that takes long.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RunSettings:
    """The settings of a test run.

    Attributes:
        updates: Whether contracts are written instead of compared.
        root: The directory that relative paths start from.
    """

    updates: bool = False
    root: Path = Path()


_BY_DEFAULT = RunSettings()

RUN: ContextVar[RunSettings] = ContextVar("mcpgen.contract", default=_BY_DEFAULT)
"""The settings of the run; those of a run without pytest by default."""
