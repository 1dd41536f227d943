"""The errors of mcpgen, as one small tree.

    McpgenError             anything mcpgen raises on purpose; its text is one line
    +-- UsageError          the command line is wrong
    +-- InputError          a file that was read is wrong: file, JSON pointer, expected, came
    |   +-- SchemaError     a schema
    |   |   +-- TypeScriptError   one in TypeScript: file, line, column, expected, came
    |   +-- ErrataError     an errata.toml
    |   +-- FactsError      a facts.toml
    |   +-- DocsError       docs.toml
    |   +-- RevisionsError  revisions.toml
    |   +-- ManifestError   an mcpgen.json
    |   +-- PatchError      a patch of a package, or a hunk of it that no longer fits
    |   +-- SettingsError   [tool.mcpgen] of a pyproject.toml, or a file to publish with
    |   +-- MirrorError     the tools, resources and prompts of a mirrored server
    +-- TemplateError       a template of the user's: file, line, expected, came
    +-- HookError           a command of `hooks` failed, or changed the package
    +-- OutputError         the directory to write to, or to check
    +-- ServerError         a server to check does not start or answer

The class says which input is to blame; attributes hold the data. All have the exit code `CANNOT`.
"""

from __future__ import annotations

import json
from typing import Any

DIFFERS = 1
"""The exit code of a command that did its work, and whose answer is no: something differs."""
CANNOT = 2
"""The exit code of a command that could not do its work."""
_POINTER = 300
"""Characters of a JSON pointer that an error shows."""


class McpgenError(Exception):
    """Base of every error that mcpgen raises on purpose."""

    details: str = ""
    """Lines to print below the error, which help the user decide."""


class UsageError(McpgenError):
    """The command line asks for something impossible."""


class InputError(McpgenError):
    """The content of a file is wrong.

    Args:
        source: The file, as the user named it.
        pointer: JSON pointer into the file, empty for the whole of it.
        expected: The expected content.
        came: The actual content.
    """

    def __init__(self, source: str, pointer: str, expected: str, came: str) -> None:
        where = safe_text(pointer, _POINTER)
        super().__init__(f"{source}#{where}: expected {expected}, got {came}")
        self.source = source
        self.pointer = pointer
        self.expected = expected
        self.came = came


class SchemaError(InputError):
    """A file is not a schema, or not a schema of the protocol."""


class TypeScriptError(SchemaError):
    """A schema in TypeScript holds something that cannot be read.

    Args:
        source: The file, as the user named it.
        line: The line, from 1.
        column: The character in the line, from 1.
        expected: The expected content.
        came: The actual content.
    """

    def __init__(self, source: str, line: int, column: int, expected: str, came: str) -> None:
        super().__init__(source, "", expected, came)
        self.args = (f"{source}:{line}:{column}: expected {expected}, got {came}",)
        self.line = line
        self.column = column


class ErrataError(InputError):
    """A correction is malformed, or does not fit the schema it corrects."""


class FactsError(InputError):
    """A table of facts has unknown, missing or mistyped keys."""


class DocsError(InputError):
    """The documentation file is malformed."""


class RevisionsError(InputError):
    """The list of revisions is malformed."""


class ManifestError(InputError):
    """The manifest of a package is malformed."""


class PatchError(InputError):
    """A patch of a package is malformed, or does not fit what mcpgen writes now.

    Args:
        source: The patch, as the user named it.
        pointer: Empty, since a patch has no JSON pointers.
        expected: The expected content.
        came: The actual content.
        conflicts: Both sides of each conflict.
    """

    def __init__(
        self, source: str, pointer: str, expected: str, came: str, conflicts: str = ""
    ) -> None:
        super().__init__(source, pointer, expected, came)
        self.args = (f"{source}: expected {expected}, got {came}",)
        self.details = conflicts


class SettingsError(InputError):
    """`[tool.mcpgen]` of a project is malformed."""


class MirrorError(InputError):
    """The lists of a mirrored server cannot be read, or are malformed."""


class TemplateError(McpgenError):
    """A user's template cannot replace mcpgen's template, or cannot be rendered.

    Args:
        source: The file.
        line: The line, from 1; `None` if the file as a whole is meant.
        reason: The expected and the actual content.
    """

    def __init__(self, source: str, line: int | None, reason: str) -> None:
        super().__init__(f"{source}: {reason}" if line is None else f"{source}:{line}: {reason}")
        self.source = source
        self.line = line


class HookError(McpgenError):
    """A command that is run after each generation failed, or changed the package."""


class OutputError(McpgenError):
    """The directory to write to, or to check, cannot be used."""


class ServerError(McpgenError):
    """A server to check does not start, or speaks no revision."""


def safe_text(text: str, limit: int = 200) -> str:
    """A foreign text for an error: one line, cut at `limit` characters.

    Characters that a terminal acts on, and those that cannot be encoded, are written as escapes.
    """
    cut = text[:limit]
    if not cut.isprintable():
        cut = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in cut)
    return cut if len(text) <= limit else f"{cut}..."


def format_value(value: Any, limit: int = 60) -> str:
    """A value as short JSON, for the end of an error text."""
    text = json.dumps(value, default=str)
    return safe_text(text if len(text) <= limit else f"{text[: limit - 3]}...")
