"""The banner on a terminal: what is served, where, and the command that adds it to Claude Code."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ...foreign_text import safe_text
from .server import ServerKernel

VARIABLE = "MCP_BANNER"
"""Name of the environment variable that turns the banner off."""

_OFF = ("0", "false", "no", "off")
_KINDS: tuple[str, ...] = ("tool", "resource", "resource template", "prompt")
_LONGEST = 2000  # characters of a command or a URL
_NOT_IN_NAMES = r"[^A-Za-z0-9_-]+"


class BannerServer(ServerKernel):
    """Shows a banner on a terminal; a base of `Server`."""

    def _show(self, banner: bool, url: str | None = None) -> None:
        is_off = not banner or os.environ.get(VARIABLE, "").strip().lower() in _OFF
        if is_off or sys.stderr is None or not sys.stderr.isatty():
            super()._show(banner, url)
            return
        counts = [len(registry.items) for registry in self._dispatcher.registries]
        items = dict(zip(_KINDS, counts, strict=True))
        print(banner_text(self.info, items, self.revisions, url), file=sys.stderr, flush=True)


def banner_text(
    info: Mapping[str, Any],
    counts: Mapping[str, int],
    revisions: Collection[str],
    url: str | None,
    argv: Sequence[str] | None = None,
) -> str:
    """The banner: a few lines of text without control characters.

    Args:
        info: Name, version and further members of `Implementation`.
        counts: Number of items by their kind in the singular.
        revisions: Names of the revisions.
        url: URL of the endpoint; `None` for standard streams.
        argv: The command line of the server; that of the process by default.
    """
    title = safe_text(str(info.get("title") or info["name"]))
    served = [
        f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in counts.items() if count
    ]
    lines = {
        "serves": ", ".join(served),
        "at": "standard input and output" if url is None else safe_text(url, _LONGEST),
        "speaks": f"MCP {', '.join(revisions)}",
        "connect": _connect_command(str(info["name"]), url, argv),
        "stop": "Ctrl-C",
    }
    rows = [f"  {label:<8} {text}" for label, text in lines.items() if text]
    return "\n".join([f"{title} {safe_text(str(info['version']))}", *rows, ""])


def _connect_command(name: str, url: str | None, argv: Sequence[str] | None) -> str:
    """The command that adds the server to Claude Code; empty if it can't be written on a line."""
    import shlex
    import subprocess  # few servers show it

    added = ["claude", "mcp", "add"]
    label = re.sub(_NOT_IN_NAMES, "-", name).strip("-") or "server"
    if url is None:
        words = [*added, label, "--", *(argv or sys.orig_argv)]
    else:
        kind = "sse" if url.endswith("/sse") else "http"
        words = [*added, "--transport", kind, label, url]
    command = subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)
    return command if safe_text(command, _LONGEST) == command else ""
