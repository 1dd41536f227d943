"""The parts of a schema that a package carries: a walk through a document and its types.

Nothing here asks the generator what it did: keywords come from the file, types from the module.
"""

from __future__ import annotations

import dis
import sys
import types
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, UnsetType

from mcpgen.schema.structure import escape
from mcpgen_runtime._unions import UntaggedType

TELLS = frozenset(
    {
        *("title", "description", "$comment", "examples", "markdownDescription", "format"),
        *("contentEncoding", "contentMediaType", "contentSchema", "deprecated", "readOnly"),
        *("writeOnly", "$anchor", "$id", "$schema", "$vocabulary"),
    }
)
"""Keywords that allow every value."""

META = "_meta"
"""A map in each type; what a schema says of its keys are types of their own."""

CONSTRAINTS = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
    "pattern": "pattern",
    **{f"min{of}": "min_length" for of in ("Length", "Items", "Properties")},
    **{f"max{of}": "max_length" for of in ("Length", "Items", "Properties")},
}
PYTHON: Mapping[str, Collection[Any]] = {
    "string": {str},
    "integer": {int},
    "number": {int, float},
    "boolean": {bool},
    "null": {type(None)},
    "array": {list},
}


@dataclass(frozen=True)
class Atom:
    """One alternative of a type: its class, its arguments, and what bounds it."""

    kind: Any
    of: Any = None
    meta: tuple[Any, ...] = ()

    @property
    def is_struct(self) -> bool:
        return isinstance(self.kind, type) and issubclass(self.kind, msgspec.Struct)


def atoms(kind: Any, meta: tuple[Any, ...] = ()) -> Iterator[Atom]:
    """The alternatives of a type, through names and unions."""
    origin = get_origin(kind)
    if hasattr(kind, "__value__"):
        yield from atoms(kind.__value__)
    elif origin is Annotated:
        inner, *more = get_args(kind)
        yield from atoms(inner, (*meta, *more))
    elif origin in (Union, types.UnionType):
        for part in get_args(kind):
            yield from atoms(part, meta)
    elif isinstance(kind, UntaggedType):
        for variant in kind.variants:
            yield from atoms(variant.type)
    elif origin is Literal:
        for value in get_args(kind):
            yield Atom(Literal, value)
    elif origin in (list, dict):
        yield Atom(origin, get_args(kind)[-1], meta)
    elif kind is not UnsetType:
        yield Atom(type(None) if kind is None else kind, None, meta)


@dataclass
class Walk:
    """A document beside its module of models.

    Attributes:
        module: The module.
        names: The Python name of each definition, by reference.
        noted: Pointers of what was noted, and of what has a type of its own elsewhere.
        lost: Pointers of keywords that are neither in a type nor noted.
        count: How many keywords there are.
    """

    module: Any
    names: Mapping[str, str]
    noted: frozenset[str]
    lost: list[str] = field(default_factory=list[str])
    count: int = 0

    def lose(self, pointer: str) -> None:
        parts = pointer.split("/")
        heads = {"/".join(parts[:end]) for end in range(2, len(parts) + 1)}
        if not heads & self.noted:
            self.lost.append(pointer)

    def definition(self, reference: str) -> Any:
        return getattr(self.module, self.names[reference])

    def walk(self, node: Any, pointer: str, kinds: list[Atom], owner: Any = None) -> None:
        """Look at each keyword of a schema, and at the schemas in it."""
        if node is False or node is True:
            self.count += 1
            if node is False and kinds:
                self.lose(pointer)
            return
        for keyword, value in node.items():
            if keyword in TELLS:
                continue
            self.count += 1
            at = f"{pointer}/{escape(keyword)}"
            check = getattr(self, f"carry_{keyword.strip('$').lower()}", None)
            if keyword == "const" and has_check(owner, pointer, "expected the constant"):
                carried = True
            elif keyword in CONSTRAINTS:
                carried = self.is_bound(keyword, value, kinds, owner, pointer)
            elif check is not None:
                carried = check(value, at, kinds, node)
            else:
                carried = False
            if not carried:
                self.lose(at)

    def is_bound(
        self, keyword: str, value: Any, kinds: list[Atom], owner: Any, pointer: str
    ) -> bool:
        if has_check(owner, pointer, "expected"):
            loaded = dis.get_instructions(owner.__post_init__)  # no constant has to be in a table
            return any(each.opname.startswith("LOAD") and each.argval == value for each in loaded)
        metas = [each for kind in kinds for each in kind.meta]
        return any(getattr(each, CONSTRAINTS[keyword], None) == value for each in metas)

    def carry_type(self, value: Any, at: str, kinds: list[Atom], node: Any) -> bool:
        for name in [value] if isinstance(value, str) else value:
            literals = {type(each.of) for each in kinds if each.kind is Literal}
            plain = {each.kind for each in kinds}
            if name == "object":
                known = any(each.is_struct or each.kind is dict for each in kinds)
            else:
                known = set(PYTHON[name]) <= plain | literals or {"const", "enum"} & node.keys()
            if not known or Any in plain:
                return False
        return True

    def carry_ref(self, value: str, at: str, kinds: list[Atom], node: Any) -> bool:
        if {"properties", "required"} & node.keys():  # one object of both
            self.walk(self.module.DOCUMENT[value], at, kinds)
            return True
        return set(atoms(self.definition(value))) <= set(kinds)

    def carry_const(self, value: Any, at: str, kinds: list[Atom], node: Any) -> bool:
        return self.carry_enum([value], at, kinds, node)

    def carry_enum(self, value: Any, at: str, kinds: list[Atom], node: Any) -> bool:
        literals = [each.of for each in kinds if each.kind is Literal]
        if value == [True, False] or value == [False, True]:
            return bool in {each.kind for each in kinds}
        return all(any(type(a) is type(b) and a == b for b in literals) for a in value)

    def carry_anyof(self, value: Any, at: str, kinds: list[Atom], node: Any) -> bool:
        if Any in {each.kind for each in kinds} and self.is_any_value(value):
            return True
        for index, variant in enumerate(value):
            self.walk(variant, f"{at}/{index}", [] if variant is False else kinds)
        return True

    carry_oneof = carry_anyof

    def is_any_value(self, variants: list[Any]) -> bool:
        """Whether alternatives leave out no kind of JSON value."""
        whole = [
            self.module.DOCUMENT[each["$ref"]] if "$ref" in each else each for each in variants
        ]
        stated = [each.get("type", []) for each in whole]
        named = {name for each in stated for name in ([each] if isinstance(each, str) else each)}
        return {"object", "array", "string", "integer", "boolean"} <= named

    def carry_allof(self, value: Any, at: str, kinds: list[Atom], node: Any) -> bool:
        for index, part in enumerate(value):
            if "$ref" in part:  # taken in: its members are looked for
                document = self.module.DOCUMENT[part["$ref"]]
                self.walk(document, f"{at}/{index}", kinds)
            else:
                self.walk(part, f"{at}/{index}", kinds)
        return True

    def carry_items(self, value: Any, at: str, kinds: list[Atom], node: Any) -> bool:
        lists = [each for each in kinds if each.kind is list]
        if value is False or value == {"not": {}}:
            return any(each.meta and each.meta[0].max_length == 0 for each in lists)
        inner = [inner for each in lists for inner in atoms(each.of)]
        if isinstance(value, dict):
            self.walk(value, at, inner)
        return isinstance(value, dict) or value is True

    def carry_additionalproperties(self, value: Any, at: str, kinds: list[Atom], node: Any) -> bool:
        if value is True or value == {}:
            return True
        maps = [each for each in kinds if each.kind is dict]
        if value is False or not maps:
            return False
        self.walk(value, at, [inner for each in maps for inner in atoms(each.of)])
        return True

    def carry_properties(
        self, value: Mapping[str, Any], at: str, kinds: list[Atom], node: Any
    ) -> bool:
        if value.keys() <= {META} and any(each.kind is dict for each in kinds):
            return True
        structs = [each.kind for each in kinds if each.is_struct]
        fitting = [each for each in structs if value.keys() <= names_of(each)] or structs[:1]
        if not value:
            return True
        if not fitting:
            return False
        if len(fitting) > 1:
            fitting.sort(key=lambda each: len(names_of(each)))
        for wire, child in value.items():
            place = f"{at}/{escape(wire)}"
            typed = member_type(fitting[0], wire)
            if typed is not None and wire == META:
                self.count += 1
            elif typed is not None:
                self.walk(child, place, list(typed), fitting[0])
            elif child is not False:
                self.lose(place)
        return True

    def carry_required(self, value: Any, at: str, kinds: list[Atom], node: Any) -> bool:
        structs = [each.kind for each in kinds if each.is_struct]
        return not value or any(all(is_required(each, w) for w in value) for each in structs)


def has_check(owner: Any, pointer: str, text: str) -> bool:
    """Whether a Struct checks a member beyond its type."""
    checks = getattr(owner, "__post_init__", None)
    start = f"{pointer.rpartition('/')[2]}: {text}"
    texts = checks.__code__.co_consts if checks else ()
    return any(isinstance(each, str) and each.startswith(start) for each in texts)


def names_of(kind: Any) -> set[str]:
    """Wire names of the members of a Struct."""
    tag = kind.__struct_config__.tag_field
    return {each.encode_name for each in msgspec.structs.fields(kind)} | ({tag} if tag else set())


def member_type(kind: Any, wire: str) -> list[Atom] | None:
    """The alternatives of a member, without absence; `None` where there is no such member."""
    config = kind.__struct_config__
    if config.tag_field == wire:
        return [Atom(Literal, config.tag)]
    for each in msgspec.structs.fields(kind):
        if each.encode_name == wire:
            alternatives = list(atoms(each.type))
            if each.default is None and len(alternatives) > 1:
                alternatives.remove(Atom(type(None)))
            if each.default_factory is not NODEFAULT:
                alternatives.append(Atom(Literal, each.default_factory()))
            return alternatives
    return None


def is_required(kind: Any, wire: str) -> bool:
    """Whether a member is always sent."""
    if kind.__struct_config__.tag_field == wire:
        return True
    return any(
        each.encode_name == wire and each.default is NODEFAULT
        for each in msgspec.structs.fields(kind)
    )


def module_of(source: str, name: str) -> Any:
    """A module of models, run as one of the committed package."""
    module = types.ModuleType(f"mcpgen_runtime.r_{name}.models")
    module.__package__ = f"mcpgen_runtime.r_{name}"
    sys.modules[module.__name__] = module
    exec(compile(source, module.__name__, "exec"), module.__dict__)
    return module
