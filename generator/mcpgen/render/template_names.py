"""The names of files and folders of templates. Imports little: checks need no template."""

from __future__ import annotations

ADDED = "added"
"""The folder, beside overrides, with templates of files that mcpgen has no template for."""

MODELS = "models"
"""The folder of the templates of model classes, which datamodel-code-generator renders."""


def is_partial(name: str) -> bool:
    """Whether a file is there for other templates alone: it, or a folder of it, begins with `_`."""
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("/"))
