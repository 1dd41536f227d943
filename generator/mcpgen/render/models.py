"""The message models of one revision: a job for datamodel-code-generator, and checks of its source.

The generator gets a schema in plain form, where every object and union has a name, and our
templates (`templates/models`). Beside the schema, it gets Python names, tags, tests for unions
without tags, further checks, and the documentation.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from mcpgen import names
from mcpgen.errors import SchemaError, TemplateError, format_value, safe_text
from mcpgen.json_types import Json, Node
from mcpgen.model.docstrings import Doc
from mcpgen.model.normalized import (
    ANY_MAP,
    Check,
    Constant,
    Definition,
    Fixed,
    NormalizedSchema,
    Range,
    target,
    targets,
)
from mcpgen.model.unions import Variant
from mcpgen.names import Decoding, ExtraPolicy, Library, Mutability
from mcpgen.render.datamodel import Job, Worker, source_of
from mcpgen.render.own_templates import NO_TEMPLATES, OwnTemplates
from mcpgen.schema import keywords

_OF_PACKAGE = ("Struct", "Untagged", "Variant", "always_sent")
"""The names that modules of models import from the package."""

_OF_DEFINITIONS = ("Struct", "Untagged")
"""Those that they import from the module of definitions beside them, if it checks values."""

_KEEP = "keep_extra"
"""The function that they import if objects keep the members that their types do not have."""

_ANY_OBJECT = (Variant("dict[str, Any]", decides=False),)

_OF_PYDANTIC = ("Tagged", "UnsetType", "nullable", "optional")
"""The names that they import from the package's module for pydantic as well."""


def job(
    normal: NormalizedSchema,
    unions: Mapping[str, tuple[Variant, ...]],
    docs: Mapping[str, Doc],
    title: str,
    lacking: Mapping[str, Sequence[str]] | None = None,
    core: Collection[str] = (),
    values: Collection[str] = (),
    library: Library = "msgspec",
    runtime: str = "..",
    templates: OwnTemplates = NO_TEMPLATES,
    decoding: Decoding = "lenient",
    extra_policy: Callable[[str], ExtraPolicy] = lambda name: "ignore",
    mutability: Mutability = "frozen",
) -> Job:
    """The job that renders a module with every definition.

    Args:
        normal: The definitions.
        unions: The unions that need tests.
        docs: Documentation of every definition.
        title: The module's docstring.
        lacking: Members that only other revisions of the package have, by definition; they are
            `None`.
        core: Definitions that an extension's module imports from the models of its revision.
        values: Definitions of tool results, which have a value.
        library: The library of the models.
        runtime: The prefix by which the module imports the package's other modules.
        templates: Templates of the user's own.
        decoding: Whether values are checked by the definitions too.
        extra_policy: Returns what becomes of members that a definition does not have.
        mutability: Whether members can be assigned.
    """
    if decoding == "strict":
        unions = {**dict.fromkeys(_checked_maps(normal), _ANY_OBJECT), **unions}
    extra: dict[str, dict[str, Any]] = {}
    aliases: dict[str, str] = {}
    definitions: dict[str, Node] = {}
    lacking, reserved = lacking or {}, names.RESERVED[library]
    for name, definition in normal.definitions.items():
        if name in core:
            continue
        python = names.members(definition.properties, reserved)
        definitions[name] = _with_imports(_input(definition, normal), core)
        aliases |= {f"{name}.{wire}": member for wire, member in python.items() if wire != member}
        extra[name] = _extra(definition, normal, docs[name], unions.get(name, ()), python)
        is_tested = name in unions
        tag, tagged = (None, []) if is_tested else _discriminator(definition, normal, reserved)
        extra[name]["discriminator"] = tag
        extra[name]["tagged"] = tagged
        extra[name]["lacking"] = lacking.get(name, ())
        extra[name]["has_value"] = name in values
        extra[name]["is_plain"] = _is_plain(definition, normal)
        extra[name]["runtime"] = runtime
        if name in templates.types:
            extra[name]["spec"] = templates.types[name]
        extra[name]["policy"] = extra_policy(name)
        extra[name]["is_frozen"] = mutability == "frozen"
    used = {each for name in definitions for each in targets(normal.definitions[name].node)}
    return Job(
        definitions=definitions,
        extra=extra,
        aliases=aliases,
        imports=[*_imports(normal, unions, extra, library), *templates.imports],
        title=title,
        modules=dict.fromkeys(_OF_PACKAGE, f"{runtime}_wire")
        | dict.fromkeys(_OF_PYDANTIC if library == "pydantic" else (), f"{runtime}_structs")
        | dict.fromkeys(sorted(used.intersection(core)), "..models")
        | dict.fromkeys(_OF_DEFINITIONS if decoding == "strict" else (), ".definitions")
        | {_KEEP: f"{runtime}_extra_members"},
        library=library,
        templates=templates.texts,
    )


def _checked_maps(normal: NormalizedSchema) -> list[str]:
    """The definitions that are maps of any members to Python, and more to the schema.

    Such a definition becomes a class of its own, by which its values are checked.
    """
    published = normal.schema.definitions
    return [
        name
        for name, definition in normal.definitions.items()
        if definition.node == ANY_MAP
        and keywords.binds(published.get(name, {})) - {"type", "additionalProperties"}
    ]


def _with_imports(node: Node, core: Collection[str]) -> Node:
    """Replace each reference to a definition of the revision in a schema by an import."""
    if "$ref" in node:
        return {"customTypePath": f"package.{target(node)}"} if target(node) in core else node
    copy = dict(node)
    for key in ("items", "additionalProperties"):
        if node.get(key):
            copy[key] = _with_imports(node[key], core)
    if "anyOf" in node:
        copy["anyOf"] = [_with_imports(part, core) for part in node["anyOf"]]
    if "properties" in node:
        inner = node["properties"].items()
        copy["properties"] = {wire: _with_imports(child, core) for wire, child in inner}
    return copy


def render(normal: NormalizedSchema, job: Job, worker: Worker | None = None, path: str = "") -> str:
    """The source of a module with every definition, not yet formatted.

    Args:
        normal: The definitions.
        job: The job of the module.
        worker: The process that received the job.
        path: The path of the job in the worker.

    Raises:
        SchemaError: No module can be made of the definitions.
    """
    source = None if worker is None else worker.source(path)
    if source is None:
        try:
            source = source_of(job)
        except TemplateError:
            raise
        except Exception as error:
            # Any error means that a definition is unsupported: the error for the user names it.
            raise _refusal(normal, job, error) from error
    _check(source, normal, job)
    return source


def _refusal(normal: NormalizedSchema, job: Job, error: Exception) -> SchemaError:
    """The error for definitions that cannot become a module, which names the first bad one."""
    blank: Mapping[str, Node] = {name: {"type": "object"} for name in job["definitions"]}
    pointer = "/$defs"
    for name, node in job["definitions"].items():
        try:
            source_of({**job, "definitions": {**blank, name: node}})
        except Exception as own:  # the same as above, for one definition
            pointer, error = normal.definitions[name].pointer, own
            break
    actual = f"{type(error).__name__}: {error}"
    return normal.schema.error(pointer, "what can become Python", safe_text(actual))


def _check(source: str, normal: NormalizedSchema, job: Job) -> None:
    """Check that each definition kept its name and members, and shadows no import.

    Raises:
        SchemaError: A definition was renamed, left out, or changed in its members.
    """
    written, imported = _names(source)
    for name in job["definitions"]:
        definition = normal.definitions[name]
        reserved = names.RESERVED[job["library"]]
        members = set(names.members(definition.properties, reserved).values())
        same = name in written and written[name] == (members if definition.is_object else None)
        if job["templates"]:  # what else a class has is theirs
            same = name in written
        if not same or name in imported:
            expected = "a definition whose names Python can use"
            raise normal.schema.error(definition.pointer, expected, format_value(name))


@lru_cache(maxsize=32)  # a process that builds again checks the same models
def _names(source: str) -> tuple[Mapping[str, set[str] | None], set[str]]:
    """The names that a module defines, as in `_defined_names`, and the names that it imports."""
    body = ast.parse(source).body
    imported = {
        name.asname or name.name
        for statement in body
        if isinstance(statement, ast.ImportFrom)
        for name in statement.names
    }
    return dict(_defined_names(body)), imported


def _defined_names(body: Iterable[ast.stmt]) -> Iterator[tuple[str, set[str] | None]]:
    """The names that a module defines, each Struct with its members."""
    for statement in body:
        match statement:
            case ast.ClassDef(name=name, bases=[ast.Name(id="Struct")]):
                yield name, {member for member, _ in _defined_names(statement.body)}
            case ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name, None
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="TypeAliasType"))
            ):
                yield name, None
            case ast.If():
                yield from _defined_names([*statement.body, *statement.orelse])
            case _:
                pass


def _input(definition: Definition, normal: NormalizedSchema) -> Node:
    """The form of a definition that datamodel-code-generator gets.

    Tag, constants and the default of optional members are left to the template. So all members
    count as required, except those for which null is a value; members without a default come first.
    """
    if not definition.is_object:
        return definition.node
    tag = definition.tag[0] if definition.tag else None
    always, optional = _always_sent(definition), _optional(definition, normal)
    properties = {
        wire: _hide_constant({key: value for key, value in node.items() if key != "default"})
        for wire, node in sorted(
            definition.properties.items(),
            key=lambda item: item[0] not in definition.required or item[0] in always,
        )
        if wire != tag
    }
    required = [
        wire
        for wire in properties
        if wire in definition.required or wire in always or wire in optional
    ]
    return {**definition.node, "properties": properties, "required": required}


def _hide_constant(node: Node) -> Node:
    """Write a constant in a form that datamodel-code-generator does not take as a tag."""
    return {"anyOf": [node]} if "const" in node else node


def _always_sent(definition: Definition) -> Mapping[str, Json]:
    """Members with a default that are always sent, by wire name, with their value."""
    return {
        wire: node["default"] if "default" in node else node["const"]
        for wire, node in definition.properties.items()
        if "default" in node or ("const" in node and wire in definition.required)
    }


def _optional(definition: Definition, normal: NormalizedSchema) -> list[str]:
    """Members that are `None` where they are absent, by wire name."""
    always = _always_sent(definition)
    return [
        wire
        for wire, node in definition.properties.items()
        if wire not in definition.required and wire not in always and not normal.allows_null(node)
    ]


def _extra(
    definition: Definition,
    normal: NormalizedSchema,
    doc: Doc,
    variants: tuple[Variant, ...],
    python: Mapping[str, str],
) -> dict[str, Any]:
    """The values about a definition that templates get beyond its schema."""
    return {
        "always_sent": {
            python[wire]: {"wire": wire, "value": value}
            for wire, value in _always_sent(definition).items()
        },
        "optional": {python[wire]: wire for wire in _optional(definition, normal)},
        "doc": doc.text,
        "members": {python[wire]: text for wire, text in doc.fields.items()},
        "tag": _tag(definition, python, doc),
        "schemas": _checks(definition, python, Fixed),
        "ranges": _checks(definition, python, Range),
        "constants": _checks(definition, python, Constant),
        "variants": [
            {
                "type": variant.type,
                "required": variant.required,
                "consts": dict(variant.consts),
                "inner": dict(variant.inner),
                "decides": variant.decides,
                "nullable": variant.nullable,
            }
            for variant in variants
        ],
    }


def _checks(definition: Definition, python: Mapping[str, str], kind: type[Check]) -> list[Node]:
    return [
        {
            "rule": check,
            "name": python[check.wire],
            "required": check.wire in definition.required,
            "message": f"{safe_text(check.wire)}: expected {_expectation(check)}",
        }
        for check in definition.checks
        if isinstance(check, kind)
    ]


def _expectation(check: Check) -> str:
    """The values that a member may have, as text for an error."""
    if isinstance(check, Constant):
        return f"the constant {format_value(check.value)}"
    if isinstance(check, Range):
        return f"{_span(check)}, got "
    return f'a JSON Schema with "{safe_text(check.keyword)}": "{safe_text(check.value)}"'


def _span(check: Range) -> str:
    """The bounds of a number in words."""
    if check.least is not None and check.most is not None and check.before == check.after == "<=":
        return f"{check.least} to {check.most}"
    bounds = {
        "more than" if check.before == "<" else "at least": check.least,
        "less than" if check.after == "<" else "at most": check.most,
    }
    return ", ".join(f"{words} {bound}" for words, bound in bounds.items() if bound is not None)


def _discriminator(
    definition: Definition, normal: NormalizedSchema, reserved: Collection[str]
) -> tuple[str | None, list[str]]:
    """The tag that distinguishes the objects of a union.

    All objects have the same name of the tag on the wire and in Python: pydantic needs both.

    Returns:
        The Python name of the tag, `None` if there is none; and the members that are objects, or
        unions of objects, if the union has other members too.
    """
    objects: list[Definition] = []
    tagged: list[str] = []
    for node in definition.members:
        inner = list(_objects(node, normal))
        if None not in inner:
            objects += (each for each in inner if each is not None)
            tagged.append(target(node))
    tags = {
        (each.tag[0], names.members(each.properties, reserved)[each.tag[0]]) if each.tag else None
        for each in objects
    }
    tag = tags.pop() if len(tags) == 1 and len(objects) > 1 else None
    if tag is None:
        return None, []
    return tag[1], tagged if len(tagged) < len(definition.members) else []


def _objects(node: Node, normal: NormalizedSchema) -> Iterator[Definition | None]:
    """The objects of a member of a union; `None` for a member that is none."""
    member = normal.resolve(node)
    if member is not None and member.members and not member.is_object:
        for each in member.members:
            yield from _objects(each, normal)
    else:
        yield member if member is not None and member.is_object else None


def _tag(definition: Definition, python: Mapping[str, str], doc: Doc) -> Node | None:
    if definition.tag is None:
        return None
    wire, value = definition.tag
    return {"wire": wire, "value": value, "name": python[wire], "doc": doc.fields.get(wire, "")}


def _imports(
    normal: NormalizedSchema,
    unions: Mapping[str, tuple[Variant, ...]],
    extra: Mapping[str, Mapping[str, Any]],
    library: Library,
) -> list[str]:
    """The imports for names that only our templates write."""
    used: list[str] = []
    if any(each["policy"] == "keep" for each in extra.values()):
        used.append(f"package.{_KEEP}")
    if unions:
        used += ["package.Untagged", "package.Variant"]
    if unions or any(each["lacking"] for each in extra.values()):
        used.append("typing.TYPE_CHECKING")
    if any(each["has_value"] for each in extra.values()):
        used.append("typing.Any")
    own = [normal.definitions[name] for name in extra]
    if any(definition.tag for definition in own):
        used.append("typing.Literal")
    objects = {each.name: extra[each.name] for each in own if each.is_object}
    if any(each["always_sent"].keys() - _tag_name(each) for each in objects.values()):
        used.append("package.always_sent")
    if library == "msgspec":
        if any(definition.tag for definition in own):
            used.append("typing.ClassVar")
        if any(
            name != wire for each in objects.values() for name, wire in each["optional"].items()
        ):
            used.append("msgspec.field")
        return used
    used.append("typing")
    tags = [each["tag"] for each in objects.values() if each["tag"]]
    renamed = any(tag["name"] != tag["wire"] for tag in tags)
    if renamed or any(each["discriminator"] for each in extra.values()):
        used.append("pydantic.Field")
    if any(each["optional"] for each in objects.values()):
        used.append("package.optional")
    if any(each["schemas"] or each["ranges"] or each["constants"] for each in objects.values()):
        used.append("typing.Any")
    plain = ((normal.definitions[name], each) for name, each in objects.items())
    if any(_nullable(definition, each) for definition, each in plain):
        used += ["package.UnsetType", "package.nullable"]
    has_tags = any(each["discriminator"] for each in extra.values())
    if has_tags:
        used.append("package.Tagged")
    if has_tags and not unions:
        used.append("typing.TYPE_CHECKING")
    if has_tags or unions or any(each["is_plain"] for each in extra.values()):
        used.append("typing.TypeAlias")
    return used


def _is_plain(definition: Definition, normal: NormalizedSchema) -> bool:
    """Whether a definition is another name of an object, or a map of any values."""
    node = definition.node
    if definition.is_object or definition.members:
        return False
    if "$ref" in node:
        other = normal.definitions[target(node)]
        return other.is_object or _is_plain(other, normal)
    return node.get("type") == "object" and not [*targets(node)]


def _nullable(definition: Definition, extra: Mapping[str, Any]) -> bool:
    """Whether an object has an optional member for which null is a value."""
    always_present = {*definition.required, *extra["optional"].values()}
    always_present |= {each["wire"] for each in extra["always_sent"].values()}
    return bool(definition.properties.keys() - always_present)


def _tag_name(extra: Mapping[str, Any]) -> set[str]:
    """The Python name of an object's own tag, which is a class variable; empty for none."""
    return {extra["tag"]["name"]} if extra["tag"] else set()
