"""HTTP+SSE in the command `serve`."""

from __future__ import annotations

from ..asgi.sse_options import SSE_PATH
from .serve_command import AddOption


def add_options(add: AddOption) -> None:
    """Add the option `--sse`."""
    add(
        "--sse",
        dest="sse_path",
        action="store_const",
        const=SSE_PATH,
        help=f"serve the older transport HTTP+SSE too, at {SSE_PATH} and /messages",
    )
