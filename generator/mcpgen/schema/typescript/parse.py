"""TypeScript text in, declarations out. Resolves no name and knows no JSON Schema.

The text is parsed by tree-sitter and never run. Functions and their types, such as type guards,
describe no message and are skipped. Any other unsupported construct, such as a class, is an error
with line and column; nothing is left out silently.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from mcpgen.errors import TypeScriptError, UsageError, format_value
from mcpgen.schema.typescript import generics, zod
from mcpgen.schema.typescript.comments import WrongTagError, read_comment
from mcpgen.schema.typescript.syntax import (
    NO_COMMENT,
    Alias,
    Array,
    Comment,
    Constant,
    ConstantType,
    Declaration,
    Index,
    Indexed,
    Interface,
    Intersection,
    KeyOf,
    Keyword,
    Literal,
    Member,
    Module,
    Object,
    Position,
    Reference,
    Template,
    Tuple,
    Type,
    Union,
)

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

MAX_BYTES = 512 * 1024
"""Limit of the size of a TypeScript text, in bytes. Official schemas have some 100 kB.

Text that is no TypeScript at all may take ten seconds for this size.
"""

MAX_DEPTH = 60
"""Limit of the nesting of types."""
_RENAMED = re.compile(r"(?<![\w$*])([\w$]+)\s+as\s+([\w$]+)")


def parse(text: bytes, source: str) -> Module:
    """The declarations in TypeScript text.

    Args:
        text: The text, in UTF-8.
        source: The file, for messages.

    Raises:
        TypeScriptError: The text is not TypeScript, or holds something that cannot be read.
    """
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        before = text[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        raise TypeScriptError(source, line, column, "UTF-8 text", error.reason) from error
    return _Parser(text, source).module()


def _tree(text: bytes, source: str) -> Tree:
    try:
        from tree_sitter import Language, Parser
        from tree_sitter_typescript import language_typescript
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{source}: expected a schema in JSON, got TypeScript, which needs {error.name}: the"
            " extra typescript of mcpgen brings it, or pip install tree-sitter"
            " tree-sitter-typescript"
        ) from None
    return Parser(Language(language_typescript())).parse(text)


class _Parser:
    def __init__(self, text: bytes, source: str) -> None:
        self._text = text
        self._lines = text.split(b"\n")
        self._source = source
        self._types: dict[str, Declaration] = {}
        self._constants: dict[str, Constant] = {}
        self._renamed: dict[str, str] = {}
        self._generics: dict[str, generics.Generic] = {}
        self._zod = ""

    def module(self) -> Module:
        root = _tree(self._text, self._source).root_node
        if root.has_error:
            raise self._syntax_error(root)
        for comment, statement in self._children_with_comments(root):
            self._statement(statement, comment)
        if not self._types:
            raise self._error(root, "types that are declared in this file")
        types = generics.instantiate(self._types, self._generics, self._failure)
        if self._zod:
            types = zod.with_references(types)
        return Module(self._source, types, self._constants, self._renamed)

    # Text, places and errors

    def _text_of(self, node: Node) -> str:
        return self._text[node.start_byte : node.end_byte].decode("utf-8")

    def _words(self, node: Node) -> str:
        """The beginning of a node's text, on one line."""
        text = self._text[node.start_byte : min(node.end_byte, node.start_byte + 200)]
        return " ".join(text.decode("utf-8", "replace").split())

    def _head(self, node: Node) -> str:
        """The name at the beginning of a type."""
        return self._name(node) if node.type == "generic_type" else self._text_of(node)

    def _is_documentation(self, node: Node) -> bool:
        begin = self._text[node.start_byte : node.start_byte + 4]
        return begin.startswith(b"/**") and begin != b"/**/"

    def _at(self, node: Node) -> Position:
        row, column = node.start_point
        line = self._lines[row]
        if len(line) <= _LONG_LINE and not line.isascii():
            column = len(line[:column].decode("utf-8", "replace"))
        return Position(row + 1, column + 1)

    def _error(self, node: Node, expected: str) -> TypeScriptError:
        return self._wrong(node, expected, self._words(node))

    def _wrong(self, node: Node, expected: str, actual: object) -> TypeScriptError:
        return self._failure(self._at(node), expected, actual)

    def _failure(self, at: Position, expected: str, actual: object) -> TypeScriptError:
        return TypeScriptError(self._source, at.line, at.column, expected, format_value(actual))

    def _syntax_error(self, root: Node) -> TypeScriptError:
        node = root
        while True:
            broken = [child for child in node.children if child.has_error or child.is_missing]
            if node.is_error or node.is_missing or not broken:
                break
            node = broken[0]
        expected = f"{node.type!r}" if node.is_missing else "TypeScript"
        return self._error(node, expected)

    # Statements

    def _children_with_comments(self, parent: Node) -> Iterator[tuple[Node | None, Node]]:
        """The children of a node that are no comments, each with the documentation before it."""
        comment: Node | None = None
        for child in parent.children:
            if child.type != "comment":
                yield comment, child
                comment = None
            elif self._is_documentation(child):
                comment = child

    def _comment(self, node: Node | None) -> Comment:
        if node is None:
            return NO_COMMENT
        try:
            return read_comment(self._text_of(node))
        except WrongTagError as error:
            raise self._wrong(node, error.expected, error.actual) from error

    def _statement(self, node: Node, comment: Node | None) -> None:
        match node.type:
            case "empty_statement" | ";" | "hash_bang_line":
                pass
            case "function_declaration" | "function_signature":
                pass
            case "import_statement":
                self._import(node)
            case "export_statement":
                self._export(node, comment)
            case "ambient_declaration":
                for inner in _children(node):
                    self._statement(inner, comment)
            case "interface_declaration":
                self._interface(node, comment)
            case "type_alias_declaration":
                self._alias(node, comment)
            case "enum_declaration":
                self._enum(node, comment)
            case "lexical_declaration" | "variable_declaration":
                for inner in _children(node):
                    self._constant(inner, comment)
            case _:
                raise self._error(node, "an interface, a type, an enum or a constant")

    def _import(self, node: Node) -> None:
        """Record the name by which the file imports Zod, and types imported under another name."""
        source = node.child_by_field_name("source")
        for name, local in _RENAMED.findall(self._text_of(node)):
            self._renamed[local] = name
        if source is None or not re.fullmatch(r"zod(/.*)?", self._string(source)):
            return
        for clause in _children(node):
            if clause.type == "import_clause":
                names = re.findall(r"[\w$]+", self._text_of(clause))
                self._zod = names[-1] if names else ""

    def _export(self, node: Node, comment: Node | None) -> None:
        declaration = node.child_by_field_name("declaration")
        if declaration is not None:
            self._statement(declaration, comment)
        elif node.child_by_field_name("source") is not None or not any(
            child.type == "export_clause" for child in node.children
        ):
            raise self._error(node, "declarations in this file, none exported from elsewhere")

    def _declare(self, node: Node, declaration: Declaration) -> None:
        parameters = node.child_by_field_name("type_parameters")
        if parameters is not None:
            if declaration.name in self._generics:
                raise self._wrong(node, "one declaration of each name", declaration.name)
            known = {self._name(each): self._default(each) for each in _children(parameters)}
            self._generics[declaration.name] = generics.Generic(declaration, known)
            return
        before = self._types.get(declaration.name)
        if isinstance(before, Interface) and isinstance(declaration, Interface):
            declaration = self._join(node, before, declaration)
        elif before is not None:
            raise self._wrong(node, "one declaration of each name", declaration.name)
        self._types[declaration.name] = declaration

    def _join(self, node: Node, before: Interface, after: Interface) -> Interface:
        """Merge two declarations of one interface, whose common members must be equal."""
        members = {member.name: member for member in before.body.members}
        for member in after.body.members:
            if members.setdefault(member.name, member) != member:
                raise self._wrong(node, "the same member in each declaration", member.name)
        if None not in (indices := (before.body.index, after.body.index)) and len({*indices}) > 1:
            raise self._wrong(node, "the same index signature in each declaration", after.name)
        index = before.body.index or after.body.index
        extends = dict.fromkeys((*before.extends, *after.extends))
        body = replace(before.body, members=tuple(members.values()), index=index)
        return replace(before, extends=tuple(extends), body=body)

    def _name(self, node: Node) -> str:
        return self._text_of(self._field(node, "name"))

    def _default(self, parameter: Node) -> Type | None:
        """The default of a type parameter."""
        value = parameter.child_by_field_name("value")
        return None if value is None else self._type(_children(value)[0], 0)

    def _interface(self, node: Node, comment: Node | None) -> None:
        extends = [
            self._type(parent, 0)
            for clause in _children(node)
            if clause.type == "extends_type_clause"
            for parent in _children(clause)
        ]
        object_ = self._object(self._field(node, "body"), 0)
        name, at = self._name(node), self._at(node)
        self._declare(node, Interface(name, tuple(extends), object_, self._comment(comment), at))

    def _alias(self, node: Node, comment: Node | None) -> None:
        name = self._name(node)
        if self._field(node, "value").type in ("function_type", "constructor_type"):
            return
        value = self._type(self._field(node, "value"), 0)
        if self._zod:
            value = zod.plain_alias(value, self._zod)
        if isinstance(value, Reference) and value.name == name and self._zod:
            return  # a type inferred from a Zod schema of this name
        self._declare(node, Alias(name, value, self._comment(comment), self._at(node)))

    def _enum(self, node: Node, comment: Node | None) -> None:
        values: list[Type] = []
        following: int | None = 0
        for member in _children(self._field(node, "body")):
            value: str | int | float | bool | None = following
            if member.type == "enum_assignment":
                value = self._value(self._field(member, "value"))
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise self._error(member, "an enum member with a string or a whole number")
            following = value + 1 if isinstance(value, int) else None
            values.append(Literal(value, self._at(member)))
        if not values:
            raise self._error(node, "an enum with members")
        union = Union(tuple(values), self._at(node))
        self._declare(node, Alias(self._name(node), union, self._comment(comment), self._at(node)))

    def _constant(self, node: Node, comment: Node | None) -> None:
        name = self._name(node)
        annotation = node.child_by_field_name("type")
        if annotation is not None and self._zod:
            inner = _children(annotation)[0]
            if self._head(inner).startswith(f"{self._zod}."):
                self._zod_schema(node, inner, comment)
                return
        if name in self._constants:
            raise self._wrong(node, "one declaration of each name", name)
        self._constants[name] = Constant(name, self._constant_value(node), self._at(node))

    def _zod_schema(self, node: Node, type_: Node, comment: Node | None) -> None:
        name = zod.declared_name(self._name(node))
        plain = zod.plain_type(self._type(type_, 0), self._zod, self._failure)
        if not (isinstance(plain, Reference) and plain.name == name):  # declared beside it
            self._declare(node, Alias(name, plain, self._comment(comment), self._at(node)))

    def _constant_value(self, node: Node) -> str | int | float | bool | None:
        value = node.child_by_field_name("value")
        if value is not None and value.type in ("as_expression", "satisfies_expression"):
            value = _children(value)[0]
        annotation = node.child_by_field_name("type")
        if value is None and annotation is not None:
            inner = _children(annotation)[0]
            value = _children(inner)[0] if inner.type == "literal_type" else None
        return None if value is None else self._value(value)

    def _value(self, node: Node) -> str | int | float | bool | None:
        """The value of an expression, if it is a plain string, number or boolean."""
        text = self._text_of(node)
        match node.type:
            case "string":
                return self._string(node)
            case "template_string" if all(
                child.type != "template_substitution" for child in node.children
            ):
                return self._string(node)
            case "true" | "false":
                return node.type == "true"
            case "number" | "unary_expression":
                return _number(text)
            case _:
                return None

    # Types

    def _field(self, node: Node, name: str) -> Node:
        child = node.child_by_field_name(name)
        if child is None:
            raise self._error(node, f"a {node.type.replace('_', ' ')} with a {name}")
        return child

    def _type(self, node: Node, depth: int) -> Type:
        if depth > MAX_DEPTH:
            raise self._error(node, f"types nested at most {MAX_DEPTH} deep")
        match node.type:
            case "predefined_type":
                return self._keyword(node)
            case "literal_type":
                return self._literal(node)
            case "type_identifier" | "nested_type_identifier":
                return Reference(self._text_of(node), (), self._at(node))
            case "generic_type":
                return self._generic(node, depth)
            case "type_query":
                return self._type_query(node)
            case "index_type_query":
                return KeyOf(self._inner(node, depth), self._at(node))
            case "lookup_type":
                whole, key = (self._type(child, depth + 1) for child in _children(node))
                return Indexed(whole, key, self._at(node))
            case "template_literal_type":
                return self._template(node, depth)
            case "parenthesized_type" | "readonly_type":
                return self._inner(node, depth)
            case "object_type":
                return self._object(node, depth)
            case "array_type":
                return Array(self._inner(node, depth), self._at(node))
            case "tuple_type":
                return self._tuple(node, depth)
            case "union_type":
                return Union(self._operands(node, depth), self._at(node))
            case "intersection_type":
                return Intersection(self._operands(node, depth), self._at(node))
            case _:
                raise self._error(node, _EXPECTED_TYPE)

    def _keyword(self, node: Node) -> Type:
        name = self._text_of(node)
        if name not in _KEYWORDS:
            raise self._error(node, _EXPECTED_TYPE)
        return Keyword(name, self._at(node))

    def _literal(self, node: Node) -> Type:
        inner = _children(node)[0]
        if inner.type == "undefined":
            return Keyword("undefined", self._at(node))
        value = self._value(inner)
        if value is None and inner.type != "null":
            raise self._error(node, "a string, a number that is not too large, true, false or null")
        return Literal(value, self._at(node))

    def _generic(self, node: Node, depth: int) -> Type:
        arguments = _children(self._field(node, "type_arguments"))
        inner = tuple(self._type(child, depth + 1) for child in arguments)
        return Reference(self._name(node), inner, self._at(node))

    def _type_query(self, node: Node) -> Type:
        inner = _children(node)[0]
        if inner.type != "identifier":
            raise self._error(node, "typeof with the name of a constant")
        return ConstantType(self._text_of(inner), self._at(node))

    def _template(self, node: Node, depth: int) -> Type:
        parts: list[Type] = []
        end = node.start_byte + 1
        for child in (*_children(node), None):
            start = node.end_byte - 1 if child is None else child.start_byte
            if child is None or child.type == "template_type":
                text = self._text[end:start].decode("utf-8")
                parts.append(Literal(text, self._at(node)))
            if child is not None and child.type == "template_type":
                parts.append(self._inner(child, depth))
                end = child.end_byte
        return Template(tuple(parts), self._at(node))

    def _inner(self, node: Node, depth: int) -> Type:
        return self._type(_children(node)[0], depth + 1)

    def _operands(self, node: Node, depth: int) -> tuple[Type, ...]:
        """The members of a union or an intersection, which the tree nests to the left."""
        members: list[Node] = []
        left = node
        while left.type == node.type:
            left, *others = _children(left)
            members += reversed(others)
        members.append(left)
        return tuple(self._type(member, depth + 1) for member in reversed(members))

    def _tuple(self, node: Node, depth: int) -> Type:
        items: list[Type] = []
        required = 0
        rest: Type | None = None
        for child in _children(node):
            kind, inner = child.type, child
            if kind in ("required_parameter", "optional_parameter"):
                kind = (
                    "rest_type" if any(c.type == "rest_pattern" for c in child.children) else kind
                )
                inner = _children(self._field(child, "type"))[0]
            elif kind in ("optional_type", "rest_type"):
                inner = _children(child)[0]
            item = self._type(inner, depth + 1)
            if rest is not None:
                raise self._error(child, "nothing after the rest of a tuple")
            if kind == "rest_type":
                if not isinstance(item, Array):
                    raise self._error(child, "an array as the rest of a tuple")
                rest = item.item
                continue
            items.append(item)
            required += kind not in ("optional_parameter", "optional_type")
        return Tuple(tuple(items), required, rest, self._at(node))

    # Objects

    def _object(self, node: Node, depth: int) -> Object:
        members: dict[str, Member] = {}
        index: Index | None = None
        for comment, child in self._children_with_comments(node):
            if child.type == "index_signature":
                if index is not None:
                    raise self._error(child, "one index signature")
                index = self._index(child, depth)
            elif child.type == "property_signature":
                member = self._member(child, comment, depth)
                if member.name in members:
                    raise self._wrong(child, "each member once", member.name)
                members[member.name] = member
            elif child.is_named:
                raise self._error(child, "a member with a type, or an index signature")
        return Object(tuple(members.values()), index, self._at(node))

    def _member(self, node: Node, comment: Node | None, depth: int) -> Member:
        name = self._field(node, "name")
        match name.type:
            case "property_identifier" | "number":
                text = self._text_of(name)
            case "string":
                text = self._string(name)
            case _:
                raise self._error(name, "a member with a name")
        annotation = node.child_by_field_name("type")
        if annotation is None:
            raise self._error(node, "a member with a type")
        type_ = self._type(_children(annotation)[0], depth + 1)
        optional = any(child.type == "?" for child in node.children)
        return Member(text, type_, optional, self._comment(comment), self._at(name))

    def _index(self, node: Node, depth: int) -> Index:
        key = node.child_by_field_name("index_type")
        annotation = node.child_by_field_name("type")
        if (
            key is None
            or annotation is None
            or any(child.type == "mapped_type_clause" for child in node.children)
        ):
            raise self._error(node, "an index signature such as [key: string]: unknown")
        if self._text_of(key) != "string":
            raise self._error(key, "string as the type of the keys")
        return Index(self._type(_children(annotation)[0], depth + 1), self._at(node))

    # Strings

    def _string(self, node: Node) -> str:
        parts = [
            (
                _unescape(self._text_of(child))
                if child.type == "escape_sequence"
                else self._text_of(child)
            )
            for child in node.children
            if child.type in ("string_fragment", "escape_sequence")
        ]
        text = "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if "\ufffd" in text and "\ufffd" not in "".join(parts):
            raise self._error(node, "a string of whole characters")
        return text


_KEYWORDS = frozenset({"any", "boolean", "never", "null", "number", "object", "string", "unknown"})
_EXPECTED_TYPE = "a name, a literal, an object, an array, a tuple, a union or an intersection"

_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0", "\n": ""}
_LONG_LINE = 2_000
"""Limit of the bytes of a line in which columns count characters; in longer ones, bytes."""

_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?")

_MAX_DIGITS = 15
"""Characters of a whole number that JavaScript holds exactly, whatever its digits."""


def _children(node: Node) -> list[Node]:
    return [child for child in node.named_children if child.type != "comment"]


def _number(text: str) -> int | float | None:
    plain = text.replace("_", "").replace(" ", "")
    if not _NUMBER.fullmatch(plain) or len(plain) > 40:
        return None
    value = float(plain)
    if not value.is_integer():
        return value
    return int(value) if abs(value) < 10**_MAX_DIGITS else None


def _unescape(sequence: str) -> str:
    """The character that an escape sequence stands for; half of one for a surrogate."""
    body = sequence[1:]
    if code := re.fullmatch(r"(?:u\{|u|x)([0-9A-Fa-f]{1,6})\}?", body):
        return chr(min(int(code[1], 16), 0x10FFFF))
    return _ESCAPES.get(body, body)
