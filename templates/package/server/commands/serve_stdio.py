"""Standard input and output in the command `serve`."""

from __future__ import annotations

from typing import Any

from .serve_command import AddOption, load


def add_options(add: AddOption) -> None:
    """Add the option for the event loop."""
    add("--backend", choices=("asyncio", "trio"), help="event loop to run on (asyncio by default)")


def serve(target: str, options: dict[str, Any]) -> None:
    """Serve one client."""
    load(target).run(**options)
