"""mcpgen: generate a typed Python package from the schemas of the Model Context Protocol."""

from __future__ import annotations

__version__ = "0.1.1"
