"""An extension of griffe for classes that are composed of features."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TypeGuard

from griffe import (
    Alias,
    Attribute,
    Class,
    Docstring,
    Extension,
    Function,
    Module,
    Object,
    Parameter,
    ParameterKind,
    Parameters,
)

UNPACKED = re.compile(r"(?:typing\.)?Unpack\[(\w+)\]")
REFERENCE = re.compile(r"See `(\w+)\.(\w+)`\.")
"""A docstring that only leads to a method of a base."""
SECTION = r"^{}:\n((?:    .*\n|\n)+)"
ENTRY = re.compile(r"^    (\w+(?:, \w+)*): ((?:.*)(?:\n     .*)*)", re.MULTILINE)
"""One name or several with their explanation, and the lines that continue it."""
MOST_OVERLOADS = 3
"""A function has more of them only where there is one for each revision."""

STRUCT = "frozen"
"""A keyword of the classes of msgspec."""
SENDS_ANY = "request"
"""The method of clients that sends a request by its name."""
IMPLEMENTS = ("Memory", "File", "Sync")
"""Begin the names of classes that have the methods of another one."""
SENDERS = ("ClientGroup", "SyncClientGroup")
"""Classes whose methods take the options of those of a client."""
SAME_MEMBERS = {
    "Accepted": ("models.ElicitResult",),
    "Audio": ("models.AudioContent", "Image"),
    "Cancelled": ("models.ElicitResult",),
    "Contents": ("models.TextResourceContents",),
    "Declined": ("models.ElicitResult",),
    "EmbeddedResource": ("models.EmbeddedResource",),
    "File": ("models.EmbeddedResource",),
    "Image": ("models.ImageContent",),
    "Message": ("models.PromptMessage",),
    "ResourceLink": ("models.ResourceLink",),
    "ResourceUpdated": ("models.ResourceUpdatedNotificationParams",),
    "Text": ("models.TextContent",),
    "ToolUse": ("models.ToolUseContent",),
    "ToolUseResult": ("models.ToolResultContent",),
}
"""Classes that explain those of their members that are the members of a message there."""
BLOCKING = "Sync"
"""Begins the names of classes without an event loop."""

Explained = dict[str, str]
"""Explanations by name, as in a section of a docstring."""


class Composed(Extension):
    """Completes the docstrings and signatures of a package after all of it was read."""

    def on_package(self, *, pkg: Module, **_: object) -> None:
        """Complete every class and function of the package."""
        objects = list(objects_below(pkg))
        classes = [each for each in objects if isinstance(each, Class)]
        for each in classes:
            if STRUCT in each.keywords and "__init__" not in each.members:
                each.set_member("__init__", constructor_of(each))
        for each in classes:
            complete_class(each)
            complete_members(each)
            complete_references(each)
        for function in objects:
            if isinstance(function, Function):
                complete_function(function)
        for each in classes:
            complete_parameters(each)


def objects_below(owner: Module | Class) -> Iterator[Class | Function]:
    """The classes and functions of a module or class, and those within them; no aliases."""
    for member in owner.members.values():
        if isinstance(member, Module | Class):
            yield from objects_below(member)
        if isinstance(member, Function | Class):
            yield member


def constructor_of(struct: Class) -> Function:
    """The constructor that msgspec makes of the members of a class."""
    keyword_only = struct.keywords.get("kw_only") is not None
    kind = ParameterKind.keyword_only if keyword_only else ParameterKind.positional_or_keyword
    fields: dict[str, Attribute] = {}
    for each in reversed([struct, *struct.mro()]):
        if STRUCT in each.keywords:
            fields |= {n: m for n, m in each.members.items() if is_field(m)}
    parameters = [
        Parameter(name, annotation=each.annotation, kind=kind, default=default_of(each))
        for name, each in fields.items()
    ]
    own = Parameter("self", kind=ParameterKind.positional_or_keyword)
    return Function("__init__", parameters=Parameters(own, *parameters))


def is_field(member: object) -> TypeGuard[Attribute]:
    """Whether a member of a class is one of its fields."""
    return (
        isinstance(member, Attribute)
        and member.annotation is not None
        and "instance-attribute" in member.labels
        and not member.name.startswith("_")
    )


def default_of(field: Attribute) -> str | None:
    """The default of a field as source; `...` if a function or a table of msgspec has it."""
    value = None if field.value is None else str(field.value)
    return "..." if value is not None and "field(" in value else value


def complete_class(owner: Class) -> None:
    """Add the parameters and attributes that the bases of a class explain to its docstring."""
    classes = [owner, *owner.mro()]
    shared = shared_members(owner)
    parameters: Explained = next(filter(None, (section_of(c, "Args") for c in classes)), {})
    constructor = next((c.members["__init__"] for c in classes if "__init__" in c.members), None)
    if isinstance(constructor, Function):
        parameters = signature_entries(constructor, parameters)
    own = {name for each in classes for name in each.members}
    attributes = {n: t for n, t in shared.items() if n in own} | explained_in(classes)
    if owner.docstring is None:
        owner.docstring = Docstring("", parent=owner)
    if parameters:
        set_section(owner.docstring, "Args", parameters)
    if attributes:
        set_section(owner.docstring, "Attributes", attributes)


def shared_members(owner: Class) -> Explained:
    """The members that a class explains elsewhere, by name."""
    explained: Explained = {}
    for path in SAME_MEMBERS.get(owner.name, ()):
        other = target_of(owner.package[path])
        if isinstance(other, Class):
            explained |= section_of(other, "Attributes") | section_of(other, "Args")
        for name, member in other.members.items():
            if member.docstring is not None and isinstance(member, Attribute):
                paragraph = member.docstring.value.partition("\n\n")[0]
                explained[name] = paragraph.replace("\n", "\n        ")
    return explained


def complete_references(owner: Class) -> None:
    """Give methods whose docstring leads to another method the docstring of that one."""
    bases = {base.name: base for base in owner.mro()}
    for member in owner.members.values():
        if isinstance(member, Function) and member.docstring is not None:
            reference = REFERENCE.fullmatch(member.docstring.value.strip())
            base = bases.get(reference[1]) if reference else None
            target = base.all_members.get(reference[2]) if base and reference else None
            if target is not None and target.docstring is not None:
                member.docstring.value = target.docstring.value


def complete_members(owner: Class) -> None:
    """Give members of a class `SyncX` without a docstring the one that they have in `X`."""
    name = owner.name.removeprefix(BLOCKING)
    root = owner.package
    if name == owner.name or name not in root.members:
        return
    counterpart = target_of(root.members[name])
    explained = section_of(counterpart, "Attributes") if isinstance(counterpart, Class) else {}
    for member in owner.members.values():
        if isinstance(member, Function | Attribute) and member.docstring is None:
            other = counterpart.all_members.get(member.name)
            own = "" if other is None or other.docstring is None else other.docstring.value
            if text := own or explained.get(member.name, ""):
                member.docstring = Docstring(text, parent=member)


def complete_function(function: Function) -> None:
    """Replace the unpacked options of a function by parameters, and explain these."""
    if function.overloads and len(function.overloads) > MOST_OVERLOADS:
        function.overloads = None
    explained = signature_entries(function, section_of(function, "Args"))
    if explained and function.docstring is not None:
        set_section(function.docstring, "Args", explained)
    for each in (function, *(function.overloads or ())):
        each.parameters = Parameters(*expanded(each))


def complete_parameters(owner: Class) -> None:
    """Explain parameters of methods as a base or the method that sends any request does."""
    classes = [*counterparts_of(owner), *owner.mro(), owner]
    for method in owner.members.values():
        if isinstance(method, Function) and method.docstring is not None:
            explained = {
                **method_entries(classes, SENDS_ANY),
                **method_entries(classes, method.name),
            }
            named = [each.name for each in method.parameters if each.name in explained]
            if named:
                set_section(method.docstring, "Args", {name: explained[name] for name in named})


def counterparts_of(owner: Class) -> Iterator[Class]:
    """The exported class that a class implements by its name: `Store` for `MemoryStore`."""
    if owner.name in SENDERS:
        client = target_of(owner.package.members["Client"])
        yield from [client] if isinstance(client, Class) else []
    for prefix in IMPLEMENTS:
        member = owner.package.members.get(owner.name.removeprefix(prefix))
        target = None if member is None else target_of(member)
        if owner.name.startswith(prefix) and isinstance(target, Class):
            yield target


def method_entries(classes: list[Class], name: str) -> Explained:
    """The parameters of a method that some classes explain; the last of them counts."""
    explained: Explained = {}
    for each in classes:
        method = each.members.get(name)
        target = method and target_of(method)
        explained |= section_of(target, "Args") if isinstance(target, Function) else {}
    return explained


def expanded(function: Function) -> Iterator[Parameter]:
    """The parameters of a function, with its options in place of the unpacked dictionary."""
    for parameter in function.parameters:
        table = unpacked_class(function, parameter)
        if table is None:
            yield parameter
            continue
        names = {known.name for known in function.parameters}
        for name, option in keys_of(table).items():
            if name not in names:
                yield Parameter(
                    name,
                    annotation=option.annotation,
                    kind=ParameterKind.keyword_only,
                    default="...",
                )


def signature_entries(function: Function, explained: Explained) -> Explained:
    """Explanations in the order of a signature, with options in place of their dictionary."""
    entries: Explained = {}
    for parameter in function.parameters:
        table = unpacked_class(function, parameter)
        if table is not None:
            entries |= options_in(table)
        elif parameter.name in explained:
            entries[parameter.name] = explained[parameter.name]
    return entries


def options_in(table: Class) -> Explained:
    """The explanations of the keys of a `TypedDict`."""
    explained: Explained = {}
    for each in reversed([table, *table.mro()]):
        neighbours = [c for c in each.module.members.values() if isinstance(c, Class)]
        beside = explained_in(neighbours)
        own = section_of(each, "Attributes")
        keys = [name for name, member in each.members.items() if isinstance(member, Attribute)]
        explained |= {name: own.get(name) or beside[name] for name in keys if name in own | beside}
    return explained


def unpacked_class(function: Function, parameter: Parameter) -> Class | None:
    """The `TypedDict` that the annotation of a parameter unpacks."""
    unpacked = UNPACKED.fullmatch(str(parameter.annotation or ""))
    if unpacked is None:
        return None
    table = function.modules_collection[function.resolve(unpacked[1])]
    target = target_of(table)
    return target if isinstance(target, Class) else None


def target_of(member: Object | Alias) -> Object:
    """The object that a name stands for."""
    return member.final_target if isinstance(member, Alias) else member


def keys_of(table: Class) -> Mapping[str, Attribute]:
    """The keys of a `TypedDict`, with those of its bases."""
    keys: dict[str, Attribute] = {}
    for each in (table, *table.mro()):
        for name, member in each.members.items():
            if isinstance(member, Attribute):
                keys.setdefault(name, member)
    return keys


def explained_in(classes: list[Class]) -> Explained:
    """The attributes that the docstrings of some classes explain; the first of them counts."""
    explained: Explained = {}
    for each in reversed(classes):
        explained |= section_of(each, "Attributes")
    return explained


def section_of(owner: Class | Function, heading: str) -> Explained:
    """The entries of a section of a docstring."""
    text = "" if owner.docstring is None else f"{owner.docstring.value}\n"
    section = re.search(SECTION.format(heading), text, re.MULTILINE)
    entries = ENTRY.findall(section[1]) if section else []
    return {name: explanation for names, explanation in entries for name in names.split(", ")}


def set_section(docstring: Docstring, heading: str, explained: Explained) -> None:
    """Give a docstring a section with these entries, in place of the one that it has."""
    rest = re.sub(SECTION.format(heading), "", f"{docstring.value}\n", flags=re.MULTILINE)
    entries = "\n".join(f"    {name}: {text}" for name, text in explained.items())
    docstring.value = f"{rest.rstrip()}\n\n{heading}:\n{entries}\n"
