"""The two forms of a package: with a copy of its runtime, or on an installed one.

A vendored package has all of its modules. A package on an installed runtime has the modules that
are rendered from its schema, and imports all others from the distribution that is built from
`generated/`. These are the same in every package of a version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from mcpgen import __version__, paths
from mcpgen.errors import UsageError

Runtime: TypeAlias = Literal["vendored", "installed"]

RUNTIMES: tuple[Runtime, ...] = get_args(Runtime)
"""The forms; the first one is the default."""

DISTRIBUTION, PACKAGE = "mcpgen-runtime", "mcpgen_runtime"
"""The distribution, and the package in it."""

SOURCES = "from a wheel of it or the folder generated/ of mcpgen's sources: no package index has it"
"""How to install the distribution outside a checkout."""

EARLIER_INTERFACES: tuple[str, ...] = ()
"""Digests of the interfaces of released versions with this minor version, oldest first."""

FOLDER = "for_installed"
"""The folder of templates that replace others in packages on an installed runtime."""

_OWN = frozenset({"revisions", "models", "server", "testing", "__main__", "__init__", "client"})
"""Modules and folders of the root that a package on an installed runtime has, beside revisions."""
_OWN_OF_CLIENT = frozenset({"__init__", "async_client", "sync_client", "group"})
_ELSEWHERE = {
    ".server.server_session": ".server",
    ".server.chosen": ".server",
}
"""Modules of a package on an installed runtime that have another name in a vendored one."""


def minor(version: str = __version__) -> str:
    """The minor version of a version, within which runtimes and packages are compatible."""
    return ".".join(version.split(".")[:2])


def version_range(version: str = __version__) -> str:
    """The range of compatible versions of the distribution for this version of mcpgen."""
    major, number = minor(version).split(".")
    return f">={major}.{number},<{major}.{int(number) + 1}"


def requirement_specifier() -> str:
    """The requirement of packages of this version of mcpgen on the distribution."""
    return f"{DISTRIBUTION}{version_range()}"


def interfaces() -> tuple[str, ...]:
    """Digests of the interfaces that the runtime of this version has; its own is the last one.

    An interface is what packages use of the runtime. A later one of the same minor version has all
    names of those before it.
    """
    text = paths.interface_file().read_text(encoding="utf-8")
    own = hashlib.sha256(text.encode()).hexdigest()[:16]
    return (*EARLIER_INTERFACES, own)


def source_folder() -> Path | None:
    """The folder that the distribution is built from; `None` outside a checkout."""
    folder = paths.interface_file().parent
    return folder if (folder / "pyproject.toml").is_file() else None


def module_of(module: str, folders: Collection[str]) -> str:
    """The name by which a package on an installed runtime imports a module of a vendored one.

    Args:
        module: The module, relative to the package.
        folders: The folders of the package's revisions.
    """
    module = _ELSEWHERE.get(module, module)
    return module if is_own(module.removeprefix(".").split("."), folders) else PACKAGE + module


def is_own(path: Iterable[str], folders: Collection[str]) -> bool:
    """Whether a package on an installed runtime has a module.

    Args:
        path: The names of the module and of its folders, from the root of the package.
        folders: The folders of the package's revisions.
    """
    first, *rest = path
    if first == "client" and rest:
        return rest[0] in _OWN_OF_CLIENT
    return first in folders or (first in _OWN and not rest)


def has_file(path: str, folders: Collection[str] = ()) -> bool:
    """Whether a package on an installed runtime may have a file of a vendored one.

    Args:
        path: The file, within the package.
        folders: The folders of the package's revisions.
    """
    stem = path.removesuffix(".pyi").removesuffix(".py")
    return path == "py.typed" or is_own(stem.split("/"), folders)


def check_form(runtime: Runtime, models: str, decoding: str) -> None:
    """Check that the runtime supports the models of a package, and how they are decoded.

    Raises:
        UsageError: The distribution has no modules for them.
    """
    if runtime != "installed":
        return
    if models != "msgspec":
        raise UsageError(
            f"--models {models}: expected --runtime vendored, since {DISTRIBUTION} has the modules"
            " for msgspec"
        )
    if decoding != "lenient":
        raise UsageError(
            f"--decoding {decoding}: expected --runtime vendored, since {DISTRIBUTION} decodes"
            " leniently"
        )
