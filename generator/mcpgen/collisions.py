"""Other distributions with an import package `mcpgen`: files of one replace those of the other.

This module imports nothing of mcpgen's: it explains why such an import failed.
"""

from __future__ import annotations

from importlib.metadata import distributions, packages_distributions

_NAME = "mcpgen"


def other_distributions() -> tuple[str, ...]:
    """The installed distributions of others with files in `mcpgen/`, each with its version."""
    names = {*packages_distributions().get(_NAME, ())} - {_NAME}
    return tuple(sorted(f"{name} {_version(name)}" for name in names))


def _version(name: str) -> str:
    return next((each.version for each in distributions(name=name)), "of an unknown version")


def advice(others: tuple[str, ...]) -> str:
    """How to get rid of a collision."""
    names = " ".join(each.partition(" ")[0] for each in others)
    return (
        f"keep one of them in an environment: pip uninstall {names}, then install mcpgen again with"
        " --force-reinstall"
    )


def import_error_text(error: ImportError) -> str:
    """The line about an import of mcpgen's own module that failed."""
    others = other_distributions()
    if not others:
        return f"mcpgen: error: the installation is not complete: {error}; install mcpgen again"
    return (
        f"mcpgen: error: {', '.join(others)} has an import package {_NAME} too, and replaced files"
        f" of mcpgen: {advice(others)}"
    )
