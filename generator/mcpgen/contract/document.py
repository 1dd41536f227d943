"""The contract of a server: what it shows to clients, as a file under version control.

The file is canonical: the same surface gives the same bytes. The newest revision of the server is
written whole; earlier ones have what differs from it. Each entry has a digest, so that a change by
hand is noticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpgen.contract.schema_document import canonical
from mcpgen.errors import InputError, safe_text
from mcpgen.input_files import parse_json, read_json
from mcpgen.json_types import Json, Node, is_array, is_object
from mcpgen.project.live_server import AnyTarget, Surface
from mcpgen.project.server_lists import KINDS, ServerLists, parse

FORMAT = 1
"""Version of the file's form."""

_MASK = "***"
_SHORTEST_SECRET = 8


class ContractError(InputError):
    """A contract is malformed, or was changed by hand."""


@dataclass(frozen=True)
class Contract:
    """The surface of a server, by revision.

    Attributes:
        name: The server's name.
        surfaces: What it shows, newest revision first.
    """

    name: str
    surfaces: tuple[Surface, ...]

    @property
    def revisions(self) -> tuple[str, ...]:
        """The revisions that the server speaks, newest first."""
        return tuple(each.revision for each in self.surfaces)

    @property
    def by_revision(self) -> dict[str, Surface]:
        """The surfaces by revision, newest first."""
        return {each.revision: each for each in self.surfaces}


def contract_of(surfaces: Sequence[Surface], server: AnyTarget) -> Contract:
    """The contract of a running server.

    Args:
        surfaces: What it shows, newest revision first.
        server: Its target, whose secrets (values of environment and header fields) are masked
            where the server repeats them.
    """
    secrets: list[str] = [
        value
        for name in ("env", "headers")
        for value in server.options.get(name, {}).values()
        if len(value) >= _SHORTEST_SECRET
    ]
    masked = tuple(
        Surface(
            each.revision,
            each.name,
            _mask(dict(each.capabilities), secrets),
            parse(_mask(each.lists.document(), secrets), server.shown),
        )
        for each in surfaces
    )
    return Contract(masked[0].name, masked)


def _mask(value: Any, secrets: Sequence[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, _MASK)
    if is_object(value):
        return {key: _mask(each, secrets) for key, each in value.items()}
    if is_array(value):
        return [_mask(each, secrets) for each in value]
    return value


def text_of(contract: Contract) -> str:
    """The file of a contract."""
    newest, *earlier = contract.surfaces
    document: Node = {
        "contract": FORMAT,
        "server": contract.name,
        "revisions": list(contract.revisions),
        **_surface_document(newest),
    }
    differing = {each.revision: _difference(newest, each) for each in earlier}
    if any(differing.values()):
        document["earlier"] = {key: value for key, value in differing.items() if value}
    return json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _surface_document(surface: Surface) -> Node:
    lists = {
        kind: {name: {"digest": digest(entry), **entry} for name, entry in _entries(surface, kind)}
        for kind in KINDS
    }
    instructions = surface.lists.instructions
    return {
        **lists,
        "capabilities": dict(surface.capabilities),
        "instructions": instructions,
    }


def _entries(surface: Surface, kind: str) -> list[tuple[str, Node]]:
    return sorted((entry[KINDS[kind]], entry) for entry in surface.lists.entries[kind])


def _difference(newest: Surface, earlier: Surface) -> Node:
    """The members of an earlier revision that differ; `null` stands for what it lacks."""
    whole, other = _surface_document(newest), _surface_document(earlier)
    differing: Node = {}
    for kind in KINDS:
        names = {*whole[kind], *other[kind]}
        changed = {
            name: other[kind].get(name)
            for name in names
            if whole[kind].get(name) != other[kind].get(name)
        }
        if changed:
            differing[kind] = changed
    for key in ("capabilities", "instructions"):
        if whole[key] != other[key]:
            differing[key] = other[key]
    return differing


def digest(entry: Mapping[str, Any]) -> str:
    """The digest of an entry: the same for entries that say the same."""
    plain = {key: value for key, value in entry.items() if key != "digest"}
    return f"sha256:{hashlib.sha256(canonical(plain).encode()).hexdigest()[:24]}"


def read(path: Path) -> Contract:
    """The contract in a file.

    Raises:
        ContractError: It is none, is of another version of mcpgen, or an entry was changed by hand.
    """
    return _contract(read_json(path, ContractError), str(path))


def read_text(text: str, source: str) -> Contract:
    """The contract in a text.

    Raises:
        ContractError: As for `read`.
    """
    return _contract(parse_json(text, source, ContractError), source)


def _contract(document: Json, source: str) -> Contract:
    if not is_object(document) or "contract" not in document:
        raise ContractError(source, "", "a file of mcpgen contract write", "something else")
    if document["contract"] != FORMAT:
        raise ContractError(
            source, "/contract", f"{FORMAT}", safe_text(json.dumps(document["contract"]))
        )
    revisions = document.get("revisions")
    if not is_array(revisions) or not revisions or not all(isinstance(r, str) for r in revisions):
        raise ContractError(source, "/revisions", "revisions, newest first", "something else")
    earlier = document.get("earlier", {})
    surfaces = [
        _read_surface(document, earlier.get(revision) or {}, revision, source)
        for revision in revisions
    ]
    return Contract(str(document.get("server", "")), tuple(surfaces))


def _read_surface(document: Node, changed: Node, revision: str, source: str) -> Surface:
    lists: Node = {}
    for kind in KINDS:
        entries = {**document.get(kind, {}), **changed.get(kind, {})}
        lists[kind] = []
        for name, entry in sorted(entries.items()):
            if entry is None:
                continue
            pointer = f"/{kind}/{name}"
            if not is_object(entry):
                raise ContractError(source, pointer, "an object", "something else")
            if entry.get("digest") != digest(entry):
                raise ContractError(
                    source, pointer, f"the digest {digest(entry)}", "an entry changed by hand"
                )
            lists[kind].append({key: value for key, value in entry.items() if key != "digest"})
    instructions = changed.get("instructions", document.get("instructions", ""))
    capabilities = changed.get("capabilities", document.get("capabilities", {}))
    parsed: ServerLists = parse({**lists, "instructions": instructions}, source)
    name = str(document.get("server", ""))
    return Surface(revision, name, capabilities if is_object(capabilities) else {}, parsed)
