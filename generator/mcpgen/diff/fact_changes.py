"""Compare facts that only the pages state: transports, headers, statuses, codes, behaviour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeGuard

from mcpgen.diff.changes import Collected, Spot
from mcpgen.diff.protocol import Protocol
from mcpgen.model.name import Role
from mcpgen.schema.facts import By, Deprecation, Pages
from mcpgen.schema.method_facts import MethodFacts

_BOTH: tuple[Role, ...] = ("client", "server")
_SENDERS: Mapping[str, tuple[Role, ...]] = {
    "headers.protocol_version": ("client",),
    "headers.last_event_id": ("client",),
    "headers.method": ("client",),
    "headers.name": ("client",),
    "headers.param_prefix": ("client",),
    "http.fallback": ("client",),
    "http.cancellation": ("client",),
    "http": ("server",),
    "errors": ("server",),
    "meta.protocol_version": ("client",),
    "meta.client_info": ("client",),
    "meta.client_capabilities": ("client",),
    "meta.log_level": ("client",),
    "meta.server_info": ("server",),
    "meta.subscription_id": ("server",),
    "behaviour.bad_tool_arguments": ("server",),
    "behaviour.structured_content": ("server",),
    "behaviour.log_level": ("client",),
    "behaviour.listen": ("client",),
}
"""The sides that a fact is about, by its path or the path's first word; all other facts: both."""

_FOLLOWERS: Mapping[By, tuple[Role, ...]] = {
    "client": ("client",),
    "server": ("server",),
    "both": _BOTH,
}

_LEFT_OUT = frozenset({"draft", "pages", "results"})
"""Tables that do not belong to a revision, or that are compared elsewhere."""

_NAMED: Mapping[str, str] = {"headers": "HEADER", "meta": "META_KEY"}
"""Tables whose values are names on the wire, with the prefix of their rules."""


def compare(old: Protocol, new: Protocol, collected: Collected) -> None:
    """Record the differences of the facts."""
    _lifecycle(old, new, collected)
    ours, theirs = dict(_flatten_facts(old)), dict(_flatten_facts(new))
    for path in [*ours, *(path for path in theirs if path not in ours)]:
        before, after = ours.get(path), theirs.get(path)
        if _differ(before, after):
            _record(collected, path, before, after)
    _methods(old, new, collected)
    _rules(old.facts.pages, new.facts.pages, collected)
    _deprecations(old, new, collected)


def _differ(before: Any, after: Any) -> bool:
    if before is None or after is None:  # an unstated fact equals an absent one
        return not (_is_absent(before) and _is_absent(after))
    return before != after or type(before) is not type(after)


def _lifecycle(old: Protocol, new: Protocol, collected: Collected) -> None:
    if old.methods.handshake != new.methods.handshake:
        texts = ("handshake" if side.methods.handshake else "per request" for side in (old, new))
        collected.add("LIFECYCLE_CHANGED", _spot("lifecycle"), *texts, senders=_BOTH)
    if old.methods.batching != new.methods.batching:
        rule = "BATCHING_ADDED" if new.methods.batching else "BATCHING_REMOVED"
        collected.add(rule, _spot("batching"), senders=_BOTH)


def _flatten_facts(side: Protocol) -> Iterator[tuple[str, Any]]:
    """The facts by dotted path, except those of methods; `None` for unstated facts."""
    unstated = side.facts.pages.unstated
    for table in fields(side.facts):
        stated = getattr(side.facts, table.name)
        if is_dataclass(stated) and table.name not in _LEFT_OUT:
            for fact in fields(stated):
                path = f"{table.name}.{fact.name}"
                is_unstated = path in unstated or table.name in unstated
                yield path, None if is_unstated else getattr(stated, fact.name)


def _rules(old: Pages, new: Pages, collected: Collected) -> None:
    """Compare the rules of the pages."""
    for name in sorted(old.rules.keys() | new.rules.keys()):
        before, after = old.rules.get(name), new.rules.get(name)
        texts = tuple(rule.text if rule is not None else "" for rule in (before, after))
        if texts[0] != texts[1]:
            stated = [rule for rule in (before, after) if rule is not None]
            senders: set[Role] = {role for rule in stated for role in _FOLLOWERS[rule.by]}
            collected.add(f"FACT_{_way(*texts)}", _spot(name), *texts, senders=senders)


def _deprecations(old: Protocol, new: Protocol, collected: Collected) -> None:
    """Compare the deprecations of the pages, and further ones that the schemas mark."""
    ours, theirs = old.facts.pages.deprecated, new.facts.pages.deprecated
    for name in sorted(ours.keys() | theirs.keys()):
        texts = tuple(_deprecation(rows.get(name)) for rows in (ours, theirs))
        if texts[0] != texts[1]:
            collected.add(f"DEPRECATION_{_way(*texts)}", _spot(name), *texts, senders=_BOTH)
    covered = {each for rows in (ours, theirs) for row in rows.values() for each in row.types}
    for place in sorted((old.marks ^ new.marks) - covered):
        way = "ADDED" if place in new.marks else "REMOVED"
        owner = place.partition(".")[0]
        senders: set[Role] = {
            message.sender for side in (old, new) for message in side.users.get(owner, frozenset())
        }
        collected.add(f"DEPRECATION_{way}", _spot(place, owner), senders=senders or _BOTH)


def _deprecation(row: Deprecation | None) -> str:
    if row is None:
        return ""
    removal = f"; it may be removed {row.removal}" if row.removal else ""
    return f"since {row.since}, in favor of {row.instead}{removal}"


def _way(before: Any, after: Any) -> str:
    absent, present = _is_absent(before), not _is_absent(after)
    return "CHANGED" if absent != present else "ADDED" if present else "REMOVED"


def _record(collected: Collected, path: str, before: Any, after: Any) -> None:
    table, _, name = path.partition(".")
    spot = _spot(path, table)
    senders = _SENDERS.get(path, _SENDERS.get(table, _BOTH))
    if any(isinstance(value, tuple) for value in (before, after)):
        _entries(collected, spot, senders, (before, after))
        return
    way = _way(before, after)
    if table == "transports":
        rule = f"TRANSPORT_{way}"
    elif table == "errors":
        rule = f"ERROR_CODE_{way}"
    elif table == "http" and _is_status(before, after):
        texts = ("no status of its own" if one is None else str(one) for one in (before, after))
        collected.add("STATUS_CHANGED", spot, *texts, senders=senders)
        return
    elif table in _NAMED and not isinstance(before, bool) and name not in _RULES_OF_KEYS:
        rule = f"{_NAMED[table]}_{'RENAMED' if way == 'CHANGED' else way}"
    else:
        rule = f"FACT_{way}"
    collected.add(rule, spot, _text(before), _text(after), senders=senders)


_RULES_OF_KEYS = frozenset({"key_rules", "reserved_prefix"})


def _is_status(*values: Any) -> bool:
    return all(value is None or type(value) is int for value in values)


def _is_absent(value: Any) -> bool:
    return value is None or value is False or value in ("none", "", ())


def _text(value: Any) -> str:
    if _is_absent(value) or value is True:
        return ""
    return ", ".join(map(str, value)) if _is_tuple(value) else str(value)


def _is_tuple(value: Any) -> TypeGuard[tuple[object, ...]]:
    return isinstance(value, tuple)


def _entries(
    collected: Collected, spot: Spot, senders: Sequence[Role], lists: tuple[Any, Any]
) -> None:
    """Record the entries of a list that only one side has; `None` counts as an empty list."""
    before, after = (set(map(str, entries or ())) for entries in lists)
    for entry in sorted(before - after):
        collected.add("FACT_REMOVED", spot, old=entry, senders=senders)
    for entry in sorted(after - before):
        collected.add("FACT_ADDED", spot, new=entry, senders=senders)


def _methods(old: Protocol, new: Protocol, collected: Collected) -> None:
    """Compare facts of methods that both sides have."""
    ours: dict[str, Role] = {
        method.name: method.sender for method in (*old.methods.all, *old.methods.inputs)
    }
    theirs = {method.name for method in (*new.methods.all, *new.methods.inputs)}
    for name in sorted(ours.keys() & theirs):
        one, other = old.facts.method(name), new.facts.method(name)
        for fact in fields(MethodFacts):
            before, after = getattr(one, fact.name), getattr(other, fact.name)
            if before != after:
                spot = _spot(f"{name} ({fact.name})", name)
                texts = (_text(before), _text(after))
                way = _way(before, after)
                collected.add(f"FACT_{way}", spot, *texts, senders=(ours[name],))


def _spot(path: str, owner: str = "") -> Spot:
    return Spot(owner or path, path, path, frozenset())
