"""What a function's docstring says: its first paragraph, and a line per parameter.

Parameters are read from an `Args:` section (Google), `:param name:` fields (Sphinx) or a
`Parameters` section with a rule below it (NumPy). What does not look like one of them is ignored.
"""

from __future__ import annotations

import inspect
import re

_SPHINX = re.compile(r"^:param\s+(?:[^:]*\s)?\*{0,2}(\w+):\s*(.*)$")
_GOOGLE = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")
_NUMPY = re.compile(r"^\*{0,2}(\w+)\s*(?::.*)?$")
_GOOGLE_TITLES = frozenset({"Args:", "Arguments:", "Parameters:"})


def paragraph(text: str | None) -> str | None:
    """The first paragraph on one line, or `None` if there is none."""
    lines: list[str] = []
    for line in inspect.cleandoc(text or "").splitlines():
        if not line.strip():
            break
        lines.append(line.strip())
    return " ".join(lines) or None


def parameters(text: str | None) -> dict[str, str]:
    """Description by parameter name, each on one line."""
    lines = inspect.cleandoc(text or "").splitlines()
    found = _fields(lines)
    for index, line in enumerate(lines):
        if line.strip() in _GOOGLE_TITLES:
            found.update(_entries(_block(lines[index + 1 :], _indent(line)), _GOOGLE))
        elif line.strip() == "Parameters" and _is_rule(lines[index + 1 : index + 2]):
            found.update(_entries(lines[index + 2 :], _NUMPY))
    return {name: said for name, said in found.items() if said}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_rule(lines: list[str]) -> bool:
    return bool(lines) and set(lines[0].strip()) == {"-"}


def _block(lines: list[str], outer: int) -> list[str]:
    """The lines of a section: those that are blank or deeper than its title."""
    for index, line in enumerate(lines):
        if line.strip() and _indent(line) <= outer:
            return lines[:index]
    return lines


def _fields(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        match = _SPHINX.match(line.strip())
        if match:
            name = match[1]
            found[name] = match[2].strip()
        elif name and line.strip() and not line.strip().startswith(":"):
            found[name] = f"{found[name]} {line.strip()}".strip()
        else:
            name = ""
    return found


def _entries(lines: list[str], head: re.Pattern[str]) -> dict[str, str]:
    """Heads at the least indent, each followed by deeper lines that continue it."""
    found: dict[str, str] = {}
    name = ""
    depth = min((_indent(line) for line in lines if line.strip()), default=0)
    for line in lines:
        if not line.strip():
            continue
        if _indent(line) > depth:
            if name:
                found[name] = f"{found[name]} {line.strip()}".strip()
            continue
        match = head.match(line.strip())
        if match is None:
            break
        name = match[1]
        found[name] = match[2].strip() if head.groups == 2 else ""
    return found
