"""What a type is made of: classes with fields, choices, constraints, parts of pydantic.

pydantic is not imported: a type has a part of pydantic only if the user's program imported it.
"""

from __future__ import annotations

import dataclasses
import enum
import sys
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec


class TypeParts:
    """All that the tree of a type contains.

    Attributes:
        pydantic: Whether a part is of pydantic, or a constraint that pydantic checks.
        pydantic_constraints: Such constraints within classes of msgspec or attrs.
        of_msgspec: Structs, attrs classes and constraints of msgspec, which pydantic does not read.
        choices: The values of each enum and each `Literal`, as JSON data in the order written.
        classes: Classes with fields: each with its fields' types by wire name.
    """

    def __init__(self) -> None:
        self.pydantic = False
        self.pydantic_constraints: list[Any] = []
        self.of_msgspec: list[Any] = []
        self.choices: list[list[Any]] = []
        self.classes: dict[type[Any], Mapping[str, Any]] = {}

    def add(self, annotation: Any) -> None:
        """Add a type and all that it contains."""
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is Annotated:
            for note in arguments[1:]:
                self._add_note(note)
            self.add(arguments[0])
        elif origin is Literal:
            self.choices.append([each.value if _is_enum(each) else each for each in arguments])
        elif origin is not None:
            self.add(origin)
            for each in arguments:
                self.add(each)
        elif isinstance(annotation, type):
            self._add_class(annotation)
        else:
            for name in ("__supertype__", "__value__"):  # of NewType, of a `type` statement
                if hasattr(annotation, name):
                    self.add(getattr(annotation, name))

    def _add_note(self, note: Any) -> None:
        if isinstance(note, msgspec.Meta):
            self.of_msgspec.append(note)
        elif is_pydantic_constraint(note):
            self.pydantic = True
            self.pydantic_constraints.append(note)

    def _add_class(self, kind: type[Any]) -> None:
        if kind in self.classes:
            return
        if issubclass(kind, enum.Enum):
            self.choices.append([each.value for each in kind])
        elif is_pydantic_class(kind):
            self.pydantic = True
        elif issubclass(kind, msgspec.Struct) or hasattr(kind, "__attrs_attrs__"):
            self.of_msgspec.append(kind)
            self._add_fields(kind)
        elif dataclasses.is_dataclass(kind) or typing.is_typeddict(kind) or _is_namedtuple(kind):
            self._add_fields(kind)

    def _add_fields(self, kind: type[Any]) -> None:
        try:
            hints = typing.get_type_hints(kind, include_extras=True)
        except (NameError, TypeError):  # msgspec names what it can't resolve
            hints = {}
        self.classes[kind] = hints
        if issubclass(kind, msgspec.Struct):
            names = {field.name: field.encode_name for field in msgspec.structs.fields(kind)}
            self.classes[kind] = {names.get(name, name): hint for name, hint in hints.items()}
        for hint in hints.values():
            self.add(hint)


def _is_enum(value: object) -> typing.TypeGuard[enum.Enum]:
    return isinstance(value, enum.Enum)


def _is_class(value: object) -> typing.TypeGuard[type[Any]]:
    return isinstance(value, type)


def _is_namedtuple(kind: type[Any]) -> bool:
    names: Any = getattr(kind, "_fields", None)
    return names is not None and issubclass(kind, tuple)


def is_pydantic_class(kind: type[Any]) -> bool:
    """Whether a class is a model, a dataclass or a type of pydantic."""
    return "pydantic" in sys.modules and (
        hasattr(kind, "__get_pydantic_core_schema__") or hasattr(kind, "__pydantic_validator__")
    )


def is_pydantic_constraint(note: Any) -> bool:
    """Whether pydantic checks what a note of an annotation says."""
    if "pydantic" not in sys.modules:
        return False
    package = (note if isinstance(note, type) else type(note)).__module__.partition(".")[0]
    if package in ("pydantic", "pydantic_core", "annotated_types"):
        return True
    return hasattr(note, "__get_pydantic_core_schema__")


def has_fields(kind: Any) -> bool:
    """Whether a type is a class with named fields, without a part of pydantic."""
    origin: Any = typing.get_origin(kind) or kind
    return _is_class(origin) and (
        dataclasses.is_dataclass(origin)
        or typing.is_typeddict(origin)
        or getattr(origin, "__attrs_attrs__", None) is not None
        or issubclass(origin, msgspec.Struct)
    )
