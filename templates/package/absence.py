"""Errors for names, members and keywords that a package lacks.

The error for a name of a feature that was not chosen has the command that adds the feature. In a
package with the feature `migration`, the error for a name of another SDK has the alternative. All
functions return the error; the module is imported for an error only.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypedDict

_NOTHING: Mapping[str, str] = {}


class NoOptions(TypedDict):
    """No further keywords. At run time they are collected for an error that names alternatives."""


def missing_text(name: str, feature: str, package: str | None = None) -> str:
    """The error text for a name whose feature the package lacks.

    Args:
        name: The name, with its class or function.
        feature: The feature.
        package: The import name of the package; by default this package.
    """
    place: list[str] = list(sys.modules[package or __name__.rpartition(".")[0]].__path__)
    folder = Path(os.path.relpath(place[0])).as_posix()
    return (
        f"{name} comes with the feature {feature}, which this package was generated without:"
        f" mcpgen update {folder} --features +{feature}"
    )


def attribute_error(
    owner: object, name: str, absent: Mapping[str, str] = _NOTHING
) -> AttributeError:
    """The error for an attribute that an object or a class does not have.

    Args:
        owner: The object or the class.
        name: The attribute.
        absent: The members of absent features, each with its feature.
    """
    kind = owner if isinstance(owner, type) else type(owner)
    if name in absent:
        text = missing_text(f"{_public_name(kind)}.{name}", absent[name])
    else:
        known: Mapping[str, Mapping[str, str]] = _alternatives("ATTRIBUTES")
        owners = (each.__name__.removeprefix("Sync") for each in kind.__mro__)
        alternative = next((known[each].get(name) for each in owners if each in known), None)
        text = _with(f"{kind.__name__!r} object has no attribute {name!r}", alternative)
    return AttributeError(text, name=name, obj=owner)


def keyword_error(
    call: str, names: Iterable[str], absent: Mapping[str, str] = _NOTHING
) -> TypeError:
    """The error for keywords that a function does not have.

    Args:
        call: The function, such as `server.tool`, perhaps with parentheses and more text.
        names: The keywords.
        absent: Options of absent features as `FUNCTION.KEYWORD`, each with its feature.
    """
    function = call.partition("(")[0].replace("_sync", "")
    known = _alternatives("KEYWORDS").get(function, _NOTHING)
    texts: list[str] = []
    for name in names:
        feature = absent.get(f"{function.rpartition('.')[2]}.{name}")
        if feature is None:
            texts.append(_with(f"unexpected keyword argument {name!r}", known.get(name)))
        else:
            texts.append(missing_text(f"{name}=", feature))
    return TypeError(f"{call}: {'; '.join(texts)}")


def call_error(call: str, expected: str) -> TypeError:
    """The error for an argument of a wrong type.

    Args:
        call: The function, such as `server.run`.
        expected: The expected and the actual value.
    """
    return TypeError(_with(f"{call}: {expected}", _alternatives("CALLS").get(call)))


def import_error(package: str, name: str, absent: Mapping[str, str]) -> Exception:
    """The error for a name that the root of a package does not have.

    Args:
        package: The import name of the package.
        name: The name.
        absent: The public names of absent features, each with its feature.

    Returns:
        An ImportError, whose text an import statement shows, if the name belongs to a feature or to
        another SDK; an AttributeError for any other name.
    """
    if name in absent:
        return ImportError(missing_text(name, absent[name], package), name=package)
    sdk_names = module_of(".sdk_names", __package__)
    error = None if sdk_names is None else sdk_names.import_error(package, name, absent)
    return error or AttributeError(f"module {package!r} has no attribute {name!r}", name=name)


def _public_name(kind: type) -> str:
    """The class of the package that a class is or derives from."""
    owners = (each.__name__ for each in kind.__mro__ if "_absent" in vars(each))
    return next(owners, kind.__name__)


def _alternatives(table: str) -> Mapping[str, Any]:
    """A table of `sdk_names`, which packages with the feature `migration` have."""
    rows: Mapping[str, Any] = getattr(module_of(".sdk_names", __package__), table, _NOTHING)
    return rows


def module_of(module: str, package: str | None) -> Any:
    """A module of a package; `None` if the package lacks it."""
    try:
        return importlib.import_module(module, package)
    except ModuleNotFoundError:
        return None


def _with(text: str, alternative: str | None) -> str:
    return text if alternative is None else f"{text}: use {alternative}"
