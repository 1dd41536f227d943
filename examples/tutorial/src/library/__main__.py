"""Runs the server: `python -m library`."""

from __future__ import annotations

from .serving import main

if __name__ == "__main__":
    main()
