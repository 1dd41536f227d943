"""A program that decodes a tool by the package of types `mcp_types` in the current folder."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))
package = importlib.import_module("mcp_types")
folder = next(path.name for path in Path("mcp_types").glob("r2*"))
models = importlib.import_module(f"mcp_types.{folder}.models")
tool = package.decoder(models.Tool)(b'{"name": "t", "inputSchema": {"type": "object"}}')
assert tool.name == "t", tool
