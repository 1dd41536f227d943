"""What VERSIONING.md promises of a package: its public names with their parameters and defaults."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from enum import EnumType
from types import ModuleType
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

import mcpgen_runtime

ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def signature_of(value: Any) -> str:
    """The parameters of a callable with their defaults, without annotations."""
    try:
        signature = inspect.signature(value)
    except (NameError, TypeError, ValueError):  # of C, or a struct whose annotations need imports
        return ""
    parameters = [
        each.replace(
            annotation=each.empty,
            default=sorted(each.default) if isinstance(each.default, frozenset) else each.default,
        )
        for each in signature.parameters.values()
    ]
    bare = signature.replace(parameters=parameters, return_annotation=signature.empty)
    return ADDRESS.sub("", f"{bare}")


def is_own(value: Any) -> bool:
    """Whether the package defines a class or function."""
    return str(getattr(value, "__module__", "")).startswith(mcpgen_runtime.__name__)


def surface_of(module: ModuleType) -> Iterator[str]:
    """The public names of a module, and the public members of its classes, with signatures."""
    public = [name for name, value in vars(module).items() if name[0] != "_" and is_own(value)]
    for name in sorted(getattr(module, "__all__", public)):
        value = getattr(module, name)
        is_called = callable(value) and is_own(value) and not isinstance(value, EnumType)
        yield f"{name}{signature_of(value) if is_called else ''}"
        for owner in filter(is_own, reversed(getattr(value, "__mro__", ()))):
            for member, static in sorted(vars(owner).items()):
                function = getattr(static, "__func__", static)
                if member[0] != "_" and callable(function) and is_own(function):
                    yield f"{name}.{member}{signature_of(function)}"


@pytest.mark.structs("signatures of the package on msgspec")
@pytest.mark.parametrize("module", ["", ".testing", ".errors"])
def test_public_names_keep_their_parameters_and_defaults(
    module: str, snapshot: SnapshotAssertion
) -> None:
    surface = surface_of(importlib.import_module(f"{mcpgen_runtime.__name__}{module}"))
    assert "\n".join(surface) == snapshot
