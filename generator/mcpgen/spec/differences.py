"""The differences of two neighbouring revisions, value by value.

Names tell what is the same: a type or a method that is renamed is removed and added. `mcpgen diff`
finds renames, and says whom a change affects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, Literal, TypeAlias

from mcpgen.spec.form import as_json
from mcpgen.spec.values import Change, Difference, Member, Method, Methods, Revision, Type

_Of: TypeAlias = Literal["type", "member", "method", "fact"]

_NOT_COMPARED = frozenset({"doc", "is_inline", "members", "page", "pointer"})
"""Attributes that are no meaning of a value, or that are compared one by one."""


def compare(older: Revision, newer: Revision) -> Difference:
    """The changes from a revision to a newer one."""
    before, after = _by_name(older.types), _by_name(newer.types)
    members = [
        change
        for name, each in after.items()
        if name in before
        for change in _changes("member", _members(before[name]), _members(each))
    ]
    changes = (
        *_changes("type", before, after),
        *members,
        *_changes("method", _methods(older.methods), _methods(newer.methods)),
        *_fact_changes(_facts(older), _facts(newer)),
    )
    return Difference(older.name, newer.name, changes)


def _by_name(types: tuple[Type, ...]) -> dict[str, Type]:
    return {each.name: each for each in types}


def _members(owner: Type) -> dict[str, Member]:
    return {f"{owner.name}.{member.name}": member for member in owner.members}


def _methods(methods: Methods) -> dict[str, Method]:
    """The methods by sender and name, those inside results by themselves."""
    inside = {f"input {each.name}": each for each in methods.input_requests}
    others = (each for each in methods.all if each not in methods.input_requests)
    return {f"{each.sender} {each.name}": each for each in others} | inside


def _facts(revision: Revision) -> dict[str, Any]:
    return {
        f"{table}.{name}": value
        for table, rows in revision.facts.items()
        for name, value in rows.items()
    }


def _changes(of: _Of, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    for name, new in after.items():
        old = before.get(name)
        if old is None:
            yield Change("added", of, name)
            continue
        for attribute in (each.name for each in fields(new) if each.name not in _NOT_COMPARED):
            one, other = getattr(old, attribute), getattr(new, attribute)
            if one != other:
                yield Change("changed", of, name, attribute, as_json(one), as_json(other))
    for name in before:
        if name not in after:
            yield Change("removed", of, name)


def _fact_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    for name, new in after.items():
        if before.get(name) != new:
            old = as_json(before.get(name))
            yield Change("changed", "fact", name, "value", old, as_json(new))
