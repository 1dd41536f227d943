"""Standard input and output in the command `serve`."""

from __future__ import annotations

import argparse

from .serve_command import AddArgument, load


class StdioTransport:
    """Serves one client over standard input and output; see `ServedTransport`."""

    name = "standard input and output"
    without = "of standard input and output only: over HTTP, uvicorn runs on asyncio"

    def add_arguments(self, add: AddArgument, *, is_only: bool) -> None:
        """Add the option for the event loop."""
        add(
            "--backend",
            choices=("asyncio", "trio"),
            default="asyncio",
            help="event loop to run on",
        )

    def is_chosen(self, chosen: argparse.Namespace) -> bool:
        """No option chooses it."""
        return False

    def serve(self, chosen: argparse.Namespace) -> None:
        """Serve until the client disconnects."""
        load(chosen.target).run(backend=chosen.backend)
