"""A JSON Schema whose parts are looked up by pointer, and a judge of values for each part.

References are followed within the document alone: what lies outside can't be decided.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias
from urllib.parse import quote, unquote

import jsonschema
import referencing
import referencing.jsonschema
from jsonschema.validators import validator_for
from referencing.exceptions import Unresolvable

from mcpgen.json_types import Json, is_array, is_object

_URI = "mcpgen:schema"
_OLD_DIALECTS = ("draft-04", "draft-06", "draft-07")
_FORMATS = jsonschema.FormatChecker()

KNOWN_FORMATS = frozenset(_FORMATS.checkers)
"""Formats that the judge checks; those of others are compared by name."""


class UndecidedError(Exception):
    """A question about schemas has no answer here.

    Args:
        reason: Why, in a few words.
        place: The place in a schema; `None` if it is not one place.
    """

    def __init__(self, reason: str, place: Place | None = None) -> None:
        self.reason = reason
        self.place = place


@dataclass(frozen=True, eq=False)
class Document:
    """A schema as a whole.

    Attributes:
        schema: The schema: an object or a boolean.
    """

    schema: Json
    _validators: dict[Term, Any] = field(default_factory=dict["Term", Any], repr=False)

    @property
    def root(self) -> Term:
        """The whole schema."""
        return frozenset({Place(self, "")})

    def check(self) -> None:
        """Check the schema against that of its dialect.

        Raises:
            UndecidedError: It is no schema.
        """
        if self._problem is not None:
            raise self._problem

    @cached_property
    def _problem(self) -> UndecidedError | None:
        """Why it is no schema; `None` if it is one."""
        root = Place(self, "")
        try:
            self._class.check_schema(self.schema)
        except jsonschema.SchemaError as error:
            return UndecidedError("a schema that is not valid", root.below(*error.absolute_path))
        except (RecursionError, re.error):
            return UndecidedError("a schema that can't be checked", root)
        return None

    @cached_property
    def follows_siblings(self) -> bool:
        """Whether keywords beside `$ref` count, as from draft 2019-09 on."""
        return not any(each in self._dialect for each in _OLD_DIALECTS)

    @property
    def _dialect(self) -> str:
        named = self.schema.get("$schema") if is_object(self.schema) else None
        return named if isinstance(named, str) else ""

    def at(self, pointer: str) -> Json:
        """The part of the schema at a pointer.

        Raises:
            UndecidedError: There is none.
        """
        part = self.schema
        for word in pointer.split("/")[1:]:
            key = word.replace("~1", "/").replace("~0", "~")
            if is_object(part) and key in part:
                part = part[key]
            elif is_array(part) and key.isdecimal() and int(key) < len(part):
                part = part[int(key)]
            else:
                raise UndecidedError("a reference leads nowhere", Place(self, pointer))
        return part

    def target(self, reference: Json, pointer: str) -> Place:
        """The place that a reference names.

        Raises:
            UndecidedError: It lies outside the schema, or is named by an anchor.
        """
        if not isinstance(reference, str) or not (reference == "#" or reference[:2] == "#/"):
            raise UndecidedError("a reference out of the schema", Place(self, pointer))
        place = Place(self, unquote(reference[1:]))
        self.at(place.pointer)
        return place

    def allows(self, term: Term, value: Json) -> bool:
        """Whether all places of a term allow a value, by the judge `jsonschema`.

        Raises:
            UndecidedError: The judge can't tell: a pattern or a reference is beyond it.
        """
        if term not in self._validators:
            places = sorted(each.pointer for each in term)
            union = {"allOf": [{"$ref": f"{_URI}#{quote(pointer)}"} for pointer in places]}
            self._validators[term] = self._class(
                union, registry=self._registry, format_checker=_FORMATS
            )
        place = Place(self, pointer_of(term))
        try:
            return bool(self._validators[term].is_valid(value))
        except (Unresolvable, RecursionError, OverflowError) as error:
            raise UndecidedError("the judge of values fails", place) from error
        except re.error as error:
            raise UndecidedError("a pattern that Python does not read", place) from error

    @cached_property
    def _class(self) -> Any:
        """The judge's class for the dialect."""
        schema = self.schema if is_object(self.schema) else {}
        return validator_for(schema, jsonschema.Draft202012Validator)

    @cached_property
    def _registry(self) -> Any:
        specification = referencing.jsonschema.specification_with(
            self._dialect, default=referencing.jsonschema.DRAFT202012
        )
        plain = self.schema
        if is_object(plain):  # an identifier of its own would move the place of references
            plain = {key: value for key, value in plain.items() if key not in ("$id", "id")}
        resource = specification.create_resource(plain)
        return referencing.Registry[Any]().with_resource(_URI, resource)


@dataclass(frozen=True)
class Place:
    """A part of a document, by its JSON pointer."""

    document: Document
    pointer: str

    @property
    def schema(self) -> Json:
        """The part."""
        return self.document.at(self.pointer)

    def below(self, *words: object) -> Place:
        """A part of this part, by the words of its pointer."""
        escaped = (str(word).replace("~", "~0").replace("/", "~1") for word in words)
        return Place(self.document, "/".join((self.pointer, *escaped)))


Term: TypeAlias = frozenset[Place]
"""Places that all have to allow a value; an empty term allows every value."""

ANY: Term = frozenset()
"""The term that allows every value."""

NOTHING: Term = frozenset({Place(Document(False), "")})
"""The term that allows no value."""


def allows(term: Term, value: Json) -> bool:
    """Whether a term allows a value.

    Raises:
        UndecidedError: The judge can't tell.
    """
    by_document: dict[Document, set[Place]] = {}
    for place in term:
        by_document.setdefault(place.document, set()).add(place)
    return all(document.allows(frozenset(part), value) for document, part in by_document.items())


def pointer_of(term: Term) -> str:
    """The first pointer of a term, for reports."""
    return min((place.pointer for place in term), default="")


def canonical(value: Json) -> str:
    """A JSON value as text that is the same for equal values: 1 and 1.0 are."""
    return json.dumps(_normal(value), sort_keys=True, ensure_ascii=True)


def _normal(value: Json) -> Json:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if is_array(value):
        return [_normal(each) for each in value]
    if is_object(value):
        return {key: _normal(each) for key, each in value.items()}
    return value


def distinct(values: Iterable[Json]) -> list[Json]:
    """The values without repetitions."""
    return list({canonical(value): value for value in values}.values())
