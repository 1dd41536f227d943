"""HTTP+SSE in the command `serve`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from .asgi.settings import SSE_PATH
from .serve_command import AddArgument


class SseOption:
    """The option `--sse`; see `HttpOption`."""

    def add_arguments(self, add: AddArgument) -> None:
        """Add the option."""
        add(
            "--sse",
            action="store_true",
            help=f"serve the older transport HTTP+SSE too, at {SSE_PATH} and /messages",
        )

    def options(self, chosen: argparse.Namespace) -> Mapping[str, Any]:
        """The path of the stream, if HTTP+SSE is served."""
        return {"sse_path": SSE_PATH} if chosen.sse else {}
