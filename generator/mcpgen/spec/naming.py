"""Naming policies: other names of types and members for the values of `mcpgen.spec`.

A policy renames before anything is rendered, so a template reads one name everywhere: references,
methods, unions and differences have the names of the policy. Names on the wire stay.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal, TypeAlias

from mcpgen import names
from mcpgen.spec import differences
from mcpgen.spec.values import (
    Extension,
    Member,
    Method,
    Methods,
    Revision,
    Specification,
    Type,
    TypeExpression,
    Union,
)
from mcpgen.toml_records import Place, nearest_name

Case: TypeAlias = Literal["snake", "camel", "pascal", "wire"]
"""How words become a name: `mime_type`, `mimeType`, `MimeType`, or as on the wire."""


@dataclass(frozen=True)
class Suffixes:
    """Ends of the names of types by kind, for types that the policy does not name.

    Attributes:
        object: Of objects.
        union: Of unions.
        alias: Of other types.
        inline: Of all types that the schema has without a name, behind that of the kind.
    """

    object: str = ""
    union: str = ""
    alias: str = ""
    inline: str = ""


@dataclass(frozen=True)
class Naming:
    """A naming policy.

    Attributes:
        attributes: The case of the Python names of members.
        reserved: Python names that no member has; such a member gets an underscore at its end.
        types: Names of types by the name that the schema or mcpgen gives them.
        revisions: The same for single revisions, by revision; these come before `types`.
        members: Python names of members, by `Type.member` with names of the schema.
        suffixes: Ends of the names of types by kind.
    """

    attributes: Case = "snake"
    reserved: tuple[str, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict[str, str])
    revisions: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    members: Mapping[str, str] = field(default_factory=dict[str, str])
    suffixes: Suffixes = Suffixes()


def camel(name: str) -> str:
    """A name in camel case: `mime_type` gives `mimeType`."""
    first, *others = names.words(name) or [""]
    return "".join([first, *(word.capitalize() for word in others)])


def pascal(name: str) -> str:
    """A name in Pascal case: `tools/call` gives `ToolsCall`."""
    return "".join(
        f"{word[:1].upper()}{word[1:]}" for part in name.split("/") for word in names.words(part)
    )


_CASES: Mapping[Case, Callable[[str], str]] = {
    "snake": names.snake,
    "camel": camel,
    "pascal": pascal,
    "wire": str,
}


def rename(specification: Specification, naming: Naming, place: Place) -> Specification:
    """The values of a specification with the names of a policy.

    Args:
        specification: The values.
        naming: The policy.
        place: The place of the policy, for errors.

    Raises:
        InputError: The policy names a type or a member that no revision has, or gives two types or
            two members one name, or one that Python cannot have.
    """
    if naming == Naming():
        return specification
    _check_known(specification, naming, place)
    revisions = tuple(
        _Renamer(each, naming, place).revision(each) for each in specification.revisions
    )
    neighbours = tuple(differences.compare(*pair) for pair in pairwise(revisions))
    return replace(specification, revisions=revisions, differences=neighbours)


def _check_known(specification: Specification, naming: Naming, place: Place) -> None:
    types = {
        name: each
        for revision in specification.revisions
        for name, each in revision.types_by_name.items()
    }
    members = {
        f"{name}.{member.name}"
        for revision in specification.revisions
        for name, each in revision.types_by_name.items()
        for member in each.members
    }
    _expect_known(naming.types, types, "a type", place.at("types"))
    for revision in specification.revisions:
        own = naming.revisions.get(revision.name, {})
        at = place.at("revisions").at(revision.name)
        _expect_known(own, revision.types_by_name, f"a type of {revision.name}", at)
    _expect_known(naming.members, members, "a member as Type.member", place.at("members"))


def _expect_known(named: Iterable[str], known: Collection[str], what: str, place: Place) -> None:
    for name in named:
        if name not in known:
            near = nearest_name(name, known)
            raise place.at(name).error(
                f"{what}{f', the nearest being {near}' if near else ''}", name
            )


def _is_name(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


class _Renamer:
    """Renames the values of one revision."""

    def __init__(self, revision: Revision, naming: Naming, place: Place) -> None:
        self._naming = naming
        self._place = place
        self._names: dict[str, str] = {}
        taken: dict[str, str] = {}
        own = naming.revisions.get(revision.name, {})
        for name, each in revision.types_by_name.items():
            new = own.get(name) or naming.types.get(name) or name + self._suffix(each)
            of = place.at("revisions").at(revision.name) if name in own else place.at("types")
            if not _is_name(new):
                raise of.at(name).error("a name that Python can use", new)
            if new in taken:
                raise of.at(name).error(f"a name that {taken[new]} does not have", new)
            self._names[name] = new
            taken[new] = name

    def _suffix(self, each: Type) -> str:
        by_kind = {
            "object": self._naming.suffixes.object,
            "union": self._naming.suffixes.union,
            "alias": self._naming.suffixes.alias,
        }
        return by_kind[each.kind] + (self._naming.suffixes.inline if each.is_inline else "")

    def revision(self, revision: Revision) -> Revision:
        return replace(
            revision,
            types=tuple(self._type(each) for each in revision.types),
            methods=self._methods(revision.methods),
            roles={role: self._names[name] for role, name in revision.roles.items()},
            extensions=tuple(self._extension(each) for each in revision.extensions),
        )

    def _extension(self, extension: Extension) -> Extension:
        added = {
            method: tuple(self._names[name] for name in types)
            for method, types in extension.added_results.items()
        }
        return replace(
            extension,
            types=tuple(self._type(each) for each in extension.types),
            methods=self._methods(extension.methods),
            added_results=added,
        )

    def _type(self, each: Type) -> Type:
        return replace(
            each,
            name=self._names[each.name],
            type=None if each.type is None else self._expression(each.type),
            members=self._members(each),
            union=None if each.union is None else self._union(each.union),
        )

    def _members(self, owner: Type) -> tuple[Member, ...]:
        python = self._member_names(owner)
        return tuple(
            replace(member, python_name=python[member.name], type=self._expression(member.type))
            for member in owner.members
        )

    def _member_names(self, owner: Type) -> Mapping[str, str]:
        """The Python names of the members of an object, each once."""
        chosen: dict[str, str] = {}
        for member in owner.members:
            key = f"{owner.name}.{member.name}"
            own = self._naming.members.get(key)
            at = self._place.at("members").at(key)
            if own is not None and (not _is_name(own) or own in chosen.values()):
                raise at.error("a name that Python can use and no other member has", own)
            chosen[member.name] = own or self._member_name(member.name, chosen.values())
        return chosen

    def _member_name(self, wire: str, taken: Collection[str]) -> str:
        name = _CASES[self._naming.attributes](wire)
        name = name if name.isidentifier() else names.snake(wire)
        while keyword.iskeyword(name) or name in self._naming.reserved or name in taken:
            name = f"{name}_"
        return name

    def _expression(self, kind: TypeExpression) -> TypeExpression:
        return replace(
            kind,
            name=self._name(kind.name),
            items=None if kind.items is None else self._expression(kind.items),
            alternatives=tuple(self._expression(each) for each in kind.alternatives),
            object_type=self._name(kind.object_type),
        )

    def _union(self, union: Union) -> Union:
        alternatives = tuple(
            replace(each, type=self._names[each.type]) for each in union.alternatives
        )
        return replace(union, alternatives=alternatives)

    def _methods(self, methods: Methods) -> Methods:
        return Methods(
            self._group(methods.client_requests),
            self._group(methods.server_requests),
            self._group(methods.client_notifications),
            self._group(methods.server_notifications),
            self._group(methods.input_requests),
        )

    def _group(self, methods: Iterable[Method]) -> tuple[Method, ...]:
        return tuple(
            replace(
                method,
                message=self._names[method.message],
                params=self._name(method.params),
                result=self._name(method.result),
                results=tuple(self._names[name] for name in method.results),
                item=self._name(method.item),
            )
            for method in methods
        )

    def _name(self, name: str | None) -> str | None:
        return None if name is None else self._names[name]
