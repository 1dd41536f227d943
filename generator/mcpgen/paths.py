"""Where the data of mcpgen lies: in a source checkout, or inside the installed wheel.

A wheel carries `schema/` and `templates/` as `mcpgen/_data/`; a checkout has them at its top.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def data_root(package: Path = PACKAGE) -> Path:
    """The directory that holds `schema/` and `templates/`."""
    installed = package / "_data"
    return installed if installed.is_dir() else package.parent.parent


def schema_dir() -> Path:
    """The directory with one folder per revision."""
    return data_root() / "schema"


def templates_dir() -> Path:
    """The directory with the templates of packages and models."""
    return data_root() / "templates"


def shown_path(path: Path) -> str:
    """A path for messages: data of mcpgen from the top of the project, others as given."""
    root = data_root()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
