"""The JSON form of the public values, its JSON Schema, and the way back from JSON to values.

The form is that of the classes: an object with a member for each attribute, arrays for tuples. An
attribute that has its default is left out. The schema is computed from the classes, so it says what
they say.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, TypeGuard

from mcpgen.errors import InputError
from mcpgen.json_types import Json, Node, is_object
from mcpgen.spec import values
from mcpgen.spec.values import SPEC_VERSION, Specification
from mcpgen.toml_records import Place

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_DEFINITIONS = "#/$defs/"
_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def as_json(value: Any) -> Json:
    """A value, or several, in the form of JSON; members that have their defaults are left out."""
    if is_dataclass(value):
        members = ((item, getattr(value, item.name)) for item in fields(value))
        return {item.name: as_json(own) for item, own in members if own != _default(item)}
    if _is_mapping(value):
        return {key: as_json(own) for key, own in value.items()}
    return [as_json(own) for own in value] if _is_sequence(value) else value


def _is_mapping(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def _is_sequence(value: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, tuple | list)


def _default(item: Field[Any]) -> Any:
    return item.default if item.default_factory is MISSING else item.default_factory()


def text_of(specification: Specification) -> str:
    """The JSON form as text, indented by two."""
    return json.dumps(as_json(specification), indent=2, ensure_ascii=False)


def from_json(document: Json, source: str = "") -> Specification:
    """The values for a document in the JSON form.

    Args:
        document: The document, of any minor version of this major one.
        source: Its name, for errors.

    Raises:
        InputError: The document has another version, or another form.
    """
    place = Place(source, InputError)
    version = document.get("spec_version") if is_object(document) else None
    major = SPEC_VERSION.partition(".")[0]
    if not isinstance(version, str) or version.partition(".")[0] != major:
        raise place.at("spec_version").error(f"version {major}.x", version)
    import msgspec  # takes long to import, and few commands read values

    try:
        return msgspec.convert(document, Specification)
    except msgspec.ValidationError as error:
        raise place.error("the JSON form of mcpgen.spec", str(error)) from error


def json_schema() -> Node:
    """The JSON Schema, of dialect 2020-12, of the form."""
    import msgspec  # as above

    (root,), definitions = msgspec.json.schema_components(
        [Specification], ref_template=_DEFINITIONS + "{name}"
    )
    for name, node in definitions.items():
        kind = getattr(values, name)
        if is_dataclass(kind):
            _describe(node, inspect.getdoc(kind) or "")
    whole = {"$schema": DIALECT, "title": f"mcpgen.spec {SPEC_VERSION}", **root}
    described: Node = as_json({**whole, "$defs": definitions})  # it has defaults that are values
    return described


def _describe(node: Node, text: str) -> None:
    """Describe an object and its members by the docstring of their class."""
    node["description"] = text.partition("\n")[0]
    for name, meaning in _ATTRIBUTE.findall(text):
        if name in node["properties"]:
            node["properties"][name]["description"] = " ".join(meaning.split())
