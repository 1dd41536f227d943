"""The places that a port leaves to a person."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Unported:
    """A place that was left as it is.

    Attributes:
        path: The file, as it was named.
        line: Number of the line before the port, from 1.
        code: What is there, such as `FastMCP(auth=)`.
        remedy: What to do.
    """

    path: str
    line: int
    code: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.code}: {self.remedy}"
