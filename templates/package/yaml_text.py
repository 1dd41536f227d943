"""Untrusted YAML with the types of JSON: no dates, no tags, keys are strings; size is bounded.

As in YAML 1.2, `yes`, `no`, `on` and `off` are strings, and so are digits with colons; `<<` is a
key as any other.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from .errors import MissingExtraError
from .foreign_text import safe_repr, safe_text

LEVELS = 200
"""Most levels of a document."""

_TAG = "tag:yaml.org,2002:"
_YAML_TYPES = ("null", "bool", "int", "float")  # no dates: JSON has none
_KEPT_CONSTRUCTORS = (None, f"{_TAG}null", f"{_TAG}str", f"{_TAG}seq")  # none: of unknown tags
_NUMBER_CHARACTERS = 400  # longer numbers take long to read, and no double is longer
_YAML_WORDS = frozenset({"yes", "no", "on", "off"})


class DocumentTooLargeError(ValueError):
    """The document as a whole is too large; leaving out an operation does not help."""


def read_yaml(data: bytes, label: str, limit: int, needed_by: str) -> Any:
    """Decode a YAML document with the types of JSON: keys are strings, as in `200:`.

    Args:
        data: The bytes of the document.
        label: Name of the document in error texts.
        limit: Most characters of the document with each alias expanded.
        needed_by: The feature that needs PyYAML, for the error.

    Raises:
        MissingExtraError: PyYAML is not installed.
        DocumentTooLargeError: The document is nested too deep, or too large with aliases expanded.
        ValueError: The bytes are not YAML.
    """
    try:
        library: Any = importlib.import_module("yaml")
    except ImportError as error:
        raise MissingExtraError(needed_by, "pyyaml") from error
    base: Any = getattr(library, "CSafeLoader", library.SafeLoader)
    resolvers = {
        first: [(tag, pattern) for tag, pattern in rows if tag.rpartition(":")[2] in _YAML_TYPES]
        for first, rows in base.yaml_implicit_resolvers.items()
    }
    constructors = {
        **{tag: base.yaml_constructors[tag] for tag in _KEPT_CONSTRUCTORS},
        f"{_TAG}map": _yaml_object,
        f"{_TAG}bool": _yaml_bool,
        f"{_TAG}int": _yaml_int,
        f"{_TAG}float": _yaml_float,
    }
    members = {"yaml_implicit_resolvers": resolvers, "yaml_constructors": constructors}
    loader: Any = type("JsonTypesLoader", (base,), members)
    try:
        events = library.parse(data, Loader=base)
        if _expanded_size(events, label) > limit:
            raise DocumentTooLargeError(
                f"{label}: expected at most {limit} characters with a copy for each alias"
            )
        return library.load(data, Loader=loader)
    except DocumentTooLargeError:
        raise
    except (library.YAMLError, ValueError, TypeError, LookupError, OverflowError) as error:
        raise ValueError(f"{label}: not YAML: {safe_text(' '.join(str(error).split()))}") from error


def _expanded_size(events: Iterable[Any], label: str) -> int:
    """The number of characters with each alias expanded, counted from parser events.

    Operations copy the values of a document.
    """
    anchors: dict[str | None, int | None] = {}  # none within the anchor itself
    within: list[tuple[str | None, int]] = []
    size = 0
    for event in events:
        kind = type(event).__name__
        anchor: str | None = getattr(event, "anchor", None)
        if kind.endswith("StartEvent"):
            within.append((anchor, size))
            if anchor is not None:
                anchors[anchor] = None
            size += 2
        elif kind.endswith("EndEvent"):
            anchor, before = within.pop()
            if anchor is not None:
                anchors[anchor] = size - before
        elif kind == "AliasEvent":
            copied = anchors.get(anchor, 0)  # without an anchor: rejected when composed
            if copied is None:
                raise ValueError(f"the alias {safe_repr(anchor)} is within its own anchor")
            size += copied
        else:
            size += len(event.value) + 2
            if anchor is not None:
                anchors[anchor] = len(event.value) + 2
        if len(within) > LEVELS:
            raise DocumentTooLargeError(f"{label}: it is nested too deep")
    return size


def _yaml_object(loader: Any, node: Any) -> Any:
    if node.id != "mapping":
        raise ValueError(f"expected a mapping, got a {node.id}")
    if any(key.id != "scalar" for key, _ in node.value):
        raise ValueError("expected texts as keys")
    pairs = {str(key.value): value for key, value in node.value}
    return {name: loader.construct_object(value) for name, value in pairs.items()}


def _yaml_bool(loader: Any, node: Any) -> Any:
    """A boolean; `yes`, `no`, `on` and `off` are strings, as in YAML 1.2."""
    text = _yaml_text(node)
    return text if text.lower() in _YAML_WORDS else loader.construct_yaml_bool(node)


def _yaml_int(loader: Any, node: Any) -> Any:
    """An integer; digits with colons are a string, as in YAML 1.2."""
    text = _yaml_text(node)
    is_number = ":" not in text and len(text) <= _NUMBER_CHARACTERS
    return loader.construct_yaml_int(node) if is_number else text


def _yaml_float(loader: Any, node: Any) -> Any:
    """A number; digits with colons are a string, as in YAML 1.2."""
    text = _yaml_text(node)
    is_number = ":" not in text and len(text) <= _NUMBER_CHARACTERS
    return loader.construct_yaml_float(node) if is_number else text


def _yaml_text(node: Any) -> str:
    """The text of a scalar that is tagged as another type."""
    if node.id != "scalar":
        raise ValueError(f"expected a scalar, got a {node.id}")
    text: str = node.value
    return text
