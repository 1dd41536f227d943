"""`python -m mcpgen`: the same as the command `mcpgen`."""

from __future__ import annotations

from mcpgen.cli import main

if __name__ == "__main__":
    main()
