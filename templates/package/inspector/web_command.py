"""The option `--web` of the command `inspect`."""

from __future__ import annotations

import argparse


def serve_page(chosen: argparse.Namespace) -> int:
    """Serve the page of the inspector; return the exit code."""
    from . import inspector_app  # serves and connects over HTTP, which other commands may not need

    return inspector_app.run(chosen)
