"""A stream that says it is a terminal, for the output of commands."""

from __future__ import annotations

import io


class Terminal(io.StringIO):
    """A terminal that keeps what it shows."""

    def isatty(self) -> bool:
        """Whether this is a terminal."""
        return True
